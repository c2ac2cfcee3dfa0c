"""Combines the captures of a query (see `parse`) into definitions.

The captures of all patterns are sorted by their byte ranges, the wider first, and read once with a stack of the definitions
that are open. A part such as a name belongs to the innermost open definition. `SourceText` finds the comments that belong to
definitions. Rows count from 0.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from inspect import cleandoc
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from foveate.code.languages import Language
from foveate.code.model import Definition

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_DOC_CHARS = 2_000
MAX_COMMENT_LINES = 300
"""Maximum length of a comment above a definition. It also limits the work if many definitions share a line."""
MAX_SIGNATURE_CHARS = 200
MAX_NAME_CHARS = 200
MAX_DEPTH = 30
"""Maximum nesting of definitions. Code written by people has less than ten levels."""

TYPES = frozenset(
    {"class", "struct", "interface", "trait", "enum", "union", "record", "object", "protocol", "type", "scope"}
)
"""A function inside one of these is a method."""
_OUTLINES = frozenset({"section", "element", "rule", "key"})
_PARTS = frozenset({"name", "body", "doc", "owner"})
_SEPARATE_CAPTURES = frozenset({"ref", "import", "member", "required", "above", "element"})
_CAPTURE_PRIORITY = {
    "outer": 0, "decorated": 0, "body": 1, "def.class": 3, "def.constant": 3, "def.CONSTANT": 3, "name": 4, "owner": 4,
    "doc": 4,
}  # fmt: skip
"""Order of captures of the same range; other definitions have 2. A body comes before the only definition in it, since it
belongs to the enclosing one. A constant that is also a function counts as a function."""

_CONSTANT = re.compile(r"_*[A-Z]")
_TAG = re.compile(r"<[^<>]*>")
_HTML_NAME = re.compile(rb"<(?:h[1-6]\b|[^<>]*?\sid\s*=\s*[\"']?([^\"'<>\s]+))", re.IGNORECASE)
_PLAIN_NAME = re.compile(r"\s*(?:::|\\)\s*")
_STRING = re.compile(r"[A-Za-z]{0,2}(\"\"\"|'''|\"|')(.*)\1\Z", re.DOTALL)
_ANNOTATIONS = re.compile(r"(?:@[\w.:]+(?:\((?:[^()]|\([^()]*\))*\))?\s+|\[[^\]]*\]\s*|#\[[^\]]*\]\s*)+(?=\w)")


@dataclass(slots=True)
class _PartialDefinition:
    """A definition whose parts are being collected."""

    kind: str
    start: int
    end: int
    start_with_decorators: int
    """Start including decorators."""
    signature_start: int
    """Start of its signature."""
    parent: _PartialDefinition | None
    name: str = ""
    qualified_name: str = ""
    body: int = 0
    doc: str = ""
    owner: str = ""
    index: int | None = None


@dataclass(frozen=True, slots=True)
class _EnclosingRange:
    """A range that begins before a definition and belongs to it."""

    start: int
    end: int
    head: int | None
    """Start of the signature, or None if the definition decides."""


def find_definitions(source: SourceText, captures: Mapping[str, Sequence[Node]]) -> tuple[tuple[Definition, ...], str]:
    """Return the definitions in order, and the docstring of the file."""
    found: list[Definition] = []
    seen, doc = _collect(source, captures)
    for one in seen:
        parent = one.parent
        while parent is not None and not parent.qualified_name:
            parent = parent.parent
        name = one.name
        if not name.isidentifier() and one.kind not in _OUTLINES:
            name = _PLAIN_NAME.sub(".", name).strip(".")
        if not name or (one.kind == "CONSTANT" and not _CONSTANT.match(name)):
            continue
        around = one.owner or (parent.qualified_name if parent else "")
        one.qualified_name = f"{around}.{name}" if around else name
        if one.kind == "scope":
            one.index = parent.index if parent else None
            continue
        one.index = len(found)
        found.append(_definition(source, one, name, parent))
    if any(a.start_line > b.start_line for a, b in pairwise(found)):
        found = _sort_by_line(found)
    return tuple(found), doc


def _definition(
    source: SourceText, definition: _PartialDefinition, name: str, parent: _PartialDefinition | None
) -> Definition:
    kind = definition.kind.lower()
    if kind == "function" and (definition.owner or "." in name or (parent and parent.kind in TYPES)):
        kind = "method"
    row = source.row(definition.start_with_decorators)
    first = source.comment_start_above(row)
    doc = definition.doc or source.comment(first, row)
    end = source.row(source.last_nonblank(definition.start, definition.end))
    place = parent.index if parent else None
    short = name if kind in _OUTLINES else name.rpartition(".")[2]
    return Definition(short, definition.qualified_name, kind, first + 1, end + 1, _signature(source, definition), doc, place)


def _sort_by_line(definitions: list[Definition]) -> list[Definition]:
    """Sort by first line, which a comment above may have moved before a neighbor that shares the line.

    In damaged code a comment can move a definition before the one that contains it; then it has no parent.
    """
    order = sorted(range(len(definitions)), key=lambda n: (definitions[n].start_line, n))
    place = {old: new for new, old in enumerate(order)}
    parents = [None if (parent := definitions[n].parent) is None else place[parent] for n in order]
    return [
        replace(definitions[n], parent=parent if parent is not None and parent < new else None)
        for new, (n, parent) in enumerate(zip(order, parents, strict=True))
    ]


def _collect(source: SourceText, captures: Mapping[str, Sequence[Node]]) -> tuple[list[_PartialDefinition], str]:
    """Assign each capture to the innermost definition around it. Ranges are sorted, the wider first."""
    seen: list[_PartialDefinition] = []
    stack: list[_PartialDefinition] = []
    doc = ""
    outer: _EnclosingRange | None = None
    for start, end, tag in _events(source, captures):
        while stack and stack[-1].end <= start:
            stack.pop()
        if tag in _PARTS:
            if stack:
                _apply_capture(source, stack[-1], tag, start, end)
            elif tag == "doc" and not doc:
                doc = _strip_quotes(source.slice(start, end))
        elif tag in ("outer", "decorated"):
            head = start if tag == "outer" else None
            if outer and outer.end >= end:
                outer = replace(outer, head=head if outer.head is None else outer.head)
            else:
                outer = _EnclosingRange(start, end, head)
        else:
            while stack and stack[-1].end < end:  # a heading may end inside an element that begins in it
                stack.pop()
            if len(stack) >= MAX_DEPTH or (stack and (stack[-1].start, stack[-1].end) == (start, end)):
                continue
            first, head = _start(source, outer, start, end)
            outer = None
            one = _PartialDefinition(tag.removeprefix("def."), start, end, first, head, stack[-1] if stack else None)
            seen.append(one)
            stack.append(one)
    return seen, doc


def _start(source: SourceText, outer: _EnclosingRange | None, start: int, end: int) -> tuple[int, int]:
    """Return the start of a definition including decorators, and the start of its signature."""
    if outer is None or outer.end < end:
        return start, start
    if source.data[outer.start : start].rstrip()[-1:] == b"(":  # one of a group of definitions
        return start, start
    return outer.start, start if outer.head is None else outer.head


def _events(source: SourceText, captures: Mapping[str, Sequence[Node]]) -> Iterator[tuple[int, int, str]]:
    """Return all captures by position. If two begin together, the wider one comes first."""
    found = [
        (node.start_byte, -node.end_byte, _CAPTURE_PRIORITY.get(tag, 2), tag)
        for tag, nodes in captures.items()
        if tag not in _SEPARATE_CAPTURES
        for node in nodes
    ]
    found += _elements(source.data, captures.get("element", ()))
    found.sort()
    return ((start, -end, tag) for start, end, _, tag in found)


def _elements(data: bytes, nodes: Sequence[Node]) -> Iterator[tuple[int, int, int, str]]:
    """Yield definitions and names from the first tags of HTML elements."""
    for node in nodes:
        start, end = node.start_byte, node.end_byte
        match = _HTML_NAME.match(data, start, min(end, start + 1_000))
        if match is None:
            continue
        identified = match[1] is not None
        yield start, -end, 2, "def.element" if identified else "def.section"
        yield (*((match.start(1), -match.end(1)) if identified else (start, -end)), 4, "name")


def _apply_capture(source: SourceText, definition: _PartialDefinition, tag: str, start: int, end: int) -> None:
    """Set a part of a definition. The first one counts, because a second pattern may match the same definition."""
    if tag == "name" and not definition.name:
        definition.name = _clean_name(source.slice(start, min(end, start + 10 * MAX_NAME_CHARS)))
    elif tag == "owner" and not definition.owner:
        owner = source.slice(start, end).removesuffix(".prototype")
        definition.owner = "" if "." in owner else _clean_name(owner)  # not `module.exports`
    elif tag == "body" and not definition.body:
        definition.body = start
    elif tag == "doc" and not definition.doc:
        definition.doc = _strip_quotes(source.slice(start, end))


def _clean_name(raw: str) -> str:
    if raw.isidentifier():
        return raw
    return " ".join(_TAG.sub(" ", raw).split()).strip("\"'`")[:MAX_NAME_CHARS].strip()


def _strip_quotes(raw: str) -> str:
    match = _STRING.match(raw[: 4 * MAX_DOC_CHARS])
    doc = match[2] if match else raw.strip("\"' \n")
    return (cleandoc(doc) if "\n" in doc else doc.strip())[:MAX_DOC_CHARS]


# --- signatures ----------------------------------------------------------------------------------------------------


def _signature(source: SourceText, definition: _PartialDefinition) -> str:
    start = definition.signature_start
    head = source.slice(start, min(definition.body or definition.end, start + 10 * MAX_SIGNATURE_CHARS))
    if definition.kind in _OUTLINES:
        return shorten_signature(head if definition.body else head.partition("\n")[0])
    if any(mark in head for mark in source.language.line_comments):
        head = _trailing_comment(source.language.line_comments).sub("", head)
    line = shorten_signature(_ANNOTATIONS.sub("", head, count=1) if head[:1] in "@[#" else head)
    line = line.rstrip(" {:=") if definition.body else line.rstrip(" ;{,")
    return line if definition.name in line else f"{line} … {definition.name}"  # typedef struct {...} name


@cache
def _trailing_comment(marks: tuple[str, ...]) -> re.Pattern[str]:
    """Return the pattern of comments at the ends of lines."""
    return re.compile(rf"(?:^|\s)(?:{'|'.join(map(re.escape, marks))})\s.*$", re.MULTILINE)


_OPENING_BRACKET_SPACE, _CLOSING_BRACKET_SPACE = re.compile(r"([(\[{]) "), re.compile(r",? ([)\]])")
"""Spaces inside the brackets of a signature that was written on several lines."""


def shorten_signature(head: str) -> str:
    """Return a signature on one line, cut after a comma or a space if it is too long."""
    head = head.strip()
    line = " ".join(head.split())
    if "\n" in head:
        line = _CLOSING_BRACKET_SPACE.sub(r"\1", _OPENING_BRACKET_SPACE.sub(r"\1", line))
    if len(line) <= MAX_SIGNATURE_CHARS:
        return line
    room = line[: MAX_SIGNATURE_CHARS - 1]
    cut = max(room.rfind(", ") + 1, room.rfind(" "))
    return room[: cut if cut > MAX_SIGNATURE_CHARS // 2 else None].rstrip() + "…"


# --- text and comments ---------------------------------------------------------------------------------------------

_DOC_TAG = re.compile(r"</?(?:summary|remarks|returns|para)>")
_COMMENT_LINE = re.compile(r"\s*(?:/\*+!?|\*+/|\*(?!\*)|//+!?|#+|--+|<!--+|=begin\b|=end\b)?(.*?)\s*(?:\*+/|--+>)?\s*\Z")
_LICENSE = re.compile(
    r"\b(?:copyright|licen[sc]ed?|SPDX|all rights reserved|coding[:=]|eslint|jshint|frozen_string_literal)\b", re.IGNORECASE
)


class SourceText:
    """The text of a file in a language, by byte offsets and by rows.

    `attached` are nodes that stand right above a definition and belong to it.
    """

    def __init__(self, text: str, data: bytes, language: Language, attached: Sequence[Node]) -> None:
        self.data = data
        self.language = language
        self.lines = data.split(b"\n")
        self._text = text if text.isascii() else ""  # in ASCII, byte and character offsets are the same
        self._starts = list(accumulate(map((1).__add__, map(len, self.lines)), initial=0))
        self._marks = tuple(mark.encode() for mark in language.line_comments)
        self._block = language.block_comment.encode().split()
        self._attached = {self.row(node.end_byte - 1): node.start_point[0] for node in attached}

    def slice(self, start: int, end: int) -> str:
        return self._text[start:end] if self._text else self.data[start:end].decode("utf-8", "replace")

    def row(self, offset: int) -> int:
        return bisect_right(self._starts, offset) - 1

    def last_nonblank(self, start: int, end: int) -> int:
        """Return the last byte that is not blank, because some nodes include the following line break."""
        end -= 1
        while end > start and self.data[end] in b" \t\r\n":
            end -= 1
        return end

    def comment_start_above(self, row: int) -> int:
        """Return the first of the comment lines and attributes directly above a row."""
        first = row
        while first > 0 and row - first < MAX_COMMENT_LINES:
            if first - 1 in self._attached:
                first = self._attached[first - 1]
            elif (before := self._comment_start(first - 1)) is not None:
                first = before
            else:
                break
        return first

    def _comment_start(self, row: int) -> int | None:
        """Return the first row of the comment that ends with this row, or None."""
        line = self.lines[row].strip()
        if self._marks and line.startswith(self._marks):
            return row if row or not line.startswith(b"#!") else None
        if self._block and line.endswith(self._block[1]):
            for start in range(row, max(-1, row - MAX_COMMENT_LINES), -1):
                if self._block[0] in self.lines[start]:
                    return start if self.lines[start].lstrip().startswith(self._block[0]) else None
        return None

    def _comment_end(self, row: int) -> int:
        """Return the row after the comment that begins with this row, or the same row."""
        line = self.lines[row].strip()
        if self._block and line.startswith(self._block[0]):
            for end in range(row, min(len(self.lines), row + MAX_COMMENT_LINES)):
                if self._block[1] in self.lines[end]:
                    return end + 1
            return row
        while self._marks and row < len(self.lines) and self.lines[row].lstrip().startswith(self._marks):
            row += 1
        return row

    def comment(self, first: int, after: int) -> str:
        """Return the text of comment lines without their marks."""
        found = []
        for line in self.lines[first : min(after, first + MAX_COMMENT_LINES)]:
            text = line.decode("utf-8", "replace")
            match = _COMMENT_LINE.match(text[:1_000]) if not text.lstrip().startswith(("#[", "@")) else None
            if match and any(map(str.isalnum, match[1])):
                found.append(_DOC_TAG.sub("", match[1]).removeprefix(" "))
            elif found and found[-1]:
                found.append("")
        return "\n".join(found).strip()[:MAX_DOC_CHARS]

    def file_comment(self, first_definition: int) -> str:
        """Return the comment at the top of the file, unless it is a licence or belongs to the definition on this line."""
        row = 0
        while row < min(len(self.lines), MAX_COMMENT_LINES):
            line = self.lines[row].strip()
            if not line or line.startswith((b"#!", b"<?", b"<!DOCTYPE", b"<!doctype", b"---", b"'use ", b'"use ')):
                row += 1
                continue
            after = self._comment_end(row)
            if after == row or row + 1 == first_definition:
                return ""
            if not _LICENSE.search(text := self.comment(row, after)):
                return text
            row = after
        return ""
