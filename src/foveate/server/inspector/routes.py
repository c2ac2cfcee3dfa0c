"""The routes of the inspector: pages, forms, signing in, and static files."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute
from starlette.types import Scope

from foveate.errors import NotFound
from foveate.server.http.access import (
    SIGN_IN,
    SIGN_OUT,
    UI,
    Authenticator,
    Caller,
    cookie_name,
    needs,
)
from foveate.server.http.responses import RequestRefused
from foveate.server.inspector import code, comparison, contexts, health, inbox, records, security, tasks
from foveate.server.inspector.page import Action, Page, PageRequest
from foveate.server.inspector.render import ONE_TIME_PARAMS, STATIC, THEMES, Links, render_template, static_file

PAGES: tuple[Page, ...] = (
    *contexts.PAGES, *comparison.PAGES, *records.PAGES, *inbox.PAGES, *tasks.PAGES, *code.PAGES, *health.PAGES,
)  # fmt: skip
"""In the order of the navigation."""

ACTIONS: tuple[Action, ...] = (*records.ACTIONS, *inbox.ACTIONS)

IMMUTABLE_CACHE_CONTROL = "public, max-age=31536000, immutable"

MAX_SIGN_IN_BYTES = 10_000

READ = ["GET", "HEAD"]


def install(app: FastAPI, authenticator: Authenticator) -> None:
    """Add the inspector to a service."""
    app.state.form_secret = secrets.token_bytes(32)
    app.state.authenticator = authenticator
    app.router.routes.extend(_routes())
    app.add_middleware(security.PageMiddleware, render_problem=_problem)


@cache
def _routes() -> Sequence[BaseRoute]:
    """Return the routes of the inspector, which all apps share: building them takes longer than a page."""
    router = APIRouter(prefix=UI, include_in_schema=False)
    for page in PAGES:
        router.add_api_route(f"/{page.name}", _page_endpoint(page), methods=READ)
    for action in ACTIONS:
        router.add_api_route(f"/{action.name}", _action_endpoint(action), methods=["POST"])
    router.add_api_route("/", _home, methods=READ)
    router.add_api_route("", _home, methods=READ)
    router.add_api_route("/static/{name}", _static, methods=READ)
    router.add_api_route(SIGN_IN.removeprefix(UI), _sign_in_form, methods=READ)
    router.add_api_route(SIGN_IN.removeprefix(UI), _sign_in, methods=["POST"])
    router.add_api_route(SIGN_OUT.removeprefix(UI), _sign_out, methods=["POST"])
    return router.routes


# --- pages -----------------------------------------------------------------------------------------------------------


def _page_endpoint(page: Page) -> Callable[..., Response]:
    def show(
        request: Request,
        caller: Caller = Depends(needs(page.required_scope)),  # noqa: B008
    ) -> Response:
        page_request = PageRequest(request, caller, request.query_params.multi_items())
        document = page.document(page_request)
        variables = {
            "doc": document,
            "links": Links(page.name, page_request.values),
            "title": str(document.get("subject") or page.title),
            "may": {scope: page_request.has_scope(scope) for scope in ("context:read", "memory:write", "admin")},
            "done": _status_message(request),
            **_layout_values(request, page.name),
        }
        return HTMLResponse(render_template(page.name, variables), headers={"Cache-Control": "no-store"})

    return show


def _status_message(request: Request) -> str:
    """Return what the last form did. The message is signed, so that a link from another site cannot forge one."""
    message, signature = (request.query_params.get(name, "") for name in ONE_TIME_PARAMS)
    return message if message and security.is_signed(request, message, signature) else ""


def _theme(request: Request) -> str:
    theme = request.cookies.get("theme", "")
    return theme if theme in THEMES else ""


def _layout_values(request: Request, name: str) -> dict[str, Any]:
    """Return the values of the frame around every page."""
    return {
        "page": name,
        "pages": [page for page in PAGES if page.in_navigation and _is_allowed(request, page)],
        "theme": _theme(request),
        "form_field": security.FORM_KEY_FIELD,
        "form_key": security.form_key(request),
        "is_signed_in": cookie_name(request.headers) in request.cookies,
        "project": request.scope["principal"].scope.project,
    }


def _problem(scope: Scope, problem: dict[str, Any]) -> str:
    """Render an error as a page. The caller may be unknown, so the page shows nothing but the error."""
    request = Request(scope)
    is_signed_in = cookie_name(request.headers) in request.cookies
    return render_template("problem", {"problem": problem, "theme": _theme(request), "is_signed_in": is_signed_in})


def _is_allowed(request: Request, page: Page) -> bool:
    return page.required_scope in request.scope["principal"].scopes


def _home(request: Request) -> Response:
    """Redirect to the first page that the caller may see."""
    first = next(page for page in PAGES if _is_allowed(request, page))
    return RedirectResponse(f"{UI}/{first.name}", 303)


def _static(name: str) -> Response:
    if name not in STATIC:
        raise NotFound(f"Unknown file {name!r}.")
    return Response(static_file(name), media_type=STATIC[name], headers={"Cache-Control": IMMUTABLE_CACHE_CONTROL})


# --- forms -----------------------------------------------------------------------------------------------------------


def _action_endpoint(action: Action) -> Callable[..., Response]:
    def change(
        request: Request,
        caller: Caller = Depends(needs(action.required_scope)),  # noqa: B008
    ) -> Response:
        fields = security.read_form(request)
        page, values, message = action.handler(PageRequest(request, caller, fields))
        # The message travels in the address, because the page that shows it is another request.
        signature = security.sign(request, message)
        return RedirectResponse(Links("", fields).to(page, **values, done=message, seal=signature), 303)

    return change


# --- signing in ------------------------------------------------------------------------------------------------------


def _sign_in_form(request: Request) -> Response:
    return _sign_in_page(request, _safe_return_path(request.query_params.get("to", "")))


def _sign_in_page(request: Request, return_to: str, error: str = "") -> Response:
    variables = {"to": return_to, "wrong": error, "theme": _theme(request)}
    return HTMLResponse(render_template("sign-in", variables), 401 if error else 200, {"Cache-Control": "no-store"})


def _sign_in(request: Request) -> Response:
    """Sign in with a token. There is no form key yet, but a page of another site cannot sign a user in."""
    security.reject_cross_site(request)
    if len(request.scope.get("body", b"")) > MAX_SIGN_IN_BYTES:
        raise RequestRefused(413, "That is too long for a token.")
    fields = dict(security.fields_of(request))
    authenticator: Authenticator = request.app.state.authenticator
    token, return_to = fields.get("token", "").strip(), _safe_return_path(fields.get("to", ""))
    try:
        authenticator.authenticate(f"Bearer {token}", UI)
    except RequestRefused as error:
        return _sign_in_page(request, return_to, str(error))
    return security.set_session_cookie(RedirectResponse(return_to, 303), request, token)


def _sign_out(request: Request) -> Response:
    """Sign out. This also works with a token that is no longer valid."""
    security.reject_cross_site(request)
    response = RedirectResponse(SIGN_IN, 303)
    response.delete_cookie(cookie_name(request.headers), path=UI)
    return response


def _safe_return_path(path: str) -> str:
    """Return the path to continue at: a page of the inspector, or its first page."""
    is_ours = path.startswith(f"{UI}/") and "\\" not in path and path.isprintable()
    return path if is_ours else f"{UI}/"
