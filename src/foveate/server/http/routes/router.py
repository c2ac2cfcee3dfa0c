"""Makes the routers of all groups of endpoints: prefix, token and errors are the same everywhere."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Depends

from foveate.server.http.access import bearer
from foveate.server.http.responses import PROBLEM_MEDIA_TYPE

PROBLEM: dict[str, Any] = {
    "description": "What is wrong, and what to do.",
    "content": {PROBLEM_MEDIA_TYPE: {"schema": {"type": "object"}}},
}


def new_router(tag: str, *, prefix: str = "/v1", public: bool = False) -> APIRouter:
    """Return a router for endpoints of one noun."""
    return APIRouter(
        prefix=prefix,
        tags=[tag],
        dependencies=[] if public else [Depends(bearer)],
        responses={"default": PROBLEM, 422: PROBLEM},
    )
