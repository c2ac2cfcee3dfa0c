"""Ablation: what is switched off is off while it lasts, and its loss is reported against the whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from foveate.errors import NotFound
from foveate.eval.ablate import WHOLE, ablate, check, effects, off, parts
from foveate.eval.datasets import suite
from foveate.pipeline import profiles, selection
from foveate.text import dates

CASES = [
    {"id": "a", "question": "Which port does the gateway use?", "wanted": ["port"]},
    {"id": "b", "question": "What do the kids play?", "wanted": ["chess"]},
]
RECORDS = [
    {"id": "port", "text": "The gateway listens on port 8123", "when": "2026-01-05"},
    {"id": "chess", "text": "Her daughter joined the chess club", "when": "2026-01-06"},
    {"id": "other", "text": "The printer is out of paper", "when": "2026-01-07"},
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "cases.jsonl"
    path.write_text("".join(json.dumps({**case, "records": RECORDS}) + "\n" for case in CASES), "utf-8")
    return path


def test_everything_in_a_profile_can_be_switched_off() -> None:
    names = [part.name for part in parts(suite("locomo"))]
    for name in ("feature neighbour", "field text", "slot memories", "related words", "stage dates"):
        assert name in names
    assert "stage names vote" not in names
    assert "stage names vote" in [part.name for part in parts(suite("swebench"))]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("part", [part for part in parts(suite("swebench")) if part.stage], ids=lambda part: part.name)
def test_a_stage_is_off_while_it_lasts_and_back_afterwards(part) -> None:
    from importlib import import_module

    module, name, stand_in = part.stage
    real = getattr(import_module(module), name)

    def fails() -> None:
        with off(part):
            assert getattr(import_module(module), name) is stand_in
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert getattr(import_module(module), name) is real


def test_what_is_lost_without_a_part(data: Path, tmp_path: Path) -> None:
    runs = ablate(suite("own"), data, tmp_path / "runs", only=["related *", "slot episodes", "stage dates"], budgets=[1000])
    assert list(runs) == [WHOLE, "slot episodes", "related words", "stage dates"]
    found = {one.part: one for one in effects(runs) if one.measure == "fraction"}
    assert found["related words"].difference == -0.5  # the daughter is not found by the word `kids` any more
    assert found["slot episodes"].difference == 0
    assert all(one.ms > 0 for one in found.values())
    assert dates.question_terms.__name__ == "question_terms"
    assert selection.ladder("full") == ("full", "summary", "micro")


def test_each_pattern_must_fit_a_part_of_one_of_the_suites() -> None:
    check(["stage names vote", "feature *"], [suite("locomo"), suite("swebench")])
    with pytest.raises(NotFound, match=r"'feature neigbour'.*feature neighbour"):
        check(["feature *", "feature neigbour"], [suite("locomo")])


def test_every_part_of_a_profile_is_gone_when_it_is_off() -> None:
    whole = profiles.resolve("chat")
    for part in parts(suite("locomo")):
        kind, _, name = part.name.partition(" ")
        without = profiles.resolve("chat", call=part.overrides)
        if kind == "feature":
            assert whole.weights[name] > without.weights[name] == 0
        elif kind == "field":
            assert whole.fields[name] > without.fields[name] == 0
        elif kind == "slot":
            assert {slot.name for slot in whole.slots} - {slot.name for slot in without.slots} == {name}
        elif kind == "source":
            source, _, slot = name.partition(" in ")
            (left,) = (one for one in without.slots if one.name == slot)
            assert dict(left.also).get(source, 0) == 0
