"""Metrics, tables, thresholds and comparisons of runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from foveate.errors import InputError
from foveate.eval import compare, tables
from foveate.eval.report import MetricKey, as_json, report
from foveate.eval.rows import BudgetResult, CaseResult, Run


def at_budget(
    turns: Sequence[bool] = (), sessions: Sequence[bool] = (), forbidden: Sequence[bool] = (), tokens: int = 90
) -> BudgetResult:
    hits = {name: flags for name, flags in (("turn", turns), ("session", sessions)) if flags}
    return BudgetResult(tokens, 2.0, hits, forbidden)


def run_of(*results: CaseResult, system: str = "foveate", **header: Any) -> Run:
    values = {"suite": "talks", "data": "d1", "options": {}, "version": "1.2", **header}
    return Run("talks", system, results, values, Path("rows.jsonl"))


def case_of(
    case: str, by_budget: dict[int, BudgetResult], *, subset: str = "w", type: str = "", **ranks: list[int | None]
) -> CaseResult:
    return CaseResult(subset, case, type, by_budget, ranks)


SMALL = run_of(
    case_of("1", {100: at_budget([True, False], [True]), 200: at_budget([True, True], [True])}, type="hop", turn=[1, 12]),
    case_of("2", {100: at_budget([False], [False]), 200: at_budget([True], [True], tokens=201)}, type="hop", turn=[4]),
    case_of(
        "3",
        {100: at_budget([False, False, False], [False]), 200: at_budget([True, False, False], [True])},
        type="time",
        turn=[None] * 3,
    ),
)


def with_cutoffs(run: Run, *cutoffs: int) -> Run:
    return replace(run, header={**run.header, "rank_cutoffs": {"turn": cutoffs}})


@pytest.mark.parametrize(
    ("key", "value", "n"),
    [
        (MetricKey("hit_rate", 100, "turn"), 1 / 3, 3),
        (MetricKey("complete", 100, "turn"), 0.0, 3),
        (MetricKey("recall", 100, "turn"), 0.5 / 3, 3),
        (MetricKey("hit_rate", 200, "turn"), 1.0, 3),
        (MetricKey("complete", 200, "turn"), 2 / 3, 3),
        (MetricKey("recall", 200, "turn"), (1 + 1 + 1 / 3) / 3, 3),
        (MetricKey("complete", 200, "session"), 1.0, 3),
        (MetricKey("recall", 100, "turn", "hop"), 0.25, 2),
        (MetricKey("recall", 200, "turn", "time"), 1 / 3, 1),
        (MetricKey("passed", 200), 2 / 3, 3),
        (MetricKey("hit_rate", evidence_type="turn", rank_cutoff=10), 2 / 3, 3),
        (MetricKey("complete", evidence_type="turn", rank_cutoff=10), 1 / 3, 3),
        (MetricKey("complete", evidence_type="turn", rank_cutoff=20), 2 / 3, 3),
        (MetricKey("mrr", evidence_type="turn"), (1 + 1 / 4 + 0) / 3, 3),
        (MetricKey("mrr", evidence_type="turn", question_type="time"), 0.0, 1),
    ],
)
def test_metrics_of_a_small_run(key: MetricKey, value: float, n: int) -> None:
    found = report(with_cutoffs(SMALL, 10, 20)).metrics[key]
    assert (found.value, found.case_count) == (pytest.approx(value), n)
    assert found.interval.low <= found.value <= found.interval.high


def test_headline_is_the_first_evidence_type_and_prompts_over_budget_are_counted() -> None:
    found = report(SMALL)
    assert (found.headline, found.cases, found.subsets, dict(found.question_types)) == ("turn", 3, 1, {"hop": 2, "time": 1})
    assert [(one.budget, one.tokens, one.cpu_ms, one.over_budget) for one in found.usage] == [
        (100, 90, 2.0, 0),
        (200, 127, 2.0, 1),
    ]
    assert MetricKey("no_forbidden", 100) not in found.metrics


def test_case_counts_only_for_what_it_names() -> None:
    found = report(
        run_of(
            case_of("1", {100: at_budget([True], forbidden=[False])}),
            case_of("2", {100: at_budget([True], forbidden=[True, False])}),
            case_of(
                "3", {100: at_budget(forbidden=[False])}
            ),  # nothing is expected, so the case passes without forbidden evidence
            case_of("4", {100: at_budget([False])}),
        )
    ).metrics
    assert (found[MetricKey("complete", 100, "turn")].value, found[MetricKey("complete", 100, "turn")].case_count) == (
        pytest.approx(2 / 3),
        3,
    )
    assert (found[MetricKey("no_forbidden", 100)].value, found[MetricKey("no_forbidden", 100)].case_count) == (
        pytest.approx(2 / 3),
        3,
    )
    assert (found[MetricKey("passed", 100)].value, found[MetricKey("passed", 100)].case_count) == (0.5, 4)


def test_run_without_results_has_no_metrics() -> None:
    found = report(run_of())
    assert (found.cases, found.metrics, found.usage, found.headline) == (0, {}, (), "")


def test_document_has_stable_keys_and_is_json() -> None:
    found = json.loads(json.dumps(as_json(report(with_cutoffs(SMALL, 10)))))
    assert list(found) == [
        "schema", "suite", "system", "version", "fingerprint", "data", "options", "path", "cases", "subsets",
        "skipped_cases", "limit", "is_finished", "question_types", "budgets", "headline", "metrics", "usage",
    ]  # fmt: skip
    first = found["metrics"][0]
    assert first == {
        "metric": "hit_rate", "budget": 100, "evidence_type": "turn", "question_type": "", "rank_cutoff": None,
        "value": 0.333333, "case_count": 3, "low": 0.061492, "high": 0.79234, "interval": "wilson",
    }  # fmt: skip
    assert found["usage"][1] == {"budget": 200, "tokens": 127.0, "cpu_ms": 2.0, "over_budget": 1}


def test_cpu_time_is_reported_for_foveate_only() -> None:
    ours, other = (report(run_of(*SMALL.results, system=name)) for name in ("foveate:profile=chat", "semble"))
    assert [one.cpu_ms for one in (*ours.usage, *other.usage)] == [2.0, 2.0, None, None]
    *_, table = tables.report_tables([ours, other])
    assert [line[1] for line in table.rows] == ["tokens", "CPU ms", "over budget", "tokens", "over budget"]
    assert as_json(other)["usage"][0]["cpu_ms"] is None


# --- tables --------------------------------------------------------------------------------------------------------


def test_tables_show_percentages_with_one_decimal_under_their_budgets() -> None:
    found = {table.title: table for table in tables.report_tables([report(with_cutoffs(SMALL, 10))])}
    assert list(found) == [
        "turn, hit_rate", "turn, complete", "turn, recall", "session, hit_rate", "session, complete", "session, recall",
        "turn, hit_rate, by type", "turn, complete, by type", "turn, recall, by type", "turn, by rank", "mean per prompt",
    ]  # fmt: skip
    assert found["turn, hit_rate"].headers == ["", "100", "200"]
    assert found["turn, hit_rate"].rows == [["foveate", "33.3%", "100.0%"], ["", "6.1-79.2", "43.9-100.0"]]
    assert found["turn, recall, by type"].rows[1] == ["time", "foveate", "1", "0.0%", "33.3%"]
    assert found["turn, by rank"].rows == [["foveate", "66.7%", "33.3%", "0.417"]]
    assert found["mean per prompt"].rows[-1] == ["", "over budget", "0", "1"]


def test_metrics_without_information_are_shown_only_on_request() -> None:
    guarded = run_of(
        case_of("1", {100: at_budget([True], forbidden=[False])}, type="hop"),
        case_of("2", {100: at_budget([False])}, type="time"),
    )

    def titles(run: Run, *metrics: str) -> list[str]:
        return [
            table.title
            for table in tables.report_tables([report(run)], metrics)
            if not table.title.endswith(("rank", "prompt"))
        ]

    assert titles(guarded)[3:5] == ["no_forbidden", "passed"]
    assert titles(guarded, "passed") == ["passed", "passed, by type"]
    assert titles(guarded, "complete") == ["turn, complete", "turn, complete, by type"]
    assert titles(SMALL, "passed") == ["passed", "passed, by type"]
    assert titles(SMALL, "no_forbidden") == []
    by_type = next(table for table in tables.report_tables([report(guarded)], ["no_forbidden"]) if "type" in table.title)
    assert by_type.rows == [["hop", "foveate", "1", "100.0%"]]
    both = compare.compare(guarded, guarded)
    assert [table.title for table in tables.comparison_tables(both, ["complete"])] == ["turn, complete, compared"]


def test_systems_with_other_budgets_share_a_table() -> None:
    other = run_of(case_of("1", {400: at_budget([True])}), system="fts5")
    first = next(tables.report_tables([report(SMALL), report(other)]))
    assert first.headers == ["", "100", "200", "400"]
    assert [line for line in first.rows if line[0]] == [["foveate", "33.3%", "100.0%", ""], ["fts5", "", "", "100.0%"]]
    assert tables.summary([report(SMALL), report(other)]) == "talks: 1 to 3 cases in 1 subset"


# --- thresholds ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("hit_rate@100=33.3", ""),
        ("hit_rate@100=34", "turn.hit_rate at 100 tokens is 33.33%, below 34%"),
        ("session.complete@200=100", ""),
        ("turn.recall@200=77.8", "turn.recall at 200 tokens is 77.78%, below 77.8%"),
        ("passed=66", ""),
        ("passed=67%", "passed at 200 tokens is 66.67%, below 67%"),
        ("passed@100=1", "passed at 100 tokens is 0.00%, below 1%"),
    ],
)
def test_threshold_fails_if_the_metric_is_below_it(text: str, line: str) -> None:
    found = report(SMALL)
    assert compare.failed_thresholds(found, [compare.parse_threshold(text, found.budgets)]) == ([line] if line else [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("recall", "is not a threshold; write `recall@4000=90`"),
        ("recall@100=much", "is not a threshold"),
        ("recal@100=90", "no metric 'recal'. Did you mean 'recall'?"),
        ("recall=90", "names no budget; write `recall@200=90`"),
        ("recall@300=90", "the budget 300 is not in the run. Budgets: 100, 200"),
        ("recall@1k=90", "the budget 1k is not in the run"),
        ("recall@100=101", "more than 100 percent"),
        ("turn.passed=90", "is a metric of whole cases"),
        ("turns.hit_rate@100=90", "no such metric. Did you mean 'turn'?"),
        ("no_forbidden=90", "No case names forbidden evidence"),
    ],
)
def test_impossible_threshold_is_an_error(text: str, message: str) -> None:
    found = report(SMALL)
    with pytest.raises(InputError) as error:
        compare.failed_thresholds(found, [compare.parse_threshold(text, found.budgets)])
    assert message in str(error.value)


# --- comparisons ---------------------------------------------------------------------------------------------------


def test_comparison_is_of_the_cases_and_budgets_that_both_have() -> None:
    before = run_of(
        case_of("1", {100: at_budget([True, False]), 200: at_budget([True, True])}),
        case_of("2", {100: at_budget([True]), 200: at_budget([True])}),
        case_of("3", {100: at_budget([True]), 200: at_budget([True])}),
        case_of("gone", {100: at_budget([True]), 200: at_budget([True])}),
    )
    after = run_of(
        case_of("1", {100: at_budget([True, True]), 400: at_budget([True, True])}),
        case_of("2", {100: at_budget([False]), 400: at_budget([True])}),
        case_of("3", {100: at_budget([True]), 400: at_budget([True])}),
        system="other",
    )
    found = compare.compare(before, after)
    assert (found.cases, found.only_a, found.only_b) == (3, 1, 0)
    by = {(one.metric, one.budget): one for one in found.differences}
    assert set(by) == {("hit_rate", 100), ("complete", 100), ("recall", 100), ("passed", 100)}
    assert (by["complete", 100].improved_cases, by["complete", 100].worsened_cases) == (("w/1",), ("w/2",))
    assert by["complete", 100].p == 1.0
    recall = by["recall", 100]
    assert recall.difference == pytest.approx(-0.5 / 3)
    assert (recall.improved_cases, recall.worsened_cases) == (("w/1",), ("w/2",))
    assert (recall.test, by["hit_rate", 100].test) == ("sign flips", "mcnemar")
    document = json.loads(json.dumps(compare.as_json(found)))
    assert document["differences"][2]["worsened_cases"] == ["w/2"]
    assert document["b"]["system"] == "other"


def test_comparison_finds_a_real_difference() -> None:
    worse, better = (run_of(*(case_of(str(n), {100: at_budget([n < good, True])}) for n in range(20))) for good in (5, 15))
    by = {one.metric: one for one in compare.compare(worse, better).differences}
    assert by["complete"].p == pytest.approx(2 / 2**10)
    assert by["recall"].p < 0.01
    assert (len(by["complete"].improved_cases), by["complete"].worsened_cases) == (10, ())
    shown = {table.title: table.rows for table in tables.comparison_tables(compare.compare(worse, better))}
    assert shown["turn, complete, compared"] == [
        ["a", "25.0%"],
        ["b", "75.0%"],
        ["difference", "+50.0"],
        ["better, worse", "10, 0"],
        ["p", "0.002"],
    ]
    assert next(tables.changed_case_lines(compare.compare(worse, better))).startswith("turn, complete, 100: better w/5, w/6")


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (run_of(*SMALL.results, suite="other"), "same suite"),
        (run_of(*SMALL.results, data="d2"), "the same data can be compared, got 'd1' and 'd2'"),
        (run_of(*SMALL.results, options={"split": "s"}), "same options"),
        (run_of(*SMALL.results, scoring="other"), "scored by different versions"),
        (run_of(case_of("other", {100: at_budget([True])})), "no case in common"),
        (run_of(case_of("1", {400: at_budget([True])})), "no budget in common"),
    ],
)
def test_runs_that_do_not_match_are_not_compared(other: Run, message: str) -> None:
    with pytest.raises(InputError, match=message):
        compare.compare(SMALL, other)
