"""`foveate eval`: run suites of cases, report and compare the results, and record cases from real use."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import click

from foveate.cli.call import Call, Function, Verb, pass_call, say
from foveate.cli.options import complete_profiles
from foveate.cli.render import DRAW_INTERVAL_S
from foveate.errors import InputError, near
from foveate.eval.model import METRICS, RUNS_DIR
from foveate.types import LAST

if TYPE_CHECKING:
    from foveate.eval.compare import Comparison
    from foveate.eval.model import Suite, System
    from foveate.eval.report import Report
    from foveate.eval.rows import Run
    from foveate.eval.run import Progress
    from foveate.eval.tables import Table

FILE_TYPE = click.Path(path_type=Path)
EXIT_BELOW_THRESHOLD = 1


@click.group("eval")
def evaluate() -> None:
    """Measure how much of the needed evidence reaches the prompt."""


def complete_suites(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from foveate.eval.datasets import SUITES

    return [name for name in SUITES if name.startswith(incomplete)]


def split_names(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...]:
    """Parse `a,b`."""
    return tuple(part.strip() for part in (value or "").split(",") if part.strip())


def parse_budgets(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...]:
    """Parse `250,1000`."""
    parts = split_names(ctx, param, value)
    for part in parts:
        if not (part.isascii() and part.isdigit() and int(part)):
            raise click.BadParameter(f"{part!r} is not a number of tokens; write for example 250,1000,4000.", ctx, param)
    return tuple(sorted({int(part) for part in parts}))


def parse_pairs(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> dict[str, str]:
    """Parse `NAME=VALUE` options."""
    pairs: dict[str, str] = {}
    for text in values:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise click.BadParameter(f"{text!r} must have the form {str(param.metavar).rstrip('.')}.", ctx, param)
        if name in pairs:
            raise click.BadParameter(f"{name!r} is given twice; remove one of them.", ctx, param)
        pairs[name] = value
    return pairs


metric_option = click.option(
    "--metric", "metrics", multiple=True, type=click.Choice(METRICS), help="Show only this metric. Repeatable."
)

# --- run -----------------------------------------------------------------------------------------------------------


class RunOptions(TypedDict):
    """Values of the options below."""

    budgets: tuple[int, ...]
    limit: int | None
    types: tuple[str, ...]
    options: dict[str, str]
    out: Path


def suite_options(function: Function) -> Function:
    """Add the options that choose cases and budgets, and the folder of the results."""
    for decorate in (
        click.option("--budgets", metavar="N,N", callback=parse_budgets, help="Token budgets instead of the suite's."),
        click.option("--limit", type=click.IntRange(1), metavar="N", help="Run only the first N subsets."),
        click.option("--types", metavar="NAME,NAME", callback=split_names, help="Run only questions of these types."),
        click.option(
            "-o", "options", multiple=True, metavar="NAME=VALUE", callback=parse_pairs, help="Set an option of the suite."
        ),
        click.option(
            "--out", type=FILE_TYPE, default=RUNS_DIR, show_default=True, metavar="DIR", help="The folder of the results."
        ),
    )[::-1]:
        function = decorate(function)
    return function


@click.command("run", cls=Verb)
@click.argument("suite", required=False, shell_complete=complete_suites)
@click.argument("path", required=False, type=FILE_TYPE)
@click.option("--profile", metavar="NAME", shell_complete=complete_profiles, help="Profile instead of the suite's.")
@click.option("--overrides", type=FILE_TYPE, metavar="FILE", help="A TOML file to lay over the profile.")
@suite_options
@click.option("--with", "systems", multiple=True, metavar="NAME,NAME", help="Also run these systems. Repeatable.")
@metric_option
@click.option(
    "--fail-under",
    "thresholds",
    multiple=True,
    metavar="THRESHOLD",
    help="Exit 1 below it: [EVIDENCE_TYPE.]METRIC@BUDGET=PERCENT, or passed=PERCENT. Repeatable.",
)
@pass_call
def run(
    call: Call,
    suite: str | None,
    path: Path | None,
    profile: str | None,
    overrides: Path | None,
    systems: tuple[str, ...],
    metrics: tuple[str, ...],
    thresholds: tuple[str, ...],
    **run_options: Unpack[RunOptions],
) -> None:
    """Run every case of a suite and report what reached the prompt.

    Without SUITE, lists the suites and systems. SUITE is one of them, or MODULE:NAME for a suite in Python; PATH is the file
    or folder with its data. Results are stored after each subset, so the same command resumes a stopped run and repeats
    nothing. Thresholds such as `--fail-under recall@4000=90` are for CI and apply to foveate, not to other systems; `passed`
    and `no_forbidden` use the largest budget if they name none.
    """
    if suite is None:
        print_catalog(call)
        return
    if path is None:
        raise click.UsageError(f"PATH is missing: name the file or folder with the data of {suite!r}.")
    from foveate.eval.compare import failed_thresholds, parse_threshold
    from foveate.eval.datasets import load_suite
    from foveate.eval.report import report
    from foveate.eval.systems.engine import configured_system
    from foveate.pipeline.profiles import profile_dirs

    loaded = load_suite(suite)
    parsed = [parse_threshold(text, run_options["budgets"] or loaded.budgets) for text in thresholds]
    ours = configured_system(loaded, profile, overrides, profile_dirs(call.place().root))
    others = [system for system in open_systems(systems) if system.name != ours.name]
    reports = [report(one) for one in run_systems(loaded, path, [ours, *others], **run_options)]
    show = partial(print_reports, call, reports, metrics)
    try:
        _check_types(reports[0], run_options["types"])
        failed = failed_thresholds(reports[0], parsed)
    except InputError:
        show(failed=[])  # a run may take hours, so a typing mistake in an option must not hide its report
        raise
    show(failed=failed)
    for line in failed:
        say(line)
    if failed:
        raise click.exceptions.Exit(EXIT_BELOW_THRESHOLD)


def print_catalog(call: Call) -> None:
    """Print the suites and the systems, with what is missing for those that cannot run here."""
    from foveate.eval import systems
    from foveate.eval.datasets import SUITES, load_suite

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
    from foveate.cli.render import print_lines, table, title

    rows: list[tuple[str, str]] = []
    for one in suites:
        rows += [(one.name, one.description)]
        rows += [("", f"-o {name}=...: {meaning}") for name, meaning in one.options.items()]
    print_lines([title("Suites"), *table(("name", "data"), rows, left=2)])
    ready = [(name, one.description, missing[name] or "ready") for name, one in types.items()]
    print_lines([[], title("Systems"), *table(("name", "works on", "here"), ready, left=3)])


def _check_types(report: Report, types: Sequence[str]) -> None:
    for name in types:
        if name not in report.question_types:
            raise InputError(f"No case of {report.run.suite!r} has the type {name!r}.{near(name, report.question_types)}")


def open_systems(values: Sequence[str]) -> list[System]:
    """Open the systems of `--with`."""
    from foveate.eval.systems import open_system, split_specs

    return [open_system(spec) for spec in split_specs(values)]


def run_systems(suite: Suite, path: Path, systems: Sequence[System], **run_options: Unpack[RunOptions]) -> list[Run]:
    """Run a suite with each system, or read the results that are there."""
    from foveate.eval.run import check, run

    limit, types = run_options["limit"], run_options["types"]
    options, out = run_options["options"], run_options["out"]
    for system in systems:
        check(suite, system, path, options)
    with progress_line(out) as progress:
        budgets = run_options["budgets"] or None
        run_one = partial(run, suite, budgets=budgets, limit=limit, types=types, options=options, progress=progress)
        runs = [run_one(system, path, out) for system in systems]
    if not runs[0].results:
        of_types = f" of the type {' or '.join(map(repr, types))}" if types else ""
        raise InputError(f"{str(path)!r} contains no case{of_types} that can be run.")
    return runs


@contextmanager
def progress_line(out: Path) -> Iterator[Progress | None]:
    """Yield a callback that draws a line with counts on a terminal. Ctrl-C explains how to resume.

    The line has no total: some data sets are large, and their subsets would have to be counted first.
    """
    from foveate.eval.tables import pluralize

    drawn = 0.0

    def progress(system: str, subsets: int, cases: int) -> None:
        nonlocal drawn
        if monotonic() - drawn > DRAW_INTERVAL_S:
            drawn = monotonic()
            line = f"foveate: {system}, {pluralize(subsets, 'subset')}, {pluralize(cases, 'case')}"
            print(f"\r{line}\033[K", end="", file=sys.stderr, flush=True)

    try:
        yield progress if sys.stderr.isatty() and os.environ.get("TERM") != "dumb" else None
    except KeyboardInterrupt:
        say(f"stopped. Finished subsets are stored in {str(out)!r}; the same command resumes the run.")
        raise
    finally:
        if drawn:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


# --- report --------------------------------------------------------------------------------------------------------


@click.command("report", cls=Verb)
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=FILE_TYPE)
@metric_option
@click.option("--cases", is_flag=True, help="With two runs, list the cases that are better or worse.")
@pass_call
def report(call: Call, runs: tuple[Path, ...], metrics: tuple[str, ...], cases: bool) -> None:
    """Print the metrics of runs. With two runs, also compare them case by case.

    RUN is a file that `foveate eval run` wrote, or a folder of them: then the latest run of each suite and the latest
    comparable runs of other systems. Two runs are compared if they have the same suite, data and options and were scored by
    the same code. Shares of cases get McNemar's exact test, fractions a sign-flip test.
    """
    from foveate.eval.compare import as_json, compare
    from foveate.eval.rows import read_runs

    by_path = {one.path: one for path in runs for one in read_runs(path)}
    comparison, refusal = None, ""
    if len(runs) == len(by_path) == 2:
        try:
            comparison = compare(*by_path.values())
        except InputError as error:
            refusal = str(error)
    if cases and comparison is None:
        raise InputError(refusal or f"--cases compares two runs, got {len(by_path)}.")
    reports = labelled_reports(list(by_path.values()))
    print_reports(call, reports, metrics, comparison=as_json(comparison) if comparison else None)
    if comparison and not call.as_json:
        print_comparison(comparison, runs, metrics, cases)
    if refusal:
        say(f"the runs are not compared. {refusal}")


def labelled_reports(runs: Sequence[Run]) -> list[Report]:
    """Return the reports of runs. Runs of one suite and system are labelled with their files."""
    from foveate.eval.report import report

    counts = Counter((run.suite, run.system) for run in runs)
    reports = [report(run) for run in runs]
    return [
        replace(one, label=f"{one.name} ({one.run.path})") if counts[one.run.suite, one.run.system] > 1 else one
        for one in reports
    ]


def print_reports(call: Call, reports: Sequence[Report], metrics: Sequence[str], **more: object) -> None:
    if call.as_json:
        from foveate.eval.report import as_json

        call.print_json({"reports": list(map(as_json, reports)), **more})
        return
    from foveate.cli.render import print_text
    from foveate.eval import tables

    for n, suite in enumerate(dict.fromkeys(one.run.suite for one in reports)):
        of_suite = [one for one in reports if one.run.suite == suite]
        print_text(*([""] if n else []), tables.summary(of_suite))
        print_tables(tables.report_tables(of_suite, metrics))


def print_comparison(comparison: Comparison, paths: Sequence[Path], metrics: Sequence[str], cases: bool) -> None:
    from foveate.cli.render import print_text
    from foveate.eval import tables

    print_text("", f"{tables.pluralize(comparison.cases, 'case')} in both runs")
    sides = (("a", comparison.a, comparison.only_a), ("b", comparison.b, comparison.only_b))
    for path, (name, run, alone) in zip(paths, sides, strict=True):
        notes = [*([f"{alone:,} more cases"] if alone else []), tables.incomplete_note(run)]
        note = ", ".join(filter(None, notes))
        print_text(f"{name}  {run.system}  {path}" + (f"  ({note})" if note else ""))
    print_tables(tables.comparison_tables(comparison, metrics or METRICS))
    if cases:
        print_text("", *tables.changed_case_lines(comparison, metrics or METRICS))


def print_tables(tables: Iterable[Table]) -> None:
    from foveate.cli.render import print_lines, table, title

    for one in tables:
        print_lines([[], title(one.title), *table(one.headers, one.rows, left=one.left_aligned)])


# --- record --------------------------------------------------------------------------------------------------------


@click.command("record", cls=Verb, scoped=True)
@click.argument("context", required=False, default=LAST)
@click.option("--output", required=True, type=FILE_TYPE, metavar="FILE", help="The JSONL file to add the case to.")
@click.option("--expected", multiple=True, metavar="ID", help="Expect this record. Repeatable.")
@click.option("--forbidden", multiple=True, metavar="ID", help="Forbid this record. Repeatable.")
@pass_call
def record(call: Call, context: str, output: Path, expected: tuple[str, ...], forbidden: tuple[str, ...]) -> None:
    """Turn a context of real use into a case of your own suite.

    CONTEXT is the id of a context, or `last`. Records that its feedback marks as used or useful are expected, those marked
    as wrong or outdated are forbidden; --expected and --forbidden add to that. Run the cases with
    `foveate eval run own FILE`.
    """
    from foveate.eval.record import record_case

    with call.open() as engine:
        case = record_case(engine, context, output, expected=expected, forbidden=forbidden)
    if call.as_json:
        call.print_json({"output": str(output), "case": case})
        return
    from foveate.eval.tables import pluralize

    records = pluralize(len(case["records"]), "record")
    click.echo(f"{output}: {len(case['expected'])} expected, {len(case['forbidden'])} forbidden, {records}")
    if case.get("note"):
        say(case["note"])


for command in (run, report, record):
    evaluate.add_command(command)

VERBS: dict[str, Any] = {"eval": evaluate}
