"""`/v1/agents`: who is at work on which task, with which context."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from foveate.agents import Agents, strategy_of
from foveate.engine import Engine
from foveate.operations import json
from foveate.server.http import models
from foveate.server.http.access import Caller, Computes, Reads, Writes, WritesAndComputes
from foveate.server.http.responses import Document
from foveate.server.http.routes.router import PROBLEMS
from foveate.server.http.routes.tasks import ended, moved

router = APIRouter(prefix="/v1/agents", tags=["agents"], responses=PROBLEMS)

Name = Annotated[str, Path(min_length=1, max_length=500)]


def _engine(caller: Caller, agent: str) -> Engine:
    """The engine for the work of an agent; one that a token speaks for cannot act for another."""
    caller.narrowed(agent=agent)
    return caller.engine


@router.get("")
def active(caller: Reads) -> Response:
    """Who is at work, oldest first; `?agent=` and `?task=` narrow it."""
    leases = Agents(caller.engine).active(agent=caller.scope.agent, task=caller.scope.task)
    return Document({"leases": [json.lease(lease) for lease in leases]})


@router.get("/stats")
def stats(caller: Reads) -> Response:
    """How many contexts agents were given, and how they ended."""
    return Document(Agents(caller.engine).stats())


@router.post("/clear")
def clear(body: models.Whose, caller: Writes) -> Response:
    """Release contexts of an agent or a task; how many."""
    agent = body.agent or caller.scope.agent  # a token that speaks for one agent releases no other's
    engine = _engine(caller, agent) if agent else caller.engine
    return Document({"released": Agents(engine).clear(agent=agent, task=body.task)})


@router.post("/{name}/compile")
def compile_(name: Name, caller: Computes, body: models.Compile | None = None) -> Response:
    """An agent's context from state alone, by its strategy; nothing is started."""
    strategy = strategy_of(name)
    compiled = strategy.compile(_engine(caller, name), **(body.model_dump() if body else {}))
    return Document(json.compiled(strategy, compiled))


@router.post("/{name}/prepare")
def prepare(name: Name, body: models.Prepare, caller: WritesAndComputes) -> Response:
    """Start a task, with the context that an agent begins with."""
    ready = Agents(_engine(caller, name)).prepare(name, body.task, budget=body.budget, profile=body.profile)
    return Document(json.prepared(ready))


@router.post("/{name}/renew")
def renew(name: Name, body: models.AgentTask, caller: Writes) -> Response:
    """Still at work."""
    return Document({"lease": json.lease(Agents(_engine(caller, name)).renew(name, body.task))})


@router.post("/{name}/complete")
def complete(name: Name, body: models.AgentEnding, caller: Writes) -> Response:
    """The agent has done its task, and what came of it."""
    engine = _engine(caller, name)
    return ended(engine, Agents(engine).complete(name, body.task, **body.values()), body)


@router.post("/{name}/fail")
def fail(name: Name, body: models.AgentReason, caller: Writes) -> Response:
    """The agent gave its task up, and why."""
    return moved(Agents(_engine(caller, name)).fail(name, body.task, body.reason))
