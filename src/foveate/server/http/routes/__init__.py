"""The endpoints, a module for each group. Each endpoint calls the engine and returns a document."""

from starlette.routing import BaseRoute

from foveate.server.http.routes import code, contexts, events, records, service, tasks

ROUTES: tuple[BaseRoute, ...] = (
    *contexts.router.routes,
    *records.router.routes,
    *tasks.router.routes,
    *code.router.routes,
    *service.router.routes,
    *events.router.routes,
    *service.health_router.routes,
    *service.metrics_router.routes,
)
"""All routes. They are built once and shared by all apps: building them takes longer than most requests."""
