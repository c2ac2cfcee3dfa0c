"""The text of a file by byte offsets and by rows, with the comments that belong to its definitions. Rows count from 0."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from foveate.code.languages import Language

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_DOC_CHARS = 2_000
MAX_COMMENT_LINES = 300
"""Maximum length of a comment above a definition. It also limits the work if many definitions share a line."""

_DOC_TAG = re.compile(r"</?(?:summary|remarks|returns|para)>")
_COMMENT_LINE = re.compile(r"\s*(?:/\*+!?|\*+/|\*(?!\*)|//+!?|#+|--+|<!--+|=begin\b|=end\b)?(.*?)\s*(?:\*+/|--+>)?\s*\Z")
_LICENSE = re.compile(
    r"\b(?:copyright|licen[sc]ed?|SPDX|all rights reserved|coding[:=]|eslint|jshint|frozen_string_literal)\b", re.IGNORECASE
)


class SourceText:
    """The text of a file in a language. `attached` are nodes that stand right above a definition and belong to it."""

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
