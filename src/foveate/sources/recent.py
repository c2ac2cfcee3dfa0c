"""What happened last, newest first: here the newest is the most relevant, whatever the question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foveate.sources.gather import Around
from foveate.state.kinds import KINDS
from foveate.types import Ask, Candidate


class Recent:
    name = "recent"

    def find(self, asks: Sequence[Ask], around: Around) -> Iterator[Candidate]:
        for ask in asks:
            kinds = ask.slot.kinds or tuple(name for name, kind in KINDS.items() if not kind.rule)
            for n, record in enumerate(around.reader.recent(kinds, ask.limit, around.request.filters)):
                newness = 1.0 - n / ask.limit
                yield Candidate(record=record, slot=ask.slot.name, source=self.name, features={"relevance": newness})
