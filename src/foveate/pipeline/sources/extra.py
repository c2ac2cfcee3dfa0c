"""What the caller hands in with the request, slot by slot. It is taken to be relevant: somebody chose it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foveate.pipeline.sources.gather import Around
from foveate.types import Ask, Candidate


class Given:
    name = "given"

    def find(self, asks: Sequence[Ask], around: Around) -> Iterator[Candidate]:
        for ask in asks:
            for record in around.request.given.get(ask.slot.name, ()):
                yield Candidate(record=record, slot=ask.slot.name, source=self.name, features={"relevance": 1.0})
