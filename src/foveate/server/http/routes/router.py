"""Makes the routers of all groups of endpoints: prefix, token, known parameters and errors are the same everywhere."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Depends, Request
from fastapi.dependencies.models import Dependant

from foveate.errors import InputError
from foveate.server.http.access import bearer
from foveate.server.http.responses import PROBLEM_MEDIA_TYPE

PROBLEM: dict[str, Any] = {
    "description": "What is wrong, and what to do.",
    "content": {PROBLEM_MEDIA_TYPE: {"schema": {"type": "object"}}},
}


def new_router(tag: str, *, prefix: str = "/v1", public: bool = False) -> APIRouter:
    """Return a router for endpoints of one noun."""
    checks = [Depends(refuse_unknown_parameters)]
    return APIRouter(
        prefix=prefix,
        tags=[tag],
        dependencies=checks if public else [*checks, Depends(bearer)],
        responses={"default": PROBLEM, 422: PROBLEM},
    )


async def refuse_unknown_parameters(request: Request) -> None:
    """Raise an error for query parameters that the endpoint does not have.

    FastAPI ignores them. A misspelt filter or scope would then show what it was meant to leave out.
    """
    # Dependencies have parameters, too: needs() reads user, agent, session and task.
    known = sorted(_query_parameters(request.scope["route"].dependant))
    unknown = sorted(request.query_params.keys() - set(known))
    if unknown:
        has = f"has {', '.join(known)}" if known else "takes none"
        raise InputError([f"No parameter {name!r}: this endpoint {has}." for name in unknown])


def _query_parameters(dependant: Dependant) -> set[str]:
    return {field.alias for field in dependant.query_params}.union(*map(_query_parameters, dependant.dependencies))
