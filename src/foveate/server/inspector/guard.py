"""What keeps the inspector to itself: who is signed in, that a form was ours, and what a browser may do with a page.

A browser cannot send an `Authorization` header by itself: it signs in with a token once and holds it in a cookie that no
script can read and no other site can use. Every form carries a number that only our pages know.
"""

from __future__ import annotations

import gzip
import hmac
import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from foveate.server.http.access import SIGN_IN, UI, cookie_name, is_ui
from foveate.server.http.problems import MEDIA, Refused, problem
from foveate.server.inspector.page import MANY

FIELD = "form"
"""The field of a form that says that it was ours."""

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
    """What a form of this caller carries; it holds until the service is started again."""
    return sealed(request, f"{request.scope['who'].id}\n{request.cookies.get(cookie_name(request.headers), '')}")


def sealed(request: Request, text: str) -> str:
    """A number that only this service can have given a text."""
    return hmac.new(request.app.state.form_secret, text.encode("utf-8", "replace"), sha256).hexdigest()


def is_sealed(request: Request, text: str, seal: str) -> bool:
    return hmac.compare_digest(sealed(request, text).encode(), seal.encode("utf-8", "replace"))


def refuse_foreign(request: Request) -> None:
    """A form that a page of another site sent, or of another service of this machine."""
    headers = request.headers
    origin = headers.get("origin", "")
    foreign = origin and urlsplit(origin).netloc.lower() != headers.get("host", "").lower()
    if foreign or headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Refused(403, "A page of another site may not change anything here.")


def read_form(request: Request) -> list[tuple[str, str]]:
    """The fields of a form that is ours."""
    refuse_foreign(request)
    fields = fields_of(request)
    given = next((value for name, value in fields if name == FIELD), "")
    if not hmac.compare_digest(given.encode("utf-8", "replace"), form_key(request).encode()):
        raise Refused(403, "This form is not ours, or older than the service. Go back, copy what you typed, then reload.")
    return [(name, value) for name, value in fields if name != FIELD]


def fields_of(request: Request) -> list[tuple[str, str]]:
    try:
        text = bytes(request.scope.get("body", b"")).decode()
        fields = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MANY)
    except ValueError:
        raise Refused(422, "The form cannot be read.") from None
    return [(name, value.replace("\r\n", "\n")) for name, value in fields]  # browsers send lines so; texts are kept as typed


def signed_in(response: Response, request: Request, token: str) -> Response:
    """A cookie for our pages alone. Lax, so that a link in a chat opens what it points to."""
    secure = request.url.scheme == "https"
    response.set_cookie(cookie_name(request.headers), token, path=UI, httponly=True, samesite="lax", secure=secure)
    return response


def is_asked_from_afar(headers: Headers) -> bool:
    """Whether a page of another site asks, other than by a link that a person follows: it would not see the answer, but
    the work would be done."""
    if headers.get("sec-fetch-site", "none") in ("same-origin", "none"):
        return False
    return (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) != ("navigate", "document")


class Dressed:
    """Every answer below /ui: with headers that keep it to itself and, where something is wrong, as a page."""

    def __init__(self, app: ASGIApp, explained: Callable[[Scope, dict[str, Any]], str]) -> None:
        self._app = app
        self._explained = explained

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not is_ui(scope["path"]):
            await self._app(scope, receive, send)
            return
        if is_asked_from_afar(Headers(scope=scope)):
            await problem(403, "Pages of other sites may link here, and no more.", headers=HEADERS)(scope, receive, send)
            return
        wrong: list[Message] = []
        body = bytearray()

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                if headers.get("content-type", "").startswith(MEDIA) and not is_twin(scope["path"]):
                    wrong.append(message)
                    return
            elif wrong:
                body.extend(message.get("body", b""))
                if not message.get("more_body", False):
                    await self._page(scope, wrong[0], bytes(body))(scope, receive, send)
                return
            await send(message)

        await self._app(scope, receive, sending)

    def _page(self, scope: Scope, start: Message, body: bytes) -> Response:
        """A problem as a page; whoever is not signed in is asked to."""
        headers = Headers(raw=start["headers"])
        if start["status"] == 401 and scope["method"] in ("GET", "HEAD"):
            return RedirectResponse(sign_in_path(scope), 303, HEADERS)
        said = json.loads(gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body)
        kept = {name: headers[name] for name in ("allow", "retry-after", "x-request-id") if name in headers}
        return HTMLResponse(self._explained(scope, said), start["status"], HEADERS | kept)


def is_twin(path: str) -> bool:
    """Whether it is asked for as data."""
    return path.endswith((".json", ".md"))


def sign_in_path(scope: Scope) -> str:
    """Where to sign in, and to come back from."""
    query = scope["query_string"].decode("latin-1")
    return f"{SIGN_IN}?" + urlencode({"to": scope["path"] + (f"?{query}" if query else "")})
