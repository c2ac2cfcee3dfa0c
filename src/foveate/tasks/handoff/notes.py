"""What the readers of a handoff share: the sentences they collect, and how far they go.

Comes in: one sentence at a time. Goes out: each of them once, in order, and not more than a person would read.
"""

from __future__ import annotations

import re
from typing import Any

from foveate.errors import InputError

MAX_PROBLEMS = 40
"""More sentences are counted only: a text with forty faults is read by its `raw`, not by a list."""

MAX_DEPTH = 50
"""A handoff has four levels. Deeper input is a mistake or an attack, and would exhaust the stack of a reader."""

MAX_EXCERPT = 60
"""Enough of a value to find it again in the text."""

_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_MAX_DIGITS = 4000
"""Python refuses to read longer numbers."""


class Notes:
    """The problems of one handoff, in the order in which they were met."""

    def __init__(self) -> None:
        self._said: dict[str, None] = {}

    def say(self, sentence: str) -> None:
        """Add a sentence, unless it has been said."""
        self._said.setdefault(sentence)

    def __len__(self) -> int:
        return len(self._said)

    def sentences(self) -> tuple[str, ...]:
        """All of them, or the first `MAX_PROBLEMS` and how many more there are."""
        said = list(self._said)
        if len(said) <= MAX_PROBLEMS:
            return tuple(said)
        return (*said[:MAX_PROBLEMS], f"There are {len(said) - MAX_PROBLEMS} more problems like these.")


def excerpt(value: Any) -> str:
    """A value as a message shows it: on one line, quoted, and not too long."""
    text = value if isinstance(value, str) else repr(value)
    text = " ".join(text[: MAX_EXCERPT * 4].split())
    return repr(text if len(text) <= MAX_EXCERPT else text[: MAX_EXCERPT - 1] + "…")


class Hostile(InputError):
    """A form that a reader could choke on: of a mapping a refusal, of a text a reason to keep it as it came."""


def too_deep() -> Hostile:
    """Input that is nested too deeply."""
    return Hostile(f"The handoff is nested more than {MAX_DEPTH} levels deep. Write it as lists of plain objects.")


def number(text: str) -> int | float | str:
    """A number where reading one loses nothing, or else the text: `1.10`, `007` and `1_000` stay as they are."""
    if len(text) > _MAX_DIGITS or not _NUMBER.fullmatch(text):
        return text
    value: int | float = int(text) if text.lstrip("-").isdigit() else float(text)
    return value if repr(value) == text else text


def merge(into: dict[str, Any], key: str, value: Any, where: str, notes: Notes) -> None:
    """Set a key that may have been set before: lists are joined, otherwise the later value wins; both are noted."""
    before = into.get(key)
    if before is None or value is None:
        into[key] = value if before is None else before
        return
    if isinstance(before, list) or isinstance(value, list):
        into[key] = joined = before if isinstance(before, list) else [before]
        joined.extend(value if isinstance(value, list) else [value])
        notes.say(f"{where}{excerpt(key)} stands more than once; the lists were joined.")
    elif before != value:
        into[key] = value
        notes.say(f"{where}{excerpt(key)} stands more than once; the later value was taken, not {excerpt(before)}.")
