"""Rules for how long receipts and events are kept. Pure functions of settings and times.

Receipts and events are created automatically and grow with use, so they expire. Knowledge never expires. An event is always
kept if it is pinned, if a link begins or ends at it, or if it belongs to an unfinished task.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from foveate.errors import near

DAY_MS = 86_400_000
MEGABYTE = 2**20

BATCH_SIZE = 200
"""Old events examined, or receipts deleted, in one transaction. It takes about 50 ms, so no writer waits long."""

WRITES_BETWEEN_CLEANUPS = 32
"""Every 32nd write to a project also deletes a batch of events. That is six events for each that a write can add."""

OVERRUN_SHARE = 1 / 32
"""Receipts are deleted once they exceed their age by this share, and are cut below their maximum size by it. So they are
deleted in batches, and most writes delete none."""


@dataclass(frozen=True, slots=True)
class Retention:
    """Limits on the age and number of receipts and events, from `[retention]` in the settings. None means no limit."""

    receipt_days: float | None = 30.0
    receipt_mb: float | None = 64.0
    """Receipts are kept for 30 days, or the newest 64 MB of them, whichever is less."""
    event_days: float | None = None
    """Days since an event happened, or since it was stored or changed here if that is later."""
    events: int | None = None
    """Number of newest events to keep. It is not a size in megabytes, because an index can count events but not bytes."""

    @property
    def drops_events(self) -> bool:
        return self.event_days is not None or self.events is not None

    def receipts_cutoff(self, now: int) -> int:
        return _cutoff(now, self.receipt_days)

    def events_cutoff(self, now: int) -> int:
        return _cutoff(now, self.event_days)

    @property
    def receipt_bytes(self) -> int | None:
        return None if self.receipt_mb is None else round(self.receipt_mb * MEGABYTE)

    def reason(self, kind: str) -> str:
        """Return when a receipt or an event expires, as the end of a sentence."""
        if kind == "receipt":
            limits = (self.receipt_days, "older than {:g} days"), (self.receipt_mb, "beyond the newest {:g} MB")
        else:
            limits = (self.event_days, "older than {:g} days"), (self.events, "beyond the newest {:,}")
        return " or ".join(text.format(limit) for limit, text in limits if limit is not None)


DEFAULT_RETENTION = Retention()


@dataclass(frozen=True, slots=True)
class ExpiredCounts:
    """Numbers of receipts and events that were deleted, or would be."""

    receipts: int = 0
    events: int = 0

    def __bool__(self) -> bool:
        return bool(self.receipts or self.events)

    def __add__(self, other: ExpiredCounts) -> ExpiredCounts:
        return ExpiredCounts(self.receipts + other.receipts, self.events + other.events)


def _cutoff(now: int, days: float | None) -> int:
    """Return the time before which something is too old, or 0 if nothing is ever too old."""
    return 0 if days is None else max(0, now - round(days * DAY_MS))


def retention_problems(values: Mapping[str, Any]) -> list[str]:
    """Return the problems of a table of retention settings, as sentences."""
    known = [item.name for item in fields(Retention)]
    problems = []
    for name, value in values.items():
        is_count = name == "events"
        if name not in known:
            problems.append(f"{name!r} is not a retention setting.{near(name, known)}")
        elif isinstance(value, bool) or not isinstance(value, int if is_count else int | float) or value <= 0:
            problems.append(f"{name} must be {'a whole number' if is_count else 'a number'} above 0, got {value!r}.")
    return problems
