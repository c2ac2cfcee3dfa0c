"""Helpers that all readers of a handoff share: notes about problems, limits, and merging of repeated keys."""

from __future__ import annotations

import re
from typing import Any

from foveate.errors import InputError
from foveate.text.sanitize import strip_invisible

MAX_BYTES = 262_144
"""About 60,000 tokens. A handoff has a few hundred; longer text is a log or a transcript."""

MAX_PROBLEMS = 40
"""Further problems are only counted. A text with forty faults is better read in its raw form."""

MAX_DEPTH = 50
"""A handoff has four levels. Deeper input is a mistake or an attack and would exhaust the stack of a reader."""

MAX_EXCERPT_CHARS = 60

_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_MAX_DIGITS = 4000  # Python refuses to convert longer numbers
_SURROGATE = re.compile("[\ud800-\udfff]")


class Notes:
    """The problems of one handoff, each once, in the order in which they were met."""

    def __init__(self) -> None:
        self._sentences: dict[str, None] = {}

    def add(self, *sentences: str) -> None:
        self._sentences.update(dict.fromkeys(sentences))

    def __len__(self) -> int:
        return len(self._sentences)

    def sentences(self) -> tuple[str, ...]:
        """Return all sentences, or the first `MAX_PROBLEMS` and the number of the others."""
        sentences = tuple(self._sentences)
        if len(sentences) <= MAX_PROBLEMS:
            return sentences
        return (*sentences[:MAX_PROBLEMS], f"There are {len(sentences) - MAX_PROBLEMS} more problems like these.")


class UnsafeInput(InputError):
    """Input that could exhaust a parser. A mapping is refused; a text is kept without being parsed."""


def nesting_error() -> UnsafeInput:
    return UnsafeInput(f"The handoff is nested more than {MAX_DEPTH} levels deep. Write it as lists of plain objects.")


def excerpt(value: Any) -> str:
    """Return a value on one line, quoted and shortened, for use in a message."""
    text = value if isinstance(value, str) else repr(value)
    text = " ".join(text[: MAX_EXCERPT_CHARS * 4].split())
    return repr(text if len(text) <= MAX_EXCERPT_CHARS else text[: MAX_EXCERPT_CHARS - 1] + "…")


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which no encoding can write, by U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)


def strip_hidden(text: str, notes: Notes) -> str:
    """Return the text without characters that a person cannot see, and note it if there were any.

    Readers call this again for every text with escapes, so that `\\u200b` cannot bring such characters back.
    """
    clean = strip_invisible(replace_surrogates(text), " ")
    if clean != text:
        notes.add("Control or invisible characters were removed.")
    return clean


def parse_number(text: str) -> int | float | str:
    """Return a number if that loses nothing, else the text: `1.10`, `007` and `1_000` stay as written."""
    if len(text) > _MAX_DIGITS or not _NUMBER.fullmatch(text):
        return text
    value: int | float = int(text) if text.lstrip("-").isdigit() else float(text)
    return value if repr(value) == text else text


def merge(target: dict[str, Any], key: str, value: Any, where: str, notes: Notes) -> None:
    """Set a key that may already be set: lists are joined, otherwise the later value wins. Both are noted."""
    existing = target.get(key)
    if existing is None or value is None:
        target[key] = value if existing is None else existing
        return
    if isinstance(existing, list) or isinstance(value, list):
        target[key] = joined = existing if isinstance(existing, list) else [existing]
        joined.extend(value if isinstance(value, list) else [value])
        notes.add(f"{where}{excerpt(key)} occurs more than once; the lists were joined.")
    elif existing != value:
        target[key] = value
        notes.add(f"{where}{excerpt(key)} occurs more than once; the later value was taken, not {excerpt(existing)}.")
