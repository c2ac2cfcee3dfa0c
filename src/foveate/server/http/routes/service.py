"""Whether the service is up, and its figures."""

from __future__ import annotations

import anyio.to_thread
from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse, Response

from foveate import __version__
from foveate.errors import StoreError
from foveate.server.http.responses import Document

open_router = APIRouter(tags=["service"])
router = APIRouter(tags=["service"])


@open_router.get("/healthz")
async def healthz() -> Response:
    """Whether the process is up."""
    return Document({"ok": True, "version": __version__})


@open_router.get("/readyz")
async def readyz(request: Request) -> Response:
    """Whether the store answers, with the schema that this version knows."""
    state = request.app.state
    if state.stopping.is_set():
        raise StoreError("The service is stopping.")
    found = await anyio.to_thread.run_sync(state.engine.stats, limiter=state.beside)
    return Document({"ok": True, "revision": found["revision"]})


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> Response:
    """Figures of the service, for Prometheus."""
    return PlainTextResponse(request.app.state.metrics.text(), media_type="text/plain; version=0.0.4")
