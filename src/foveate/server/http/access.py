"""Authentication and authorization: checks host, origin and token of a request, and gives its caller an engine.

The project comes from the token, never from the request. So do user and agent if the token names them; a token without them
may name any user of its project, as a backend does. Records of others are reported as not found.
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
from foveate.engine.engine import note_session, view_of
from foveate.errors import InputError
from foveate.operations.inputs import refuse_unreadable
from foveate.options import WHO
from foveate.server.http.responses import RequestRefused
from foveate.server.http.settings import LOOPBACK, Settings, is_loopback
from foveate.server.tokens import SCOPES, Tokens
from foveate.types import Scope

PUBLIC_PATHS = ("/healthz", "/readyz", "/openapi.json")
"""Paths that need no token, because they reveal nothing about any user."""

UI = "/ui"
"""Path of the inspector, the part of the service for browsers."""

SIGN_IN, SIGN_OUT = f"{UI}/sign-in", f"{UI}/sign-out"

COOKIE = "foveate"
"""Beginning of the name of the cookie with the token of a person who signed in to the inspector; the port follows.

Cookies are sent to every port of a host, so two services on one machine need different names.
"""

WILDCARD_HOSTS = ("0.0.0.0", "::")

CHALLENGE = 'Bearer realm="foveate"'


def is_ui(path: str) -> bool:
    return path == UI or path.startswith(f"{UI}/")


def is_public(path: str) -> bool:
    """Return whether a path can be requested without a token."""
    return path in PUBLIC_PATHS or path in (SIGN_IN, SIGN_OUT) or path.startswith(f"{UI}/static/")


def cookie_name(headers: Headers) -> str:
    """Return the name of the inspector's cookie for the address that a request was sent to."""
    _, _, port = headers.get("host", "").rpartition(":")
    return f"{COOKIE}_{port if port.isdecimal() else 'web'}"


def cookie_token(headers: Headers, path: str) -> str | None:
    """Return the token that a browser signed in with. It opens pages of the inspector and nothing else."""
    if not is_ui(path) or is_public(path):
        return None
    return cookie_parser(headers.get("cookie", "")).get(cookie_name(headers))


@dataclass(frozen=True, slots=True)
class Principal:
    """The holder of a token, or a program or person on this machine."""

    id: str
    scope: Scope
    scopes: tuple[str, ...] = SCOPES
    is_owner: bool = True
    """The person who runs the service, and sees their personal store as well."""


class Authenticator:
    """Decides which requests are let in, and as whom."""

    def __init__(self, settings: Settings, tokens: Tokens | None, local_scope: Scope) -> None:
        self._settings = settings
        self._tokens = tokens
        self._local_scope = local_scope
        self._names = {name.lower() for name in (*LOOPBACK, settings.host, *settings.names)}

    def check_address(self, host: str, origin: str | None) -> None:
        """Refuse unknown hosts and origins, so that a page of another site cannot reach a service on this machine."""
        if not self._is_known_host(host):
            raise RequestRefused(421, f"This service does not answer to {host!r}. Add the name with `foveate serve --name`.")
        if origin is not None and not self._is_known_host(origin.partition("://")[2]):
            raise RequestRefused(403, f"Pages of {origin!r} may not use this service.")

    def _is_known_host(self, address: str) -> bool:
        try:
            if set(address) & set("@/?#"):  # parts of a URL that could make another host look like ours
                return False
            name = (urlsplit(f"//{address}").hostname or "").lower()
        except ValueError:
            return False
        # A service on every interface is reached by each address of the machine. DNS rebinding needs a name.
        return name in self._names or (self._settings.host in WILDCARD_HOSTS and _is_ip_address(name))

    def authenticate_request(self, headers: Headers, path: str) -> Principal:
        """Return the principal that the header or, in a browser, the cookie of a request names."""
        token = cookie_token(headers, path) if "authorization" not in headers else None
        if token is None:
            return self.authenticate(headers.get("authorization"), path)
        try:
            return self.authenticate(f"Bearer {token}", path)
        except RequestRefused:  # a service that needs no token must ignore an old cookie
            return self.authenticate(None, path)

    def authenticate(self, authorization: str | None, path: str) -> Principal:
        """Return the principal of an Authorization header."""
        kind, _, secret = (authorization or "").partition(" ")
        # A secret under another scheme is no token: a proxy or a browser may send it for a purpose of its own.
        secret = secret.strip() if kind.lower() == "bearer" else ""
        if not authorization:
            if not self._settings.needs_tokens:
                return Principal("", self._local_scope)
            if is_public(path):
                return Principal("", self._local_scope, scopes=(), is_owner=False)
            raise RequestRefused(
                401, "This service needs a token: `Authorization: Bearer fov_...`.", WWW_Authenticate=CHALLENGE
            )
        own = self._settings.own_token
        if own and hmac.compare_digest(secret.encode(), own.encode()):
            return Principal("own", self._local_scope)
        token = self._tokens.find(secret, now()) if self._tokens and secret else None
        if token is None:
            invalid = f'{CHALLENGE}, error="invalid_token"'
            raise RequestRefused(401, "This token is unknown, expired or revoked.", WWW_Authenticate=invalid)
        return Principal(token.id, Scope(token.project, token.user, token.agent), token.scopes, is_owner=False)


def _is_ip_address(name: str) -> bool:
    try:
        return bool(ipaddress.ip_address(name))
    except ValueError:
        return False


class Caller:
    """The principal of one request, and the engine as they may see it."""

    def __init__(
        self, engine: Engine, principal: Principal, scope: Scope, instrument: Callable[[Engine], Any] | None = None
    ) -> None:
        self._shared_engine = engine
        self._instrument = instrument
        self.principal = principal
        self.scope = scope

    @cached_property
    def engine(self) -> Engine:
        """The engine for the scope of the request. It is made in the endpoint's thread, because naming a task reads."""
        return self.engine_for({})

    def engine_for(self, arguments: dict[str, Any]) -> Engine:
        """Return the engine for the user, agent, session and task that a body names. They are removed from the body.

        An endpoint must not pass these on to the engine: only here are they checked against the token.
        """
        named = {name: arguments.pop(name) for name in WHO & arguments.keys()}
        scope = named_scope(self.principal, self.scope, named)
        if named.get("session"):
            note_session(self._shared_engine, scope)
        engine = view_of(self._shared_engine, scope, personal=self.principal.is_owner)
        if self._instrument is not None:
            self._instrument(engine)
        return engine

    def require(self, scope: str) -> None:
        """Refuse the request if the token lacks a scope."""
        require_scope(self.principal, scope)


def named_scope(principal: Principal, scope: Scope, names: dict[str, str | None]) -> Scope:
    """Return a scope with the names of a request. A token of one user or agent cannot name another."""
    given = {level: name for level, name in names.items() if name}
    for level in ("user", "agent"):
        # The owner's engine may be opened for an agent; that is a default for the owner, not a limit.
        fixed = getattr(principal.scope, level) if not principal.is_owner else None
        if fixed is not None and given.get(level, fixed) != fixed:
            raise RequestRefused(403, f"This token is for {level} {fixed!r}; it cannot act for {given[level]!r}.")
    return replace(scope, **given)


def require_scope(principal: Principal, scope: str) -> None:
    """Refuse a principal without a scope; an empty scope is always allowed."""
    if scope and scope not in principal.scopes:
        challenge = f'{CHALLENGE}, error="insufficient_scope", scope="{scope}"'
        raise RequestRefused(403, f"This token lacks the scope {scope!r}.", WWW_Authenticate=challenge)


ScopeParam = Annotated[str | None, Query(min_length=1, max_length=500)]


def needs(*scopes: str) -> Callable[..., Any]:
    """Return a dependency that gives the caller if their token has these scopes."""

    # Async without awaiting anything: FastAPI would run a plain function in a thread, and those are for endpoints.
    async def caller(
        request: Request,
        user: ScopeParam = None,
        agent: ScopeParam = None,
        session: ScopeParam = None,
        task: ScopeParam = None,
    ) -> Caller:
        principal: Principal = request.scope["principal"]
        for scope in scopes:
            require_scope(principal, scope)
        names = {"user": user, "agent": agent, "session": session, "task": task}
        refuse_unreadable(names)
        state = request.app.state
        return Caller(state.engine, principal, named_scope(principal, principal.scope, names), state.instrument)

    return caller


bearer = HTTPBearer(auto_error=False, description="Create a token with `foveate token create`.")

Computes = Annotated[Caller, Depends(needs("context:read"))]
Reads = Annotated[Caller, Depends(needs("memory:read"))]
Writes = Annotated[Caller, Depends(needs("memory:write"))]
WritesAndComputes = Annotated[Caller, Depends(needs("memory:write", "context:read"))]
Administers = Annotated[Caller, Depends(needs("admin"))]


def require_tokens_if_exposed(settings: Settings, tokens: Tokens | None) -> None:
    """Raise `InputError` if other machines can reach the service and no token exists."""
    if settings.needs_tokens and not (tokens and tokens.list()):
        address = settings.host if not is_loopback(settings.host) else ", ".join(settings.names) or settings.host
        raise InputError(
            f"Other machines could reach the service at {address!r} without a token. "
            "Create one first: `foveate token create NAME`."
        )
