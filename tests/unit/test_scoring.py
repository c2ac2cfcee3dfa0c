"""Features in 0..1, times the profile's weights."""

from __future__ import annotations

from dataclasses import replace
from math import exp

import pytest

from foveate.pipeline.profiles import resolve
from foveate.pipeline.scoring import features, score, weigh
from foveate.types import Candidate, Profile, Record, Scope, Signals, Slot
from worlds import DAY, HOUR, NOW

LAYERS = resolve("assistant", call={"slots": {"decisions": {"priority": 1.0}, "facts": {"priority": 0.6}}})


def record(**values: object) -> Record:
    plain = {"id": "r1", "kind": "decision", "scope": Scope("main"), "text": "t", "summary": "t", "micro": "t"}
    return Record(**{**plain, "created": NOW, **values})  # type: ignore[arg-type]


def scored(found: Record, slot: str = "decisions", relevance: float = 0.0, profile: Profile = LAYERS) -> Candidate:
    candidate = Candidate(record=found, slot=slot, source="search", features={"relevance": relevance})
    return score([candidate], profile, Signals(), NOW)[0]


def test_a_hand_computed_composite() -> None:
    # 0.5 * 0.8 + 0.15 * 1.0 + 0.15 * 0.5 + 0.10 * 1.2 + 0.05 * 1.1 + 0.05 * 0.85
    found = record(created=NOW - 30 * DAY, outcome="success", uses=10, confidence=0.85)
    assert scored(found, relevance=0.8).score == pytest.approx(0.8425)


def test_recency_is_one_half_after_the_half_life() -> None:
    slot = LAYERS.slots[4]
    assert features(record(created=NOW - 30 * DAY), slot, LAYERS.half_life_hours, NOW)["recency"] == pytest.approx(0.5)
    assert features(record(created=NOW - 60 * DAY), slot, LAYERS.half_life_hours, NOW)["recency"] == pytest.approx(0.25)
    assert features(record(created=NOW - 24 * HOUR), slot, 24, NOW)["recency"] == pytest.approx(0.5)


def test_004s_decay_constant_is_a_half_life_of_30_days_within_rounding() -> None:
    for days in (1, 30, 90):
        assert 2 ** (-days / 30) == pytest.approx(exp(-0.023 * days), rel=0.01)


def test_what_was_written_in_the_future_is_new_and_no_newer() -> None:
    assert features(record(created=NOW + DAY), LAYERS.slots[4], 720, NOW)["recency"] == 1.0


@pytest.mark.parametrize(
    ("outcome", "boost"), [("success", 1.2), ("partial", 1.0), ("failure", 0.8), ("pending", 0.9), (None, 1.0)]
)
def test_outcomes_keep_their_proportions(outcome: str | None, boost: float) -> None:
    assert features(record(outcome=outcome), LAYERS.slots[4], 720, NOW)["outcome"] == pytest.approx(boost / 1.2)


@pytest.mark.parametrize(("uses", "boost"), [(0, 1.0), (1, 1.0), (10, 1.1), (100, 1.2), (10**5, 1.5), (10**9, 1.5)])
def test_usage_grows_slowly_and_ends(uses: int, boost: float) -> None:
    assert features(record(uses=uses), LAYERS.slots[4], 720, NOW)["usage"] == pytest.approx(boost / 1.5)


def test_every_feature_is_between_0_and_1() -> None:
    for outcome in ("success", "failure", None):
        for trust in ("tool", "user"):
            found = features(record(outcome=outcome, uses=10**6, trust=trust), LAYERS.slots[4], 720, NOW)
            assert all(0.0 <= value <= 1.0 for value in found.values())


def test_an_old_answer_beats_new_small_talk() -> None:
    old = scored(record(created=NOW - 180 * DAY, outcome="success"), relevance=0.8)
    chat = scored(record(created=NOW - DAY), relevance=0.1)
    assert old.score > chat.score


def test_a_named_entity_is_a_feature() -> None:
    found = Candidate(record=record(subject="Postgres"), slot="facts", source="search")
    about = score([found], LAYERS, Signals(entities={"entity_1": "postgres"}), NOW)[0]
    assert about.features["entity"] == 1.0
    assert score([found], LAYERS, Signals(entities={"entity_1": "Redis"}), NOW)[0].features["entity"] == 0.0
    assert "entity" not in score([found], LAYERS, Signals(), NOW)[0].features


def test_the_keyword_feature_is_the_share_of_words_in_the_tags() -> None:
    profile = replace(LAYERS, weights={"keyword": 1.0})
    found = Candidate(record=record(tags=("Cache", "redis")), slot="facts", source="search")
    assert score([found], profile, Signals(keywords=("cache", "region")), NOW)[0].score == 0.5


def test_what_a_source_says_of_a_feature_holds() -> None:
    found = Candidate(record=record(), slot="facts", source="mine", features={"relevance": 0.7, "recency": 0.0})
    assert score([found], LAYERS, Signals(), NOW)[0].features["recency"] == 0.0


def test_candidates_stay_as_they_were() -> None:
    found = Candidate(record=record(), slot="facts", source="search", features={"relevance": 0.7})
    score([found], LAYERS, Signals(), NOW)
    assert (found.score, dict(found.features)) == (0.0, {"relevance": 0.7})


def test_a_weight_without_its_feature_counts_nothing() -> None:
    assert weigh({"relevance": 0.5}, {"relevance": 0.5, "recency": 0.5}) == 0.25


def test_the_type_feature_is_the_slots_priority() -> None:
    assert features(record(), Slot(name="s", source="search", priority=0.8), 720, NOW)["type"] == 0.8
