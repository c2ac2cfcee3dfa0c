"""Compare two runs of one suite case by case, and check a run against thresholds.

Only the cases and budgets that both runs have are compared. Shares get McNemar's exact test, fractions a sign-flip test.
There is a p value for every metric and budget: of twenty, one is below 0.05 by chance alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from foveate.errors import InputError, near
from foveate.eval.model import BINARY_METRICS, CASE_METRICS, EVIDENCE_METRICS, METRICS
from foveate.eval.report import DIGITS, MetricKey, Report, case_score
from foveate.eval.rows import CaseResult, Run
from foveate.eval.statistics import EQUAL_TOLERANCE, mcnemar, sign_flip_test

SCHEMA_VERSION = 2
ROUNDING_TOLERANCE = 1e-9
"""A metric this far below its threshold reaches it: it differs only by a floating-point error."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One metric at one budget: the means of both runs, and the cases (`subset/case`) in which `b` is better or worse."""

    metric: str
    budget: int
    evidence_type: str
    case_count: int
    mean_a: float
    mean_b: float
    p: float
    improved_cases: tuple[str, ...]
    worsened_cases: tuple[str, ...]

    @property
    def difference(self) -> float:
        return self.mean_b - self.mean_a

    @property
    def test(self) -> str:
        return "mcnemar" if self.metric in BINARY_METRICS else "sign flips"


@dataclass(frozen=True, slots=True)
class Comparison:
    """`cases` is the number of cases that both runs have; `only_a` and `only_b` are those that one of them has alone."""

    a: Run
    b: Run
    cases: int
    only_a: int
    only_b: int
    differences: tuple[Difference, ...]


ResultPairs = Sequence[tuple[CaseResult, CaseResult]]


def compare(a: Run, b: Run) -> Comparison:
    """Compare run `b` with run `a`."""
    _require_comparable(a, b)
    results_a, results_b = ({(case.subset, case.case): case for case in run.results} for run in (a, b))
    pairs = [(results_a[key], results_b[key]) for key in results_a if key in results_b]
    if not pairs:
        raise InputError("The two runs have no case in common; run both on the same subsets and types.")
    budgets = sorted(set(pairs[0][0].by_budget) & set(pairs[0][1].by_budget))
    if not budgets:
        raise InputError("The two runs have no budget in common; run both with the same --budgets.")
    only_a, only_b = len(results_a) - len(pairs), len(results_b) - len(pairs)
    return Comparison(a, b, len(pairs), only_a, only_b, tuple(_differences(pairs, budgets)))


def _require_comparable(a: Run, b: Run) -> None:
    for key in ("suite", "data", "options"):
        value_a, value_b = a.header.get(key), b.header.get(key)
        if value_a != value_b:
            raise InputError(f"Only runs with the same {key} can be compared, got {value_a!r} and {value_b!r}.")
    if a.header.get("scoring") != b.header.get("scoring"):
        raise InputError("The two runs were scored by different versions of the evaluation code; run both again.")


def _differences(pairs: ResultPairs, budgets: Sequence[int]) -> Iterator[Difference]:
    evidence_types = list(dict.fromkeys(name for a, _ in pairs for result in a.by_budget.values() for name in result.hits))
    of_evidence = [(evidence_type, metric) for evidence_type in evidence_types for metric in EVIDENCE_METRICS]
    for evidence_type, metric in (*of_evidence, *(("", metric) for metric in CASE_METRICS)):
        for budget in budgets:
            difference = _difference(pairs, metric, budget, evidence_type)
            if difference:
                yield difference


def _difference(pairs: ResultPairs, metric: str, budget: int, evidence_type: str) -> Difference | None:
    scores = [
        (f"{a.subset}/{a.case}", score_a, score_b)
        for a, b in pairs
        if (score_a := case_score(a, metric, budget, evidence_type)) is not None
        and (score_b := case_score(b, metric, budget, evidence_type)) is not None
    ]
    if not scores:
        return None
    n = len(scores)
    improved = tuple(case for case, score_a, score_b in scores if score_b - score_a > EQUAL_TOLERANCE)
    worsened = tuple(case for case, score_a, score_b in scores if score_a - score_b > EQUAL_TOLERANCE)
    if metric in BINARY_METRICS:
        p = mcnemar(len(improved), len(worsened))
    else:
        p = sign_flip_test(score_b - score_a for _, score_a, score_b in scores)
    mean_a = sum(score_a for _, score_a, _ in scores) / n
    mean_b = sum(score_b for _, _, score_b in scores) / n
    return Difference(metric, budget, evidence_type, n, mean_a, mean_b, p, improved, worsened)


def as_json(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as a JSON document. Means are in 0..1."""
    return {
        "schema": SCHEMA_VERSION,
        "suite": comparison.a.suite,
        **{
            name: {
                "system": run.system,
                "fingerprint": run.header.get("fingerprint"),
                "path": str(run.path),
                "is_finished": run.is_finished,
            }
            for name, run in (("a", comparison.a), ("b", comparison.b))
        },
        "cases": comparison.cases,
        "only_a": comparison.only_a,
        "only_b": comparison.only_b,
        "differences": [
            {
                **asdict(difference),
                "mean_a": round(difference.mean_a, DIGITS),
                "mean_b": round(difference.mean_b, DIGITS),
                "difference": round(difference.difference, DIGITS),
                "p": round(difference.p, DIGITS),
                "test": difference.test,
            }
            for difference in comparison.differences
        ],
    }


# --- thresholds ----------------------------------------------------------------------------------------------------

_THRESHOLD_PATTERN = re.compile(r"(?:([\w-]+)\.)?(\w+)(?:@(\w+))?=(\d+(?:\.\d+)?)%?")


@dataclass(frozen=True, slots=True)
class Threshold:
    """The least value of a metric in percent. An empty `evidence_type` means the headline."""

    text: str
    metric: str
    budget: int
    percent: float
    evidence_type: str = ""


def parse_threshold(text: str, budgets: Sequence[int]) -> Threshold:
    """Parse `[EVIDENCE_TYPE.]METRIC@BUDGET=PERCENT`.

    `passed` and `no_forbidden` may leave the budget out; they then use the largest one.
    """
    match = _THRESHOLD_PATTERN.fullmatch(text.strip())
    if not match:
        raise InputError(f"{text!r} is not a threshold; write `recall@4000=90`, `turn.complete@4000=80` or `passed=95`.")
    evidence_type, metric, at, percent = match[1] or "", match[2], match[3], float(match[4])
    if metric not in METRICS:
        raise InputError(f"{text!r}: there is no metric {metric!r}.{near(metric, METRICS)}")
    if metric in EVIDENCE_METRICS and at is None:
        raise InputError(f"{text!r} names no budget; write `{metric}@{max(budgets)}={match[4]}`.")
    if metric in CASE_METRICS and evidence_type:
        raise InputError(f"{text!r}: {metric!r} is a metric of whole cases; write `{metric}={match[4]}`.")
    budget = max(budgets) if at is None else int(at) if at.isdecimal() else 0
    if budget not in budgets:
        raise InputError(f"{text!r}: the budget {at} is not in the run. Budgets: {', '.join(map(str, budgets))}.")
    if percent > 100:
        raise InputError(f"{text!r}: {match[4]} is more than 100 percent.")
    return Threshold(text, metric, budget, percent, evidence_type)


def failed_thresholds(report: Report, thresholds: Sequence[Threshold]) -> list[str]:
    """Return a line for each threshold that a metric is below."""
    lines = []
    for threshold in thresholds:
        evidence_type = "" if threshold.metric in CASE_METRICS else threshold.evidence_type or report.headline
        estimate = report.metrics.get(MetricKey(threshold.metric, threshold.budget, evidence_type))
        if estimate is None:
            raise InputError(f"{threshold.text!r}: the run has no such metric.{_missing_metric_reason(threshold, report)}")
        if estimate.value * 100 < threshold.percent - ROUNDING_TOLERANCE:
            name = f"{evidence_type}.{threshold.metric}" if evidence_type else threshold.metric
            lines.append(f"{name} at {threshold.budget} tokens is {estimate.value:.2%}, below {threshold.percent:g}%")
    return lines


def _missing_metric_reason(threshold: Threshold, report: Report) -> str:
    if threshold.metric in CASE_METRICS:
        has_none = threshold.metric == "no_forbidden" and report.cases
        return " No case names forbidden evidence." if has_none else " It has no cases."
    if threshold.evidence_type and report.evidence_types:
        return near(threshold.evidence_type, report.evidence_types)
    return " Its cases expect no evidence."
