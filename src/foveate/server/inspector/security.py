"""Access to the inspector: the session cookie, form keys, and what a browser may do with a page.

A browser cannot send an `Authorization` header by itself. It signs in with a token once and holds the token in a cookie
that no script can read and no other site can use. Every form carries a key that only pages of this service contain.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from foveate.server.http.access import SIGN_IN, UI, cookie_name, is_ui
from foveate.server.http.responses import ProblemResponse, RequestRefused
from foveate.server.inspector.page import MAX_VALUES

FORM_KEY_FIELD = "form"

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def form_key(request: Request) -> str:
    """Return the key that forms of this caller carry. It is valid until the service is restarted."""
    return sign(request, f"{request.scope['principal'].id}\n{request.cookies.get(cookie_name(request.headers), '')}")


def sign(request: Request, text: str) -> str:
    """Return a signature that only this service can make."""
    return hmac.new(request.app.state.form_secret, text.encode("utf-8", "replace"), sha256).hexdigest()


def is_signed(request: Request, text: str, signature: str) -> bool:
    return hmac.compare_digest(sign(request, text).encode(), signature.encode("utf-8", "replace"))


def reject_cross_site(request: Request) -> None:
    """Refuse a form sent by a page of another site, or of another service on this machine."""
    headers = request.headers
    origin = headers.get("origin", "")
    is_foreign = origin and urlsplit(origin).netloc.lower() != headers.get("host", "").lower()
    if is_foreign or headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise RequestRefused(403, "Pages of other sites may not change anything here.")


def read_form(request: Request) -> list[tuple[str, str]]:
    """Return the fields of a form after checking its key."""
    reject_cross_site(request)
    fields = fields_of(request)
    key = next((value for name, value in fields if name == FORM_KEY_FIELD), "")
    if not hmac.compare_digest(key.encode("utf-8", "replace"), form_key(request).encode()):
        raise RequestRefused(
            403,
            "The form is not from this service, or the service was restarted. Go back, copy your text, reload the page and "
            "send it again.",
        )
    return [(name, value) for name, value in fields if name != FORM_KEY_FIELD]


def fields_of(request: Request) -> list[tuple[str, str]]:
    try:
        text = bytes(request.scope.get("body", b"")).decode()
        fields = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MAX_VALUES)
    except ValueError:
        raise RequestRefused(422, "The form cannot be read.") from None
    return [(name, value.replace("\r\n", "\n")) for name, value in fields]  # browsers send \r\n, whatever was typed


def set_session_cookie(response: Response, request: Request, token: str) -> Response:
    """Store the token in a cookie for /ui. It is `lax`, so that a link in a chat opens the page that it names."""
    # Always secure would lock out the service on this machine, which has no certificate.
    secure = request.url.scheme == "https"
    response.set_cookie(cookie_name(request.headers), token, path=UI, httponly=True, samesite="lax", secure=secure)
    return response


def is_cross_site_request(headers: Headers) -> bool:
    """Return whether a page of another site sent the request, other than by a link that a person followed.

    The other page could not read the answer, but the service would do the work.
    """
    # Browsers send this header and scripts cannot set it. Programs without it are not browsers, and hold no cookie.
    if headers.get("sec-fetch-site", "none") in ("same-origin", "none"):
        return False
    return (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) != ("navigate", "document")


class PageMiddleware:
    """ASGI middleware for everything below /ui: adds security headers and renders errors as pages."""

    def __init__(self, app: ASGIApp, render_problem: Callable[[Scope, dict[str, Any]], str]) -> None:
        self._app = app
        self._render_problem = render_problem

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not is_ui(scope["path"]):
            await self._app(scope, receive, send)
            return
        if is_cross_site_request(Headers(scope=scope)):
            await ProblemResponse(403, "Pages of other sites may only link here.", headers=HEADERS)(scope, receive, send)
            return
        scope["problem_page"] = partial(self._page, scope)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await self._app(scope, receive, send_with_headers)

    def _page(self, scope: Scope, problem: ProblemResponse) -> Response:
        """Return a problem as a page, or redirect a caller who is not signed in."""
        if problem.status_code == 401 and scope["method"] in ("GET", "HEAD"):
            return RedirectResponse(sign_in_path(scope), 303)
        kept = {name: value for name, value in problem.headers.items() if name in ("allow", "retry-after")}
        return HTMLResponse(self._render_problem(scope, problem.document), problem.status_code, kept)


def sign_in_path(scope: Scope) -> str:
    """Return the path of the sign-in form that leads back to the requested page."""
    query = scope["query_string"].decode("latin-1")
    return f"{SIGN_IN}?" + urlencode({"to": scope["path"] + (f"?{query}" if query else "")})
