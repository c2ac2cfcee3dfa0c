"""`eval`: how much of the needed evidence arrives within a budget, on public data or your own. No store is needed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foveate.errors import InputError
from foveate.front.cli.asking import LAST
from foveate.front.cli.calling import Call, Function, Verb, complete_profiles, pass_call, say, scoped

if TYPE_CHECKING:
    from foveate.eval.ablate import Effect
    from foveate.eval.model import Suite, System
    from foveate.eval.report import Report
    from foveate.eval.run import Progress, Run

EVIDENCE = ("any", "all", "fraction")
MEASURES = (*EVIDENCE, "clean", "passed")
RUNS = "eval-runs"
MISSED = 1
FILE = click.Path(path_type=Path)


@click.group("eval")
def evaluate() -> None:
    """Measure how much of the needed evidence arrives."""


def complete_suites(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from foveate.eval.suites import MODULES

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


def options_of(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> dict[str, str]:
    """`NAME=VALUE` as a table."""
    pairs = [value.partition("=") for value in values]
    for name, equals, _ in pairs:
        if not (name and equals):
            raise click.BadParameter(f"{name!r} is no NAME=VALUE.", ctx, param)
    return {name: value for name, _, value in pairs}


def asking(function: Function) -> Function:
    """What every verb takes that asks a suite: which cases, at which budgets, and where the rows go."""
    for decorate in (
        click.argument("suite", shell_complete=complete_suites),
        click.argument("path", type=FILE),
        click.option("--budgets", metavar="N,N", callback=budgets_of, help="Token budgets, instead of the suite's."),
        click.option("--limit", type=click.IntRange(1), help="Only so many worlds, the first ones."),
        click.option("--types", metavar="NAME,NAME", callback=listed, help="Only questions of these types."),
        click.option(
            "-o", "options", multiple=True, metavar="NAME=VALUE", callback=options_of, help="An option of the suite."
        ),
        click.option("--profile", metavar="NAME", shell_complete=complete_profiles, help="Instead of the suite's."),
        click.option("--overrides", type=FILE, metavar="FILE", help="A TOML file that is laid over the profile."),
        click.option("--out", type=FILE, default=RUNS, show_default=True, metavar="DIR", help="Where rows are kept."),
    )[::-1]:
        function = decorate(function)
    return function


measured = click.option(
    "--measure", "measures", multiple=True, type=click.Choice(MEASURES), help="Which, instead of all. Repeatable."
)


# --- run -----------------------------------------------------------------------------------------------------------


@evaluate.command("run", cls=Verb)
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
    from foveate.eval import gate, plot, suites
    from foveate.eval.report import report
    from foveate.eval.variants import variant
    from foveate.profiles import places

    found = suites.suite(suite)
    needed = [gate.parsed(one, asked["budgets"] or found.budgets) for one in thresholds]
    for file in plots:
        plot.check(file)
    systems: list[System] = [variant(found, profile, overrides, places(call.place().root)), *systems_of(beside)]
    reports = [report(one, found.top) for one in runs_of(found, path, systems, **asked)]
    for file in plots:
        plot.plot(reports, file, measures=measures or EVIDENCE)
    missed = gate.missed(reports[0], needed)
    _print_reports(call, reports, measures, plots=list(map(str, plots)), missed=missed)
    for line in missed:
        say(line)
    if missed:
        raise click.exceptions.Exit(MISSED)


def systems_of(named: Sequence[str]) -> list[System]:
    """The systems of `--with`, each able to run here. A comma may also stand inside what is told to one: `a:b=c,d=e`."""
    from foveate.eval import systems

    specs: list[str] = []
    for part in (part.strip() for value in named for part in value.split(",") if part.strip()):
        if specs and "=" in part.partition(":")[0]:
            specs[-1] += f",{part}"
        else:
            specs.append(part)
    for spec in specs:
        if needed := systems.needs(spec):
            raise InputError(f"The system {spec!r} cannot run here yet: {needed}")
    return [systems.system(spec) for spec in dict.fromkeys(specs)]


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
    """The rows of each system, asked or already there; Ctrl-C says how to go on."""
    from foveate.eval.run import run

    try:
        with watched(suite, path, options, limit) as progress:
            ask = partial(run, suite, budgets=budgets or None, limit=limit, types=types, options=options, progress=progress)
            runs = [ask(system, path, out) for system in systems]
    except KeyboardInterrupt:
        say(f"stopped. What is done is kept in {str(out)!r}: the same command goes on from there.")
        raise
    seen = {row.type for row in runs[0].rows}
    for type in types:
        if type not in seen:
            raise InputError(f"No case of {suite.name!r} has the type {type!r}; without --types, all are reported.")
    if not seen:
        raise InputError(f"{str(path)!r} holds no case that can be asked.")
    return runs


@contextmanager
def watched(suite: Suite, path: Path, options: dict[str, str], limit: int | None) -> Iterator[Progress | None]:
    """A bar for whoever sits before it; nothing is counted for nobody."""
    if not sys.stderr.isatty() or not path.exists():
        yield None
        return
    from foveate.eval.run import worlds
    from foveate.front.cli.progress import Bar

    total = sum(1 for _ in worlds(suite, path, options, limit))
    bar = Bar(unit="worlds")

    def progress(system: str, done: int, cases: int) -> None:
        bar.doing, bar.unit = system, f"worlds, {cases:,} cases"
        bar(done, total)

    try:
        yield progress
    finally:
        bar.close()


# --- report, compare, plot -----------------------------------------------------------------------------------------


@evaluate.command("report", cls=Verb)
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=FILE)
@measured
@pass_call
def report(call: Call, runs: tuple[Path, ...], measures: tuple[str, ...]) -> None:
    """Print the figures of runs.

    RUN is a file that `foveate eval run` wrote, or a folder of them: then the latest of each suite and system.
    """
    _print_reports(call, _reports(runs), measures)


@evaluate.command("compare", cls=Verb)
@click.argument("a", type=FILE)
@click.argument("b", type=FILE)
@measured
@click.option("--cases", is_flag=True, help="Name the cases that B won and lost.")
@pass_call
def compare(call: Call, a: Path, b: Path, measures: tuple[str, ...], cases: bool) -> None:
    """Say how run B differs from run A, case by case.

    Both are of one suite with the same data. Shares of cases have McNemar's exact test, fractions one by random signs. A
    folder will do where it holds one run.
    """
    from foveate.eval.compare import as_json
    from foveate.eval.compare import compare as compared

    found = compared(_one(a), _one(b))
    if call.as_json:
        call.print_json(as_json(found))
        return
    from foveate.eval import tables
    from foveate.front.cli.show import print_text

    print_text(f"{found.a.suite}: {tables.counted(found.cases, 'case')} that both have")
    for name, run, path, alone in (("a", found.a, a, found.only_a), ("b", found.b, b, found.only_b)):
        print_text(f"{name}  {run.system}  {path}" + (f"  ({alone:,} cases more)" if alone else ""))
    _print_tables(tables.compared(found, measures or EVIDENCE))
    if cases:
        print_text("", *tables.changed(found, measures or EVIDENCE))


@evaluate.command("plot", cls=Verb)
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
    from foveate.eval.report import report
    from foveate.eval.run import read_all
    from foveate.eval.suites import MODULES, suite

    runs = {run.path: run for path in paths for run in read_all(path)}
    return [report(run, suite(run.suite).top if run.suite in MODULES else {}) for run in runs.values()]


def _one(path: Path) -> Run:
    from foveate.eval.run import read_all

    runs = read_all(path)
    if len(runs) > 1:
        names = ", ".join(run.path.name for run in runs)
        raise InputError(f"{str(path)!r} holds several runs ({names}); name one of them.")
    return runs[0]


def _print_reports(call: Call, reports: Sequence[Report], measures: Sequence[str], **more: Any) -> None:
    if call.as_json:
        from foveate.eval.report import as_json

        call.print_json({"reports": list(map(as_json, reports)), **more})
        return
    from foveate.eval import tables
    from foveate.front.cli.show import print_text

    for n, suite in enumerate(dict.fromkeys(one.run.suite for one in reports)):
        shown = [one for one in reports if one.run.suite == suite]
        print_text(*([""] if n else []), tables.summary(shown))
        _print_tables(tables.tables(shown, measures or EVIDENCE))


def _print_tables(tables: Any) -> None:
    from foveate.front.cli.show import print_lines, table, title

    for one in tables:
        print_lines([[], title(one.title), *table(one.heads, one.rows, left=one.left)])


# --- list, record, ablate ------------------------------------------------------------------------------------------


@evaluate.command("list", cls=Verb)
@pass_call
def list_(call: Call) -> None:
    """List the suites and the systems, with what those need that cannot run yet."""
    from foveate.eval import suites, systems

    found = [suites.suite(name) for name in suites.MODULES]
    known = [
        {"name": name, "about": _about(module), "needs": systems.needs(name)} for name, module in systems.MODULES.items()
    ]
    if call.as_json:
        told = [{"name": one.name, "about": one.about, "options": dict(one.options)} for one in found]
        call.print_json({"suites": told, "systems": known})
        return
    from foveate.front.cli.show import print_lines, table, title

    rows: list[tuple[str, str]] = []
    for one in found:
        rows += [(one.name, one.about), *(("", f"-o {name}=...: {meaning}") for name, meaning in one.options.items())]
    print_lines([title("Suites"), *table(("name", "holds"), rows, left=2)])
    ready = [(one["name"], one["needs"] or "ready", one["about"]) for one in known]
    print_lines([[], title("Systems"), *table(("name", "here", "is"), ready, left=3)])


def _about(module: str) -> str:
    """The first line of what a system's module says of itself."""
    from importlib import import_module

    return (import_module(f"foveate.eval.systems.{module}").__doc__ or "").strip().partition("\n")[0]


@evaluate.command("ablate", cls=Verb)
@click.argument("data", metavar="SUITE=PATH...", nargs=-1, required=True, callback=options_of)
@click.option("--only", multiple=True, metavar="PATTERN", help="Parts whose names fit, such as 'feature *'. Repeatable.")
@click.option("--budgets", metavar="N,N", callback=budgets_of, default="1000,4000", show_default=True, help="Token budgets.")
@click.option("--limit", type=click.IntRange(1), help="Only so many worlds of each suite, the first ones.")
@click.option(
    "-o", "options", multiple=True, metavar="NAME=VALUE", callback=options_of, help="An option of the suites that have it."
)
@click.option("--measure", type=click.Choice(MEASURES), default="fraction", show_default=True)
@click.option("--out", type=FILE, default=RUNS, show_default=True, metavar="DIR", help="Where rows are kept.")
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

    from foveate.eval import suites, tables
    from foveate.eval.ablate import ablate as switched
    from foveate.eval.ablate import effects

    found: list[Effect] = []
    for name, path in data.items():
        suite = suites.suite(name)
        own = {key: value for key, value in options.items() if key in suite.options}
        with watched(suite, Path(path), own, limit) as progress:
            runs = switched(suite, Path(path), out, only=only, budgets=budgets, limit=limit, options=own, progress=progress)
        found += effects(runs)
    if call.as_json:
        call.print_json({"effects": [asdict(one) for one in found]})
        return
    _print_tables(tables.ablated(found, measure))
    say("* beyond chance: p below 0.05 for this figure alone; of twenty such figures one is so by chance.")


@evaluate.command("record", cls=Verb)
@click.argument("context", required=False, default=LAST)
@click.option("--to", "to", required=True, type=FILE, metavar="FILE", help="The JSONL file that gets the case.")
@click.option("--wanted", multiple=True, metavar="ID", help="This record should be there. Repeatable.")
@click.option("--unwanted", multiple=True, metavar="ID", help="This record should not be there. Repeatable.")
@scoped
@pass_call
def record(call: Call, context: str, to: Path, wanted: tuple[str, ...], unwanted: tuple[str, ...], **scope: Any) -> None:
    """Turn a context of real use into a case of your own suite.

    CONTEXT is a context's id, or `last`. What its feedback marks as used or useful is wanted, what it marks as wrong or
    outdated is not; --wanted and --unwanted add to that. Ask the file with `foveate eval run own FILE`.
    """
    from foveate.eval.record import record as write

    with call.open(**scope) as engine:
        case = write(engine, None if context == LAST else context, to, wanted=wanted, unwanted=unwanted)
    if call.as_json:
        call.print_json({"to": str(to), "case": case})
        return
    counts = (len(case["wanted"]), len(case["unwanted"]), len(case["records"]))
    click.echo("{}: {} wanted, {} unwanted, {} records".format(to, *counts))
    if case.get("note"):
        say(case["note"])


VERBS: dict[str, Any] = {"eval": evaluate}
