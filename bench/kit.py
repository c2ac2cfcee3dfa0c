"""The big suites through the evaluation kit: rows under bench/out/eval/, where a stopped run goes on; figures; targets.

What the environment says:
    FOVEATE_BENCH_DATA     a folder with the data sets
    FOVEATE_BENCH_METHODS  systems to measure, with commas between, in place of a benchmark's own
    FOVEATE_EVAL_PEERS     a virtual environment with semble and aider-chat
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic

from foveate.cli.eval_report import print_tables
from foveate.eval import gate, systems
from foveate.eval.datasets import suite
from foveate.eval.report import Figure, Report, as_json, report
from foveate.eval.run import run
from foveate.eval.tables import tables

OUT = Path(__file__).parent / "out" / "eval"
TOLD_EVERY = 10.0
"""Seconds between two lines of progress."""


def measured(
    name: str, specs: Sequence[str], data: Path, *, budgets: Sequence[int] = (), options: Mapping[str, str] | None = None
) -> dict[str, Report]:
    """The reports of systems on a suite, printed; those that cannot run here are left out, with the reason."""
    given = systems.specs([os.environ.get("FOVEATE_BENCH_METHODS", "")])
    chosen = suite(name)
    found = {}
    for spec in given or specs:
        if reason := systems.needs(spec):
            print(f"{spec} is left out: {reason}", file=sys.stderr)
            continue
        rows = run(chosen, systems.system(spec), data, OUT, budgets=budgets or None, options=options, progress=Progress())
        found[spec] = report(rows, chosen.top)
    show(list(found.values()))
    return found


class Progress:
    """A line now and then, for somebody who waits."""

    def __init__(self) -> None:
        self.told = monotonic()

    def __call__(self, system: str, worlds: int, cases: int) -> None:
        if monotonic() - self.told >= TOLD_EVERY:
            self.told = monotonic()
            print(f"{system}: {cases} cases", file=sys.stderr, flush=True)


def show(reports: Sequence[Report]) -> None:
    if reports:
        print_tables(tables(reports, ("all", "fraction", "passed", "clean")))


def value(report: Report | None, figure: Figure) -> float | None:
    found = report.figures.get(figure) if report else None
    return found.value if found else None


def judged(reports: Mapping[str, Report], targets: Sequence[str]) -> dict:
    """What a benchmark writes: the reports, and what foveate misses of its targets, which are thresholds of `eval run`."""
    ours = reports.get("foveate")
    missed = gate.missed(ours, [gate.parsed(target, ours.budgets) for target in targets]) if ours else []
    for name, one in reports.items():
        missed += [f"{name}: {spent.over} packs are over {spent.budget} tokens" for spent in one.spent if spent.over]
    return {"reports": {name: as_json(one) for name, one in reports.items()}, "missed": missed}


def absent(folder: Path) -> bool:
    """Whether data is not there; says so."""
    if folder.is_dir():
        return False
    print(f"{folder.name} is not there; set FOVEATE_BENCH_DATA to a folder that holds it.", file=sys.stderr)
    return True
