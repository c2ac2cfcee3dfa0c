"""The smoke suite: 42 questions over 146 records of an invented project, asked as a user would ask cases of their own.

The floors are nine tenths of what was seen: they show when something broke, not which system is better.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from foveate.eval.datasets import suite
from foveate.eval.run import Run, run
from foveate.eval.systems import system

BUDGETS = (250, 500, 1000, 2000, 4000)
CASES = Path(__file__).with_name("smoke.jsonl")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder = tmp_path_factory.mktemp("runs")
    return {name: run(suite("own"), system(name), CASES, folder, budgets=BUDGETS) for name in ("foveate", "fts5")}


def found(run: Run, budget: int) -> float:
    """The share of cases of which all evidence stands."""
    return sum(all(row.packs[budget].hits["record"]) for row in run.rows) / len(run.rows)


def right(run: Run, budget: int) -> float:
    """The share of those where, besides, nothing stands that is overruled."""
    good = [all(row.packs[budget].hits["record"]) and not any(row.packs[budget].unwanted) for row in run.rows]
    return sum(good) / len(good)


@pytest.mark.parametrize(("budget", "seen"), [(250, 0.929), (500, 0.952), (1000, 0.952), (2000, 0.952), (4000, 0.952)])
def test_evidence_stands_in_the_text(runs: dict[str, Run], budget: int, seen: float) -> None:
    assert found(runs["foveate"], budget) >= 0.9 * seen


@pytest.mark.parametrize("budget", BUDGETS)
def test_no_overruled_value_is_shown(runs: dict[str, Run], budget: int) -> None:
    assert not any(any(row.packs[budget].unwanted) for row in runs["foveate"].rows)
    assert right(runs["foveate"], budget) > right(runs["fts5"], budget)


def test_every_pack_is_within_its_budget(runs: dict[str, Run]) -> None:
    assert all(pack.tokens <= budget for run in runs.values() for row in run.rows for budget, pack in row.packs.items())


def test_the_baseline_is_asked_the_same(runs: dict[str, Run]) -> None:
    assert [row.case for row in runs["foveate"].rows] == [row.case for row in runs["fts5"].rows]
    assert found(runs["fts5"], 1000) >= 0.9 * 0.976
