"""Rows -> figures, tables, thresholds and comparisons."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from foveate.errors import InputError
from foveate.eval import compare, gate, tables
from foveate.eval.report import Figure, as_json, report
from foveate.eval.rows import Pack, Row, Run


def pack(turns: Sequence[bool] = (), sessions: Sequence[bool] = (), unwanted: Sequence[bool] = (), tokens: int = 90) -> Pack:
    hits = {what: found for what, found in (("turn", turns), ("session", sessions)) if found}
    return Pack(tokens, 2.0, hits, unwanted)


def run_of(*rows: Row, system: str = "foveate", **about: Any) -> Run:
    return Run(
        "talks", system, rows, {"suite": "talks", "data": "d1", "options": {}, "version": "1.2", **about}, Path("rows.jsonl")
    )


def row(case: str, packs: dict[int, Pack], *, world: str = "w", type: str = "", **ranks: list[int | None]) -> Row:
    return Row(world, case, type, packs, ranks)


SMALL = run_of(
    row("1", {100: pack([True, False], [True]), 200: pack([True, True], [True])}, type="hop", turn=[1, 12]),
    row("2", {100: pack([False], [False]), 200: pack([True], [True], tokens=201)}, type="hop", turn=[4]),
    row(
        "3",
        {100: pack([False, False, False], [False]), 200: pack([True, False, False], [True])},
        type="time",
        turn=[None] * 3,
    ),
)


@pytest.mark.parametrize(
    ("figure", "value", "n"),
    [
        (Figure("any", 100, "turn"), 1 / 3, 3),
        (Figure("all", 100, "turn"), 0.0, 3),
        (Figure("fraction", 100, "turn"), 0.5 / 3, 3),
        (Figure("any", 200, "turn"), 1.0, 3),
        (Figure("all", 200, "turn"), 2 / 3, 3),
        (Figure("fraction", 200, "turn"), (1 + 1 + 1 / 3) / 3, 3),
        (Figure("all", 200, "session"), 1.0, 3),
        (Figure("fraction", 100, "turn", "hop"), 0.25, 2),
        (Figure("fraction", 200, "turn", "time"), 1 / 3, 1),
        (Figure("passed", 200), 2 / 3, 3),
        (Figure("any", what="turn", top=10), 2 / 3, 3),
        (Figure("all", what="turn", top=10), 1 / 3, 3),
        (Figure("all", what="turn", top=20), 2 / 3, 3),
        (Figure("mrr", what="turn"), (1 + 1 / 4 + 0) / 3, 3),
        (Figure("mrr", what="turn", type="time"), 0.0, 1),
    ],
)
def test_figures_of_a_small_run(figure: Figure, value: float, n: int) -> None:
    found = report(SMALL, {"turn": (10, 20)}).figures[figure]
    assert (found.value, found.n) == (pytest.approx(value), n)
    assert found.interval.low <= found.value <= found.interval.high


def test_headline_is_the_first_kind_of_evidence_and_packs_over_their_budget_are_counted() -> None:
    found = report(SMALL)
    assert (found.headline, found.cases, found.worlds, dict(found.types)) == ("turn", 3, 1, {"hop": 2, "time": 1})
    assert [(one.budget, one.tokens, one.ms, one.over) for one in found.spent] == [(100, 90, 2.0, 0), (200, 127, 2.0, 1)]
    assert Figure("clean", 100) not in found.figures


def test_case_counts_only_for_what_it_names() -> None:
    found = report(
        run_of(
            row("1", {100: pack([True], unwanted=[False])}),
            row("2", {100: pack([True], unwanted=[True, False])}),
            row("3", {100: pack(unwanted=[False])}),  # nothing is wanted: to be clean is to pass
            row("4", {100: pack([False])}),
        )
    ).figures
    assert (found[Figure("all", 100, "turn")].value, found[Figure("all", 100, "turn")].n) == (pytest.approx(2 / 3), 3)
    assert (found[Figure("clean", 100)].value, found[Figure("clean", 100)].n) == (pytest.approx(2 / 3), 3)
    assert (found[Figure("passed", 100)].value, found[Figure("passed", 100)].n) == (0.5, 4)


def test_run_without_rows_has_no_figures() -> None:
    found = report(run_of())
    assert (found.cases, found.figures, found.spent, found.headline) == (0, {}, (), "")


def test_document_has_stable_keys_and_is_json() -> None:
    found = json.loads(json.dumps(as_json(report(SMALL, {"turn": (10,)}))))
    assert list(found) == [
        "schema", "suite", "system", "version", "fingerprint", "data", "options", "rows", "cases", "worlds",
        "skipped", "limit", "finished", "types", "budgets", "headline", "figures", "spent",
    ]  # fmt: skip
    first = found["figures"][0]
    assert first == {
        "measure": "any", "budget": 100, "what": "turn", "type": "", "top": None, "value": 0.333333, "n": 3,
        "low": 0.061492, "high": 0.79234, "interval": "wilson", "over_worlds": None,
    }  # fmt: skip
    assert found["spent"][1] == {"budget": 200, "tokens": 127.0, "ms": 2.0, "over": 1}


def test_time_is_told_of_foveate_alone() -> None:
    ours, other = (report(run_of(*SMALL.rows, system=name)) for name in ("foveate:profile=chat", "semble"))
    assert [one.ms for one in (*ours.spent, *other.spent)] == [2.0, 2.0, None, None]
    *_, table = tables.tables([ours, other])
    assert [line[1] for line in table.rows] == ["tokens", "CPU ms", "packs over it", "tokens", "packs over it"]
    assert as_json(other)["spent"][0]["ms"] is None


# --- tables --------------------------------------------------------------------------------------------------------


def test_tables_show_percentages_with_one_decimal_under_their_budgets() -> None:
    found = {table.title: table for table in tables.tables([report(SMALL, {"turn": (10,)})])}
    assert list(found) == [
        "turn, any", "turn, all", "turn, fraction", "session, any", "session, all", "session, fraction",
        "turn, any, by type", "turn, all, by type", "turn, fraction, by type", "turn, by rank", "a pack, on average",
    ]  # fmt: skip
    assert found["turn, any"].heads == ["", "100", "200"]
    assert found["turn, any"].rows == [["foveate", "33.3%", "100.0%"], ["", "6.1-79.2", "43.9-100.0"]]
    assert found["turn, fraction, by type"].rows[1] == ["time", "foveate", "1", "0.0%", "33.3%"]
    assert found["turn, by rank"].rows == [["foveate", "66.7%", "33.3%", "0.417"]]
    assert found["a pack, on average"].rows[-1] == ["", "packs over it", "0", "1"]


def test_measures_are_shown_where_they_say_something_or_are_asked_for() -> None:
    guarded = run_of(
        row("1", {100: pack([True], unwanted=[False])}, type="hop"), row("2", {100: pack([False])}, type="time")
    )

    def titles(run: Run, *measures: str) -> list[str]:
        return [table.title for table in tables.tables([report(run)], measures) if table.title[-4:] not in ("rank", "rage")]

    assert titles(guarded)[3:5] == ["clean", "passed"]
    assert titles(guarded, "passed") == ["passed", "passed, by type"]
    assert titles(guarded, "all") == ["turn, all", "turn, all, by type"]
    assert titles(SMALL, "passed") == ["passed", "passed, by type"]
    assert titles(SMALL, "clean") == []
    by_type = next(table for table in tables.tables([report(guarded)], ["clean"]) if "type" in table.title)
    assert by_type.rows == [["hop", "foveate", "1", "100.0%"]]
    both = compare.compare(guarded, guarded)
    assert [table.title for table in tables.compared(both, ["all"])] == ["turn, all"]


def test_systems_with_other_budgets_share_a_table() -> None:
    other = run_of(row("1", {400: pack([True])}), system="fts5")
    first = next(tables.tables([report(SMALL), report(other)]))
    assert first.heads == ["", "100", "200", "400"]
    assert [line for line in first.rows if line[0]] == [["foveate", "33.3%", "100.0%", ""], ["fts5", "", "", "100.0%"]]
    assert tables.summary([report(SMALL), report(other)]) == "talks: 1 to 3 cases in 1 world"


# --- thresholds ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bar", "line"),
    [
        ("any@100=33.3", ""),
        ("any@100=34", "turn.any at 100 tokens is 33.33%, below 34%"),
        ("session.all@200=100", ""),
        ("turn.fraction@200=77.8", "turn.fraction at 200 tokens is 77.78%, below 77.8%"),
        ("passed=66", ""),
        ("passed=67%", "passed at 200 tokens is 66.67%, below 67%"),
        ("passed@100=1", "passed at 100 tokens is 0.00%, below 1%"),
    ],
)
def test_threshold_is_missed_where_the_figure_is_below_it(bar: str, line: str) -> None:
    found = report(SMALL)
    assert gate.missed(found, [gate.parsed(bar, found.budgets)]) == ([line] if line else [])


@pytest.mark.parametrize(
    ("bar", "message"),
    [
        ("fraction", "is no threshold; write `fraction@4000=90`"),
        ("fraction@100=much", "is no threshold"),
        ("fractoin@100=90", "no measure 'fractoin'. Did you mean 'fraction'?"),
        ("fraction=90", "names no budget; write `fraction@200=90`"),
        ("fraction@300=90", "the budget 300 is not run; these are: 100, 200"),
        ("fraction@1k=90", "the budget 1k is not run"),
        ("fraction@100=101", "more than 100 percent"),
        ("turn.passed=90", "is of the whole case"),
        ("turns.any@100=90", "no such figure. Did you mean 'turn'?"),
        ("clean=90", "No case says what is unwanted"),
    ],
)
def test_impossible_threshold_is_an_error(bar: str, message: str) -> None:
    found = report(SMALL)
    with pytest.raises(InputError) as error:
        gate.missed(found, [gate.parsed(bar, found.budgets)])
    assert message in str(error.value)


# --- comparisons ---------------------------------------------------------------------------------------------------


def test_comparison_is_of_the_cases_and_budgets_that_both_have() -> None:
    before = run_of(
        row("1", {100: pack([True, False]), 200: pack([True, True])}),
        row("2", {100: pack([True]), 200: pack([True])}),
        row("3", {100: pack([True]), 200: pack([True])}),
        row("gone", {100: pack([True]), 200: pack([True])}),
    )
    after = run_of(
        row("1", {100: pack([True, True]), 400: pack([True, True])}),
        row("2", {100: pack([False]), 400: pack([True])}),
        row("3", {100: pack([True]), 400: pack([True])}),
        system="other",
    )
    found = compare.compare(before, after)
    assert (found.cases, found.only_a, found.only_b) == (3, 1, 0)
    by = {(one.measure, one.budget): one for one in found.differences}
    assert set(by) == {("any", 100), ("all", 100), ("fraction", 100), ("passed", 100)}
    assert (by["all", 100].won, by["all", 100].lost, by["all", 100].p) == (("w/1",), ("w/2",), 1.0)
    fraction = by["fraction", 100]
    assert (fraction.difference, fraction.won, fraction.lost) == (pytest.approx(-0.5 / 3), ("w/1",), ("w/2",))
    assert (fraction.test, by["any", 100].test) == ("sign flips", "mcnemar")
    document = json.loads(json.dumps(compare.as_json(found)))
    assert document["differences"][2]["lost"] == ["w/2"]
    assert document["b"]["system"] == "other"


def test_comparison_finds_a_real_difference() -> None:
    worse, better = (run_of(*(row(str(n), {100: pack([n < good, True])}) for n in range(20))) for good in (5, 15))
    by = {one.measure: one for one in compare.compare(worse, better).differences}
    assert by["all"].p == pytest.approx(2 / 2**10)
    assert by["fraction"].p < 0.01
    assert (len(by["all"].won), by["all"].lost) == (10, ())
    shown = {table.title: table.rows for table in tables.compared(compare.compare(worse, better))}
    assert shown["turn, all"] == [
        ["a", "25.0%"],
        ["b", "75.0%"],
        ["difference", "+50.0"],
        ["won, lost", "10, 0"],
        ["p", "0.002"],
    ]
    assert next(tables.changed(compare.compare(worse, better))).startswith("turn, all, 100: won w/5, w/6")


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (run_of(*SMALL.rows, suite="other"), "same suite"),
        (run_of(*SMALL.rows, data="d2"), "the same data can be compared, not 'd1' and 'd2'"),
        (run_of(*SMALL.rows, options={"split": "s"}), "same options"),
        (run_of(*SMALL.rows, scoring="other"), "scored by other code"),
        (run_of(row("other", {100: pack([True])})), "no case in common"),
        (run_of(row("1", {400: pack([True])})), "no budget in common"),
    ],
)
def test_runs_that_do_not_match_are_not_compared(other: Run, message: str) -> None:
    with pytest.raises(InputError, match=message):
        compare.compare(SMALL, other)
