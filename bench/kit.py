"""Run a suite with several systems, print the metrics, and check targets. Results are stored under bench/out/eval/.

Environment variables:
    FOVEATE_BENCH_DATA     a folder with the data sets
    FOVEATE_BENCH_METHODS  comma-separated systems to measure instead of a benchmark's own
    FOVEATE_EVAL_PEERS     a virtual environment with semble and aider-chat
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic

from foveate.cli.eval_text import print_tables
from foveate.eval import datasets, systems
from foveate.eval.compare import failed_thresholds, parse_threshold
from foveate.eval.model import Suite
from foveate.eval.report import MetricKey, Report, as_json, report
from foveate.eval.run import run
from foveate.eval.tables import report_tables

OUT = Path(__file__).parent / "out" / "eval"
PROGRESS_INTERVAL_S = 10.0

SUITES = {
    "swebench": "bench.datasets.swebench:SWEBENCH",
    "cosqa": "bench.datasets.cosqa:COSQA",
    "facts": "bench.datasets.facts:FACTS",
    "precision": "bench.datasets.precision:PRECISION",
}
"""The suites of this folder by their short names."""


def load_suite(name: str) -> Suite:
    return datasets.load_suite(SUITES.get(name, name))


def measure(
    name: str, specs: Sequence[str], data: Path, *, budgets: Sequence[int] = (), options: Mapping[str, str] | None = None
) -> dict[str, Report]:
    """Return and print the reports of systems on a suite. Systems that cannot run here are skipped with a message."""
    chosen = systems.split_specs([os.environ.get("FOVEATE_BENCH_METHODS", "")])
    suite = load_suite(name)
    reports = {}
    for spec in chosen or specs:
        if missing := systems.missing_requirement(spec):
            print(f"{spec} is skipped: {missing}", file=sys.stderr)
            continue
        system = systems.open_system(spec)
        reports[spec] = report(run(suite, system, data, OUT, budgets=budgets or None, options=options, progress=Progress()))
    show(list(reports.values()))
    return reports


class Progress:
    """Prints a line every few seconds."""

    def __init__(self) -> None:
        self.printed = monotonic()

    def __call__(self, system: str, subsets: int, cases: int) -> None:
        if monotonic() - self.printed >= PROGRESS_INTERVAL_S:
            self.printed = monotonic()
            print(f"{system}: {cases} cases", file=sys.stderr, flush=True)


def show(reports: Sequence[Report]) -> None:
    if reports:
        print_tables(report_tables(reports, ("complete", "recall", "passed", "no_forbidden")))


def value(report: Report | None, key: MetricKey) -> float | None:
    estimate = report.metrics.get(key) if report else None
    return estimate.value if estimate else None


def outcome(reports: Mapping[str, Report], targets: Sequence[str]) -> dict:
    """Return what a benchmark writes: the reports, and the targets that foveate misses (thresholds of `eval run`)."""
    ours = reports.get("foveate")
    missed = failed_thresholds(ours, [parse_threshold(target, ours.budgets) for target in targets]) if ours else []
    for name, one in reports.items():
        over = [usage for usage in one.usage if usage.over_budget]
        missed += [f"{name}: {usage.over_budget} prompts are over {usage.budget} tokens" for usage in over]
    return {"reports": {name: as_json(one) for name, one in reports.items()}, "missed": missed}


def is_missing(folder: Path) -> bool:
    """Return whether data is missing, with a message."""
    if folder.is_dir():
        return False
    print(f"{folder.name} is missing; set FOVEATE_BENCH_DATA to a folder that contains it.", file=sys.stderr)
    return True
