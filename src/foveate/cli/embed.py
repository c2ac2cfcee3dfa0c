"""`embed`: vectors for the records that have none by the embedder that is set."""

from __future__ import annotations

from random import random

import click

from foveate.cli.call import Call, Verb, pass_call, say


@click.command(cls=Verb)
@click.option(
    "--prune", is_flag=True, help="Then drop the vectors of other embedders; you can no longer switch back at once."
)
@pass_call
def embed(call: Call, prune: bool) -> int:
    """Give a vector to every record that has none.

    After an embedder was set or changed. What it has not come to yet is found by words; it can be interrupted at any point
    and goes on from there, and a running service does the same by itself. Exits with 1 where records remain without one.
    """
    from foveate.cli.render import Bar
    from foveate.memory.backfill import drop_unused_vectors, embed_missing

    bar = Bar("embedding", "records")
    with call.open() as engine:
        try:
            found = embed_missing(engine.store.data, start=random(), progress=bar)
        finally:
            bar.close()
        dropped = drop_unused_vectors(engine.store.data) if prune and not found.remaining else {}
        why = found.error
    if call.as_json:
        call.print_json({"made": found.embedded_count, "remaining": found.remaining, "reason": why, "dropped": dropped})
    else:
        click.echo(f"{found.embedded_count:,} records given a vector, {found.remaining:,} without one.")
        for name, number in dropped.items():
            click.echo(f"{number:,} vectors of {name} dropped.")
    if found.remaining:
        say(f"The embedder does not answer: {why}" if why else "The embedder refuses these texts, or others were quicker.")
    return int(found.remaining > 0)


VERBS = {"embed": embed}
