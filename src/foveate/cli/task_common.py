"""What the verbs on tasks share: naming a task, reading a handoff's bytes, and tasks as lines and documents."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from foveate.cli.call import STDIN, Call, Function, read_text, say
from foveate.cli.render import Line, cut, width
from foveate.errors import FoveateError, InputError
from foveate.operations import json

if TYPE_CHECKING:
    from foveate.engine import Engine
    from foveate.tasks.task import Task
    from foveate.types import Record

FILE = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=str)
"""A file that is read, or stdin."""


def complete_tasks(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Keys and ids of tasks; nothing where there is no store to ask."""
    with suppress(FoveateError, OSError), Call().open() as engine:
        return [
            CompletionItem(ref, help=task.name)
            for task in engine.tasks.list()
            for ref in (task.record.key, task.id)
            if ref and ref.startswith(incomplete)
        ]
    return []


task_argument = click.argument("task", shell_complete=complete_tasks)
"""TASK: an id or a key."""


def ending(function: Function) -> Function:
    """RESULT, `--outcome` and `--handoff`: how a task ends well."""
    options = (
        click.argument("result", required=False),
        click.option("--outcome", metavar="OUTCOME", help="success (the default), partial or failure."),
        click.option("--handoff", "file", type=FILE, metavar="FILE", help="Learn from this handoff; `-` reads stdin."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def ended(result: str | None, outcome: str | None, file: str | None) -> dict[str, Any]:
    """The options of `ending`, as `complete` takes them."""
    if file is None:
        return {"result": read_text(result or ""), "outcome": outcome or "success"}
    if result is not None or outcome is not None:
        raise InputError("A handoff says itself what came of the task: give either that, or a RESULT and an --outcome.")
    return {"handoff": read_handoff(file)}


def end_task(engine: Engine, task: str, given: dict[str, Any], agent: str | None = None) -> Task:
    """Complete a task with the values of `ended`: a result, or a handoff."""
    if "handoff" not in given:
        return engine.tasks.complete(task, agent=agent, **given)
    return engine.tasks.get(engine.tasks.handoff(task, given["handoff"], agent=agent).task)


def read_handoff(file: str) -> bytes:
    """A handoff as it is, from a file or stdin; of one that is too long, no more is read than shows that it is."""
    from foveate.tasks.handoff import MAX_BYTES

    if file == STDIN:
        where, raw = "standard input", sys.stdin.buffer.read(MAX_BYTES + 1)
    else:
        with open(file, "rb") as source:
            where, raw = repr(file), source.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise InputError(
            f"{where} has more than {MAX_BYTES:,} bytes, which is no handoff. Write what the next task needs to know, and "
            f"leave logs and code in files."
        )
    return raw


# --- tasks as documents --------------------------------------------------------------------------------------------


def called(engine: Engine, ids: Iterable[str]) -> dict[str, str]:
    """How people name some tasks: by the key, where there is one."""
    wanted = list(ids)
    with engine.store.data.reader() as reader:
        found = reader.get(wanted)
    return {id: (found[id].key if id in found else None) or id for id in wanted}


# --- tasks as lines ------------------------------------------------------------------------------------------------


def print_task(call: Call, task: Task, **more: Any) -> None:
    """A task that was moved."""
    if call.as_json:
        call.print_json({"task": json.task(task), **more})
    else:
        click.echo(f"{task.id}  {task.status}")


def print_ended(call: Call, task: Task, handoff: Record | None) -> None:
    """A task that has ended and, where it was read from a handoff, how well that went."""
    if handoff is None:
        print_task(call, task)
        return
    print_task(call, task, handoff=json.handoff_reading(handoff))
    say_reading(str(handoff.data.get("rung")), handoff.data.get("problems", ()))


def say_reading(rung: str, problems: Sequence[str]) -> None:
    """How a handoff could be read."""
    say(f"read as {rung}" if problems else f"read as {rung}, without a problem")
    for problem in problems:
        say(f"problem: {problem}")


def brief(records: Iterable[Record]) -> list[Line]:
    """A line for each record: its id, the status of what is a task, and what it says."""
    from foveate.tasks.task import state_of

    lines: list[Line] = []
    for record in records:
        status = state_of(record) if record.kind == "task" else "" if record.status == "active" else record.status
        note = f"  {status}" if status else ""
        room = max(20, width() - len(record.id) - len(note) - 2)
        text = record.data.get("name") or record.micro
        lines.append([(record.id, "cyan"), (note, "dim"), ("  " + cut(str(text), room), "")])
    return lines
