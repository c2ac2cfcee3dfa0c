"""The inspector's addresses: each page with its twins, the forms, signing in, and the static files."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import Scope

from foveate.errors import NotFound
from foveate.server.http.access import SIGN_IN, SIGN_OUT, UI, Caller, Door, allowed, cookie_name, needs
from foveate.server.http.problems import Refused
from foveate.server.http.responses import Document
from foveate.server.inspector import guard
from foveate.server.inspector.markdown import markdown
from foveate.server.inspector.page import Action, Asked, Page, subject
from foveate.server.inspector.pages import ACTIONS, PAGES
from foveate.server.inspector.render import SAID, STATIC, THEMES, Links, rendered, static_file

FOR_GOOD = "public, max-age=31536000, immutable"

LONGEST = 10_000
"""Bytes of a form that signs in."""

READ = ["GET", "HEAD"]


def install(app: FastAPI, door: Door) -> None:
    """Add the inspector to a service."""
    app.state.form_secret = secrets.token_bytes(32)
    app.state.door = door
    router = APIRouter(prefix=UI, include_in_schema=False)
    for page in PAGES:
        for form, answer in FORMS.items():
            router.add_api_route(f"/{page.name}{form}", _endpoint(page, answer), methods=READ)
    for action in ACTIONS:
        router.add_api_route(f"/{action.name}", _changing(action), methods=["POST"])
    router.add_api_route("/", _home, methods=READ)
    router.add_api_route("/static/{name}", _static, methods=READ)
    app.include_router(router)
    app.add_api_route(SIGN_IN, _ask_to_sign_in, methods=READ, include_in_schema=False)
    app.add_api_route(SIGN_IN, _sign_in, methods=["POST"], include_in_schema=False)
    app.add_api_route(SIGN_OUT, _sign_out, methods=["POST"], include_in_schema=False)
    app.add_api_route(UI, _home, methods=READ, include_in_schema=False)
    app.add_middleware(guard.Dressed, explained=_problem)


# --- pages -----------------------------------------------------------------------------------------------------------


def _html(request: Request, page: Page, asked: Asked, document: dict[str, Any]) -> Response:
    given = {
        "doc": document,
        "links": Links(page.name, asked.values),
        "title": subject(document, page),
        "may": {scope: asked.may(scope) for scope in ("memory:write", "admin")},
        "done": _done(request),
        **_around(request, page.name),
    }
    return HTMLResponse(rendered(page.name, given), headers={"Cache-Control": "no-store"})


def _done(request: Request) -> str:
    """What was just done, where it was we who said so: an address that somebody sent must not speak in our name."""
    said, seal = (request.query_params.get(name, "") for name in SAID)
    return said if said and guard.is_sealed(request, said, seal) else ""


def _json(request: Request, page: Page, asked: Asked, document: dict[str, Any]) -> Response:
    return Document(document, headers={"Cache-Control": "no-store"})


def _markdown(request: Request, page: Page, asked: Asked, document: dict[str, Any]) -> Response:
    text = markdown(subject(document, page), {name: part for name, part in page.told(document).items() if name != "subject"})
    return PlainTextResponse(text, headers={"Cache-Control": "no-store"}, media_type="text/markdown; charset=utf-8")


FORMS: dict[str, Callable[[Request, Page, Asked, dict[str, Any]], Response]] = {
    "": _html, ".json": _json, ".md": _markdown,
}  # fmt: skip


def _endpoint(page: Page, answer: Callable[[Request, Page, Asked, dict[str, Any]], Response]) -> Callable[..., Response]:
    def show(
        request: Request,
        caller: Caller = Depends(needs(page.needs)),  # noqa: B008
    ) -> Response:
        asked = Asked(caller, request.query_params.multi_items())
        return answer(request, page, asked, page.document(asked))

    return show


def _theme(request: Request) -> str:
    chosen = request.cookies.get("theme", "")
    return chosen if chosen in THEMES else ""


def _around(request: Request, name: str) -> dict[str, Any]:
    """What every page shows around its own."""
    settings = request.app.state.settings
    return {
        "page": name,
        "pages": [page for page in PAGES if page.hint and _is_allowed(request, page)],
        "theme": _theme(request),
        "form_field": guard.FIELD,
        "form_key": guard.form_key(request),
        "is_signed_in": cookie_name(request.headers) in request.cookies,
        "needs_tokens": settings.needs_tokens,
        "origin": f"{request.url.scheme}://{request.url.netloc}",
        "project": request.scope["who"].scope.project,
    }


def _problem(scope: Scope, problem: dict[str, Any]) -> str:
    """What went wrong, as a page. Nobody may be known here: it shows nothing but the problem."""
    request = Request(scope)
    held = cookie_name(request.headers) in request.cookies
    return rendered("problem", {"problem": problem, "theme": _theme(request), "is_signed_in": held})


def _is_allowed(request: Request, page: Page) -> bool:
    return not page.needs or page.needs in request.scope["who"].allows


def _home(request: Request) -> Response:
    """The first page that whoever asks may see."""
    first = next(page for page in PAGES if _is_allowed(request, page))
    return RedirectResponse(f"{UI}/{first.name}", 303)


def _static(name: str) -> Response:
    if name not in STATIC:
        raise NotFound(f"There is no file {name!r}.")
    return Response(static_file(name), media_type=STATIC[name], headers={"Cache-Control": FOR_GOOD})


# --- forms -----------------------------------------------------------------------------------------------------------


def _changing(action: Action) -> Callable[..., Response]:
    first, *others = action.needs

    def change(
        request: Request,
        caller: Caller = Depends(needs(first)),  # noqa: B008
    ) -> Response:
        for scope in others:
            allowed(caller.who, scope)
        fields = guard.read_form(request)
        asked = Asked(caller, fields)
        page, values, done = action.change(asked, request)
        return RedirectResponse(Links("", fields).to(page, **values, done=done, seal=guard.sealed(request, done)), 303)

    return change


# --- signing in ------------------------------------------------------------------------------------------------------


def _ask_to_sign_in(request: Request) -> Response:
    return _sign_in_page(request, _near(request.query_params.get("to", "")))


def _sign_in_page(request: Request, to: str, wrong: str = "") -> Response:
    given = {"to": to, "wrong": wrong, "theme": _theme(request)}
    return HTMLResponse(rendered("sign-in", given), 401 if wrong else 200, {"Cache-Control": "no-store"})


def _sign_in(request: Request) -> Response:
    """No form key is asked for, as nobody is known yet; but nobody is signed in by the page of another site."""
    guard.refuse_foreign(request)
    if len(request.scope.get("body", b"")) > LONGEST:
        raise Refused(413, "That is too long for a token.")
    fields = dict(guard.fields_of(request))
    door: Door = request.app.state.door
    token, to = fields.get("token", "").strip(), _near(fields.get("to", ""))
    try:
        door.who(f"Bearer {token}", UI)
    except Refused as error:
        return _sign_in_page(request, to, str(error))
    return guard.signed_in(RedirectResponse(to, 303), request, token)


def _sign_out(request: Request) -> Response:
    """Also for whoever holds a token that is no longer valid."""
    guard.refuse_foreign(request)
    response = RedirectResponse(SIGN_IN, 303)
    response.delete_cookie(cookie_name(request.headers), path=UI)
    return response


def _near(address: str) -> str:
    """Where to go on: a page of ours, or the first one."""
    ours = address.startswith(f"{UI}/") and "\\" not in address and address.isprintable()
    return address if ours else f"{UI}/"
