"""Middleware around all endpoints: log and metrics, access, body limit, idempotency.

Plain ASGI, outermost first: `RequestLogMiddleware`, `AccessMiddleware`, `BodyLimitMiddleware`, `IdempotencyMiddleware`. Each
request is logged as one line of JSON without its query and body.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from uuid import uuid4

import anyio
from limits import RateLimitItem, parse
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from foveate.clock import iso, now
from foveate.errors import FoveateError, InputError
from foveate.server.http.access import SIGN_IN, Authenticator, is_public
from foveate.server.http.metrics import Metrics
from foveate.server.http.responses import ProblemResponse, RequestRefused, error_response

log = logging.getLogger("foveate.http")

REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
"""Ids that a client may choose for a request: they are logged and sent back."""

METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))

SIGN_IN_RATE = parse("30/minute")
"""Attempts to sign in from one address."""

BODY_TIMEOUT_S = 60.0
"""How long a client may take to send the body of a request."""

LARGE_BODY = 2**16
"""Bytes of a body from which a request takes long, such as a note of thousands of words. Such requests never run on
all threads at once, so that small ones need not wait for them."""

UNMATCHED_ROUTE = "(none)"

CLIENT_LEFT = 499
"""Status in the log if the client left before there was a response, as nginx writes it."""


class RequestLogMiddleware:
    """Gives every request an id, a log line and metrics, and turns unexpected exceptions into a 500."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        chosen = Headers(scope=scope).get("x-request-id", "")
        request_id = chosen if REQUEST_ID.fullmatch(chosen) else uuid4().hex
        began, status = time.perf_counter(), CLIENT_LEFT

        async def logging_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-Id"] = request_id
                # A browser must not take an answer that contains a record for a page with scripts.
                headers["X-Content-Type-Options"] = "nosniff"
            await send(message)

        with self._metrics.active.track_inprogress():
            try:
                await self._app(scope, receive, logging_send)
            except ClientDisconnect:
                status = CLIENT_LEFT
            except Exception as error:
                scope["error"] = type(error).__name__
                log.exception("request %s failed", request_id)
                if status == CLIENT_LEFT:
                    await _internal_error(error)(scope, receive, logging_send)
        self._log_request(scope, request_id, status, time.perf_counter() - began)

    def _log_request(self, scope: Scope, request_id: str, status: int, seconds: float) -> None:
        # The path holds ids and is never logged. A client can invent any number of methods, and each would be a time series.
        route = getattr(scope.get("route"), "path", UNMATCHED_ROUTE)
        method = scope["method"] if scope["method"] in METHODS else "other"
        self._metrics.requests.labels(method, route, str(status)).inc()
        self._metrics.seconds.labels(route).observe(seconds)
        if "error" in scope:
            self._metrics.errors.labels(scope["error"]).inc()
        principal = scope.get("principal")
        line = {"at": iso(now()), "method": scope["method"], "route": route, "status": status}
        more = {"ms": round(seconds * 1000, 1), "request": request_id, "token": principal.id if principal else ""}
        log.info(json.dumps({**line, **more}))


def _internal_error(error: Exception) -> ASGIApp:
    if isinstance(error, RecursionError):
        return error_response(InputError("The input is nested too deeply."))
    return ProblemResponse(500, "Internal error. The log of the service has the details under this request's id.")


class AccessMiddleware:
    """Checks host, origin, token and rate, and stores the principal in the scope."""

    def __init__(self, app: ASGIApp, authenticator: Authenticator, rate: RateLimitItem | None) -> None:
        self._app = app
        self._authenticator = authenticator
        self._rate = rate
        # In memory: the service is one process, and a restart may forget who called how often.
        self._limiter = MovingWindowRateLimiter(MemoryStorage())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["path"] == "/mcp":  # the mounted app begins at the slash
            scope["path"], scope["raw_path"] = "/mcp/", b"/mcp/"
        headers = Headers(scope=scope)
        try:
            self._authenticator.check_address(headers.get("host", ""), headers.get("origin"))
            scope["principal"] = principal = self._authenticator.authenticate_request(headers, scope["path"])
            client = (scope.get("client") or ("",))[0]
            if scope["path"] == SIGN_IN and scope["method"] == "POST":
                self._check_rate(f"sign in {client}", SIGN_IN_RATE)
            # Public paths are not counted: a probe every second would use up the limit of its address.
            elif not is_public(scope["path"]):
                self._check_rate(principal.id or client, self._rate)
        except FoveateError as error:
            await error_response(error)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _check_rate(self, caller: str, rate: RateLimitItem | None) -> None:
        if rate is None or self._limiter.hit(rate, caller):
            return
        wait = self._limiter.get_window_stats(rate, caller).reset_time - time.time()
        seconds = max(1, round(wait))
        raise RequestRefused(429, f"More than {rate}; try again in {seconds} seconds.", Retry_After=str(seconds))


def parse_rate(text: str) -> RateLimitItem | None:
    """Return the limit that a text like `600/minute` names, or None for an empty text."""
    try:
        return parse(text) if text else None
    except ValueError:
        raise InputError(f"rate must be requests and a time, such as 600/minute, got {text!r}.") from None


class BodyLimitMiddleware:
    """Reads the body up to a limit before an endpoint runs, and keeps it in the scope. Large ones wait for each other."""

    def __init__(self, app: ASGIApp, max_body: int, workers: int) -> None:
        self._app = app
        self._max_body = max_body
        self._large_requests = anyio.CapacityLimiter(max(1, workers - 1))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        # The header saves reading a large body. It can be missing or wrong, so the bytes are counted as well.
        announced = Headers(scope=scope).get("content-length", "0")
        body: bytes | None = None
        if not announced.isdecimal() or int(announced) <= self._max_body:
            with anyio.move_on_after(BODY_TIMEOUT_S) as reading:
                body = await self._read(scope, receive)
            if reading.cancelled_caught:
                late = f"The body was not complete after {BODY_TIMEOUT_S:g} seconds. Send it again."
                await error_response(RequestRefused(408, late, Connection="close"))(scope, receive, send)
                return
        if body is None:
            limit = f"The body has more than {self._max_body:,} bytes. Send it in parts."
            await error_response(RequestRefused(413, limit, Connection="close"))(scope, receive, send)
            return
        scope["body"] = body
        async with self._large_requests if len(body) >= LARGE_BODY else nullcontext():
            await self._app(scope, _replay_body(body, receive), send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes | None:
        """Return the body, or None if it is too large. Raises `ClientDisconnect` for an incomplete one."""
        body = bytearray()
        async for part in Request(scope, receive).stream():
            body += part
            if len(body) > self._max_body:
                return None
        return bytes(body)


def _replay_body(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives the body again, and then what the server sends, such as a disconnect."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_body() -> Message:
        return waiting.pop() if waiting else await receive()

    return receive_body


@dataclass(slots=True)
class _CachedResponse:
    """The response to a request with a key. It has no start while the request is in progress."""

    request: str
    at: float
    start: Message | None = None
    body: bytes = b""


class IdempotencyCache:
    """The latest responses to requests with an `Idempotency-Key`."""

    MAX_ENTRIES, TTL_S, MAX_RESPONSE_BYTES = 1000, 86_400, 2**20

    def __init__(self) -> None:
        self._responses: OrderedDict[tuple[str, str], _CachedResponse] = OrderedDict()

    def get(self, key: tuple[str, str]) -> _CachedResponse | None:
        response = self._responses.get(key)
        if response is not None and response.start is not None and time.monotonic() - response.at > self.TTL_S:
            del self._responses[key]
            return None
        return response

    def begin(self, key: tuple[str, str], request: str) -> _CachedResponse:
        self._responses[key] = response = _CachedResponse(request, time.monotonic())
        # A request whose entry is gone runs again when it is repeated. It must never wait for a response that was dropped.
        while len(self._responses) > self.MAX_ENTRIES:
            self._responses.popitem(last=False)
        return response

    def drop(self, key: tuple[str, str]) -> None:
        self._responses.pop(key, None)

    def clear(self) -> None:
        """Drop all complete responses: they could contain a record that was just forgotten."""
        for key in [key for key, response in self._responses.items() if response.start is not None]:
            del self._responses[key]


class IdempotencyMiddleware:
    """Answers a repeated request with the same `Idempotency-Key` from the first response, without running it again."""

    def __init__(self, app: ASGIApp, cache: IdempotencyCache) -> None:
        self._app = app
        self._cache = cache

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = Headers(scope=scope).get("idempotency-key") if scope["type"] == "http" and "body" in scope else None
        if not key:
            await self._app(scope, receive, send)
            return
        # Clients choose their keys. Two of them may choose the same one.
        caller = (scope["principal"].id, key)
        request = _digest([scope["method"].encode(), scope["path"].encode(), scope["query_string"], scope["body"]])
        known = self._cache.get(caller)
        if known is None:
            await self._run_first(caller, request, scope, receive, send)
        elif known.request != request:
            error = RequestRefused(422, f"The Idempotency-Key {key!r} was used for another request. Use a new one.")
            await error_response(error)(scope, receive, send)
        elif known.start is None:
            error = RequestRefused(409, "The request with this Idempotency-Key is still in progress.", Retry_After="1")
            await error_response(error)(scope, receive, send)
        else:
            start = {**known.start, "headers": [*known.start["headers"], (b"idempotency-replayed", b"true")]}
            await send(start)
            await send({"type": "http.response.body", "body": known.body})

    async def _run_first(self, key: tuple[str, str], request: str, scope: Scope, receive: Receive, send: Send) -> None:
        response = self._cache.begin(key, request)
        start: Message | None = None
        body = bytearray()
        is_complete = False

        async def capture_send(message: Message) -> None:
            nonlocal start, is_complete
            if message["type"] == "http.response.start":
                start = message
            elif len(body) <= self._cache.MAX_RESPONSE_BYTES:
                body.extend(message.get("body", b""))
                is_complete = not message.get("more_body", False)
            await send(message)

        try:
            await self._app(scope, receive, capture_send)
        finally:
            fits = is_complete and len(body) <= self._cache.MAX_RESPONSE_BYTES
            if start is not None and start["status"] < 300 and fits:
                response.body, response.start = bytes(body), {**start, "headers": list(start["headers"])}
            else:
                self._cache.drop(key)  # a failed request may be tried again


def _digest(parts: Iterable[Any]) -> str:
    digest = sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()
