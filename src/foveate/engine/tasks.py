"""`engine.tasks`: tasks, claims, handoffs and the stack of goals, in one life cycle."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, Unpack

from foveate.errors import Conflict, InputError, StoreError, near
from foveate.options import TASK_FIELDS, ContextOptions, Outcome, TaskFields, TaskStatus, refuse_unknown
from foveate.receipts.context import Context
from foveate.records.kinds import DEPENDS_ON, PART_OF, TASK_STATES
from foveate.store.protocol import Reader, Writer
from foveate.store.retry import retry_interrupted
from foveate.store.scoped import ScopedStore
from foveate.tasks import claims, fields, stack
from foveate.tasks.claims import CLAIM_SECONDS, Claim
from foveate.tasks.learn import Learned, learn
from foveate.tasks.task import (
    CURRENT,
    NO_LIMIT,
    Task,
    TaskRef,
    completed_fields,
    current,
    find,
    refuse_ended,
    shared_scope,
    state_of,
    views,
    with_fields,
)
from foveate.types import NO_FILTERS, Link, Record, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimWithContext(Claim):
    """A claim that was just made or renewed, with the context that the agent starts with."""

    context: Context

    @property
    def success(self) -> bool:
        """Always True: a task that cannot be claimed raises an error, and leaves no claim."""
        return True


class Tasks:
    """Plan tasks, claim them, complete them and learn from their handoffs.

    A task is named by its id, its key, a `Task`, or "current": the task of the scope, else the goal on top of the stack.
    Tasks belong to the project and its user; the stack belongs to one agent and session.
    """

    def __init__(self, data: ScopedStore, context: Callable[..., Context]) -> None:
        self._data = data
        self._context = context

    # --- plan ---------------------------------------------------------------------------------------------------

    def add(self, name: str, *, key: str | None = None, **fields_of_task: Unpack[TaskFields]) -> Task:
        """Add a task. If the key is in use already, return its task and change nothing; `action` tells which.

        `depends_on` names tasks, or files that must be read first. `files` are paths, or `path:operation`.
        """
        refuse_unknown(fields_of_task, TASK_FIELDS, "tasks.add")
        if key == CURRENT:
            raise InputError(f"The key {CURRENT!r} is reserved for the current task; choose another.")
        values = {"name": fields.title(name), "state": "open", "key": key, **fields.record_values(fields_of_task)}
        return self._add(fields_of_task.get("objective") or name, values, fields_of_task)

    @retry_interrupted
    def _add(self, text: str, values: Mapping[str, Any], given: TaskFields) -> Task:
        data = self._data
        with data.project_reader() as reader:
            dependencies, reads = fields.dependencies(reader, given.get("depends_on", ()))
            parent = _parent_id(reader, given)
        values = {**values, "paths": fields.paths_of(values, reads), **({"reads": reads} if reads else {})}
        record = data.make("task", text, values, shared_scope(data.scope))
        (vector,) = data.vectors([record.text])
        with data.writer() as writer:
            added = writer.add(record, vector)
            if added.record.kind != "task":
                raise Conflict(
                    f"The key {record.key!r} belongs to the {added.record.kind} {added.record.id!r}; choose another."
                )
            if added.action == "added":
                _link_all(writer, record.id, dependencies, parent)
            return replace(_view(writer, added.record), action="added" if added.action == "added" else "unchanged")

    @retry_interrupted
    def get(self, task: TaskRef) -> Task:
        """Return a task by its id, its key or "current"."""
        with self._data.project_reader() as reader:
            return _view(reader, find(reader, task))

    @retry_interrupted
    def list(
        self, *, status: TaskStatus | None = None, ready: bool = False, parent: TaskRef | None = None
    ) -> Sequence[Task]:
        """List tasks in the order in which they were added. A task is ready when it is open and waits for no other."""
        if status is not None and status not in TASK_STATES:
            raise InputError(f"Unknown task status {status!r}.{near(status, TASK_STATES)}")
        with suppress(StoreError):  # a read-only caller cannot release expired claims
            self._release_expired()
        with self._data.project_reader() as reader:
            records = sorted(reader.recent(["task"], NO_LIMIT, NO_FILTERS), key=lambda record: (record.created, record.id))
            tasks = views(reader, [record for record in records if status is None or state_of(record) == status])
            parent_id = find(reader, parent).id if parent is not None else None
        return [task for task in tasks if (task.ready or not ready) and (parent_id is None or task.parent == parent_id)]

    @retry_interrupted
    def edit(
        self,
        task: TaskRef,
        *,
        name: str | None = None,
        status: Literal["open", "active", "blocked"] | None = None,
        reason: str = "",
        **fields_of_task: Unpack[TaskFields],
    ) -> Task:
        """Change fields or the status of a task; a list replaces the earlier one. Blocking a task needs a reason.

        A task that is no longer active has no claims. `complete` and `fail` set the other statuses.
        """
        refuse_unknown(fields_of_task, TASK_FIELDS, "tasks.edit")
        if status not in (None, "open", "active", "blocked"):
            raise InputError(
                f"status must be open, active or blocked, got {status!r}. "
                "Use tasks.complete or tasks.fail (`foveate task done`, `foveate task fail`)."
            )
        if reason and status != "blocked":
            raise InputError("reason says why a task is blocked; pass status='blocked' as well.")
        if name is None and status is None and not fields_of_task:
            raise InputError("Nothing to change: pass name, status or another field.")
        changes: dict[str, Any] = fields.record_values(fields_of_task)
        if name is not None:
            changes["name"] = fields.title(name)
        if status is not None:
            changes["state"] = status
        if status == "blocked":
            changes["reason"] = fields.reason_text(reason)
        data = self._data
        with data.writer() as writer:
            record = find(writer, task)
            if status is not None:
                refuse_ended(record)
            if "depends_on" in fields_of_task:
                dependencies, changes["reads"] = fields.dependencies(writer, fields_of_task["depends_on"])
                _relink(writer, record.id, DEPENDS_ON, dependencies)
            if "parent" in fields_of_task:
                parent = _parent_id(writer, fields_of_task)
                _relink(writer, record.id, PART_OF, [parent] if parent else [])
            if changes or "objective" in fields_of_task:
                after = self._with_changes(record, fields_of_task.get("objective"), changes)
                record = writer.change(after, status or "edit", expect_version=record.version)
            if status is not None and status != "active":
                claims.end_claims(data, writer, record.id, status)
            return _view(writer, record)

    def _with_changes(self, record: Record, objective: str | None, changes: Mapping[str, Any]) -> Record:
        """Return the record of a task with new values, checked like those of a new one."""
        if objective is None and not changes.keys() - {"state", "reason"}:
            return with_fields(self._data, record, changes)
        fields_now = {**record.data, **{name: value for name, value in changes.items() if name != "tags"}}
        paths = fields.paths_of(fields_now, fields_now.get("reads", ()))
        values = {**fields_now, "tags": changes.get("tags", record.tags), "paths": paths}
        made = self._data.make("task", record.text if objective is None else objective, values, record.scope)
        kept = replace(record, text=made.text, tags=made.tags, paths=made.paths, summary="", micro="")
        return with_fields(self._data, kept, made.data)

    # --- claim --------------------------------------------------------------------------------------------------

    def claim(
        self,
        task: TaskRef | None = None,
        /,
        *,
        exclusive: bool = True,
        seconds: float = CLAIM_SECONDS,
        **options: Unpack[ContextOptions],
    ) -> ClaimWithContext | None:
        """Claim a task, or the next ready one, and compute the context for it; None if no task is ready.

        The task becomes active. No other agent gets it, unless both pass `exclusive=False`. The claim ends with the task,
        when it is released, or after `seconds`; claiming again renews it. Options are those of `engine.context`; `agent`
        defaults to the engine's.
        """
        agent = claims.agent_name(options.get("agent") or self._data.scope.agent)
        length = claims.milliseconds(seconds)
        ref = options.pop("task", None) if task is None else task
        self._release_expired()
        if ref is not None:
            return self._claim(self.get(ref), agent, length, exclusive, options)  # type: ignore[arg-type]
        for ready in self.list(ready=True):
            try:
                return self._claim(ready, agent, length, exclusive, options)
            except Conflict:  # another agent was faster
                continue
        return None

    def _claim(self, task: Task, agent: str, length: int, exclusive: bool, options: ContextOptions) -> ClaimWithContext:
        data = self._data
        refuse_ended(task.record)
        with data.project_reader() as reader:
            claims.refuse_claimed(reader, data.clock(), task.record, agent, exclusive=exclusive)
        context = self._context(**{**options, "task": task.id, "agent": agent})
        claim = self._store_claim(task.id, agent, length, exclusive, context)
        return ClaimWithContext(**{name: getattr(claim, name) for name in Claim.__slots__}, context=context)

    @retry_interrupted
    def _store_claim(self, task: str, agent: str, length: int, exclusive: bool, context: Context) -> Claim:
        data = self._data
        with data.writer() as writer:
            record = claims.claim(
                data,
                writer,
                find(writer, task),
                agent,
                context_id=context.id,
                tokens=context.tokens,
                length_ms=length,
                exclusive=exclusive,
            )
            return claims.claim_views(writer, data.clock(), [record])[0]

    @retry_interrupted
    def claims(self, *, agent: str | None = None, task: TaskRef | None = None) -> Sequence[Claim]:
        """List active claims, oldest first."""
        now = self._data.clock()
        with self._data.project_reader() as reader:
            id = find(reader, task).id if task is not None else None
            return claims.claim_views(reader, now, claims.active_claims(reader, now, agent=agent, task=id))

    @retry_interrupted
    def release(self, *, agent: str | None = None, task: TaskRef | None = None) -> int:
        """Release the claims of an agent, on a task, or both; return their number. A task without claims is open again."""
        if agent is None and task is None:
            raise InputError("Name an agent or a task whose claims should be released.")
        data = self._data
        with data.writer() as writer:
            id = find(writer, task).id if task is not None else None
            held = claims.active_claims(writer, data.clock(), agent=agent, task=id)
            return claims.release(data, writer, held, "released")

    @retry_interrupted
    def _release_expired(self) -> None:
        data = self._data
        with data.project_reader() as reader:
            if not claims.expired_claims(reader, data.clock()):
                return
        with data.writer() as writer:
            claims.release(data, writer, claims.expired_claims(writer, data.clock()), "expired")

    # --- end ----------------------------------------------------------------------------------------------------

    def complete(
        self, task: TaskRef = CURRENT, result: str = "", *, outcome: Outcome = "success", agent: str | None = None
    ) -> Task:
        """Complete a task, which ends every claim on it. `result` is what the tasks that depend on it should know.

        Without a `result`, the task keeps the one that it has. With `agent`, the call is refused if only another agent has
        claimed the task.
        """
        return self._end(task, completed_fields(result, outcome), outcome, agent)

    def fail(self, task: TaskRef, reason: str, *, agent: str | None = None) -> Task:
        """Mark a task as failed, which ends every claim on it. It can be claimed again."""
        return self._end(task, {"state": "failed", "reason": fields.reason_text(reason)}, "failure", agent)

    @retry_interrupted
    def _end(self, task: TaskRef, values: Mapping[str, str], outcome: str, agent: str | None) -> Task:
        data = self._data
        with data.writer(self._scope(agent)) as writer:
            record = find(writer, task)
            refuse_ended(record)
            self._refuse_unclaimed_agent(writer, record, agent)
            after = with_fields(data, record, values, outcome)
            record = writer.change(after, values["state"], expect_version=record.version)
            claims.end_claims(data, writer, record.id, values["state"])
            return _view(writer, record)

    def handoff(
        self,
        task: TaskRef,
        handoff: str | bytes | Mapping[str, object],
        *,
        agent: str | None = None,
        again: bool = False,
        strict: bool = False,
        dry_run: bool = False,
    ) -> Learned:
        """Learn from a handoff and set the task's status from it, which ends every claim on it.

        A handoff is a text in any of the accepted forms, or its fields. All of it is stored or nothing. The same handoff
        twice changes nothing; another one for a completed task is refused, unless `again` says that it counts as well.
        `strict` refuses a handoff with any problem, also one that can be repaired. A dry run reports what would be learned,
        and stores nothing.
        """
        scope = self._scope(agent)
        with self._data.project_reader(scope) as reader:
            record = find(reader, task)
            self._refuse_unclaimed_agent(reader, record, agent)
        return learn(self._data, record.id, handoff, again=again, strict=strict, dry_run=dry_run)

    def _scope(self, agent: str | None) -> Scope:
        """Return the scope in which "current" is looked up."""
        return self._data.scope if agent is None else replace(self._data.scope, agent=agent)

    def _refuse_unclaimed_agent(self, reader: Reader, task: Record, agent: str | None) -> None:
        """Raise a `Conflict` if the call names an agent, and only another one has claimed the task."""
        agent = None if agent is None else claims.agent_name(agent)
        agents = [record.data["agent"] for record in claims.active_claims(reader, self._data.clock(), task=task.id)]
        if agent is not None and agents and agent not in agents:
            raise Conflict(
                f"Task {task.id!r} is claimed by {agents[0]!r}, not by {agent!r}. Claim it first, or name no agent."
            )

    # --- the stack of goals ---------------------------------------------------------------------------------------

    @retry_interrupted
    def push(self, goal: str, *, name: str = "") -> Task:
        """Start a goal as a part of the current one, and make it the current one."""
        data = self._data
        record = stack.new_goal(data, goal, name)
        (vector,) = data.vectors([record.text])
        with data.writer(stack.stack_scope(data.scope)) as writer:
            added = writer.add(record, vector).record
            stack.push(data, writer, added)
            return replace(_view(writer, added), action="added")

    @retry_interrupted
    def pop(self, result: str = "", *, outcome: Outcome = "success") -> Task:
        """Complete the goal on top of the stack with its result, return it, and go back to the goal below."""
        values = completed_fields(result, outcome)
        data = self._data
        with data.writer(stack.stack_scope(data.scope)) as writer:
            goal = stack.pop(data, writer, values, outcome)
            claims.end_claims(data, writer, goal.id, state_of(goal))
            return _view(writer, goal)

    @retry_interrupted
    def current(self) -> Task | None:
        """Return the task of the scope, or else the goal on top of the stack; None if there is neither."""
        with self._data.project_reader() as reader:
            record = current(reader)
            return None if record is None else _view(reader, record)

    @retry_interrupted
    def path(self) -> Sequence[Task]:
        """List the tasks from the root goal to the current one."""
        with self._data.project_reader() as reader:
            return views(reader, stack.path(reader))


def _view(reader: Reader, record: Record) -> Task:
    return views(reader, [record])[0]


def _parent_id(reader: Reader, given: TaskFields) -> str | None:
    parent = given.get("parent")
    return None if parent is None else find(reader, parent).id


def _link_all(writer: Writer, task: str, dependencies: Sequence[str], parent: str | None) -> None:
    for dependency in dependencies:
        writer.link(Link(task, DEPENDS_ON, dependency))
    if parent is not None:
        writer.link(Link(task, PART_OF, parent))


def _relink(writer: Writer, task: str, name: str, targets: Sequence[str]) -> None:
    """Replace the links of one name that begin at a task."""
    known = {link.dst: link for link in writer.links([task], [name])}
    for target in known.keys() - set(targets):
        writer.unlink(known[target])
    for target in targets:
        if target not in known:
            writer.link(Link(task, name, target))
