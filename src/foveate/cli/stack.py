"""`stack`: the goal that is worked on, and the goals above it."""

from __future__ import annotations

from typing import Any

import click

from foveate.cli.call import Call, Function, Verb, VerbGroup, pass_call, read_text, say
from foveate.cli.task_common import print_task
from foveate.operations import json

EMPTY = "the task stack is empty."


def whose(function: Function) -> Function:
    """`--agent` and `--session`: each pair has a stack of its own."""
    function = click.option("--session", metavar="NAME", help="The session whose stack it is.")(function)
    return click.option("--agent", metavar="NAME", help="The agent whose stack it is.")(function)


@click.group(cls=VerbGroup)
def stack() -> None:
    """Keep the goal that is worked on, and those above it."""


@stack.command("push", cls=Verb)
@click.argument("goal")
@click.option("--name", default="", help="A short name for it.")
@whose
@pass_call
def push(call: Call, goal: str, name: str, **scope: Any) -> None:
    """Take up a goal, as a part of the current one; prints its id.

    `foveate stack push "Find out why the build is slow" --session today`. GOAL `-` reads stdin.
    """
    with call.open(**scope) as engine:
        frame = engine.tasks.push(read_text(goal), name=name)
    if call.as_json:
        call.print_json({"id": frame.id, "task": json.task(frame)})
    else:
        click.echo(frame.id)


@stack.command("pop", cls=Verb)
@click.argument("result", default="")
@click.option("--outcome", metavar="OUTCOME", default="success", help="success (the default), partial or failure.")
@whose
@pass_call
def pop(call: Call, result: str, outcome: Any, **scope: Any) -> None:
    """Complete the current goal, and go back to the one above.

    RESULT is what came of it; `-` reads stdin.
    """
    with call.open(**scope) as engine:
        print_task(call, engine.tasks.pop(read_text(result), outcome=outcome))


@stack.command("peek", cls=Verb)
@whose
@pass_call
def peek(call: Call, **scope: Any) -> None:
    """Print the current goal."""
    with call.open(**scope) as engine:
        frame = engine.tasks.current()
    if call.as_json:
        call.print_json({"task": json.task(frame) if frame else None})
        return
    if frame is None:
        say(EMPTY)
        return
    from foveate.cli.render import plain, print_lines
    from foveate.cli.task_common import brief

    print_lines([*brief([frame.record]), *map(plain, frame.objective.split("\n"))])


@stack.command("path", cls=Verb)
@whose
@pass_call
def path(call: Call, **scope: Any) -> None:
    """Print the goals from the first to the current one, a line each."""
    with call.open(**scope) as engine:
        frames = engine.tasks.path()
    if call.as_json:
        call.print_json({"path": [json.task(frame) for frame in frames]})
        return
    if not frames:
        say(EMPTY)
    from foveate.cli.render import print_lines
    from foveate.cli.task_common import brief

    print_lines(brief(frame.record for frame in frames))


VERBS: dict[str, Any] = {"stack": stack}
