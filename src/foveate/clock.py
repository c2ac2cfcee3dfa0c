"""Public ids and the clock: the two places where randomness and time enter.

An id is its kind and a ULID (`fact_01J9...`): sortable by time, unguessable, readable. Both functions can be replaced
when an engine is opened, which is how tests get the same ids and times in every process.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], int]
Ids = Callable[[str, int], str]

# Crockford's alphabet: ascending, so that ids sort by time, and without letters that look like digits.
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = [high + low for high in _CROCKFORD for low in _CROCKFORD]


def now() -> int:
    """Milliseconds since 1970, UTC."""
    return time.time_ns() // 1_000_000


def new_id(kind: str, at: int) -> str:
    """`kind_` and 26 characters: 48 bits of time, 80 random bits."""
    number = at << 82 | int.from_bytes(os.urandom(10), "big") << 2  # 128 bits, and two to make thirteen times ten
    return f"{kind}_{''.join([_PAIRS[number >> shift & 1023] for shift in range(120, -1, -10)])}"


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
