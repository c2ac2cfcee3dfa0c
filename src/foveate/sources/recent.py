"""What happened last, newest first: relevance has no say here, recency has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foveate.sources.gather import Around
from foveate.types import Ask, Candidate


class Recent:
    name = "recent"

    def find(self, asks: Sequence[Ask], around: Around) -> Iterator[Candidate]:
        for ask in asks:
            for record in around.reader.recent(ask.slot.kinds, ask.limit, around.request.filters):
                yield Candidate(record=record, slot=ask.slot.name, source=self.name)
