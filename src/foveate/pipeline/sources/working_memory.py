"""Working memory: the task at hand, then the threads that are still open, newest first.

An open thread is a question that was asked in this session and not answered, or any note or question with the tag
`thread`. It is closed by answering or retiring it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from foveate.pipeline.sources.gather import Around
from foveate.tasks.task import current
from foveate.types import Ask, Candidate, Record

THREAD = "thread"


class Working:
    name = "working"

    def find(self, asks: Sequence[Ask], around: Around) -> Iterator[Candidate]:
        task = around.request.task or current(around.reader)
        for ask in asks:
            records = [*([task] if task else []), *_threads(ask, around)]
            for n, record in enumerate(records[: ask.limit]):
                nearness = 1.0 - n / (ask.limit + 1)
                yield Candidate(record=record, slot=ask.slot.name, source=self.name, features={"relevance": nearness})


def _threads(ask: Ask, around: Around) -> list[Record]:
    """What is open, newest first."""
    reader, filters, session = around.reader, around.request.filters, around.request.scope.session
    tagged = reader.recent(("note", "question"), ask.limit, replace(filters, tags=(THREAD,)))
    asked = reader.recent(("question",), ask.limit, filters) if session else []
    found = {record.id: record for record in (*tagged, *(r for r in asked if r.scope.session == session))}
    return sorted(found.values(), key=lambda record: (-record.created, record.id))
