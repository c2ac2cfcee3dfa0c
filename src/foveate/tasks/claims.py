"""Claims: which agent works on which task, and until when.

A claim is a record of kind `lease` that everyone in the project can see. It counts only while its task is active and its
time has not run out, so a task that ends in any way has no claims.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from foveate.clock import iso
from foveate.errors import Conflict, InputError
from foveate.records import make
from foveate.records.render import title_of
from foveate.store.protocol import Reader, Writer
from foveate.store.scoped import ScopedStore
from foveate.tasks.task import NO_LIMIT, Task, refuse_ended, shared_scope, state_of, views, with_fields
from foveate.types import NO_FILTERS, Record

CLAIM_KIND = "lease"
CLAIM_SECONDS = 3600
"""How long a claim lasts unless it is renewed."""

MAX_CLAIM_SECONDS = 1e9
ACTIVE = "active"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """An agent's claim on a task. Times are milliseconds since 1970."""

    id: str
    agent: str
    task: Task
    context_id: str
    """The context that the agent was given."""
    tokens: int
    """Tokens of that context."""
    since: int
    expires: int
    exclusive: bool
    others: tuple[str, ...] = ()
    """Other agents with a claim on the same task."""


def agent_name(agent: object) -> str:
    """Return the name of the agent that claims a task, or raise an error that says how to name it."""
    if not isinstance(agent, str) or not agent.strip():
        raise InputError("A claim needs the name of an agent: pass agent=..., or open the engine for one.")
    return make.clean_name(agent)


def milliseconds(seconds: float) -> int:
    """Return the length of a claim in milliseconds."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < MAX_CLAIM_SECONDS:
        raise InputError(f"seconds must be positive and below {MAX_CLAIM_SECONDS:.0e}, got {seconds!r}.")
    return round(seconds * 1000)


def active_claims(reader: Reader, now: int, *, agent: str | None = None, task: str | None = None) -> list[Record]:
    """Return the records of active claims, oldest first. `task` is an id."""
    agent = None if agent is None else make.clean_name(agent)
    records = [record for record in _open_records(reader) if record.data["expires"] > now]
    tasks = reader.get(sorted({record.data["task"] for record in records}))
    held = [record for record in records if record.data["task"] in tasks and state_of(tasks[record.data["task"]]) == ACTIVE]
    return [
        record
        for record in sorted(held, key=lambda record: (record.data["since"], record.id))
        if agent in (None, record.data["agent"]) and task in (None, record.data["task"])
    ]


def claim_views(reader: Reader, now: int, records: Iterable[Record]) -> list[Claim]:
    """Return claims with their tasks and the other agents at work on each."""
    records = list(records)
    agents: dict[str, list[str]] = {}
    for record in active_claims(reader, now):
        agents.setdefault(record.data["task"], []).append(record.data["agent"])
    tasks = reader.get(list(dict.fromkeys(record.data["task"] for record in records)))
    views_of = {task.id: task for task in views(reader, list(tasks.values()))}
    return [
        Claim(
            id=record.id,
            agent=record.data["agent"],
            task=views_of[record.data["task"]],
            context_id=record.data["context"],
            tokens=record.data["tokens"],
            since=record.data["since"],
            expires=record.data["expires"],
            exclusive=bool(record.data.get("exclusive")),
            others=tuple(agent for agent in agents.get(record.data["task"], ()) if agent != record.data["agent"]),
        )
        for record in records
    ]


def refuse_claimed(reader: Reader, now: int, task: Record, agent: str, *, exclusive: bool) -> None:
    """Raise a `Conflict` if another agent's claim keeps this agent from the task."""
    for other in active_claims(reader, now, task=task.id):
        if other.data["agent"] != agent and (exclusive or other.data.get("exclusive")):
            name, until = other.data["agent"], iso(other.data["expires"])
            advice = (
                "Wait, or release that claim."
                if other.data.get("exclusive")
                else "Pass exclusive=False to work on it together."
            )
            raise Conflict(f"Task {task.id!r} is claimed by {name!r} until {until}. {advice}")


def claim(
    data: ScopedStore,
    writer: Writer,
    task: Record,
    agent: str,
    *,
    context_id: str,
    tokens: int,
    length_ms: int,
    exclusive: bool,
) -> Record:
    """Make a task active and store an agent's claim on it, or renew the claim."""
    now = data.clock()
    refuse_ended(task)
    refuse_claimed(writer, now, task, agent, exclusive=exclusive)
    if state_of(task) != ACTIVE:
        writer.change(with_fields(data, task, {"state": ACTIVE}), ACTIVE, expect_version=task.version)
    fields = {
        "context": context_id,
        "tokens": tokens,
        "since": now,
        "expires": now + length_ms,
        "state": ACTIVE,
        "exclusive": exclusive,
    }
    key = f"lease:{task.id}:{agent}"
    known = writer.by_key(key)
    if known is not None:
        return _changed(data, writer, known, "claim", fields)
    values = {"data": {"agent": agent, "task": task.id, **fields}, "key": key}
    record = data.make(CLAIM_KIND, f"{agent} works on {title_of(task)}", values, shared_scope(data.scope))
    return writer.add(record).record


def end_claims(data: ScopedStore, writer: Writer, task: str, state: str) -> None:
    """End every claim on a task, because its status changed to `state`."""
    for record in _open_records(writer):
        if record.data["task"] == task:
            _changed(data, writer, record, state, {"state": state})


def release(data: ScopedStore, writer: Writer, records: Iterable[Record], state: str) -> int:
    """End claims before their task does, and return their number. A task without claims is open again."""
    ended = {record.id: record for record in records}
    for record in ended.values():
        _changed(data, writer, record, state, {"state": state})
    still_held = {record.data["task"] for record in _open_records(writer)}
    freed = sorted({record.data["task"] for record in ended.values()} - still_held)
    for task in writer.get(freed).values():
        if state_of(task) == ACTIVE:
            writer.change(with_fields(data, task, {"state": "open"}), "release", expect_version=task.version)
    return len(ended)


def expired_claims(reader: Reader, now: int) -> list[Record]:
    """Return the claims whose agents have not been heard of in time."""
    return [record for record in _open_records(reader) if record.data["expires"] <= now]


def claimed_tasks(reader: Reader) -> dict[str, set[str]]:
    """Return the ids of the tasks that each agent has or had a claim on."""
    tasks: dict[str, set[str]] = {}
    for record in reader.recent([CLAIM_KIND], NO_LIMIT, NO_FILTERS) + reader.recent(
        [CLAIM_KIND], NO_LIMIT, NO_FILTERS, archived=True
    ):
        tasks.setdefault(record.data["agent"], set()).add(record.data["task"])
    return tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimStats:
    """Counts of claims by state and agent, and the tokens of their contexts."""

    claimed: int
    """All claims, the active ones among them."""
    active: int
    completed: int
    failed: int
    blocked: int
    released: int
    expired: int
    by_agent: Mapping[str, int]
    """Active claims of each agent."""
    tokens: int
    """Tokens of the contexts of active claims."""
    average_tokens: int
    """Mean tokens of the contexts of all claims."""


def claim_stats(reader: Reader, now: int) -> ClaimStats:
    """Count the claims of a scope."""
    active = active_claims(reader, now)
    open_records = _open_records(reader)
    archived = reader.recent([CLAIM_KIND], NO_LIMIT, NO_FILTERS, archived=True)
    ended = Counter(record.data["state"] for record in archived)
    ended["expired"] += sum(record.data["expires"] <= now for record in open_records)
    tokens = [record.data["tokens"] for record in (*open_records, *archived)]
    return ClaimStats(
        claimed=len(tokens),
        active=len(active),
        completed=ended["completed"],
        failed=ended["failed"],
        blocked=ended["blocked"],
        released=ended["released"],
        expired=ended["expired"],
        by_agent=dict(sorted(Counter(record.data["agent"] for record in active).items())),
        tokens=sum(record.data["tokens"] for record in active),
        average_tokens=round(sum(tokens) / len(tokens)) if tokens else 0,
    )


def _open_records(reader: Reader) -> list[Record]:
    """Return the claims that were not ended, expired ones among them."""
    return [record for record in reader.recent([CLAIM_KIND], NO_LIMIT, NO_FILTERS) if record.data["state"] == ACTIVE]


def _changed(data: ScopedStore, writer: Writer, record: Record, verb: str, fields: dict[str, Any]) -> Record:
    merged = {**record.data, **fields}
    # Ended claims are archived, so that reading the active ones stays cheap.
    status = "active" if merged["state"] == ACTIVE else "archived"
    after = replace(record, data=merged, status=status, updated=data.clock())
    return writer.change(make.finish(after, data.rules), verb)
