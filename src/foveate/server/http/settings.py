"""How a service behaves: where it is reached, who may use it, and how much."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path

LOOPBACK = ("localhost", "127.0.0.1", "::1")

WORKERS = max(2, min(4, os.cpu_count() or 2))
"""Requests at work at once; the rest wait in line. Computing is work for the processor: more threads on the same cores
would make every answer slower, and the slowest ones much slower."""

MAX_BODY = 16 * 2**20
"""Bytes of a request: an export of some ten thousand records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What `foveate serve` was told."""

    host: str = "127.0.0.1"
    """The address that it listens at."""
    names: tuple[str, ...] = ()
    """Further names under which it may be reached, such as that of a proxy."""
    require_token: bool = False
    """Also where it can only be reached from this machine."""
    tokens: Path | None = None
    """The file that holds the tokens."""
    own_token: str = ""
    """A token of this run, for those who can read the project's files."""
    rate: str = ""
    """Requests that one caller may make, such as `600/minute`."""
    workers: int = WORKERS
    max_body: int = MAX_BODY
    poll_seconds: float = 0.5
    """How often `/v1/events` looks for contexts of other processes."""

    @property
    def needs_tokens(self) -> bool:
        """Unless every way in is this machine's own."""
        return self.require_token or not all(is_loopback(name) for name in (self.host, *self.names))


def is_loopback(host: str) -> bool:
    if host in LOOPBACK:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
