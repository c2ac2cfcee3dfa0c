"""`why`, `why-not`, `diff`, `replay`: questions about a context that receipts answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from foveate.front import documents
from foveate.front.cli.calling import Call, Verb, pass_call, scoped
from foveate.front.cli.context import given_option, given_texts

LAST = "last"
"""What stands for the latest context."""


def _id(context: str) -> str | None:
    return None if context == LAST else context


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
        found = engine.why(item, _id(context))
    if call.as_json:
        call.print_json(found)
    else:
        _print_why(found)


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
        found = engine.why_not(item, _id(context))
    if call.as_json:
        call.print_json(found)
    else:
        _print_why(found)


def _print_why(found: Mapping[str, Any]) -> None:
    from foveate.front.cli.show import Line, print_lines

    lines: list[Line] = [[(found["id"], "cyan"), (f" in {found['context']}: {found['sentence']}", "")]]
    if "score" in found:
        lines.append([(f"  score {found['score']:.3f}", "bold")])
        for name, part in sorted(found["score_parts"].items(), key=lambda pair: -pair[1]):
            feature = found["features"].get(name, 0.0)
            if part or feature:
                lines.append([(f"  {part:.3f}  {name} ({feature:.3f})", "" if part else "dim")])
    print_lines(lines)


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
        ids = [engine.receipt(_id(context)).id for context in (one, other)]
        found = engine.diff(*ids)
    if call.as_json:
        call.print_json(found)
        return
    from foveate.front.cli.show import print_text

    print_text(*_diff_lines(found))


def _diff_lines(found: Mapping[str, Any]) -> list[str]:
    entries = (("+", found["added"]), ("-", found["withdrawn"]))
    steps = (("moved", found["moved"]), ("level", found["re_detailed"]), ("version", found["changed"]))
    lines = [f"{found['from']} -> {found['to']}: {found['tokens']:+d} tokens"]
    lines += [
        f"{mark} {entry['id']}  {entry['slot']} {entry['level']}, {entry['shown_tokens']} tokens"
        for mark, group in entries
        for entry in group
    ]
    lines += [f"~ {step['id']}  {what} {step['from']} -> {step['to']}" for what, group in steps for step in group]
    if len(lines) == 1:
        lines.append("no item changed")
    if "shared_prefix" in found:
        shared = found["shared_prefix"]
        size = f"{shared['tokens']} tokens, {shared['share']:.0%} of the second"
        lines.append(f"the first {shared['chars']} characters ({size}) are the same")
    return lines


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
    from foveate.agents import made_again

    with call.open(**scope) as engine:
        receipt = engine.receipt(_id(context))
        handed = given_texts(given) or made_again(engine, receipt)
        found = documents.replayed(engine.replay(receipt.id, handed), receipt)
    reason = found["reason"]
    if call.as_json:
        call.print_json(found)
    else:
        from foveate.front.cli.show import print_text

        verdict = f"differs: {reason}" if reason else "identical"
        print_text(f"{found['id']}  {found['tokens']} tokens, {verdict}")
    if reason:
        raise click.exceptions.Exit(1)


VERBS = {"why": why, "why-not": why_not, "diff": diff, "replay": replay}
