"""The service: an engine behind HTTP. Everything that the library does, for whoever cannot import it.

Comes in: an engine, or where a project is, and settings. Goes out: an ASGI app. Endpoints are plain functions that run in
a few threads (`Settings.workers`); requests beyond that wait in line, so that an answer takes as long as its work.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from threading import Event

import anyio
import anyio.to_thread
from fastapi import Depends, FastAPI
from limits import RateLimitItem
from mcp.server.transport_security import TransportSecuritySettings
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from foveate import __version__, factory
from foveate.engine import Engine
from foveate.engine.engine import view_of
from foveate.errors import StoreError
from foveate.integrations.opentelemetry import instrument
from foveate.project.project import find
from foveate.server.http import problems
from foveate.server.http.access import Door, Who, bearer, refuse_unguarded
from foveate.server.http.embedding import embedding
from foveate.server.http.metrics import Metrics
from foveate.server.http.middleware import Admitted, AnsweredOnce, Answers, Limited, Observed, rate_of
from foveate.server.http.problems import Refused, of_error
from foveate.server.http.routes import OPEN, ROUTERS
from foveate.server.http.settings import Settings
from foveate.server.mcp import create_server
from foveate.server.tokens import Tokens
from foveate.store.address import is_url

BESIDE = 4
"""Threads for what must be answered while all workers are busy: readiness, and streams of events."""

UPKEEP, REST = 600.0, 0.25
"""Seconds between two rounds of retention, and between two batches of one: it is never in a hurry."""

PROBLEM = {"description": "What is wrong, and what to do.", "content": {problems.MEDIA: {"schema": {"type": "object"}}}}


def create_app(where: Engine | str | Path, *, settings: Settings | None = None) -> FastAPI:
    """The service on an engine, or on the project at a path; an engine of the caller's is not closed."""
    from foveate.server.inspector import routes as inspector  # its pages stand on this package

    chosen = settings or Settings()
    file = chosen.tokens or (None if isinstance(where, Engine) or is_url(where) else find(where).tokens)
    tokens = Tokens(file) if file else None
    refuse_unguarded(chosen, tokens)
    rate = rate_of(chosen.rate)
    engine = where if isinstance(where, Engine) else factory.open(where)
    mcp = Mounted(engine, view_of(engine, engine.scope, personal=False) if chosen.needs_tokens else engine)

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        app.state.stopping.clear()
        anyio.to_thread.current_default_thread_limiter().total_tokens = chosen.workers
        app.state.beside = anyio.CapacityLimiter(BESIDE)
        async with mcp.running(), anyio.create_task_group() as beside:
            beside.start_soon(_kept_up, app)
            with embedding(engine, app.state.metrics, app.state.stopping):
                yield
            app.state.stopping.set()
            beside.cancel_scope.cancel()
        await anyio.to_thread.run_sync(engine.receipts.flush if engine is where else engine.close)

    app = FastAPI(
        title="foveate",
        version=__version__,
        description="A context engine for LLM agents.",
        lifespan=life,
        docs_url=None,  # they would load scripts from elsewhere
        redoc_url=None,
        responses={"default": PROBLEM, 422: PROBLEM},
    )
    _fill(app, engine, chosen)
    for router in OPEN:
        app.include_router(router)
    for router in ROUTERS:
        app.include_router(router, dependencies=[Depends(bearer)])
    app.mount("/mcp", mcp)
    problems.register(app)
    door = Door(chosen, tokens, engine.scope)
    _wrap(app, door, rate, chosen.max_body)
    inspector.install(app, door)  # around the rest: it also shows what the rest refuses
    return app


async def _kept_up(app: FastAPI) -> None:
    """Drop what is beyond its retention, now and then and slowly, as long as the service runs."""
    engine: Engine = app.state.engine
    stopping: Event = app.state.stopping
    while True:
        await anyio.sleep(UPKEEP)
        with suppress(StoreError):  # another process is writing: the next round has it too
            await anyio.to_thread.run_sync(engine.store.drop_expired, lambda: stopping.wait(REST), limiter=app.state.beside)


def _fill(app: FastAPI, engine: Engine, settings: Settings) -> None:
    """What the endpoints find in the app's state."""
    app.state.engine = engine
    app.state.settings = settings
    app.state.metrics = Metrics()
    app.state.answers = Answers()
    app.state.stopping = Event()
    app.state.instrument = instrument


def _wrap(app: FastAPI, door: Door, rate: RateLimitItem | None, max_body: int) -> None:
    """Innermost first."""
    app.add_middleware(AnsweredOnce, answers=app.state.answers)
    app.add_middleware(Limited, max_body=max_body)
    app.add_middleware(GZipMiddleware, minimum_size=1024, compresslevel=5)
    app.add_middleware(Admitted, door=door, rate=rate)
    app.add_middleware(Observed, metrics=app.state.metrics)


class Mounted:
    """The MCP server, for those who may do everything short of `admin` in the project that is served: it has one engine for
    all. It is made anew whenever the service starts, because its sessions can be run only once."""

    NEEDED = frozenset(("context:read", "memory:read", "memory:write"))

    def __init__(self, engine: Engine, seen: Engine) -> None:
        self._scope = engine.scope
        self._engine = seen
        self._app: ASGIApp | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        server = create_server(self._engine)
        guarded = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # host and origin are checked before
        self._app = server.streamable_http_app(streamable_http_path="/", transport_security=guarded)
        async with server.session_manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        who: Who = scope["who"]
        if not set(who.allows) >= self.NEEDED or who.scope != self._scope:
            needed = ", ".join(sorted(self.NEEDED))
            error = Refused(403, f"/mcp needs a token for this project, without user and agent, that allows {needed}.")
            await of_error(error)(scope, receive, send)
            return
        assert self._app is not None, "the service is running"
        await self._app(scope, receive, send)
