"""Tasks: the stack, what waits for what, and what was handed on."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from foveate.agents import Agents
from foveate.clock import iso
from foveate.engine import Engine
from foveate.operations import json
from foveate.receipts.receipt import Receipt, line, unpack
from foveate.records.kinds import TASK_STATES
from foveate.records.links import DEPENDS_ON, HANDOFF_OF
from foveate.records.render import called, part_of_task
from foveate.server.http.responses import cursor
from foveate.server.inspector.page import Action, Asked, Page
from foveate.store.protocol import Reader
from foveate.tasks.task import Task, state_of, views
from foveate.types import NO_FILTERS, Record

LATEST = 1000
"""Tasks that the page is about, the newest ones: to read them and their links takes some 50 ms."""

DRAWN = 60
"""Tasks in the picture: more cannot be told apart."""

STACKS = 12
"""Stacks of other sessions."""

HANDOFFS, INBOX = 100, 20
"""Handoffs that are looked through for those that were not read as written, and how many of those are shown."""

CONTEXTS = 12
"""Contexts that are looked at for whether they were for a task."""

UNFINISHED = ("open", "active", "blocked")
READY = "ready"

RAW = "raw"
"""The rung of a handoff of which nothing could be read."""

TEXTS = ("description", "acceptance_criteria", "test_criteria", "reads", "files", "steps", "files_to_read")
"""The fields of a task that say what is to be done, in the order in which they are read."""


# --- all of them -----------------------------------------------------------------------------------------------------


def every(asked: Asked) -> dict[str, Any]:
    """The stacks, the latest handoffs that somebody should look at, and the tasks with what they wait for."""
    engine, limit = asked.engine, asked.limit(100)
    status = asked.choice("status", (*TASK_STATES, READY))
    (start,) = asked.after(int) or (0,)
    with engine.reader() as reader:
        tasks = views(reader, reader.recent(["task"], LATEST, NO_FILTERS))
        number = reader.number("task")
        wanted = [task for task in tasks if not status or (task.ready if status == READY else task.status == status)]
        page = wanted[max(0, start) : max(0, start) + limit]
        names = _names(reader, tasks, page)
        handoffs = _handoffs(reader, [task.id for task in page])
        inbox = _inbox(reader)
    agents = _at_work(engine)
    return {
        "counts": {**_counts(tasks), "all": len(tasks)},
        "number": max(number, len(tasks)),
        "status": status,
        "stacks": _stacks(engine, tasks),
        "inbox": inbox,
        "graph": _graph(tasks),
        "tasks": [_row(task, names, handoffs.get(task.id, ()), agents.get(task.id, ())) for task in page],
        "next": cursor(start + limit) if len(wanted) > start + limit else None,
    }


def _counts(tasks: Iterable[Task]) -> dict[str, int]:
    """How many tasks have each status, and how many of the open ones could be started."""
    found = Counter(task.status for task in tasks)
    return {**{state: found[state] for state in TASK_STATES}, READY: sum(task.ready for task in tasks)}


def _named(id: str, name: str, status: str) -> dict[str, str]:
    return {"id": id, "name": name, "status": status}


def _names(reader: Reader, tasks: Sequence[Task], page: Iterable[Task]) -> dict[str, dict[str, str]]:
    """The tasks that the rows of a page speak of, by id."""
    known = {task.id: _named(task.id, task.name, task.status) for task in tasks}
    others = {id for task in page for id in task.waiting_for if id not in known}
    found = reader.get(list(others)) if others else {}
    return known | {id: _named(id, called(record), state_of(record)) for id, record in found.items()}


def _row(
    task: Task, names: Mapping[str, dict[str, str]], handoffs: Sequence[Record], agents: Sequence[str]
) -> dict[str, Any]:
    return {
        **_named(task.id, task.name, task.status),
        "key": task.record.key,
        "ready": task.ready,
        "waits_for": [names[id] for id in task.waiting_for if id in names],
        "parts": len(task.children),
        "agents": list(agents),
        "handoff": _reading(handoffs[0]) if handoffs else None,
        "updated": iso(task.record.updated),
    }


def _at_work(engine: Engine) -> dict[str, list[str]]:
    """The agents that hold a context for each task."""
    found: dict[str, list[str]] = defaultdict(list)
    for lease in Agents(engine).active():
        found[lease.task].append(lease.agent)
    return found


def _stacks(engine: Engine, tasks: Iterable[Task]) -> list[dict[str, Any]]:
    """The stack of whoever looks, and those of the sessions that have a goal at work."""
    mine = (engine.scope.agent, engine.scope.session)
    scopes = [task.record.scope for task in tasks if task.status == "active"]
    others = [(scope.agent or mine[0], scope.session or mine[1]) for scope in scopes if scope.agent or scope.session]
    owners = list(dict.fromkeys((mine, *others)))[: STACKS + 1]
    found = []
    for agent, session in owners:
        path = engine.stack(agent=agent, session=session).path()
        if path or (agent, session) == mine:
            frames = [_named(task.id, task.name, task.status) for task in path]
            found.append({"agent": agent, "session": session, "path": frames})
    return found


# --- the picture -----------------------------------------------------------------------------------------------------


def _graph(tasks: Sequence[Task]) -> dict[str, Any]:
    """Tasks that wait for others or are waited for, in order of their age; where they are many, the nearest to the work."""
    by_id = {task.id: task for task in tasks}
    pairs = [(first, task.id) for task in reversed(tasks) for first in task.depends_on if first in by_id]
    beside: dict[str, set[str]] = defaultdict(set)
    for first, then in pairs:
        beside[first].add(then)
        beside[then].add(first)
    chosen = set(_nearest([by_id[id] for id in by_id if id in beside], beside)[:DRAWN])
    drawn = [task for task in reversed(tasks) if task.id in chosen]
    return {
        "nodes": [{**_named(task.id, task.name, task.status), "ready": task.ready} for task in drawn],
        "edges": [{"first": first, "then": then} for first, then in pairs if first in chosen and then in chosen],
        "not_drawn": len(beside) - len(chosen),
    }


def _nearest(tasks: Sequence[Task], beside: Mapping[str, set[str]]) -> list[str]:
    """What is at work or could be, what that touches, what else is unfinished, what that touches, and the rest."""
    unfinished = {task.id for task in tasks if task.status in UNFINISHED}
    at_hand = {task.id for task in tasks if task.id in unfinished and (task.ready or task.status != "open")}
    rings = [ring for ids in (at_hand, unfinished) for ring in (ids, {other for id in ids for other in beside[id]})]
    place = {task.id: next((n for n, ring in enumerate(rings) if task.id in ring), len(rings)) for task in tasks}
    return sorted(place, key=lambda id: place[id])


# --- handoffs --------------------------------------------------------------------------------------------------------


def _reading(handoff: Record) -> dict[str, Any]:
    """How a handoff could be read: as written, with problems, repaired, or not at all."""
    data = handoff.data
    rung, problems = str(data.get("rung", "")), [str(problem) for problem in data.get("problems", ())]
    read = "with problems" if problems else "as written"
    if rung == RAW:
        read = "unreadable"
    elif rung.startswith("repaired"):
        read = "repaired"
    return {
        "id": handoff.id,
        "read": read,
        "rung": rung,
        "form": str(data.get("form", "")),
        "problems": problems,
        "status": str(data.get("status", "")),
        "created": iso(handoff.created),
        "in_use": handoff.status == "active",
    }


def _handoffs(reader: Reader, tasks: Sequence[str]) -> dict[str, list[Record]]:
    """The handoffs of each task, newest first."""
    links = reader.links(tasks, [HANDOFF_OF], back=True) if tasks else []
    records = reader.get([link.src for link in links]) if links else {}
    found: dict[str, list[Record]] = defaultdict(list)
    for link in links:
        if link.src in records:
            found[link.dst].append(records[link.src])
    return {id: sorted(group, key=lambda record: (-record.created, record.id)) for id, group in found.items()}


def _inbox(reader: Reader) -> list[dict[str, Any]]:
    """The latest handoffs that were not read as written, each with its task."""
    latest = [_reading(record) for record in reader.recent(["handoff"], HANDOFFS, NO_FILTERS)]
    wrong = [one for one in latest if one["read"] != "as written"][:INBOX]
    links = {link.src: link.dst for link in reader.links([one["id"] for one in wrong], [HANDOFF_OF])} if wrong else {}
    tasks = reader.get(list(links.values())) if links else {}
    named = {id: _named(id, called(task), state_of(task)) for id, task in tasks.items()}
    return [{**one, "task": named.get(links.get(one["id"], ""))} for one in wrong]


# --- one of them -----------------------------------------------------------------------------------------------------


def one(asked: Asked) -> dict[str, Any]:
    """A task: what is to be done, the tasks around it, what came of it, and how its handoffs were read."""
    engine = asked.engine
    found = engine.tasks.get(asked.needed("id", "task"))
    engine.save()  # a context of a moment ago counts, too
    with engine.reader() as reader:
        handoffs = _handoffs(reader, [found.id]).get(found.id, [])
        waiting = reader.get([link.src for link in reader.links([found.id], [DEPENDS_ON], back=True)])
        receipts = [unpack(stored.body) for stored in reader.receipts(CONTEXTS, found.id)]
    record = found.record
    return {
        "subject": f"Task: {found.name}"[:80],
        **json.whole_task(engine, found),
        "created": iso(record.created),
        "updated": iso(record.updated),
        "outcome": record.outcome,
        "texts": _texts(record.data),
        "waits_for_it": [_named(id, called(each), state_of(each)) for id, each in waiting.items()],
        "handoffs": [{**_reading(handoff), "summary": handoff.summary, "raw": handoff.text} for handoff in handoffs],
        "leases": [json.lease(lease) for lease in Agents(engine).active(task=found.id)],
        "contexts": [json.listed(line(receipt)) for receipt in receipts if _is_for(receipt, found.id)],
    }


def _texts(data: Mapping[str, Any]) -> dict[str, list[str]]:
    """What is to be done, and what the next task should read, as lines of text."""
    found: dict[str, list[str]] = {}
    for name in TEXTS:
        value = data.get(name) or ()
        lines = [value] if isinstance(value, str) else [part_of_task(part) for part in value]
        found[name] = lines if name in ("description", "steps") else [line.replace("`", "") for line in lines]
    return {name: lines for name, lines in found.items() if lines}


def _is_for(receipt: Receipt, task: str) -> bool:
    """Whether a context that shows a task was computed for it."""
    request = receipt.document["request"]
    return task in (request.get("task"), request["scope"].get("task"))


PAGES: tuple[Page, ...] = (
    Page("tasks", "Tasks", every, hint="The goal that is worked on, what waits for what, and what was handed on."),
    Page("task", "Task", one),
)
ACTIONS: tuple[Action, ...] = ()
