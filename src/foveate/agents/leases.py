"""An agent's life with a task: it is handed a context, works, and completes or fails; if it dies, its lease runs out.

Comes in: an engine, the names of agents, tasks. Goes out: contexts, and a lease for each one that is in use. Leases are
records of the project, so that whoever asks, in any process, sees who is at work; what an agent notes on its task is
private to both, and no lease opens that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from foveate.engine import Engine
from foveate.errors import Conflict, InputError, NotFound
from foveate.pipeline.context import Context
from foveate.records import make
from foveate.records.render import title_of
from foveate.store.protocol import Reader, Writer
from foveate.store.retry import retried
from foveate.tasks.task import EVERY, Task, changed, find, shared, state_of, views
from foveate.types import NO_FILTERS, Record

LEASE_SECONDS = 3600
"""How long an agent may be silent before it counts as gone."""

ACTIVE = "active"


@dataclass(frozen=True, slots=True)
class Lease:
    """An agent's claim on a context for a task. `state` is active, completed, failed, cleared or expired."""

    id: str
    agent: str
    task: str
    context: str
    tokens: int
    since: int
    expires: int
    state: str


@dataclass(frozen=True, slots=True)
class Prepared:
    """What an agent starts with."""

    context: Context
    task: Task
    lease: Lease
    beside: tuple[str, ...] = ()
    """Other agents that are at work on the same task."""

    @property
    def success(self) -> bool:
        """Always: what could not be prepared is an error, and leaves no lease."""
        return True


class Agents:
    """The agents that work on one engine's tasks."""

    def __init__(self, engine: Engine, *, lease_seconds: float = LEASE_SECONDS) -> None:
        if not isinstance(lease_seconds, int | float) or not 0 < lease_seconds < 1e9:
            raise InputError(f"A lease lasts some seconds, not {lease_seconds!r}.")
        self._engine = engine
        self._length = round(lease_seconds * 1000)

    def prepare(self, agent: str, task: str, **options: Any) -> Prepared:
        """A fresh context for an agent and a task, which is started. Options are those of `engine.context`.

        Asked again, it computes again and renews the lease. What crashed agents left is released first.
        """
        _check_agent(agent)
        self.expire()
        found = self._engine.tasks.get(task)
        if found.status == "completed":
            raise Conflict(f"Task {found.id!r} is completed already; there is nothing to prepare.")
        context = self._engine.context(task=found.id, agent=agent, **options)
        beside = tuple(lease.agent for lease in self.active(task=found.id) if lease.agent != agent)
        started, lease = self._begun(agent, found.id, context)
        return Prepared(context, started, lease, beside)

    @retried
    def renew(self, agent: str, task: str) -> Lease:
        """Still at work: the lease begins anew."""
        engine = self._engine
        with engine.store.data.store.write(engine.scope) as writer:
            record = self._own_record(writer, agent, task)
            expires = engine.store.data.clock() + self._length
            return _lease(self._changed(writer, record, "renew", expires=expires))

    def complete(self, agent: str, task: str, result: str = "", *, handoff: Any = None, outcome: str | None = None) -> Task:
        """The task is done and the agent's context released, with what came of it."""
        return self._finish(
            agent, task, lambda id: self._engine.tasks.complete(id, result, handoff=handoff, outcome=outcome)
        )

    def fail(self, agent: str, task: str, reason: str) -> Task:
        """The task was given up and the agent's context released, with the reason."""
        return self._finish(agent, task, lambda id: self._engine.tasks.fail(id, reason))

    @retried
    def active(self, *, agent: str | None = None, task: str | None = None) -> list[Lease]:
        """The contexts in use, oldest first; those of crashed agents are not, once their lease has run out."""
        now = self._engine.store.data.clock()
        with self._engine.store.data.store.read(self._engine.scope) as reader:
            id = find(reader, task).id if task is not None else None
            return [lease for lease in _leases(reader) if _matches(lease, agent, id) and lease.expires > now]

    def clear(self, *, agent: str | None = None, task: str | None = None) -> int:
        """Release the contexts of an agent, of a task, or of both; how many. The tasks are open again."""
        if agent is None and task is None:
            raise InputError("Name an agent or a task whose contexts should be cleared.")
        id = self._engine.tasks.get(task).id if task is not None else None
        return self._release("cleared", lambda lease: _matches(lease, agent, id))

    def expire(self) -> int:
        """Release what agents hold that have not been heard of for the length of their lease; how many."""
        now = self._engine.store.data.clock()
        return self._release("expired", lambda lease: lease.state == ACTIVE and lease.expires <= now)

    @retried
    def stats(self) -> dict[str, Any]:
        """How many contexts were prepared, are in use and how they ended, and what they cost in tokens."""
        now = self._engine.store.data.clock()
        with self._engine.store.data.store.read(self._engine.scope) as reader:
            leases = _leases(reader)
            over = _leases(reader, archived=True)
        held = [lease for lease in leases if lease.expires > now]
        ended = Counter(lease.state for lease in over)
        ended["expired"] += len(leases) - len(held)
        tokens = [lease.tokens for lease in (*leases, *over)]
        return {
            "prepared": len(tokens),
            "active": len(held),
            **{state: ended[state] for state in ("completed", "failed", "cleared", "expired")},
            "by_agent": dict(sorted(Counter(lease.agent for lease in held).items())),
            "tokens": sum(lease.tokens for lease in held),
            "average_tokens": round(sum(tokens) / len(tokens)) if tokens else 0,
        }

    # --- steps -------------------------------------------------------------------------------------------------

    @retried
    def _begun(self, agent: str, task: str, context: Context) -> tuple[Task, Lease]:
        """The task at work and the agent's lease on its context, renewed or new, in one transaction."""
        engine = self._engine
        with engine.store.data.store.write(engine.scope) as writer:
            record = find(writer, task)
            if state_of(record) == "completed" or record.status != "active":
                raise Conflict(f"Task {record.id!r} was finished in the meantime.")
            if state_of(record) != ACTIVE:
                record = writer.change(changed(engine._memory, record, {"state": ACTIVE}), ACTIVE, expect=record.version)
            now = engine.store.data.clock()
            data = {"context": context.id, "tokens": context.tokens, "since": now, "expires": now + self._length}
            known = writer.by_key(_key(agent, record.id))
            if known is None:
                text = f"{agent} works on {title_of(record)}"
                values = {"agent": agent, "task": record.id, **data, "state": ACTIVE}
                made = engine.store.data.make(
                    "lease", text, {"data": values, "key": _key(agent, record.id)}, shared(engine.scope)
                )
                known = writer.add(made).record
            else:
                known = self._changed(writer, known, "prepare", state=ACTIVE, **data)
            return views(writer, [record])[0], _lease(known)

    def _finish(self, agent: str, task: str, move: Callable[[str], Task]) -> Task:
        id = self._held(agent, task)
        try:
            moved = move(id)
        except Conflict:  # another agent was faster: this one holds nothing any more either
            self.clear(agent=agent, task=id)
            raise
        self._let_go(agent, id, moved.status)
        return moved

    @retried
    def _held(self, agent: str, task: str) -> str:
        with self._engine.store.data.store.read(self._engine.scope) as reader:
            return str(self._own_record(reader, agent, task).data["task"])

    @retried
    def _let_go(self, agent: str, id: str, status: str) -> None:
        with self._engine.store.data.store.write(self._engine.scope) as writer:
            held = writer.by_key(_key(agent, id))
            if held is not None:
                self._changed(writer, held, status, state=status)

    @retried
    def _release(self, state: str, wanted: Callable[[Lease], bool]) -> int:
        """End some leases; a task that nobody holds any more, and that was at work, is open again."""
        engine = self._engine
        with engine.store.data.store.read(engine.scope) as reader:
            if not any(lease.state == ACTIVE and wanted(lease) for lease in _leases(reader)):
                return 0
        with engine.store.data.store.write(engine.scope) as writer:
            leases = [lease for lease in _leases(writer) if lease.state == ACTIVE]
            ended = [lease for lease in leases if wanted(lease)]
            gone = {lease.id for lease in ended}
            still = {lease.task for lease in leases if lease.id not in gone}
            for lease in ended:
                self._changed(writer, writer.get([lease.id])[lease.id], state, state=state)
            for task in writer.get(sorted({lease.task for lease in ended} - still)).values():
                if state_of(task) == ACTIVE:
                    writer.change(changed(engine._memory, task, {"state": "open"}), "release", expect=task.version)
        return len(ended)

    def _own_record(self, reader: Reader, agent: str, task: str) -> Record:
        _check_agent(agent)
        id = find(reader, task).id
        record = reader.by_key(_key(agent, id))
        if record is None or record.data["state"] != ACTIVE:
            ended = f"; its lease is {record.data['state']}" if record is not None else ""
            raise NotFound(f"Agent {agent!r} holds no context for task {id!r}{ended}. Prepare one first.")
        return record

    def _changed(self, writer: Writer, record: Record, verb: str, **data: Any) -> Record:
        merged = {**record.data, **data}
        status = "active" if merged["state"] == ACTIVE else "archived"  # what is over costs the next one nothing
        after = replace(record, data=merged, status=status, updated=self._engine.store.data.clock())
        return writer.change(make.finish(after, self._engine.store.data.rules), verb)


def _leases(reader: Reader, *, archived: bool = False) -> list[Lease]:
    """Those in use, or those that are over."""
    found = [_lease(record) for record in reader.recent(["lease"], EVERY, NO_FILTERS, archived=archived)]
    return sorted(found, key=lambda lease: (lease.since, lease.id))


def _lease(record: Record) -> Lease:
    data = record.data
    return Lease(
        record.id,
        data["agent"],
        data["task"],
        data["context"],
        data["tokens"],
        data["since"],
        data["expires"],
        data["state"],
    )


def _matches(lease: Lease, agent: str | None, task: str | None) -> bool:
    return lease.state == ACTIVE and agent in (None, lease.agent) and task in (None, lease.task)


def _key(agent: str, task: str) -> str:
    return f"lease:{task}:{agent}"


def _check_agent(agent: str) -> None:
    if not isinstance(agent, str) or not agent.strip():
        raise InputError("An agent needs a name.")
