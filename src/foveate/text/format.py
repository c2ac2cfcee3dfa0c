"""Short forms of text for people and prompts: cut to a length or width, on one line, counted nouns, words of a path."""

from __future__ import annotations

import re
from collections.abc import Sequence

SOURCE_ROOT_DIRS = frozenset(("src", "lib", "app", "apps", "pkg", "packages", "source", "internal"))
"""Folders whose names say nothing about the files in them."""

ENTRY_FILE_STEMS = frozenset(("__init__", "__main__", "index", "main", "mod", "lib"))
"""Files that represent their folder."""

LINE_MARKS = re.compile(r"(?:(?:[-*+•>]|#{1,6}|\d{1,3}[.)]) )+")
"""Marks of headings, list items and quotes at the beginning of a line."""


def truncate(text: str, max_chars: int) -> str:
    """Return the text, or as many of its first words as fit with a `…` after them."""
    if len(text) <= max_chars:
        return text
    head = text[: max(max_chars - 1, 0)]
    space = head.rfind(" ")
    # A word longer than half of the room is cut, or next to nothing would be left.
    if space > max_chars // 2 and not text[len(head)].isspace():
        head = head[:space]
    return head.rstrip(" ,;:-\n\t") + "…"


def one_line(value: object) -> str:
    """Return a value as text without line breaks and repeated spaces."""
    return " ".join(str(value).split())


def plain_line(text: str) -> str:
    """Return a text on one line, without code fences and without the marks of a heading, bullet or quote before it."""
    line = one_line(text.replace("```", " ") if "```" in text else text)
    marks = LINE_MARKS.match(line)
    line = line[marks.end() :] if marks else line
    return text if line == text or not line else line


def pluralize(count: int, noun: str) -> str:
    """Return `1 day` or `1,200 days`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def component_of(path: str) -> str:
    """Return the component that a file belongs to, by its path: `auth/login` for `src/auth/login.py`."""
    parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    if not parts:
        return path
    stem = parts[-1].split(".")[0] or parts[-1]
    folders = [part for n, part in enumerate(parts[:-1]) if n or part.lower() not in SOURCE_ROOT_DIRS]
    names = folders if stem.lower() in ENTRY_FILE_STEMS and folders else [*folders, stem]
    return "/".join(names[-2:])


def significant_path_words(path: str) -> str:
    """Return a path without the `src/` and `.py` that nearly every path has."""
    folders, _, name = path.removeprefix("./").rpartition("/")
    root, _, rest = folders.partition("/")
    return f"{rest if root.lower() in SOURCE_ROOT_DIRS else folders} {name.rsplit('.', 1)[0] or name}"


# --- widths ----------------------------------------------------------------------------------------------------------

ELLIPSIS = "…"
MIN_CLAUSE_SHARE, MIN_WORD_SHARE = 0.6, 0.4
"""A cut moves back to the end of a clause, else of a word, unless less than this share of the room would be used."""

_WIDE_CHAR = re.compile(r"[^\x00-\u024f]")
_CLAUSE_END = re.compile(r"[,;:)\]—–](?=\s)|[，、；：。！？]|[.!?](?=\s)")


def text_width(text: str) -> int:
    """Estimate the tokens of a text in quarters: one for an ASCII or Latin character, four for any other."""
    return len(text) if text.isascii() else len(text) + 3 * len(_WIDE_CHAR.findall(text))


def fits_width(text: str, max_width: int) -> bool:
    return len(text) <= max_width and (text.isascii() or text_width(text) <= max_width)


def truncate_to_width(text: str, max_width: int) -> str:
    """Return the text, or its beginning up to the end of a clause or word, with `…`."""
    if fits_width(text, max_width):
        return text
    room = max_width - text_width(ELLIPSIS)
    head = text[:room]
    while (excess := text_width(head) - room) > 0:
        head = head[: len(head) - (excess + 3) // 4]
    ends = [match.start() for match in _CLAUSE_END.finditer(head)]
    if ends and ends[-1] >= MIN_CLAUSE_SHARE * len(head):
        head = head[: ends[-1]]
    elif not text[len(head)].isspace() and (space := head.rfind(" ")) >= MIN_WORD_SHARE * len(head):
        head = head[:space]
    return (head.rstrip(" ,;:-—–") or head) + ELLIPSIS


def passage_text(text: str, passage: Sequence[tuple[int, int]]) -> str:
    """Return parts of a text, with marks where it was cut; the whole text if no part is given."""
    if not passage:
        return text
    parts = [text[start:end] for start, end in passage]
    is_cut_before, is_cut_after = bool(text[: passage[0][0]].strip()), bool(text[passage[-1][1] :].strip())
    return f"{ELLIPSIS} " * is_cut_before + f" {ELLIPSIS} ".join(parts) + f" {ELLIPSIS}" * is_cut_after
