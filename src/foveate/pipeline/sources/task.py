"""The task that the request is for, else the one on top of its stack, as it is specified."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foveate.pipeline.sources.gather import Around
from foveate.tasks.task import current
from foveate.types import Ask, Candidate


class CurrentTask:
    name = "task"

    def find(self, asks: Sequence[Ask], around: Around) -> Iterator[Candidate]:
        task = around.request.task or current(around.reader)
        if task is not None:
            for ask in asks:
                yield Candidate(record=task, slot=ask.slot.name, source=self.name, features={"relevance": 1.0})
