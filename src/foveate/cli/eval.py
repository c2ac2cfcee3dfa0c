"""`foveate eval`: run suites of cases, report and compare the results, and record cases from real use."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foveate.cli.call import Call, Verb, pass_call, say
from foveate.cli.options import complete_profiles
from foveate.cli.render import Bar
from foveate.errors import InputError
from foveate.eval.model import METRICS, RUNS_DIR
from foveate.text.format import pluralize
from foveate.types import LAST

if TYPE_CHECKING:
    from foveate.eval.run import Progress

FILE_TYPE = click.Path(path_type=Path)
EXIT_BELOW_THRESHOLD = 1


@click.group("eval")
def evaluate() -> None:
    """Measure how much of the needed evidence reaches the prompt."""


def complete_suites(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from foveate.eval.datasets import SUITES

    return [name for name in SUITES if name.startswith(incomplete)]


def parse_budgets(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...]:
    """Parse `250,1000`."""
    parts = [part.strip() for part in (value or "").split(",") if part.strip()]
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


@click.command("run", cls=Verb)
@click.argument("suite", required=False, shell_complete=complete_suites)
@click.argument("path", required=False, type=FILE_TYPE)
@click.option("--profile", metavar="NAME", shell_complete=complete_profiles, help="Profile instead of the suite's.")
@click.option("--overrides", type=FILE_TYPE, metavar="FILE", help="A TOML file to lay over the profile.")
@click.option("--budgets", metavar="N,N", callback=parse_budgets, help="Token budgets instead of the suite's.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Run only the first N subsets.")
@click.option("-o", "options", multiple=True, metavar="NAME=VALUE", callback=parse_pairs, help="Set an option of the suite.")
@click.option("--out", type=FILE_TYPE, default=RUNS_DIR, show_default=True, metavar="DIR", help="The folder of the results.")
@click.option("--with", "others", multiple=True, metavar="NAME,NAME", help="Also run these systems. Repeatable.")
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
    budgets: tuple[int, ...],
    limit: int | None,
    options: dict[str, str],
    out: Path,
    others: tuple[str, ...],
    metrics: tuple[str, ...],
    thresholds: tuple[str, ...],
) -> None:
    """Run every case of a suite and report what reached the prompt.

    Without SUITE, lists the suites and systems. SUITE is one of them, or MODULE:NAME for a suite in Python; PATH is the file
    or folder with its data. Results are stored after each subset, so the same command resumes a stopped run and repeats
    nothing. Thresholds such as `--fail-under recall@4000=90` are for CI and apply to foveate, not to other systems; `passed`
    and `no_forbidden` use the largest budget if they name none.
    """
    if suite is None:
        from foveate.cli.eval_text import print_catalog

        print_catalog(call)
        return
    if path is None:
        raise click.UsageError(f"PATH is missing: name the file or folder with the data of {suite!r}.")
    from foveate.cli import eval_text
    from foveate.eval import compare, systems
    from foveate.eval import report as metrics_of
    from foveate.eval import run as runner
    from foveate.eval.datasets import load_suite
    from foveate.eval.systems.engine import configured_system
    from foveate.pipeline.profiles import profile_dirs

    loaded = load_suite(suite)
    parsed = [compare.parse_threshold(text, budgets or loaded.budgets) for text in thresholds]
    ours = configured_system(loaded, profile, overrides, profile_dirs(call.place().root))
    opened = [
        ours,
        *(other for spec in systems.split_specs(others) if (other := systems.open_system(spec)).name != ours.name),
    ]
    for system in opened:
        runner.check(loaded, system, path, options)
    with progress_line(out) as progress:
        given: Any = {"options": options, "budgets": budgets or None, "limit": limit, "progress": progress}
        runs = [runner.run(loaded, system, path, out, **given) for system in opened]
    if not runs[0].results:
        raise InputError(f"{str(path)!r} contains no case that can be run.")
    reports = [metrics_of.report(run) for run in runs]
    show = partial(eval_text.print_reports, call, reports, metrics)
    try:
        failed = compare.failed_thresholds(reports[0], parsed)
    except InputError:
        show(failed=[])  # a run may take hours, so a typing mistake in an option must not hide its report
        raise
    show(failed=failed)
    for line in failed:
        say(line)
    if failed:
        raise click.exceptions.Exit(EXIT_BELOW_THRESHOLD)


@contextmanager
def progress_line(out: Path) -> Iterator[Progress | None]:
    """Yield a callback that draws a line with counts on a terminal. Ctrl-C explains how to resume.

    The line has no total: some data sets are large, and their subsets would have to be counted first.
    """

    bar = Bar()

    def progress(system: str, subsets: int, cases: int) -> None:
        bar.draw(f"{system}, {pluralize(subsets, 'subset')}, {pluralize(cases, 'case')}")

    try:
        yield progress if sys.stderr.isatty() and os.environ.get("TERM") != "dumb" else None
    except KeyboardInterrupt:
        say(f"stopped. Finished subsets are stored in {str(out)!r}; the same command resumes the run.")
        raise
    finally:
        bar.close()


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
    from foveate.cli import eval_text
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
    reports = eval_text.labelled_reports(list(by_path.values()))
    eval_text.print_reports(call, reports, metrics, comparison=as_json(comparison) if comparison else None)
    if comparison and not call.as_json:
        eval_text.print_comparison(comparison, runs, metrics, cases)
    if refusal:
        say(f"the runs are not compared. {refusal}")


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
    records = pluralize(len(case["records"]), "record")
    click.echo(f"{output}: {len(case['expected'])} expected, {len(case['forbidden'])} forbidden, {records}")
    if case.get("note"):
        say(case["note"])


for command in (run, report, record):
    evaluate.add_command(command)

VERBS: dict[str, Any] = {"eval": evaluate}
