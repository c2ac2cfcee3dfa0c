"""A follow-up such as "ok, do it" takes its topic from the messages before it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import foveate
from foveate.pipeline.follow_up import TOPIC_WEIGHT, is_follow_up
from foveate.testing import FixedClock
from worlds import open_engine

REDIS = "Redis evicts cached sessions with the LRU policy"


@pytest.fixture
def engine() -> Iterator[foveate.Engine]:
    with open_engine(clock=FixedClock(step=1000)) as engine:
        engine.add("fact", REDIS)
        engine.add("fact", "Kafka partitions are rebalanced by the coordinator of the consumer group")
        engine.add("note", "Thanks to Ann, lunch is at noon")
        yield engine


def say(engine: foveate.Engine, session: str, *texts: str) -> None:
    roles = ("user", "assistant")
    engine.scoped(session=session).remember([{"role": roles[n % 2], "content": text} for n, text in enumerate(texts)])


@pytest.mark.parametrize(
    "query",
    ["thanks", "ok, do it", "yes please", "go on", "and the second one?", "sounds good, go ahead", "why?", "deploy it now",
     "Where does she live?", "and in May?", "tell me more", "perfect, thank you so much", "never mind", "no, the other one"],
)  # fmt: skip
def test_a_query_without_a_topic_is_a_follow_up(query: str) -> None:
    assert is_follow_up(query)


@pytest.mark.parametrize(
    "query",
    ["What is my name?", "Which port?", "What is this project?", "run the tests", "Who is Anna?", "What happened in May?",
     "thanks, now fix the login form", "Is it raining in Lyon?", "pytest -k login"],
)  # fmt: skip
def test_a_query_with_a_topic_is_none(query: str) -> None:
    assert not is_follow_up(query)


@pytest.mark.parametrize("query", ["thanks", "ok, do it", "and the second one?"])
def test_a_follow_up_finds_what_the_messages_before_it_are_about(engine: foveate.Engine, query: str) -> None:
    say(engine, "s", "How does Redis evict cached sessions?", "Sure, I will look", "ok thanks", "You are welcome")
    context = engine.context(query, session="s")
    assert REDIS in context.text
    assert "Kafka" not in context.text


def test_a_follow_up_without_a_session_or_in_a_new_one_finds_nothing(engine: foveate.Engine) -> None:
    say(engine, "s", "How does Redis evict cached sessions?")
    assert "LRU" not in engine.context("ok, do it").text
    assert not engine.context("ok, do it", session="other").receipt.signals.follows


def test_a_query_with_a_topic_takes_no_other(engine: foveate.Engine) -> None:
    say(engine, "s", "How does Redis evict cached sessions?")
    context = engine.context("Who rebalances Kafka partitions?", session="s")
    assert not context.receipt.signals.follows
    assert "redi" not in context.receipt.signals.terms


def test_the_output_of_a_tool_is_no_topic(engine: foveate.Engine) -> None:
    with engine.scoped(session="s") as scoped:
        scoped.remember([{"role": "tool", "name": "fetch", "content": "Kafka partitions are rebalanced"}])
        assert not scoped.context("go on").receipt.signals.follows


def test_the_receipt_names_the_messages_and_has_none_of_their_words(engine: foveate.Engine) -> None:
    say(engine, "s", "How does Redis evict cached sessions?")
    context = engine.context("ok, do it", session="s")
    assert TOPIC_WEIGHT in context.run.signals.terms.values()
    receipt = engine.receipts.get(context.id)
    (id,) = receipt.signals.follows
    assert engine.get(id).text == "How does Redis evict cached sessions?"
    assert "redi" not in receipt.signals.terms
    assert id in receipt.debug()
    engine.forget(id)
    assert not engine.receipts.get(context.id).signals.follows


def test_a_replay_is_the_same_although_the_conversation_went_on(engine: foveate.Engine) -> None:
    say(engine, "s", "How does Redis evict cached sessions?")
    context = engine.context("ok, do it", session="s")
    say(engine, "s", "Who rebalances Kafka partitions?")
    assert engine.receipts.replay(context.id).text == context.text
