"""Search: one query for all slots, by the words of the request and, with an embedder, by its vector.

Lexical and vector relevance are joined by a weighted sum. Rank fusion was tried: with a weak list it loses relevance that a
small weight keeps. So the weight is part of the profile, and small.

The messages next to a good hit in the same session become candidates too, because an answer seldom repeats the words of its
question. Each hit also gets the score of its session, because an answer is often spread over several messages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from foveate.pipeline.sources.base import SlotRequest, Source, SourceContext
from foveate.pipeline.sources.sessions import session_scores
from foveate.records.kinds import DISPUTED_BY, SUPERSEDED_BY
from foveate.store.protocol import Hit, Query, SearchGroup, SessionNeighbor
from foveate.types import Candidate

MAX_NEIGHBOUR_SEEDS = 50
"""Best hits of a slot whose neighbours are looked up. Twice as many give the same results in twice the time."""

MAX_SESSION_HITS = 100
"""Best hits of a slot from which sessions are scored. All of them give no better scores and take longer."""

NEIGHBOUR_WEIGHTS = (1.0, 0.6, 0.3)
"""Shares of the match of a hit that messages one, two and three places away get."""


class Search(Source):
    """Records that match the words of the request or its vector."""

    name = "search"

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        signals, profile = context.signals, context.profile
        query = Query(
            signals.terms,
            profile.fields,
            signals.embedding,
            context.request.filters,
            signals.expansions,
            profile.expansion_weight,
        )
        groups = [SearchGroup(request.slot.kinds, request.limit) for request in requests]
        hits_by_group = context.reader.search(query, groups)
        outdated = [
            hit.record.id for hits in hits_by_group for hit in hits if hit.record.status in ("superseded", "disputed")
        ]
        links = context.reader.links(outdated, [SUPERSEDED_BY, DISPUTED_BY]) if outdated else []
        overruled_by = {link.src: link.dst for link in links}
        task = context.request.task.id if context.request.task else ""
        for request, hits in zip(requests, hits_by_group, strict=True):
            candidates = [
                Candidate(
                    record=hit.record,
                    slot=request.slot.name,
                    source=self.name,
                    overruled_by=overruled_by.get(hit.record.id),
                    features=match_features(hit, profile.vector_weight),
                )
                for hit in hits
                if hit.record.id != task  # the task itself has a slot of its own
            ]
            candidates += _rest(candidates, request, context) if request.slot.fill == "all" else []
            yield from _with_session_features(candidates, query, request, context)


def _rest(found: Sequence[Candidate], request: SlotRequest, context: SourceContext) -> list[Candidate]:
    """Return the latest records that the search did not find, newest first, for a slot that shows all that fits."""
    ids = {candidate.record.id for candidate in found}
    latest = context.reader.recent(request.slot.kinds, request.limit, context.request.filters)
    return [
        Candidate(record=record, slot=request.slot.name, source=Search.name, features={"match": 0.0})
        for record in latest
        if record.id not in ids and record.status == "active"
    ]


def match_features(hit: Hit, vector_weight: float) -> dict[str, float]:
    """Return how well a hit matches by words and meaning, and the parts of that."""
    coverage = {} if hit.coverage is None else {"coverage": hit.coverage}
    if hit.vector is None:
        return {"match": hit.lexical, **coverage}
    vector = max(0.0, hit.vector)  # a vector that points away says no more than one that has nothing in common
    joined = (1 - vector_weight) * hit.lexical + vector_weight * vector
    return {"match": joined, "lexical": hit.lexical, "vector": vector, **coverage}


def _with_session_features(
    candidates: Sequence[Candidate], query: Query, request: SlotRequest, context: SourceContext
) -> Iterator[Candidate]:
    """Add neighbours and the features `neighbour` and `session` to what was found in sessions."""
    active = [candidate for candidate in candidates if candidate.record.status == "active"]
    if not any(candidate.record.scope.session for candidate in active):
        yield from candidates
        return
    candidates = list(_with_neighbours(candidates, active[:MAX_NEIGHBOUR_SEEDS], request, context))
    scores = session_scores([candidate.record for candidate in active[:MAX_SESSION_HITS]], query)
    for candidate in candidates:
        score = scores.get(candidate.record.scope.session or "")
        yield replace(candidate, features={**candidate.features, "session": score}) if score else candidate


def _with_neighbours(
    candidates: Sequence[Candidate], best: Sequence[Candidate], request: SlotRequest, context: SourceContext
) -> Iterator[Candidate]:
    """Return the candidates and the messages next to the best of them, with the feature `neighbour`."""
    seeds = {c.record.id: c.features["match"] for c in best if c.record.scope.session}
    neighbours: Sequence[SessionNeighbor] = ()
    if seeds:
        distance, filters = len(NEIGHBOUR_WEIGHTS), context.request.filters
        neighbours = context.reader.session_neighbors(list(seeds), request.slot.kinds, distance, filters)
    scores = neighbour_scores(neighbours, seeds)
    found = {candidate.record.id for candidate in candidates}
    for candidate in candidates:
        score = scores.get(candidate.record.id)
        yield replace(candidate, features={**candidate.features, "neighbour": score}) if score else candidate
    for record in {neighbour.record.id: neighbour.record for neighbour in neighbours}.values():
        if record.id not in found:
            features = {"neighbour": scores[record.id]}
            yield Candidate(record=record, slot=request.slot.name, source=Search.name, features=features)


def neighbour_scores(neighbours: Sequence[SessionNeighbor], seeds: Mapping[str, float]) -> dict[str, float]:
    """Return the matches of the hits near each record, weighted by distance, at most 1."""
    scores: defaultdict[str, float] = defaultdict(float)
    for neighbour in neighbours:
        scores[neighbour.record.id] += seeds[neighbour.anchor_id] * NEIGHBOUR_WEIGHTS[abs(neighbour.offset) - 1]
    return {id: min(1.0, score) for id, score in scores.items()}
