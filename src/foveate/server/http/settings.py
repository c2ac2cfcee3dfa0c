"""Settings of a service: its address, who may use it, and limits."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path

LOOPBACK = ("localhost", "127.0.0.1", "::1")

WORKERS = max(2, min(4, os.cpu_count() or 2))
"""Requests that run at once; the rest wait in line. Computing a context keeps a core busy: more threads than cores would
slow down every response, and the slowest ones most."""

MAX_BODY = 16 * 2**20
"""Bytes of a request body, enough for an export of some ten thousand records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Options of `foveate serve`."""

    host: str = "127.0.0.1"
    """The address to listen on."""
    names: tuple[str, ...] = ()
    """Further host names of the service, such as that of a proxy."""
    require_token: bool = False
    """Require a token even if only this machine can reach the service."""
    tokens: Path | None = None
    """The file with the tokens."""
    own_token: str = ""
    """A token of this process, for programs that can read the project's files."""
    rate: str = ""
    """Most requests of one caller, such as `600/minute`; empty for no limit."""
    workers: int = WORKERS
    max_body: int = MAX_BODY
    poll_seconds: float = 0.5
    """How often `/v1/events` looks for new contexts."""

    @property
    def needs_tokens(self) -> bool:
        """Return whether callers need a token: always if another machine could reach the service."""
        return self.require_token or not all(is_loopback(name) for name in (self.host, *self.names))


def is_loopback(host: str) -> bool:
    if host in LOOPBACK:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
