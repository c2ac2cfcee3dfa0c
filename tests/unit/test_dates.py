"""Dates in words: what a text names, seen from the day on which it was said."""

from __future__ import annotations

import pytest

from foveate import InputError
from foveate.clock import millis
from foveate.text import dates
from worlds import open_engine

AT = millis("2026-05-20T12:00Z")  # a Wednesday


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("What happened on 2026-05-14?", {"@2026-05-14", "@2026-05"}),
        ("the release of 14 May 2026", {"@2026-05-14", "@2026-05"}),
        ("on May 14th, 2025", {"@2025-05-14", "@2025-05"}),
        ("on December 5", {"@2025-12-05", "@2025-12"}),  # the latest one that is not ahead
        ("in June 2023", {"@2023-06"}),
        ("2023-06 figures", {"@2023-06"}),
        ("in May", {"@2026-05"}),
        ("last May", {"@2025-05"}),
        ("since March", {"@2026-03"}),
        ("next April", {"@2027-04"}),
        ("back in 2024", {"@2024"}),
        ("yesterday", {"@2026-05-19", "@2026-05"}),
        ("laſt week, \u0663 days ago", {"@2026-w20", "@2026-05-17", "@2026-05"}),  # a long s, an Arabic 3
        ("three days ago", {"@2026-05-17", "@2026-05"}),
        ("2 weeks ago", {"@2026-w19"}),
        ("last week", {"@2026-w20"}),
        ("last month", {"@2026-04"}),
        ("five months ago", {"@2025-12"}),
        ("last year", {"@2025"}),
        ("last Friday", {"@2026-05-15", "@2026-05"}),
        ("on Wednesday", {"@2026-05-13", "@2026-05"}),
        ("next Monday", {"@2026-05-25", "@2026-05"}),
    ],
)
def test_a_question_asks_for_the_dates_that_it_names(text: str, terms: set[str]) -> None:
    assert set(dates.question_terms(text, AT)) == terms


@pytest.mark.parametrize(
    "text",
    [
        "You may go and march on",
        "this may fail",
        "log in may fail",
        "the checks after may be slow",
        "31 February",
        "call 2026 people",
        "in other words",
        "v1.2.3-05",
        "",
    ],
)
def test_what_is_no_date_gives_no_term(text: str) -> None:
    assert dates.question_terms(text, AT) == ()


def test_a_record_is_found_under_everything_coarser() -> None:
    assert dates.record_terms("nothing said", AT) == ("@2026-05-20", "@2026-w21", "@2026-05")
    assert {"@2024-02-29", "@2024-w09", "@2024-02", "@2024"} < set(dates.record_terms("on 29 February 2024", AT))


def test_a_time_outside_the_calendar_gives_no_term() -> None:
    assert dates.record_terms("yesterday", 10**18) == dates.question_terms("yesterday", 10**18) == ()


def test_last_may_and_the_day_meet_in_a_context() -> None:
    """Neither text shares a word with the question: only the date leads to it."""
    engine = open_engine()
    met = engine.add("note", "Signed with the Lisbon office last May", valid_from="2026-09-01").record
    other = engine.add("note", "Signed with the Porto office last June", valid_from="2026-09-01").record
    found_only = {"slots": {"messages": {"fill": "none", "min_relevance": 0}}}
    found = engine.context("What was it on 2026-05-14?", profile="chat", overrides=found_only)
    assert [item.id for item in found.items] == [met.id]
    filled = engine.context("What was it on 2026-05-14?", profile="chat")
    assert [item.id for item in filled.items] == [met.id, other.id]
    first, second = (item.candidate.features["relevance"] for item in filled.items)
    assert first > 1.4 * second


def test_a_record_is_found_by_the_day_it_was_made() -> None:
    with open_engine(clock=lambda: millis("2026-11-15T12:00Z")) as engine:
        for n in range(20):
            engine.add("event", f"make test run {n}")
        old = engine.add("event", "the crawler broke", created="2026-05-14T10:00Z").record.id
        assert engine.search("what failed on 14 May 2026?")[0].record.id == old


@pytest.mark.parametrize("created", ["9999-12-31", "1905-01-01", "2026-11-18"])
def test_a_record_is_not_made_before_1970_or_after_tomorrow(created: str) -> None:
    with open_engine(clock=lambda: millis("2026-11-15T12:00Z")) as engine, pytest.raises(InputError, match="between 1970"):
        engine.add("fact", "x", created=created)
