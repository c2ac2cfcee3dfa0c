"""Results of evaluations as text, for people.

The commands import this module when they print: the evaluation takes as long to import as a command with its help.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from foveate.cli.call import Call
from foveate.cli.render import print_lines, print_text, table, title
from foveate.eval import compare, systems, tables
from foveate.eval.datasets import SUITES, load_suite
from foveate.eval.model import METRICS
from foveate.eval.report import Report, as_json, report
from foveate.eval.rows import Run
from foveate.text.format import pluralize


def print_catalog(call: Call) -> None:
    """Print the suites and the systems, with what is missing for those that cannot run here."""
    suites = [load_suite(name) for name in SUITES]
    types = {name: systems.system_type_of(name) for name in systems.SYSTEMS}
    missing = {name: systems.missing_requirement(name) for name in types}
    if call.as_json:
        call.print_json(
            {
                "suites": [
                    {"name": one.name, "description": one.description, "options": dict(one.options)} for one in suites
                ],
                "systems": [
                    {"name": name, "description": one.description, "missing": missing[name]} for name, one in types.items()
                ],
            }
        )
        return
    rows: list[tuple[str, str]] = []
    for one in suites:
        rows += [(one.name, one.description)]
        rows += [("", f"-o {name}=...: {meaning}") for name, meaning in one.options.items()]
    print_lines([title("Suites"), *table(("name", "data"), rows, left=2)])
    ready = [(name, one.description, missing[name] or "ready") for name, one in types.items()]
    print_lines([[], title("Systems"), *table(("name", "works on", "here"), ready, left=3)])


def labelled_reports(runs: Sequence[Run]) -> list[Report]:
    """Return the reports of runs. Runs of one suite and system are labelled with their files."""
    counts = Counter((run.suite, run.system) for run in runs)
    reports = [report(run) for run in runs]
    return [
        replace(one, label=f"{one.name} ({one.run.path})") if counts[one.run.suite, one.run.system] > 1 else one
        for one in reports
    ]


def print_reports(call: Call, reports: Sequence[Report], metrics: Sequence[str], **more: object) -> None:
    if call.as_json:
        call.print_json({"reports": list(map(as_json, reports)), **more})
        return
    for n, suite in enumerate(dict.fromkeys(one.run.suite for one in reports)):
        of_suite = [one for one in reports if one.run.suite == suite]
        print_text(*([""] if n else []), tables.summary(of_suite))
        print_tables(tables.report_tables(of_suite, metrics))


def print_comparison(comparison: compare.Comparison, paths: Sequence[Path], metrics: Sequence[str], cases: bool) -> None:
    print_text("", f"{pluralize(comparison.cases, 'case')} in both runs")
    sides = (("a", comparison.a, comparison.only_a), ("b", comparison.b, comparison.only_b))
    for path, (name, run, alone) in zip(paths, sides, strict=True):
        notes = [*([f"{alone:,} more cases"] if alone else []), tables.incomplete_note(run)]
        note = ", ".join(filter(None, notes))
        print_text(f"{name}  {run.system}  {path}" + (f"  ({note})" if note else ""))
    print_tables(tables.comparison_tables(comparison, metrics or METRICS))
    if cases:
        print_text("", *tables.changed_case_lines(comparison, metrics or METRICS))


def print_tables(several: Iterable[tables.Table]) -> None:
    for one in several:
        print_lines([[], title(one.title), *table(one.headers, one.rows, left=one.left_aligned)])
