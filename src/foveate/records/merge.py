"""Decides what happens when a statement meets the records that exist: confirmed, superseded, disputed or in conflict. Pure.

A value of an attribute supersedes an older one. If no call names a time, the later write is the newer value, because the
clocks of two hosts differ by seconds. Lower trust never supersedes higher. Similarity plays no part: a correction often
resembles the question less than the mistake did.

The same content stored again confirms the known record. The first author's words stay, and the second adds what the first
left out. Only a user's word raises the trust: an agent that repeats a tool's output has not checked it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from foveate.records.kinds import SEVERITIES
from foveate.types import TRUST, Record

# --- another value of the same attribute -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SupersedeResult:
    """The new record as it is stored, the older ones as they become, and the links that say who superseded whom."""

    new: Record
    older_records: tuple[Record, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    disputes: tuple[str, ...] = ()


def resolve_value(new: Record, active_values: Sequence[Record], disputed_record: Record | None = None) -> SupersedeResult:
    """Weigh a new value against the active ones of the same subject, attribute and owner.

    `disputed_record` has the same words as the new value. If the new value is active, it takes the place of that one, too.
    """
    active = [record for record in active_values if record.status == "active"]
    more_trusted = [record.id for record in active if TRUST.index(record.trust) > TRUST.index(new.trust)]
    if more_trusted:
        return SupersedeResult(replace(new, status="disputed"), disputes=tuple(more_trusted))
    later = [record for record in active if record.valid_from > new.valid_from and not is_later_write(new, record)]
    if later:
        next_value = min(later, key=lambda record: (record.valid_from, record.id))
        past = replace(new, status="superseded", valid_to=next_value.valid_from)
        return SupersedeResult(past, links=((new.id, next_value.id),))
    past_values = [*active, *([disputed_record] if disputed_record else [])]
    older = tuple(
        replace(record, status="superseded", valid_from=min(record.valid_from, new.valid_from), valid_to=new.valid_from)
        for record in past_values
    )
    return SupersedeResult(new, older, tuple((record.id, new.id) for record in older))


def is_later_write(new: Record, existing: Record) -> bool:
    """Return whether a record that is being written is newer because neither of the two calls named a time."""
    return new.valid_from == new.created == new.updated and existing.valid_from == existing.created


def was_replaced(older: Record, newer: Record) -> bool:
    """Return whether the newer of two values is active because the older one is no longer."""
    is_same_attribute = (older.subject, older.attribute) == (newer.subject, newer.attribute)
    is_successor = older.status == "superseded" and newer.status == "active" and older.valid_to == newer.valid_from
    return is_same_attribute and is_successor


# --- the same content again ------------------------------------------------------------------------------------------

TRUSTED_AUTHORS = ("agent", "user")


def merge_confirmation(existing: Record, incoming: Record) -> Record:
    """Return the existing record with what the other adds. The store counts the confirmation.

    Nothing becomes less serious by being repeated: the higher severity stays, and a question blocks if either one does.
    """
    serious = _most_serious(existing.data, incoming.data)
    existing, incoming = _drop_untrusted_words(existing, incoming)
    data = {**incoming.data, **existing.data, **serious}
    for name, value in incoming.data.items():
        if isinstance(value, list) and isinstance(existing.data.get(name), list):
            data[name] = [*existing.data[name], *(part for part in value if part not in existing.data[name])]
    return replace(
        existing,
        tags=_union(existing.tags, incoming.tags),
        entities=_union(existing.entities, incoming.entities),
        paths=_union(existing.paths, incoming.paths),
        outcome=incoming.outcome or existing.outcome,
        confidence=incoming.confidence if incoming.confidence != 1.0 else existing.confidence,
        salience=max(existing.salience, SEVERITIES.get(str(data.get("severity")), 0.0)),
        pinned=existing.pinned or incoming.pinned,
        origin=existing.origin or incoming.origin,
        trust="user" if incoming.trust == "user" else existing.trust,
        data=data,
    )


def _drop_untrusted_words(existing: Record, incoming: Record) -> tuple[Record, Record]:
    """Return both records, without the words of a tool, page or repository if the other one is a user's or an agent's.

    Otherwise, what a web page adds in a tag or a field would pass for the user's word.
    """
    if (existing.trust in TRUSTED_AUTHORS) == (incoming.trust in TRUSTED_AUTHORS):
        return existing, incoming
    if existing.trust in TRUSTED_AUTHORS:
        return existing, replace(incoming, tags=(), entities=(), paths=(), data={}, origin=None)
    counts = {"confirmations": existing.data["confirmations"]} if "confirmations" in existing.data else {}
    wordless = replace(existing, tags=(), entities=(), paths=(), data=counts, origin=None)
    return replace(wordless, summary=incoming.summary, micro=incoming.micro), incoming


def _most_serious(existing: Mapping[str, Any], incoming: Mapping[str, Any]) -> dict[str, Any]:
    serious: dict[str, Any] = {}
    severities = [data["severity"] for data in (existing, incoming) if data.get("severity") in SEVERITIES]
    if severities:
        serious["severity"] = max(severities, key=SEVERITIES.__getitem__)
    if existing.get("blocking") or incoming.get("blocking"):
        serious["blocking"] = True
    return serious


def _union(a: tuple[str, ...], b: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*a, *b)))
