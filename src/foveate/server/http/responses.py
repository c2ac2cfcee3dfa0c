"""Responses: JSON documents, pages of lists, entity tags, and errors as `application/problem+json` (RFC 9457)."""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from foveate.errors import BudgetError, FoveateError, InputError, StoreError, near
from foveate.operations.documents import SCHEMA_VERSION, plain
from foveate.server.http.bodies import SHAPES
from foveate.server.http.remedies import name_requests

PROBLEM_MEDIA_TYPE = "application/problem+json"

RETRY_AFTER_S = "1"
"""Seconds after which a client may ask a store again that could not answer."""

Limit = Annotated[int, Query(ge=1, le=500)]
Cursor = Annotated[str | None, Query(max_length=500, description="`next` of the previous page.")]
Include = Annotated[str, Query(max_length=200, description="Further parts of the answer, separated by commas.")]


# --- documents -----------------------------------------------------------------------------------------------------


class Document(Response):
    """A JSON document that begins with its `schema_version`, as on the command line."""

    media_type = "application/json"

    def render(self, content: Mapping[str, Any]) -> bytes:
        document = {"schema_version": SCHEMA_VERSION, **content}
        text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), default=plain)
        return text.encode("utf-8", "replace")  # a lone surrogate in a stored text must not fail the response


def parse_include(text: str, known: Iterable[str]) -> set[str]:
    """Return the parts that an `include` parameter names."""
    names = {name.strip() for name in text.split(",") if name.strip()}
    unknown = sorted(names - set(known))
    if unknown:
        raise InputError([f"include has no part {name!r}.{near(name, known)}" for name in unknown])
    return names


def etag(text_hash: str) -> str:
    """Return the entity tag of a context. It is weak: it stands for the text, and the document around it holds notes."""
    return f'W/"{text_hash}"'


def matches_etag(tag: str, if_none_match: str | None) -> bool:
    """Return whether the client already has the version with this tag."""
    # If-None-Match compares weakly (RFC 9110), unlike If-Match.
    known = [part.strip().removeprefix("W/") for part in (if_none_match or "").split(",")]
    return "*" in known or tag.removeprefix("W/") in known


def encode_cursor(*position: Any) -> str:
    """Return a position in a list as an opaque text."""
    return urlsafe_b64encode(json.dumps(position, separators=(",", ":")).encode()).decode().rstrip("=")


def decode_cursor(cursor: str | None, *types: type) -> tuple[Any, ...] | None:
    """Return the position that a cursor holds. Raises `InputError` for a text that is no cursor."""
    if cursor is None:
        return None
    try:
        parts = json.loads(urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4)))
        is_position = isinstance(parts, list) and [type(part) for part in parts] == list(types)
        # A client can write a cursor of its own, and no database binds a larger integer.
        if is_position and all(abs(part) < 2**63 for part in parts if isinstance(part, int)):
            return tuple(parts)
    except (ValueError, RecursionError):
        pass
    raise InputError(f"{cursor!r} is not a cursor. Pass `next` of the previous page unchanged.")


# --- errors --------------------------------------------------------------------------------------------------------


class RequestRefused(FoveateError):
    """A request that the service refuses before it reaches the engine. `headers` are named in Python's spelling."""

    def __init__(self, status: int, detail: str, **headers: str) -> None:
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        super().__init__(detail)


class ProblemResponse(Response):
    """A problem document. `type` is the name of the error's class.

    The inspector puts a function into the scope of its requests that shows the document as a page instead.
    """

    media_type = PROBLEM_MEDIA_TYPE

    def __init__(
        self, status: int, detail: str, *, type: str = "", headers: Mapping[str, str] | None = None, **more: object
    ) -> None:
        urn = f"urn:foveate:error:{type}" if type else "about:blank"
        self.document = {"type": urn, "title": HTTPStatus(status).phrase, "status": status, "detail": detail, **more}
        body = json.dumps(self.document, ensure_ascii=False, default=str)
        super().__init__(body.encode("utf-8", "replace"), status, dict(headers or {}))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        page: Callable[[ProblemResponse], Response] | None = scope.get("problem_page")
        await (super().__call__ if page is None else page(self))(scope, receive, send)


_DATABASE_URL = re.compile(r"(?:[Tt]he store )?'?\bpostgres(?:ql)?://[^\s']*'?")
_SERVER_ADDRESS = re.compile(r" ?\([^()]*(?:connection to server|connection failed)[^()]*(?:\([^()]*\)[^()]*)*\)?")


def hide_database(text: str) -> str:
    """Return a text without the address of the database, which is not for those who call the service."""
    hidden = _SERVER_ADDRESS.sub("", _DATABASE_URL.sub("the database", text))
    return hidden[:1].upper() + hidden[1:] if hidden != text else text


def error_response(error: FoveateError, wording: Callable[[str], str] = str) -> Response:
    """Return the problem document of one of foveate's errors. `wording` gets each text of the error."""
    more: dict[str, Any] = {}
    headers = dict(getattr(error, "headers", {}))
    if isinstance(error, InputError):
        more["problems"] = [hide_database(wording(problem)) for problem in error.problems]
    if isinstance(error, BudgetError):
        more["short"] = error.short
    if isinstance(error, StoreError) and error.status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers.setdefault("Retry-After", RETRY_AFTER_S)
    name = "" if isinstance(error, RequestRefused) else type(error).__name__
    return ProblemResponse(error.status, hide_database(wording(str(error))), type=name, headers=headers, **more)


def install_error_handlers(app: FastAPI) -> None:
    """Make an app answer every error with a problem document."""

    async def foveate_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, FoveateError)
        request.scope["error"] = type(error).__name__
        # Only clients of /v1 send requests. A person in the inspector can rather run the command.
        return error_response(error, name_requests if request.url.path.startswith("/v1/") else str)

    async def http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        detail = str(error.detail)
        # Endpoints raise NotFound with a reason. This is Starlette's own, for a path that no route has.
        if error.status_code == HTTPStatus.NOT_FOUND and request.scope.get("route") is None:
            detail = f"No endpoint {request.url.path!r}. /openapi.json lists all endpoints."
        headers = dict(error.headers or {})
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            headers["Allow"] = _allowed_methods(request)
        return ProblemResponse(error.status_code, detail, headers=headers)

    async def validation_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        problems = [f"{_place(part['loc'])}: {part['msg']}" for part in error.errors()]
        detail = "; ".join(problems)
        return ProblemResponse(HTTPStatus.UNPROCESSABLE_ENTITY, detail, type="InputError", problems=problems)

    app.add_exception_handler(FoveateError, foveate_error)
    app.add_exception_handler(HTTPException, http_error)
    app.add_exception_handler(RequestValidationError, validation_error)


def _place(location: Iterable[object]) -> str:
    """Return the place of an error, such as `body.filters.since`."""
    return ".".join(str(part) for part in location if part not in SHAPES)


def _allowed_methods(request: Request) -> str:
    """Return the methods of a path, for the header `Allow`."""
    # Starlette names those of the first route only: each method of a path is a route of its own here.
    routes = [route for route in request.app.routes if isinstance(route, Route)]
    matching = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    return ", ".join(sorted({method for route in matching for method in route.methods or ()}))
