"""Refreshing: a context is computed anew for a reason that it names, and otherwise left alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import foveate
from foveate.pipeline.profiles import resolve
from foveate.pipeline.selection import value_per_token
from foveate.receipts.codec import notes_to_json
from foveate.receipts.refresh import is_decision, term_coverage
from foveate.testing import FixedClock
from worlds import open_engine

QUESTION = "How does Redis evict cached sessions?"


@pytest.fixture
def engine() -> Iterator[foveate.Engine]:
    with open_engine(clock=FixedClock(step=1000)) as engine:
        engine.add("censor", "Never restart Redis by hand", data={"action": "block"})
        engine.add("fact", "Redis evicts cached sessions with the LRU policy")
        engine.add("fact", "Kafka partitions are rebalanced by the coordinator of the consumer group")
        engine.add("note", "Lunch is served at noon in the canteen")
        yield engine


def plain(engine: foveate.Engine, said: str, previous: foveate.Context | str, **options: object) -> object:
    return engine.refresh(previous, said, frame="none", **options)


def first(engine: foveate.Engine, **options: object) -> foveate.Context:
    return engine.context(QUESTION, frame="none", **options)


def test_the_first_turn_computes_a_context(engine: foveate.Engine) -> None:
    found = engine.refresh(None, QUESTION)
    assert found
    assert found.reason == "first"
    assert found.context is not None
    assert "LRU policy" in found.context.text


def test_a_context_that_holds_what_is_said_is_left_alone(engine: foveate.Engine) -> None:
    before = first(engine)
    found = plain(engine, "which policy does Redis use for sessions?", before)
    assert not found
    assert (found.context, found.reason) == (None, "")
    assert found.match >= 0.5


def test_the_same_question_again_needs_nothing_new(engine: foveate.Engine) -> None:
    assert not plain(engine, QUESTION, first(engine))


def test_words_that_no_record_holds_bring_no_refresh(engine: foveate.Engine) -> None:
    """Looking for them again could find nothing."""
    found = plain(engine, "thanks, that is great, please continue", first(engine))
    assert not found
    assert found.match == 1.0


def test_what_the_context_does_not_hold_is_searched_for(engine: foveate.Engine) -> None:
    """004-104, 004-110"""
    before = first(engine)
    assert "Kafka" not in before.text
    found = plain(engine, "why are Kafka partitions rebalanced?", before)
    assert found.reason == "new information"
    assert found.match < 0.5
    assert "Kafka partitions" in found.context.text
    assert "%" in found.detail


def test_rare_words_weigh_more_than_common_ones() -> None:
    rarity = {"service": 0.2, "run": 0.2, "kafka": 3.0}
    assert term_coverage(["service", "run", "kafka"], ["service", "run"], rarity) < 0.5
    assert term_coverage(["service", "run", "kafka"], ["kafka"], rarity) > 0.8
    assert term_coverage(["unheard"], [], rarity) == 1.0


def test_another_profile_is_another_context(engine: foveate.Engine) -> None:
    found = plain(engine, QUESTION, first(engine), profile="chat")
    assert found.reason == "frame"
    assert found.context.profile == "chat"


def test_a_frame_that_switches_rebuilds(engine: foveate.Engine) -> None:
    """004-103, 004-109"""
    before = engine.context(QUESTION, frame="question", profile="assistant")
    assert before.signals.frame == "question"
    found = engine.refresh(before, QUESTION, frame="debug")
    assert found.reason == "frame"
    assert "'question'" in found.detail
    assert found.context.signals.frame == "debug"


def test_turning_from_talk_to_action_is_a_decision_point(engine: foveate.Engine) -> None:
    """004-105"""
    before = first(engine)
    found = plain(engine, "Switch Redis sessions to another policy", before)
    assert found.reason == "decision"
    again = plain(engine, "Change the LRU policy of Redis sessions", found.context)
    assert not again, "a series of steps is one decision"
    assert plain(engine, QUESTION, again.context or found.context, acting=True).reason == "decision"


@pytest.mark.parametrize("said", ["Let us decide on the store", "Should we use Kafka?", "Add a cache", "go ahead"])
def test_words_that_decide(said: str) -> None:
    assert is_decision(said, "action" if said == "Add a cache" else "question")


def test_words_that_do_not_decide() -> None:
    assert not is_decision("How does the cache work?", "explain")


def test_token_pressure_evicts_the_least_relevant_and_keeps_the_rules(engine: foveate.Engine) -> None:
    """004-106"""
    for n in range(30):
        engine.add(
            "fact", f"Redis sessions of tenant {n} are cached in pool {n} of the Redis cluster, evicted after {n} minutes"
        )
    before = first(engine, budget=1500)
    assert not plain(engine, QUESTION, before, window=100_000, conversation_tokens=2000)
    found = plain(engine, QUESTION, before, window=2000, conversation_tokens=1300)
    assert found.reason == "pressure"
    assert found.context.tokens <= 0.9 * 2000 - 1300
    assert "Never restart Redis by hand" in found.context.text
    kept = {item.id for item in found.context.items}
    assert kept < {item.id for item in before.items}
    default = resolve("default")
    (facts,) = [slot for slot in default.slots if slot.name == "facts"]
    lost = [omission.candidate for omission in found.context.left_out if omission.reason == "budget"]
    shown = [item.candidate for item in found.context.items if item.section == "facts"]
    most, least = (
        choose(value_per_token(each, facts, default.weights["relevance"]) for each in group)
        for choose, group in ((max, lost), (min, shown))
    )
    assert least >= most > 0


def test_rules_stay_where_nothing_else_has_room(engine: foveate.Engine) -> None:
    before = first(engine, budget=1500)
    found = plain(engine, QUESTION, before, conversation_tokens=5000)
    assert found.reason == "pressure"
    assert "Never restart Redis by hand" in found.context.text


def test_a_receipt_id_judges_as_its_context_does(engine: foveate.Engine) -> None:
    """004-108: the previous receipt is all that is needed."""
    before = first(engine, budget=900)
    for said in ("which policy for sessions?", "why are Kafka partitions rebalanced?"):
        by_context, by_id = plain(engine, said, before), plain(engine, said, before.id)
        assert (by_context.reason, by_context.match) == (by_id.reason, by_id.match)
    assert plain(engine, "why are Kafka partitions rebalanced?", before.id).context.budget.total == 900


def test_a_refresh_is_the_context_that_a_plain_compute_gives(engine: foveate.Engine) -> None:
    before = first(engine)
    said = "why are Kafka partitions rebalanced?"
    at = "2026-01-06T00:00Z"
    found = plain(engine, said, before, now=at)
    assert found.context.text == engine.context(said, frame="none", now=at).text


def test_turns_and_reasons_are_noted_on_the_receipts(engine: foveate.Engine) -> None:
    before = engine.refresh(None, QUESTION, frame="none").context
    plain(engine, "which policy for sessions?", before)
    new = plain(engine, "why are Kafka partitions rebalanced?", before).context
    assert notes_to_json(engine.receipts.get(before).notes) == {"turns": 2}
    noted = {"turns": 1, "refresh": {"reason": "new information", "previous": before.id}}
    assert notes_to_json(engine.receipts.get(new).notes) == noted


class Topics:
    """An embedder that knows one subject from another, whatever the words."""

    dim, fingerprint = 2, "topics:2"

    def query(self, text: str, /) -> list[float]:
        return [1.0, 0.0] if re.search("evict|Redis|cache|memory", text) else [0.0, 1.0]

    def embed(self, texts: Sequence[str], /) -> list[list[float]]:
        return [self.query(text) for text in texts]


@pytest.mark.parametrize(("options", "refreshed"), [({}, True), ({"embedder": Topics()}, False)])
def test_near_questions_match_by_their_vectors(options: dict[str, Any], refreshed: bool) -> None:
    with open_engine(**options) as engine:
        engine.add("fact", "Redis evicts cached sessions with the LRU policy")
        engine.add("fact", "Lunch: a full memory of the canteen", tags=["food"])
        before = engine.context(QUESTION, frame="none", budget=60)
        found = engine.refresh(before, "what happens on full memory?", frame="none")
        assert bool(found) is refreshed, found


def test_pressure_is_a_share(engine: foveate.Engine) -> None:
    with pytest.raises(foveate.InputError, match="above 0 and at most 1"):
        plain(engine, QUESTION, first(engine), pressure=1.5)


# --- a new event, a record in full -----------------------------------------------------------------------------------


def test_an_update_is_a_recompute_with_the_event_first(engine: foveate.Engine) -> None:
    """003-114, 003-115"""
    engine.add("event", "Deployed version 12")
    before = engine.context(QUESTION, budget=1200)
    refreshed = engine.refresh(before, event="Redis was restarted by the watchdog")
    assert refreshed.reason == "event"
    after = refreshed.context
    assert after is not None
    again = engine.context(QUESTION, budget=1200)
    assert after.text == again.text
    assert after.tokens == again.tokens <= 1200
    recent = next(section for section in after.sections if section.name == "recent")
    newest = recent.items[-1].candidate  # events are in order of time
    assert newest.record.text == "Redis was restarted by the watchdog"
    assert newest.features["relevance"] == max(item.candidate.features["relevance"] for item in recent.items)


def test_expanding_gives_the_whole_record_to_the_user_and_counts_as_a_use(engine: foveate.Engine) -> None:
    """004-112, 004-113"""
    text = "The import stopped. " + "Each row was kept twice, as text and parsed. " * 40 + "We read it in batches now."
    record = engine.add("episode", text).record
    message = engine.expand(record.id)
    assert message["role"] == "user"
    assert text.strip() in message["content"]
    after = engine.get(record.id)
    assert (after.uses, after.version) == (record.uses + 1, record.version)
    assert engine.history(record.id) == []
    with pytest.raises(foveate.NotFound):
        engine.expand("fact_unknown")


def test_a_receipt_opens_no_wall(tmp_path: Path) -> None:
    with foveate.open(tmp_path, session="one") as engine:
        engine.add("scratch", "Redis secret of session one")
        context = engine.context(QUESTION)
    with foveate.open(tmp_path, session="two") as engine:
        found = engine.refresh(context.id, "what is the Redis secret?", acting=True)
        assert engine.receipts.get(found.context).request.scope.session == "two"


def test_a_context_that_fills_its_own_budget_is_no_pressure_by_itself() -> None:
    with open_engine() as engine:
        for n in range(40):
            engine.add("fact", f"Redis evicts sessions of class {n} after {n} minutes, oldest first")
        first = engine.context("How does Redis evict sessions?", budget=400)
        assert first.tokens > 0.9 * 400
        assert not engine.refresh(first, "And how does Redis evict sessions?")
        assert engine.refresh(first, "And how does Redis evict sessions?", window=400).reason == "pressure"


FOLLOW_UPS = ["thanks", "ok, do it", "yes please", "go on", "and the second one?", "Thanks, that helps a lot!", "explain it"]


@pytest.mark.parametrize("said", FOLLOW_UPS)
@pytest.mark.parametrize("profile", ["assistant", "default", "chat"])
def test_a_follow_up_keeps_the_context(engine: foveate.Engine, said: str, profile: str) -> None:
    engine.add("note", "Thanks to the second one who can explain it, a go is a yes and please do help")
    before = engine.context(QUESTION, profile=profile)
    assert "LRU policy" in before.text
    assert not engine.refresh(before, said)


@pytest.mark.parametrize("said", ["go ahead", "ok, do it"])
def test_a_context_that_is_computed_for_a_follow_up_has_the_topic_of_the_query_before(
    engine: foveate.Engine, said: str
) -> None:
    before = engine.context(QUESTION, profile="assistant")
    found = engine.refresh(before, said, acting=True)
    assert found.reason == "decision"
    assert found.context is not None
    assert "LRU policy" in found.context.text
    assert found.context.receipt.signals.follows == (before.id,)


def test_a_follow_up_with_a_topic_of_its_own_is_searched_for(engine: foveate.Engine) -> None:
    assert plain(engine, "thanks, and why are Kafka partitions rebalanced?", first(engine)).reason == "new information"
