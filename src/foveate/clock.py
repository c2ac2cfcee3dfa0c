"""The clock, ids and times. All randomness and all times come from here.

An id is its kind and a ULID (`fact_01J9...`): readable, sortable by time, and hard to guess. Tests replace the clock and
the ids through `foveate.testing`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from threading import Lock
from typing import Any

from foveate.errors import InputError

Clock = Callable[[], int]
Ids = Callable[[str, int], str]

When = int | str | datetime
"""A time: a datetime, ISO 8601 text, how long ago (`"7d"`), or milliseconds since 1970."""

AGE_UNITS_MS = {"m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
MIN_TIME_MS, MAX_TIME_MS = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999: the times that ISO 8601 can write."""

# Crockford's alphabet: ascending, so that ids sort by time, and without letters that look like digits.
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = [high + low for high in _CROCKFORD for low in _CROCKFORD]


def now() -> int:
    """Return the time in milliseconds since 1970, UTC."""
    return time.time_ns() // 1_000_000


class _RandomBits:
    """The 80 random bits of ids: of two ids made in one millisecond by one process, the later one is larger.

    Lists order records of one millisecond by id, so "newest first" holds for them too. The steps are random, so the
    next id cannot be guessed from this one.
    """

    def __init__(self) -> None:
        self._lock, self._at, self._bits = Lock(), -1, 0

    def next(self, at: int) -> int:
        with self._lock:
            bits = self._bits + 1 + int.from_bytes(os.urandom(8), "big") if at == self._at else 1 << 80
            if bits >> 80:  # a new millisecond, or the bits of this one are used up
                bits = int.from_bytes(os.urandom(10), "big") >> 1  # half the range is left for later ids
            self._at, self._bits = at, bits
            return bits


_random_bits = _RandomBits()


def new_id(kind: str, at: int) -> str:
    """Return an id: the kind and a ULID of 26 characters, with 48 bits of time and 80 random bits."""
    number = at << 82 | _random_bits.next(at) << 2  # 128 bits, and two to make thirteen times ten
    return f"{kind}_{''.join([_PAIRS[number >> shift & 1023] for shift in range(120, -1, -10)])}"


def iso(at: int) -> str:
    """Return a time as ISO 8601 text: `2026-11-15T11:12:00.000Z`."""
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def millis(when: int | str | datetime) -> int:
    """Return a time in milliseconds from ISO 8601 text, a datetime or milliseconds. Without a zone it is UTC."""
    if isinstance(when, int):
        return int(when)
    if isinstance(when, str):
        when = datetime.fromisoformat(when)
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return round(when.timestamp() * 1000)


def parse_time(value: Any, name: str = "time", *, current: int | None = None) -> int:
    """Return a time in milliseconds, or raise an `InputError` that names the parameter.

    `value` is a datetime, milliseconds, ISO 8601 (`2026-11-15`, `2026-11-15T12:00Z`) or an age (`30m`, `12h`, `7d`, `2w`).
    An age counts back from `current`, which defaults to the system's clock.
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        time = _parse_age(value, current) if is_age(value) else millis(value.strip() if isinstance(value, str) else value)
        if MIN_TIME_MS <= time <= MAX_TIME_MS:
            return time
        problem = f"{name} must be in the years 1 to 9999, got {value!r:.60}."
    except (ValueError, TypeError, AttributeError, OverflowError, OSError):
        problem = f"{name} must be a time (2026-11-15, 2026-11-15T12:00Z) or an age (12h, 7d), got {value!r:.60}."
    raise InputError(problem) from None


def is_age(value: Any) -> bool:
    """Return whether a value is written as an age, such as `30m` or `7d`."""
    return isinstance(value, str) and value.strip()[:-1].isdecimal() and value.strip()[-1] in AGE_UNITS_MS


def _parse_age(age: str, current: int | None) -> int:
    age = age.strip()
    return (now() if current is None else current) - int(age[:-1]) * AGE_UNITS_MS[age[-1]]
