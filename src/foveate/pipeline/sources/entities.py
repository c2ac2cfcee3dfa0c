"""Entities: those that the request names, and the ten that matter most beside them.

003 scores an entity by its salience alone, doubled where it is mentioned. Here the others weigh half instead, which keeps
the order and stays within 0..1. That one score stands for relevance, recency and salience alike: an entity has no age of
its own, and no profile's weights can put one before another that 003 puts first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foveate.pipeline.sources.gather import Around, filtered
from foveate.types import Ask, Candidate, Record

KIND = "entity"

SALIENT = 10
"""Entities that join whatever the question is; the budget decides."""

UNMENTIONED = 0.5


class Entities:
    name = "entities"

    def find(self, asks: Sequence[Ask], around: Around) -> Iterator[Candidate]:
        found = _found(around)
        for ask in asks:
            if ask.slot.kinds and KIND not in ask.slot.kinds:
                continue
            for record, mentioned in found[: ask.limit]:
                features = {"mentioned": mentioned, **scored(record.salience * mentioned)}
                yield Candidate(record=record, slot=ask.slot.name, source=self.name, features=features)

    def among(self, around: Around) -> int:
        return around.reader.count(KIND)


def scored(score: float) -> dict[str, float]:
    """The features of something that has one score, whatever a profile weighs."""
    return {"relevance": score, "recency": score, "salience": score}


def _found(around: Around) -> list[tuple[Record, float]]:
    """Each entity once, with how much its being mentioned counts."""
    reader, filters = around.reader, around.request.filters
    named = reader.get(list(around.signals.entities))
    mentioned = [named[id] for id in around.signals.entities if id in named and not filtered(named[id], filters)]
    salient = reader.most_salient([KIND], SALIENT + len(named), filters)
    others = [record for record in salient if record.id not in named][:SALIENT]
    return [*((record, 1.0) for record in mentioned), *((record, UNMENTIONED) for record in others)]
