"""`eval`: how much of the needed evidence arrives within a budget, on public data or your own. No store is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from foveate.cli.call import Call, Verb, pass_call, say, scoped
from foveate.cli.eval_report import FILE, compare, plot, report
from foveate.cli.eval_run import ablate, run
from foveate.operations.inputs import LAST, context_named


@click.group("eval")
def evaluate() -> None:
    """Measure how much of the needed evidence arrives."""


@click.command("list", cls=Verb)
@pass_call
def list_(call: Call) -> None:
    """List the suites and the systems, with what those need that cannot run yet."""
    from foveate.eval import datasets, systems

    found = [datasets.suite(name) for name in datasets.MODULES]
    known = [{"name": name, "about": systems.about(name), "needs": systems.needs(name)} for name in systems.MODULES]
    if call.as_json:
        told = [{"name": one.name, "about": one.about, "options": dict(one.options)} for one in found]
        call.print_json({"suites": told, "systems": known})
        return
    from foveate.cli.render import print_lines, table, title

    rows: list[tuple[str, str]] = []
    for one in found:
        rows += [(one.name, one.about), *(("", f"-o {name}=...: {meaning}") for name, meaning in one.options.items())]
    print_lines([title("Suites"), *table(("name", "holds"), rows, left=2)])
    ready = [(one["name"], one["about"], one["needs"] or "ready") for one in known]
    print_lines([[], title("Systems"), *table(("name", "is", "here"), ready, left=3)])


@click.command("record", cls=Verb)
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
        case = write(engine, context_named(context), to, wanted=wanted, unwanted=unwanted)
    if call.as_json:
        call.print_json({"to": str(to), "case": case})
        return
    from foveate.eval.tables import counted

    records = counted(len(case["records"]), "record")
    click.echo(f"{to}: {len(case['wanted'])} wanted, {len(case['unwanted'])} unwanted, {records}")
    if case.get("note"):
        say(case["note"])


for verb in (run, report, compare, plot, list_, ablate, record):
    evaluate.add_command(verb)

VERBS: dict[str, Any] = {"eval": evaluate}
