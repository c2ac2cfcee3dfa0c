"""How well past confidence foretold outcomes, as one derived note; nothing while too few decisions were reviewed.

The note is worked out for the call and is no record of any store: its receipt keeps its words, so that it can be replayed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b

from foveate.pipeline import calibration
from foveate.pipeline.sources.gather import Around
from foveate.types import NO_FILTERS, Ask, Candidate, Record, Scope

LOOKED_AT = 500
"""Decisions among which the reviewed ones are looked for, the newest."""


class Calibration:
    name = "calibration"

    def find(self, asks: Sequence[Ask], around: Around) -> Iterator[Candidate]:
        decisions = around.reader.recent(("decision",), LOOKED_AT, NO_FILTERS)
        said = calibration.note(decisions, around.signals.domains)
        if said:
            for ask in asks:
                record = derived(said, around.request.scope, around.request.now)
                yield Candidate(record=record, slot=ask.slot.name, source=self.name, features={"relevance": 1.0})


def derived(text: str, scope: Scope, now: int) -> Record:
    """A note that no store holds. Its id follows from its words."""
    id = f"calibration_{blake2b(text.encode(), digest_size=8).hexdigest()}"
    return Record(id=id, kind="note", scope=scope, text=text, summary=text, micro=text, created=now, updated=now)
