"""The cache: the same bytes for some seconds, and never anything that is no longer so."""

from __future__ import annotations

import pytest

import foveate
from foveate.pipeline.cache import Cache
from foveate.testing import FixedClock
from worlds import open_engine

ASK = "when do deploys happen?"


def world(**options: object) -> tuple[foveate.Engine, FixedClock]:
    clock = FixedClock("2026-01-05T09:00:01Z")
    engine = open_engine(clock=clock, **options)
    engine.add("fact", "Deploys happen on Tuesdays")
    return engine, clock


def test_a_hit_has_the_bytes_of_a_recompute_at_the_rounded_clock() -> None:
    """003-110, 003-112"""
    engine, clock = world(cache_seconds=30)
    one = engine.context(ASK)
    clock.tick(20_000)
    assert engine.context(ASK) is one
    fresh = world()[0].context(ASK, now="2026-01-05T09:00:30Z")
    assert (fresh.text, fresh.id) == (one.text, one.id)


def test_a_stretch_that_is_over_is_dropped() -> None:
    """003-111"""
    engine, clock = world(cache_seconds=30)
    one = engine.context(ASK)
    clock.tick(30_000)
    two = engine.context(ASK)
    assert two is not one
    assert len(engine._shared.cache) == 1


def test_a_write_misses() -> None:
    engine, _ = world(cache_seconds=30)
    one = engine.context(ASK)
    engine.add("fact", "Deploys happen at noon")
    two = engine.context(ASK)
    assert "at noon" in two.text
    assert "at noon" not in one.text


def test_a_use_misses_as_it_counts_towards_the_score() -> None:
    engine, _ = world(cache_seconds=30)
    one = engine.context(ASK)
    engine.expand(one.items[0].id)
    assert engine.context(ASK) is not one


def test_what_was_just_written_is_valid_at_the_rounded_clock() -> None:
    engine, _ = world(cache_seconds=30)
    assert "Tuesdays" in engine.context(ASK).text


@pytest.mark.parametrize("change", [{"budget": 900}, {"profile": "chat"}, {"extra": "Freeze next week"}, {"agent": "dev"}])
def test_another_request_misses(change: dict[str, object]) -> None:
    engine, _ = world(cache_seconds=30)
    assert engine.context(ASK) is not engine.context(ASK, **change)


def test_never_across_scopes() -> None:
    engine, _ = world(cache_seconds=30)
    engine.add("fact", "Deploys need a word from Mira", user="mira")
    hers = engine.context(ASK, user="mira")
    his = engine.context(ASK, user="tom")
    assert "Mira" in hers.text
    assert "Mira" not in his.text


def test_off_unless_asked_for() -> None:
    engine, _ = world()
    assert engine.context(ASK) is not engine.context(ASK)
    engine, _ = world(cache_seconds=30)
    assert engine.context(ASK) is engine.context(ASK)


def test_forgetting_empties_it() -> None:
    engine, _ = world(cache_seconds=30)
    engine.context(ASK)
    engine.forget(engine.search("deploys")[0].record.id)
    assert len(engine._shared.cache) == 0


def test_it_holds_so_many_and_no_more() -> None:
    engine, _ = world(cache_seconds=30)
    cache = Cache(30, size=2)
    context = engine.context(ASK)
    for key in ("a", "b", "c"):
        cache.put(key, 30_000, context)
    assert len(cache) == 2
    assert cache.get("a") is None
    assert cache.get("c") is context


def test_seconds_are_not_negative() -> None:
    with pytest.raises(foveate.InputError, match="0 or more"):
        Cache(-1)
