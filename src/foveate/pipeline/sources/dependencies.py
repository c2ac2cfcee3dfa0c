"""What the task's dependencies left behind: the completed ones, and what each of them taught.

Patterns, decisions, gotchas above low severity and blocking questions join the slots of their kind, each with the task
that handed it on. What a task's dependencies know is not left to similarity: a gotcha of the parser matters to whoever
builds on the parser, whatever words it uses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foveate.pipeline.sources.gather import Around, filtered
from foveate.records.kinds import DEPENDS_ON, LEARNED_FROM
from foveate.store.protocol import Reader
from foveate.tasks.task import state_of
from foveate.types import Ask, Candidate, Record


class Dependencies:
    """The completed dependencies themselves, and what was learned from them."""

    name = "dependencies"

    def find(self, asks: Sequence[Ask], around: Around) -> Iterator[Candidate]:
        task, reader = around.request.task, around.reader
        if task is None:
            return
        done = completed(reader, [task.id])
        taught = list(_taught(reader, done))
        for ask in asks:
            found: list[tuple[Record, Record | None]] = [*((record, None) for record in done), *taught]
            wanted = [(record, via) for record, via in found if not ask.slot.kinds or record.kind in ask.slot.kinds]
            for record, via in [pair for pair in wanted if not filtered(pair[0], around.request.filters)][: ask.limit]:
                yield Candidate(record=record, slot=ask.slot.name, source=self.name, via=via, features={"inherited": 1.0})


class Transitive:
    """What the dependencies themselves depended on, one step further."""

    name = "transitive"

    def find(self, asks: Sequence[Ask], around: Around) -> Iterator[Candidate]:
        task, reader = around.request.task, around.reader
        if task is None:
            return
        near = completed(reader, [task.id])
        direct = {task.id, *(record.id for record in near)}
        far = [record for record in completed(reader, [record.id for record in near]) if record.id not in direct]
        for ask in asks:
            for record in [record for record in far if not filtered(record, around.request.filters)][: ask.limit]:
                yield Candidate(record=record, slot=ask.slot.name, source=self.name, features={"inherited": 0.5})


def completed(reader: Reader, tasks: Sequence[str]) -> list[Record]:
    """The completed tasks on which some tasks depend, the latest first."""
    ids = [link.dst for link in reader.links(tasks, [DEPENDS_ON])]
    found = [record for record in reader.get(ids).values() if state_of(record) == "completed" and record.status == "active"]
    return sorted(found, key=lambda record: (-record.updated, record.id))


def _taught(reader: Reader, tasks: Sequence[Record]) -> Iterator[tuple[Record, Record]]:
    """What was learned from some tasks and is worth handing on, with the task; what weighs most comes first."""
    by_id = {task.id: task for task in tasks}
    links = reader.links(list(by_id), [LEARNED_FROM], incoming=True) if by_id else []
    records = reader.get([link.src for link in links])
    pairs = [(records[link.src], by_id[link.dst]) for link in links if link.src in records]
    pairs.sort(key=lambda pair: (-pair[0].salience, -pair[1].updated, pair[0].id))
    first = {record.id: (record, task) for record, task in reversed(pairs)}  # taught twice: by the latest of them
    for record, task in pairs:
        if first[record.id][1] is task and record.status == "active" and _is_handed_on(record):
            yield record, task


def _is_handed_on(record: Record) -> bool:
    if record.kind == "gotcha":
        return str(record.data.get("severity", "medium")) != "low"
    if record.kind == "question":
        return bool(record.data.get("blocking"))
    return record.kind != "component"  # the map has a slot of its own
