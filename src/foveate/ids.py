"""Public ids and the clock: the two places where randomness and time enter.

An id is its kind and a ULID (`fact_01J9...`): sortable by time, unguessable, readable. Both functions can be replaced
when an engine is opened, which is how tests get the same ids and times in every process.
"""

from __future__ import annotations

import os
import time
from base64 import b32encode
from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], int]
Ids = Callable[[str, int], str]

# Crockford's alphabet: ascending, so that ids sort by time, and without letters that look like digits.
_CROCKFORD = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", b"0123456789ABCDEFGHJKMNPQRSTVWXYZ")


def now() -> int:
    """Milliseconds since 1970, UTC."""
    return time.time_ns() // 1_000_000


def new_id(kind: str, at: int) -> str:
    """`kind_` and 26 characters: 48 bits of time, 80 random bits."""
    raw = at.to_bytes(6, "big") + os.urandom(10)
    return f"{kind}_{b32encode(raw)[:26].translate(_CROCKFORD).decode()}"


def iso(at: int) -> str:
    """A time as people and JSON read it: `2026-11-15T11:12:00.000Z`."""
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def millis(when: int | str | datetime) -> int:
    """A time from any of the forms that callers use; a time without a zone is UTC."""
    if isinstance(when, int):
        return int(when)
    if isinstance(when, str):
        when = datetime.fromisoformat(when)
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return round(when.timestamp() * 1000)
