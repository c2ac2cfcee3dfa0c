"""Endpoints about the service and the whole store: figures, export and import, hooks, health."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio.to_thread
from fastapi import Query, Request
from starlette.background import BackgroundTask
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response

from foveate import __version__
from foveate.engine import Engine
from foveate.errors import StoreError
from foveate.integrations.hooks.hosts import handle
from foveate.integrations.importers import import_lines
from foveate.operations import documents
from foveate.server.http.access import Administers, Caller, Reads, WritesAndComputes, require_scope
from foveate.server.http.bodies import check_body
from foveate.server.http.responses import Document, RequestRefused
from foveate.server.http.routes.router import new_router

router = new_router("store")
health_router = new_router("service", prefix="", public=True)
metrics_router = new_router("service", prefix="")

NDJSON, SQLITE = "application/x-ndjson", "application/vnd.sqlite3"
EXPORT: dict[str, Any] = {"content": {NDJSON: {"schema": {}}, SQLITE: {"schema": {}}}}
NDJSON_BODY: dict[str, Any] = {"requestBody": {"content": {NDJSON: {"schema": {}}}}}

ImportFormat = Literal["auto", "foveate", "claude-code", "codex", "jsonl", "markdown"]


@router.get("/stats")
def stats(caller: Reads, days: Annotated[int, Query(ge=0, le=365)] = 0) -> Response:
    """Show counts of records, the latest contexts, claims, and metrics with their targets; with `days`, also day by day.

    They are those of the user and agent that the token or the request names, or of the whole project.
    """
    return Document(documents.plain(caller.engine.store.stats(days=days)))


@router.get("/export", responses={200: EXPORT}, response_class=FileResponse)
def export(caller: Administers, format: Literal["jsonl", "sqlite"] = "jsonl") -> Response:
    """Download all records of the scope as lines of JSON, or a copy of the whole store as an SQLite file."""
    return _backup(caller) if format == "sqlite" else _lines(caller.engine)


def _lines(engine: Engine) -> Response:
    # Into a file first: a slow client would keep a snapshot open, and the store's log would grow.
    with tempfile.NamedTemporaryFile("wb", suffix=".jsonl", delete=False) as file:
        file.writelines(line.encode() + b"\n" for line in engine.store.export_lines())
    return FileResponse(file.name, media_type=NDJSON, background=BackgroundTask(os.unlink, file.name))


def _backup(caller: Caller) -> Response:
    if not caller.principal.is_owner:
        raise RequestRefused(
            403, "The file would hold every project of the store. Run `foveate store backup` where the service runs."
        )
    folder = tempfile.mkdtemp(prefix="foveate-")
    target = Path(folder) / "state.db"
    caller.engine.store.backup(target)

    def remove() -> None:
        target.unlink(missing_ok=True)
        os.rmdir(folder)

    return FileResponse(target, media_type=SQLITE, filename="state.db", background=BackgroundTask(remove))


@router.post("/import", openapi_extra=NDJSON_BODY)
def import_(request: Request, caller: Administers, format: Annotated[ImportFormat, Query()] = "auto") -> Response:
    """Import an export, or what other programs have written. Records that exist already stay as they are."""
    if caller.principal.scope.agent is not None:
        raise RequestRefused(403, "Imported lines name their agents: a token for one agent cannot import.")
    # The body is no parameter: FastAPI would try to read lines of JSON as one document.
    lines = request.scope["body"].splitlines(keepends=True)
    return Document(documents.plain(import_lines(caller.engine.store.data, lines, "the body", format, strict=True)))


@router.post("/hooks/{host}", tags=["hooks"])
def hook(host: str, event: dict[str, Any], caller: WritesAndComputes) -> Response:
    """Handle the event of a coding agent's hook, as its host wrote it. The answer is what the hook prints."""
    # Not a Document: the host knows its own format, which has no schema_version.
    return JSONResponse(handle(caller.engine, host, check_body(event)))


# --- health and metrics --------------------------------------------------------------------------------------------


READY_TIMEOUT_S = 1.5
"""How long a readiness check waits for the store. Load balancers give up after a few seconds."""


@health_router.get("/healthz")
async def healthz() -> Response:
    """Report that the process is running."""
    return Document({"ok": True, "version": __version__})


@health_router.get("/readyz")
async def readyz(request: Request, full: bool = False) -> Response:
    """Report that the store answers. `full` checks the whole store and needs the scope `admin`."""
    state, principal = request.app.state, request.scope["principal"]
    if state.stopping.is_set():
        raise StoreError("The service is stopping.")
    revision = None
    with anyio.move_on_after(READY_TIMEOUT_S):
        revision = await anyio.to_thread.run_sync(
            _revision, state.engine, limiter=state.extra_threads, abandon_on_cancel=True
        )
    if revision is None:
        raise StoreError(f"The store did not answer within {READY_TIMEOUT_S} seconds. Try again.")
    document = {"ok": True, "revision": revision}
    if full:
        require_scope(principal, "admin")
        health = await anyio.to_thread.run_sync(state.engine.store.health, limiter=state.extra_threads)
        document["ok"] = health.ok
        if principal.is_owner:  # the store may hold other projects than a token's
            document |= {"facts": dict(health.facts), "problems": list(health.problems)}
    return Document(document)


def _revision(engine: Engine) -> str:
    with engine.store.data.project_reader() as reader:
        return reader.revision


@metrics_router.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> Response:
    """Show the metrics of the service for Prometheus."""
    return PlainTextResponse(request.app.state.metrics.text(), media_type="text/plain; version=0.0.4")
