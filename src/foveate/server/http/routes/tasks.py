"""`/v1/tasks`: what is to be done, what it waits for, and what came of it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query
from starlette.responses import Response

from foveate.engine import Engine
from foveate.operations import json
from foveate.options import TaskStatus
from foveate.records.make import to_json
from foveate.server.http import models
from foveate.server.http.access import Reads, Writes
from foveate.server.http.responses import Document, created
from foveate.server.http.routes.router import PROBLEMS
from foveate.tasks.task import Task

router = APIRouter(prefix="/v1", tags=["tasks"], responses=PROBLEMS)


@router.post("/tasks", status_code=201)
def add(
    body: models.NewTask, caller: Writes, key: Annotated[str | None, Header(alias="Idempotency-Key", max_length=200)] = None
) -> Response:
    """Plan a task. With a key that is in use already, nothing is changed."""
    engine = caller.engine
    values = body.values()
    if key and "key" not in values:
        values["key"] = key
    with engine.store.data.reader() as reader:
        known = reader.by_key(values["key"]) is not None if "key" in values else False
    task = engine.tasks.add(body.name, objective=body.objective, **values)
    document = {"id": task.id, "action": "unchanged" if known else "added", "task": json.task(task)}
    return created(document, f"/v1/tasks/{task.id}")


@router.get("/tasks")
def list_tasks(
    caller: Reads,
    status: TaskStatus | None = None,
    ready: bool = False,
    parent: Annotated[str | None, Query(min_length=1, max_length=500)] = None,
) -> Response:
    """All tasks in the order in which they were added: of one status, ready to start, or part of one."""
    engine = caller.engine
    return Document({"tasks": [json.task(task) for task in engine.tasks.list(status=status, ready=ready, parent=parent)]})


@router.get("/tasks/{id}")
def show(id: str, caller: Reads) -> Response:
    """A task by its id or key: its fields, the tasks around it, and what came of it."""
    engine = caller.engine
    return Document(json.whole_task(engine, engine.tasks.get(id)))


@router.post("/tasks/{id}/start")
def start(id: str, caller: Writes) -> Response:
    """Somebody works on it."""
    return moved(caller.engine.tasks.edit(id, status="active"))


@router.post("/tasks/{id}/block")
def block(id: str, body: models.Reason, caller: Writes) -> Response:
    """It cannot go on, and why."""
    return moved(caller.engine.tasks.edit(id, status="blocked", reason=body.reason))


@router.post("/tasks/{id}/fail")
def fail(id: str, body: models.Reason, caller: Writes) -> Response:
    """It was given up, and why; it can be started again."""
    return moved(caller.engine.tasks.fail(id, body.reason))


@router.post("/tasks/{id}/complete")
def complete(id: str, caller: Writes, body: models.Ending | None = None) -> Response:
    """It is done, and what came of it: a result, or a handoff."""
    engine, ending = caller.engine, body or models.Ending()
    return ended(engine, end_task(engine, id, ending), ending)


@router.post("/tasks/{id}/depend")
def depend(id: str, body: models.Depend, caller: Writes) -> Response:
    """Have it wait for others, or name files to read first."""
    found = caller.engine.tasks.get(id)
    all_on = (*found.depends_on, *found.record.data.get("reads", ()), *body.on)
    return moved(caller.engine.tasks.edit(found, depends_on=all_on))


@router.post("/questions/{id}/answer")
def answer(id: str, body: models.Text, caller: Writes) -> Response:
    """Settle a question that a handoff left open; the answer becomes a decision."""
    decision = caller.engine.inbox.answer(id, body.text)
    return Document({"id": decision.id, "question": id, "record": to_json(decision)})


def moved(task: Task) -> Response:
    return Document({"task": json.task(task)})


def end_task(engine: Engine, id: str, ending: models.Ending, agent: str | None = None) -> Task:
    """Complete a task with a result, or take its handoff."""
    values = ending.values()
    if "handoff" not in values:
        return engine.tasks.complete(id, agent=agent, **values)
    return engine.tasks.get(engine.tasks.handoff(id, values["handoff"], agent=agent).task)


def ended(engine: Engine, task: Task, ending: models.Ending) -> Response:
    """A task that has ended and, where it was read from a handoff, how well that went."""
    read = {"handoff": json.handoff_reading(json.handoff_of(engine, task))} if ending.handoff is not None else {}
    return Document({"task": json.task(task), **read})
