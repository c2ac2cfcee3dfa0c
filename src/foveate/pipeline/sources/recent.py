"""What happened last, newest first: here the newest is the most relevant, whatever the question.

In a session it is the session's own events, and those that belong to no session; what is telling of other sessions,
`highlights` brings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foveate.pipeline.sources.gather import Around
from foveate.records.kinds import KINDS
from foveate.types import Ask, Candidate, Record


class Recent:
    name = "recent"

    def find(self, asks: Sequence[Ask], around: Around) -> Iterator[Candidate]:
        for ask in asks:
            for n, record in enumerate(_latest(ask, around)):
                newness = 1.0 - n / ask.limit
                yield Candidate(record=record, slot=ask.slot.name, source=self.name, features={"relevance": newness})


def _latest(ask: Ask, around: Around) -> list[Record]:
    reader, filters, session = around.reader, around.request.filters, around.request.scope.session
    kinds = ask.slot.kinds or tuple(name for name, kind in KINDS.items() if not (kind.is_rule or kind.is_internal))
    if session is None:
        return reader.recent(kinds, ask.limit, filters)
    events = [kind for kind in kinds if KINDS[kind].is_append_only]
    found = reader.recent([kind for kind in kinds if kind not in events], ask.limit, filters)
    found += reader.recent(events, ask.limit, filters, session=session)
    found += [record for record in reader.recent(events, ask.limit, filters) if record.scope.session is None]
    return sorted(found, key=lambda record: (-record.created, record.id))[: ask.limit]
