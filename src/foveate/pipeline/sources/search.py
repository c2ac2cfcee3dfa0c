"""What the words of the request find, and its vector where there is an embedder: one query for all slots.

Lexical and vector relevance are joined by a weighted sum. Rank fusion with a weak list loses where a small weight does
not, so the weight is profile data and small. Where the profile gives `neighbour` a weight, what was said right before and
after a strong hit of the same session comes along: an answer seldom repeats the words of the question it was given to.
Where it gives `session` one, what is of a session that answers much of the question gains by it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from foveate.pipeline.sources.base import SlotRequest, Source, SourceContext
from foveate.pipeline.sources.sessions import answered
from foveate.records.kinds import DISPUTED_BY, SUPERSEDED_BY
from foveate.store.protocol import Hit, Query, SearchGroup, SessionNeighbor
from foveate.text.query_expansion import synonyms_only
from foveate.types import Candidate, ExpansionTerm, Profile

STRONG = 50
"""Hits of a slot whose neighbours are looked up, best first. Twice as many give the same and take twice the time."""

HEARD = 100
"""Hits of a slot that tell what their sessions are about, best first. All of them tell no more and take longer."""

NEARNESS = (1.0, 0.6, 0.3)
"""What the relevance of a hit is worth one place from it, two and three."""


class Search(Source):
    """Records found by the words of the request and, with an embedder, by its vector."""

    name = "search"

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        signals, profile = context.signals, context.profile
        query = Query(
            signals.terms,
            profile.fields,
            signals.embedding,
            context.request.filters,
            words_for(profile, signals.expansions),
            profile.expansion_weight,
        )
        found = context.reader.search(query, [SearchGroup(request.slot.kinds, request.limit) for request in requests])
        beaten = [hit.record.id for hits in found for hit in hits if hit.record.status in ("superseded", "disputed")]
        links = context.reader.links(beaten, [SUPERSEDED_BY, DISPUTED_BY]) if beaten else []
        overruled = {link.src: link.dst for link in links}
        task = context.request.task.id if context.request.task else ""
        for request, hits in zip(requests, found, strict=True):
            candidates = [
                Candidate(
                    record=hit.record,
                    slot=request.slot.name,
                    source=self.name,
                    overruled_by=overruled.get(hit.record.id),
                    features=relevance(hit, profile.vector_weight),
                )
                for hit in hits
                if hit.record.id != task  # a task is not related to itself
            ]
            yield from _in_sessions(candidates, query, request, context)


def words_for(profile: Profile, related: Mapping[str, ExpansionTerm]) -> Mapping[str, ExpansionTerm]:
    """All other words where the profile reads talks, and weighs what their sessions say; else those that say the same."""
    return related if profile.weights.get("session") else synonyms_only(related)


def relevance(hit: Hit, vector_weight: float) -> dict[str, float]:
    """The relevance of a hit and what it is made of."""
    if hit.vector is None:
        return {"relevance": hit.lexical}
    joined = (1 - vector_weight) * hit.lexical + vector_weight * hit.vector
    return {"relevance": joined, "lexical": hit.lexical, "vector": hit.vector}


def _in_sessions(
    candidates: Sequence[Candidate], query: Query, request: SlotRequest, context: SourceContext
) -> Iterator[Candidate]:
    """The same candidates with what their sessions say for them, as far as the profile weighs it."""
    weights = context.profile.weights
    holding = [candidate for candidate in candidates if candidate.record.status == "active"]
    about = answered([candidate.record for candidate in holding[:HEARD]], query) if weights.get("session") else {}
    every = _with_neighbours(candidates, holding[:STRONG], request, context) if weights.get("neighbour") else candidates
    for candidate in every:
        worth = about.get(candidate.record.scope.session or "")
        yield replace(candidate, features={**candidate.features, "session": worth}) if worth else candidate


def _with_neighbours(
    candidates: Sequence[Candidate], best: Sequence[Candidate], request: SlotRequest, context: SourceContext
) -> Iterator[Candidate]:
    """The same candidates, and those that stand beside the best of them, each with a `neighbour` feature."""
    strong = {c.record.id: c.features["relevance"] for c in best if c.record.scope.session}
    filters = context.request.filters
    places = context.reader.session_neighbors(list(strong), request.slot.kinds, len(NEARNESS), filters) if strong else []
    gained = neighbour(places, strong)
    known = {candidate.record.id for candidate in candidates}
    for candidate in candidates:
        gain = gained.get(candidate.record.id)
        yield replace(candidate, features={**candidate.features, "neighbour": gain}) if gain else candidate
    for record in {place.record.id: place.record for place in places}.values():
        if record.id not in known:
            yield Candidate(
                record=record, slot=request.slot.name, source=Search.name, features={"neighbour": gained[record.id]}
            )


def neighbour(places: Sequence[SessionNeighbor], strong: dict[str, float]) -> dict[str, float]:
    """How much of the question is answered around each record: the relevance of its neighbours, by nearness, at most 1."""
    gained: dict[str, float] = defaultdict(float)
    for place in places:
        gained[place.record.id] += strong[place.anchor_id] * NEARNESS[abs(place.offset) - 1]
    return {id: min(1.0, gain) for id, gain in gained.items()}
