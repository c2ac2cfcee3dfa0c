"""Ablation: a component is off during its run only, and its loss is reported against the whole system."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from bench.ablate import BASELINE_NAME, ablate, check_patterns, components, disable, effects
from bench.kit import load_suite

from foveate import testing
from foveate.errors import NotFound
from foveate.pipeline import profiles, relevance, selection
from foveate.text import dates
from foveate.types import Candidate

CASES = [
    {"id": "a", "question": "Which port does the gateway use?", "expected": ["port"]},
    {"id": "b", "question": "What car do the kids buy?", "expected": ["car"]},
]
RECORDS = [
    {"id": "port", "text": "The gateway listens on port 8123", "when": "2026-01-05"},
    {"id": "car", "text": "Her children purchased an automobile", "when": "2026-01-06"},
    {"id": "other", "text": "The printer is out of paper", "when": "2026-01-07"},
]
LOCOMO_WITH_CHAT = replace(load_suite("locomo"), profile="chat")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "cases.jsonl"
    path.write_text("".join(json.dumps({**case, "records": RECORDS}) + "\n" for case in CASES), "utf-8")
    return path


def test_every_part_of_a_profile_is_a_component() -> None:
    names = [one.name for one in components(LOCOMO_WITH_CHAT)]
    for name in ("feature recency", "relevance neighbour", "field text", "slot messages", "related words", "stage dates"):
        assert name in names
    assert "stage names vote" not in names
    assert "stage names vote" in [one.name for one in components(load_suite("swebench"))]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    "component", [one for one in components(load_suite("swebench")) if one.stage], ids=lambda one: one.name
)
def test_a_stage_is_off_inside_the_block_only(component) -> None:
    from importlib import import_module

    module, name, stand_in = component.stage
    real = getattr(import_module(module), name)

    def fails() -> None:
        with disable(component):
            assert getattr(import_module(module), name) is stand_in
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert getattr(import_module(module), name) is real


def test_a_relevance_component_is_one_coefficient_of_the_model() -> None:
    whole = relevance.model()
    (component,) = (one for one in components(LOCOMO_WITH_CHAT) if one.name == "relevance neighbour")
    with disable(component):
        without = relevance.model()
    assert whole["strength"]["neighbour"] > 0
    assert without == {**whole, "strength": {**whole["strength"], "neighbour": 0}}


def test_without_the_ladder_a_record_has_only_its_longest_level() -> None:
    with testing.engine() as engine:
        record = engine.add("fact", "Redis keeps sessions").record
    candidate = Candidate(record=record, slot="facts", source="search", token_counts={"full": 9, "summary": 5, "micro": 2})
    (component,) = (one for one in components(LOCOMO_WITH_CHAT) if one.name == "stage ladder")
    assert selection.levels_of(candidate, "passage") == ["summary", "micro"]
    with disable(component):
        assert selection.levels_of(candidate, "passage") == ["summary"]


def test_effects_are_the_losses_without_a_component(data: Path, tmp_path: Path) -> None:
    runs = ablate(
        load_suite("own"), data, tmp_path / "runs", patterns=["related *", "slot episodes", "stage dates"], budgets=[1000]
    )
    assert list(runs) == [BASELINE_NAME, "slot episodes", "related words", "stage dates"]
    found = {one.component: one for one in effects(runs) if one.metric == "recall"}
    assert found["related words"].difference == -0.5  # no word of the second question finds the automobile
    assert found["slot episodes"].difference == 0
    assert all(one.time_ratio > 0 for one in found.values())
    assert dates.question_terms.__name__ == "question_terms"
    assert selection.levels_of.__name__ == "levels_of"


def test_each_pattern_must_match_a_component_of_a_suite() -> None:
    check_patterns(["stage names vote", "feature *"], [LOCOMO_WITH_CHAT, load_suite("swebench")])
    with pytest.raises(NotFound, match=r"'relevance neigbour'.*relevance neighbour"):
        check_patterns(["feature *", "relevance neigbour"], [LOCOMO_WITH_CHAT])


def test_overrides_remove_every_component_of_a_profile() -> None:
    whole = profiles.resolve("chat")
    for component in components(LOCOMO_WITH_CHAT):
        kind, _, name = component.name.partition(" ")
        without = profiles.resolve("chat", call=component.overrides)
        if kind == "feature":
            assert whole.weights[name] > without.weights[name] == 0
        elif kind == "field":
            assert whole.fields[name] > without.fields[name] == 0
        elif kind == "slot":
            assert {slot.name for slot in whole.slots} - {slot.name for slot in without.slots} == {name}
        elif kind == "source":
            source, _, slot = name.partition(" in ")
            (left,) = (one for one in without.slots if one.name == slot)
            assert dict(left.extra_sources).get(source, 0) == 0
