"""`inbox`: what waits for a person's decision."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from foveate.cli.call import Call, Verb, VerbGroup, pass_call, read_text, say
from foveate.cli.memory import changed_lines
from foveate.cli.options import check_public_kind, complete_kinds
from foveate.cli.render import Line, cut, print_lines, width
from foveate.errors import InputError

if TYPE_CHECKING:
    from foveate.engine.inbox import Review
    from foveate.types import Record

MIN_TEXT_COLUMNS = 20


@click.group(cls=VerbGroup, invoke_without_command=True, scoped=True)
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="How many at most.")
@pass_call
def inbox(call: Call, limit: int) -> None:
    """List what waits for a person's decision, newest first.

    Rules that an agent proposed, disputed values, conflicting facts, procedures that mostly fail, and open questions. Each
    line has the id, the reason, whose words it is, and the text.
    """
    with call.open() as engine:
        reviews = engine.inbox.list(limit=limit)
    if call.as_json:
        call.print_json({"reviews": reviews})
        return
    if not reviews:
        say("nothing waits for a decision.")
    reasons = [f"{review.reason} as {review.proposed_kind}" if review.proposed_kind else review.reason for review in reviews]
    column = max(map(len, reasons), default=0)
    print_lines(_line(review, reason.ljust(column)) for review, reason in zip(reviews, reasons, strict=True))


def _line(review: Review, reason: str) -> Line:
    head = f"  {reason}  {review.record.trust:5}  "
    room = max(MIN_TEXT_COLUMNS, width() - len(review.id) - len(head))
    return [(review.id, "cyan"), (head, "dim"), (cut(review.record.text, room), "")]


@inbox.command("accept", cls=Verb, scoped=True, authored=True)
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.option("--as", "kind", metavar="KIND", shell_complete=complete_kinds, help="Make a record of this kind of its words.")
@click.option("--text", help="Accept it with this text instead; `-` reads stdin.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@pass_call
def accept(call: Call, ids: tuple[str, ...], kind: str | None, text: str | None, yes: bool) -> None:
    """Accept records: their trust becomes yours.

    Takes what the inbox lists, and any record of a tool, a page or a repository. Only then can it be a rule or a procedure,
    or pinned. With another kind, a new record is added and the old one is retired. Shows the records and asks first on a
    terminal, and needs --yes without one.
    """
    if call.is_agent():
        raise InputError(f"Only a person can accept a record, and {call.agent_reason()}.")
    if kind is not None:
        check_public_kind(kind)
    new_text = None if text is None else read_text(text)
    with call.open() as engine:
        if not yes and not _confirm_accept([engine.get(id) for id in ids], kind):
            raise click.Abort
        accepted = engine.inbox.accept(*ids, text=new_text, kind=kind)
        warnings = {warning for record in accepted for warning in engine.store.rule_warnings(record.scope)}
    call.print({"accepted": accepted}, changed_lines(accepted))
    for warning in sorted(warnings):
        say(f"warning: {warning}")


def _confirm_accept(records: Sequence[Record], kind: str | None) -> bool:
    """Show everything that would become the person's words, and ask; without a terminal, raise an error."""
    if not sys.stdin.isatty():
        raise InputError("A person must read it first. Pass --yes to accept without being asked; nothing was changed.")
    from foveate.engine.inbox import proposed_kind

    for record in records:
        becomes = kind or proposed_kind(record) or record.kind
        click.echo(f"{record.id}  {record.kind}, words of: {record.trust}, becomes: {becomes}", err=True)
        for line in (record.text, *(f"{name}: {value}" for name, value in record.data.items())):
            click.echo(f"  {line}", err=True)
    return click.confirm("Accept as your own words?", err=True)


@inbox.command("reject", cls=Verb, scoped=True)
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.option("--reason", default="", metavar="TEXT", help="Why, stored with the record.")
@pass_call
def reject(call: Call, ids: tuple[str, ...], reason: str) -> None:
    """Reject records: they are retired and stay in the history."""
    with call.open() as engine:
        rejected = engine.inbox.reject(*ids, reason=reason)
    call.print({"rejected": rejected}, changed_lines(rejected))


@inbox.command("answer", cls=Verb, scoped=True, authored=True)
@click.argument("question", metavar="ID")
@click.argument("text")
@pass_call
def answer(call: Call, question: str, text: str) -> None:
    """Answer an open question and print the decision's id.

    TEXT `-` reads stdin. The answer becomes a decision of the same tasks, and the question is retired.
    """
    with call.open() as engine:
        decision = engine.inbox.answer(question, read_text(text), trust=call.author())
    call.say_agent_trust()
    call.print({"id": decision.id, "question": question, "record": decision}, decision.id)


VERBS = {"inbox": inbox}
