"""The ladder: from the most exact reading of a handoff to the least, and never an error for bad form.

Comes in: text, bytes or a mapping. Goes out: `Parsed`. Each rung is tried only where the one above gives nothing: the
YAML or JSON as it stands, the same with repairs, Markdown headings, and last the bare text, whose first paragraph stands
for a summary. A block that nobody should parse, nested too deeply or with YAML aliases, comes down to these last two rungs.
Refused is only what there is nothing to keep of: empty or too long, or a mapping that is nested too deeply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from foveate.errors import InputError
from foveate.tasks.handoff.blocks import Block, candidates, unwrapped
from foveate.tasks.handoff.flow import mended_json
from foveate.tasks.handoff.headings import first_paragraph, list_fields, read_headings, uncommented
from foveate.tasks.handoff.normalize import Normalizer, is_usable, plain, unboxed
from foveate.tasks.handoff.notes import Hostile, Notes
from foveate.tasks.handoff.schema import find
from foveate.tasks.handoff.sections import read_yaml
from foveate.tasks.handoff.strict import Broken, load_json
from foveate.tasks.handoff.text import MAX_BYTES, decoded, readable

__all__ = ["MAX_BYTES", "Parsed", "parse"]


@dataclass(frozen=True, slots=True)
class Parsed:
    """A handoff in the form of the schema, and how it was read."""

    handoff: Mapping[str, Any]
    """Conforms to `json_schema()`; every list is there, maybe empty; plain JSON types only."""
    rung: str
    """structured, yaml, json, repaired yaml, repaired json, headings or raw"""
    form: str
    """structured, front matter, fenced block, bare or markdown"""
    problems: tuple[str, ...]
    """A sentence for each repair, coercion, and dropped or moved value."""
    raw: str
    """The text as it came, or the JSON of structured input."""

    @property
    def clean(self) -> bool:
        """Nothing had to be repaired, guessed or moved."""
        return not self.problems


def parse(source: str | bytes | Mapping[str, Any]) -> Parsed:
    """The handoff that a text or a mapping holds; InputError where there is nothing to keep."""
    notes = Notes()
    if isinstance(source, Mapping):
        return _structured(source, notes)
    if not isinstance(source, str | bytes):
        raise InputError(f"A handoff is text, bytes or a mapping, not {type(source).__name__}.")
    raw = decoded(source, notes)
    text, line = unwrapped(readable(raw, notes))
    beside = text
    for block in candidates(text):
        try:
            if parsed := _from_block(block, line, raw, notes):
                return parsed
        except Hostile as error:  # whoever wrote it may be gone: what it says is kept all the same
            notes.say(str(error))
            beside = block.body  # its own lines look like headings, and what is in them is not what it says
    return _from_markdown(text, beside, raw, notes)


# --- the rungs -----------------------------------------------------------------------------------------------------


def _structured(source: Mapping[str, Any], notes: Notes) -> Parsed:
    data = plain(source, notes)
    if not data:
        raise InputError("The handoff is empty. Give at least a summary.")
    raw = json.dumps(data, ensure_ascii=False)
    decoded(raw, notes)  # the same limit as for text
    fields = unboxed(data, notes)
    if not is_usable(fields):
        notes.say("No field of the schema was found; everything is kept in 'extra'.")
    return Parsed(Normalizer(notes).handoff(fields), "structured", "structured", notes.sentences(), raw)


def _from_block(block: Block, line: int, raw: str, notes: Notes) -> Parsed | None:
    """What a block holds, with the Markdown around it where the block says nothing."""
    said = Notes()
    rung, value = _read_block(block, line, said)
    fields = unboxed(plain(value, said), said)
    if not is_usable(fields):
        return None
    for sentence in said.sentences():
        notes.say(sentence)
    if block.around:
        notes.say("Text around the handoff was set aside; it is kept in the raw text.")
    if block.is_open:
        notes.say("The fence around the handoff is never closed; the text may have been cut off.")
    for other in block.others:
        fields.update(_from_other(other, line, fields, notes))
    handoff = Normalizer(notes).handoff({**fields, **_from_body(block, fields)})
    return Parsed(handoff, rung, block.form, notes.sentences(), raw)


def _read_block(block: Block, line: int, notes: Notes) -> tuple[str, Any]:
    if not block.is_json:
        value, repaired = read_yaml(block.text, line + block.line, notes)
        return ("repaired yaml" if repaired else "yaml"), value
    text = block.text.strip()
    said = Notes()
    try:
        value = load_json(text, said)
    except Broken as broken:
        value, done = mended_json(text, said)
        where = line + block.line + broken.line + 1
        notes.say(f"Read with repairs: line {where}: {broken.why}; {', '.join(done)}.")
        for sentence in said.sentences():
            notes.say(sentence)
        return "repaired json", value
    for sentence in said.sentences():
        notes.say(f"Read with repairs: {sentence}")
    return ("repaired json" if len(said) else "json"), value


def _from_other(block: Block, line: int, fields: Mapping[str, Any], notes: Notes) -> dict[str, Any]:
    """The fields of a further block that the best one lacks; where both have one, the other may be an example."""
    said = Notes()
    try:
        more = unboxed(plain(_read_block(block, line, said)[1], said), said)
    except Hostile as error:
        notes.say(f"Another block is left aside: {error}")
        return {}
    present = _named(fields)
    lacking = {key: value for key, value in more.items() if (known := find(key)) and known.name not in present}
    if lacking:
        notes.say(f"Several blocks hold fields; {', '.join(sorted(lacking))} came from another one.")
    return lacking


def _named(fields: Mapping[str, Any]) -> set[str]:
    """The names of the fields that hold something."""
    return {known.name for key, value in fields.items() if (known := find(key)) and value not in (None, "")}


def _from_body(block: Block, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The summary and the lists that the Markdown around a block gives and the block does not."""
    if not block.body.strip():
        return {}
    found = read_headings(block.body)
    wanted = {"summary", *(each.name for each in list_fields())} - _named(fields)
    filled = {name: value for name, value in found.items() if name in wanted and value}
    if "summary" in wanted and "summary" not in filled and block.form == "front matter":
        prose = re.sub(r"^#.*$", "", block.body, flags=re.MULTILINE)
        if summary := first_paragraph(prose) if _has_words(prose) else "":
            filled["summary"] = summary
    return filled


def _has_words(text: str) -> bool:
    return any(char.isalnum() for char in uncommented(text))


def _from_markdown(text: str, beside: str, raw: str, notes: Notes) -> Parsed:
    """The headings beside what must not be read, or else the bare text."""
    fields = read_headings(beside)
    if is_usable(fields):
        notes.say("Read from Markdown headings: no YAML or JSON could be read.")
        return Parsed(Normalizer(notes).handoff(fields), "headings", "markdown", notes.sentences(), raw)
    notes.say("Nothing could be read as a handoff: no YAML, no JSON, no known heading. The text is kept as it came.")
    handoff = Normalizer(notes).handoff({"summary": first_paragraph(text)})
    return Parsed(handoff, "raw", "markdown", notes.sentences(), raw)
