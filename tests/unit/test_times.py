"""Times are read in one place, so every way in takes the same forms and refuses the same mistakes."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from foveate import Engine, InputError
from foveate.clock import new_id, parse_time
from foveate.testing import engine as make_engine
from foveate.types import NO_FILTERS, Filters

DAY_MS = 86_400_000
NOW = 1_780_000_000_000


@pytest.fixture
def engine() -> Iterator[Engine]:
    with make_engine() as engine:
        yield engine


@pytest.mark.parametrize(
    ("value", "time"),
    [
        (NOW, NOW),
        ("2026-05-28T20:26:40Z", NOW),
        (" 2026-05-28T22:26:40+02:00 ", NOW),
        ("2026-05-28T20:26:40", NOW),
        (datetime(2026, 5, 28, 20, 26, 40, tzinfo=UTC), NOW),
        (datetime(2026, 5, 28, 20, 26, 40), NOW),
        (datetime(2026, 5, 28, 22, 26, 40, tzinfo=timezone(timedelta(hours=2))), NOW),
        ("7d", NOW - 7 * DAY_MS),
        ("12h", NOW - DAY_MS // 2),
        ("30m", NOW - 1_800_000),
        ("2w", NOW - 14 * DAY_MS),
        ("1970-01-01", 0),
    ],
)
def test_every_form_of_a_time_is_milliseconds(value: Any, time: int) -> None:
    assert parse_time(value, current=NOW) == time


@pytest.mark.parametrize("value", ["yesterday", "", "d", "-7d", "2026-13-01", "9" * 5000 + "d", 10**15, 1.5, True, None, []])
def test_what_is_no_time_is_an_error_that_names_the_parameter(value: Any) -> None:
    with pytest.raises(InputError, match=r"^since must be (a time|in the years)") as error:
        parse_time(value, "since")
    assert len(str(error.value)) < 200


@pytest.mark.parametrize("since", ["2020-01-01", datetime(2020, 1, 1, tzinfo=UTC), 1_577_836_800_000])
def test_filters_take_the_same_times_everywhere(engine: Engine, since: Any) -> None:
    id = engine.add("fact", "The cache runs on Redis").record.id
    filters = Filters(since=since)
    assert filters.since == 1_577_836_800_000
    assert [hit.record.id for hit in engine.search("cache Redis", filters=filters)] == [id]
    assert [record.id for record in engine.records(filters=filters)] == [id]
    assert engine.context("Which cache?", filters=filters).items
    assert not engine.search("cache Redis", filters=Filters(since="9999-01-01"))


def test_filters_count_an_age_from_now() -> None:
    before = parse_time("0m")
    assert before - DAY_MS <= (Filters(since="1d").since or 0) <= parse_time("0m") - DAY_MS


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"since": "yesterday"}, "since must be a time"),
        ({"until": object()}, "until must be a time"),
        ({"min_trust": "nobody"}, "min_trust must be one of web, tool, repo, agent, user"),
        ({"tags": 7}, "tags must be a list of names"),
        ({"kinds": "fact"}, r"kinds must be a list of names, got 'fact'. Write \['fact'\]"),
        ({"event_types": ("",)}, "event_types must be a list of names"),
    ],
)
def test_filters_refuse_a_wrong_value_when_they_are_made(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Filters(**values)
    with pytest.raises(InputError, match=message):
        replace(NO_FILTERS, **values)


def test_an_unknown_kind_in_filters_is_an_error(engine: Engine) -> None:
    filters = Filters(kinds=["fakt"])
    for ask in (engine.search, engine.context):
        with pytest.raises(InputError, match="Did you mean 'fact'"):
            ask("cache", filters=filters)
    with pytest.raises(InputError, match="Did you mean 'fact'"):
        list(engine.records(filters=filters))


def test_a_record_is_read_as_of_any_form_of_time(engine: Engine) -> None:
    id = engine.add("fact", "The cache runs on Redis", created="2026-01-01").record.id
    engine.edit(id, text="The cache runs on Valkey")
    for time in ("2026-01-02", datetime(2026, 1, 2, tzinfo=UTC)):
        assert engine.get(id, as_of=time).text == "The cache runs on Redis"
    with pytest.raises(InputError, match="as_of must be a time"):
        engine.get(id, as_of="yesterday")


def test_ids_of_one_millisecond_ascend_in_the_order_in_which_they_are_made() -> None:
    ids = [new_id("fact", 1_700_000_000_000) for _ in range(5_000)]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)


def test_an_id_of_a_later_millisecond_is_larger() -> None:
    ids = [new_id("fact", 1_700_000_000_000 + n) for n in range(1_000)]
    assert ids == sorted(ids)


def test_threads_that_make_ids_at_once_never_make_the_same_one() -> None:
    with ThreadPoolExecutor(8) as pool:
        made = [id for ids in pool.map(lambda _: [new_id("fact", 1) for _ in range(500)], range(8)) for id in ids]
    assert len(set(made)) == 4_000
