"""`/v1/stack`: the goal that is worked on, and the goals above it. `?agent=` and `?session=` say whose."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from foveate.operations import json
from foveate.server.http import models
from foveate.server.http.access import Reads, Writes
from foveate.server.http.responses import Document
from foveate.server.http.routes.router import PROBLEMS
from foveate.server.http.routes.tasks import moved

router = APIRouter(prefix="/v1/stack", tags=["stack"], responses=PROBLEMS)


@router.get("")
def path(caller: Reads) -> Response:
    """From the root goal to the current one; `task` is the current one."""
    frames = [json.task(frame) for frame in caller.engine.tasks.path()]
    return Document({"task": frames[-1] if frames else None, "path": frames})


@router.post("", status_code=201)
def push(body: models.Goal, caller: Writes) -> Response:
    """Take up a goal, as a part of the current one."""
    frame = caller.engine.tasks.push(body.goal, name=body.name)
    return Document({"id": frame.id, "task": json.task(frame)}, 201)


@router.post("/pop")
def pop(caller: Writes, body: models.Popped | None = None) -> Response:
    """Complete the current goal, and go back to the one above."""
    said = body or models.Popped()
    return moved(caller.engine.tasks.pop(said.result, outcome=said.outcome))
