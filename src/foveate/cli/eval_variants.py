"""`eval variants`: how the variants of a profile do in real use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from foveate.cli.call import Call, Verb, pass_call, say, scoped

if TYPE_CHECKING:
    from foveate.eval.in_use import InUse, Measured

MOST = 100_000
"""Receipts that are read: more than the store keeps."""


@click.command("variants", cls=Verb)
@scoped
@pass_call
def variants(call: Call, **scope: Any) -> None:
    """Compare the variants that sessions were given.

    `[variants]` in `.foveate/config.toml` names them, and the share of sessions that gets each. Figures are means over
    sessions, from receipts and the feedback on them; p says how often chance alone would set a variant as far apart from
    `control`. Receipts are kept for 30 days.
    """
    from foveate.eval.in_use import as_json, in_use
    from foveate.receipts.receipt import unpack

    with call.open(**scope) as engine, engine.reader() as reader:
        found = in_use(unpack(stored.body) for stored in reader.receipts(MOST))
    if call.as_json:
        call.print_json(as_json(found))
        return
    if not found.variants:
        say("no session had a variant yet; name some under [variants] in .foveate/config.toml.")
    else:
        _print(found)
    if found.mixed:
        say(f"{found.mixed} sessions had several variants and are left out.")


def _print(found: InUse) -> None:
    from foveate.cli.render import print_lines, table
    from foveate.eval.in_use import MEASURES
    from foveate.receipts.feedback import MARKS

    heads = ("variant", "sessions", "contexts", *(head for name in MEASURES for head in (name, "p")), *MARKS)
    rows = [
        (
            one.name,
            f"{one.sessions:,}",
            f"{one.contexts:,}",
            *(cell for name in MEASURES for cell in _cells(name, one.figures.get(name))),
            *(f"{one.marks[mark]:,}" for mark in MARKS),
        )
        for one in found.variants
    ]
    print_lines(table(tuple(head.replace("_", " ") for head in heads), rows, left=1))


def _cells(name: str, measured: Measured | None) -> tuple[str, str]:
    if measured is None:
        return "", ""
    shown = f"{measured.mean:,.0f}" if name == "tokens" else f"{measured.mean:.1%}"
    return shown, "" if measured.p is None else f"{measured.p:.3f}"
