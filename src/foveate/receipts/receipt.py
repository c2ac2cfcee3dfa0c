"""Receipts: why each item is in a context, and why the others are not.

Comes in: what the stages decided. Goes out: one document that answers `why`, `why_not`, `diff`, validation and replay. A
receipt holds ids, versions and hashes, never the texts of records; forgetting a record empties it out of every receipt.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from math import fsum
from typing import Any

from foveate.clock import iso
from foveate.code.model import is_shown_in_parts
from foveate.errors import NotFound
from foveate.memory.relations import KIND as RELATION
from foveate.memory.relations import ends_of
from foveate.pipeline.context import Context
from foveate.pipeline.request import request_json
from foveate.pipeline.run import Run, text_hash
from foveate.pipeline.signals import ALIAS_WEIGHT
from foveate.pipeline.sources.parts import stored_id
from foveate.records.kinds import RENDERER_VERSION
from foveate.store.protocol import StoredReceipt
from foveate.types import Candidate, Filters, Frame, Item, LeftOut, Profile, Record, Request, Scope, Signals, Slot

SCHEMA = 1
FORGOTTEN = "[forgotten]"

AROUND = ("always", "text", "project", "docs", "repo_map", "neighbours")
"""Sources of what is around an answer and not found for it: rules and pins, system prompts, the codebase, the map."""

SHOWN = 1_000
"""Characters of a question in a line: it may be a whole task, and a list shows its beginning."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """A receipt as a JSON document."""

    document: Mapping[str, Any]

    @property
    def id(self) -> str:
        return str(self.document["id"])

    @property
    def candidates(self) -> Sequence[Mapping[str, Any]]:
        return self.document["candidates"]  # type: ignore[no-any-return]

    def of(self, id: str) -> Mapping[str, Any] | None:
        """The entry of a record: the kept one, where it was a candidate in several slots."""
        entries = [entry for entry in self.candidates if entry["id"] == id]
        return next((entry for entry in entries if entry["kept"]), entries[0] if entries else None)


def write(facts: Run) -> Receipt:
    """The document of a computed context."""
    context = facts.context
    kept = {_key(item.candidate): item for item in context.items}
    lost = {_key(omission.candidate): omission for omission in context.left_out}
    entries = [_entry(candidate, kept, lost) for candidate in facts.candidates]
    return Receipt(
        {
            "schema_version": SCHEMA,
            "id": context.id,
            "created": iso(facts.request.now),
            "request": request_json(facts.request),
            "signals": _signals(context.signals),
            "profile": profile_json(facts.profile),
            "revision": facts.revision,
            "renderer": RENDERER_VERSION,
            "measured_by": facts.measured_by,
            "sources": [asdict(report) for report in facts.reports],
            "candidates": entries,
            "budget": budget_json(context),
            "prefix": asdict(context.prefix),
            "text_hash": text_hash(context.text),
            "warnings": list(context.warnings),
            "ms": round((facts.ended - facts.began) * 1000, 3),
        }
    )


def pack(receipt: Receipt, created: int) -> StoredReceipt:
    """A receipt as the store keeps it."""
    body = zlib.compress(_json(receipt.document).encode(), 3)
    shown = [entry["id"] for entry in receipt.candidates if entry["kept"]]
    kept = tuple(dict.fromkeys(part for id in shown for part in ends_of(id) or (id,)))  # a relation by its entities
    return StoredReceipt(
        receipt.id, created, body, kept, receipt.document["request"]["scope"]["session"], _json(line(receipt))
    )


def _json(document: Mapping[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def line(receipt: Receipt) -> dict[str, Any]:
    """What lists, a session's timeline and the metrics show of a context: figures, no candidate and no record's id."""
    document = receipt.document
    asked, budget = document["request"], document["budget"]
    kept = [entry for entry in receipt.candidates if entry["kept"]]
    return {
        "id": receipt.id,
        "created": document["created"],
        "now": asked["now"],
        "query": asked["query"] if len(asked["query"]) <= SHOWN else f"{asked['query'][:SHOWN]}…",
        "profile": document["profile"]["name"],
        "scope": asked["scope"],
        "tokens": budget["used"],
        "total": budget["total"],
        "reserve": budget["reserve"],
        "framing": budget["framing"],
        "slots": {slot["name"]: slot["used"] for slot in budget["slots"] if slot["used"]},
        "items": len(kept),
        "left_out": len(receipt.candidates) - len(kept),
        "ms": document["ms"],
        "text_hash": document["text_hash"],
        "prefix": {name: document["prefix"][name] for name in ("hash", "tokens")},
        "relevance": _relevance(kept),
        "precision": _precision(receipt),
        "notes": _counted(document.get("notes", {})),
        "warnings": len(document["warnings"]),
        **({"forgotten": document["forgotten"]} if document.get("forgotten") else {}),
    }


def recalled(receipt: Receipt) -> list[str]:
    """The ids of the items that were chosen for the question: not the rules, which are always there."""
    return list(
        dict.fromkeys(entry["id"] for entry in receipt.candidates if entry["kept"] and entry["source"] not in AROUND)
    )


def _relevance(kept: Sequence[Mapping[str, Any]]) -> float | None:
    """The mean calibrated relevance of what was found for the question."""
    found = [entry["features"].get("relevance", 0.0) for entry in kept if entry["source"] not in AROUND]
    return round(fsum(found) / len(found), 6) if found else None


def _precision(receipt: Receipt) -> float | None:
    """The share of found items that an answer used, or a person called useful; None where nobody said."""
    notes = receipt.document.get("notes", {})
    if not ("used" in notes or "marks" in notes):
        return None
    found = recalled(receipt)
    useful = {id for id, mark in notes.get("marks", {}).items() if mark == "useful"} | set(notes.get("used", ()))
    return round(len(useful.intersection(found)) / len(found), 6) if found else None


def _counted(notes: Mapping[str, Any]) -> dict[str, Any]:
    """Notes without ids: turns, why the context was computed anew, how many items were used, and of each mark how many."""
    counted = {
        "turns": notes.get("turns"),
        "refresh": notes.get("refresh", {}).get("reason"),
        "used": len(notes["used"]) if "used" in notes else None,
        "marks": dict(Counter(notes["marks"].values())) if "marks" in notes else None,
    }
    return {name: value for name, value in counted.items() if value is not None}


def noted(receipt: Receipt, notes: Mapping[str, Any]) -> Receipt:
    """A receipt with what became of its context: turns that it served, why it was computed anew, what an answer used."""
    if not notes:
        return receipt
    return Receipt({**receipt.document, "notes": merged(receipt.document.get("notes", {}), notes)})


def merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Two notes on one context: turns add up, used records and marks join, and the later reason holds."""
    out = {**old, **new}
    if "turns" in old and "turns" in new:
        out["turns"] = old["turns"] + new["turns"]
    if "used" in old and "used" in new:
        out["used"] = list(dict.fromkeys((*old["used"], *new["used"])))
    if "marks" in old and "marks" in new:
        out["marks"] = {**old["marks"], **new["marks"]}
    return out


def unpack(body: bytes) -> Receipt:
    return Receipt(json.loads(zlib.decompress(body)))


def scrub(body: bytes, ids: frozenset[str], words: frozenset[str] = frozenset()) -> tuple[bytes, str] | None:
    """A receipt without these records, and without the question that found or quotes them, and its line; None where there
    is nothing.

    `words` are terms that no other record holds: a question with one of them quotes what is to be forgotten.
    """
    document = json.loads(zlib.decompress(body))
    names = ("id", "detail", "overruled_by", "via")

    def free(*given: str | None) -> bool:
        """Whether none of these is to be forgotten, nor an entity whose relation it is."""
        return ids.isdisjoint(part for id in given if id for part in (stored_id(id), *ends_of(id)))

    left = [entry for entry in document["candidates"] if free(*(entry.get(name) for name in names))]
    gone = len(document["candidates"]) - len(left)
    contradicted = [entry for entry in left if not free(entry.get("conflict"))]
    for entry in contradicted:  # it stands alone now, and says so
        del entry["conflict"], entry["conflict_version"]
    signals, asked = document["signals"], document["request"]
    named = (*asked["filters"]["exclude"], *signals.get("entities", ()), asked.get("task"))
    if not gone and not contradicted and free(*named) and words.isdisjoint(signals.get("terms", ())):
        return None
    document["candidates"] = left
    notes = document.get("notes", {})
    if "used" in notes:
        notes["used"] = [id for id in notes["used"] if free(id)]
    if "marks" in notes:
        notes["marks"] = {id: mark for id, mark in notes["marks"].items() if free(id)}
    document["forgotten"] = document.get("forgotten", 0) + gone
    asked["query"] = FORGOTTEN
    if asked.get("code_query"):
        asked["code_query"] = FORGOTTEN
    asked["filters"]["exclude"] = []
    document["signals"] = {}
    return zlib.compress(_json(document).encode(), 3), _json(line(Receipt(document)))


# --- questions -----------------------------------------------------------------------------------------------------


def why(receipt: Receipt, id: str) -> dict[str, Any]:
    """Why a record is in this context, or why it is not, with its score taken apart."""
    entry = receipt.of(id)
    if entry is None:
        raise NotFound(f"{id!r} was no candidate of {receipt.id!r}. `foveate why-not` works out why.")
    parts = parts_of(entry, receipt.document["profile"]["weights"])
    return {"context": receipt.id, **entry, "score_parts": parts, "sentence": sentence(entry)}


def parts_of(entry: Mapping[str, Any], weights: Mapping[str, float]) -> dict[str, float]:
    """A candidate's score taken apart: what each feature adds, in the profile's order."""
    return {name: round(weight * entry["features"].get(name, 0.0), 6) for name, weight in weights.items()}


def sentence(entry: Mapping[str, Any]) -> str:
    """The decision on a candidate, in words."""
    if entry["kept"]:
        return f"kept in {entry['slot']!r} at level {entry['level']}, {entry['shown_tokens']} tokens, rank {entry['rank']}"
    needs = _needs(entry)
    detail = entry.get("detail") or ""
    words = {
        "budget": "left out: budget",
        "max_items": f"left out: max_items ({detail})",
        "min_score": f"left out: below min_score ({detail})",
        "duplicate": f"left out: duplicate of {detail}",
        "superseded": f"left out: superseded by {detail}" if detail else "left out: superseded",
        "disputed": f"left out: disputed by {detail}, which is more trusted" if detail else "left out: disputed",
        "not valid": f"left out: not valid at that time ({detail})",
        "excluded": f"left out: excluded {detail}",
        "untrusted": f"left out: untrusted ({detail}); a person can promote it",
    }[entry["reason"]]
    return f"{words}, in {entry['slot']!r}" + (f"; needs {needs}" if needs else "")


def _needs(entry: Mapping[str, Any]) -> str:
    parts = []
    if entry.get("needs_tokens"):
        parts.append(f"+{entry['needs_tokens']} tokens")
    if entry.get("needs_score"):
        parts.append(f"+{entry['needs_score']:.3f} score")
    return ", ".join(parts)


def diff(one: Receipt, other: Receipt) -> dict[str, Any]:
    """What changed between two contexts: added, withdrawn, moved, re-detailed."""
    before = {entry["id"]: entry for entry in one.candidates if entry["kept"]}
    after = {entry["id"]: entry for entry in other.candidates if entry["kept"]}
    both = [(before[id], after[id]) for id in after if id in before]
    return {
        "from": one.id,
        "to": other.id,
        "added": [_short(entry) for id, entry in after.items() if id not in before],
        "withdrawn": [_short(entry) for id, entry in before.items() if id not in after],
        "moved": [
            {"id": new["id"], "from": _place(old), "to": _place(new)} for old, new in both if _place(old) != _place(new)
        ],
        "re_detailed": [
            {"id": new["id"], "from": old["level"], "to": new["level"]} for old, new in both if old["level"] != new["level"]
        ],
        "changed": [
            {"id": new["id"], "from": old["version"], "to": new["version"]}
            for old, new in both
            if old["version"] != new["version"]
        ],
        "tokens": other.document["budget"]["used"] - one.document["budget"]["used"],
        "same_prefix": one.document["prefix"]["hash"] == other.document["prefix"]["hash"],
    }


def _place(entry: Mapping[str, Any]) -> str:
    return f"{entry['slot']} {entry['rank']}"


def _short(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entry[name] for name in ("id", "kind", "slot", "level", "shown_tokens", "score")}


# --- JSON forms ----------------------------------------------------------------------------------------------------


def budget_json(context: Context) -> dict[str, Any]:
    """The ledger, as the command line and the receipt show it."""
    shown = {section.name: len(section.items) for section in context.sections}
    return {
        "total": context.budget.total,
        "reserve": context.budget.reserve,
        "used": context.budget.used,
        "framing": context.budget.framing,
        "slots": [
            {
                "name": grant.slot,
                "granted": grant.granted,
                "own": grant.own,
                "borrowed": grant.borrowed,
                "lent": grant.lent,
                "used": grant.used,
                "items": shown.get(grant.slot, 0),
            }
            for grant in context.budget.grants
        ],
    }


def context_json(context: Context) -> dict[str, Any]:
    """A context as one document. Times are in the receipt only, so that the same context is the same bytes."""
    return {
        "schema_version": SCHEMA,
        "id": context.id,
        "text": context.text,
        "messages": context.messages(),
        "tokens": context.tokens,
        "budget": budget_json(context),
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
                "needs": {"tokens": omission.needs_tokens, "score": omission.needs_score},
            }
            for omission in context.left_out
        ],
        "truncated": context.truncated,
        "considered": dict(context.considered),
        "profile": context.profile,
        "prefix": asdict(context.prefix),
        "warnings": list(context.warnings),
    }


def profile_json(profile: Profile) -> dict[str, Any]:
    values = {item.name: getattr(profile, item.name) for item in fields(Profile)}
    slots = [{name: getattr(slot, name) for name in _SLOT} for slot in profile.slots]
    return {**values, "slots": slots, "frame": asdict(profile.frame) if profile.frame else None}


_SLOT = tuple(item.name for item in fields(Slot))


def profile_from_json(value: Mapping[str, Any]) -> Profile:
    slots = tuple(
        Slot(**{**slot, "kinds": tuple(slot["kinds"]), "also": tuple((name, n) for name, n in slot.get("also", ()))})
        for slot in value["slots"]
    )
    frame = value.get("frame")
    return Profile(**{**value, "slots": slots, "frame": _frame_from_json(frame) if frame else None})


def _frame_from_json(value: Mapping[str, Any]) -> Frame:
    parts: dict[str, Any] = {name: tuple(part) if isinstance(part, list) else part for name, part in value.items()}
    return Frame(**{**parts, "triggers": {name: tuple(texts) for name, texts in value["triggers"].items()}})


def filters_from_json(value: Mapping[str, Any]) -> Filters:
    parts: dict[str, Any] = {name: tuple(part) if isinstance(part, list) else part for name, part in value.items()}
    return Filters(**parts)


def scope_from_json(value: Mapping[str, Any]) -> Scope:
    return Scope(**value)


def scope_within(receipt: Receipt, mine: Scope) -> Scope:
    """A receipt's scope, within the caller's own session and task: a receipt opens no wall."""
    asked = scope_from_json(receipt.document["request"]["scope"])
    return replace(asked, session=mine.session or asked.session, task=mine.task or asked.task)


def request_from_json(value: Mapping[str, Any], scope: Scope, task: Record | None) -> Request:
    """A past request as it was, seen from a scope; without what was handed in, which the caller has."""
    apart = ("scope", "task", "filters", "given")
    plain = {item.name: value[item.name] for item in fields(Request) if item.name in value and item.name not in apart}
    return Request(**plain, scope=scope, task=task, filters=filters_from_json(value["filters"]))


def _signals(signals: Signals) -> dict[str, Any]:
    """What the question said. Entities by id, and no words that only their records hold: those can be forgotten."""
    return {
        "keywords": list(signals.keywords),
        "terms": {term: weight for term, weight in signals.terms.items() if weight != ALIAS_WEIGHT},
        "paths": list(signals.paths),
        "symbols": list(signals.symbols),
        "entities": list(signals.entities),
        "intent": signals.intent,
        "event_types": list(signals.event_types),
        "domains": list(signals.domains),
        "task_type": signals.task_type,
        "complexity": signals.complexity,
        "because": signals.because,
        "frame": signals.frame,
        "frame_because": signals.frame_because,
        "input": signals.input,
        "input_because": signals.input_because,
    }


_Key = tuple[str, str, float]


def _key(candidate: Candidate) -> _Key:
    return (candidate.record.id, candidate.slot, candidate.score)


def _entry(candidate: Candidate, kept: dict[_Key, Item], lost: Mapping[_Key, LeftOut]) -> dict[str, Any]:
    record = candidate.record
    entry: dict[str, Any] = {
        "id": record.id,
        "version": record.version,
        "hash": record.hash,
        "kind": record.kind,
        "slot": candidate.slot,
        "source": candidate.source,
        "features": dict(candidate.features),
        "score": candidate.score,
        "overruled_by": candidate.overruled_by,
    }
    if candidate.via is not None:
        entry |= {"via": candidate.via.id, "via_version": candidate.via.version}
    if candidate.stale:
        entry["stale"] = True
    if candidate.source == "calibration":  # worked out for the call, and in no store: its figures are kept here
        entry["text"] = record.text
    if record.kind == RELATION and "versions" in record.data:
        entry["versions"] = list(record.data["versions"])
    if candidate.conflict is not None:
        entry |= {"conflict": candidate.conflict.id, "conflict_version": candidate.conflict.version}
    item = kept.pop(_key(candidate), None)  # once: the same record brought twice is kept once
    if item is not None:
        if record.kind == "file" and item.level == "full" and is_shown_in_parts(record.text):
            entry["in_parts"] = True
        return {**entry, "kept": True, "level": item.level, "shown_tokens": item.tokens, "rank": item.rank}
    omission = lost[_key(candidate)]
    return {
        **entry,
        "kept": False,
        "reason": omission.reason,
        "detail": omission.detail,
        "needs_tokens": omission.needs_tokens,
        "needs_score": omission.needs_score,
    }
