"""What callers write, read the same way by every front end: texts that no store keeps, times, and which context is meant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foveate.errors import InputError

AGO = {"m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
"""Milliseconds in the units of `when`."""
EARLIEST, LATEST = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999, in milliseconds since 1970."""

LAST = "last"
"""What stands for the latest context, wherever one is named."""


def context_named(named: str) -> str | None:
    """The id of the context that is named; none for the latest."""
    return None if named == LAST else named


def refuse_unreadable(value: Any, name: str = "") -> None:
    """No NUL and no bytes that are not UTF-8, at any depth: no store keeps them as text."""
    if isinstance(value, str):
        if "\x00" in value:
            raise InputError(f"{name} contains a NUL character at {value.index(chr(0))}; remove it.")
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"{name} is not UTF-8 text: there is a lone surrogate at {error.start}.") from None
    elif isinstance(value, Mapping):
        for key, part in value.items():
            refuse_unreadable(key, name or "a name")
            refuse_unreadable(part, name or str(key))
    elif isinstance(value, list | tuple):
        for part in value:
            refuse_unreadable(part, name)


def when(text: str) -> int:
    """A time: ISO 8601 (`2026-11-15`, `2026-11-15T12:00Z`), or how long ago (`30m`, `12h`, `7d`, `2w`)."""
    from foveate.clock import millis, now

    given = text.strip()
    try:
        ago = given[:-1].isdecimal() and given[-1] in AGO
        at = now() - int(given[:-1]) * AGO[given[-1]] if ago else millis(given)
        if not EARLIEST <= at <= LATEST:
            raise InputError(f"{text!r} is out of range: a time is in the years 1 to 9999.")
        return at
    except (ValueError, OverflowError):
        raise InputError(
            f"{text!r} is no time. Give 2026-11-15, 2026-11-15T12:00Z, or how long ago: 30m, 12h, 7d, 2w."
        ) from None
