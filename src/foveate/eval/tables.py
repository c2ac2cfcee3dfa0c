"""Reports and comparisons as tables of text: percentages with one decimal, budgets as columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from foveate.eval.compare import Comparison, Difference
from foveate.eval.model import CASE_METRICS, EVIDENCE_METRICS, METRICS
from foveate.eval.report import BudgetUsage, MetricKey, Report
from foveate.eval.rows import Run
from foveate.eval.statistics import Estimate
from foveate.text.format import pluralize

MAX_LISTED_CASES = 20


@dataclass(frozen=True, slots=True)
class Table:
    """The first `left_aligned` columns are text, the others numbers."""

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    left_aligned: int = 1


def summary(reports: Sequence[Report]) -> str:
    """Return the line above the tables of a suite: how many cases were run, and which runs are incomplete."""
    cases = _count_range([report.cases for report in reports], "case")
    subsets = _count_range([report.subsets for report in reports], "subset")
    line = f"{reports[0].run.suite}: {cases} in {subsets}"
    notes = [incomplete_note(report.run) for report in reports]
    if len(set(notes)) == 1:
        return f"{line}, {notes[0]}" if notes[0] else line
    return "; ".join([line, *(f"{report.name} {note}" for report, note in zip(reports, notes, strict=True) if note)])


def incomplete_note(run: Run) -> str:
    """Return what a run lacks of its suite, or an empty string."""
    notes = [] if run.is_finished else ["not finished"]
    notes += [f"with --limit {run.limit}"] if run.is_finished and run.limit else []
    notes += [f"{run.skipped_cases:,} skipped"] if run.skipped_cases else []
    return ", ".join(notes)


def _count_range(numbers: Sequence[int], noun: str) -> str:
    low, high = min(numbers), max(numbers)
    return pluralize(high, noun) if low == high else f"{low:,} to {pluralize(high, noun)}"


def report_tables(reports: Sequence[Report], metrics: Sequence[str] = ()) -> Iterator[Table]:
    """Yield the tables of the reports of one suite, for all metrics or for some.

    If nothing is forbidden, `passed` says no more than `complete` and is shown only on request.
    """
    budgets = sorted({budget for report in reports for budget in report.budgets})
    evidence_types = list(dict.fromkeys(name for report in reports for name in report.evidence_types))
    available = {key.metric for report in reports for key in report.metrics}
    shown = metrics or (METRICS if "no_forbidden" in available else EVIDENCE_METRICS)
    of_evidence = [metric for metric in EVIDENCE_METRICS if metric in shown and metric in available]
    of_cases = [metric for metric in CASE_METRICS if metric in shown and metric in available]
    for evidence_type in evidence_types:
        for metric in of_evidence:
            yield _metric_table(reports, budgets, metric, evidence_type)
    for metric in of_cases:
        yield _metric_table(reports, budgets, metric, "")
    if any(len(report.question_types) > 1 for report in reports):
        for metric in (*of_evidence, *of_cases):
            yield _question_type_table(reports, budgets, metric, evidence_types[0] if metric in of_evidence else "")
    yield from _rank_tables(reports)
    yield _usage_table(reports, budgets)


def _metric_table(reports: Sequence[Report], budgets: Sequence[int], metric: str, evidence_type: str) -> Table:
    rows = []
    for report in reports:
        estimates = [report.metrics.get(MetricKey(metric, budget, evidence_type)) for budget in budgets]
        rows.append([report.name, *map(format_percent, estimates)])
        rows.append(["", *map(format_interval, estimates)])
    return Table(_title(metric, evidence_type), ["", *map(str, budgets)], rows)


def _question_type_table(reports: Sequence[Report], budgets: Sequence[int], metric: str, evidence_type: str) -> Table:
    keys = [key for report in reports for key in report.metrics]
    counted = {key.question_type for key in keys if (key.metric, key.evidence_type) == (metric, evidence_type)}
    rows = []
    for question_type in dict.fromkeys(name for report in reports for name in report.question_types):
        for report in reports if question_type in counted else ():
            columns = [MetricKey(metric, budget, evidence_type, question_type) for budget in budgets]
            estimates = [report.metrics.get(column) for column in columns]
            n = next((str(estimate.case_count) for estimate in estimates if estimate), "")
            label = question_type if report is reports[0] else ""
            rows.append([label, report.name, n, *map(format_percent, estimates)])
    return Table(f"{_title(metric, evidence_type)}, by type", ["", "", "n", *map(str, budgets)], rows, left_aligned=2)


def _rank_tables(reports: Sequence[Report]) -> Iterator[Table]:
    keys = [key for report in reports for key in report.metrics if key.budget is None and not key.question_type]
    for evidence_type in dict.fromkeys(key.evidence_type for key in keys):
        columns = list(dict.fromkeys(key for key in keys if key.evidence_type == evidence_type))
        headers = [key.metric.upper() if key.rank_cutoff is None else f"{key.metric}@{key.rank_cutoff}" for key in columns]
        rows = [[report.name, *(_rank_cell(key, report.metrics.get(key)) for key in columns)] for report in reports]
        yield Table(f"{evidence_type}, by rank", ["", *headers], rows)


def _usage_table(reports: Sequence[Report], budgets: Sequence[int]) -> Table:
    rows = []
    for report in reports:
        by_budget = {usage.budget: usage for usage in report.usage}
        cells = [by_budget.get(budget) for budget in budgets]
        rows.append([report.name, "tokens", *(f"{usage.tokens:,.0f}" if usage else "" for usage in cells)])
        if any(usage and usage.cpu_ms is not None for usage in cells):
            rows.append(["", "CPU ms", *map(_cpu_cell, cells)])
        if any(usage and usage.over_budget for usage in cells):
            rows.append(["", "over budget", *(str(usage.over_budget) if usage else "" for usage in cells)])
    return Table("mean per prompt", ["", "", *map(str, budgets)], rows, left_aligned=2)


def _cpu_cell(usage: BudgetUsage | None) -> str:
    return f"{usage.cpu_ms:,.1f}" if usage and usage.cpu_ms is not None else ""


def comparison_tables(comparison: Comparison, metrics: Sequence[str] = METRICS) -> Iterator[Table]:
    """Yield a table for each metric with what changed from `a` to `b`."""
    by_metric: dict[tuple[str, str], list[Difference]] = {}
    for difference in comparison.differences:
        if difference.metric in metrics:
            by_metric.setdefault((difference.metric, difference.evidence_type), []).append(difference)
    for (metric, evidence_type), columns in by_metric.items():
        rows = [
            ["a", *(f"{column.mean_a:.1%}" for column in columns)],
            ["b", *(f"{column.mean_b:.1%}" for column in columns)],
            ["difference", *(f"{column.difference * 100:+.1f}" for column in columns)],
            ["better, worse", *(f"{len(column.improved_cases)}, {len(column.worsened_cases)}" for column in columns)],
            ["p", *(f"{column.p:.3f}" if column.p >= 0.001 else "< 0.001" for column in columns)],
        ]
        title = f"{_title(metric, evidence_type)}, compared"
        yield Table(title, ["", *(str(column.budget) for column in columns)], rows)


def changed_case_lines(comparison: Comparison, metrics: Sequence[str] = METRICS) -> Iterator[str]:
    """Yield lines with the cases that are better or worse in `b`."""
    for difference in comparison.differences:
        for word, cases in (("better", difference.improved_cases), ("worse", difference.worsened_cases)):
            if cases and difference.metric in metrics:
                more = f" and {len(cases) - MAX_LISTED_CASES} more" if len(cases) > MAX_LISTED_CASES else ""
                title = _title(difference.metric, difference.evidence_type)
                yield f"{title}, {difference.budget}: {word} {', '.join(cases[:MAX_LISTED_CASES])}{more}"


def format_percent(estimate: Estimate | None) -> str:
    return f"{estimate.value:.1%}" if estimate else ""


def format_interval(estimate: Estimate | None) -> str:
    return f"{estimate.interval.low * 100:.1f}-{estimate.interval.high * 100:.1f}" if estimate else ""


def _rank_cell(key: MetricKey, estimate: Estimate | None) -> str:
    return f"{estimate.value:.3f}" if estimate and key.metric == "mrr" else format_percent(estimate)


def _title(metric: str, evidence_type: str) -> str:
    return f"{evidence_type}, {metric}" if evidence_type else metric
