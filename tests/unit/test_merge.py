"""Statements that seem to contradict each other: kept, linked, and shown together with their dates."""

from __future__ import annotations

from datetime import timedelta

from foveate.testing import FixedClock
from worlds import open_engine


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
        newer = "- The session cache lives 300 seconds (newer: 2026-02-14)\n"
        assert newer + "- The session cache lives 30 seconds (older: 2026-01-05)\n" in context.text
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
        assert "older" not in engine.context("upload limit bananas").text


def test_forgetting_one_leaves_the_other_in_the_replay() -> None:
    with open_engine() as engine:
        engine.add("fact", "The upload limit is 30 seconds")
        other = engine.add("fact", "The upload limit is 60 seconds").record.id
        context = engine.context("upload limit")
        engine.forget(other)
        replayed = engine.receipts.replay(context)
        assert len(replayed.missing) == 1
        assert "30 seconds" in replayed.text


def test_the_newer_statement_comes_first_even_if_the_older_one_matches_better() -> None:
    clock = FixedClock("2026-10-02T09:00Z")
    with open_engine(clock=clock) as engine:
        engine.add("fact", "The builds run on Jenkins")
        clock.tick(timedelta(days=45))
        engine.add("fact", "we switched the builds to Buildkite")
        context = engine.context("What do the builds run on, Jenkins?")
        newer = "- we switched the builds to Buildkite (newer: 2026-11-16)\n"
        assert newer + "- The builds run on Jenkins (older: 2026-10-02)\n" in context.text
        assert engine.receipts.replay(context).same


def test_of_several_versions_only_the_last_is_newer() -> None:
    clock = FixedClock("2026-10-02T09:00Z")
    with open_engine(clock=clock) as engine:
        for size in (20, 50, 80):
            engine.add("fact", f"The upload limit is {size} MB")
            clock.tick(timedelta(days=1))
        text = engine.context("What is the upload limit?").text
        order = [text.index(f"{size} MB ({age}: ") for size, age in ((80, "newer"), (50, "older"), (20, "older"))]
        assert order[0] == min(order)


def test_an_older_statement_that_is_stored_later_is_marked_as_older() -> None:
    with open_engine(clock=FixedClock("2026-10-02T09:00Z")) as engine:
        engine.add("fact", "The upload limit is 50 MB")
        engine.add("fact", "The upload limit is 20 MB", created="2026-01-05")
        text = engine.context("What is the upload limit?").text
        assert "20 MB (older: 2026-01-05)" in text
        assert "50 MB (newer: 2026-10-02)" in text


def test_a_clock_that_is_slow_does_not_bury_a_correction() -> None:
    clock = FixedClock("2026-10-02T09:00Z")
    with open_engine(clock=clock) as engine:
        keyed = {"subject": "uploads", "attribute": "limit"}
        engine.add("fact", "Uploads are limited to 20 MB", **keyed)
        engine.add("fact", "The session cache lives 30 seconds")
        clock.tick(timedelta(seconds=-2))
        added = engine.add("fact", "Uploads are limited to 50 MB", **keyed)
        engine.add("fact", "The session cache lives 300 seconds")
        assert added.action == "superseded older"
        clock.tick(timedelta(seconds=60))
        assert "50 MB" in engine.context("upload limit").text
        assert "20 MB" not in engine.context("upload limit").text
        assert "300 seconds (newer: " in engine.context("session cache").text


def test_a_value_with_a_time_of_its_own_still_has_its_place_in_time() -> None:
    with open_engine(clock=FixedClock("2026-10-02T09:00Z")) as engine:
        keyed = {"subject": "uploads", "attribute": "limit"}
        engine.add("fact", "Uploads are limited to 50 MB", **keyed)
        assert engine.add("fact", "Uploads are limited to 20 MB", **keyed, created="2026-01-05").action == "older"
        assert engine.add("fact", "Uploads are limited to 10 MB", **keyed, valid_from="2025-01-05").action == "older"


def test_messages_of_the_user_are_marked_and_those_of_others_are_not() -> None:
    with open_engine(clock=FixedClock("2026-10-02T09:00Z")) as engine:
        said = [
            ("user", "I live in Hamburg", "2026-08-01"),
            ("assistant", "You live in Hamburg, in the north", "2026-08-01"),
            ("user", "I now live in Munich, not in Hamburg", "2026-09-01"),
        ]
        for role, text, day in said:
            engine.scoped(session=day).remember([{"role": role, "content": text, "at": day}])
        context = engine.context("Where do I live?", profile="chat", session="new")
        assert "I now live in Munich, not in Hamburg (newer)" in context.text
        assert "I live in Hamburg (older)" in context.text
        assert "in the north (" not in context.text
        assert engine.receipts.replay(context).same


def test_facts_from_a_template_are_neither_linked_nor_marked() -> None:
    with open_engine() as engine:
        warnings = [engine.add("fact", f"Room {n} seats {n % 7 + 4} people").warnings for n in range(50)]
        assert not any(warnings)
        text = engine.context("How many people does room 12 seat?").text
        assert "newer" not in text
        assert "older" not in text
