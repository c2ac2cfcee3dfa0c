"""The smoke suite: 42 questions over 146 records of an invented project, run like a user's own cases.

The floors are nine tenths of the measured values: they show that something broke, not which system is better.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from foveate.eval.datasets import load_suite
from foveate.eval.run import Run, run
from foveate.eval.systems import open_system

BUDGETS = (250, 500, 1000, 2000, 4000)
CASES = Path(__file__).with_name("smoke.jsonl")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder = tmp_path_factory.mktemp("runs")
    return {name: run(load_suite("own"), open_system(name), CASES, folder, budgets=BUDGETS) for name in ("foveate", "fts5")}


def complete(run: Run, budget: int) -> float:
    """Return the share of cases with all expected evidence."""
    return sum(all(case.by_budget[budget].hits["record"]) for case in run.results) / len(run.results)


def passed(run: Run, budget: int) -> float:
    """Return the share of cases with all expected evidence and nothing forbidden."""
    good = [
        all(case.by_budget[budget].hits["record"]) and not any(case.by_budget[budget].forbidden_hits) for case in run.results
    ]
    return sum(good) / len(good)


@pytest.mark.parametrize(("budget", "seen"), [(250, 0.929), (500, 0.952), (1000, 0.952), (2000, 0.952), (4000, 0.952)])
def test_evidence_is_in_the_text(runs: dict[str, Run], budget: int, seen: float) -> None:
    assert complete(runs["foveate"], budget) >= 0.9 * seen


@pytest.mark.parametrize("budget", BUDGETS)
def test_no_overruled_value_is_shown(runs: dict[str, Run], budget: int) -> None:
    assert not any(any(case.by_budget[budget].forbidden_hits) for case in runs["foveate"].results)
    assert passed(runs["foveate"], budget) > passed(runs["fts5"], budget)


def test_every_prompt_is_within_its_budget(runs: dict[str, Run]) -> None:
    assert all(
        result.tokens <= budget for run in runs.values() for case in run.results for budget, result in case.by_budget.items()
    )


def test_the_baseline_runs_the_same_cases(runs: dict[str, Run]) -> None:
    assert [case.case for case in runs["foveate"].results] == [case.case for case in runs["fts5"].results]
    assert complete(runs["fts5"], 1000) >= 0.9 * 0.976
