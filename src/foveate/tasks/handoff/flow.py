"""Reads `[...]` and `{...}` as a person would: broken JSON, and the flow collections of broken YAML.

Comes in: text that begins with a bracket. Goes out: the value, where it ended, and how many places had to be guessed.
One pass, each character is looked at once or twice: brackets that nobody closed are closed at the end, commas may be
missing or too many, quotes may be single or typographic, comments are passed over.
"""

from __future__ import annotations

import re
from typing import Any

from foveate.tasks.handoff.notes import MAX_DEPTH, Notes, merge, too_deep
from foveate.tasks.handoff.strict import refuse_merge_key, scalar
from foveate.tasks.handoff.text import visible

MAX_MENDED = 8_192
"""json-repair takes quadratic time on hostile text: two seconds for this many characters, half an hour for 256 KB."""

_QUOTES = {'"': '"', "'": "'", "“": '”"', "‘": "’'", "`": "`"}
_CLOSERS = {opener: re.compile(rf"\\.|[{closers}]", re.DOTALL) for opener, closers in _QUOTES.items()}
_SPACE = re.compile(r"[\s,]*(?:(?://[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/)?|\#(?=[ \t\n])[^\n]*)[\s,]*)*")
_BLANK = re.compile(r"\s*")
_NO_VALUE = ("", ",", "}", "]")
_PLAIN_VALUE = re.compile(r"[^,\]}\n]*")
_PLAIN_KEY = re.compile(r"[^,\]}\n:]*")
_AFTER = re.compile(r"\s*(?:[,\]}]|$|//|/\*|\#|\n\s*[\"'“{\[])")
_AFTER_KEY = re.compile(r"\s*:")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\", '"': '"', "'": "'", "0": ""}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\n\s*)|(.))")
_PAIR = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_PYTHON = {"None": None, "True": True, "False": False, "undefined": None}


def unescaped(text: str) -> str:
    """A double-quoted text with its escapes read; a backslash that escapes nothing stays, as in `C:\\src`."""

    def read(match: re.Match[str]) -> str:
        code = match[1] or match[2]
        if code:
            return chr(int(code, 16))
        return "" if match[3] is not None else _ESCAPES.get(match[4], match[0])

    if "\\" not in text:
        return text
    joined = _PAIR.sub(lambda m: chr(0x10000 + ((int(m[1], 16) - 0xD800) << 10) + int(m[2], 16) - 0xDC00), text)
    return _ESCAPE.sub(read, joined)


class Flow:
    """One reading. `guesses` counts what had no clear reading, `repairs` names what had."""

    def __init__(self, text: str, notes: Notes) -> None:
        self.text, self.notes = text, notes
        self.at = 0
        self.guesses = 0
        self.repairs: dict[str, None] = {}

    def value(self, depth: int = 0) -> Any:
        """The value that begins here."""
        if depth > MAX_DEPTH:
            raise too_deep()
        self._space()
        char = self.text[self.at : self.at + 1]
        if char == "{":
            return self._object(depth)
        if char == "[":
            return self._array(depth)
        if char in _QUOTES:
            return self._quoted(_AFTER)
        return self._plain()

    def _space(self) -> None:
        match = _SPACE.match(self.text, self.at)
        assert match
        if "/" in match[0]:
            self.repairs.setdefault("comments were passed over")
        self.at = match.end()

    def _array(self, depth: int) -> list[Any]:
        self.at += 1
        found: list[Any] = []
        while not self._ends("]"):
            before = self.at
            found.append(self.value(depth + 1))
            self._advance(before)
        return found

    def _object(self, depth: int) -> dict[str, Any]:
        self.at += 1
        found: dict[str, Any] = {}
        while not self._ends("}"):
            before = self.at
            key = self._key()
            self._space()
            value = None
            if self.text.startswith(":", self.at):
                self.at = _BLANK.match(self.text, self.at + 1).end()  # type: ignore[union-attr]  # matches nothing, too
                value = None if self.text[self.at : self.at + 1] in _NO_VALUE else self.value(depth + 1)
            else:
                self.guesses += 1
            if key or value is not None:
                merge(found, key, value, "", self.notes)
            self._advance(before)
        return found

    def _advance(self, before: int) -> None:
        if self.at == before:  # a character that nothing can begin with
            self.at += 1
            self.guesses += 1

    def _ends(self, close: str) -> bool:
        start = self.at
        self._space()
        char = self.text[self.at : self.at + 1]
        if char and char in "]}":
            if "," in self.text[start : self.at]:
                self.repairs.setdefault("commas before a closing bracket were passed over")
            if char != close:
                self.guesses += 1
                return True  # the bracket is left for the one that it closes
            self.at += 1
            return True
        if not char:
            self.repairs.setdefault("the end is missing; open brackets were closed")
        return not char

    def _key(self) -> str:
        if self.text[self.at : self.at + 1] in _QUOTES:
            return str(self._quoted(_AFTER_KEY))
        match = _PLAIN_KEY.match(self.text, self.at)
        assert match
        self.at = match.end()
        self.repairs.setdefault("keys without quotes were read")
        key = match[0].strip()
        if key == "<<":
            raise refuse_merge_key()
        return visible(key, self.notes)

    def _quoted(self, after: re.Pattern[str]) -> str:
        """A quoted text: its end is the first quote that something may follow, so that quotes inside survive."""
        text, start = self.text, self.at + 1
        opener = text[self.at]
        for match in _CLOSERS[opener].finditer(text, start):
            if match[0][0] == "\\":
                continue
            if after.match(text, match.end()):
                return self._close(start, match.start(), match.end(), opener)
            self.guesses += opener == '"'
        self.repairs.setdefault("the end is missing; an open quote was closed")
        return self._close(start, len(text), len(text), opener)

    def _close(self, start: int, end: int, at: int, opener: str) -> str:
        if opener != '"':
            self.repairs.setdefault("other quotes were read as double quotes")
        self.at = at
        return visible(unescaped(self.text[start:end]), self.notes)

    def _plain(self) -> Any:
        match = _PLAIN_VALUE.match(self.text, self.at)
        assert match
        self.at = match.end()
        text = re.split(r"\s(?://|#\s)", match[0], maxsplit=1)[0].strip()
        value = _PYTHON.get(text, scalar(text))
        if isinstance(value, str):
            self.repairs.setdefault("texts without quotes were read")
        return value


def mended_json(text: str, notes: Notes) -> tuple[Any, list[str]]:
    """Broken JSON as a value, and what was done to it."""
    said = Notes()
    flow = Flow(text, said)
    value = flow.value()
    done = list(flow.repairs)
    if flow.guesses and len(text) <= MAX_MENDED and (better := _by_json_repair(text)) is not None:
        return better, [*done, "unclear places were mended by json-repair"]
    for sentence in said.sentences():
        notes.say(sentence)
    return value, done or ["brackets and commas were mended"]


def _by_json_repair(text: str) -> Any:
    import json_repair

    try:
        value = json_repair.loads(text, skip_json_loads=True)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and value else None
