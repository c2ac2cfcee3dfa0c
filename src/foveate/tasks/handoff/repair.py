"""Reads broken YAML line by line, by indentation, as a person would.

Comes in: the text of one section that the parser refused. Goes out: its values, and a sentence for each repair. Healthy
sections never come here, and healthy lines read as YAML reads them; block scalars are taken as they stand.

A line is a key, a list item, or more of the text before it. Which one, and where it belongs, is decided by its
indentation where that fits, and else by the names that the schema knows: `severity:` belongs to a gotcha wherever it
stands. One pass, without looking ahead or back.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from foveate.tasks.handoff.notes import MAX_DEPTH, Notes, excerpt, too_deep
from foveate.tasks.handoff.scalars import TAB, Open, Slot, dedented, ends_quote, is_closed
from foveate.tasks.handoff.schema import FIELDS, WRAPPERS, Field, find, fold
from foveate.tasks.handoff.strict import Anchors, refuse_merge_key
from foveate.tasks.handoff.text import visible

_KEY = re.compile(
    r"""(?:"([^"\n]{1,64})"|'([^'\n]{1,64})'|“([^”\n]{1,64})”|([^\s:"'\[\]{}#&*!|>%@`,-][^:\n]{0,63}?))\s*:(?:\s+|$)"""
)
_TIGHT_KEY = re.compile(r"([A-Za-z_]{3,40}):(?=\S)")
_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_DASH = re.compile(r"-(?:\s+|$)")
_BULLET = re.compile(r"(?:[*•+–—]|\d{1,3}[.)])\s+")
_BLOCK = re.compile(r"([|>])([+-]?[1-9]?[+-]?)\s*(?:#.*)?$")
_COMMENT = re.compile(r"#(?:[\s#!]|$)")
_LATER_COMMENT = re.compile(r"\s+#(?:\s|$)")
_ANCHOR = re.compile(r"&([\w-]+)(?:\s|$)")
_ALIAS = re.compile(r"\*([\w-]+)$")
_SPECIAL = "@`*&!%|>"


@dataclass(slots=True)
class _Frame:
    """A mapping or list that lines are added to. `fields` are the names known in it, or in a list's items."""

    indent: int
    value: dict[str, Any] | list[Any]
    fields: tuple[Field, ...] = ()

    def known(self, key: str) -> bool:
        return isinstance(self.value, dict) and find(key, self.fields) is not None


class Reader:
    """Reads the lines of one section into `top`."""

    def __init__(self, anchors: Anchors, notes: Notes) -> None:
        self.anchors, self.notes = anchors, notes
        self.top: dict[str, Any] = {}
        self.frames: list[_Frame] = []
        self.pending: Slot | None = None
        self.open: Open | None = None
        self.line = 0

    def feed(self, number: int, line: str) -> None:
        """One line; `number` counts from 1 in the whole text."""
        self.line = number
        body = line.lstrip(" \t")
        lead = line[: len(line) - len(body)]
        indent = len(lead.replace("\t", TAB))
        text = body.rstrip()
        if self.open and self.open.kind == "block" and self._in_block(indent, text, line):
            return
        if not text:
            if self.open:
                self.open.parts.append("")
            return
        if "\t" in lead:
            self._say("a tab in the indentation was read as two spaces")
        if self.open and self.open.kind in ("quoted", "flow") and self._goes_on(indent, text):
            return
        if _COMMENT.match(text) or text in ("---", "..."):
            return
        self._structure(indent, text)

    def finish(self, *, is_end: bool) -> dict[str, Any]:
        """The values; `is_end` where the handoff ends here, so that a line may have been cut off."""
        if is_end and self.open and self.open.kind == "plain" and self.open.loose:
            self._drop_stump(self.open)
        self._close()
        self._settle()
        self.anchors.check()
        return self.top

    # --- what a line is --------------------------------------------------------------------------------------------

    def _structure(self, indent: int, text: str) -> None:
        """A line that is a list item, a key, or else more of the text before."""
        dash = _DASH.match(text)
        bullet = None if dash else _BULLET.match(text)
        if (dash or bullet) and (frame := self._list_for(indent, bool(dash))):
            mark = dash or bullet
            assert mark
            if bullet:
                self._say(f"the bullet {excerpt(bullet[0].strip())} was read as '-'")
            self._item(frame, indent, len(mark[0]), text[mark.end() :])
        elif (key := self._key(text)) and (home := self._mapping_for(indent, key[0])):
            self._entry(home, indent, *key)
        else:
            self._more(indent, text)

    def _key(self, text: str) -> tuple[str, str] | None:
        """A key and the text after its colon, where the line has one."""
        if match := _KEY.match(text):
            key = next(group for group in match.groups() if group is not None).strip()
            if key == "<<":
                raise refuse_merge_key()
            return visible(key, self.notes), text[match.end() :]
        if (match := _TIGHT_KEY.match(text)) and any(frame.known(match[1]) for frame in self.frames or [_TOP]):
            self._say(f"a space was put after '{match[1]}:'")
            return match[1], text[match.end() :]
        return None

    def _list_for(self, indent: int, dash: bool) -> _Frame | None:
        """The list that an item belongs to, with what is below it closed."""
        lists = [frame for frame in self.frames if isinstance(frame.value, list)]
        if self.pending and (indent >= self.pending.indent or not any(frame.indent == indent for frame in lists)):
            return self._begin([], indent)
        exact = [frame for frame in lists if frame.indent == indent]
        if not lists or (not dash and not exact):
            return None
        if not exact and self.open and self.open.kind == "plain" and indent > self.frames[-1].indent + 1:
            return None  # a dash in the middle of wrapped prose
        best = exact[-1] if exact else min(reversed(lists), key=lambda frame: abs(frame.indent - indent))
        if not exact:
            self._say("the list item is not in line with the others; it was put with them")
        self._close()
        self._settle()
        self._pop_to(best)
        return best

    def _mapping_for(self, indent: int, key: str) -> _Frame | None:
        """The mapping that a key belongs to, or None where the line is prose."""
        if self.pending and indent > self.pending.indent and not self._belongs_above(key):
            return self._begin({}, indent)
        mappings = [frame for frame in self.frames if isinstance(frame.value, dict)]
        if not mappings:
            return self._begin({}, indent) if not self.frames else None
        exact = next((frame for frame in reversed(mappings) if frame.indent == indent), None)
        if exact and (exact.known(key) or not self._knows(mappings, key)):
            home: _Frame | None = exact if self._is_name(key) or exact.known(key) or not self.open else None
        else:
            home = next((frame for frame in reversed(mappings) if frame.known(key)), None)
            if home is None and not (self.open and indent > mappings[-1].indent) and _NAME.fullmatch(key):
                home = max((f for f in mappings if f.indent <= indent), key=lambda f: f.indent, default=mappings[0])
            if home:
                self._say(f"{excerpt(key)} is indented oddly; it was read where it belongs")
        if home:
            self._close()
            self._settle()
            self._pop_to(home)
        return home

    def _belongs_above(self, key: str) -> bool:
        """The key is known above and not in the object that is expected here: its indentation is a slip."""
        assert self.pending
        below = self.pending.fields
        return bool(below) and find(key, below) is None and any(frame.known(key) for frame in self.frames)

    @staticmethod
    def _knows(mappings: list[_Frame], key: str) -> bool:
        return any(frame.known(key) for frame in mappings)

    @staticmethod
    def _is_name(key: str) -> bool:
        """Short enough for a name: prose before a colon has more words."""
        return len(key.split()) <= 3

    # --- putting it in its place -----------------------------------------------------------------------------------

    def _begin(self, value: dict[str, Any] | list[Any], indent: int) -> _Frame:
        """A new mapping or list: the value that a key or dash is waiting for, or the section itself."""
        self._close()
        if len(self.frames) >= MAX_DEPTH:
            raise too_deep()
        slot, self.pending = self.pending, None
        if slot is None:
            frame = _Frame(indent, self.top, FIELDS)
        else:
            slot.put(value, self.notes)
            kept = slot.into[-1] if isinstance(slot.into, list) else slot.into[slot.key]
            frame = _Frame(indent, kept if type(kept) is type(value) else value, slot.fields)
        self.frames.append(frame)
        return frame

    def _item(self, frame: _Frame, indent: int, width: int, rest: str) -> None:
        assert isinstance(frame.value, list)
        slot = Slot(frame.value, "", indent, self.line, frame.fields)
        column = indent + width
        if not rest:
            self.pending = slot
        elif _DASH.match(rest):
            self.pending = slot
            self._structure(column, rest)
        elif (key := self._key(rest)) and (find(key[0], frame.fields) if frame.fields else _NAME.fullmatch(key[0])):
            self.pending = slot
            self._entry(self._begin({}, column), column, *key)
        else:
            self._value(slot, rest)

    def _entry(self, home: _Frame, indent: int, key: str, rest: str) -> None:
        assert isinstance(home.value, dict)
        known = find(key, home.fields)
        below = known.fields if known else (FIELDS if fold(key) in WRAPPERS else ())
        slot = Slot(home.value, key, min(indent, home.indent) if home.fields else indent, self.line, below)
        if not rest or _COMMENT.match(rest):
            self.pending = slot
        elif known and known.is_list and _DASH.match(rest):
            self.pending = slot
            self._structure(slot.indent + len(TAB), rest)
        else:
            self._value(slot, rest)

    def _value(self, slot: Slot, rest: str) -> None:
        """The text after a colon or a dash."""
        if block := _BLOCK.match(rest):
            self.open = Open(slot, "block", [], block[1] + block[2])
        elif rest[0] in "\"'":
            self.open = Open(slot, "quoted", [rest], rest[0])
            if is_closed(rest):
                self._close()
        elif rest[0] in "[{":
            self.open = Open(slot, "flow", [])
            if self.open.flow_line(rest):
                self._close()
        else:
            self.open = Open(slot, "plain", [self._plain(rest)])

    def _plain(self, rest: str) -> str:
        """A plain text as far as its comment; what YAML would have stumbled over is noted."""
        for pattern, names in ((_ANCHOR, self.anchors.defined), (_ALIAS, self.anchors.used)):
            if match := pattern.match(rest):
                names.add(match[1])
        text = _LATER_COMMENT.split(rest, maxsplit=1)[0]
        if text[:1] in _SPECIAL:
            self._say(f"a value that begins with {text[0]!r} was read as text")
        elif ": " in text or text.endswith(":"):
            self._say("a value with a colon in it was read as text")
        elif " #" in text or text[:1] == "#":
            self._say("'#' was read as text, not as a comment")
        return text

    def _more(self, indent: int, text: str) -> None:
        """A line that goes on with the text before it."""
        if self.open is None:
            if self.pending:
                slot, self.pending = self.pending, None
                self._value(slot, text)
            elif self.frames:
                self._say(f"{excerpt(text)} stands in no field; it is kept in the raw text only")
            return
        if self.open.kind != "plain":
            self._close()
            self._say(f"{excerpt(text)} stands in no field; it is kept in the raw text only")
            return
        if indent <= self.open.slot.indent:
            self.open.loose.append(self.line)
            self._say("the line goes on with the text before it")
        self.open.parts.append(self._plain(text))

    # --- texts of several lines ------------------------------------------------------------------------------------

    def _goes_on(self, indent: int, text: str) -> bool:
        """Whether the line belongs to the open quote or bracket; a field of its own ends it."""
        state = self.open
        assert state
        if indent <= state.slot.indent and self._is_field(indent, text):
            return False
        if state.kind == "flow":
            if state.flow_line(text):
                self._close()
        else:
            state.parts.append(text)
            if ends_quote(text, state.style):
                self._close()
        return True

    def _is_field(self, indent: int, text: str) -> bool:
        """A line that clearly begins a new field or item."""
        if _DASH.match(text):
            return any(isinstance(frame.value, list) and frame.indent == indent for frame in self.frames)
        if match := _KEY.match(text):
            key = next(group for group in match.groups() if group is not None).strip()
            return self._knows(self.frames, key)
        return False

    def _in_block(self, indent: int, text: str, line: str) -> bool:
        """Whether the line belongs to the open block scalar; it is kept as it stands."""
        state = self.open
        assert state
        if not text:
            state.parts.append(line[state.content :] if state.content >= 0 else "")
            return True
        inside = indent > state.slot.indent
        if state.content < 0:
            if not inside and (self._is_field(indent, text) or self._is_plain_key(text)):
                return False
            state.content = indent
        elif indent < state.content:
            if self._is_field(indent, text) or (not inside and (state.content > indent) and self._is_plain_key(text)):
                return False
            if not inside and (text.startswith("#") or text in ("---", "...")):
                return False
            self._say("a line of the text block is not indented like the others; it was kept in the block")
        elif not inside and self._is_field(indent, text):
            return False
        state.parts.append(dedented(line, state.content))
        return True

    @staticmethod
    def _is_plain_key(text: str) -> bool:
        match = _KEY.match(text)
        return bool(match and match[4] and _NAME.fullmatch(match[4]))

    # --- closing ---------------------------------------------------------------------------------------------------

    def _close(self) -> None:
        """Put the open text in its place."""
        state, self.open = self.open, None
        if state is None:
            return
        value = state.value(self.notes)
        state.slot.put(visible(value, self.notes) if isinstance(value, str) else value, self.notes)

    def _drop_stump(self, state: Open) -> None:
        """Leave out a last line that is the beginning of a key, cut off."""
        stump = next((part for part in reversed(state.parts) if part), "")
        mappings = [frame for frame in self.frames if isinstance(frame.value, dict)]
        fields = [each.name for frame in mappings for each in frame.fields]
        if state.loose[-1] == self.line and len(state.parts) > 1 and any(name.startswith(stump) for name in fields):
            while state.parts.pop() != stump:
                pass
            self._say(f"the last line {excerpt(stump)} breaks off and was left out")

    def _settle(self) -> None:
        """A key or dash that nothing followed holds nothing."""
        if self.pending:
            slot, self.pending = self.pending, None
            slot.put(None, self.notes)

    def _pop_to(self, frame: _Frame) -> None:
        while self.frames[-1] is not frame:
            self.frames.pop()

    def _say(self, what: str, line: int = 0) -> None:
        self.notes.say(f"Line {line or self.line}: {what}.")


_TOP = _Frame(0, {}, FIELDS)
