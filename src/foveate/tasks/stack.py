"""The task stack: which goal is being worked on, and the goals above it. Durable, one for each agent and session.

A frame is a task; its parent is the frame below it. The stack itself is one private record that names the current
frame, so that it survives a restart and no other user, agent or session moves it; an agent's frames are seen by that
agent only. Popping completes the frame: its result stays, and the notes that were private to it are out of sight.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from foveate.errors import Conflict, InputError
from foveate.memory.memory import Memory
from foveate.records import make
from foveate.records.kinds import PART_OF
from foveate.store.protocol import Reader, Writer
from foveate.store.retry import retried
from foveate.tasks.task import Task, changed, state_of, views
from foveate.text.format import one_line
from foveate.types import Link, Record, Scope

KEY = "task stack"

TITLE = 80
"""Characters of the name of a goal that was given none."""

PAGE = 200
MOST_SIBLINGS = 5000
"""Parts of one task that are looked through for completed ones, and how many at a time."""


class Stack:
    """The stack of one agent and session."""

    def __init__(self, memory: Memory, *, agent: str | None = None, session: str | None = None) -> None:
        self._memory = memory
        mine = memory.scope
        self._scope = Scope(mine.project, mine.user, agent or mine.agent, session or mine.session)

    @retried
    def push(self, goal: str, *, name: str = "", **values: Any) -> Task:
        """Take up a goal, as a part of the current one."""
        memory = self._memory
        title = one_line(name or goal) if isinstance(goal, str) else ""
        values = {"name": title if len(title) <= TITLE else f"{title[: TITLE - 1].rstrip()}…", "state": "active", **values}
        record = memory.make("task", goal, self._scope, values)
        (vector,) = memory.embedded([record.text])
        with memory.store.write(self._scope) as writer:
            above = current(writer)
            added = writer.add(record, vector)
            if added.action != "added":
                raise Conflict(f"The key {record.key!r} is that of {added.record.id!r} already; a goal is pushed once.")
            if above is not None:
                writer.link(Link(record.id, PART_OF, above.id))
            self._point(writer, record.id)
            return views(writer, [record])[0]

    @retried
    def pop(self, result: str = "", *, outcome: str = "success") -> Task:
        """Complete the current goal with what came of it, and go back to the one above; the frame that was popped."""
        memory = self._memory
        if problems := make.column_problems({"outcome": outcome}):
            raise InputError(problems)
        if not isinstance(result, str):
            raise InputError(f"A result is a text, not {result!r}.")
        with memory.store.write(self._scope) as writer:
            frame = current(writer)
            if frame is None:
                raise InputError("The task stack is empty: there is nothing to pop. Push a goal first.")
            if state_of(frame) != "completed":
                data = {"state": "completed", **({"result": result.strip()} if result.strip() else {})}
                frame = writer.change(changed(memory, frame, data, outcome), "pop", expect=frame.version)
            above = parent(writer, frame.id)
            self._point(writer, above.id if above else None)
            return views(writer, [frame])[0]

    @retried
    def peek(self) -> Task | None:
        """The current frame."""
        with self._memory.store.read(self._scope) as reader:
            frame = current(reader)
            return views(reader, [frame])[0] if frame else None

    @retried
    def path(self) -> list[Task]:
        """From the root goal to the current frame."""
        with self._memory.store.read(self._scope) as reader:
            return views(reader, path(reader))

    def _point(self, writer: Writer, id: str | None) -> None:
        """Have the stack's record name the current frame."""
        memory = self._memory
        held = _held(writer)
        if held is None:
            writer.add(memory.make("stack", "The task stack", self._scope, {"key": KEY, "current": id}))
        else:
            after = replace(held, data={**held.data, "current": id}, updated=memory.clock())
            writer.change(make.finish(after, memory.rules), "move", expect=held.version)


def _held(reader: Reader) -> Record | None:
    """The stack's record, of exactly this user, agent and session: an owner's stack is not a fallback for another's."""
    held = reader.by_key(KEY)
    if held is None or held.kind != "stack":
        return None
    mine, theirs = reader.scope, held.scope
    same = (mine.user, mine.agent, mine.session) == (theirs.user, theirs.agent, theirs.session)
    return held if same else None


def current(reader: Reader) -> Record | None:
    """The frame that the reader's agent and session work on."""
    held = _held(reader)
    id = held.data.get("current") if held else None
    return reader.get([id]).get(id) if id else None


def parent(reader: Reader, id: str) -> Record | None:
    """The task of which one is a part."""
    links = reader.links([id], [PART_OF])
    return reader.get([links[0].dst]).get(links[0].dst) if links else None


def path(reader: Reader, frame: Record | None = None) -> list[Record]:
    """From the root goal to a frame, the current one unless another is given."""
    found: dict[str, Record] = {}
    here = frame or current(reader)
    while here is not None and here.id not in found:  # an import may bring what a link would have refused
        found[here.id] = here
        here = parent(reader, here.id)
    return list(found.values())[::-1]


def siblings(reader: Reader, frame: Record, limit: int) -> list[Record]:
    """The latest completed parts of the same task, newest first."""
    links = reader.links([frame.id], [PART_OF])
    beside = reader.links([links[0].dst], [PART_OF], incoming=True) if links else []
    others = (link.src for link in beside if link.src != frame.id)
    ids = sorted(others, reverse=True)[:MOST_SIBLINGS]  # ids begin with a time
    done: list[Record] = []
    for start in range(0, len(ids), PAGE):
        page = reader.get(ids[start : start + PAGE])
        done += [record for record in page.values() if state_of(record) == "completed" and record.status == "active"]
        if len(done) >= limit:
            break
    return sorted(done, key=lambda record: (-record.updated, record.id))[:limit]
