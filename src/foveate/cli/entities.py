"""`relate` and `entities`: the things that records are about, and how they hang together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foveate.cli.call import STDIN, Call, Verb, VerbGroup, decoded, pass_call, read_text, say, scoped
from foveate.cli.tasks import FILE
from foveate.errors import InputError, near
from foveate.operations import json

if TYPE_CHECKING:
    from foveate.memory.entities import Proposal

NOBODY = "no entities are known. `foveate add entity NAME` keeps one, and `foveate entities propose FILE` finds some."


@click.command(cls=Verb)
@click.argument("source")
@click.argument("name")
@click.argument("target")
@click.option("--weight", type=float, default=1.0, show_default=True, metavar="0..1", help="How much the relation matters.")
@click.option("--create", is_flag=True, help="Keep the entities that are not known yet.")
@scoped
@pass_call
def relate(call: Call, source: str, name: str, target: str, weight: float, create: bool, **scope: Any) -> None:
    """Say how two entities hang together.

    SOURCE and TARGET are names, aliases or ids: `foveate relate Mira owns Uploader`.
    """
    with call.open(**scope) as engine:
        link = engine.link(source, name, target, weight=weight, create=create)
        with engine.store.data.reader() as reader:
            from foveate.memory.relations import id_of, load_relation

            record = load_relation(reader, id_of(link))
    if call.as_json:
        call.print_json(json.relation(link))
    elif record is not None:
        click.echo(record.text)


@click.group(cls=VerbGroup)
def entities() -> None:
    """List the entities that are known, or find some in a text."""


@entities.command("list", cls=Verb)
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="At most this many.")
@scoped
@pass_call
def list_(call: Call, limit: int, **scope: Any) -> None:
    """List the known entities, those that matter most first."""
    from foveate.types import NO_FILTERS

    with call.open(**scope) as engine, engine.store.data.reader() as reader:
        found = reader.most_salient(["entity"], limit, NO_FILTERS)
    if call.as_json:
        from foveate.records.make import to_json

        call.print_json({"entities": [to_json(record) for record in found]})
        return
    if not found:
        say(NOBODY)
        return
    from foveate.cli.render import cut, print_lines, table
    from foveate.memory.entities import name_of

    rows = [
        (record.id, cut(str(record.data.get("type", "")), 20), cut(name_of(record), 40), f"{record.salience:.2f}")
        for record in found
    ]
    print_lines(table(("id", "type", "name", "salience"), rows, left=3))


@entities.command("propose", cls=Verb)
@click.argument("file", type=FILE)
@click.option("--add", is_flag=True, help="Keep those that are not known yet.")
@click.option("--only", multiple=True, metavar="NAME", help="Of the proposals, only this one. Repeatable.")
@scoped
@pass_call
def propose(call: Call, file: str, add: bool, only: tuple[str, ...], **scope: Any) -> None:
    """Find names in a text that could be entities.

    Code identifiers, capitalised names, quoted terms, @mentions and the hosts of addresses. FILE `-` reads stdin. Nothing
    is kept without --add.
    """
    from foveate.memory.entities import propose_entities

    text = read_text(STDIN) if file == STDIN else decoded(Path(file).read_bytes(), repr(file))
    with call.open(**scope) as engine:
        found = _only(propose_entities(engine.store.data, text), only)
        new = [one for one in found if add and one.known is None]
        kept = {one.name: engine.add("entity", one.name, data={"type": one.type}).record.id for one in new}
    if call.as_json:
        call.print_json(json.proposals(found, kept))
        return
    if not found:
        say("the text names nothing that could be an entity.")
        return
    from foveate.cli.render import print_lines, table

    lines = [(one.name, one.type, kept.get(one.name) or one.known or "", str(one.count)) for one in found]
    print_lines(table(("name", "type", "entity", "count"), lines, left=3))


def _only(found: list[Proposal], names: tuple[str, ...]) -> list[Proposal]:
    """The proposals of these names, or all; a name that was not proposed is a slip."""
    proposed = [one.name for one in found]
    wrong = [f"{name!r} is not among the proposals.{near(name, proposed)}" for name in names if name not in proposed]
    if wrong:
        raise InputError(wrong)
    return [one for one in found if not names or one.name in names]


VERBS: dict[str, Any] = {"relate": relate, "entities": entities}
