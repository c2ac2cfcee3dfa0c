"""The task stack: the goal that an agent works on, and the goals above it.

A goal is a task; its parent is the goal below it on the stack. One private record names the top of the stack of each user,
agent and session, so that the stack survives a restart and only they move it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from foveate.errors import InputError
from foveate.records import make
from foveate.records.kinds import PART_OF
from foveate.store.protocol import Reader, Writer
from foveate.store.scoped import ScopedStore
from foveate.tasks.task import STACK_KEY, current, stack_record, state_of, top_of_stack, with_fields
from foveate.text.format import one_line
from foveate.types import Link, Record, Scope

MAX_TITLE_CHARS = 80
"""A goal that is pushed without a name is named by its beginning."""

PAGE_SIZE = 200
MAX_SIBLINGS_READ = 5000
"""Parts of one task that are searched for completed ones; ids begin with a time, so these are the newest."""


def stack_scope(scope: Scope) -> Scope:
    """Return whose stack a call means: one user's, agent's and session's, whatever the task."""
    return replace(scope, task=None)


def new_goal(data: ScopedStore, goal: str, name: str) -> Record:
    """Return the record of a goal that is not stored yet."""
    title = one_line(name or goal) if isinstance(goal, str) else ""
    if len(title) > MAX_TITLE_CHARS:
        title = f"{title[: MAX_TITLE_CHARS - 1].rstrip()}…"
    return data.make("task", goal, {"name": title, "state": "active"}, stack_scope(data.scope))


def push(data: ScopedStore, writer: Writer, goal: Record) -> None:
    """Link a stored goal below the top of the stack, and make it the top."""
    parent_goal = top_of_stack(writer)
    if parent_goal is not None:
        writer.link(Link(goal.id, PART_OF, parent_goal.id))
    _set_top(data, writer, goal.id)


def pop(data: ScopedStore, writer: Writer, fields: Mapping[str, str], outcome: str) -> Record:
    """Complete the goal on top of the stack with these fields, and return it.

    A goal that is completed already is only taken off the stack.
    """
    goal = top_of_stack(writer)
    if goal is None:
        raise InputError("The task stack is empty. Name a task, or push a goal first (`foveate task add NAME --push`).")
    if state_of(goal) != "completed":
        goal = writer.change(with_fields(data, goal, fields, outcome), "pop", expect_version=goal.version)
    below = parent(writer, goal.id)
    _set_top(data, writer, below.id if below else None)
    return goal


def _set_top(data: ScopedStore, writer: Writer, id: str | None) -> None:
    record = stack_record(writer)
    if record is None:
        values = {"key": STACK_KEY, "current": id}
        writer.add(data.make("stack", "The task stack", values, stack_scope(data.scope)))
    else:
        after = replace(record, data={**record.data, "current": id}, updated=data.clock())
        writer.change(make.finish(after, data.rules), "move", expect_version=record.version)


# --- the tree ------------------------------------------------------------------------------------------------------


def parent(reader: Reader, id: str) -> Record | None:
    """Return the task that this one is a part of."""
    links = reader.links([id], [PART_OF])
    return reader.get([links[0].dst]).get(links[0].dst) if links else None


def path(reader: Reader, task: Record | None = None) -> list[Record]:
    """Return the tasks from the root goal to a task, by default the current one."""
    seen: dict[str, Record] = {}
    here = task or current(reader)
    while here is not None and here.id not in seen:  # an import can bring a cycle that a new link could not close
        seen[here.id] = here
        here = parent(reader, here.id)
    return list(seen.values())[::-1]


def siblings(reader: Reader, task: Record, limit: int) -> list[Record]:
    """Return the latest completed parts of the same parent, newest first."""
    links = reader.links([task.id], [PART_OF])
    parts = reader.links([links[0].dst], [PART_OF], incoming=True) if links else []
    others = (link.src for link in parts if link.src != task.id)
    ids = sorted(others, reverse=True)[:MAX_SIBLINGS_READ]
    completed: list[Record] = []
    for start in range(0, len(ids), PAGE_SIZE):
        page = reader.get(ids[start : start + PAGE_SIZE])
        completed += [record for record in page.values() if state_of(record) == "completed" and record.status == "active"]
        if len(completed) >= limit:
            break
    return sorted(completed, key=lambda record: (record.updated, record.id), reverse=True)[:limit]
