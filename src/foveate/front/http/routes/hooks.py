"""`/v1/hooks`: what a coding agent's hook was told, and what it answers."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from foveate.front.http.access import Writes
from foveate.front.http.models import refuse_unsound
from foveate.front.http.optional import optional
from foveate.front.http.problems import Refused
from foveate.front.texts import refuse_unreadable

router = APIRouter(prefix="/v1/hooks", tags=["hooks"])

HOSTS = "foveate.agents.hosts"


@router.post("/{host}")
def hook(host: str, event: dict[str, Any], caller: Writes) -> Response:
    """A hook's JSON as its host wrote it; the answer is what the hook prints."""
    hosts = optional(HOSTS)
    if hosts is None:
        raise Refused(501, "This foveate knows no hosts with hooks.")
    refuse_unsound(event)
    refuse_unreadable(event)
    return JSONResponse(hosts.handle(caller.engine, host, event))
