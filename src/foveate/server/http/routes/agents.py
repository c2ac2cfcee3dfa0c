"""`/v1/agents`: who is at work on which task, with which context."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from foveate.agents import strategy_of
from foveate.engine import Engine
from foveate.errors import NotFound
from foveate.operations import json
from foveate.server.http import models
from foveate.server.http.access import Caller, Computes, Reads, Writes, WritesAndComputes
from foveate.server.http.responses import Document
from foveate.server.http.routes.tasks import end_task, ended, moved

router = APIRouter(prefix="/v1/agents", tags=["agents"])

Name = Annotated[str, Path(min_length=1, max_length=500)]


def _engine(caller: Caller, agent: str) -> Engine:
    """The engine for the work of an agent; one that a token speaks for cannot act for another."""
    caller.narrowed(agent=agent)
    return caller.engine


@router.get("")
def active(caller: Reads) -> Response:
    """Who is at work, oldest first; `?agent=` and `?task=` narrow it."""
    claims = caller.engine.tasks.claims(agent=caller.scope.agent, task=caller.scope.task)
    return Document({"claims": [json.claim(claim) for claim in claims]})


@router.get("/stats")
def stats(caller: Reads) -> Response:
    """How many contexts agents were given, and how they ended."""
    return Document(caller.engine.store.stats()["claims"])


@router.post("/clear")
def clear(body: models.Whose, caller: Writes) -> Response:
    """Release contexts of an agent or a task; how many."""
    agent = body.agent or caller.scope.agent  # a token that speaks for one agent releases no other's
    engine = _engine(caller, agent) if agent else caller.engine
    return Document({"released": engine.tasks.release(agent=agent, task=body.task)})


@router.post("/{name}/compile")
def compile_(name: Name, caller: Computes, body: models.Compile | None = None) -> Response:
    """An agent's context from state alone, by its strategy; nothing is started."""
    strategy = strategy_of(name)
    compiled = strategy.compile(_engine(caller, name), **(body.model_dump() if body else {}))
    return Document(json.compiled(strategy, compiled))


@router.post("/{name}/prepare")
def prepare(name: Name, body: models.Prepare, caller: WritesAndComputes) -> Response:
    """Start a task, with the context that an agent begins with."""
    claim = _engine(caller, name).tasks.claim(body.task, agent=name, budget=body.budget, profile=body.profile)
    if claim is None:
        raise NotFound("No task is ready.")
    return Document(json.claim_with_context(claim))


@router.post("/{name}/complete")
def complete(name: Name, body: models.AgentEnding, caller: Writes) -> Response:
    """The agent has done its task, and what came of it."""
    engine = _engine(caller, name)
    return ended(engine, end_task(engine, body.task, body, name), body)


@router.post("/{name}/fail")
def fail(name: Name, body: models.AgentReason, caller: Writes) -> Response:
    """The agent gave its task up, and why."""
    return moved(_engine(caller, name).tasks.fail(body.task, body.reason, agent=name))
