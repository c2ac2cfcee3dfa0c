"""Why a record was not even a candidate: worked out on demand, from the receipt's question and the state.

A receipt lists what the sources brought. This answers for the rest: no slot asks for its kind, a filter, no shared word,
or a rank beyond the source's limit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from foveate.clock import millis
from foveate.errors import NotFound
from foveate.memory.relations import load_relation
from foveate.pipeline.sources.base import filtered, limit_of
from foveate.pipeline.sources.search import words_for
from foveate.pipeline.sources.standing import applies_always
from foveate.receipts.receipt import FORGOTTEN, Receipt, filters_from_json, profile_from_json
from foveate.records.kinds import kind_of
from foveate.store.protocol import Query, Reader, SearchGroup
from foveate.store.sql import postings
from foveate.text import analysis
from foveate.text.query_expansion import expand_query
from foveate.types import Filters, Profile, Record, Slot

FAR = 100_000
"""How far down a ranking to look for a record."""


UNRELATED = {
    "task": "it is not the task that the request is for",
    "dependencies": "no completed dependency of the task handed it on",
    "transitive": "no dependency of the task depended on it",
    "stack-root": "it is not the root of the task's tree",
    "stack-path": "it is not between the task and the root of its tree",
    "stack-siblings": "it is no completed part of the same task",
    "working": "it is not the current task, nor an open thread",
    "frame": "it is not the frame that was chosen",
    "text": "the slot says only what its profile says",
    "entities": "the request does not name it, and ten others matter more",
    "relations": "no entity that the request names leads to it",
    "procedures": "the request does not meet all of its conditions",
    "censors": "the request does not speak of its domain",
    "context_map": "no word, domain or file of the request is in its name, location or notes",
}
"""Why a source that goes by relation, not by rank, did not bring a record."""


def why_not_considered(receipt: Receipt, id: str, reader: Reader, elsewhere: Collection[str] = ()) -> dict[str, Any]:
    """The reason, in one word and one sentence. An id of another scope is not found.

    `elsewhere`: sources that keep what they bring, and whose name begins its ids.
    """
    record = reader.get([id]).get(id) or load_relation(reader, id)
    if record is None:
        source, colon, _ = id.partition(":")
        asked = next((report for report in receipt.document["sources"] if report["source"] == source), None)
        if colon and (asked is not None or source in elsewhere):
            reason, sentence = _not_brought(source, asked)
            return {"context": receipt.id, "id": id, "kind": "", "kept": False, "reason": reason, "sentence": sentence}
        raise NotFound(f"No record {id!r} in this scope.")
    profile = profile_from_json(receipt.document["profile"])
    reason, sentence = _reason(receipt, record, profile, reader)
    return {"context": receipt.id, "id": id, "kind": record.kind, "kept": False, "reason": reason, "sentence": sentence}


def _not_brought(source: str, asked: Mapping[str, Any] | None) -> tuple[str, str]:
    if asked is None:
        return "no slot", f"not considered: no slot of the profile asks source {source!r}"
    if asked["error"]:
        return "source failed", f"not considered: source {source!r} failed ({asked['error']})"
    return "not found", f"not considered: source {source!r} brought {asked['found']} for the question, and not this"


def _reason(receipt: Receipt, record: Record, profile: Profile, reader: Reader) -> tuple[str, str]:
    request = receipt.document["request"]
    filters = filters_from_json(request["filters"])
    if record.created > millis(receipt.document["created"]):
        return "later", "not considered: it was written after this context was computed"
    if record.status in ("retired", "archived"):
        return record.status, f"not considered: it is {record.status}"
    if kept_out := filtered(record, filters):
        return "filtered", f"not considered: the request's filter on {kept_out}"
    stands = applies_always(record, profile)
    slots = [slot for slot in profile.slots if _takes(slot, record) and (stands or slot.source != "always")]
    if not slots:
        return (
            "no slot",
            f"not considered: no slot of profile {profile.name!r} asks for records of kind {record.kind!r}",
        )
    failed = {report["source"]: report["error"] for report in receipt.document["sources"] if report["error"]}
    for source in (source for slot in slots for source in slot.sources):
        if source in failed:
            return "source failed", f"not considered: source {source!r} failed ({failed[source]})"
    return _rank(receipt, record, profile, slots, reader, filters)


def _rank(
    receipt: Receipt, record: Record, profile: Profile, slots: list[Slot], reader: Reader, filters: Filters
) -> tuple[str, str]:
    if receipt.document["request"]["query"] == FORGOTTEN:
        return "forgotten", "cannot be worked out: the question was removed when one of its records was forgotten"
    terms = receipt.document["signals"].get("terms", {})
    searching = [slot for slot in slots if slot.source == "search"]
    if not searching and slots[0].source in UNRELATED:
        return "unrelated", f"not considered: {UNRELATED[slots[0].source]}"
    elsewhere = receipt.document["request"]["scope"].get("session") not in (None, record.scope.session)
    if not searching and slots[0].source == "recent" and record.scope.session and elsewhere:
        return "other session", "not considered: it is of another session, and not among what was most telling there"
    if not searching:
        slot = slots[0]
        return (
            "limit",
            f"not considered: beyond the {limit_of(slot, profile)} that slot {slot.name!r} asks {slot.source!r} for",
        )
    slot = searching[0]
    also = words_for(profile, expand_query(receipt.document["request"]["query"])) if profile.related_weight else {}
    shared = (terms.keys() | also.keys()) & {term for term, _, _ in postings.postings(record, kind_of(record.kind))[0]}
    if not shared:
        return "no shared term", f"not considered: it shares no word with the question ({_words(record)})"
    query = Query(terms, profile.fields, None, filters, also, profile.related_weight)
    found = reader.search(query, [SearchGroup(slot.kinds, FAR)])[0]
    rank = next((n for n, hit in enumerate(found, 1) if hit.record.id == record.id), None)
    limit = limit_of(slot, profile)
    if rank is None:
        return "no shared term", "not considered: the words it shares with the question occur in nearly every record"
    if rank <= limit:
        return "later", "not considered: it was written or changed after this context was computed"
    return (
        "limit",
        f"not considered: rank {rank}, beyond the {limit} that slot {slot.name!r} asks for; "
        f"shares {', '.join(sorted(shared))}",
    )


def _takes(slot: Slot, record: Record) -> bool:
    if slot.sources == ("given",) or (slot.pinned and not record.pinned):
        return False
    return not slot.kinds or record.kind in slot.kinds


def _words(record: Record) -> str:
    return ", ".join(list(dict.fromkeys(analysis.words(record.text)))[:5])
