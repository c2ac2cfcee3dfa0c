"""`handoff` and `schema`: what an agent leaves for the next one when a task ends."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from foveate.cli.call import Call, Verb, VerbGroup, pass_call, say, speaks_utf8
from foveate.cli.task_common import FILE, complete_tasks, read_handoff, say_reading, task_argument
from foveate.errors import InputError, NotFound, near
from foveate.operations import json as documents

if TYPE_CHECKING:
    from foveate.tasks.handoff import Parsed

UNREADABLE = 2
RAW = "raw"
"""The rung of a text of which nothing could be read."""
SCHEMAS = ("handoff",)


@click.group(cls=VerbGroup)
def handoff() -> None:
    """Write, check and learn from handoffs."""


@handoff.command("template", cls=Verb)
@click.argument("task", required=False, shell_complete=complete_tasks)
@pass_call
def template(call: Call, task: str | None) -> None:
    """Print a handoff to fill in.

    `foveate handoff template login > handoff.md`. With a TASK, its id and name are filled in; without one, no store is
    needed.
    """
    from foveate.tasks.handoff import template as form

    if task is None:
        text = form()
    else:
        with call.open() as engine:
            found = engine.tasks.get(task)
        text = form(found.id, name=found.name)
    if call.as_json:
        call.print_json({"template": text})
    else:
        click.echo(text, nl=False)


@handoff.command("validate", cls=Verb)
@click.argument("file", type=FILE)
@click.option("--strict", is_flag=True, help="Any problem is an error, also one that could be repaired.")
@pass_call
def validate(call: Call, file: str, strict: bool) -> None:
    """Say how a handoff would be read; needs no store.

    FILE `-` reads stdin. The exit code is 2 where nothing could be read and, with --strict, where anything is wrong.
    """
    from foveate.tasks.handoff import parse

    parsed = parse(read_handoff(file))
    ok = parsed.rung != RAW and not (strict and parsed.problems)
    if call.as_json:
        call.print_json({"ok": ok, **documents.parsed_handoff(parsed)})
    else:
        _print_parsed(parsed)
    if parsed.rung == RAW:
        say("no field of a handoff could be read; only its text would be kept.")
    elif parsed.problems and not strict:
        say("it can be read; what is not as it should be was repaired.")
    if not ok:
        raise click.exceptions.Exit(UNREADABLE)


def _print_parsed(parsed: Parsed) -> None:
    from foveate.cli.render import cut, pairs, plain, print_lines, width

    found = parsed.handoff
    named = [(name, found.get(name)) for name in ("task_id", "status", "summary", "confidence")]
    told = [(name, cut(str(value), width() - 24)) for name, value in named if value not in (None, "")]
    counts = [(name, str(number)) for name, number in documents.entries(found).items() if number]
    rows = [("rung", parsed.rung), ("form", parsed.form), *told, *counts]
    print_lines([*pairs(rows), *(plain(f"problem: {problem}") for problem in parsed.problems)])


@handoff.command("ingest", cls=Verb)
@task_argument
@click.argument("file", type=FILE)
@click.option("--again", is_flag=True, help="Also where the task is completed and has another handoff.")
@pass_call
def ingest(call: Call, task: str, file: str, again: bool) -> None:
    """Learn from a task's handoff, and complete the task.

    Prints what was learned, by kind; how it could be read is told on stderr. `foveate handoff ingest login handoff.md`; FILE
    `-` reads stdin. The same handoff twice changes nothing.
    """
    raw = read_handoff(file)
    with call.open() as engine:
        done = engine.tasks.handoff(task, raw, again=again)
    if call.as_json:
        call.print_json(documents.learned(done))
        return
    from foveate.cli.render import pairs, print_lines

    rows = [(kind, _in_words(counts)) for kind, counts in done.counts.items()]
    print_lines(pairs([("handoff", done.handoff), *rows]))
    if done.action == "unchanged":
        say("this handoff was read before; nothing was changed.")
    say_reading(done.method, done.problems)


def _in_words(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {action}" for action, number in counts.items())


@handoff.command("show", cls=Verb)
@task_argument
@pass_call
def show(call: Call, task: str) -> None:
    """Print the text of a task's latest handoff, as it was written."""
    with call.open() as engine:
        of = engine.tasks.get(task)
        found = documents.handoff_of(engine, of)
    if found is None:
        raise NotFound(f"Task {task!r} has no handoff. `foveate handoff ingest {task} FILE` learns from one.")
    if call.as_json:
        from foveate.records.make import to_json

        call.print_json({"task": of.id, "handoff": to_json(found)})
    else:
        click.echo(found.text, nl=not found.text.endswith("\n"))


@click.command(cls=Verb)
@click.argument("name", shell_complete=lambda ctx, param, word: [name for name in SCHEMAS if name.startswith(word)])
@pass_call
def schema(call: Call, name: str) -> None:
    """Print the JSON Schema of a document.

    `foveate schema handoff` is for checking handoffs elsewhere, or to have a model write one in this form. Needs no store.
    """
    if name not in SCHEMAS:
        raise InputError(f"There is no schema {name!r}.{near(name, SCHEMAS)}")
    from foveate.tasks.handoff import json_schema

    if call.as_json:
        call.print_json({"name": name, "schema": json_schema()})
    else:
        click.echo(json.dumps(json_schema(), ensure_ascii=not speaks_utf8(), indent=2))


VERBS: dict[str, Any] = {"handoff": handoff, "schema": schema}
