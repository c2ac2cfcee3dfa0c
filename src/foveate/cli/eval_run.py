"""`eval run` and `eval ablate`: suites are asked, rows are kept, and what arrived is reported."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import click

from foveate.cli.call import Call, Function, Verb, complete_profiles, pass_call, say
from foveate.cli.eval_report import FILE, measured, print_reports, print_tables
from foveate.cli.progress import EVERY
from foveate.errors import InputError, near
from foveate.eval.measures import EVIDENCE, MEASURES, RUNS

if TYPE_CHECKING:
    from foveate.eval.ablate import Effect
    from foveate.eval.model import Suite, System
    from foveate.eval.report import Report
    from foveate.eval.rows import Run
    from foveate.eval.run import Progress

ABLATIONS = f"{RUNS}/ablation"
"""Apart from other runs, so that a report or a plot of those is not of every part that was switched off."""
MISSED = 1


def complete_suites(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from foveate.eval.datasets import MODULES

    return [name for name in MODULES if name.startswith(incomplete)]


def listed(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...]:
    """`a,b` as names."""
    return tuple(part.strip() for part in (value or "").split(",") if part.strip())


def budgets_of(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...]:
    """`250,1000` as numbers."""
    parts = listed(ctx, param, value)
    for part in parts:
        if not (part.isascii() and part.isdigit() and int(part)):
            raise click.BadParameter(f"{part!r} is no number of tokens; write as 250,1000,4000.", ctx, param)
    return tuple(sorted({int(part) for part in parts}))


def pairs_of(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> dict[str, str]:
    """`NAME=VALUE`, or what the parameter calls it, as a table."""
    found: dict[str, str] = {}
    for given in values:
        name, equals, value = given.partition("=")
        if not (name and equals):
            raise click.BadParameter(f"{given!r} is no {str(param.metavar).rstrip('.')}.", ctx, param)
        if name in found:
            raise click.BadParameter(f"{name!r} is given twice; keep one of them.", ctx, param)
        found[name] = value
    return found


def asking(function: Function) -> Function:
    """What every verb takes that asks a suite: which cases, at which budgets, and where the rows go."""
    for decorate in (
        click.argument("suite", shell_complete=complete_suites),
        click.argument("path", type=FILE),
        click.option("--budgets", metavar="N,N", callback=budgets_of, help="Token budgets, instead of the suite's."),
        click.option("--limit", type=click.IntRange(1), help="Only so many worlds, the first ones."),
        click.option("--types", metavar="NAME,NAME", callback=listed, help="Only questions of these types."),
        click.option(
            "-o", "options", multiple=True, metavar="NAME=VALUE", callback=pairs_of, help="An option of the suite."
        ),
        click.option("--profile", metavar="NAME", shell_complete=complete_profiles, help="Instead of the suite's."),
        click.option("--overrides", type=FILE, metavar="FILE", help="A TOML file that is laid over the profile."),
        click.option("--out", type=FILE, default=RUNS, show_default=True, metavar="DIR", help="Where rows are kept."),
    )[::-1]:
        function = decorate(function)
    return function


# --- run -----------------------------------------------------------------------------------------------------------


@click.command("run", cls=Verb)
@asking
@click.option("--with", "beside", multiple=True, metavar="NAME,NAME", help="Systems to run beside foveate. Repeatable.")
@click.option("--plot", "plots", multiple=True, type=FILE, metavar="FILE", help="Draw a .png or .svg. Repeatable.")
@measured
@click.option(
    "--fail-under",
    "thresholds",
    multiple=True,
    metavar="THRESHOLD",
    help="Exit 1 below it: [WHAT.]MEASURE@BUDGET=PERCENT, or passed=PERCENT. Repeatable.",
)
@pass_call
def run(
    call: Call,
    suite: str,
    path: Path,
    beside: tuple[str, ...],
    plots: tuple[Path, ...],
    measures: tuple[str, ...],
    thresholds: tuple[str, ...],
    profile: str | None,
    overrides: Path | None,
    **asked: Any,
) -> None:
    """Ask every case of a suite, and report what arrived.

    SUITE is a name from `foveate eval list`, PATH the file or folder with its data. The rows of each world are kept when it
    is done: the same command goes on where it was stopped, and asks nothing twice. `--fail-under fraction@4000=90` is for
    CI; `passed` and `clean` are meant at the largest budget unless they name one. Thresholds are for foveate, not for
    what runs beside it.
    """
    from foveate.eval import datasets, gate, plot
    from foveate.eval.report import report
    from foveate.eval.variants import variant
    from foveate.pipeline.profiles import places

    found = datasets.suite(suite)
    needed = [gate.parsed(one, asked["budgets"] or found.budgets) for one in thresholds]
    for file in plots:
        plot.check(file)
    ours = variant(found, profile, overrides, places(call.place().root))
    systems = [ours, *(one for one in systems_of(beside) if one.name != ours.name)]
    reports = [report(one, found.top) for one in runs_of(found, path, systems, **asked)]
    show = partial(print_reports, call, reports, measures, plots=list(map(str, plots)))
    try:
        _check_types(reports[0], asked["types"])
        missed = gate.missed(reports[0], needed)
    except InputError:
        show(missed=[])  # what took long is not lost to a slip in an option
        raise
    show(missed=missed)
    for file in plots:
        plot.plot(reports, file, measures=measures or EVIDENCE)
    for line in missed:
        say(line)
    if missed:
        raise click.exceptions.Exit(MISSED)


def _check_types(report: Report, types: Sequence[str]) -> None:
    for type in types:
        if type not in report.types:
            raise InputError(f"No case of {report.run.suite!r} has the type {type!r}.{near(type, report.types)}")


def systems_of(named: Sequence[str]) -> list[System]:
    """The systems of `--with`, each able to run here."""
    from foveate.eval import systems

    specs = systems.specs(named)
    for spec in specs:
        if needed := systems.needs(spec):
            raise InputError(f"The system {spec!r} cannot run here yet: {needed}")
    return [systems.system(spec) for spec in specs]


def runs_of(
    suite: Suite,
    path: Path,
    systems: Sequence[System],
    *,
    budgets: tuple[int, ...],
    limit: int | None,
    types: tuple[str, ...],
    options: dict[str, str],
    out: Path,
) -> list[Run]:
    """The rows of each system, asked or already there."""
    from foveate.eval.run import check, run

    for system in systems:
        check(suite, system, path, options)
    with watched(out) as progress:
        ask = partial(run, suite, budgets=budgets or None, limit=limit, types=types, options=options, progress=progress)
        runs = [ask(system, path, out) for system in systems]
    if not runs[0].rows:
        of_them = f" of the type {' or '.join(map(repr, types))}" if types else ""
        raise InputError(f"{str(path)!r} holds no case{of_them} that can be asked.")
    return runs


@contextmanager
def watched(out: Path) -> Iterator[Progress | None]:
    """A line that counts, for whoever sits before it; Ctrl-C says how to go on. How many worlds there are would have to be
    counted first, and some data sets are large."""
    from foveate.eval.tables import counted

    drawn = 0.0

    def progress(system: str, worlds: int, cases: int) -> None:
        nonlocal drawn
        if monotonic() - drawn > EVERY:
            drawn = monotonic()
            said = f"foveate: {system}, {counted(worlds, 'world')}, {counted(cases, 'case')}"
            print(f"\r{said}\033[K", end="", file=sys.stderr, flush=True)

    try:
        yield progress if sys.stderr.isatty() and os.environ.get("TERM") != "dumb" else None
    except KeyboardInterrupt:
        say(f"stopped. What is done is kept in {str(out)!r}: the same command goes on from there.")
        raise
    finally:
        if drawn:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


# --- ablate --------------------------------------------------------------------------------------------------------


@click.command("ablate", cls=Verb)
@click.argument("data", metavar="SUITE=PATH...", nargs=-1, required=True, callback=pairs_of)
@click.option("--only", multiple=True, metavar="PATTERN", help="Parts whose names fit, such as 'feature *'. Repeatable.")
@click.option("--budgets", metavar="N,N", callback=budgets_of, default="1000,4000", show_default=True, help="Token budgets.")
@click.option("--limit", type=click.IntRange(1), help="Only so many worlds of each suite, the first ones.")
@click.option(
    "-o", "options", multiple=True, metavar="NAME=VALUE", callback=pairs_of, help="An option of the suites that have it."
)
@click.option("--measure", type=click.Choice(MEASURES), default="fraction", show_default=True)
@click.option("--out", type=FILE, default=ABLATIONS, show_default=True, metavar="DIR", help="Where rows are kept.")
@pass_call
def ablate(
    call: Call,
    data: dict[str, str],
    only: tuple[str, ...],
    budgets: tuple[int, ...],
    limit: int | None,
    options: dict[str, str],
    measure: str,
    out: Path,
) -> None:
    """Switch off each feature, field, slot, source and stage in turn, and say what is lost without it.

    A part that changes nothing, or helps when it is off, does not earn its place on these data. Every part is a whole run:
    the same command goes on where it was stopped.
    """
    from dataclasses import asdict

    from foveate.eval import datasets, tables
    from foveate.eval.ablate import ablate as switched
    from foveate.eval.ablate import check, effects

    found: list[Effect] = []
    chosen = [(datasets.suite(name), Path(path)) for name, path in data.items()]
    known = [option for suite, _ in chosen for option in suite.options]
    for option in options:
        if option not in known:
            raise InputError(f"No suite here has an option {option!r}.{near(option, known)}")
    check(only, [suite for suite, _ in chosen])
    for suite, path in chosen:
        own = {key: value for key, value in options.items() if key in suite.options}
        with watched(out) as progress:
            runs = switched(suite, path, out, only=only, budgets=budgets, limit=limit, options=own, progress=progress)
        found += effects(runs)
    if call.as_json:
        call.print_json({"effects": [asdict(one) for one in found]})
        return
    shown = [one for one in found if one.measure == measure]
    if not shown:
        raise InputError(f"No case has a figure {measure!r}; name another --measure.")
    print_tables(tables.ablated(shown, measure))
    if any(one.is_beyond_chance for one in shown):
        say("* beyond chance: p below 0.05 for this figure alone; of twenty such figures one is so by chance.")
