"""Quantities meet, however they are written."""

from __future__ import annotations

from time import process_time

import pytest

from foveate.text.quantities import terms
from worlds import open_engine


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ("We ran three kilometres", "a 3 km run", "=3km"),
        ("The lease is 30s", "thirty seconds", "=30s"),
        ("It cost $20", "20 dollars", "=20usd"),
        ("1,000 euros", "€1000", "=1000eur"),
        ("half of it, 50%", "fifty percent", "=50%"),
        ("a 5-minute break", "five minutes", "=5min"),
        ("2.50 euros", "€2.5", "=2.5eur"),
        ("twenty-five people", "25 people", ""),
    ],
)
def test_two_ways_to_say_it_share_a_term(one: str, other: str, shared: str) -> None:
    if shared:
        assert shared in terms(one)
        assert shared in terms(other)
    else:
        assert "25" in terms(one)


@pytest.mark.parametrize("text", ["", "one of them", "nothing here", "version 1.2.3", "v5min3", "hosta0 km"])
def test_these_hold_none(text: str) -> None:
    assert [term for term in terms(text) if term.startswith("=")] == []


@pytest.mark.parametrize(("text", "term"), [("7ſ", "=7s"), ("\u0665 \u212am", "=5km"), ("3 mİn", "=3min")])
def test_letters_and_digits_of_other_scripts_are_read_like_ascii(text: str, term: str) -> None:
    assert term in terms(text)


def test_a_question_in_words_finds_a_record_in_figures_and_the_other_way_round() -> None:
    with open_engine() as engine:
        far = engine.add("fact", "Ana ran 12 km before breakfast").record.id
        near = engine.add("fact", "Ana swam three miles before breakfast").record.id
        assert engine.search("Who covered twelve kilometres?")[0].record.id == far
        assert engine.search("the 3 mi outing")[0].record.id == near
        assert engine.context("Who covered twelve kilometres?").items[0].id == far


@pytest.mark.slow
def test_it_takes_linear_time() -> None:
    began = process_time()
    for text in ("1" * 100_000, "1,111," * 20_000, "twenty-" * 20_000, "$1" * 50_000, "3 k" * 30_000):
        terms(text)
    assert process_time() - began < 5
