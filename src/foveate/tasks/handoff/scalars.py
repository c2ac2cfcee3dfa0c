"""Texts of one value: where they go, where they end, and how their lines become one text.

Comes in: lines, or parts of them. Goes out: the value as YAML would have it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from foveate.tasks.handoff.flow import Flow, unescaped
from foveate.tasks.handoff.notes import Notes, merge
from foveate.tasks.handoff.schema import Field
from foveate.tasks.handoff.strict import scalar

TAB = "  "
"""A tab is one level, and a level of YAML has two spaces."""

_LATER_COMMENT = re.compile(r"\s+#(?:\s|$)")
_BRACKET = re.compile(r"""["'“”]|[\[\]{}]|\\.""")


@dataclass(slots=True)
class Slot:
    """Where a value goes: `line` is where its key or dash stands, `fields` what is known below it."""

    into: dict[str, Any] | list[Any]
    key: str
    indent: int
    line: int
    fields: tuple[Field, ...] = ()

    def put(self, value: Any, notes: Notes) -> None:
        if isinstance(self.into, list):
            self.into.append(value)
        else:
            merge(self.into, self.key, value, f"Line {self.line}: ", notes)


@dataclass(slots=True)
class Open:
    """A text that may go on in the next line; `kind` is plain, quoted, flow or block."""

    slot: Slot
    kind: str
    parts: list[str]
    style: str = ""
    content: int = -1  # the indentation of a block's lines
    depth: int = 0  # the open brackets of a flow
    quote: str = ""  # the open quote of a flow
    loose: list[int] = field(default_factory=list)  # lines that were joined though they are not indented

    def flow_line(self, text: str) -> bool:
        """Add a line of a flow; whether its last bracket is closed."""
        self.parts.append(text)
        for match in _BRACKET.finditer(text):
            mark = match[0]
            if self.quote:
                if mark == self.quote:
                    self.quote = ""
            elif mark in "\"'" and opens_quote(text, match.start()):
                self.quote = mark
            elif mark in "[{":
                self.depth += 1
            elif mark in "]}":
                self.depth -= 1
                if self.depth <= 0:
                    return True
        return False

    def value(self, notes: Notes) -> Any:
        """The value of all lines; what had to be mended is noted."""
        if self.kind == "block":
            return block_text(self.parts, self.style)
        if self.kind == "quoted":
            return self._unquoted(notes)
        return self._flow(notes) if self.kind == "flow" else scalar(folded(self.parts))

    def _unquoted(self, notes: Notes) -> str:
        text, quote = folded(self.parts), self.style
        body = text if text.endswith(quote) else _LATER_COMMENT.split(text, maxsplit=1)[0]
        if len(body) > 1 and body.endswith(quote) and not begins_with_quote(body):
            inner = body[1:-1]
        elif quote in text[1:]:
            self._say(notes, "the value goes on after its closing quote; all of it was read as text")
            return text
        else:
            self._say(notes, "the quote is never closed; it was closed where the value ends")
            inner = text[1:]
        if quote == "'":
            return inner.replace("''", "'")
        if re.search(r'(?<!\\)"', inner):
            self._say(notes, "quotes inside the quoted value were kept")
        return unescaped(inner)

    def _flow(self, notes: Notes) -> Any:
        text = "\n".join(self.parts)
        flow = Flow(text, notes)
        value = flow.value()
        rest = text[flow.at :].strip()
        if rest and not rest.startswith("#"):
            self._say(notes, "a value that begins with a bracket was read as text")
            return folded(self.parts)
        if self.depth > 0:
            self._say(notes, "the bracket is never closed; it was closed where the value ends")
        return value

    def _say(self, notes: Notes, what: str) -> None:
        notes.say(f"Line {self.slot.line}: {what}.")


def is_closed(text: str) -> bool:
    """Whether a quoted text ends on its own line, maybe before a comment or more text."""
    return len(text) > 1 and (ends_quote(text[1:], text[0]) or text[0] in text[1:].replace("\\\\", "").replace('\\"', ""))


def ends_quote(text: str, quote: str) -> bool:
    if not text.endswith(quote):
        return False
    if quote == "'":
        return (len(text) - len(text.rstrip("'"))) % 2 == 1
    before = text[:-1]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 0


def begins_with_quote(text: str) -> bool:
    """Whether only the first words are in quotes, as in `"Lax" cookies, not "Strict"`."""
    end = text.find(text[0], 1)
    return text[0] == '"' and 0 < end < len(text) - 1 and text[end - 1] not in " \\" and text[end + 1] == " "


def opens_quote(text: str, at: int) -> bool:
    """A quote opens a text only after a bracket, comma, colon or space: `don't` has none."""
    return at == 0 or text[at - 1] in "[{,: \t"


def folded(parts: list[str]) -> str:
    """Lines of one text: joined by a space, an empty line is a line break."""
    out: list[str] = []
    breaks = 0
    for part in parts:
        if not part:
            breaks += 1
            continue
        if out:
            out.append("\n" * breaks or " ")
        out.append(part)
        breaks = 0
    return "".join(out)


def block_text(parts: list[str], style: str) -> str:
    text = "\n".join(parts).rstrip("\n")
    if style[0] == ">":
        text = _fold_block(parts)
    return text if "-" in style or not text else text + "\n"


def _fold_block(parts: list[str]) -> str:
    """A `>` block: lines of one paragraph are joined, indented lines stay."""
    pieces: list[str] = []
    breaks, indented = 0, False
    for part in parts:
        if not part.strip():
            breaks += 1
            continue
        deep = part[0] == " "
        if pieces:
            pieces.append("\n" * (breaks + (deep or indented)) or " ")
        pieces.append(part)
        breaks, indented = 0, deep
    return "".join(pieces)


def dedented(line: str, columns: int) -> str:
    """A line of a block without its indentation; what is indented further stays as it is."""
    if not line[:columns].strip(" "):
        return line[columns:]
    body = line.lstrip(" \t")
    return " " * (len(line[: len(line) - len(body)].replace("\t", TAB)) - columns) + body
