"""YAML and JSON as their standards have them, and nothing looser.

Comes in: one block of text. Goes out: plain values, or `Broken`, which says where and why it does not parse. Values are
built from the parser's events, not by its constructors: that is what keeps `NO`, `1.10` and dates as written, executes
no tag, expands no alias, joins duplicate keys and counts the levels.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from foveate.tasks.handoff.notes import MAX_DEPTH, Hostile, Notes, excerpt, merge, number, too_deep
from foveate.tasks.handoff.text import visible

MAX_EVENTS = 50_000
"""Twice what a dense handoff of the greatest size has; the parser takes a second for so many."""

_WORDS: dict[str, Any] = {"": None, "~": None, "null": None, "true": True, "false": False}
_CORE = "tag:yaml.org,2002:"
_CORE_TAGS = frozenset({None, "!", *(_CORE + name for name in ("str", "int", "float", "bool", "null", "seq", "map"))})
_SWALLOWED = re.compile(r"[ \t]+#[^\s#]")
_SWALLOWED_WHOLE = re.compile(r"(?::|\s*-)[ \t]+#[^\s#]")
_BULLETS = re.compile(r"(\d{1,3}[.)]|[*•+–])\s[^\n]*\n\s*(\d{1,3}[.)]|[*•+–])\s")
_PARSER_SLIPS = (ValueError, LookupError, AttributeError, TypeError, AssertionError, ArithmeticError, RecursionError)
"""What the YAML parser lets through on strange input, such as an escape beyond Unicode."""


class Broken(Exception):
    """It does not parse: `line` counts from 0 within the text, `why` is the parser's sentence."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(why)
        self.line, self.why = line, why


@dataclass(slots=True)
class Anchors:
    """The anchors and aliases of a handoff; one that is both defined and used is refused."""

    defined: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)

    def check(self) -> None:
        if both := sorted(self.defined & self.used):
            raise Hostile(
                f"The handoff uses the YAML anchor {both[0]!r} (&{both[0]} and *{both[0]}), which is not allowed. "
                "Write the value out in each place."
            )


def refuse_merge_key() -> Hostile:
    """The refusal of `<<`."""
    return Hostile("The handoff uses a YAML merge key (<<), which is not allowed. Write the keys out.")


def scalar(text: str) -> Any:
    """A plain scalar: null, true, false, a number that loses nothing, or the text."""
    word = text.lower() if text in (text.lower(), text.upper(), text.capitalize()) else text
    return _WORDS[word] if word in _WORDS else number(text)


# --- JSON ----------------------------------------------------------------------------------------------------------


def load_json(text: str, notes: Notes) -> Any:
    """A JSON value; duplicate keys are joined, and numbers that would change stay as written."""

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key, value in found:
            merge(out, visible(key, notes), value, "", notes)
        return out

    try:
        return json.loads(text, object_pairs_hook=pairs, parse_int=number, parse_float=number, parse_constant=str)
    except json.JSONDecodeError as error:
        raise Broken(error.lineno - 1, error.msg) from None
    except RecursionError:
        raise too_deep() from None


# --- YAML ----------------------------------------------------------------------------------------------------------


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
        self.anchored: Any = None

    def take(self, event: Any) -> None:
        """One event of the parser."""
        kind = type(event).__name__
        if kind == "AliasEvent":
            self.anchors.used.add(str(event.anchor))
            self.anchors.check()
            raise Broken(event.start_mark.line, f"'*{event.anchor}' is an alias of nothing")
        if getattr(event, "anchor", None):
            self.anchors.defined.add(str(event.anchor))
            self.anchored = self.anchored or event.start_mark
        if kind == "ScalarEvent":
            self._scalar(event)
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            self._no_tag(event)
            self._open({} if kind == "MappingStartEvent" else [], event)
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            self._close(event)
        if event.end_mark is not None:
            self.last_end = event.end_mark.index

    def _no_tag(self, event: Any) -> None:
        tag = event.ctag
        if (str(tag) if tag else None) not in _CORE_TAGS:
            raise Broken(event.start_mark.line, "a tag is text here")

    def _open(self, value: dict[str, Any] | list[Any], event: Any) -> None:
        if len(self.stack) >= MAX_DEPTH:
            raise too_deep()
        if self.stack and self.stack[-1].key is None and isinstance(self.stack[-1].value, dict):
            raise Broken(event.start_mark.line, "a key must be a plain text")
        self.stack.append(_Frame(value))

    def _close(self, event: Any) -> None:
        self._put(self.stack.pop().value, event.end_mark.line)

    def _scalar(self, event: Any) -> None:
        self._no_tag(event)
        plain = event.style is None
        if plain:
            at = event.end_mark.index if event.value else self.last_end
            if event.start_mark.line < event.end_mark.line and _BULLETS.match(self.text[event.start_mark.index : at]):
                raise Broken(event.start_mark.line, "the lines are one text here, but read as a list")
            if (_SWALLOWED if event.value else _SWALLOWED_WHOLE).match(self.text, at):
                raise Broken(event.start_mark.line, "'#' begins a comment here, but reads as text")
        frame = self.stack[-1] if self.stack else None
        text = visible(event.value, self.notes)
        if frame and isinstance(frame.value, dict) and frame.key is None:
            if plain and text == "<<":
                raise refuse_merge_key()
            frame.key = text
            return
        is_text = not plain or (event.ctag and str(event.ctag) == f"{_CORE}str")
        self._put(text if is_text else scalar(text), event.start_mark.line)

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


def load_yaml(text: str, anchors: Anchors, notes: Notes, first_line: int = 0) -> list[Any]:
    """The documents of a YAML text."""
    builder = _Builder(text, anchors, notes, first_line)
    for count, event in enumerate(_events(text)):
        if count > MAX_EVENTS:
            raise Broken(event.start_mark.line, "it has more parts than the parser is given time for")
        builder.take(event)
    if builder.anchored:  # an anchor that nothing refers to was meant as text: `&str in place of String`
        raise Broken(builder.anchored.line, "'&' marks an anchor here, but reads as text")
    return builder.documents


def _events(text: str) -> Iterator[Any]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        yield from YAML(typ="safe", pure=True).parse(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise Broken(mark.line if mark else 0, str(error.problem or error.context or "it is not YAML")) from None
    except YAMLError as error:
        raise Broken(0, excerpt(str(error))) from None
    except _PARSER_SLIPS as error:
        raise Broken(0, excerpt(str(error))) from None
