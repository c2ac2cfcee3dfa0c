"""Tabs of a record: its versions, what superseded what, its links, and the contexts that showed it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from foveate.clock import iso
from foveate.receipts.codec import unpack
from foveate.receipts.receipt import Receipt
from foveate.records.kinds import SUPERSEDED_BY
from foveate.records.make import to_json
from foveate.records.render import display_name
from foveate.store.protocol import ProjectReader, Reader
from foveate.store.scoped import PERSONAL_PROJECT
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


def record_row(record: Record) -> dict[str, Any]:
    """Return what lists show of a record."""
    return {
        "id": record.id,
        "title": display_name(record),
        "kind": record.kind,
        "status": record.status,
        "pinned": record.pinned,
        "trust": record.trust,
        "is_personal": record.scope.project == PERSONAL_PROJECT,
    }


# --- links -----------------------------------------------------------------------------------------------------------


def linked_records(reader: Reader, id: str) -> dict[str, Any]:
    """Return the links of a record in both directions, the strongest first, and how many are not listed."""
    links = [(link, False) for link in reader.links([id])] + [(link, True) for link in reader.links([id], incoming=True)]
    strongest = sorted(links, key=lambda pair: -pair[0].weight)[:MAX_LINKS]
    ends = [(link.src if incoming else link.dst, link, incoming) for link, incoming in strongest]
    found = reader.get([end for end, _, _ in ends])
    rows = [
        {"name": link.name, "incoming": incoming, "weight": link.weight, **record_row(found[end])}
        for end, link, incoming in ends
        if end in found
    ]
    return {"links": rows, "more_links": len(links) - len(strongest)}


def supersession_chain(reader: Reader, record: Record) -> list[dict[str, Any]]:
    """Return the values before and after this one, oldest first."""
    earlier, later = (_follow_links(reader, record.id, incoming=incoming) for incoming in (True, False))
    found = {record.id: record, **reader.get([*earlier, *later])}
    records = [found[id] for id in [*reversed(earlier), record.id, *later] if id in found]
    return [
        {
            **record_row(each),
            "valid_from": iso(each.valid_from),
            "valid_to": None if each.valid_to is None else iso(each.valid_to),
        }
        for each in records
    ]


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


def contexts_showing(reader: ProjectReader, id: str) -> list[dict[str, Any]]:
    """Return the latest contexts that showed a record, the level, and how the answer used it."""
    return [_context_row(stored.created, unpack(stored.body), id) for stored in reader.receipts(MAX_CONTEXTS, record=id)]


def _context_row(created: int, receipt: Receipt, id: str) -> dict[str, Any]:
    entry = receipt.candidate(id)  # None for an entity that was only named in a relation
    return {
        "context": receipt.id,
        "created": iso(created),
        "query": receipt.request.query,
        "slot": entry.slot if entry else "",
        "level": (entry.level if entry.is_kept else "") if entry else "in a relation",
        "tokens": entry.tokens if entry and entry.is_kept else None,
        "answered": id in (receipt.notes.used or ()),
        "mark": (receipt.notes.marks or {}).get(id, ""),
    }


# --- versions --------------------------------------------------------------------------------------------------------


def history(record: Record, changes: Sequence[Change]) -> dict[str, Any]:
    """Return each version, newest first, with its operation, its time and the fields that changed."""
    after = [*(change.before for change in changes[1:]), record]
    rows = [_version_row(change, then or record) for change, then in zip(changes, after, strict=False)]
    if not any(change.version == 1 for change in changes):
        rows.insert(0, {"version": 1, "verb": "add", "at": iso(record.created), "changes": []})
    return {"history": rows[::-1][:MAX_VERSIONS], "more_history": max(0, len(rows) - MAX_VERSIONS)}


def _version_row(change: Change, after: Record) -> dict[str, Any]:
    fields = [] if change.before is None else changed_fields(_flatten_fields(change.before), _flatten_fields(after))
    if change.verb not in COUNTING_OPERATIONS:
        fields = [field for field in fields if field["field"] not in _COUNTER_FIELDS]
    return {"version": change.version, "verb": change.verb, "at": iso(change.at), "changes": fields}


def changed_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the fields that differ, as texts. Fields that follow from a changed text are left out."""
    names = [name for name in dict.fromkeys((*before, *after)) if before.get(name) != after.get(name)]
    hidden = _HIDDEN_FIELDS | (_TEXT_DERIVED_FIELDS if "text" in names else set())
    return [_value_diff(name, before.get(name), after.get(name)) for name in names if name not in hidden]


def _value_diff(name: str, before: Any, after: Any) -> dict[str, str]:
    old, new = _format_value(before), _format_value(after)
    same = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    start = max(0, same - CHARS_BEFORE_DIFF)
    return {"field": name, "before": _truncate_around(old, start), "after": _truncate_around(new, start)}


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
