"""`gc`: lifecycles."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from foveate.cli.call import Call, Verb, pass_call, say, scoped


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


VERBS = {"gc": gc}
