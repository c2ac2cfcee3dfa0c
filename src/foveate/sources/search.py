"""What the words of the request find, and its vector where there is an embedder: one query for all slots.

Lexical and vector relevance are joined by a weighted sum. Rank fusion with a weak list loses where a small weight does
not, so the weight is profile data and small.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foveate.sources.gather import Around
from foveate.state.store import Hit, Query, Want
from foveate.state.supersede import DISPUTED_BY, SUPERSEDED_BY
from foveate.types import Ask, Candidate


class Search:
    name = "search"

    def find(self, asks: Sequence[Ask], around: Around) -> Iterator[Candidate]:
        signals, profile = around.signals, around.profile
        query = Query(signals.terms, profile.fields, signals.embedding, around.request.filters)
        found = around.reader.search(query, [Want(ask.slot.kinds, ask.limit) for ask in asks])
        beaten = [hit.record.id for hits in found for hit in hits if hit.record.status in ("superseded", "disputed")]
        links = around.reader.links(beaten, [SUPERSEDED_BY, DISPUTED_BY]) if beaten else []
        overruled = {link.src: link.dst for link in links}
        task = around.request.task.id if around.request.task else ""
        for ask, hits in zip(asks, found, strict=True):
            for hit in (hit for hit in hits if hit.record.id != task):  # a task is not related to itself
                yield Candidate(
                    record=hit.record,
                    slot=ask.slot.name,
                    source=self.name,
                    overruled_by=overruled.get(hit.record.id),
                    features=relevance(hit, profile.vector_weight),
                )


def relevance(hit: Hit, vector_weight: float) -> dict[str, float]:
    """The relevance of a hit and what it is made of."""
    if hit.vector is None:
        return {"relevance": hit.lexical}
    joined = (1 - vector_weight) * hit.lexical + vector_weight * hit.vector
    return {"relevance": joined, "lexical": hit.lexical, "vector": hit.vector}
