"""Deltas: a window is told what it lacks, once, within the limits of every host."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import foveate
from foveate import testing
from foveate.clock import new_id
from foveate.integrations.hooks.delivery import MAX_CHARS, MAX_TOKENS, deliver, delivery_stats, forget_window
from foveate.integrations.importers.rows import CONTEXT_BEGIN, CONTEXT_END
from foveate.testing import FixedClock
from foveate.text import tokens
from records import add_record
from worlds import open_engine

RULE = "Run make test before a commit"
PORT = {"subject": "redis", "attribute": "port"}


def known(engine: foveate.Engine) -> dict[str, str]:
    """A rule, an identity, and two things about Redis."""
    rows = (
        ("identity", "You work on the billing service", {}),
        ("instruction", RULE, {}),
        ("fact", "Redis runs on port 6379", PORT),
        ("gotcha", "Redis is flushed at midnight", {"severity": "high"}),
    )
    return {kind: add_record(engine, kind, text, **values).record.id for kind, text, values in rows}


def test_the_start_holds_what_stands_and_a_question_adds_only_what_is_about_it() -> None:
    with open_engine() as engine:
        known(engine)
        start = deliver(engine, None, session="s", is_new_window=True)
        asked = deliver(engine, "Which port has Redis?", session="s")
        again = deliver(engine, "And which port was that?", session="s")
    assert RULE in start.text
    assert "billing" in start.text
    assert "6379" not in start.text
    assert "6379" in asked.text
    assert RULE not in asked.text
    assert (again.text, again.added, bool(again)) == ("", (), False)


def test_the_first_delivery_of_a_window_without_a_start_is_whole() -> None:
    with open_engine() as engine:
        known(engine)
        first = deliver(engine, "Which port has Redis?", session="s")
        assert first.text == CONTEXT_BEGIN + first.context.text + CONTEXT_END
        assert set(first.added) == {item.id for item in first.context.items}


def test_a_new_value_comes_with_the_old_one_withdrawn() -> None:
    with open_engine() as engine:
        ids = known(engine)
        deliver(engine, "Which port has Redis?", session="s")
        new = add_record(engine, "fact", "Redis runs on port 6380", **PORT).record.id
        found = deliver(engine, "Something else entirely, about invoices", session="s")
        assert (found.added, found.removed) == ((), (ids["fact"],))
        assert "## No longer holds\n- Redis runs on port 6379\n" in found.text
        found = deliver(engine, "Which port has Redis?", session="s")
        assert (found.added, found.removed) == ((new,), ())
        assert "6380" in found.text


def test_a_value_with_a_successor_that_is_dated_ahead_is_withdrawn_only_when_that_one_replaces_it() -> None:
    clock = FixedClock()
    with testing.engine(clock=clock, ids=new_id) as engine:
        old = engine.add("fact", "Redis runs on port 6379", **PORT).record
        deliver(engine, "Which port has Redis?", session="s")
        new = engine.add("fact", "Redis runs on port 6380", valid_from=clock.now + 3_600_000, **PORT).record
        assert engine.get(old.id).status == "superseded"
        for query in ("Something else entirely, about invoices", "Which port has Redis?"):
            found = deliver(engine, query, session="s")
            assert (found.added, found.removed) == ((), ())
        clock.tick(3_600_000)
        assert deliver(engine, "Something else entirely, about invoices", session="s").removed == (old.id,)
        assert deliver(engine, "Which port has Redis?", session="s").added == (new.id,)


def test_a_newer_statement_that_replaces_nothing_withdraws_nothing() -> None:
    with open_engine() as engine:
        known(engine)
        deliver(engine, "Which port has Redis?", session="s")
        add_record(engine, "fact", "Redis has 6380 as the port of its replica", subject="redis", attribute="replica port")
        add_record(engine, "gotcha", "Redis is flushed at midnight of the server's time zone")
        assert deliver(engine, "Something else entirely, about invoices", session="s").removed == ()


def test_what_is_edited_is_told_again_even_where_nobody_asks_for_it() -> None:
    with open_engine() as engine:
        ids = known(engine)
        assert ids["gotcha"] in deliver(engine, "When is Redis flushed?", session="s").added
        engine.edit(ids["gotcha"], text="Redis is flushed at noon")
        found = deliver(engine, "Something else entirely, about invoices", session="s")
        assert found.changed == (ids["gotcha"],)
        assert "## Warnings (changed)\n- ⚠️ **high**: Redis is flushed at noon\n" in found.text


def test_what_was_forgotten_is_withdrawn_without_its_words() -> None:
    with open_engine() as engine:
        ids = known(engine)
        deliver(engine, "When is Redis flushed?", session="s")
        engine.forget(ids["gotcha"])
        found = deliver(engine, "When is Redis flushed?", session="s")
        assert found.removed == (ids["gotcha"],)
        assert "something shown before was deleted (gotcha)" in found.text
        assert "midnight" not in found.text


def test_what_has_expired_since_is_withdrawn(tmp_path: Path) -> None:
    clock = FixedClock()
    with testing.engine(tmp_path, personal=False, clock=clock, ids=new_id) as engine:
        fact = engine.add("fact", "Redis is read-only during the migration", valid_to=clock.now + 3_600_000).record
        other = engine.add("fact", "Redis is restarted at night", valid_to=clock.now + 9_000_000).record
        assert set(deliver(engine, "What about Redis?", session="s").added) == {fact.id, other.id}
        clock.now += 3_600_000
        found = deliver(engine, "Something else entirely, about invoices", session="s")
        assert (found.added, found.changed, found.removed) == ((), (), (fact.id,))
        assert not deliver(engine, "Something else entirely, about invoices", session="s")


def test_a_rule_that_is_postponed_is_withdrawn_until_it_is_valid_again() -> None:
    clock = FixedClock()
    with testing.engine(clock=clock, ids=new_id) as engine:
        rule = engine.add("instruction", RULE).record
        assert deliver(engine, None, session="s").added == (rule.id,)
        engine.edit(rule.id, valid_from=clock.now + 3_600_000)
        assert deliver(engine, None, session="s").removed == (rule.id,)
        clock.tick(3_600_000)
        assert deliver(engine, None, session="s").added == (rule.id,)


def test_a_longer_line_replaces_a_shorter_one_and_a_shorter_one_is_not_sent_again() -> None:
    sentences = (f"Shard {n} of Redis stores the carts of region {n} and is restarted at night." for n in range(12))
    with open_engine() as engine:
        id = engine.add("decision", f"Redis runs on port 6380. {' '.join(sentences)}").record.id

        def send(budget: int, session: str) -> tuple[tuple[str, ...], tuple[str, ...], str]:
            found = deliver(engine, "Which port has Redis?", session=session, budget=budget)
            return found.added, found.changed, found.context.items[0].level

        assert send(60, "short first") == ((id,), (), "micro")
        assert send(800, "short first") == ((), (id,), "passage")
        assert send(60, "short first") == ((), (), "micro")
        assert send(800, "short first") == ((), (), "passage")


def test_another_passage_of_the_same_record_is_sent_and_the_same_one_is_not() -> None:
    text = "Redis runs on port 6380. {} The cache is restarted by the on-call engineer on the first Monday. {}"
    filler = " ".join(f"Region {n} has a shard of its own, with carts and sessions of its customers." for n in range(12))
    with open_engine() as engine:
        id = engine.add("decision", text.format(filler, filler)).record.id
        first = deliver(engine, "Which port does Redis run on?", session="s")
        assert (first.added, "port 6380" in first.text, "first Monday" in first.text) == ((id,), True, False)
        assert not deliver(engine, "Which port does Redis run on?", session="s")
        second = deliver(engine, "Which on-call engineer restarts the cache on Monday?", session="s")
        assert (second.changed, "first Monday" in second.text) == ((id,), True)


def test_the_messages_of_the_window_are_not_sent_back_to_it() -> None:
    with open_engine() as engine:
        engine.remember("Which port has our staging Redis?", session="s")
        assert not deliver(engine, "Which port has our staging Redis?", session="s").text
        engine.remember("Our staging Redis has port 6390", session="other")
        assert "6390" in deliver(engine, "Which port has our staging Redis?", session="s").text


def test_a_retired_rule_is_withdrawn_and_no_other_is_repeated() -> None:
    with open_engine() as engine:
        ids = known(engine)
        other = engine.add("instruction", "Answer in English").record
        deliver(engine, None, session="s", is_new_window=True)
        engine.edit(ids["instruction"], status="retired")
        found = deliver(engine, "Which port has Redis?", session="s")
        assert ids["instruction"] in found.removed
        assert other.text not in found.text


def test_after_a_compaction_everything_is_new_and_other_windows_are_not_touched() -> None:
    with open_engine() as engine:
        known(engine)
        for window in ("s", "s/agent-1"):
            deliver(engine, "Which port has Redis?", session="s", window=window)
        whole = deliver(engine, "Which port has Redis?", session="s", is_new_window=True)
        assert RULE in whole.text
        assert not deliver(engine, "Which port has Redis?", session="s", window="s/agent-1")
        assert delivery_stats(engine)["windows"] == 2
        assert forget_window(engine, "s/agent-1") == 1
        assert delivery_stats(engine) == {"windows": 1, "deliveries": 1, "items": len(whole.added)}


def test_the_ledger_is_never_found_nor_shown() -> None:
    with open_engine() as engine:
        known(engine)
        deliver(engine, "Which port has Redis?", session="s")
        assert delivery_stats(engine)["deliveries"] == 1
        for words in ("delivery", "deliveries shown", "…", "redis"):
            assert all(hit.record.kind != "delivery" for hit in engine.search(words))
        for profile in ("default", "chat", "coding"):
            context = engine.context("delivery of Redis", session="s", profile=profile)
            assert all(item.kind != "delivery" for item in context.items)


def test_a_window_that_nobody_closed_is_forgotten_after_a_month(tmp_path: Path) -> None:
    clock = FixedClock()
    with testing.engine(tmp_path, personal=False, clock=clock, ids=new_id) as engine:
        known(engine)
        deliver(engine, None, session="old", is_new_window=True)
        clock.now += 31 * 86_400_000
        deliver(engine, None, session="new", is_new_window=True)
        assert delivery_stats(engine)["windows"] == 1


@pytest.mark.parametrize("text", ["word " * 60, "é" * 300, "日本語のテスト" * 40, "x" * 900, "a.b/c_d-e " * 40])
def test_no_delivery_is_over_the_limits_nor_cut_within_a_line(text: str) -> None:
    with open_engine() as engine:
        for n in range(30):
            engine.add("gotcha", f"Redis {n}: {text}", data={"severity": "high"})
            engine.add("fact", f"Redis fact {n}: {text}")
        for n in range(12):
            engine.add("instruction", f"Rule {n}: {text[:150]}")
        for turn in range(3):
            sent = deliver(engine, f"Redis fact {turn * 9}", session="s").text
            assert len(sent) <= MAX_CHARS
            assert tokens.count(sent, "o200k") <= MAX_TOKENS
            assert not sent or (sent.startswith(CONTEXT_BEGIN) and sent.endswith(f"\n{CONTEXT_END}"))


def test_a_text_within_its_tokens_and_over_its_characters_is_computed_into_less_room() -> None:
    with open_engine() as engine:
        for n in range(40):
            engine.add("fact", f"Redis fact {n} " + "internationalization " * 30)
        roomy = deliver(engine, "Redis fact", session="a", max_chars=100_000)
        tight = deliver(engine, "Redis fact", session="b", max_chars=3_000)
        assert len(roomy.text) > 3_000 >= len(tight.text) > 1_000
        assert tight.text == CONTEXT_BEGIN + tight.context.text + CONTEXT_END


def test_what_did_not_fit_is_news_the_next_time() -> None:
    with open_engine() as engine:
        engine.add("instruction", RULE)
        deliver(engine, None, session="s", is_new_window=True)
        for n in range(4):
            engine.add("instruction", f"Rule {n}: " + "keep it short and plain " * 4)
        told = [deliver(engine, "Redis", session="s", max_chars=320) for _ in range(4)]
        assert [len(each.added) for each in told] == [2, 2, 0, 0]
        assert len({id for each in told for id in each.added}) == 4


def test_two_hundred_turns_cost_a_fraction_of_saying_everything_again() -> None:
    topics = [f"{word} {n}" for n in range(4) for word in ("redis", "invoice", "login", "deploy", "cache")]
    with open_engine() as engine:
        known(engine)
        for topic in topics:
            engine.add(
                "gotcha", f"Never touch {topic} on a Friday, it takes hours to come back", data={"severity": "medium"}
            )
        sent = again = 0
        for turn in range(200):
            if turn % 50 == 25:
                engine.add("fact", f"As of turn {turn}, {topics[turn % 7]} has moved")
            query = f"What about {topics[turn * 7 % len(topics)]}?"
            delivered = deliver(engine, query, session="s", is_new_window=turn == 100)
            sent += len(delivered.text)
            again += len(delivered.context.text)
    assert again > 15 * sent
    assert sent > 0


def test_what_another_hook_tells_in_the_meantime_is_not_taken_for_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    with open_engine() as engine:
        ids = known(engine)
        deliver(engine, None, session="s", is_new_window=True)
        write = engine.store.data.store.write

        def later(scope: foveate.Scope) -> Any:
            monkeypatch.setattr(engine.store.data.store, "write", write)
            deliver(engine, "Which port has Redis?", session="s")  # between this one's read and its write
            return write(scope)

        monkeypatch.setattr(engine.store.data.store, "write", later)
        found = deliver(engine, "When was the invoice sent?", session="s")
        assert (found.text, found.removed) == ("", ())
        assert ids["fact"] not in deliver(engine, "Which port has Redis?", session="s").added


PROCESS = """
import sys, foveate
from foveate.integrations.hooks.delivery import deliver
from foveate.testing import FixedClock
with foveate.open(sys.argv[1], personal=False) as engine:
    for turn in range(6):
        found = deliver(engine, f"Which port has Redis, {turn}?", session="s")
        print(*found.added, *found.changed, sep="\\n")
"""


def test_two_processes_of_one_session_tell_each_thing_once(tmp_path: Path) -> None:
    with foveate.open(tmp_path, personal=False) as engine:
        known(engine)
        for turn in range(6):
            engine.add("fact", f"Redis has been asked for its port {turn} times")
    running = [
        subprocess.Popen([sys.executable, "-c", PROCESS, str(tmp_path)], stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    told = [id for process in running for id in process.communicate()[0].split()]
    assert [process.returncode for process in running] == [0, 0, 0]
    assert len(told) == len(set(told)) > 4


def test_what_a_tool_said_is_quoted_in_the_first_delivery_in_a_delta_and_when_it_is_withdrawn() -> None:
    with open_engine() as engine:
        fact = engine.add("fact", "Redis listens on 6379", trust="tool", subject="redis", attribute="port").record
        opening = f"<{deliver(engine, 'Which port has Redis?', session='s').context.tag} note="
        first = deliver(engine, "Which port has Redis?", session="s", is_new_window=True).text
        engine.add("gotcha", "Redis refuses more than ten clients", trust="tool")
        delta = deliver(engine, "How many clients may Redis have?", session="s").text
        engine.edit(fact.id, status="retired")
        gone = deliver(engine, "Something else entirely, about invoices", session="s").text
    for text, words in ((first, "6379"), (delta, "ten clients"), (gone, "6379")):
        assert text.index(opening) < text.index(words) < text.index(f"</{opening[1:].split()[0]}>")
