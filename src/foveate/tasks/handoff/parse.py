"""Parses a handoff: strict YAML or JSON first, then with repairs, then Markdown headings, and last the plain text.

Bad form is never an error. Only input that holds nothing, is too long, or is a mapping nested too deeply is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from foveate.errors import InputError
from foveate.tasks.handoff.blocks import Block, candidates, strip_outer_fence
from foveate.tasks.handoff.headings import first_paragraph, read_headings, strip_comments
from foveate.tasks.handoff.normalize import Normalizer, is_usable, to_json_types, unwrap
from foveate.tasks.handoff.notes import MAX_BYTES, Notes, UnsafeInput, replace_surrogates, strip_hidden
from foveate.tasks.handoff.repair import MAX_JSON_CHARS, read_yaml, repair_json
from foveate.tasks.handoff.schema import FIELDS, find
from foveate.tasks.handoff.strict import SyntaxProblem, load_json
from foveate.text.redact import AllowList, redact, redact_value

_NBSP_INDENT = re.compile("^[ \t]*\u00a0[ \t\u00a0]*", re.MULTILINE)
_HEADING_LINE = re.compile(r"^#.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ParsedHandoff:
    """A handoff in the form of the schema, and how it was read."""

    handoff: Mapping[str, Any]
    """Conforms to `json_schema()`: every list is present, maybe empty, and all values have JSON's types."""
    method: str
    """structured, yaml, json, repaired yaml, repaired json, headings or raw"""
    form: str
    """structured, front matter, fenced block, bare or markdown"""
    problems: tuple[str, ...]
    """A sentence for each repair, conversion, and dropped or moved value."""
    raw: str
    """The text as it came, or the JSON of a mapping, without secrets."""

    @property
    def clean(self) -> bool:
        """Return whether nothing was repaired, guessed or moved."""
        return not self.problems


def parse(source: str | bytes | Mapping[str, Any], allow: AllowList | None = None) -> ParsedHandoff:
    """Return the handoff in a text or mapping; raise InputError if there is nothing to keep.

    Secrets are redacted first: a URL with a password would no longer be one once it is split at its colon.
    """
    notes = Notes()
    if isinstance(source, Mapping):
        return _parse_mapping(source, notes, allow)
    if not isinstance(source, str | bytes):
        raise InputError(f"A handoff must be text, bytes or a mapping, not {type(source).__name__}.")
    raw = redact(_decode(source, notes), allow).text
    text, line = strip_outer_fence(_normalize_text(raw, notes))
    outside = text
    for block in candidates(text):
        try:
            if parsed := _parse_block(block, line, raw, notes):
                return parsed
        except UnsafeInput as error:  # the author may be gone, so the text is kept and its headings are read
            notes.add(str(error))
            outside = block.body  # lines inside the block look like headings, but are none
    fields = read_headings(outside)
    if is_usable(fields):
        notes.add("Read from Markdown headings: no YAML or JSON could be read.")
        return ParsedHandoff(Normalizer(notes).handoff(fields), "headings", "markdown", notes.sentences(), raw)
    notes.add("Nothing could be read as a handoff: no YAML, no JSON, no known heading. The text is kept as it came.")
    handoff = Normalizer(notes).handoff({"summary": first_paragraph(text)})
    return ParsedHandoff(handoff, "raw", "markdown", notes.sentences(), raw)


# --- text ----------------------------------------------------------------------------------------------------------


def _decode(source: str | bytes, notes: Notes) -> str:
    """Return the source as text without NUL; raise InputError if it is too long or blank."""
    _check_size(len(source) if isinstance(source, bytes) else len(source.encode("utf-8", "surrogatepass")))
    if isinstance(source, bytes):
        encoding = "utf-16" if source[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"  # some Windows tools write UTF-16
        text = source.decode(encoding, "replace")
        if "\ufffd" in text:
            notes.add(f"Bytes that are not {encoding.upper()} were replaced by U+FFFD.")
    else:
        text = replace_surrogates(source)
        if text != source:
            notes.add("Half characters (lone surrogates) were replaced by U+FFFD.")
    if "\0" in text:
        text = text.replace("\0", "")
        notes.add("NUL characters were removed.")
    if not strip_hidden(text, Notes()).strip():
        raise InputError("The handoff is empty. Write at least a summary; `foveate task handoff --template` prints a form.")
    return text


def _check_size(size: int) -> None:
    if size > MAX_BYTES:
        raise InputError(
            f"The handoff has {size:,} bytes; {MAX_BYTES:,} are allowed. "
            "Write what the next task needs to know, and leave logs and code in files."
        )


def _normalize_text(raw: str, notes: Notes) -> str:
    """Return the text with one kind of line ending and without hidden characters."""
    text = raw.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if "\u00a0" in text and _NBSP_INDENT.search(text):
        text = _NBSP_INDENT.sub(lambda match: match[0].replace("\u00a0", " "), text)
        notes.add("No-break spaces in the indentation were read as spaces.")
    return strip_hidden(text, notes)


# --- mappings and blocks -------------------------------------------------------------------------------------------


def _parse_mapping(source: Mapping[str, Any], notes: Notes, allow: AllowList | None) -> ParsedHandoff:
    data = redact_value(to_json_types(source, notes), allow)
    if not data:
        raise InputError("The handoff is empty. Give at least a summary.")
    raw = json.dumps(data, ensure_ascii=False)
    _check_size(len(raw.encode()))
    fields = unwrap(data, notes)
    if not is_usable(fields):
        notes.add("No field of the schema was found; everything is kept in 'extra'.")
    return ParsedHandoff(Normalizer(notes).handoff(fields), "structured", "structured", notes.sentences(), raw)


def _parse_block(block: Block, line: int, raw: str, notes: Notes) -> ParsedHandoff | None:
    """Return the handoff in a block, completed from the Markdown around it; None if the block has no fields."""
    block_notes = Notes()
    method, fields = _read_block(block, line, block_notes)
    if not is_usable(fields):
        if block.is_json and len(block.text) > MAX_JSON_CHARS:
            notes.add(f"JSON of more than {MAX_JSON_CHARS:,} characters is read only if it is valid.")
        return None
    notes.add(*block_notes.sentences())
    if block.has_surrounding_prose:
        notes.add("Text around the handoff was left out; it is kept in the raw text.")
    if block.is_unclosed:
        notes.add("The fence around the handoff is never closed; the text may have been cut off.")
    for extra in block.extra_blocks:
        fields.update(_fields_from_extra_block(extra, line, fields, notes))
    handoff = Normalizer(notes).handoff({**fields, **_fields_from_body(block, fields)})
    return ParsedHandoff(handoff, method, block.form, notes.sentences(), raw)


def _read_block(block: Block, line: int, notes: Notes) -> tuple[str, dict[str, Any]]:
    """Return how a block was read, and its fields."""
    if block.is_json:
        method, value = _read_json(block, line, notes)
    else:
        value, is_repaired = read_yaml(block.text, line + block.line, notes)
        method = "repaired yaml" if is_repaired else "yaml"
    return method, unwrap(to_json_types(value, notes), notes)


def _read_json(block: Block, line: int, notes: Notes) -> tuple[str, Any]:
    text = block.text.strip()
    repairs = Notes()
    try:
        value = load_json(text, repairs)
    except SyntaxProblem as problem:
        notes.add(f"Read with repairs: line {line + block.line + problem.line + 1}: {problem.reason}.")
        return "repaired json", repair_json(text)
    notes.add(*(f"Read with repairs: {sentence}" for sentence in repairs.sentences()))
    return ("repaired json" if len(repairs) else "json"), value


def _fields_from_extra_block(block: Block, line: int, fields: Mapping[str, Any], notes: Notes) -> dict[str, Any]:
    """Return the fields of another block that the best block lacks. Where both have one, the other may be an example."""
    block_notes = Notes()
    try:
        _, others = _read_block(block, line, block_notes)
    except UnsafeInput as error:
        notes.add(f"Another block was left out: {error}")
        return {}
    present = _nonempty_fields(fields)
    missing = {key: value for key, value in others.items() if (field := find(key)) and field.name not in present}
    if missing:
        notes.add(f"Several blocks hold fields; {', '.join(sorted(missing))} came from another one.")
    return missing


def _nonempty_fields(fields: Mapping[str, Any]) -> set[str]:
    return {field.name for key, value in fields.items() if (field := find(key)) and value not in (None, "")}


def _fields_from_body(block: Block, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the summary and the lists that the Markdown around a block has and the block lacks."""
    if not block.body.strip():
        return {}
    wanted = {"summary", *(field.name for field in FIELDS if field.is_list)} - _nonempty_fields(fields)
    filled = {name: value for name, value in read_headings(block.body).items() if name in wanted and value}
    if "summary" in wanted and "summary" not in filled and block.form == "front matter":
        prose = _HEADING_LINE.sub("", block.body)
        if any(char.isalnum() for char in strip_comments(prose)):
            filled["summary"] = first_paragraph(prose)
    return filled
