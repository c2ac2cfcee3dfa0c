"""Statements that seem to contradict each other: kept, linked, and shown together with their dates."""

from __future__ import annotations

from datetime import timedelta

import pytest

from foveate.records.merge import is_conflict
from foveate.testing import FixedClock
from worlds import open_engine


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The cache lives 30 seconds", "The cache lives 300 seconds"),
        ("Deploys go to production directly", "Deploys never go to production directly"),
        ("The feature flag for search is on", "The feature flag for search is off"),
        ("Backups run before the nightly build", "Backups run after the nightly build"),
        ("The API doesn't accept gzip bodies", "The API accepts gzip bodies"),
        ("Retries are enabled for uploads", "Retries are disabled for uploads"),
        ("The hall has 1,500 seats", "The hall has 1,600 seats"),
        ("The meeting room holds 8 people", "The meeting room holds 12 people"),
    ],
)
def test_these_seem_to_conflict(one: str, other: str) -> None:
    assert is_conflict(one, other)
    assert is_conflict(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The cache lives 30 seconds", "The cache lives 30 seconds."),
        ("The hall has 1,500 seats", "The hall has 1500 seats"),
        ("Tim likes tea", "Tim likes coffee"),
        ("Server alpha in the east has 4 cores", "Server beta in the west has 8 cores"),
        ("Deploys happen on Tuesdays", "Never push to main"),
        ("It is 3", "It is 4"),
        ("The deploy of hosta0 is known", "The deploy of hostb1 is known"),
        ("Turn it on before you turn it off", "Turn it off after you turned it on"),
        ("", "x"),
    ],
)
def test_these_do_not(one: str, other: str) -> None:
    assert not is_conflict(one, other)


def test_both_are_kept_linked_and_shown_together_with_their_dates() -> None:
    clock = FixedClock("2026-01-05T09:00Z")
    with open_engine(clock=clock) as engine:
        old = engine.add("fact", "The session cache lives 30 seconds").record
        clock.tick(timedelta(days=40))
        new = engine.add("fact", "The session cache lives 300 seconds")
        assert new.action == "added"
        assert new.affected == (old.id,)
        assert any(old.id in warning for warning in new.warnings)
        context = engine.context("How long does the session cache live?")
        lives, conflicts = "- The session cache lives", "conflicts with another fact from"
        assert f"{lives} 300 seconds (2026-02-14; {conflicts} 2026-01-05)\n" in context.text
        assert f"{lives} 30 seconds (2026-01-05; {conflicts} 2026-02-14)\n" in context.text
        assert engine.receipts.replay(context).same


def test_the_other_side_comes_along_even_where_the_question_does_not_find_it() -> None:
    with open_engine() as engine:
        engine.add("fact", "The gateway times out at 30 seconds on large uploads")
        engine.add("fact", "The gateway times out at 90 seconds on large uploads")
        text = engine.context("gateway", overrides={"slots": {"facts": {"max_candidates": 1}}}).text
        assert "30 seconds" in text
        assert "90 seconds" in text


def test_once_one_of_them_is_put_away_the_other_stands_alone() -> None:
    with open_engine() as engine:
        old = engine.add("fact", "The session cache lives 30 seconds").record
        engine.add("fact", "The session cache lives 300 seconds")
        engine.edit(old.id, status="retired")
        assert "- The session cache lives 300 seconds\n" in engine.context("session cache").text


def test_a_keyed_fact_supersedes_and_does_not_conflict() -> None:
    with open_engine() as engine:
        engine.add("fact", "The cache lives 30 seconds", subject="cache", attribute="ttl")
        added = engine.add("fact", "The cache lives 300 seconds", subject="cache", attribute="ttl")
        assert added.action == "superseded older"
        assert added.warnings == ()


def test_facts_of_others_are_not_looked_at() -> None:

    with open_engine() as engine:
        engine.add("fact", "The session cache lives 30 seconds", user="ana")
        added = engine.add("fact", "The session cache lives 300 seconds", user="bob")
        assert (added.affected, added.warnings) == ((), ())


def test_an_edit_may_settle_it() -> None:
    with open_engine() as engine:
        engine.add("fact", "The upload limit is 30 seconds")
        other = engine.add("fact", "The upload limit is 60 seconds").record.id
        engine.edit(other, text="Bananas are yellow fruit")
        assert "otherwise" not in engine.context("upload limit bananas").text


def test_forgetting_one_leaves_the_other_in_the_replay() -> None:
    with open_engine() as engine:
        engine.add("fact", "The upload limit is 30 seconds")
        other = engine.add("fact", "The upload limit is 60 seconds").record.id
        context = engine.context("upload limit")
        engine.forget(other)
        replayed = engine.receipts.replay(context)
        assert len(replayed.missing) == 1
        assert "30 seconds" in replayed.text
