"""`/v1/tasks` and `/v1/claims`: planned tasks, the agents that work on them, and their results."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from fastapi import Header, Query
from pydantic import WithJsonSchema
from starlette.responses import Response

from foveate.engine import Engine
from foveate.engine.tasks import Tasks
from foveate.errors import NotFound
from foveate.operations import documents
from foveate.options import Outcome, TaskStatus
from foveate.server.http.access import Caller, Reads, Writes, WritesAndComputes
from foveate.server.http.bodies import Arguments, refuse_fields
from foveate.server.http.responses import Document
from foveate.server.http.routes.router import new_router
from foveate.tasks.handoff import json_schema, template
from foveate.tasks.task import CURRENT, Task

router = new_router("tasks")

HandoffText = Annotated[str | dict[str, Any], WithJsonSchema({"anyOf": [{"type": "string"}, json_schema()]})]

NewTask = Annotated[dict[str, Any], Arguments(Tasks.add, name="NewTask", push=NotRequired[bool])]
TaskEdit = Annotated[
    dict[str, Any],
    Arguments(
        Tasks.edit,
        name="TaskEdit",
        omit=["task"],
        status=NotRequired[TaskStatus],
        result=NotRequired[str],
        outcome=NotRequired[Outcome],
        agent=NotRequired[str],
    ),
]
NewHandoff = Annotated[dict[str, Any], Arguments(Tasks.handoff, name="NewHandoff", omit=["task"], handoff=HandoffText)]
NewClaim = Annotated[dict[str, Any], Arguments(Tasks.claim, name="NewClaim")]

ENDING_FIELDS = {"completed": {"result", "outcome", "agent"}, "failed": {"reason", "agent"}}
"""Fields that can be set together with a status that ends a task."""


@router.get("/tasks")
def list_tasks(
    caller: Reads,
    status: TaskStatus | None = None,
    ready: bool = False,
    parent: Annotated[str | None, Query(min_length=1, max_length=500)] = None,
) -> Response:
    """List tasks in the order in which they were added."""
    tasks = caller.engine.tasks.list(status=status, ready=ready, parent=parent)
    return Document({"tasks": [documents.task(task) for task in tasks]})


@router.post("/tasks", status_code=201)
def add(
    body: NewTask, caller: Writes, key: Annotated[str | None, Header(alias="Idempotency-Key", max_length=200)] = None
) -> Response:
    """Add a task, or with `push` start a goal as a part of the current one. A key that is in use already changes nothing."""
    engine = caller.engine
    if body.pop("push", False):
        refuse_fields(body, ("name", "objective"), "a goal that is pushed")
        name = body["name"] if "objective" in body else ""
        return _created(engine.tasks.push(body.get("objective") or body["name"], name=name))
    if key:
        body.setdefault("key", key)
    return _created(engine.tasks.add(**body))


def _created(task: Task) -> Response:
    document = {"id": task.id, "action": task.action, "task": documents.task(task)}
    return Document(document, 201, {"Location": f"/v1/tasks/{task.id}"})


@router.get("/tasks/{id}")
def show(id: str, caller: Reads) -> Response:
    """Show a task by its id or key: its fields, the tasks that it is linked to, and its results.

    `current` is the task that is worked on, of the session and the agent that the request names. `path` then leads to it.
    """
    engine = caller.engine
    document = documents.whole_task(engine, engine.tasks.get(id))
    if id == CURRENT:
        document["path"] = [documents.task(task) for task in engine.tasks.path()]
    return Document(document)


@router.patch("/tasks/{id}")
def edit(id: str, body: TaskEdit, caller: Writes) -> Response:
    """Change fields or the status of a task. `completed` takes `result` and `outcome`, `failed` and `blocked` a `reason`.

    A task that ends has no claims any more. With `agent`, ending it is refused if only another agent has claimed it.
    """
    status, agent = body.get("status"), _agent(caller, body.get("agent"))
    if status not in ENDING_FIELDS:
        refuse_fields(body, body.keys() - {"result", "outcome", "agent"}, "a task that does not end")
        return _task(caller.engine.tasks.edit(id, **body))
    refuse_fields(body, {"status", *ENDING_FIELDS[status]}, f"status {status!r}")
    tasks, result = caller.engine.tasks, body.get("result", "")
    if status == "failed":
        return _task(tasks.fail(id, body.get("reason", ""), agent=agent))
    outcome = body.get("outcome", "success")
    if id == CURRENT and caller.scope.task is None:  # the goal on top of the stack: the one below is current again
        return _task(tasks.pop(result, outcome=outcome))
    return _task(tasks.complete(id, result, outcome=outcome, agent=agent))


def _agent(caller: Caller, agent: str | None) -> str | None:
    """Return the agent that ends a task: the one of the body, else of the request. A token can name only its own."""
    caller.engine_for({"agent": agent})
    return agent or caller.scope.agent


def _task(task: Task) -> Response:
    return Document({"task": documents.task(task)})


@router.get("/tasks/{id}/handoff")
def show_handoff(id: str, caller: Reads) -> Response:
    """Show the latest handoff of a task as it was written, or null, and a template to fill in."""
    engine = caller.engine
    task = engine.tasks.get(id)
    handoff = documents.handoff_of(engine, task)
    form = template(task.id, name=task.name)
    return Document({"task": task.id, "handoff": handoff, "template": form})


@router.post("/tasks/{id}/handoff")
def take_handoff(id: str, body: NewHandoff, caller: Writes) -> Response:
    """Learn from a handoff and set the task's status from it. A dry run reports what would be learned."""
    body["agent"] = _agent(caller, body.get("agent"))
    return Document(documents.plain(caller.engine.tasks.handoff(id, **body)))


@router.get("/claims")
def list_claims(caller: Reads) -> Response:
    """List active claims, oldest first; `agent` and `task` select some."""
    claims = caller.engine.tasks.claims(agent=caller.scope.agent, task=caller.scope.task)
    return Document({"claims": [documents.claim(claim) for claim in claims]})


@router.post("/claims")
def claim(body: NewClaim, caller: WritesAndComputes) -> Response:
    """Claim a task, or the next ready one, and compute the context for it. `claim` is null if no task is ready."""
    task = body.pop("task", None)
    engine = caller.engine_for(body)
    found = engine.tasks.claim(task, agent=engine.scope.agent, **body)
    return Document({"claim": None, "context": None} if found is None else documents.claim_with_context(found))


@router.delete("/claims/{id}")
def release(id: str, caller: Writes) -> Response:
    """Release a claim. A task without claims is open again."""
    engine = caller.engine
    found = _claim(engine, id)
    caller.engine_for({"agent": found.agent})  # a token of one agent must not release the claims of another
    return Document({"released": engine.tasks.release(agent=found.agent, task=found.task)})


def _claim(engine: Engine, id: str) -> Any:
    found = next((claim for claim in engine.tasks.claims() if claim.id == id), None)
    if found is None:
        raise NotFound(f"No active claim {id!r}. GET /v1/claims lists them.")
    return found
