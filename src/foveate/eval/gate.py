"""Figures that must be reached, for CI: `[WHAT.]MEASURE@BUDGET=PERCENT`, `passed=PERCENT` or `clean=PERCENT`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from foveate.errors import InputError, near
from foveate.eval.measures import EVIDENCE, MEASURES, WHOLE
from foveate.eval.report import Figure, Report

_FORM = re.compile(r"(?:([\w-]+)\.)?(\w+)(?:@(\w+))?=(\d+(?:\.\d+)?)%?")
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Threshold:
    """What a figure must reach, in percent. `what` is the headline where it is empty."""

    text: str
    measure: str
    budget: int
    percent: float
    what: str = ""


def parsed(text: str, budgets: Sequence[int]) -> Threshold:
    """A threshold as it is written; `budgets` are those of the run, and the largest is meant where none need be named."""
    match = _FORM.fullmatch(text.strip())
    if not match:
        raise InputError(f"{text!r} is no threshold; write `fraction@4000=90`, `turn.all@4000=80` or `passed=95`.")
    what, measure, at, percent = match[1] or "", match[2], match[3], float(match[4])
    if measure not in MEASURES:
        raise InputError(f"{text!r}: there is no measure {measure!r}.{near(measure, MEASURES)}")
    if measure in EVIDENCE and at is None:
        raise InputError(f"{text!r} names no budget; write `{measure}@{max(budgets)}={match[4]}`.")
    if measure in WHOLE and what:
        raise InputError(f"{text!r}: {measure!r} is of the whole case; write `{measure}={match[4]}`.")
    budget = max(budgets) if at is None else int(at) if at.isdecimal() else 0
    if budget not in budgets:
        raise InputError(f"{text!r}: the budget {at} is not run; these are: {', '.join(map(str, budgets))}.")
    if percent > 100:
        raise InputError(f"{text!r}: {match[4]} is more than 100 percent.")
    return Threshold(text, measure, budget, percent, what)


def missed(report: Report, thresholds: Sequence[Threshold]) -> list[str]:
    """A line for each threshold that a figure is below."""
    lines = []
    for threshold in thresholds:
        what = "" if threshold.measure in WHOLE else threshold.what or report.headline
        found = report.figures.get(Figure(threshold.measure, threshold.budget, what))
        if found is None:
            raise InputError(f"{threshold.text!r}: the run has no such figure.{_instead(threshold, report)}")
        if found.value * 100 < threshold.percent - ROUNDING:
            name = f"{what}.{threshold.measure}" if what else threshold.measure
            lines.append(f"{name} at {threshold.budget} tokens is {found.value:.2%}, below {threshold.percent:g}%")
    return lines


def _instead(threshold: Threshold, report: Report) -> str:
    if threshold.measure in WHOLE:
        return " No case says what is unwanted." if threshold.measure == "clean" and report.cases else " It has no cases."
    return near(threshold.what, report.whats) if threshold.what and report.whats else " It has no evidence to look for."
