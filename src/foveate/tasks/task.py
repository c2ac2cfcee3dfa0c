"""One task: a view of its record and links, how it is found, and what changes with its status."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from foveate.errors import Conflict, InputError, NotFound
from foveate.records import make
from foveate.records.kinds import DEPENDS_ON, PART_OF
from foveate.records.render import display_name, title_of
from foveate.store.protocol import Reader
from foveate.store.scoped import ScopedStore
from foveate.text.format import one_line
from foveate.types import Record, Scope

NO_LIMIT = 1_000_000
"""More records of one kind than a project has."""

CURRENT = "current"
"""Stands for the task that the scope names, or else for the goal on top of its stack."""

STACK_KEY = "task stack"


@dataclass(frozen=True, slots=True)
class Task:
    """A task with the ids of the tasks that it is linked to."""

    record: Record
    depends_on: tuple[str, ...] = ()
    waiting_for: tuple[str, ...] = ()
    """Dependencies that are not completed."""
    parent: str | None = None
    children: tuple[str, ...] = ()
    action: Literal["", "added", "unchanged"] = field(default="", compare=False)
    """What the call that returned the task did: `added`, `unchanged` if its key was in use already, else empty."""

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def key(self) -> str | None:
        return self.record.key

    @property
    def name(self) -> str:
        return display_name(self.record)

    @property
    def objective(self) -> str:
        return self.record.text

    @property
    def status(self) -> str:
        """`open`, `active`, `blocked`, `completed` or `failed`."""
        return state_of(self.record)

    @property
    def result(self) -> str:
        """The result of a completed task, or an empty string."""
        return str(self.record.data.get("result", ""))

    @property
    def reason(self) -> str:
        """The reason of a blocked or failed task, or an empty string."""
        return str(self.record.data.get("reason", ""))

    @property
    def ready(self) -> bool:
        """Return whether the task is open and every task that it depends on is completed."""
        return self.status == "open" and not self.waiting_for


TaskRef = str | Task
"""A task: its id, its key, "current", or the task itself."""


def state_of(record: Record) -> str:
    return str(record.data.get("state", "open"))


def criteria_of(record: Record) -> tuple[str, ...]:
    criteria = record.data.get("acceptance_criteria") or ()
    return tuple(map(str, criteria))


def with_fields(data: ScopedStore, record: Record, fields: Mapping[str, Any], outcome: str | None = None) -> Record:
    """Return a task with new fields. The short texts of a completed task are those of its result."""
    merged = {**record.data, **make.clean_value(fields, data.rules.allow)}
    if merged.get("state") not in ("blocked", "failed"):
        merged.pop("reason", None)
    after = replace(record, data=merged, outcome=outcome or record.outcome, updated=data.clock())
    if state_of(record) == "completed":
        after = replace(after, summary="", micro="")
    if merged.get("state") == "completed" and merged.get("result"):
        short = data.rules.summarizer.shorten(merged["result"], title_of(record))
        after = replace(after, summary=short.summary, micro=one_line(short.micro))
    return make.finish(after, data.rules)


def completed_fields(result: object, outcome: object) -> dict[str, str]:
    """Return the fields of a task that is completed with this result. Without one, the task keeps the result that it has."""
    if not isinstance(result, str):
        raise InputError(f"result must be a text, got {result!r}.")
    if problems := make.column_problems({"outcome": outcome}):
        raise InputError(problems)
    return {"state": "completed", **({"result": result.strip()} if result.strip() else {})}


def refuse_ended(task: Record, advice: str = "", *, allow_completed: bool = False) -> None:
    """Raise a `Conflict` if the record of the task is retired, or the task is completed.

    `advice` says what to do about a completed task. By default it is to undo the completion.
    """
    undo = f"`foveate undo {task.id}` undoes that."
    if task.status != "active":
        raise Conflict(f"Task {task.id!r} is already {task.status}. {undo}")
    if state_of(task) == "completed" and not allow_completed:
        raise Conflict(f"Task {task.id!r} is already completed. {advice or undo}")


def shared_scope(scope: Scope) -> Scope:
    """Return the part of a scope that all its agents, sessions and tasks share."""
    return Scope(scope.project, user=scope.user)


# --- finding -------------------------------------------------------------------------------------------------------


def lookup(reader: Reader, ref: object) -> Record | None:
    """Return the record of an id or a key, or the task that a `TaskRef` names; None if there is none."""
    if isinstance(ref, Task):
        ref = ref.id
    if ref == CURRENT:
        return current(reader)
    return reader.get([ref]).get(ref) or reader.by_key(ref) if isinstance(ref, str) and ref else None


def find(reader: Reader, ref: object) -> Record:
    """Return the record of a task by its id or key, "current", or a `Task`."""
    record = lookup(reader, ref)
    if record is None and ref == CURRENT:
        raise NotFound("No task is current: push a goal first, or name a task.")
    if record is None:
        raise NotFound(f"No task {ref!r} in this scope. `foveate task list` shows them.")
    if record.kind != "task":
        raise InputError(f"{ref!r} is a {record.kind}, not a task.")
    return record


def current(reader: Reader) -> Record | None:
    """Return the task that the reader's scope names, or else the goal on top of the stack of its agent and session."""
    named = reader.scope.task
    if named is not None and named != CURRENT:
        record = lookup(reader, named)
        if record is not None and record.kind == "task":
            return record
    return top_of_stack(reader)


def top_of_stack(reader: Reader) -> Record | None:
    """Return the goal that the reader's agent and session work on."""
    stack = stack_record(reader)
    id = stack.data.get("current") if stack else None
    return reader.get([id]).get(id) if id else None


def stack_record(reader: Reader) -> Record | None:
    """Return the record that names the top of the stack. It must be of exactly this user, agent and session."""
    record = reader.by_key(STACK_KEY)
    if record is None or record.kind != "stack":
        return None
    mine, other = reader.scope, record.scope
    same = (mine.user, mine.agent, mine.session) == (other.user, other.agent, other.session)
    return record if same else None


def with_task_id(data: ScopedStore, scope: Scope) -> Scope:
    """Return the scope with its task as an id, so that notes of a task are found under each of its names."""
    if scope.task is None:
        return scope
    with data.project_reader(scope) as reader:
        record = find(reader, CURRENT) if scope.task == CURRENT else reader.by_key(scope.task)
    return replace(scope, task=record.id) if record is not None and record.kind == "task" else scope


# --- views ---------------------------------------------------------------------------------------------------------


def open_dependencies(reader: Reader, task: Record) -> list[Record]:
    """Return the dependencies of a task that are not completed."""
    records = reader.get([link.dst for link in reader.links([task.id], [DEPENDS_ON])])
    return [record for record in records.values() if state_of(record) != "completed" and record.status == "active"]


def views(reader: Reader, records: Sequence[Record]) -> list[Task]:
    """Return tasks with their links, in the order of the records."""
    ids = [record.id for record in records]
    dependencies: dict[str, list[str]] = defaultdict(list)
    parents: dict[str, str] = {}
    children: dict[str, list[str]] = defaultdict(list)
    for link in reader.links(ids, [DEPENDS_ON, PART_OF]):
        if link.name == DEPENDS_ON:
            dependencies[link.src].append(link.dst)
        else:
            parents[link.src] = link.dst
    for link in reader.links(ids, [PART_OF], incoming=True):
        children[link.dst].append(link.src)
    others = reader.get(list({id for group in dependencies.values() for id in group}))
    done = {id for id, other in others.items() if state_of(other) == "completed" or other.status != "active"}
    return [
        Task(
            record,
            depends_on=tuple(dependencies[record.id]),
            waiting_for=tuple(id for id in dependencies[record.id] if id not in done),
            parent=parents.get(record.id),
            children=tuple(sorted(children[record.id])),
        )
        for record in records
    ]
