"""Retention: how long receipts and events are kept. Pure rules: settings come in, points in time go out.

Receipts explain the recent past, and events are what happened: both come by themselves and grow with use. Knowledge does
not, and is never dropped by age. Of the events, those stay that something still needs: what is pinned, what a link begins or
ends at (it is where something was learned from, or somebody drew it), and what belongs to a task that is not done.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from foveate.errors import near

DAY = 86_400_000
MEGABYTE = 2**20

BATCH = 200
"""Old events that are looked at in one transaction, and receipts that are dropped: some 50 ms, which no writer notices."""

EVERY = 32
"""Writes of a project between two that also drop a batch of events: it drops six for each that a single `add` keeps."""

SLACK = 1 / 32
"""By which share receipts may be beyond their age before they go, and go below their size: they go in batches, and most
answers wait for none."""


@dataclass(frozen=True, slots=True)
class Retention:
    """How long things are kept; `[retention]` in a project's settings changes it. None: for ever."""

    receipt_days: float | None = 30.0
    receipt_mb: float | None = 64.0
    """A month of receipts or 64 MB of them, whichever is less."""
    event_days: float | None = None
    """Days since an event happened, or since it was kept or last changed here where that is later."""
    events: int | None = None
    """How many events a project holds, the newest. A number and not megabytes: it is counted in an index, unread."""

    @property
    def drops_events(self) -> bool:
        return self.event_days is not None or self.events is not None

    def receipts_before(self, now: int) -> int:
        return _before(now, self.receipt_days)

    def events_before(self, now: int) -> int:
        return _before(now, self.event_days)

    @property
    def receipt_bytes(self) -> int | None:
        return None if self.receipt_mb is None else round(self.receipt_mb * MEGABYTE)

    def why(self, kind: str) -> str:
        """In which case a receipt or an event goes, as the end of a sentence."""
        if kind == "receipt":
            limits = (self.receipt_days, "older than {:g} days"), (self.receipt_mb, "beyond the newest {:g} MB")
        else:
            limits = (self.event_days, "older than {:g} days"), (self.events, "beyond the newest {:,}")
        return " or ".join(text.format(limit) for limit, text in limits if limit is not None)


DEFAULT = Retention()


@dataclass(frozen=True, slots=True)
class Gone:
    """What a round has dropped, or would drop."""

    receipts: int = 0
    events: int = 0

    def __bool__(self) -> bool:
        return bool(self.receipts or self.events)

    def __add__(self, other: Gone) -> Gone:
        return Gone(self.receipts + other.receipts, self.events + other.events)


def _before(now: int, days: float | None) -> int:
    """The time before which something is too old; 0: nothing is."""
    return 0 if days is None else max(0, now - round(days * DAY))


def problems_in(values: Mapping[str, Any]) -> list[str]:
    """What is wrong with a table of settings, as sentences."""
    known = [item.name for item in fields(Retention)]
    found = []
    for name, value in values.items():
        whole = name == "events"
        if name not in known:
            found.append(f"There is no setting {name!r}.{near(name, known)}")
        elif isinstance(value, bool) or not isinstance(value, int if whole else int | float) or value <= 0:
            found.append(f"{name} must be {'a whole number' if whole else 'a number'} above 0, not {value!r}.")
    return found
