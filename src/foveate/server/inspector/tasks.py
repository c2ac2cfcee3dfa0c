"""Pages about tasks: the tree with dependencies and claims, and one task with its handoffs and contexts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from foveate.clock import iso
from foveate.operations import documents
from foveate.receipts.codec import unpack
from foveate.receipts.receipt import Receipt
from foveate.receipts.summary import summary_of
from foveate.records.kinds import DEPENDS_ON, HANDOFF_OF, TASK_STATES
from foveate.records.render import part_of_task
from foveate.server.http.responses import encode_cursor
from foveate.server.inspector.page import Page, PageRequest
from foveate.store.protocol import Reader
from foveate.tasks.task import Task, views
from foveate.types import NO_FILTERS, Record

MAX_TASKS = 1000
"""Newest tasks that the page reads. That many tasks and their links take about 50 ms."""

MAX_HANDOFFS_READ, MAX_PROBLEM_HANDOFFS = 100, 20
MAX_CONTEXTS_READ = 12

READY_STATE = "ready"

RAW_METHOD = "raw"
"""How a handoff was parsed of which only the text could be kept."""

TEXT_FIELDS = ("description", "acceptance_criteria", "test_criteria", "reads", "files", "steps", "files_to_read")
"""Fields that say what a task is about, in reading order."""


# --- all tasks -------------------------------------------------------------------------------------------------------


def tasks_page(request: PageRequest) -> dict[str, Any]:
    """Show the tree of tasks, what each waits for, who claimed it, and handoffs that could not be read as written."""
    engine, limit = request.engine, request.limit(100)
    status = request.choice("status", (*TASK_STATES, READY_STATE))
    (start,) = request.cursor(int) or (0,)
    start = max(0, start)
    claims = engine.tasks.claims()
    current = engine.tasks.current()
    with engine.store.data.reader() as reader:
        tasks = views(reader, reader.recent(["task"], MAX_TASKS, NO_FILTERS))
        rows = [(task, 0) for task in tasks if _has_status(task, status)] if status else list(_tree(tasks))
        page = rows[start : start + limit]
        named = {task.id: task for task in tasks}
        # A task may wait for one that is older than all that were read.
        others = {id for task, _ in page for id in task.waiting_for} - named.keys()
        named |= {task.id: task for task in _tasks(reader, others)}
        handoffs = _handoffs(reader, [task.id for task, _ in page])
        problem_handoffs = _problem_handoffs(reader)
        number = reader.count("task")
    agents: dict[str, list[str]] = defaultdict(list)
    for claim in claims:
        agents[claim.task.id].append(claim.agent)
    counts = Counter(task.status for task in tasks)
    return {
        "counts": {
            "all": len(tasks),
            **{state: counts[state] for state in TASK_STATES},
            READY_STATE: sum(task.ready for task in tasks),
        },
        "number": max(number, len(tasks)),
        "status": status,
        "tasks": [
            {
                "task": task,
                "depth": depth,
                "is_current": current is not None and task.id == current.id,
                "waits_for": [named[id] for id in task.waiting_for if id in named],
                "agents": agents[task.id],
                "handoff": _handoff_view(handoffs[task.id][0]) if handoffs[task.id] else None,
            }
            for task, depth in page
        ],
        "claims": claims,
        "problem_handoffs": problem_handoffs,
        "next": encode_cursor(start + limit) if len(rows) > start + limit else None,
    }


def _has_status(task: Task, status: str) -> bool:
    return task.ready if status == READY_STATE else task.status == status


def _tree(tasks: Sequence[Task]) -> Iterator[tuple[Task, int]]:
    """Yield each task with its depth, parts after the task that they belong to."""
    by_id = {task.id: task for task in tasks}
    seen: set[str] = set()
    roots = [task for task in tasks if task.parent not in by_id]
    stack = [(task, 0) for task in reversed([*roots, *tasks])]  # all tasks again: an import can bring a cycle without a root
    while stack:
        task, depth = stack.pop()
        if task.id in seen:
            continue
        seen.add(task.id)
        yield task, depth
        stack += [(by_id[id], depth + 1) for id in reversed(task.children) if id in by_id]


def _tasks(reader: Reader, ids: Iterable[str]) -> list[Task]:
    return views(reader, list(reader.get(list(ids)).values()))


# --- handoffs --------------------------------------------------------------------------------------------------------


def _handoff_view(handoff: Record) -> dict[str, Any]:
    """Return how a handoff was parsed: as written, with problems, repaired, or not at all."""
    method, problems = str(handoff.data.get("rung", "")), [str(problem) for problem in handoff.data.get("problems", ())]
    parsed = "with problems" if problems else "as written"
    if method == RAW_METHOD:
        parsed = "unreadable"
    elif method.startswith("repaired"):
        parsed = "repaired"
    return {
        "id": handoff.id,
        "parsed": parsed,
        "method": method,
        "form": str(handoff.data.get("form", "")),
        "problems": problems,
        "status": str(handoff.data.get("status", "")),
        "created": iso(handoff.created),
        "is_active": handoff.status == "active",
    }


def _handoffs(reader: Reader, tasks: Sequence[str]) -> dict[str, list[Record]]:
    """Return the handoffs of each task, newest first."""
    links = reader.links(tasks, [HANDOFF_OF], incoming=True) if tasks else []
    records = reader.get([link.src for link in links]) if links else {}
    found: dict[str, list[Record]] = defaultdict(list)
    for record in sorted(records.values(), key=lambda record: (record.created, record.id), reverse=True):
        for link in links:
            if link.src == record.id:
                found[link.dst].append(record)
    return found


def _problem_handoffs(reader: Reader) -> list[dict[str, Any]]:
    """Return the latest handoffs that could not be read as written, each with its task."""
    latest = [_handoff_view(record) for record in reader.recent(["handoff"], MAX_HANDOFFS_READ, NO_FILTERS)]
    found = [handoff for handoff in latest if handoff["parsed"] != "as written"][:MAX_PROBLEM_HANDOFFS]
    task_of = {link.src: link.dst for link in reader.links([one["id"] for one in found], [HANDOFF_OF])} if found else {}
    tasks = {task.id: task for task in _tasks(reader, task_of.values())}
    return [{**handoff, "task": tasks.get(task_of.get(handoff["id"], ""))} for handoff in found]


# --- one task --------------------------------------------------------------------------------------------------------


def task_page(request: PageRequest) -> dict[str, Any]:
    """Show a task: what is to be done, the tasks around it, its result, its handoffs and its contexts."""
    engine = request.engine
    task = engine.tasks.get(request.require("id", "task"))
    engine.receipts.flush()  # a context whose receipt is not written yet may be for this task
    with engine.store.data.reader() as reader:
        handoffs = _handoffs(reader, [task.id])[task.id]
        waiting = _tasks(reader, [link.src for link in reader.links([task.id], [DEPENDS_ON], incoming=True)])
    with engine.store.data.project_reader() as project:
        receipts = [unpack(stored.body) for stored in project.receipts(MAX_CONTEXTS_READ, task.id)]
    return {
        "subject": f"Task: {task.name}"[:80],
        **documents.whole_task(engine, task),
        "texts": _specification_lines(task.record.data),
        "waits_for_it": waiting,
        "handoffs": [{**_handoff_view(handoff), "summary": handoff.summary, "raw": handoff.text} for handoff in handoffs],
        "claims": engine.tasks.claims(task=task),
        "contexts": [summary_of(receipt) for receipt in receipts if _is_for(receipt, task.id)],
    }


def _specification_lines(data: Mapping[str, Any]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in TEXT_FIELDS:
        value = data.get(name) or ()
        lines = [value] if isinstance(value, str) else [part_of_task(part) for part in value]
        found[name] = lines if name in ("description", "steps") else [text.replace("`", "") for text in lines]
    return {name: lines for name, lines in found.items() if lines}


def _is_for(receipt: Receipt, task: str) -> bool:
    """Return whether a context that shows a task was computed for it."""
    return task in (receipt.request.task, receipt.request.scope.task)


PAGES = (
    Page("tasks", "Tasks", tasks_page),
    Page("task", "Task", task_page, in_navigation=False),
)
