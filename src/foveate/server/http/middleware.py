"""What happens to every request, around the endpoints: seen, let in, limited, answered once.

Plain ASGI, outermost first: `Observed`, `Admitted`, `Limited`, `AnsweredOnce`. A request is logged as one line of JSON
without its query and body.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from uuid import uuid4

from limits import RateLimitItem, parse
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from foveate.clock import iso, now
from foveate.errors import FoveateError, InputError
from foveate.server.http.access import SIGN_IN, Door, is_open
from foveate.server.http.metrics import Metrics
from foveate.server.http.problems import Refused, of_error, problem

log = logging.getLogger("foveate.http")

REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
"""What a caller may choose as the id of a request: it is logged and sent back."""

METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))

SIGNING_IN = parse("30/minute")
"""Tries to sign in from one address: a person needs a few."""

UNMATCHED = "(none)"
"""The route of a path that there is not."""


class Observed:
    """An id, a line in the log and figures for every request; what nobody foresaw becomes a 500. FastAPI makes the span."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        seen = _Seen(given if REQUEST_ID.fullmatch(given) else uuid4().hex)

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen.status = message["status"]
                MutableHeaders(scope=message)["X-Request-Id"] = seen.request
            await send(message)

        with self._metrics.active.track_inprogress():
            try:
                await self._app(scope, receive, sending)
            except ClientDisconnect:
                seen.status = 499
            except Exception as error:
                scope["error"] = type(error).__name__
                log.exception("request %s failed", seen.request)
                if seen.status is None:
                    await _unforeseen(error)(scope, receive, sending)
        self._tell(scope, seen)

    def _tell(self, scope: Scope, seen: _Seen) -> None:
        route, status = _route(scope), seen.status or 499  # 499: the caller left before there was an answer
        seconds = time.perf_counter() - seen.began
        method = scope["method"] if scope["method"] in METHODS else "other"  # a client may invent any number of them
        self._metrics.requests.labels(method, route, str(status)).inc()
        self._metrics.seconds.labels(route).observe(seconds)
        if "error" in scope:
            self._metrics.errors.labels(scope["error"]).inc()
        who = scope.get("who")
        line = {"at": iso(now()), "method": scope["method"], "route": route, "status": status}
        more = {"ms": round(seconds * 1000, 1), "request": seen.request, "token": who.id if who else ""}
        log.info(json.dumps({**line, **more}))


@dataclass(slots=True)
class _Seen:
    request: str
    status: int | None = None
    began: float = field(default_factory=time.perf_counter)


def _route(scope: Scope) -> str:
    """The route's pattern, never the path itself: that holds ids."""
    route = scope.get("route")
    return getattr(route, "path", UNMATCHED) if route is not None else UNMATCHED


def _unforeseen(error: Exception) -> ASGIApp:
    if isinstance(error, RecursionError):
        return of_error(InputError("The input is nested too deeply."))
    return problem(500, "Something went wrong here; the log of the service has it under this request's id.")


class Admitted:
    """Checks host, origin, token and rate."""

    def __init__(self, app: ASGIApp, door: Door, rate: RateLimitItem | None) -> None:
        self._app = app
        self._door = door
        self._rate = rate
        self._limiter = MovingWindowRateLimiter(MemoryStorage())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["path"] == "/mcp":  # the mounted app begins below
            scope["path"], scope["raw_path"] = "/mcp/", b"/mcp/"
        headers = Headers(scope=scope)
        try:
            self._door.check_address(headers.get("host", ""), headers.get("origin"))
            scope["who"] = who = self._door.seen(headers, scope["path"])
            here = (scope.get("client") or ("",))[0]
            if scope["path"] == SIGN_IN and scope["method"] == "POST":
                self._check_rate(f"sign in {here}", SIGNING_IN)
            elif not is_open(scope["path"]):
                self._check_rate(who.id or here, self._rate)
        except FoveateError as error:
            await of_error(error)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _check_rate(self, caller: str, rate: RateLimitItem | None) -> None:
        if rate is None or self._limiter.hit(rate, caller):
            return
        wait = self._limiter.get_window_stats(rate, caller).reset_time - time.time()
        raise Refused(429, f"More than {rate}; wait a little.", Retry_After=str(max(1, round(wait))))


def rate_of(text: str) -> RateLimitItem | None:
    """`600/minute`, checked; nothing for no limit."""
    try:
        return parse(text) if text else None
    except ValueError:
        raise InputError(f"{text!r} is no rate. Give requests and a time, such as 600/minute.") from None


class Limited:
    """Reads the body, up to a limit, before anybody works on it."""

    def __init__(self, app: ASGIApp, max_body: int) -> None:
        self._app = app
        self._max = max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "0")
        body = None if announced.isdecimal() and int(announced) > self._max else await self._read(receive)
        if body is None:
            error = Refused(413, f"The body has more than {self._max:,} bytes. Send it in parts.", Connection="close")
            await of_error(error)(scope, receive, send)
            return
        scope["body"] = body
        await self._app(scope, _replayed(body, receive), send)

    async def _read(self, receive: Receive) -> bytes | None:
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":  # half a body is no request
                raise ClientDisconnect
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._max:
                return None
            if not message.get("more_body", False):
                return b"".join(parts)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body once more, then whatever else comes, such as that the caller left."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


@dataclass(slots=True)
class _Answer:
    """What a request with a key was answered; without a start, it is still at work."""

    request: str
    at: float
    start: Message | None = None
    body: bytes = b""


class Answers:
    """The answers to requests that named a key: the last ones of a day."""

    MOST, SECONDS, MAX_BYTES = 1000, 86_400, 2**20

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[str, str], _Answer] = OrderedDict()

    def get(self, key: tuple[str, str]) -> _Answer | None:
        held = self._held.get(key)
        if held is not None and held.start is not None and time.monotonic() - held.at > self.SECONDS:
            del self._held[key]
            return None
        return held

    def begin(self, key: tuple[str, str], request: str) -> _Answer:
        self._held[key] = answer = _Answer(request, time.monotonic())
        while len(self._held) > self.MOST:
            self._held.popitem(last=False)
        return answer

    def drop(self, key: tuple[str, str]) -> None:
        self._held.pop(key, None)

    def forget(self) -> None:
        """What is forgotten must not be in an old answer."""
        for key in [key for key, answer in self._held.items() if answer.start is not None]:
            del self._held[key]


class AnsweredOnce:
    """`Idempotency-Key`: the same request again is not done again; it gets the first answer."""

    def __init__(self, app: ASGIApp, answers: Answers) -> None:
        self._app = app
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = Headers(scope=scope).get("idempotency-key") if scope["type"] == "http" and "body" in scope else None
        if not key:
            await self._app(scope, receive, send)
            return
        caller = (scope["who"].id, key)
        request = _digest([scope["method"].encode(), scope["path"].encode(), scope["query_string"], scope["body"]])
        known = self._answers.get(caller)
        if known is None:
            await self._first(caller, request, scope, receive, send)
        elif known.request != request:
            error = Refused(422, f"The Idempotency-Key {key!r} was used for another request. Take a new one.")
            await of_error(error)(scope, receive, send)
        elif known.start is None:
            error = Refused(409, "The request with this Idempotency-Key is still at work.", Retry_After="1")
            await of_error(error)(scope, receive, send)
        else:
            start = {**known.start, "headers": [*known.start["headers"], (b"idempotency-replayed", b"true")]}
            await send(start)
            await send({"type": "http.response.body", "body": known.body})

    async def _first(self, key: tuple[str, str], request: str, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self._answers.begin(key, request)
        start: Message | None = None
        body = bytearray()
        whole = False

        async def keeping(message: Message) -> None:
            nonlocal start, whole
            if message["type"] == "http.response.start":
                start = message
            elif len(body) <= self._answers.MAX_BYTES:
                body.extend(message.get("body", b""))
                whole = not message.get("more_body", False)
            await send(message)

        try:
            await self._app(scope, receive, keeping)
        finally:
            if start is not None and start["status"] < 300 and whole and len(body) <= self._answers.MAX_BYTES:
                answer.body, answer.start = bytes(body), {**start, "headers": list(start["headers"])}
            else:
                self._answers.drop(key)  # what failed may be tried again


def _digest(parts: Iterable[Any]) -> str:
    digest = sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()
