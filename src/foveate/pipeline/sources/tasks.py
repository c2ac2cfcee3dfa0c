"""Sources about tasks: the task itself, what its dependencies learned, and its place in the stack of goals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from foveate.pipeline.sources.base import SlotRequest, Source, SourceContext, excluding_filter
from foveate.pipeline.sources.parts import parts_of
from foveate.records.kinds import DEPENDS_ON, LEARNED_FROM
from foveate.store.protocol import Reader
from foveate.tasks.stack import path, siblings
from foveate.tasks.task import current, state_of
from foveate.types import NO_FILTERS, Candidate, Record

SAME_MILLISECOND = 20
"""More records of a kind than a caller adds within one millisecond."""

STACK_CLAUSES = {
    "root": "it is not the root of the task's tree",
    "path": "it is not between the task and the root of its tree",
    "siblings": "it is not a completed part of the same task",
}
"""Part of the tree -> why a record does not belong to it, as a clause for `why`."""


class CurrentTask(Source):
    """The task of the request, else the one on top of its stack: its whole specification, or the slot's `field` of it."""

    name = "task"
    unrelated = "it is not the task that the request is for"

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        task = context.request.task or current(context.reader)
        if task is not None:
            for request in requests:
                records = parts_of(task, request.slot.field) if request.slot.field else [task]
                yield from (self.candidate(request, record, relevance=1.0) for record in records[: request.limit])


class LatestRecords(Source):
    """The newest record of each kind of the slot, such as the issue, the design and the change that an agent works on."""

    name = "latest"
    unrelated = "it is not the newest record of its kind"

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        for request in requests:
            for kind in request.slot.kinds:
                record = newest_record(context.reader, kind)
                parts = parts_of(record, request.slot.field) if record else []
                yield from (self.candidate(request, part, relevance=1.0) for part in parts[: request.limit])


def newest_record(reader: Reader, kind: str) -> Record | None:
    """Return the newest active record of a kind."""
    found = reader.recent([kind], SAME_MILLISECOND, NO_FILTERS)
    return max(found, key=lambda record: (record.created, record.id), default=None)  # ids rise within a millisecond


class Dependencies(Source):
    """The completed dependencies of the task and what was learned from them.

    Their patterns, decisions, gotchas above low severity and blocking questions join the slots of their kind, each with the
    task that it comes from. This is not left to similarity: a gotcha of the parser matters to every task that builds on the
    parser, whatever words it uses.
    """

    name = "dependencies"
    unrelated = "no completed dependency of the task handed it on"

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        if context.request.task is None:
            return
        reader = context.reader
        done = completed_dependencies(reader, [context.request.task.id])
        found: list[tuple[Record, Record | None]] = [*((record, None) for record in done), *_learned(reader, done)]
        for request in requests:
            kinds = request.slot.kinds
            wanted = [
                (record, task)
                for record, task in found
                if (not kinds or record.kind in kinds) and not excluding_filter(record, context.request.filters)
            ]
            for record, task in wanted[: request.limit]:
                yield replace(self.candidate(request, record, inherited=1.0), inherited_from=task)


class TransitiveDependencies(Source):
    """The dependencies of the dependencies, one step further."""

    name = "transitive"
    unrelated = "no dependency leads to it"

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        task, reader = context.request.task, context.reader
        if task is None:
            return
        direct = [record.id for record in completed_dependencies(reader, [task.id])]
        wanted = [
            record
            for record in completed_dependencies(reader, direct)
            if record.id not in (task.id, *direct) and not excluding_filter(record, context.request.filters)
        ]
        for request in requests:
            yield from (self.candidate(request, record, inherited=0.5) for record in wanted[: request.limit])


def completed_dependencies(reader: Reader, tasks: Sequence[str]) -> list[Record]:
    """Return the completed tasks on which some tasks depend, the latest first."""
    ids = [link.dst for link in reader.links(tasks, [DEPENDS_ON])]
    found = [record for record in reader.get(ids).values() if state_of(record) == "completed" and record.status == "active"]
    return sorted(found, key=lambda record: (record.updated, record.id), reverse=True)


def _learned(reader: Reader, tasks: Sequence[Record]) -> Iterator[tuple[Record, Record]]:
    """Return the records worth passing on that were learned from some tasks, with the task, the most salient first."""
    by_id = {task.id: task for task in tasks}
    links = reader.links(list(by_id), [LEARNED_FROM], incoming=True) if by_id else []
    records = reader.get([link.src for link in links])
    pairs = [(records[link.src], by_id[link.dst]) for link in links if link.src in records]
    pairs.sort(key=lambda pair: (-pair[0].salience, -pair[1].updated, pair[0].id))
    first = {record.id: (record, task) for record, task in reversed(pairs)}  # if learned twice, from the latest task
    for record, task in pairs:
        if first[record.id][1] is task and record.status == "active" and _is_passed_on(record):
            yield record, task


def _is_passed_on(record: Record) -> bool:
    if record.kind == "gotcha":
        return str(record.data.get("severity", "medium")) != "low"
    if record.kind == "question":
        return bool(record.data.get("blocking"))
    return record.kind != "component"  # the map has a slot of its own


class Stack(Source):
    """One part of the tree of goals around the current task: `stack-root`, `stack-path` or `stack-siblings`."""

    def __init__(self, part: Literal["root", "path", "siblings"]) -> None:
        self.name = f"stack-{part}"
        self.unrelated = STACK_CLAUSES[part]
        self._part = part

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        way = path(context.reader, context.request.task)
        for request in requests:
            for n, record in enumerate(self._records(way, request, context)):
                yield self.candidate(request, record, relevance=1.0 - n / (request.limit + 1))

    def _records(self, way: Sequence[Record], request: SlotRequest, context: SourceContext) -> Sequence[Record]:
        if not way:
            return ()
        if self._part == "root":
            return way[:1]
        nearest_first = list(way[1:-1])[::-1]
        found = nearest_first if self._part == "path" else siblings(context.reader, way[-1], request.limit)
        return [record for record in found if not excluding_filter(record, context.request.filters)][: request.limit]
