"""`why`, `why-not`, `diff`, `replay`: questions about a context that receipts answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from foveate.cli.call import Call, Verb, pass_call, scoped
from foveate.cli.context import given_option, given_texts
from foveate.operations import json
from foveate.operations.inputs import LAST, context_named

if TYPE_CHECKING:
    from foveate.cli.render import Line
    from foveate.receipts.diff import Diff, SharedPrefix
    from foveate.receipts.parts import CandidateEntry
    from foveate.receipts.receipt import Receipt
    from foveate.receipts.why import Why

MOST_COLUMNS = 100
"""Of what is drawn: bars that are longer say no more."""


@click.command(cls=Verb)
@click.argument("context")
@click.argument("item")
@scoped
@pass_call
def why(call: Call, context: str, item: str, **scope: Any) -> None:
    """Say why a record is in a context.

    ITEM is a record's id; CONTEXT is a context's, or `last`. Shows its place and its score taken apart.
    """
    with call.open(**scope) as engine:
        receipt = engine.receipts.get(context_named(context))
        found = engine.why(item, receipt.id)
    if call.as_json:
        call.print_json(json.why(found))
    else:
        _print_why(found, receipt)


@click.command("why-not", cls=Verb)
@click.argument("item")
@click.option("--context", default=LAST, show_default=True, help="Which context.")
@scoped
@pass_call
def why_not(call: Call, item: str, context: str, **scope: Any) -> None:
    """Say why a record is not in a context.

    It need not have been a candidate: no slot for its kind, a filter, no shared word, or a rank beyond the limit.
    """
    with call.open(**scope) as engine:
        receipt = engine.receipts.get(context_named(context))
        found = engine.why(item, receipt.id)
    if call.as_json:
        call.print_json(json.why(found))
    else:
        _print_why(found, receipt)


def _print_why(found: Why, receipt: Receipt) -> None:
    from foveate.cli.render import print_lines, width

    lines: list[Line] = [[(found.id, "cyan"), (f" in {found.context}: {found}", "")]]
    if found.candidate is not None:
        lines += [[], *_score_lines(found.candidate, found.score_parts, min(MOST_COLUMNS, width()))]
        if not found.included:
            lines += _lack_lines(found, found.candidate, receipt, min(MOST_COLUMNS, width()))
    print_lines(lines)


def _score_lines(entry: CandidateEntry, score_parts: Mapping[str, float], columns: int) -> list[Line]:
    """The score as one bar of its parts, and below it a bar for each: what it adds, its share, and the feature itself."""
    from foveate.cli import bars

    whole = entry.score
    parts = {name: part for name, part in score_parts.items() if part or entry.features.get(name)}
    size = max(len(name) for name in ("score", *parts))
    heads = f"  {'':{size}}  {'part':>5}  {'share':>5}  {'feature':>7}"
    bar = bars.score(parts, whole, columns - len(heads) - 2)
    drawn = dict(zip((name for name, _, _ in bars.pieces(parts)), bar, strict=False))
    lines: list[Line] = [[(heads, "dim")], [(f"  {'score':{size}}  {whole:.3f}  {'':5}  {'':7}  ", "bold"), *bar]]
    for name, part in parts.items():
        share = part / whole if whole else 0.0
        said = f"  {name:{size}}  {part:.3f}  {share:5.0%}  {entry.features.get(name, 0.0):7.3f}  "
        lines.append([(said, "" if part else "dim"), drawn.get(name, ("", ""))])
    return lines


def _lack_lines(found: Why, entry: CandidateEntry, receipt: Receipt, columns: int) -> list[Line]:
    """What a candidate lacked, drawn against what it had."""
    from foveate.cli import bars

    granted = {slot.name: slot.granted for slot in receipt.budget.slots}.get(entry.slot, 0)
    lacks: list[tuple[float, float, str]] = []
    if tokens := found.needs_tokens:
        lacks.append((granted, tokens, f"lacked +{tokens} tokens of {granted + tokens}"))
    if short := found.needs_score:
        lacks.append((entry.score, short, f"lacked +{short:.3f} score of {entry.score + short:.3f}"))
    return [[], *([(f"  {said}  ", ""), *bars.lacking(has, lack, columns - len(said) - 4)] for has, lack, said in lacks)]


@click.command(cls=Verb)
@click.argument("one", metavar="A")
@click.argument("other", metavar="B")
@scoped
@pass_call
def diff(call: Call, one: str, other: str, **scope: Any) -> None:
    """Say what changed between two contexts.

    A and B are ids of contexts; either may be `last`.
    """
    with call.open(**scope) as engine:
        found = engine.receipts.diff(engine.receipts.get(context_named(one)), engine.receipts.get(context_named(other)))
    if call.as_json:
        call.print_json(json.diff(found))
        return
    from foveate.cli.render import print_lines, width

    print_lines(_diff_lines(found, min(MOST_COLUMNS, width())))


def _diff_lines(found: Diff, columns: int) -> list[Line]:
    entries = (("+", "green", found.added), ("-", "red", found.withdrawn))
    steps = (("moved", found.place_changes), ("level", found.level_changes), ("version", found.version_changes))
    lines: list[Line] = [[(f"{found.before} -> {found.after}: {found.tokens:+d} tokens", "bold")]]
    lines += [
        [(f"{mark} {entry.id}", color), (f"  {entry.slot} {entry.level}, {entry.tokens} tokens", "")]
        for mark, color, group in entries
        for entry in group
    ]
    lines += [
        [(f"~ {step.id}", "yellow"), (f"  {what} {step.before} -> {step.after}", "")]
        for what, group in steps
        for step in group
    ]
    if len(lines) == 1:
        lines.append([("no item changed", "")])
    return [*lines, *_prefix_lines(found.shared_prefix, columns)] if found.shared_prefix else lines


def _prefix_lines(shared: SharedPrefix, columns: int) -> list[Line]:
    from foveate.cli import bars

    size = f"{shared.tokens} tokens, {shared.share:.0%} of the second"
    bar = bars.lacking(shared.share, 1 - shared.share, columns)
    return [bar, [(f"the first {shared.chars} characters ({size}) are the same", "")]]


@click.command(cls=Verb)
@click.argument("context")
@given_option
@scoped
@pass_call
def replay(call: Call, context: str, given: tuple[str, ...], **scope: Any) -> None:
    """Compute a past context again.

    CONTEXT is a context's id, or `last`. Its receipt names the candidates and their versions. The exit code is 1 where the
    bytes are not the same, and the answer says why.
    """
    with call.open(**scope) as engine:
        receipt = engine.receipts.get(context_named(context))
        handed = given_texts(given)
        found = engine.receipts.replay(receipt, extra=handed)
    reason = found.reason
    if call.as_json:
        call.print_json(json.replay(found))
    else:
        from foveate.cli.render import print_text

        verdict = f"differs: {reason}" if reason else "identical"
        print_text(f"{found.id}  {found.tokens} tokens, {verdict}")
    if reason:
        raise click.exceptions.Exit(1)


VERBS = {"why": why, "why-not": why_not, "diff": diff, "replay": replay}
