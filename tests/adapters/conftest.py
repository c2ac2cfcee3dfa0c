"""What every adapter's test has: an engine with a rule and some facts, and a look at what it kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from foveate import Engine, Record
from foveate.testing import FixedClock, engine
from foveate.types import NO_FILTERS

RULE = "Always answer in Celsius"


@pytest.fixture
def memory() -> Iterator[Engine]:
    with engine(clock=FixedClock(step=5)) as opened:
        opened.add("instruction", RULE)
        for number in range(40):
            opened.add("fact", f"Deploy number {number} of the shop happened on a Tuesday and took {number} minutes")
        yield opened


@pytest.fixture
def stored(memory: Engine) -> Callable[..., list[Record]]:
    """The stored events, of one session or of all, in the order in which they happened."""

    def events(session: str | None = None) -> list[Record]:
        with memory.store.data.reader() as reader:
            found = reader.recent(["event"], 1000, NO_FILTERS, session=session)
        return sorted(found, key=lambda record: (record.created, record.id))

    return events
