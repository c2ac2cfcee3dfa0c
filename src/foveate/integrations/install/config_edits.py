"""Edits of other people's settings as text: what is not ours keeps every byte, comments and all.

Comes in: a text and what should be in it. Goes out: a text. JSON may have comments and trailing commas, as some hosts allow;
TOML gets one block between two marks. Nothing is parsed and written anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from foveate.errors import InputError

Path = tuple[str, ...]

_BLANK = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_SCALAR = re.compile(r"[^\s,\]}/]+")
_REMARK = re.compile(r"[ \t]*//[^\n\r]*")
_LINE_END = re.compile(r"[ \t]*\r?\n")
_DEEPEST = 100


@dataclass(slots=True)
class Node:
    """A value, where it stands, and its parts: members of an object by name, elements of a list by number."""

    start: int
    end: int = 0
    kind: str = "scalar"
    parts: list[tuple[str, int, Node]] = field(default_factory=list)
    """Name (empty in a list), where the part begins with its name, and its value."""
    value: Any = None

    def get(self, name: str) -> Node | None:
        return next((node for key, _, node in self.parts if key == name), None)

    def plain(self) -> Any:
        """The value as Python has it."""
        if self.kind == "object":
            return {key: node.plain() for key, _, node in self.parts}
        return [node.plain() for _, _, node in self.parts] if self.kind == "list" else self.value


def parsed(text: str, name: str) -> Node:
    """The object that a text holds, with places; an error that says where it is broken."""
    try:
        node, end = _value(text, _skip(text, 0), 0)
        if _skip(text, end) != len(text) or node.kind != "object":
            raise ValueError(end)
    except ValueError as error:
        at = error.args[0] if error.args and isinstance(error.args[0], int) else len(text)
        raise InputError(
            f"{name!r} is no JSON object (line {text.count(chr(10), 0, at) + 1}). Mend it first; nothing was written."
        ) from None
    return node


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _value(text: str, at: int, depth: int) -> tuple[Node, int]:
    if depth > _DEEPEST:
        raise ValueError(at)
    if text[at : at + 1] in ("{", "["):
        return _container(text, at, depth)
    found = _STRING.match(text, at) or _SCALAR.match(text, at)
    if not found:
        raise ValueError(at)
    try:
        return Node(at, found.end(), value=json.loads(found[0], strict=False)), found.end()
    except ValueError:
        raise ValueError(at) from None


def _container(text: str, at: int, depth: int) -> tuple[Node, int]:
    node = Node(at, kind="object" if text[at] == "{" else "list")
    closing = "}" if node.kind == "object" else "]"
    at = _skip(text, at + 1)
    while text[at : at + 1] != closing:
        begin, key = at, ""
        if node.kind == "object":
            found = _STRING.match(text, at)
            if not found:
                raise ValueError(at)
            key = json.loads(found[0], strict=False)
            at = _skip(text, found.end())
            if text[at : at + 1] != ":":
                raise ValueError(at)
            at = _skip(text, at + 1)
        value, at = _value(text, at, depth + 1)
        node.parts.append((key, begin, value))
        at = _skip(text, at)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] != closing:
            raise ValueError(at)
    node.end = at + 1
    return node, at + 1


# --- adding --------------------------------------------------------------------------------------------------------


def added(text: str, path: Path, value: Any, *, name: str, to_list: bool) -> str:
    """The text with a value under a path of names: as a member, or at the end of the list there."""
    if not text.strip():
        text = "{}\n"
    node, way = parsed(text, name), list(path)
    while way and (below := node.get(way[0])) is not None:
        node = below
        way.pop(0)
        if node.kind == "scalar" or (way and node.kind != "object"):
            raise InputError(f"{name!r}: {'.'.join(path)} is something else there. Mend it first; nothing was written.")
    if way:
        value = [value] if to_list else value
        for key in reversed(way[1:]):
            value = {key: value}
        return _put(text, node, f"{json.dumps(way[0])}: ", value)
    return _put(text, node, "", value)


def _put(text: str, node: Node, lead: str, value: Any) -> str:
    """A new last part of an object or list."""
    unit = _unit(text)
    outer = _indent(text, node.start)
    body = json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", "\n" + outer + unit)
    if "\r\n" in text:
        body = body.replace("\n", "\r\n")
    line = "\r\n" if "\r\n" in text else "\n"
    if not node.parts:
        inner = text[node.start + 1 : node.end - 1]
        kept = inner.rstrip() if inner.strip() else ""
        return f"{text[: node.start + 1]}{kept}{line}{outer}{unit}{lead}{body}{line}{outer}{text[node.end - 1 :]}"
    last = node.parts[-1][2].end
    comma = _skip(text, last)
    has_comma = text[comma : comma + 1] == ","
    after = comma + 1 if has_comma else last
    remark = _REMARK.match(text, after)
    where = remark.end() if remark else after
    return f"{text[:after]}{'' if has_comma else ','}{text[after:where]}{line}{outer}{unit}{lead}{body}{text[where:]}"


def _unit(text: str) -> str:
    """What one step of indentation is in a text."""
    found = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return found[1] if found and len(found[1]) <= 8 else "  "


def _indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]


# --- taking out ----------------------------------------------------------------------------------------------------


def without(text: str, name: str, is_ours: Callable[[Path, Any], bool]) -> str:
    """The text without the parts that are ours, and without objects and lists that are empty for it."""
    if not text.strip():
        return text
    while True:
        found = next(_ours(parsed(text, name), (), is_ours), None)
        if found is None:
            return text
        owner, number = found
        text = _cut(text, owner, number)


def _ours(node: Node, path: Path, is_ours: Callable[[Path, Any], bool]) -> Iterator[tuple[Node, int]]:
    for number, (key, _, below) in enumerate(node.parts):
        here = (*path, key) if key else path
        held = below.plain()
        if is_ours(here, held):
            yield node, number
        elif below.kind != "scalar":
            for owner, n in _ours(below, here, is_ours):
                yield (node, number) if owner is below and len(below.parts) == 1 else (owner, n)


def _cut(text: str, node: Node, number: int) -> str:
    """A text without one part and one comma; lines that it had for itself go with it."""
    begin, end = node.parts[number][1], node.parts[number][2].end
    comma = _skip(text, end)
    if text[comma : comma + 1] == ",":
        line = text.rfind("\n", 0, begin) + 1
        rest = _LINE_END.match(text, comma + 1)
        if rest and not text[line:begin].strip():
            return text[:line] + text[rest.end() :]
        return text[:begin] + text[comma + 1 :].lstrip(" \t")
    if number:
        comma = _skip(text, node.parts[number - 1][2].end)
        return text[:comma] + text[comma + 1 : begin].rstrip() + text[end:]
    if not (text[node.start + 1 : begin] + text[end : node.end - 1]).strip():
        return text[: node.start + 1] + text[node.end - 1 :]
    return text[:begin].rstrip() + text[end:]  # a comment stays


# --- a block between marks -----------------------------------------------------------------------------------------


def with_block(text: str, lines: Sequence[str], marks: tuple[str, str], name: str) -> str:
    """The text with a block between two marks: in its place where it was, else at the end."""
    line = "\r\n" if "\r\n" in text else "\n"
    block = line.join((marks[0], *lines, marks[1])) + line
    span = block_span(text, marks, name)
    if span:
        return text[: span[0]] + block + text[span[1] :]
    gap = "" if not text else line if text.endswith("\n") else line * 2
    return text + gap + block


def without_block(text: str, marks: tuple[str, str], name: str) -> str:
    span = block_span(text, marks, name)
    if not span:
        return text
    before, after = text[: span[0]], text[span[1] :]
    if not after.strip():
        before = re.sub(r"(\r?\n)(?:\r?\n)\Z", r"\1", before)
    return before + after


def block_span(text: str, marks: tuple[str, str], name: str) -> tuple[int, int] | None:
    """Where a block begins and ends, its last line break included; an error where it is begun and never ended."""
    begin, end = (re.search(rf"^{re.escape(mark)}[ \t]*(?:\r?\n|\Z)", text, re.MULTILINE) for mark in marks)
    if begin is None and end is None:
        return None
    if begin is None or end is None or end.start() < begin.start():
        raise InputError(f"{name!r} has one of {marks[0]!r} and {marks[1]!r} only. Mend it first; nothing was written.")
    return begin.start(), end.end()
