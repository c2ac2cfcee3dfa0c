"""Where the task stands: the root goal, the goals between it and the current one, and what its siblings came to.

The current task is the request's, else the top of the stack of the request's agent and session. An ancestor that is
complete reads as its result, an active one as its goal: that is how a task's line reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from foveate.pipeline.sources.gather import Around, filtered
from foveate.tasks.stack import path, siblings
from foveate.types import Ask, Candidate, Record

Part = Literal["root", "path", "siblings"]


class Stack:
    """One part of the tree around the current task: `stack-root`, `stack-path` or `stack-siblings`."""

    def __init__(self, part: Part) -> None:
        self.name = f"stack-{part}"
        self._part = part

    def find(self, asks: Sequence[Ask], around: Around) -> Iterator[Candidate]:
        way = path(around.reader, around.request.task)
        for ask in asks:
            for n, record in enumerate(self._records(way, ask, around)):
                nearness = 1.0 - n / (ask.limit + 1)
                yield Candidate(record=record, slot=ask.slot.name, source=self.name, features={"relevance": nearness})

    def _records(self, way: Sequence[Record], ask: Ask, around: Around) -> Sequence[Record]:
        if not way:
            return ()
        if self._part == "root":
            return way[:1]
        nearest_first = list(way[1:-1])[::-1]
        found = nearest_first if self._part == "path" else siblings(around.reader, way[-1], ask.limit)
        return [record for record in found if not filtered(record, around.request.filters)][: ask.limit]
