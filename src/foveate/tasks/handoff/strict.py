"""Strict YAML and JSON readers. Values are built from the YAML parser's events, not by its constructors.

That keeps `NO`, `1.10` and dates as written, executes no tag, expands no alias, joins repeated keys and limits nesting.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from foveate.tasks.handoff.notes import (
    MAX_DEPTH,
    Notes,
    UnsafeInput,
    excerpt,
    merge,
    nesting_error,
    parse_number,
    strip_hidden,
)

MAX_EVENTS = 50_000
"""Twice the events of a dense handoff of the greatest size; the parser takes about a second for them."""

_LITERALS: dict[str, Any] = {"": None, "~": None, "null": None, "true": True, "false": False}
_CORE = "tag:yaml.org,2002:"
_CORE_TAGS = frozenset({None, "!", *(_CORE + name for name in ("str", "int", "float", "bool", "null", "seq", "map"))})
_HIDDEN_COMMENT = re.compile(r"[ \t]+#[^\s#]")
_HIDDEN_VALUE = re.compile(r"(?::|\s*-)[ \t]+#[^\s#]")
_BULLETS = re.compile(r"(\d{1,3}[.)]|[*•+–])\s[^\n]*\n\s*(\d{1,3}[.)]|[*•+–])\s")
# ruamel.yaml raises these on strange input, such as an escape beyond Unicode.
_PARSER_ERRORS = (ValueError, LookupError, AttributeError, TypeError, AssertionError, ArithmeticError, RecursionError)


class SyntaxProblem(Exception):
    """A text that does not parse: `line` counts from 0 within the text, `reason` is the parser's sentence."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line, self.reason = line, reason


@dataclass(slots=True)
class Anchors:
    """The YAML anchors and aliases of a handoff."""

    defined: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)

    def check(self) -> None:
        """Raise UnsafeInput if an anchor is both defined and used."""
        if both := sorted(self.defined & self.used):
            raise UnsafeInput(
                f"The handoff uses the YAML anchor {both[0]!r} (&{both[0]} and *{both[0]}), which is not allowed. "
                "Write the value out in each place."
            )


def parse_scalar(text: str) -> Any:
    """Return null, true, false, a number that loses nothing, or the text."""
    word = text.lower() if text in (text.lower(), text.upper(), text.capitalize()) else text
    return _LITERALS[word] if word in _LITERALS else parse_number(text)


def load_json(text: str, notes: Notes) -> Any:
    """Return a JSON value; raise SyntaxProblem if the text is no JSON.

    Repeated keys are joined, and numbers that Python would change stay texts.
    """

    def from_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key, value in pairs:
            merge(out, strip_hidden(key, notes), value, "", notes)
        return out

    try:
        return json.loads(
            text, object_pairs_hook=from_pairs, parse_int=parse_number, parse_float=parse_number, parse_constant=str
        )
    except json.JSONDecodeError as error:
        raise SyntaxProblem(error.lineno - 1, error.msg) from None
    except RecursionError:
        raise nesting_error() from None


def load_yaml(text: str, anchors: Anchors, notes: Notes, first_line: int = 0) -> list[Any]:
    """Return the documents of a YAML text; raise SyntaxProblem if it does not parse or hides text in a comment."""
    builder = _Builder(text, anchors, notes, first_line)
    for count, event in enumerate(_events(text)):
        if count > MAX_EVENTS:
            raise SyntaxProblem(event.start_mark.line, f"the text has more than {MAX_EVENTS:,} parts")
        builder.handle(event)
    if builder.anchor_line is not None:  # an anchor without an alias was meant as text: `&str instead of String`
        raise SyntaxProblem(builder.anchor_line, "'&' marks an anchor here, but reads as text")
    return builder.documents


def _events(text: str) -> Iterator[Any]:
    from ruamel.yaml import YAML  # slow to import; a mapping never needs it
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        yield from YAML(typ="safe", pure=True).parse(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise SyntaxProblem(mark.line if mark else 0, str(error.problem or error.context or "it is not YAML")) from None
    except (YAMLError, *_PARSER_ERRORS) as error:
        raise SyntaxProblem(0, excerpt(str(error))) from None


@dataclass(slots=True)
class _Frame:
    """A mapping or a list that is being filled; `key` waits for its value."""

    value: dict[str, Any] | list[Any]
    key: str | None = None


class _Builder:
    def __init__(self, text: str, anchors: Anchors, notes: Notes, first_line: int) -> None:
        self.text, self.anchors, self.notes, self.first_line = text, anchors, notes, first_line
        self.stack: list[_Frame] = []
        self.documents: list[Any] = []
        self.last_end = 0
        self.anchor_line: int | None = None

    def handle(self, event: Any) -> None:
        """Add one event of the parser to the values."""
        kind = type(event).__name__
        if kind == "AliasEvent":
            self.anchors.used.add(str(event.anchor))
            self.anchors.check()
            raise SyntaxProblem(event.start_mark.line, f"the alias '*{event.anchor}' has no anchor")
        if getattr(event, "anchor", None):
            self.anchors.defined.add(str(event.anchor))
            if self.anchor_line is None:
                self.anchor_line = event.start_mark.line
        if kind == "ScalarEvent":
            self._scalar(event)
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            self._check_tag(event)
            self._open({} if kind == "MappingStartEvent" else [], event.start_mark.line)
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            self._put(self.stack.pop().value, event.end_mark.line)
        if event.end_mark is not None:
            self.last_end = event.end_mark.index

    def _check_tag(self, event: Any) -> None:
        if (str(event.ctag) if event.ctag else None) not in _CORE_TAGS:
            raise SyntaxProblem(event.start_mark.line, "a tag is text here")

    def _open(self, value: dict[str, Any] | list[Any], line: int) -> None:
        if len(self.stack) >= MAX_DEPTH:
            raise nesting_error()
        if self.stack and self.stack[-1].key is None and isinstance(self.stack[-1].value, dict):
            raise SyntaxProblem(line, "a key must be a plain text")
        self.stack.append(_Frame(value))

    def _scalar(self, event: Any) -> None:
        self._check_tag(event)
        line, is_plain = event.start_mark.line, event.style is None
        if is_plain:
            self._check_plain(event)
        frame = self.stack[-1] if self.stack else None
        text = strip_hidden(event.value, self.notes)
        if frame and isinstance(frame.value, dict) and frame.key is None:
            if is_plain and text == "<<":
                raise UnsafeInput("The handoff uses a YAML merge key (<<), which is not allowed. Write the keys out.")
            frame.key = text
            return
        is_text = not is_plain or (event.ctag and str(event.ctag) == f"{_CORE}str")
        self._put(text if is_text else parse_scalar(text), line)

    def _check_plain(self, event: Any) -> None:
        """Raise SyntaxProblem where YAML reads a plain text differently from what its author meant."""
        start, end = event.start_mark, event.end_mark
        at = end.index if event.value else self.last_end
        if start.line < end.line and _BULLETS.match(self.text[start.index : at]):
            raise SyntaxProblem(start.line, "the lines are one text here, but read as a list")
        if (_HIDDEN_COMMENT if event.value else _HIDDEN_VALUE).match(self.text, at):
            raise SyntaxProblem(start.line, "'#' begins a comment here, but reads as text")

    def _put(self, value: Any, line: int) -> None:
        if not self.stack:
            self.documents.append(value)
            return
        frame = self.stack[-1]
        if isinstance(frame.value, list):
            frame.value.append(value)
        else:
            merge(frame.value, frame.key or "", value, f"Line {self.first_line + line + 1}: ", self.notes)
            frame.key = None
