"""Reads a YAML block section by section, so that one broken section spoils no other.

Comes in: the text of a block. Goes out: its value, whether anything had to be repaired, and a sentence for each repair.
A section begins with a known key at the left edge, or at a document mark. Each is given to the parser once; what the
parser refuses is read line by line. That is two passes at most, whatever the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from foveate.tasks.handoff.blocks import indent_of, key_of
from foveate.tasks.handoff.notes import Notes, merge
from foveate.tasks.handoff.repair import Reader
from foveate.tasks.handoff.strict import Anchors, Broken, load_yaml

_MARK = re.compile(r"^---.*$", re.MULTILINE)

MAX_SECTIONS = 100
"""A handoff has fifteen fields. Each section starts a parser; after so many, the rest is one section."""


def read_yaml(text: str, first_line: int, notes: Notes) -> tuple[Any, bool]:
    """The value of a YAML text, and whether it was repaired; `first_line` lines stand before it."""
    anchors, repairs = Anchors(), Notes()
    out: dict[str, Any] = {}
    whole: Any = None
    last = text.count("\n")
    for start, lines in _sections(text):
        for value in _section(first_line + start, lines, start + len(lines) > last, anchors, repairs):
            if isinstance(value, dict):
                for key, entry in value.items():
                    merge(out, key, entry, "", repairs)
            elif whole is None:
                whole = value
    anchors.check()
    if sum(bool(document.strip()) for document in _MARK.split(text)) > 1:
        notes.say("The YAML has several documents; they were read as one.")
    for n, sentence in enumerate(repairs.sentences()):
        notes.say(
            sentence if n or sentence.startswith("Read with") else f"Read with repairs: {sentence[0].lower()}{sentence[1:]}"
        )
    return out or whole, len(repairs) > 0


def _sections(text: str) -> Iterator[tuple[int, list[str]]]:
    """Groups of lines with the number of their first; each begins with a known key at the left edge, or with `---`."""
    lines = text.split("\n")
    base = next((indent_of(line) for line in lines if key_of(line)), 0)
    start = count = 0
    for number, line in enumerate(lines):
        begins = line.startswith("---") or (indent_of(line) == base and not line.lstrip().startswith("-") and key_of(line))
        if begins and number > start and count < MAX_SECTIONS and any(map(str.strip, lines[start:number])):
            yield start, lines[start:number]
            start, count = number, count + 1
    yield start, lines[start:]


def _section(start: int, lines: list[str], is_end: bool, anchors: Anchors, repairs: Notes) -> list[Any]:
    """The values of one section."""
    said = Notes()
    try:
        values = load_yaml("\n".join(lines), anchors, said, start)
        flat = [each for value in values for each in (value if _is_split(value) else [value])]
        if any(isinstance(value, str) for value in flat) and any(map(key_of, lines)):
            raise Broken(0, "a text stands where keys are expected")
    except Broken as broken:
        repairs.say(f"Read with repairs: line {start + broken.line + 1}: {broken.why}.")
        reader = Reader(anchors, repairs)
        for number, line in enumerate(lines):
            reader.feed(start + number + 1, line)
        return [reader.finish(is_end=is_end)]
    for sentence in said.sentences():
        repairs.say(sentence)
    if any(_is_split(value) for value in values):
        repairs.say("The fields stand in a list; they were read as one object.")
    return flat


def _is_split(value: Any) -> bool:
    """A list of objects, each with a part of the handoff."""
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)
