"""`context`: the prompt for a question, or everything about it as one document."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import click

from foveate.cli.call import (
    Call,
    Verb,
    complete_kinds,
    complete_profiles,
    decoded,
    pass_call,
    read_text,
    say,
    scoped,
    speaks_utf8,
)
from foveate.errors import BudgetError, InputError

if TYPE_CHECKING:
    from foveate.receipts.context import Context

_SLOT = re.compile(r"([A-Za-z0-9_-]+)=(.*)", re.DOTALL)


def given_texts(values: tuple[str, ...]) -> dict[str, list[dict[str, str]]]:
    """`[slot=]text`, `[slot=]file` or `[slot=]-`, by slot. A text that itself begins with `word=` needs its slot named."""
    out: dict[str, list[dict[str, str]]] = {}
    for value in values:
        match = _SLOT.fullmatch(value)
        slot, text = (match[1], match[2]) if match and not os.path.isfile(value) else ("given", value)
        if os.path.isfile(text):
            with open(text, "rb") as file:
                part = {"text": decoded(file.read(), repr(text)), "origin": text}
        else:
            part = {"text": read_text(text)}
        out.setdefault(slot, []).append(part)
    return out


given_option = click.option(
    "--given",
    multiple=True,
    metavar="[SLOT=]FILE_OR_TEXT",
    help="A text that the caller supplies, or a file that holds it; `-` reads stdin. Repeatable.",
)


@click.command(cls=Verb)
@click.argument("query", required=False)
@click.option("--budget", type=int, metavar="TOKENS", help="The most that the model may receive, framing included.")
@click.option("--profile", metavar="NAME", shell_complete=complete_profiles, help="Which slots and weights.")
@click.option("--complexity", metavar="NAME", help="easy, normal or complex: another layer on the profile.")
@click.option("--frame", metavar="NAME", help="How to approach it: decision, debug, ...; `none` for no frame.")
@given_option
@click.option("--since", metavar="TIME", help="Only what was written since: 2026-11-15, 12h, 7d.")
@click.option("--until", metavar="TIME", help="Only what was written before.")
@click.option("--kind", "kinds", multiple=True, shell_complete=complete_kinds, help="Only these kinds. Repeatable.")
@click.option("--tag", "tags", multiple=True, help="Only records with one of these tags. Repeatable.")
@click.option("--event-type", "event_types", multiple=True, metavar="TYPE", help="Of events, this type. Repeatable.")
@click.option("--entity-type", "entity_types", multiple=True, metavar="TYPE", help="Of entities, this type. Repeatable.")
@click.option("--exclude", multiple=True, metavar="ID", help="Not this record. Repeatable.")
@click.option("--code-query", metavar="TEXT", help="What the code is searched for, where QUERY says it in other words.")
@click.option("--no-code", is_flag=True, help="Do not look at the project's files.")
@click.option("--without", multiple=True, metavar="SLOT", help="Leave a slot out: repo_map, codebase, ... Repeatable.")
@click.option("--counter", metavar="NAME", help="What counts tokens: o200k, cl100k, anthropic, chars4, bytes.")
@scoped
@click.option("--explain", is_flag=True, help="After the text, the budget and why each item is in it or not.")
@click.option("--messages", type=click.Choice(["openai", "anthropic"]), help="The messages as JSON, in this shape.")
@click.option("--computed", is_flag=True, help="The items as JSON, by what they are for a task: patterns, prior work, ...")
@click.option("--debug", is_flag=True, help="On stderr, what the context was computed from.")
@pass_call
def context(
    call: Call,
    query: str | None,
    given: tuple[str, ...],
    kinds: tuple[str, ...],
    tags: tuple[str, ...],
    event_types: tuple[str, ...],
    entity_types: tuple[str, ...],
    exclude: tuple[str, ...],
    since: str | None,
    until: str | None,
    agent: str | None,
    session: str | None,
    task: str | None,
    explain: bool,
    messages: Any,
    computed: bool,
    debug: bool,
    no_code: bool,
    without: tuple[str, ...],
    **options: Any,
) -> None:
    """Compute a context and print what the model should see.

    QUERY says what the context is for; `-` reads it from stdin. It may be left out with a --task (an id or a key), or where
    the session has a task stack: then the task, or the goal on top, is the question. In a repository, its files are looked
    at too. Without --json, --messages, --computed or --explain, stdout holds the text and nothing else.
    """
    from foveate.records.kinds import kind_of
    from foveate.types import Filters

    if messages and computed:
        raise InputError("--messages and --computed are two answers; ask for one of them.")
    for kind in kinds:
        kind_of(kind)
    asked = None if query is None else read_text(query)
    filters = Filters(
        since=since,
        until=until,
        kinds=kinds,
        tags=tags,
        exclude=exclude,
        event_types=event_types,
        entity_types=entity_types,
    )
    code = False if no_code else None
    if debug:
        os.environ["FOVEATE_DEBUG_CONTEXT"] = "true"
    with call.open(agent=agent, session=session, task=task, code=code, create=True) as engine:
        found = engine.context(asked, agent=agent, extra=given_texts(given), filters=filters, without=without, **options)
        _print_context(call, found, messages, computed)
        if explain and not (call.as_json or messages or computed):
            from foveate.cli import receipt_text, render

            render.print_lines([[], *receipt_text.explain(engine.receipts.get(found), found.counter, render.width())])
    if not call.as_json:
        if not found.text.strip():
            _say_empty(found)
        for warning in found.warnings:
            say(f"warning: {warning}")


def _messages(found: Context, shape: str) -> Any:
    return found.anthropic() if shape == "anthropic" else found.messages()


def _print_context(call: Call, found: Context, messages: Any, computed: bool) -> None:
    """The one answer that was asked for; `--json` beats the others, and holds what `--computed` gives."""
    if call.as_json:
        from foveate.receipts.codec import context_to_json

        call.print_json({**context_to_json(found), **({"computed": found.computed()} if computed else {})})
    elif messages or computed:
        import json

        document = _messages(found, messages) if messages else found.computed()
        click.echo(json.dumps(document, ensure_ascii=not speaks_utf8(), indent=2))
    else:
        click.echo(found.text, nl=False)


VERBS = {"context": context}


def _say_empty(found: Context) -> None:
    """Nothing is known, or nothing of it fits."""
    short = [omission.needs_tokens for omission in found.left_out if omission.reason == "budget"]
    if short:
        raise BudgetError(
            f"{found.budget.total} tokens are too few: {len(short)} candidates, and the smallest needs {min(short)} more.",
            short=min(short),
        )
    say("nothing known about this; the context is empty.")
