"""The JSON forms of receipts, summaries and contexts, and the bytes of a stored receipt.

Keys and their order are a contract: stored receipts, HTTP documents and `--json` have them. A key with an empty value, such
as `stale` of a file that exists, is left out. No form is made by `dataclasses.asdict`: a receipt has hundreds of candidates,
and it takes 30 times as long for one.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from foveate.clock import iso
from foveate.memory.relations import ends_of
from foveate.pipeline import request_summary
from foveate.pipeline.profiles.codec import profile_from_json, profile_to_json
from foveate.pipeline.request_summary import scope_to_json
from foveate.pipeline.sources import SourceReport
from foveate.receipts.context import Context
from foveate.receipts.parts import (
    NO_NOTES,
    AnyCandidate,
    KeptCandidate,
    LeftOutCandidate,
    Notes,
    RecordRef,
    RefreshNote,
)
from foveate.receipts.receipt import Receipt
from foveate.receipts.summary import NoteCounts, ReceiptSummary, summary_of
from foveate.store.protocol import StoredReceipt
from foveate.types import Budget, Prefix, Scope, Signals, SlotBudget

SCHEMA_VERSION = 1
COMPRESSION_LEVEL = 3

_SIGNAL_KEYS = (
    *("keywords", "terms", "paths", "symbols", "entities", "intent", "event_types", "domains", "task_type"),
    *("complexity", "because", "frame", "frame_because", "input", "input_because"),
)
_SIGNAL_FIELDS = {"because": "complexity_reason", "frame_because": "frame_reason", "input_because": "input_reason"}
"""Key in a receipt -> field of the signals. The keys stay, so that stored receipts can be read."""

_REPORT_FIELDS = ("source", "slots", "found", "ms", "error", "among", "note")
_CANDIDATE_FIELDS = ("id", "version", "hash", "kind", "slot", "source", "features", "score", "overruled_by")
_OMISSION_FIELDS = ("reason", "detail", "needs_tokens", "needs_relevance")
_OLD_NAMES = {"min_score": "min_relevance", "needs_score": "needs_relevance"}
"""Reason and field of a candidate that was left out, by their names in receipts of version 0.1."""

_SUMMARY_FIELDS = ("tokens", "total", "reserve", "framing", "slots", "items", "left_out", "ms", "text_hash")
"""Fields that have the same name in JSON."""

Json = dict[str, Any]


# --- stored bytes --------------------------------------------------------------------------------------------------


def pack(receipt: Receipt) -> StoredReceipt:
    """Return a receipt in the form that is stored."""
    # A relation is made from a link and has no record, so its two entities stand for it.
    shown_ids = [part for entry in receipt.items for part in ends_of(entry.id) or (entry.id,)]
    return StoredReceipt(
        receipt.id,
        receipt.created,
        _compress(receipt),
        receipt.request.scope.session,
        _dump(summary_to_json(summary_of(receipt))),
        tuple(dict.fromkeys(shown_ids)),
    )


def unpack(body: bytes) -> Receipt:
    """Return the receipt of a stored body."""
    return from_json(json.loads(zlib.decompress(body)))


def scrub(body: bytes, ids: frozenset[str], terms: frozenset[str] = frozenset()) -> tuple[bytes, str] | None:
    """Return the body and the summary of a stored receipt without some records; None if it has none of them.

    See `Receipt.without_records`. The store is given this function when it forgets records, because it must not depend on
    the form of receipts.
    """
    scrubbed = unpack(body).without_records(ids, terms)
    return None if scrubbed is None else (_compress(scrubbed), _dump(summary_to_json(summary_of(scrubbed))))


def _compress(receipt: Receipt) -> bytes:
    return zlib.compress(_dump(to_json(receipt)).encode(), COMPRESSION_LEVEL)


def _dump(document: Json) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def _values(source: object, names: Sequence[str]) -> Json:
    return {name: getattr(source, name) for name in names}


# --- receipts ------------------------------------------------------------------------------------------------------


def to_json(receipt: Receipt) -> Json:
    """Return a receipt as JSON values."""
    is_forgotten = receipt.request.is_forgotten
    return {
        "schema_version": SCHEMA_VERSION,
        "id": receipt.id,
        "created": iso(receipt.created),
        "request": request_summary.to_json(receipt.request),
        # The terms of a query that was removed would still tell what it said.
        "signals": {} if is_forgotten else signals_to_json(receipt.signals),
        "profile": profile_to_json(receipt.profile),
        "revision": receipt.revision,
        "renderer": receipt.renderer,
        "measured_by": receipt.measured_by,
        "sources": [{**_values(report, _REPORT_FIELDS), "slots": list(report.slots)} for report in receipt.sources],
        "candidates": [candidate_to_json(entry) for entry in receipt.candidates],
        "budget": budget_to_json(receipt.budget),
        "prefix": _prefix_to_json(receipt.prefix),
        "text_hash": receipt.text_hash,
        "warnings": list(receipt.warnings),
        "ms": receipt.ms,
        **({"notes": notes_to_json(receipt.notes)} if receipt.notes != NO_NOTES else {}),
        # Written even if it is 0: a receipt without its query must show that something was forgotten.
        **({"forgotten": receipt.forgotten} if is_forgotten or receipt.forgotten else {}),
    }


def from_json(value: Mapping[str, Any]) -> Receipt:
    """Return the receipt of a JSON document."""
    return Receipt(
        id=value["id"],
        request=request_summary.from_json(value["request"]),
        signals=_signals_from_json(value["signals"]),
        profile=profile_from_json(value["profile"]),
        revision=value["revision"],
        renderer=value["renderer"],
        measured_by=value["measured_by"],
        sources=tuple(SourceReport(**{**report, "slots": tuple(report["slots"])}) for report in value["sources"]),
        candidates=tuple(_candidate_from_json(entry) for entry in value["candidates"]),
        budget=_budget_from_json(value["budget"]),
        prefix=Prefix(**value["prefix"]),
        text_hash=value["text_hash"],
        warnings=tuple(value["warnings"]),
        ms=value["ms"],
        notes=_notes_from_json(value.get("notes", {})),
        forgotten=value.get("forgotten", 0),
    )


def signals_to_json(signals: Signals) -> Json:
    """Return the signals of a request as JSON values."""
    values = {key: getattr(signals, _SIGNAL_FIELDS.get(key, key)) for key in _SIGNAL_KEYS}
    values["entities"] = list(signals.entities)  # ids alone, because names are words of records
    if signals.follows:
        values["follows"] = signals.follows
    return {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}


def _signals_from_json(value: Mapping[str, Any]) -> Signals:
    parts: Json = {_SIGNAL_FIELDS.get(key, key): tuple(v) if isinstance(v, list) else v for key, v in value.items()}
    return Signals(**{**parts, "entities": dict.fromkeys(parts.get("entities", ()), "")})


def budget_to_json(budget: Budget) -> Json:
    """Return the budget of a context as JSON values."""
    return {
        "total": budget.total,
        "reserve": budget.reserve,
        "used": budget.used,
        "framing": budget.framing,
        "slots": [
            {
                "name": slot.name,
                "granted": slot.granted,
                "own": slot.base,
                "borrowed": slot.borrowed,
                "lent": slot.lent,
                "used": slot.used,
                "items": slot.items,
            }
            for slot in budget.slots
        ],
    }


def _budget_from_json(value: Mapping[str, Any]) -> Budget:
    names = ("name", "granted", "used", "items")
    slots = tuple(SlotBudget(base=slot["own"], **{name: slot[name] for name in names}) for slot in value["slots"])
    return Budget(**{**value, "slots": slots})


def _prefix_to_json(prefix: Prefix) -> Json:
    return {"hash": prefix.hash, "chars": prefix.chars, "tokens": prefix.tokens}


def notes_to_json(notes: Notes) -> Json:
    """Return the notes on a context as JSON values, without empty ones."""
    refresh = notes.refresh
    return {
        **({"turns": notes.turns} if notes.turns else {}),
        **({"refresh": {"reason": refresh.reason, "previous": refresh.previous}} if refresh else {}),
        **({} if notes.used is None else {"used": list(notes.used)}),
        **({} if notes.marks is None else {"marks": dict(notes.marks)}),
    }


def _notes_from_json(value: Mapping[str, Any]) -> Notes:
    refresh, used = value.get("refresh"), value.get("used")
    return Notes(
        turns=value.get("turns", 0),
        refresh=RefreshNote(**refresh) if refresh else None,
        used=None if used is None else tuple(used),
        marks=value.get("marks"),
    )


# --- candidates ----------------------------------------------------------------------------------------------------


def candidate_to_json(entry: AnyCandidate) -> Json:
    """Return a candidate as JSON values."""
    value = _values(entry, _CANDIDATE_FIELDS)
    if entry.inherited_from is not None:
        # Stored receipts have the key `via`, which stays.
        value |= {"via": entry.inherited_from.id, "via_version": entry.inherited_from.version}
    if entry.stale:
        value["stale"] = True
    if entry.text is not None:
        value["text"] = entry.text
    if entry.passage:
        value["passage"] = [list(span) for span in entry.passage]
    if entry.versions is not None:
        value["versions"] = list(entry.versions)
    if entry.conflict is not None:
        value |= {"conflict": entry.conflict.id, "conflict_version": entry.conflict.version}
    if entry.is_kept:
        if entry.in_parts:
            value["in_parts"] = True
        return {**value, "kept": True, "level": entry.level, "shown_tokens": entry.tokens, "rank": entry.rank}
    return {**value, "kept": False, **_values(entry, _OMISSION_FIELDS)}


def _candidate_from_json(value: Mapping[str, Any]) -> AnyCandidate:
    versions = value.get("versions")
    common: Json = {
        **{name: value[name] for name in _CANDIDATE_FIELDS},
        "inherited_from": _ref_from_json(value, "via"),
        "stale": value.get("stale", False),
        "text": value.get("text"),
        "passage": tuple((start, end) for start, end in value.get("passage", ())),
        "versions": None if versions is None else tuple(versions),
        "conflict": _ref_from_json(value, "conflict"),
    }
    if value["kept"]:
        return KeptCandidate(
            **common,
            level=value["level"],
            tokens=value["shown_tokens"],
            rank=value["rank"],
            in_parts=value.get("in_parts", False),
        )
    omission = {_OLD_NAMES.get(name, name): setting for name, setting in value.items()}
    omission["reason"] = _OLD_NAMES.get(value["reason"], value["reason"])
    return LeftOutCandidate(**common, **{name: omission[name] for name in _OMISSION_FIELDS})


def _ref_from_json(value: Mapping[str, Any], name: str) -> RecordRef | None:
    return RecordRef(value[name], value[f"{name}_version"]) if value.get(name) else None


# --- summaries -----------------------------------------------------------------------------------------------------


def summary_to_json(summary: ReceiptSummary) -> Json:
    """Return a summary as JSON values."""
    notes = {
        "turns": summary.notes.turns or None,
        "refresh": summary.notes.refresh or None,
        "used": summary.notes.used,
        "marks": None if summary.notes.marks is None else dict(summary.notes.marks),
    }
    return {
        "id": summary.id,
        "created": iso(summary.created),
        "now": summary.created,
        "query": summary.query,
        "profile": summary.profile,
        "scope": scope_to_json(summary.scope),
        **_values(summary, _SUMMARY_FIELDS),
        "prefix": {"hash": summary.prefix_hash, "tokens": summary.prefix_tokens},
        "relevance": summary.relevance,
        "precision": summary.precision,
        "notes": {name: value for name, value in notes.items() if value is not None},
        "warnings": summary.warnings,
        **({"forgotten": summary.forgotten} if summary.forgotten else {}),
    }


def summary_from_json(text: str) -> ReceiptSummary:
    """Return the summary of a stored JSON text."""
    value = json.loads(text)
    value["created"] = value.pop("now")
    value.pop("variant", None)  # receipts of 0.1 have it
    prefix = value.pop("prefix")
    value |= {"prefix_hash": prefix["hash"], "prefix_tokens": prefix["tokens"]}
    return ReceiptSummary(**{**value, "scope": Scope(**value["scope"]), "notes": NoteCounts(**value["notes"])})


# --- contexts ------------------------------------------------------------------------------------------------------


def context_to_json(context: Context) -> Json:
    """Return a context as JSON values. They have no times, so that the same context has the same bytes."""
    return {
        "schema_version": SCHEMA_VERSION,
        "id": context.id,
        "text": context.text,
        "messages": context.messages(),
        "tokens": context.tokens,
        "budget": budget_to_json(context.budget),
        "sections": [{"name": s.name, "content": s.content, "source": s.source} for s in context.sections],
        "items": [
            {
                "id": item.id,
                "kind": item.kind,
                "slot": item.section,
                "level": item.level,
                "tokens": item.tokens,
                "score": item.score,
                "features": dict(item.candidate.features),
                "source": item.candidate.source,
            }
            for item in context.items
        ],
        "left_out": [
            {
                "id": omission.id,
                "kind": omission.kind,
                "slot": omission.section,
                "score": omission.score,
                "reason": omission.reason,
                "detail": omission.detail,
                "needs": {"tokens": omission.needs_tokens, "relevance": omission.needs_relevance},
            }
            for omission in context.left_out
        ],
        "truncated": context.truncated,
        "considered": dict(context.considered),
        "profile": context.profile,
        "prefix": _prefix_to_json(context.prefix),
        "warnings": list(context.warnings),
    }
