"""`/v1/hooks`: what a coding agent's hook was told, and what it answers."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from foveate.integrations.hooks.hosts import handle
from foveate.operations.inputs import refuse_unreadable
from foveate.server.http.access import WritesAndComputes
from foveate.server.http.models import refuse_unsound

router = APIRouter(prefix="/v1/hooks", tags=["hooks"])


@router.post("/{host}")
def hook(host: str, event: dict[str, Any], caller: WritesAndComputes) -> Response:
    """A hook's JSON as its host wrote it; the answer is what the hook prints."""
    refuse_unsound(event)
    refuse_unreadable(event)
    return JSONResponse(handle(caller.engine, host, event))
