"""Metrics: is context management working, and how has that changed?"""

from __future__ import annotations

from datetime import date, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from foveate.engine import Engine
from foveate.errors import FoveateError
from foveate.eval.measures import EVIDENCE, RUNS
from foveate.eval.report import Figure, Report, report
from foveate.eval.rows import Run, read_all
from foveate.receipts.metrics import LATEST
from foveate.server.inspector.page import Action, Asked, Page

WORDS = {
    "context_relevance": "how relevant what was found is to the question, on average",
    "budget_utilisation": "the share of the room that is used",
    "refresh_rate": "contexts computed anew, per turn",
    "recall_precision": "the share of found items that an answer used or a person called useful",
    "cold_start_ms": "milliseconds that 95 of 100 contexts are computed within",
    "memory_growth_per_day": "records that come to be each day",
    "fact_confirmation": "the share of facts that were confirmed",
}
"""004's table, in words."""


def shown(asked: Asked) -> dict[str, Any]:
    engine = asked.engine
    over_time = engine.metrics_over_time()
    contexts = {day["day"]: day["contexts"] for day in over_time["days"]}
    return {
        "metrics": [{"name": name, "means": WORDS[name], **metric} for name, metric in engine.metrics().items()],
        "latest": LATEST,
        "days": over_time["days"],
        "activity": [
            {"day": day, "contexts": contexts.get(day, 0), "records": over_time["growth"].get(day, 0)}
            for day in _every_day(*contexts, *over_time["growth"])
        ],
        "cut": over_time["cut"],
        "evaluations": evaluations(engine) if asked.caller.who.is_owner else [],
        "whole": asked.caller.who.is_owner,
    }


def _every_day(*days: str) -> list[str]:
    """From the first to the last of these days, also those on which nothing happened."""
    if not days:
        return []
    first, last = (date.fromisoformat(day) for day in (min(days), max(days)))
    return [(first + timedelta(days=n)).isoformat() for n in range((last - first).days + 1)]


def evaluations(engine: Engine) -> list[dict[str, Any]]:
    """The evidence curves of the latest runs in the project's folder: of each suite, foveate's and its peers'."""
    if engine.root is None:
        return []
    folder = engine.root / RUNS
    files = sorted(folder.glob("*.jsonl")) if folder.is_dir() else []
    return _curves(folder, tuple((file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files))


@lru_cache(maxsize=4)
def _curves(folder: Path, files: tuple[tuple[str, int, int], ...]) -> list[dict[str, Any]]:
    """Read again only where a file has changed: a run may hold thousands of cases."""
    try:
        runs = read_all(folder) if files else []
    except FoveateError:
        return []
    suites: dict[str, list[Run]] = {}
    for run in runs:
        suites.setdefault(run.suite, []).append(run)
    return [_suite(suite, [report(run) for run in group]) for suite, group in suites.items()]


def _suite(suite: str, reports: list[Report]) -> dict[str, Any]:
    first = reports[0]
    return {
        "suite": suite,
        "what": first.headline,
        "cases": first.cases,
        "budgets": list(first.budgets),
        "systems": [{"system": each.name, **{measure: _curve(each, measure) for measure in EVIDENCE}} for each in reports],
    }


def _curve(each: Report, measure: str) -> list[float | None]:
    found = [each.figures.get(Figure(measure, budget, each.headline)) for budget in each.budgets]
    return [None if figure is None else round(figure.value, 4) for figure in found]


PAGES: tuple[Page, ...] = (
    Page("metrics", "Metrics", shown, "memory:read", "Is it working: figures against their targets, over time."),
)
ACTIONS: tuple[Action, ...] = ()
