"""One task: the record with its links as a view, how it is found, and what changes with its state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from foveate.errors import InputError, NotFound
from foveate.memory.memory import Memory
from foveate.records import make
from foveate.records.kinds import DEPENDS_ON, PART_OF
from foveate.records.render import called, title_of
from foveate.store.protocol import Reader
from foveate.text.format import one_line
from foveate.types import Record, Scope

EVERY = 1_000_000
"""More tasks than a project has."""


@dataclass(frozen=True, slots=True)
class Task:
    """A task as it stands, with the records that it is linked to, by id."""

    record: Record
    depends_on: tuple[str, ...] = ()
    waiting_for: tuple[str, ...] = ()
    """Those of its dependencies that are not completed."""
    parent: str | None = None
    children: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def name(self) -> str:
        return called(self.record)

    @property
    def objective(self) -> str:
        return self.record.text

    @property
    def status(self) -> str:
        return state_of(self.record)

    @property
    def result(self) -> str:
        """What came of it: empty until it is completed."""
        return str(self.record.data.get("result", ""))

    @property
    def ready(self) -> bool:
        return self.status == "open" and not self.waiting_for


def state_of(record: Record) -> str:
    return str(record.data.get("state", "open"))


def criteria_of(record: Record) -> tuple[str, ...]:
    found = record.data.get("acceptance_criteria") or ()
    return tuple(map(str, found))


def changed(memory: Memory, record: Record, data: Mapping[str, Any], outcome: str | None = None) -> Record:
    """A task with new values, its short lengths those of its result once there is one."""
    merged = {**record.data, **make.tidied(data, memory.rules.allow)}
    if merged.get("state") not in ("blocked", "failed"):
        merged.pop("reason", None)
    after = replace(record, data=merged, outcome=outcome or record.outcome, updated=memory.clock())
    if state_of(record) == "completed":
        after = replace(after, summary="", micro="")  # those of its result
    if merged.get("state") == "completed" and merged.get("result"):
        short = memory.rules.summarizer.shorten(merged["result"], title_of(record))
        after = replace(after, summary=short.summary, micro=one_line(short.micro))
    return make.finish(after, memory.rules)


def shared(scope: Scope) -> Scope:
    """The part of a scope that all agents, sessions and tasks of it share."""
    return Scope(scope.project, user=scope.user)


def lookup(reader: Reader, ref: Any) -> Record | None:
    """The record of an id or a key."""
    return reader.get([ref]).get(ref) or reader.by_key(ref) if isinstance(ref, str) and ref else None


def find(reader: Reader, ref: Any) -> Record:
    """The task of an id or a key."""
    record = lookup(reader, ref)
    if record is None:
        raise NotFound(f"There is no task {ref!r} in this scope. `foveate task list` shows them.")
    if record.kind != "task":
        raise InputError(f"{ref!r} is a {record.kind}, not a task.")
    return record


def unfinished(reader: Reader, task: Record) -> list[Record]:
    """The dependencies of a task that are not completed."""
    found = reader.get([link.dst for link in reader.links([task.id], [DEPENDS_ON])])
    return [record for record in found.values() if state_of(record) != "completed" and record.status == "active"]


def views(reader: Reader, found: Sequence[Record]) -> list[Task]:
    """Tasks with their links, in the order of the records."""
    ids = [record.id for record in found]
    waits: dict[str, list[str]] = defaultdict(list)
    parents: dict[str, str] = {}
    children: dict[str, list[str]] = defaultdict(list)
    for link in reader.links(ids, [DEPENDS_ON, PART_OF]):
        if link.name == DEPENDS_ON:
            waits[link.src].append(link.dst)
        else:
            parents[link.src] = link.dst
    for link in reader.links(ids, [PART_OF], incoming=True):
        children[link.dst].append(link.src)
    others = reader.get(list({id for group in waits.values() for id in group}))
    done = {id for id, other in others.items() if state_of(other) == "completed" or other.status != "active"}
    return [
        Task(
            record,
            depends_on=tuple(waits[record.id]),
            waiting_for=tuple(id for id in waits[record.id] if id not in done),
            parent=parents.get(record.id),
            children=tuple(sorted(children[record.id])),
        )
        for record in found
    ]
