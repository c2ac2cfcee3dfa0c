"""The tabs of a record: its versions, the values that it superseded, its links, and the contexts that showed it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foveate.receipts.codec import unpack
from foveate.receipts.parts import AnyCandidate
from foveate.receipts.receipt import Receipt
from foveate.records.kinds import SUPERSEDED_BY
from foveate.records.make import to_json
from foveate.store.protocol import ProjectReader, Reader
from foveate.types import Change, Record

MAX_CONTEXTS = 20
"""Latest contexts that showed a record. The receipt of each is unpacked."""

MAX_LINKS = 60
MAX_VERSIONS = 50
MAX_CHAIN_STEPS = 12

MAX_VALUE_CHARS, CHARS_BEFORE_DIFF = 300, 60
"""Characters of a changed value, and how many of them come before the first difference."""

_HIDDEN_FIELDS = {"id", "kind", "version", "updated"}
_TEXT_DERIVED_FIELDS = {"summary", "micro"}
_COUNTER_FIELDS = {"uses", "wins", "data.confirmations"}

COUNTING_OPERATIONS = ("outcome", "trip", "confirm")
"""Operations that count. Uses are also counted at other times, which is not a change of the record."""


# --- links -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LinkedRecord:
    """A link of a record, and the record at its other end."""

    name: str
    is_incoming: bool
    weight: float
    record: Record


def linked_records(reader: Reader, id: str) -> tuple[list[LinkedRecord], int]:
    """Return the links of a record in both directions, the strongest first, and the number of weaker ones."""
    links = [(link, False) for link in reader.links([id])] + [(link, True) for link in reader.links([id], incoming=True)]
    strongest = sorted(links, key=lambda pair: -pair[0].weight)[:MAX_LINKS]
    ends = [(link.src if is_incoming else link.dst, link, is_incoming) for link, is_incoming in strongest]
    records = reader.get([end for end, _, _ in ends])
    rows = [
        LinkedRecord(link.name, is_incoming, link.weight, records[end]) for end, link, is_incoming in ends if end in records
    ]
    return rows, len(links) - len(strongest)


def supersession_chain(reader: Reader, record: Record) -> list[Record]:
    """Return the values before and after a record with it, oldest first."""
    earlier, later = (_follow_links(reader, record.id, incoming=incoming) for incoming in (True, False))
    records = {record.id: record, **reader.get([*earlier, *later])}
    return [records[id] for id in [*reversed(earlier), record.id, *later] if id in records]


def _follow_links(reader: Reader, id: str, *, incoming: bool) -> list[str]:
    """Return the ids along `superseded_by` links, nearest first. Each step takes one query."""
    seen, frontier = {id: None}, [id]
    for _ in range(MAX_CHAIN_STEPS):
        links = reader.links(frontier, [SUPERSEDED_BY], incoming=incoming)
        ends = [link.src if incoming else link.dst for link in links]
        frontier = list(dict.fromkeys(end for end in ends if end not in seen))[:MAX_CHAIN_STEPS]
        if not frontier:
            break
        seen |= dict.fromkeys(frontier)
    return list(seen)[1:]


# --- contexts that showed it -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UseInContext:
    """A context that showed a record, and what is known of its use."""

    receipt: Receipt
    entry: AnyCandidate | None
    """None for an entity that the context named only in a relation."""
    is_used: bool
    """The answer used the record."""
    mark: str


def uses_in_contexts(reader: ProjectReader, id: str) -> list[UseInContext]:
    """Return the latest contexts that showed a record."""
    receipts = [unpack(stored.body) for stored in reader.receipts(MAX_CONTEXTS, record=id)]
    return [
        UseInContext(
            receipt, receipt.candidate(id), id in (receipt.notes.used or ()), (receipt.notes.marks or {}).get(id, "")
        )
        for receipt in receipts
    ]


# --- versions --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field that an operation changed, with its values as text."""

    field: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a record, with the operation that made it."""

    number: int
    verb: str
    at: int
    changes: tuple[FieldChange, ...] = ()


def versions(record: Record, changes: Sequence[Change]) -> tuple[list[Version], int]:
    """Return the latest versions of a record, newest first, and the number of earlier ones."""
    # The history holds what was before each change. What came of it is what was before the next one.
    after = [*(change.before for change in changes[1:]), record]
    found = [_version(change, then or record) for change, then in zip(changes, after, strict=False)]
    # Most records are added without a change in the history: there was nothing before.
    if not any(change.version == 1 for change in changes):
        found.insert(0, Version(1, "add", record.created))
    return found[::-1][:MAX_VERSIONS], max(0, len(found) - MAX_VERSIONS)


def _version(change: Change, after: Record) -> Version:
    fields = [] if change.before is None else changed_fields(_flatten_fields(change.before), _flatten_fields(after))
    if change.verb not in COUNTING_OPERATIONS:
        fields = [each for each in fields if each.field not in _COUNTER_FIELDS]
    return Version(change.version, change.verb, change.at, tuple(fields))


def changed_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[FieldChange]:
    """Return the fields that differ, without those that follow from a changed text."""
    names = [name for name in dict.fromkeys((*before, *after)) if before.get(name) != after.get(name)]
    hidden = _HIDDEN_FIELDS | (_TEXT_DERIVED_FIELDS if "text" in names else set())
    return [_field_change(name, before.get(name), after.get(name)) for name in names if name not in hidden]


def _field_change(name: str, before: Any, after: Any) -> FieldChange:
    old, new = _format_value(before), _format_value(after)
    same = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    start = max(0, same - CHARS_BEFORE_DIFF)
    return FieldChange(name, _truncate_around(old, start), _truncate_around(new, start))


def _truncate_around(text: str, start: int) -> str:
    part = text[start : start + MAX_VALUE_CHARS]
    return ("…" if start and part else "") + part + ("…" if len(text) > start + MAX_VALUE_CHARS else "")


def _flatten_fields(record: Record) -> dict[str, Any]:
    fields = to_json(record)
    data = fields.pop("data", {})
    return {**fields, **{f"data.{name}": value for name, value in data.items()}}


def _format_value(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return ", ".join(value)
    return json.dumps(value, ensure_ascii=False)
