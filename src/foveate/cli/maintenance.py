"""`gc`, `check`, `false-alarm`: lifecycles, and what a planned action may not do."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from foveate.cli.call import Call, Verb, pass_call, read_text, say, scoped
from foveate.cli.memory import print_changed
from foveate.operations import json


@click.command(cls=Verb)
@click.option("--apply", is_flag=True, help="Do it; without this, only say what would be done.")
@scoped
@pass_call
def gc(call: Call, apply: bool, **scope: Any) -> None:
    """Move old and proven records on, and drop what is beyond its retention.

    Archives old episodes, flags procedures that mostly fail, turns a warning that trips often into a block and withdraws
    one that is mostly wrong: no decision is touched, and `undo` takes each change back. Receipts and events beyond the
    limits of [retention] in config.toml are dropped for good, and unused room in the file is given back.
    """
    with call.open(**scope) as engine:
        steps = engine.store.maintain(dry_run=not apply)
    if call.as_json:
        call.print_json({"applied": apply, "steps": [asdict(step) for step in steps]})
        return
    for step in steps:
        what = step.id or f"{step.number:,} {step.kind}{'' if step.number == 1 else 's'}"
        click.echo(f"{what}  {step.verb}: {step.was} -> {step.to}, {step.why}")
    if not steps:
        say("nothing is due.")
    elif not apply:
        say("nothing was changed; --apply does it.")


@click.command(cls=Verb)
@click.argument("text")
@click.option("--dry-run", is_flag=True, help="Do not count the trips.")
@scoped
@pass_call
def check(call: Call, text: str, dry_run: bool, **scope: Any) -> int:
    """Say which censors a planned action trips.

    TEXT `-` reads stdin. Exits with 1 where a block trips, with 0 where nothing or only a warning does.
    """
    with call.open(**scope) as engine:
        trips = engine.check(read_text(text), dry_run=dry_run)
    blocked = any(trip.action == "block" for trip in trips)
    if call.as_json:
        call.print_json(json.trips(trips))
    else:
        for trip in trips:
            because = f" — {trip.reason}" if trip.reason else ""
            click.echo(f"{trip.action.upper()}  {trip.censor.id}  {trip.censor.text}{because}")
    return int(blocked)


@click.command("false-alarm", cls=Verb)
@click.argument("id")
@scoped
@pass_call
def false_alarm(call: Call, id: str, **scope: Any) -> None:
    """Say that a censor tripped for nothing."""
    with call.open(**scope) as engine:
        engine.feedback(wrong=[id])
        print_changed(call, engine.get(id))


VERBS = {"gc": gc, "check": check, "false-alarm": false_alarm}
