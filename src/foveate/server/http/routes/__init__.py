"""The endpoints, a file for each noun. Each one calls the engine and gives a document; none decides anything."""

from fastapi import APIRouter

from foveate.server.http.routes import (
    agents,
    code,
    contexts,
    entities,
    events,
    handoffs,
    hooks,
    profiles,
    records,
    service,
    sessions,
    stack,
    store,
    tasks,
)

ROUTERS: tuple[APIRouter, ...] = (
    contexts.router,
    records.router,
    entities.router,
    tasks.router,
    handoffs.router,
    stack.router,
    agents.router,
    sessions.router,
    code.router,
    profiles.router,
    store.router,
    events.router,
    hooks.router,
    service.router,
)

OPEN: tuple[APIRouter, ...] = (service.open_router,)
"""These need no token."""
