"""What stands whatever the question is: identity, censors, standing instructions, pinned records. Chosen by scope.

Similarity cannot find rules: "always answer in Celsius" shares no words with the question that it is for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foveate.pipeline.sources.censors import stands_here
from foveate.pipeline.sources.gather import Around
from foveate.types import Ask, Candidate


class Always:
    name = "always"

    def find(self, asks: Sequence[Ask], around: Around) -> Iterator[Candidate]:
        for ask in asks:
            for record in around.reader.always_on(ask.slot.kinds, pinned=ask.slot.pinned):
                if stands_here(record, around.profile):
                    yield Candidate(record=record, slot=ask.slot.name, source=self.name)
