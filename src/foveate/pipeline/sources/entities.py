"""Entities that the question mentions or that matter most, and relations between entities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foveate.memory.relations import KIND as RELATION
from foveate.memory.relations import relation_records, walk
from foveate.pipeline.sources.base import SlotRequest, Source, SourceContext, excluding_filter
from foveate.types import Candidate, Record

ENTITY = "entity"

MAX_SALIENT = 10
"""Entities that join whatever the question is; the budget decides."""

UNMENTIONED_FACTOR = 0.5

MAX_STEPS = 2
"""Steps from a mentioned entity: relations that are further away are seldom about it."""

MAX_RELATIONS = 100
"""Relations that are read: an entity with very many must not slow down every prompt."""


class Entities(Source):
    """The entities that the request mentions, and the most salient others.

    003 scores an entity by its salience, doubled if it is mentioned. Here the others count half, which keeps the order and
    stays within 0..1. The one score stands for relevance, recency and salience alike, because an entity has no age: so no
    profile's weights can change the order.
    """

    name = "entities"
    unrelated = "the request does not name it, and ten others matter more"

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        found = _mentioned_and_salient(context)
        for request in requests:
            if not request.slot.kinds or ENTITY in request.slot.kinds:
                for record, mentioned in found[: request.limit]:
                    yield self.candidate(request, record, mentioned=mentioned, **_one_score(record.salience * mentioned))

    def pool_size(self, context: SourceContext) -> int:
        return context.reader.count(ENTITY)


def _one_score(score: float) -> dict[str, float]:
    return {"relevance": score, "recency": score, "salience": score}


def _mentioned_and_salient(context: SourceContext) -> list[tuple[Record, float]]:
    """Return each entity once, with the factor for being mentioned."""
    reader, filters = context.reader, context.request.filters
    named = reader.get(list(context.signals.entities))
    mentioned = [named[id] for id in context.signals.entities if id in named and not excluding_filter(named[id], filters)]
    salient = reader.most_salient([ENTITY], MAX_SALIENT + len(named), filters)
    others = [record for record in salient if record.id not in named][:MAX_SALIENT]
    return [*((record, 1.0) for record in mentioned), *((record, UNMENTIONED_FACTOR) for record in others)]


class Relations(Source):
    """Relations of the mentioned entities, a few steps far: `Mira --[owns]--> Uploader`.

    003 scores a relation by its weight; here each further step halves it.
    """

    name = "relations"
    unrelated = "no entity that the request names leads to it"

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        filters, start = context.request.filters, list(context.signals.entities)
        wanting = [request for request in requests if not request.slot.kinds or RELATION in request.slot.kinds]
        if not start or not wanting:
            return
        steps = walk(context.reader, start, max_depth=MAX_STEPS, max_edges=MAX_RELATIONS, excluded_ids=filters.exclude)
        types = frozenset(filters.entity_types)
        found = [
            (step, record)
            for step, record in relation_records(context.reader, steps)
            if not excluding_filter(record, filters) and (not types or types.issuperset(record.data["types"]))
        ]
        found.sort(key=lambda pair: -pair[0].weight)
        for request in wanting:
            for step, record in found[: request.limit]:
                yield self.candidate(request, record, **_one_score(step.weight))
