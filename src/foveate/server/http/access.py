"""Who asks, and what they may see: host, origin and token of a request, and the engine as its caller sees it.

The project comes from the token, never from the request; user and agent too, where the token names them. A token without
them lets its holder speak for any user of its project, as a backend does. What belongs to others is not found.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import Depends, Query, Request
from fastapi.security import HTTPBearer
from starlette.datastructures import Headers
from starlette.requests import cookie_parser

from foveate.clock import now
from foveate.engine import Engine
from foveate.engine.engine import view_of
from foveate.errors import InputError
from foveate.operations.inputs import refuse_unreadable
from foveate.server.http.problems import Refused
from foveate.server.http.settings import LOOPBACK, Settings, is_loopback
from foveate.server.tokens import SCOPES, Tokens
from foveate.types import Scope

OPEN = ("/healthz", "/readyz", "/openapi.json")
"""Paths that say nothing about anybody: no token is asked for."""

UI = "/ui"
"""Where the inspector is: the part of the service that browsers show."""

SIGN_IN, SIGN_OUT = f"{UI}/sign-in", f"{UI}/sign-out"

COOKIE = "foveate"
"""With the port after it, the name of the cookie that holds the token of whoever signed in to the inspector. It opens
nothing else. Cookies know hosts and no ports: two services of one machine must not take each other's."""

EVERYWHERE = ("0.0.0.0", "::")
"""Listening at every address of the machine."""

CHALLENGE = 'Bearer realm="foveate"'


def is_ui(path: str) -> bool:
    return path == UI or path.startswith(f"{UI}/")


def is_open(path: str) -> bool:
    """Whether nobody is asked for a token here."""
    return path in OPEN or path in (SIGN_IN, SIGN_OUT) or path.startswith(f"{UI}/static/")


def cookie_name(headers: Headers) -> str:
    """The cookie of the service that a request is to."""
    _, _, port = headers.get("host", "").rpartition(":")
    return f"{COOKIE}_{port if port.isdecimal() else 'web'}"


def held_token(headers: Headers, path: str) -> str | None:
    """The token that a browser signed in with; for the inspector's pages alone."""
    if not is_ui(path) or is_open(path):
        return None
    return cookie_parser(headers.get("cookie", "")).get(cookie_name(headers))


@dataclass(frozen=True, slots=True)
class Who:
    """The holder of a token, or whoever is at this machine."""

    id: str
    scope: Scope
    allows: tuple[str, ...] = SCOPES
    is_owner: bool = True
    """Whoever runs the service: sees their own store as well."""


class Door:
    """Lets requests in, or says why not."""

    def __init__(self, settings: Settings, tokens: Tokens | None, here: Scope) -> None:
        self._settings = settings
        self._tokens = tokens
        self._here = here
        self._names = {name.lower() for name in (*LOOPBACK, settings.host, *settings.names)}

    def check_address(self, host: str, origin: str | None) -> None:
        """A page of another site must not reach a service on this machine, by whatever name it calls it."""
        if not self._is_ours(host):
            raise Refused(421, f"This service does not answer to {host!r}. `foveate serve --name` adds a name.")
        if origin is not None and not self._is_ours(origin.partition("://")[2]):
            raise Refused(403, f"Pages of {origin!r} may not use this service.")

    def _is_ours(self, address: str) -> bool:
        try:
            if set(address) & set("@/?#"):  # an address, and nothing that could pass for one
                return False
            name = (urlsplit(f"//{address}").hostname or "").lower()
        except ValueError:
            return False
        return name in self._names or (self._settings.host in EVERYWHERE and _is_address(name))

    def seen(self, headers: Headers, path: str) -> Who:
        """Whoever sent a request: a header names them or, in a browser, a cookie."""
        held = held_token(headers, path) if "authorization" not in headers else None
        if held is None:
            return self.who(headers.get("authorization"), path)
        try:
            return self.who(f"Bearer {held}", path)
        except Refused:  # an old cookie must not lock anybody out where nobody is asked
            return self.who(None, path)

    def who(self, authorization: str | None, path: str) -> Who:
        """The caller that a header names."""
        kind, _, secret = (authorization or "").partition(" ")
        # A secret under another scheme is no token: a proxy or a browser may send it for a purpose of its own.
        secret = secret.strip() if kind.lower() == "bearer" else ""
        if not authorization:
            if self._settings.needs_tokens and not is_open(path):
                raise Refused(
                    401, "This service needs a token: `Authorization: Bearer fov_...`.", WWW_Authenticate=CHALLENGE
                )
            return Who("", self._here)
        own = self._settings.own_token
        if own and hmac.compare_digest(secret.encode(), own.encode()):
            return Who("own", self._here)
        token = self._tokens.find(secret, now()) if self._tokens and secret else None
        if token is None:
            wrong = f'{CHALLENGE}, error="invalid_token"'
            raise Refused(401, "This token is not valid, or no longer.", WWW_Authenticate=wrong)
        return Who(token.id, Scope(token.project, token.user, token.agent), token.scopes, is_owner=False)


def _is_address(name: str) -> bool:
    try:
        return bool(ipaddress.ip_address(name))
    except ValueError:
        return False


class Caller:
    """One request's caller and the engine as they see it."""

    def __init__(self, engine: Engine, who: Who, scope: Scope, instrument: Callable[[Engine], Any] | None = None) -> None:
        self._base = engine
        self._instrument = instrument
        self.who = who
        self.scope = scope

    @cached_property
    def engine(self) -> Engine:
        """Made in the thread that uses it: naming a task reads the store."""
        return self.narrowed()

    def narrowed(self, *, code: bool = True, **names: str | None) -> Engine:
        """The engine for a user, agent, session or task that the body names."""
        scope = _named(self.who, self.scope, names)
        engine = view_of(self._base, scope, personal=self.who.is_owner, code=code)
        if self._instrument is not None:
            self._instrument(engine)
        return engine


def _named(who: Who, scope: Scope, names: dict[str, str | None]) -> Scope:
    given = {level: name for level, name in names.items() if name}
    for level in ("user", "agent"):
        fixed = getattr(who.scope, level) if not who.is_owner else None
        if fixed is not None and given.get(level, fixed) != fixed:
            raise Refused(403, f"This token speaks for {level} {fixed!r}, not for {given[level]!r}.")
    return replace(scope, **given)


Level = Annotated[str | None, Query(min_length=1, max_length=500)]


def allowed(who: Who, scope: str) -> None:
    """Refuse whoever may not do this; no scope is asked of anybody."""
    if scope and scope not in who.allows:
        short = f'{CHALLENGE}, error="insufficient_scope", scope="{scope}"'
        raise Refused(403, f"This token lacks the scope {scope!r}.", WWW_Authenticate=short)


def needs(scope: str) -> Callable[..., Any]:
    """A dependency: the caller, where the token allows this."""

    async def caller(
        request: Request, user: Level = None, agent: Level = None, session: Level = None, task: Level = None
    ) -> Caller:
        who: Who = request.scope["who"]
        allowed(who, scope)
        names = {"user": user, "agent": agent, "session": session, "task": task}
        refuse_unreadable(names)
        state = request.app.state
        return Caller(state.engine, who, _named(who, who.scope, names), state.instrument)

    return caller


bearer = HTTPBearer(auto_error=False, description="`foveate token create` makes one.")


def needs_both(
    caller: Annotated[Any, Depends(needs("memory:write"))], _: Annotated[Any, Depends(needs("context:read"))]
) -> Any:
    """The caller, where the token allows to write and to be told."""
    return caller


Computes = Annotated[Caller, Depends(needs("context:read"))]
Reads = Annotated[Caller, Depends(needs("memory:read"))]
Writes = Annotated[Caller, Depends(needs("memory:write"))]
WritesAndComputes = Annotated[Caller, Depends(needs_both)]
Administers = Annotated[Caller, Depends(needs("admin"))]


def refuse_unguarded(settings: Settings, tokens: Tokens | None) -> None:
    """A service that others can reach, and that nobody has a token for."""
    if settings.needs_tokens and not (tokens and tokens.list()):
        where = settings.host if not is_loopback(settings.host) else ", ".join(settings.names) or settings.host
        raise InputError(f"Others can reach {where!r}, and there is no token. Make one first: `foveate token create NAME`.")
