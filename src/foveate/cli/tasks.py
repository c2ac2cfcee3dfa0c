"""`task`: what is to be done, what it waits for, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from foveate.cli.call import Call, Verb, VerbGroup, pass_call, read_text, say, scoped
from foveate.cli.task_common import (
    called,
    complete_tasks,
    end_task,
    ended,
    ending,
    print_ended,
    print_task,
    task_argument,
)
from foveate.operations import json

if TYPE_CHECKING:
    from foveate.engine import Engine

NAME_WIDTH = 40
"""Columns of a name in a list: the rest of the line is for ids."""


@click.group(cls=VerbGroup)
def task() -> None:
    """Plan tasks, and say how they went."""


@task.command("add", cls=Verb)
@click.argument("name")
@click.option("--objective", metavar="TEXT", help="What it should achieve; `-` reads stdin. Else the name says it.")
@click.option("--description", metavar="TEXT", help="Whatever else is to be known.")
@click.option("--criterion", "acceptance_criteria", multiple=True, metavar="TEXT", help="When it is done. Repeatable.")
@click.option("--test", "test_criteria", multiple=True, metavar="TEXT", help="How that is tested. Repeatable.")
@click.option("--type", "type", metavar="TYPE", help="What sort of work: feature, bugfix, refactor, ...")
@click.option("--complexity", metavar="NAME", help="easy, normal or complex: how much context it gets.")
@click.option("--time", "estimated_time", metavar="TIME", help="How long it should take: 30m, 2h.")
@click.option(
    "--file",
    "files",
    multiple=True,
    metavar="PATH[:OPERATION]",
    help="A file that it touches, and whether to create, modify, delete or read it. Repeatable.",
)
@click.option("--step", "steps", multiple=True, metavar="TEXT", help="A step of the way. Repeatable, in order.")
@click.option(
    "--depends-on",
    multiple=True,
    metavar="TASK_OR_PATH",
    shell_complete=complete_tasks,
    help="A task that comes before it, or a file to read first. Repeatable.",
)
@click.option("--parent", metavar="TASK", shell_complete=complete_tasks, help="The task of which it is a part.")
@click.option("--key", help="Your own key: every verb takes it for the id, and adding it again changes nothing.")
@click.option("--tag", "tags", multiple=True, help="A word to find it by. Repeatable.")
@pass_call
def add(call: Call, name: str, objective: str | None, **values: Any) -> None:
    """Add a task; prints its id.

    `foveate task add "Add login" --criterion "A wrong password gives 401" --depends-on user-model`
    """
    given = {field: value for field, value in values.items() if value is not None and value != ()}
    with call.open() as engine:
        known = _is_known(engine, values["key"])
        added = engine.tasks.add(name, objective=read_text(objective or ""), **given)
    if call.as_json:
        call.print_json({"id": added.id, "action": "unchanged" if known else "added", "task": json.task(added)})
        return
    click.echo(added.id)
    if known:
        say(f"the key {values['key']!r} is in use already; nothing was changed.")


def _is_known(engine: Engine, key: str | None) -> bool:
    with engine.store.data.reader() as reader:
        return bool(key) and reader.by_key(str(key)) is not None


@task.command("list", cls=Verb)
@click.option("--status", metavar="STATUS", help="Only open, active, blocked, completed or failed ones.")
@click.option("--ready", is_flag=True, help="Only open ones that wait for nothing.")
@click.option("--parent", metavar="TASK", shell_complete=complete_tasks, help="Only the parts of this task.")
@pass_call
def list_(call: Call, status: Any, ready: bool, parent: str | None) -> None:
    """List tasks, oldest first.

    `foveate task list --ready` gives those that can be started now.
    """
    with call.open() as engine:
        found = engine.tasks.list(status=status, ready=ready, parent=parent)
        names = called(engine, {id for each in found for id in each.depends_on})
    if call.as_json:
        call.print_json({"tasks": [json.task(each) for each in found]})
        return
    if not found:
        say("there is no such task." if status or ready or parent else "there are no tasks yet.")
        return
    from foveate.cli.render import cut, print_lines, table

    def listed(ids: Iterable[str]) -> str:
        return ", ".join(names[id] for id in ids)

    rows = [
        (each.id, each.status, cut(each.name, NAME_WIDTH), listed(each.depends_on), listed(each.waiting_for))
        for each in found
    ]
    heads = ("id", "status", "name", "depends on", "waiting for")
    print_lines(table(heads, rows, left=len(heads), styles=["cyan"] * len(rows)))


@task.command("show", cls=Verb)
@task_argument
@pass_call
def show(call: Call, task: str) -> None:
    """Show a task: its fields, what it waits for, and what came of it.

    TASK is an id or a key, as for all these verbs.
    """
    from foveate.cli import task_text
    from foveate.cli.render import print_lines

    with call.open() as engine:
        found = engine.tasks.get(task)
        handoff = json.handoff_of(engine, found)
        around, learned = json.around_task(engine, found)
    if call.as_json:
        call.print_json(json.task_with(found, around, handoff, learned))
    else:
        print_lines(task_text.lines(found, around, handoff, learned))


# --- moving --------------------------------------------------------------------------------------------------------


@task.command("start", cls=Verb)
@task_argument
@pass_call
def start(call: Call, task: str) -> None:
    """Say that somebody works on a task.

    A blocked or failed one is taken up again. Warns where something that it depends on is not completed.
    """
    with call.open() as engine:
        moved = engine.tasks.edit(task, status="active")
        waiting = called(engine, moved.waiting_for)
    print_task(call, moved)
    if waiting:
        say(f"warning: it depends on what is not completed: {', '.join(waiting.values())}.")


@task.command("block", cls=Verb)
@task_argument
@click.argument("reason")
@pass_call
def block(call: Call, task: str, reason: str) -> None:
    """Say that a task cannot go on, and why.

    `foveate task block login "There is no test account"`. REASON `-` reads stdin.
    """
    with call.open() as engine:
        print_task(call, engine.tasks.edit(task, status="blocked", reason=read_text(reason)))


@task.command("fail", cls=Verb)
@task_argument
@click.argument("reason")
@pass_call
def fail(call: Call, task: str, reason: str) -> None:
    """Say that a task was given up, and why.

    `foveate task fail login "The provider has no API for it"`. REASON `-` reads stdin. It can be started again.
    """
    with call.open() as engine:
        print_task(call, engine.tasks.fail(task, read_text(reason)))


@task.command("complete", cls=Verb)
@task_argument
@ending
@pass_call
def complete(call: Call, task: str, result: str | None, outcome: str | None, file: str | None) -> None:
    """Say that a task is done, and what came of it.

    `foveate task complete login "POST /login answers with a token"`. RESULT is what whoever depends on it should know; `-`
    reads stdin. A --handoff says that and more.
    """
    given = ended(result, outcome, file)
    with call.open() as engine:
        done = end_task(engine, task, given)
        handoff = json.handoff_of(engine, done) if file is not None else None
    print_ended(call, done, handoff)


@task.command("depend", cls=Verb)
@task_argument
@click.argument("on", nargs=-1, required=True, metavar="ON...", shell_complete=complete_tasks)
@pass_call
def depend(call: Call, task: str, on: tuple[str, ...]) -> None:
    """Have a task wait for others, or name files to read first.

    `foveate task depend login user-model docs/auth.md`. Tasks that would wait for each other are refused.
    """
    with call.open() as engine:
        found = engine.tasks.get(task)
        all_on = (*found.depends_on, *found.record.data.get("reads", ()), *on)
        print_task(call, engine.tasks.edit(found, depends_on=all_on))


@task.command("answer", cls=Verb)
@click.argument("question")
@click.argument("text")
@scoped
@pass_call
def answer(call: Call, question: str, text: str, **scope: Any) -> None:
    """Answer an open question; prints the decision's id.

    QUESTION is the id of a question, as `foveate task show` lists what a handoff left; TEXT `-` reads stdin. The answer
    becomes a decision of the same tasks, and the question is put away.
    """
    with call.open(**scope) as engine:
        decision = engine.inbox.answer(question, read_text(text))
    if call.as_json:
        from foveate.records.make import to_json

        call.print_json({"id": decision.id, "question": question, "record": to_json(decision)})
    else:
        click.echo(decision.id)


VERBS: dict[str, Any] = {"task": task}
