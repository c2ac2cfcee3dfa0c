"""Ways of doing things that were written for what the question is about, though they share no word with it.

A search by words finds the rest. This one goes by the conditions that a procedure or pattern states itself: it is brought
where all of them hold and one is on the type of an entity. An intent alone would bring it to every third question.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foveate.pipeline.sources.gather import Around
from foveate.types import Ask, Candidate, Record, Signals

LOOKED_AT = 300
"""Records whose conditions are looked at, the newest: more than 004's 200 procedures."""


class Procedures:
    name = "procedures"

    def find(self, asks: Sequence[Ask], around: Around) -> Iterator[Candidate]:
        if not around.signals.entity_types:
            return
        for ask in asks:
            known = around.reader.recent(ask.slot.kinds, LOOKED_AT, around.request.filters)
            meant = [r for r in known if r.status == "active" and r.data.get("entity_types")]
            for record in [record for record in meant if all(conditions(record, around.signals))][: ask.limit]:
                yield Candidate(record=record, slot=ask.slot.name, source=self.name)


def conditions(record: Record, signals: Signals) -> list[bool]:
    """Which of the conditions that a record states are met, one by one."""
    found = []
    if intents := record.data.get("intents"):
        found.append(signals.intent in intents)
    if types := record.data.get("entity_types"):
        found.append(not set(signals.entity_types).isdisjoint(str(sort).casefold() for sort in types))
    return found
