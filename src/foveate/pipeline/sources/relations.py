"""How the entities that the request names hang together with others: `Mira --[owns]--> Uploader`, a few steps far.

Breadth-first from the mentioned entities, along relations in either direction. 003 scores a relation by its weight; here
each further step halves it, so that what is said of the entities themselves comes first. Without a mentioned entity there
is nothing to start from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foveate.memory.relations import KIND, relation_records, walk
from foveate.pipeline.sources.entities import scored
from foveate.pipeline.sources.gather import Around, filtered
from foveate.types import Ask, Candidate

DEPTH = 2
"""Steps from a mentioned entity: what is further away is seldom about it."""

EDGES = 100
"""Relations that are looked at: an entity that hangs together with everything must not cost the prompt its time."""


class Relations:
    name = "relations"

    def find(self, asks: Sequence[Ask], around: Around) -> Iterator[Candidate]:
        filters, start = around.request.filters, list(around.signals.entities)
        asked = [ask for ask in asks if not ask.slot.kinds or KIND in ask.slot.kinds]
        if not start or not asked:
            return
        steps = walk(around.reader, start, max_depth=DEPTH, max_edges=EDGES, excluded_ids=filters.exclude)
        wanted = frozenset(filters.entity_types)
        found = [
            (step, record)
            for step, record in relation_records(around.reader, steps)
            if not filtered(record, filters) and (not wanted or wanted.issuperset(record.data["types"]))
        ]
        found.sort(key=lambda pair: -pair[0].weight)
        for ask in asked:
            for step, record in found[: ask.limit]:
                yield Candidate(record=record, slot=ask.slot.name, source=self.name, features=scored(step.weight))
