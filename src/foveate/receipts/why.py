"""Explain why an item is in a past context, or why it is not.

A receipt has the candidates that the sources returned. For any other record the reason is derived from the request and the
store: no slot for its kind, a filter, no shared word, or a rank beyond the limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from foveate.errors import NotFound
from foveate.memory.relations import load_relation
from foveate.pipeline.relevance import contributions
from foveate.pipeline.sources import Source, SourceReport
from foveate.pipeline.sources.base import excluding_filter, limit_of
from foveate.pipeline.sources.standing import applies_always
from foveate.receipts.parts import AnyCandidate
from foveate.receipts.receipt import Receipt
from foveate.records.kinds import kind_of
from foveate.store.protocol import Query, Reader, SearchGroup
from foveate.store.sql import postings
from foveate.store.sql.search import expansions_for
from foveate.text import analysis
from foveate.text.query_expansion import expand_query
from foveate.types import Filters, Profile, Record, Slot

MAX_RANK = 100_000
"""Ranks among which a record is searched for."""

MAX_SHOWN_WORDS = 5

Explanation = tuple[str, str]
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
    relevance_parts: Mapping[str, float] = field(default_factory=dict)
    """What each feature adds to how strongly a record matches, on which its relevance depends."""

    @property
    def included(self) -> bool:
        """Return whether the context shows the item."""
        return self.candidate is not None and self.candidate.is_kept

    @property
    def needs_tokens(self) -> int:
        """Return the number of further tokens with which it would have been shown."""
        return 0 if self.candidate is None or self.candidate.is_kept else self.candidate.needs_tokens

    @property
    def needs_relevance(self) -> float:
        """Return the further relevance with which it would have been shown."""
        return 0.0 if self.candidate is None or self.candidate.is_kept else self.candidate.needs_relevance

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
        relevance_parts=contributions(entry.features) if "answerable" in entry.features else {},
    )


def why_not_considered(receipt: Receipt, id: str, reader: Reader, sources: Mapping[str, Source]) -> Why:
    """Explain why no source returned a record. Raises NotFound for an id that the scope cannot see.

    `sources` are those of the engine by name. The ids of another memory's records begin with the name of its source.
    """
    record = reader.get([id]).get(id) or load_relation(reader, id)
    if record is None:
        name, colon, _ = id.partition(":")
        report = next((report for report in receipt.sources if report.source == name), None)
        is_external = name in sources and sources[name].can_recall
        if not colon or (report is None and not is_external):
            raise NotFound(f"No record {id!r} in this scope.")
        reason, clause = _not_returned(name, report)
    else:
        reason, clause = _reason(receipt, record, reader, sources)
    kind = "" if record is None else record.kind
    return Why(context=receipt.id, id=id, kind=kind, reason=reason, sentence=f"not considered: {clause}")


def _not_returned(source: str, report: SourceReport | None) -> Explanation:
    if report is None:
        return "no slot", f"no slot of the profile asks source {source!r}"
    if report.error:
        return "source failed", f"source {source!r} failed ({report.error})"
    return "not found", f"source {source!r} returned {report.found} for the query, but not this one"


def _reason(receipt: Receipt, record: Record, reader: Reader, sources: Mapping[str, Source]) -> Explanation:
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
    return _not_related(receipt, record, slots[0], sources.get(slots[0].source))


def _not_related(receipt: Receipt, record: Record, slot: Slot, source: Source | None) -> Explanation:
    """Return why the source of a slot, which selects by a relation and has no ranking, did not return a record."""
    session = receipt.request.scope.session
    is_event = kind_of(record.kind).is_append_only
    if slot.source == "recent" and is_event and session and record.scope.session not in (None, session):
        return "other session", "it belongs to another session, and no source returned it from there"
    limit = limit_of(slot, receipt.profile)
    beyond = f"it is beyond the {limit} that slot {slot.name!r} asks {slot.source!r} for"
    is_full = _candidate_count(receipt, slot) >= limit
    if source is not None and source.unrelated:
        return "unrelated", f"{source.unrelated}, or {beyond}" if is_full else source.unrelated
    return ("limit", beyond) if is_full else ("not found", f"source {slot.source!r} did not return it")


def _candidate_count(receipt: Receipt, slot: Slot) -> int:
    """Return how many candidates the source of a slot returned for it."""
    report = next((report for report in receipt.sources if report.source == slot.source), None)
    if report is not None and len(report.slots) == 1:
        return report.found
    return sum(entry.slot == slot.name and entry.source == slot.source for entry in receipt.candidates)


def _rank(receipt: Receipt, record: Record, profile: Profile, slot: Slot, reader: Reader, filters: Filters) -> Explanation:
    terms = receipt.signals.terms
    also = (
        expansions_for(kind_of(record.kind).partition, expand_query(receipt.request.query))
        if profile.expansion_weight
        else {}
    )
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
