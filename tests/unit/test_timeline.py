"""A session turn by turn: what came, what went, why, and where its window was compacted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import foveate
from foveate.receipts.timeline import Turn, timeline_of
from foveate.testing import FixedClock
from worlds import NOW, open_engine


@pytest.fixture
def engine() -> Iterator[foveate.Engine]:
    with open_engine(clock=FixedClock(NOW, step=1000)) as engine:
        engine.add("instruction", "Answer in English")
        engine.add("fact", "Redis evicts sessions with the volatile-lru policy")
        engine.add("fact", "Kafka partitions are rebalanced by a coordinator")
        yield engine


def told(turn: Turn) -> tuple[Any, ...]:
    return (turn.added, turn.withdrawn, turn.same_prefix, turn.refresh)


def test_each_turn_is_compared_with_the_one_before(engine: foveate.Engine) -> None:
    asked = {"frame": "none", "session": "s1"}
    first = engine.refresh(None, "How does Redis evict sessions?", **asked).context
    engine.context("How does Redis evict sessions?", frame="none", session="s2")
    second = engine.refresh(first, "Why are Kafka partitions rebalanced?", acting=True, **asked)
    assert second.context is not None
    engine.add("instruction", "Be brief")
    third = engine.context("Why are Kafka partitions rebalanced?", **asked)
    found = engine.receipts.timeline("s1")
    assert [turn.summary.id for turn in found.turns] == [first.id, second.context.id, third.id]
    assert [told(turn) for turn in found.turns] == [
        (2, 0, False, ""),
        (1, 1, True, second.reason),
        (1, 0, False, ""),
    ]
    assert found.turns[0].summary == engine.receipts.list(session="s1")[-1]
    assert (found.session, found.compactions, found.earlier) == ("s1", (), False)


def test_the_first_turn_that_is_shown_is_compared_with_the_one_that_is_not(engine: foveate.Engine) -> None:
    for n in range(3):
        engine.context(f"Redis sessions {n}", frame="none", session="s1")
    found = engine.receipts.timeline("s1", limit=2)
    assert [told(turn) for turn in found.turns] == [(0, 0, True, "")] * 2
    assert found.earlier is True


def test_a_session_without_contexts_is_not_found(engine: foveate.Engine) -> None:
    with pytest.raises(foveate.NotFound, match="'s9'"):
        engine.receipts.timeline("s9")


def test_nothing_is_a_timeline_too() -> None:
    assert timeline_of("s1", [], {}, [], 5).turns == ()
