"""The health page: metrics against their targets, and what `foveate doctor` finds."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from foveate import __version__
from foveate.engine import Engine
from foveate.project.project import locate_project
from foveate.receipts.metrics import MAX_CONTEXTS
from foveate.server.doctor import Findings, check_environment
from foveate.server.inspector.page import Page, PageRequest

MAX_DAYS = 30

METRIC_DESCRIPTIONS = {
    "context_relevance": "average relevance of the items found for a query",
    "budget_utilisation": "share of the available tokens that is used",
    "refresh_rate": "contexts computed again, per turn",
    "recall_precision": "share of the items that an answer used or a person marked as useful",
    "cold_start_ms": "milliseconds within which 95 of 100 contexts are computed",
    "memory_growth_per_day": "new records a day",
    "fact_confirmation": "share of the facts that were confirmed",
}


def health_page(request: PageRequest) -> dict[str, Any]:
    """Show metrics, problems and warnings. The store file is read completely only if `full_check` is set."""
    engine, owner = request.engine, request.caller.principal.is_owner
    full_check = request.flag("full_check") and request.has_scope("admin")
    findings = Findings()
    if owner:  # paths, roles and hooks concern only the owner of the service
        _run_checks(engine, findings, full_check)
    stats = engine.store.stats(days=MAX_DAYS)
    return {
        "metrics": [
            {"name": name, "description": METRIC_DESCRIPTIONS[name], **asdict(metric)}
            for name, metric in stats.metrics.items()
        ],
        "latest": MAX_CONTEXTS,
        "days": [day for day in stats.days if day.contexts],
        "cut": stats.days_cut,
        "problems": findings.problems,
        "warnings": findings.warnings,
        "facts": {name: str(value) for name, value in findings.facts.items() if value not in (None, "")},
        "stats": stats,
        "full_check": full_check,
        "is_owner": owner,
        "version": __version__,
    }


def _run_checks(engine: Engine, findings: Findings, full_check: bool) -> None:
    if full_check:
        for prefix, store in (("", engine.store.data.store), ("Your personal store: ", engine.store.data.personal)):
            if store is not None:
                health = store.health()
                facts = {} if prefix else dict(health.facts)
                findings.add(facts, [f"{prefix}{problem}" for problem in health.problems])
    if engine.code.root is not None:
        more = check_environment(engine, locate_project(engine.code.root), engine.code.root)
        findings.add(more.facts, more.problems, more.warnings)


PAGES = (Page("health", "Health", health_page),)
