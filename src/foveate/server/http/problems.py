"""Errors as `application/problem+json` (RFC 9457), whoever raised them.

`type` names the error's class, `detail` says what is wrong and what to do, `problems` lists each where there are several.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route

from foveate.errors import BudgetError, FoveateError, InputError, StoreError

MEDIA = "application/problem+json"
BUSY = "1"
"""Seconds after which a store that cannot answer just now is asked again."""


class Refused(FoveateError):
    """A request that the service turns away before it reaches the engine."""

    def __init__(self, status: int, detail: str, **headers: str) -> None:
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        super().__init__(detail)


def problem(status: int, detail: str, *, type: str = "", headers: Mapping[str, str] | None = None, **more: Any) -> Response:
    title = HTTPStatus(status).phrase
    document = {"type": f"urn:foveate:error:{type}" if type else "about:blank", "title": title, "status": status}
    body = json.dumps({**document, "detail": detail, **more}, ensure_ascii=False, default=str)
    return Response(body.encode("utf-8", "replace"), status, dict(headers or {}), MEDIA)


def of_error(error: FoveateError) -> Response:
    """One of ours."""
    more: dict[str, Any] = {}
    headers = dict(getattr(error, "headers", {}))
    if isinstance(error, InputError):
        more["problems"] = list(error.problems)
    if isinstance(error, BudgetError):
        more["short"] = error.short
    if isinstance(error, StoreError) and error.status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers["Retry-After"] = BUSY
    name = "" if isinstance(error, Refused) else type(error).__name__
    return problem(error.status, str(error), type=name, headers=headers, **more)


def _allowed(request: Request) -> str:
    """The methods of a path, whichever of its endpoints was asked."""
    served = [route for route in _routes(request.app.routes) if route.matches(request.scope)[0] is not Match.NONE]
    path = served[0].path if served else ""  # of `/many` and `/{id}`, the first
    return ", ".join(sorted({method for route in served if route.path == path for method in route.methods or ()}))


def _routes(found: Iterable[BaseRoute]) -> Iterator[Route]:
    """Every route, also those of the routers that are included."""
    for route in found:
        if isinstance(route, Route):
            yield route
        elif (router := getattr(route, "original_router", None)) is not None:
            yield from _routes(router.routes)


def register(app: FastAPI) -> None:
    """Have an app answer every error in this form."""

    async def ours(request: Request, error: Exception) -> Response:
        assert isinstance(error, FoveateError)
        request.scope["error"] = type(error).__name__
        return of_error(error)

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        detail = str(error.detail)
        if error.status_code == HTTPStatus.NOT_FOUND and request.scope.get("route") is None:
            detail = f"There is nothing at {request.url.path!r}. /openapi.json lists what there is."
        headers = dict(error.headers or {})
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            headers["Allow"] = _allowed(request)
        return problem(error.status_code, detail, headers=headers)

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        problems = [f"{'.'.join(map(str, part['loc']))}: {part['msg']}" for part in error.errors()]
        return problem(HTTPStatus.UNPROCESSABLE_ENTITY, "; ".join(problems), type="InputError", problems=problems)

    app.add_exception_handler(FoveateError, ours)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(RequestValidationError, invalid)
