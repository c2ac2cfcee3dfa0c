"""The service: an engine behind HTTP, as an ASGI app.

Endpoints are plain functions that run in a few threads (`Settings.workers`). Further requests wait in line, so that a
response takes as long as its work.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Event

import anyio
import anyio.to_thread
from fastapi import FastAPI
from mcp.server.transport_security import TransportSecuritySettings
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from foveate import __version__, factory
from foveate.engine import Engine
from foveate.engine.engine import view_of
from foveate.integrations.opentelemetry import instrument
from foveate.project.project import locate_project
from foveate.server.http.access import Authenticator, Principal, require_tokens_if_exposed
from foveate.server.http.background import embedding_worker, run_retention
from foveate.server.http.metrics import Metrics
from foveate.server.http.middleware import (
    AccessMiddleware,
    BodyLimitMiddleware,
    IdempotencyCache,
    IdempotencyMiddleware,
    RequestLogMiddleware,
    parse_rate,
)
from foveate.server.http.responses import RequestRefused, error_response, install_error_handlers
from foveate.server.http.routes import ROUTES
from foveate.server.http.routes.events import ContextFeed
from foveate.server.http.settings import Settings
from foveate.server.mcp import create_server
from foveate.server.tokens import Tokens
from foveate.store.database_url import is_url

MAX_STORE_WAIT_S = 1.0
"""How long a request waits for a database that cannot be reached. The answer is then 503, and the client can try again."""

EXTRA_THREADS = 4
"""Threads for readiness checks and event streams, which must be answered while all workers are busy."""


def create_app(engine_or_path: Engine | str | Path, *, settings: Settings | None = None) -> FastAPI:
    """Return the service for an engine, or for the project at a path. An engine of the caller is not closed."""
    from foveate.server.inspector import routes as inspector  # imports this package

    settings = settings or Settings()
    path = None if isinstance(engine_or_path, Engine) else engine_or_path
    file = settings.tokens or (None if path is None or is_url(path) else locate_project(path).tokens_file)
    tokens = Tokens(file) if file else None
    require_tokens_if_exposed(settings, tokens)
    rate = parse_rate(settings.rate)
    engine = engine_or_path if isinstance(engine_or_path, Engine) else factory.open(engine_or_path)
    if hasattr(engine.store.data.store, "limit_waits"):  # only a database on a server can be away
        engine.store.data.store.limit_waits(MAX_STORE_WAIT_S)
    # Callers with a token are not the owner of the personal store, so the tools must not read it.
    mcp = McpMount(engine, view_of(engine, engine.scope, personal=False) if settings.needs_tokens else engine)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        state = app.state
        state.stopping.clear()
        anyio.to_thread.current_default_thread_limiter().total_tokens = settings.workers
        state.extra_threads = anyio.CapacityLimiter(EXTRA_THREADS)
        state.feed = ContextFeed(settings.poll_seconds, state.extra_threads, state.stopping)
        async with mcp.running(), anyio.create_task_group() as background:
            background.start_soon(run_retention, engine, state.stopping, state.extra_threads)
            background.start_soon(state.feed.run)
            with embedding_worker(engine, state.metrics, state.stopping):
                yield
            state.stopping.set()
            background.cancel_scope.cancel()
        await anyio.to_thread.run_sync(engine.receipts.flush if path is None else engine.close)

    app = FastAPI(
        title="foveate",
        version=__version__,
        description="A context engine for LLM agents.",
        lifespan=lifespan,
        docs_url=None,  # the pages would load scripts from another site
        redoc_url=None,
        # A copy, because the inspector adds its routes to the app's list and all apps share ROUTES.
        routes=list(ROUTES),
    )
    state = app.state
    state.engine, state.settings, state.instrument = engine, settings, instrument
    state.metrics, state.idempotency, state.stopping = Metrics(), IdempotencyCache(), Event()
    app.mount("/mcp", mcp)
    install_error_handlers(app)
    authenticator = Authenticator(settings, tokens, engine.scope)
    app.add_middleware(IdempotencyMiddleware, cache=state.idempotency)  # innermost first
    app.add_middleware(BodyLimitMiddleware, max_body=settings.max_body, workers=settings.workers)
    app.add_middleware(GZipMiddleware, minimum_size=1024, compresslevel=5)
    app.add_middleware(AccessMiddleware, authenticator=authenticator, rate=rate)
    app.add_middleware(RequestLogMiddleware, metrics=state.metrics)
    inspector.install(app, authenticator)  # outermost: it also shows refused requests as pages
    return app


class McpMount:
    """The MCP server under `/mcp`. It has one engine for all callers, so a token needs the scope of the whole project.

    The server is created anew each time the service starts, because its session manager can run only once.
    """

    REQUIRED_SCOPES = frozenset(("context:read", "memory:read", "memory:write"))

    def __init__(self, engine: Engine, tools_engine: Engine) -> None:
        self._scope = engine.scope
        self._engine = tools_engine
        self._app: ASGIApp | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        server = create_server(self._engine)
        security = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # the middleware checks host and origin
        self._app = server.streamable_http_app(streamable_http_path="/", transport_security=security)
        async with server.session_manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        principal: Principal = scope["principal"]
        if not set(principal.scopes) >= self.REQUIRED_SCOPES or principal.scope != self._scope:
            required = ", ".join(sorted(self.REQUIRED_SCOPES))
            detail = f"/mcp needs a token for this project, without user and agent, that allows {required}."
            await error_response(RequestRefused(403, detail))(scope, receive, send)
            return
        assert self._app is not None, "the service is running"
        await self._app(scope, receive, send)
