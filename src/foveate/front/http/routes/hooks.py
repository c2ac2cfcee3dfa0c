"""`/v1/hooks`: what a coding agent's hook was told, and what it answers."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from foveate.agents.hosts import handle
from foveate.front.http.access import WritesAndComputes
from foveate.front.http.models import refuse_unsound
from foveate.front.texts import refuse_unreadable

router = APIRouter(prefix="/v1/hooks", tags=["hooks"])


@router.post("/{host}")
def hook(host: str, event: dict[str, Any], caller: WritesAndComputes) -> Response:
    """A hook's JSON as its host wrote it; the answer is what the hook prints."""
    refuse_unsound(event)
    refuse_unreadable(event)
    return JSONResponse(handle(caller.engine, host, event))
