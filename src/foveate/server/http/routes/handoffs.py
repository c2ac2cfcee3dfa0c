"""`/v1/handoffs`, `/v1/schemas`: what an agent leaves for the next one when a task ends."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from foveate.errors import NotFound, near
from foveate.operations import json
from foveate.records.make import to_json
from foveate.server.http import models
from foveate.server.http.access import Reads, Writes
from foveate.server.http.responses import Document
from foveate.server.http.routes.router import PROBLEMS

router = APIRouter(prefix="/v1", tags=["handoffs"], responses=PROBLEMS)

RAW = "raw"
"""The rung of a text of which nothing could be read."""


@router.post("/handoffs")
def ingest(body: models.Handoff, caller: Writes) -> Response:
    """Learn from a task's handoff, and complete the task: a text in any of the accepted forms, or its fields."""
    return Document(json.learned(caller.engine.tasks.handoff(body.task, body.handoff, again=body.again)))


@router.post("/handoffs/validate")
def validate(body: models.HandoffText, caller: Reads) -> Response:
    """How a handoff would be read; nothing is kept."""
    from foveate.tasks.handoff import parse

    parsed = parse(body.handoff)
    ok = parsed.rung != RAW and not (body.strict and parsed.problems)
    return Document({"ok": ok, **json.parsed_handoff(parsed)})


@router.get("/handoffs/template")
def template(caller: Reads) -> Response:
    """A handoff to fill in; with `?task=`, its id and name are."""
    from foveate.tasks.handoff import template as form

    if caller.scope.task is None:
        return Document({"template": form()})
    found = caller.engine.tasks.get(caller.scope.task)
    return Document({"template": form(found.id, name=found.name)})


@router.get("/handoffs/{id}")
def show(id: str, caller: Reads) -> Response:
    """The latest handoff of a task, as it was written."""
    engine = caller.engine
    task = engine.tasks.get(id)
    found = json.handoff_of(engine, task)
    if found is None:
        raise NotFound(f"Task {id!r} has no handoff. POST /v1/handoffs learns from one.")
    return Document({"task": task.id, "handoff": to_json(found)})


@router.get("/schemas/{name}")
def schema(name: str, caller: Reads) -> Response:
    """The JSON Schema of a document: `handoff`."""
    from foveate.tasks.handoff import json_schema

    if name != "handoff":
        raise NotFound(f"There is no schema {name!r}.{near(name, ['handoff'])}")
    return Document({"name": name, "schema": json_schema()})
