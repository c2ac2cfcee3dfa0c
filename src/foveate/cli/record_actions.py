"""`outcome`, `confirm`, `pin`, `promote`, `retire`, `undo`, `forget`: the verbs that need no more than a record's id."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from foveate.cli.call import Call, Verb, complete_kinds, is_agent, pass_call, say, scoped
from foveate.cli.memory import print_changed
from foveate.errors import InputError, NotFound
from foveate.operations import json

if TYPE_CHECKING:
    from foveate.engine import Engine
    from foveate.types import Record


@click.command(cls=Verb)
@click.argument("id")
@click.argument("outcome", metavar="success|partial|failure|pending")
@click.option("--result", default="", help="What came of it, in words; its line says so.")
@scoped
@pass_call
def outcome(call: Call, id: str, outcome: str, result: str, **scope: Any) -> None:
    """Say how a record turned out."""
    with call.open(**scope) as engine:
        print_changed(call, engine.edit(id, outcome=outcome, result=result))


@click.command(cls=Verb)
@click.argument("id")
@scoped
@pass_call
def confirm(call: Call, id: str, **scope: Any) -> None:
    """Say that a record still holds."""
    with call.open(**scope) as engine:
        engine.feedback(confirmed=[id])
        print_changed(call, engine.get(id))


@click.command(cls=Verb)
@click.argument("id")
@click.option("--off", is_flag=True, help="No longer.")
@scoped
@pass_call
def pin(call: Call, id: str, off: bool, **scope: Any) -> None:
    """Have a record in every context."""
    with call.open(**scope) as engine:
        print_changed(call, engine.edit(id, pinned=not off))


@click.command(cls=Verb)
@click.argument("id")
@click.option("--as", "kind", metavar="KIND", shell_complete=complete_kinds, help="Make a record of this kind of its words.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@scoped
@pass_call
def promote(call: Call, id: str, kind: str | None, yes: bool, **scope: Any) -> None:
    """Vouch for what a tool, a page or a repository said.

    Its trust becomes yours; only then can it be a rule or a procedure, or pinned. With --as, a new record says it and the
    old one is retired. Shows it and asks first on a terminal, and needs --yes where there is none.
    """
    if is_agent():
        raise InputError("Only a person can promote a record, and a coding agent runs this command. Ask the user to run it.")
    with call.open(**scope) as engine:
        if not yes and not _vouched(engine.get(id), kind):
            raise click.Abort
        record = engine.inbox.accept(id, kind=kind)[0]
        print_changed(call, record)
        for warning in engine.store.oversized_rules(record.scope) if kind else ():
            say(f"warning: {warning}")


def _vouched(record: Record, kind: str | None) -> bool:
    """Show a person all that would become their word, and ask."""
    if not sys.stdin.isatty():
        raise InputError("Somebody should read it first. Pass --yes to promote it without being asked; nothing was changed.")
    click.echo(f"{record.id}  {record.kind}, said by: {record.trust}", err=True)
    for words in (record.text, *(f"{name}: {value}" for name, value in record.data.items())):
        click.echo(words, err=True)
    return click.confirm(f"Is this your word, as {kind or record.kind}?", err=True)


@click.command(cls=Verb)
@click.argument("id")
@scoped
@pass_call
def retire(call: Call, id: str, **scope: Any) -> None:
    """Take a record out of use.

    It stays on record: `undo` brings it back, `forget` removes it.
    """
    with call.open(**scope) as engine:
        print_changed(call, engine.edit(id, status="retired"))


@click.command(cls=Verb)
@click.argument("id")
@scoped
@pass_call
def undo(call: Call, id: str, **scope: Any) -> None:
    """Take back the last change of a record.

    What that change did to other records is taken back with it.
    """
    with call.open(**scope) as engine:
        undone = engine.undo(id)
    if call.as_json:
        call.print_json(json.undone(undone))
        return
    for record in undone:
        click.echo(f"{record.id}  version {record.version}, {record.status}")


@click.command(cls=Verb)
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask.")
@scoped
@pass_call
def forget(call: Call, ids: tuple[str, ...], yes: bool, **scope: Any) -> None:
    """Remove records for good.

    From every table, index, version and receipt, down to the bytes of the file; prints how many of each. Asks first on a
    terminal, and needs --yes where there is none.
    """
    wanted = tuple(dict.fromkeys(ids))
    with call.open(**scope) as engine:
        if not yes and not _agreed(engine, wanted):
            raise click.Abort
        done = engine.forget(*wanted)
    if call.as_json:
        call.print_json(json.forgotten(wanted, done))
        return
    for table, number in done.counts.items():
        click.echo(f"{table.replace('_', ' ')}  {number}")
    for warning in done.warnings:
        say(f"warning: {warning}")


def _agreed(engine: Engine, ids: tuple[str, ...]) -> bool:
    """Ask a person; there is nobody to ask where stdin is no terminal."""
    with engine.store.data.reader() as reader:
        found = reader.get(ids)
    missing = [id for id in ids if id not in found]
    if missing:
        raise NotFound(f"No record {missing[0]!r} in this scope; nothing was forgotten.")
    if not sys.stdin.isatty():
        raise InputError("Forgetting cannot be undone. Pass --yes to do it without being asked; nothing was forgotten.")
    for id in ids:
        click.echo(f"{id}  {found[id].micro}", err=True)
    return click.confirm("Forget this for good?", err=True)


VERBS = {
    "outcome": outcome,
    "confirm": confirm,
    "pin": pin,
    "promote": promote,
    "retire": retire,
    "undo": undo,
    "forget": forget,
}
