"""`agent`: who is at work on which task, with which context."""

from __future__ import annotations

import json
from typing import Any

import click

from foveate.cli.call import Call, Function, Verb, VerbGroup, complete_profiles, pass_call, read_text, say, speaks_utf8
from foveate.cli.task_common import (
    complete_tasks,
    end_task,
    ended,
    ending,
    print_ended,
    print_task,
    task_argument,
)
from foveate.operations import json as documents


def complete_agents(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from foveate.agents import SHIPPED
    from foveate.pipeline.profiles import names, places

    own = names(places(Call().place().root), builtin=False)
    return [name for name in (*(strategy.agent for strategy in SHIPPED), *own) if name.startswith(incomplete)]


def which(function: Function) -> Function:
    """`--agent` and `--task`: of whose contexts."""
    task = click.option("--task", metavar="TASK", shell_complete=complete_tasks, help="Only for this task.")
    return click.option("--agent", metavar="NAME", help="Only of this agent.")(task(function))


@click.group(cls=VerbGroup)
def agent() -> None:
    """Hand tasks to agents, with a context each."""


@agent.command("prepare", cls=Verb)
@click.argument("agent")
@task_argument
@click.option("--budget", type=int, metavar="TOKENS", help="The most that the model may receive, framing included.")
@click.option("--profile", metavar="NAME", shell_complete=complete_profiles, help="Which slots and weights.")
@pass_call
def prepare(call: Call, agent: str, task: str, **options: Any) -> None:
    """Start a task and print the context that an agent begins with.

    `foveate agent prepare coder login --budget 4000`. Asked again, it computes again; a crashed agent's task is free after
    an hour.
    """
    with call.open() as engine:
        ready = engine.tasks.claim(task, agent=agent, **options)
    if ready is None:
        say("no task is ready.")
        return
    if call.as_json:
        call.print_json(documents.claim_with_context(ready))
        return
    click.echo(ready.context.text, nl=False)
    if ready.others:
        say(f"warning: also at work on this task: {', '.join(ready.others)}.")
    for warning in ready.context.warnings:
        say(f"warning: {warning}")


@agent.command("compile", cls=Verb)
@click.argument("name", metavar="AGENT", shell_complete=complete_agents)
@click.option("--task", metavar="TASK", shell_complete=complete_tasks, help="Its task; else the top of the stack.")
@click.option("--session", metavar="NAME", help="The session that this is for.")
@click.option("--budget", type=int, metavar="TOKENS", help="The most that the model may receive, framing included.")
@click.option("--messages", is_flag=True, help="The messages as JSON, as a driver gets them.")
@pass_call
def compile_(call: Call, name: str, messages: bool, **options: Any) -> None:
    """Compile an agent's context from state alone, by the strategy of that agent.

    `foveate agent compile developer --task login`. architect, developer and reviewer come with foveate; any other AGENT is a
    profile of that name. Nothing is started and no lease is taken: `foveate agent prepare` does that.
    """
    from foveate.agents import strategy_of

    with call.open() as engine:
        strategy = strategy_of(name)
        compiled = strategy.compile(engine, **options)
    if call.as_json:
        call.print_json(documents.compiled(strategy, compiled))
        return
    if messages:
        click.echo(json.dumps(strategy.to_messages(compiled), ensure_ascii=not speaks_utf8(), indent=2))
    else:
        click.echo(compiled.context.text, nl=False)
    for warning in compiled.warnings:
        say(f"warning: {warning}")


@agent.command("complete", cls=Verb)
@click.argument("agent")
@task_argument
@ending
@pass_call
def complete(call: Call, agent: str, task: str, result: str | None, outcome: str | None, file: str | None) -> None:
    """Say that an agent has done its task, and what came of it.

    `foveate agent complete coder login --handoff handoff.md`, or a RESULT: what whoever depends on it should know; `-` reads
    stdin.
    """
    given = ended(result, outcome, file)
    with call.open() as engine:
        done = end_task(engine, task, given, agent)
        handoff = documents.handoff_of(engine, done) if file is not None else None
    print_ended(call, done, handoff)


@agent.command("fail", cls=Verb)
@click.argument("agent")
@task_argument
@click.argument("reason")
@pass_call
def fail(call: Call, agent: str, task: str, reason: str) -> None:
    """Say that an agent gave its task up, and why.

    REASON `-` reads stdin. The task can be started again, by this agent or another.
    """
    with call.open() as engine:
        print_task(call, engine.tasks.fail(task, read_text(reason), agent=agent))


@agent.command("list", cls=Verb)
@which
@pass_call
def list_(call: Call, agent: str | None, task: str | None) -> None:
    """List who is at work, oldest first."""
    with call.open() as engine:
        leases = engine.tasks.claims(agent=agent, task=task)
    if call.as_json:
        call.print_json({"claims": [documents.claim(lease) for lease in leases]})
        return
    if not leases:
        say("nobody is at work.")
        return
    from foveate.cli.render import print_lines, table
    from foveate.clock import iso

    rows = [(lease.agent, lease.task.id, iso(lease.since), iso(lease.expires), str(lease.tokens)) for lease in leases]
    print_lines(table(("agent", "task", "since", "until", "tokens"), rows, left=4))


@agent.command("clear", cls=Verb)
@which
@pass_call
def clear(call: Call, agent: str | None, task: str | None) -> None:
    """Release contexts of an agent or a task; prints how many.

    For agents that will not come back: their tasks are open again.
    """
    with call.open() as engine:
        number = engine.tasks.release(agent=agent, task=task)
    if call.as_json:
        call.print_json({"released": number})
    else:
        click.echo(f"{number} released")


@agent.command("stats", cls=Verb)
@pass_call
def stats(call: Call) -> None:
    """Count the contexts that agents were given, and how they ended."""
    with call.open() as engine:
        found = engine.store.stats()["claims"]
    if call.as_json:
        call.print_json(found)
        return
    from foveate.cli.render import pairs, print_lines

    by_agent = ", ".join(f"{name} {number}" for name, number in found["by_agent"].items())
    print_lines(pairs((name.replace("_", " "), value) for name, value in {**found, "by_agent": by_agent}.items()))


VERBS: dict[str, Any] = {"agent": agent}
