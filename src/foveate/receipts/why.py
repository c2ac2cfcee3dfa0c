"""Explain why an item is in a past context, or why it is not.

A receipt has the candidates that the sources returned. For any other record the reason is derived from the request and the
store: no slot for its kind, a filter, no shared word, or a rank beyond the limit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from foveate.errors import NotFound
from foveate.memory.relations import load_relation
from foveate.pipeline.sources import SourceReport
from foveate.pipeline.sources.base import excluding_filter, limit_of
from foveate.pipeline.sources.search import applicable_expansions
from foveate.pipeline.sources.standing import applies_always
from foveate.receipts.parts import AnyCandidate
from foveate.receipts.receipt import Receipt
from foveate.records.kinds import kind_of
from foveate.store.protocol import Query, Reader, SearchGroup
from foveate.store.sql import postings
from foveate.text import analysis
from foveate.text.query_expansion import expand_query
from foveate.types import Filters, Profile, Record, Slot

MAX_RANK = 100_000
"""Ranks among which a record is searched for."""

MAX_SHOWN_WORDS = 5

UNRELATED_CLAUSES = {
    "task": "it is not the task that the request is for",
    "dependencies": "no completed dependency of the task handed it on",
    "transitive": "no dependency of the task depended on it",
    "stack-root": "it is not the root of the task's tree",
    "stack-path": "it is not between the task and the root of its tree",
    "stack-siblings": "it is not a completed part of the same task",
    "working": "it is neither the current task nor an open thread",
    "frame": "it is not the frame that was chosen",
    "text": "the slot shows only the text of its profile",
    "entities": "the request does not name it, and ten others matter more",
    "relations": "no entity that the request names leads to it",
    "procedures": "the request does not meet all of its conditions",
    "censors": "the request does not concern its domain",
    "context_map": "no word, domain or file of the request is in its name, location or notes",
}
"""Source -> why it did not return a record, for sources that select by a relation and have no ranking."""

Reason = tuple[str, str]
"""A reason in one or two words, and as a clause of a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """The reason for which an item is in a context or not. `str()` gives it as a sentence."""

    context: str
    id: str
    kind: str
    reason: str
    """The reason for which it is left out, in one or two words; empty if it is included."""
    sentence: str
    candidate: AnyCandidate | None = None
    """Its entry in the receipt; None if no source returned it."""
    score_parts: Mapping[str, float] = field(default_factory=dict)
    """The share of each feature in the score of a candidate."""

    @property
    def included(self) -> bool:
        """Return whether the context shows the item."""
        return self.candidate is not None and self.candidate.is_kept

    @property
    def needs_tokens(self) -> int:
        """Return the number of further tokens with which it would have been shown."""
        return 0 if self.candidate is None or self.candidate.is_kept else self.candidate.needs_tokens

    @property
    def needs_score(self) -> float:
        """Return the further score with which it would have been shown."""
        return 0.0 if self.candidate is None or self.candidate.is_kept else self.candidate.needs_score

    def __str__(self) -> str:
        return self.sentence


def why_candidate(receipt: Receipt, entry: AnyCandidate) -> Why:
    """Explain the decision on a candidate."""
    return Why(
        context=receipt.id,
        id=entry.id,
        kind=entry.kind,
        reason="" if entry.is_kept else entry.reason,
        sentence=str(entry),
        candidate=entry,
        score_parts=entry.score_parts(receipt.profile.weights),
    )


def why_not_considered(receipt: Receipt, id: str, reader: Reader, external_sources: Collection[str] = ()) -> Why:
    """Explain why no source returned a record. Raises NotFound for an id that the scope cannot see.

    `external_sources` are the names of other memories; the ids of their records begin with such a name.
    """
    record = reader.get([id]).get(id) or load_relation(reader, id)
    if record is None:
        name, colon, _ = id.partition(":")
        report = next((report for report in receipt.sources if report.source == name), None)
        if not colon or (report is None and name not in external_sources):
            raise NotFound(f"No record {id!r} in this scope.")
        reason, clause = _not_returned(name, report)
    else:
        reason, clause = _reason(receipt, record, reader)
    kind = "" if record is None else record.kind
    return Why(context=receipt.id, id=id, kind=kind, reason=reason, sentence=f"not considered: {clause}")


def _not_returned(source: str, report: SourceReport | None) -> Reason:
    if report is None:
        return "no slot", f"no slot of the profile asks source {source!r}"
    if report.error:
        return "source failed", f"source {source!r} failed ({report.error})"
    return "not found", f"source {source!r} returned {report.found} for the query, but not this one"


def _reason(receipt: Receipt, record: Record, reader: Reader) -> Reason:
    profile, filters = receipt.profile, receipt.request.filters
    # From the most general reason to the most specific one: the first that applies explains the others away.
    if record.created > receipt.created:
        return "later", "it was written after this context was computed"
    if record.status in ("retired", "archived"):
        return record.status, f"it is {record.status}"
    if name := excluding_filter(record, filters):
        return "filtered", f"the request's filter on {name}"
    stands = applies_always(record, profile)
    slots = [slot for slot in profile.slots if _takes(slot, record) and (stands or slot.source != "always")]
    if not slots:
        return "no slot", f"no slot of profile {profile.name!r} asks for records of kind {record.kind!r}"
    failed = {report.source: report.error for report in receipt.sources if report.error}
    for source in (source for slot in slots for source in slot.sources):
        if source in failed:
            return "source failed", f"source {source!r} failed ({failed[source]})"
    if receipt.request.is_forgotten:
        return "forgotten", "the reason is unknown, because the query was removed with a forgotten record"
    searching = next((slot for slot in slots if slot.source == "search"), None)
    if searching is not None:
        return _rank(receipt, record, profile, searching, reader, filters)
    return _not_related(receipt, record, profile, slots[0])


def _not_related(receipt: Receipt, record: Record, profile: Profile, slot: Slot) -> Reason:
    if slot.source in UNRELATED_CLAUSES:
        return "unrelated", UNRELATED_CLAUSES[slot.source]
    if (
        slot.source == "recent"
        and record.scope.session
        and receipt.request.scope.session not in (None, record.scope.session)
    ):
        return "other session", "it belongs to another session, and others from there were more relevant"
    return "limit", f"it is beyond the {limit_of(slot, profile)} that slot {slot.name!r} asks {slot.source!r} for"


def _rank(receipt: Receipt, record: Record, profile: Profile, slot: Slot, reader: Reader, filters: Filters) -> Reason:
    terms = receipt.signals.terms
    also = applicable_expansions(profile, expand_query(receipt.request.query)) if profile.expansion_weight else {}
    shared = (terms.keys() | also.keys()) & {
        term for term, _, _ in postings.record_postings(record, kind_of(record.kind))[0]
    }
    if not shared:
        words = ", ".join(list(dict.fromkeys(analysis.words(record.text)))[:MAX_SHOWN_WORDS])
        return "no shared term", f"it shares no word with the query ({words})"
    # Words alone: a receipt does not store the vector of its query.
    query = Query(terms, profile.fields, None, filters, also, profile.expansion_weight)
    found = reader.search(query, [SearchGroup(slot.kinds, MAX_RANK)])[0]
    rank = next((n for n, hit in enumerate(found, 1) if hit.record.id == record.id), None)
    limit = limit_of(slot, profile)
    if rank is None:
        return "no shared term", "the words it shares with the query occur in nearly every record"
    if rank <= limit:
        return "later", "it was written or changed after this context was computed"
    return "limit", f"rank {rank}, beyond the {limit} that slot {slot.name!r} asks for; shares {', '.join(sorted(shared))}"


def _takes(slot: Slot, record: Record) -> bool:
    if slot.sources == ("given",) or (slot.pinned_only and not record.pinned):
        return False
    return not slot.kinds or record.kind in slot.kinds
