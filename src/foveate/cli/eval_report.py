"""`eval report`, `eval compare` and `eval plot`: what runs hold, in tables and pictures. Nothing is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foveate.cli.call import Call, Verb, pass_call
from foveate.errors import InputError
from foveate.eval.measures import EVIDENCE, MEASURES

if TYPE_CHECKING:
    from foveate.eval.report import Report
    from foveate.eval.rows import Run
    from foveate.eval.tables import Table

FILE = click.Path(path_type=Path)

measured = click.option(
    "--measure", "measures", multiple=True, type=click.Choice(MEASURES), help="Which, instead of all. Repeatable."
)


@click.command("report", cls=Verb)
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=FILE)
@measured
@pass_call
def report(call: Call, runs: tuple[Path, ...], measures: tuple[str, ...]) -> None:
    """Print the figures of runs.

    RUN is a file that `foveate eval run` wrote, or a folder of them: then the latest run of each suite, beside the latest
    ones of other systems on the same cases.
    """
    print_reports(call, _reports(runs), measures)


@click.command("compare", cls=Verb)
@click.argument("a", type=FILE)
@click.argument("b", type=FILE)
@measured
@click.option("--cases", is_flag=True, help="Name the cases that B won and lost.")
@pass_call
def compare(call: Call, a: Path, b: Path, measures: tuple[str, ...], cases: bool) -> None:
    """Say how run B differs from run A, case by case.

    Both are of one suite with the same data and options, scored by the same code. Shares of cases have McNemar's exact
    test, fractions one by random signs. A folder will do where it holds one run.
    """
    from foveate.eval.compare import as_json
    from foveate.eval.compare import compare as compared

    found = compared(_one(a), _one(b))
    if call.as_json:
        call.print_json(as_json(found))
        return
    from foveate.cli.render import print_text
    from foveate.eval import tables

    print_text(f"{found.a.suite}: {tables.counted(found.cases, 'case')} that both have")
    for name, run, path, alone in (("a", found.a, a, found.only_a), ("b", found.b, b, found.only_b)):
        notes = [*([f"{alone:,} cases more"] if alone else []), *([short] if (short := tables.shortfall(run)) else [])]
        print_text(f"{name}  {run.system}  {path}" + (f"  ({', '.join(notes)})" if notes else ""))
    print_tables(tables.compared(found, measures or MEASURES))
    if cases:
        print_text("", *tables.changed(found, measures or MEASURES))


@click.command("plot", cls=Verb)
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=FILE)
@click.option("--to", "to", required=True, type=FILE, metavar="FILE", help="A .png or .svg.")
@click.option("--by-type", is_flag=True, help="A panel for each type of question, of one measure.")
@click.option("--what", default="", metavar="NAME", help="Which evidence: turn, session, file, ...; else the first.")
@measured
@pass_call
def plot(call: Call, runs: tuple[Path, ...], to: Path, by_type: bool, what: str, measures: tuple[str, ...]) -> None:
    """Draw evidence against the token budget.

    RUN is a file that `foveate eval run` wrote, or a folder of them. Needs matplotlib: pip install 'foveate[eval]'.
    """
    from foveate.eval.plot import plot as draw

    chosen = measures or (("fraction",) if by_type else EVIDENCE)
    draw(_reports(runs), to, measures=chosen, what=what, by_type=by_type)
    if call.as_json:
        call.print_json({"plot": str(to)})
    else:
        click.echo(str(to))


def _reports(paths: Sequence[Path]) -> list[Report]:
    from foveate.eval.datasets import MODULES, suite
    from foveate.eval.report import report
    from foveate.eval.rows import read_all

    runs = {run.path: run for path in paths for run in read_all(path)}
    times = Counter((run.suite, run.system) for run in runs.values())
    reports = [report(run, suite(run.suite).top if run.suite in MODULES else {}) for run in runs.values()]
    return [
        replace(one, label=f"{one.name} ({one.run.path})") if times[one.run.suite, one.run.system] > 1 else one
        for one in reports
    ]


def _one(path: Path) -> Run:
    from foveate.eval.rows import read_all

    runs = read_all(path)
    if len(runs) > 1:
        names = ", ".join(run.path.name for run in runs)
        raise InputError(f"{str(path)!r} holds several runs ({names}); name one of them.")
    return runs[0]


def print_reports(call: Call, reports: Sequence[Report], measures: Sequence[str], **more: Any) -> None:
    if call.as_json:
        from foveate.eval.report import as_json

        call.print_json({"reports": list(map(as_json, reports)), **more})
        return
    from foveate.cli.render import print_text
    from foveate.eval import tables

    for n, suite in enumerate(dict.fromkeys(one.run.suite for one in reports)):
        shown = [one for one in reports if one.run.suite == suite]
        print_text(*([""] if n else []), tables.summary(shown))
        print_tables(tables.tables(shown, measures))


def print_tables(tables: Iterable[Table]) -> None:
    from foveate.cli.render import print_lines, table, title

    for one in tables:
        print_lines([[], title(one.title), *table(one.heads, one.rows, left=one.left)])
