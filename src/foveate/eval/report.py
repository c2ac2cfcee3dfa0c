"""Metrics of a run: how much of the needed evidence arrived, with intervals, over all cases and by question type.

A case counts for a type of evidence if it expects some of that type: `hit_rate` says whether any of it arrived, `complete`
whether all of it did, and `recall` which fraction. `no_forbidden` is of the cases that name forbidden evidence: none of it
is there. `passed` is of every case: all expected evidence is there and nothing forbidden. Rankings give `hit_rate` and
`complete` within the first `rank_cutoff` ranks, and `mrr`, the mean reciprocal rank of the first piece found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from foveate.eval.model import CASE_METRICS, EVIDENCE_METRICS
from foveate.eval.rows import CaseResult, Run
from foveate.eval.statistics import Estimate, estimate

SCHEMA_VERSION = 3
DIGITS = 6


class MetricKey(NamedTuple):
    """Identifies a metric. An empty `question_type` means all cases; without a budget it is a metric of a ranking."""

    metric: str
    budget: int | None = None
    evidence_type: str = ""
    question_type: str = ""
    rank_cutoff: int | None = None


@dataclass(frozen=True, slots=True)
class BudgetUsage:
    """The mean cost of a prompt at a budget, and how many prompts were over it.

    CPU time is only of foveate: other systems work in a process of their own, or keep what they found for the next budget.
    """

    budget: int
    tokens: float
    cpu_ms: float | None
    over_budget: int


@dataclass(frozen=True, slots=True)
class Report:
    """All metrics of a run. `evidence_types` begins with the headline; `question_types` has the number of cases of each."""

    run: Run
    cases: int
    subsets: int
    budgets: tuple[int, ...]
    evidence_types: tuple[str, ...]
    question_types: Mapping[str, int]
    metrics: Mapping[MetricKey, Estimate]
    usage: tuple[BudgetUsage, ...]
    label: str = ""
    """A name for tables, if the system's name would not distinguish it from another run."""

    @property
    def name(self) -> str:
        return self.label or self.run.system

    @property
    def headline(self) -> str:
        return self.evidence_types[0] if self.evidence_types else ""


def report(run: Run) -> Report:
    """Return the metrics of a run."""
    results = run.results
    by_type: dict[str, list[CaseResult]] = {}
    for case in results:
        by_type.setdefault(case.question_type, []).append(case)
    budgets = tuple(sorted(results[0].by_budget)) if results else ()
    evidence_types = tuple(
        dict.fromkeys(name for case in results for result in case.by_budget.values() for name in result.hits)
    )
    rank_cutoffs = run.header.get("rank_cutoffs", {})
    metrics: dict[MetricKey, Estimate] = {}
    for question_type, cases in (("", results), *(pair for pair in sorted(by_type.items()) if pair[0])):
        for budget in budgets:
            for evidence_type in evidence_types:
                metrics.update(_evidence_metrics(cases, budget, evidence_type, question_type))
            metrics.update(_case_metrics(cases, budget, question_type))
        metrics.update(_rank_metrics(cases, question_type, rank_cutoffs))
    return Report(
        run,
        cases=len(results),
        subsets=len({case.subset for case in results}),
        budgets=budgets,
        evidence_types=evidence_types,
        question_types={name: len(cases) for name, cases in sorted(by_type.items()) if name},
        metrics=metrics,
        usage=tuple(_budget_usage(run, budget) for budget in budgets),
    )


def case_score(case: CaseResult, metric: str, budget: int, evidence_type: str = "") -> float | None:
    """Return the score of one case in 0..1, or None if it does not count for the metric."""
    result = case.by_budget[budget]
    if metric == "no_forbidden":
        return float(not any(result.forbidden_hits)) if result.forbidden_hits else None
    if metric == "passed":
        return float(not any(result.forbidden_hits) and all(chain.from_iterable(result.hits.values())))
    hits = result.hits.get(evidence_type)
    return _hit_score(metric, hits) if hits else None


def _hit_score(metric: str, hits: Sequence[bool]) -> float:
    if metric == "hit_rate":
        return float(any(hits))
    if metric == "complete":
        return float(all(hits))
    return sum(hits) / len(hits)


def _evidence_metrics(
    cases: Sequence[CaseResult], budget: int, evidence_type: str, question_type: str
) -> Iterator[tuple[MetricKey, Estimate]]:
    counted = [hits for case in cases if (hits := case.by_budget[budget].hits.get(evidence_type))]
    for metric in EVIDENCE_METRICS if counted else ():
        values = [_hit_score(metric, hits) for hits in counted]
        yield MetricKey(metric, budget, evidence_type, question_type), estimate(values)


def _case_metrics(cases: Sequence[CaseResult], budget: int, question_type: str) -> Iterator[tuple[MetricKey, Estimate]]:
    for metric in CASE_METRICS:
        if values := [score for case in cases if (score := case_score(case, metric, budget)) is not None]:
            yield MetricKey(metric, budget, question_type=question_type), estimate(values)


def _rank_metrics(
    cases: Sequence[CaseResult], question_type: str, rank_cutoffs: Mapping[str, Sequence[int]]
) -> Iterator[tuple[MetricKey, Estimate]]:
    for evidence_type in dict.fromkeys(name for case in cases for name in case.ranks):
        counted = [ranks for case in cases if (ranks := case.ranks.get(evidence_type))]
        if not counted:
            continue
        for cutoff in rank_cutoffs.get(evidence_type, ()):
            for metric in ("hit_rate", "complete"):
                values = [_hit_score(metric, [rank is not None and rank <= cutoff for rank in ranks]) for ranks in counted]
                yield MetricKey(metric, None, evidence_type, question_type, cutoff), estimate(values)
        reciprocal = [1 / min((rank for rank in ranks if rank is not None), default=float("inf")) for ranks in counted]
        yield MetricKey("mrr", None, evidence_type, question_type), estimate(reciprocal)


def _budget_usage(run: Run, budget: int) -> BudgetUsage:
    results = [case.by_budget[budget] for case in run.results]
    tokens = sum(result.tokens for result in results) / len(results)
    cpu_ms = sum(result.cpu_ms for result in results) / len(results) if run.system.startswith("foveate") else None
    return BudgetUsage(budget, tokens, cpu_ms, sum(result.tokens > budget for result in results))


# --- JSON ----------------------------------------------------------------------------------------------------------


def as_json(report: Report) -> dict[str, Any]:
    """Return a report as a JSON document. Metrics are in 0..1. New keys may be added while `schema` stays the same."""
    header = report.run.header
    return {
        "schema": SCHEMA_VERSION,
        "suite": report.run.suite,
        "system": report.run.system,
        "version": header.get("version"),
        "fingerprint": header.get("fingerprint"),
        "data": header.get("data"),
        "options": header.get("options", {}),
        "path": str(report.run.path),
        "cases": report.cases,
        "subsets": report.subsets,
        "skipped_cases": report.run.skipped_cases,
        "limit": report.run.limit,
        "is_finished": report.run.is_finished,
        "question_types": dict(report.question_types),
        "budgets": list(report.budgets),
        "headline": report.headline,
        "metrics": [{**key._asdict(), **_estimate_json(estimate)} for key, estimate in report.metrics.items()],
        "usage": [
            {
                "budget": usage.budget,
                "tokens": round(usage.tokens, 1),
                "cpu_ms": None if usage.cpu_ms is None else round(usage.cpu_ms, 2),
                "over_budget": usage.over_budget,
            }
            for usage in report.usage
        ],
    }


def _estimate_json(estimate: Estimate) -> dict[str, Any]:
    interval = estimate.interval
    return {
        "value": round(estimate.value, DIGITS),
        "case_count": estimate.case_count,
        "low": round(interval.low, DIGITS),
        "high": round(interval.high, DIGITS),
        "interval": interval.method,
    }
