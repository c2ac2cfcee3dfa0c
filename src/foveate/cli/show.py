"""`show`: one record, context or piece of code in full."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from foveate.cli import receipt_text
from foveate.cli.call import Call, Verb, pass_call, record_id, say
from foveate.cli.options import extra_option, extra_texts
from foveate.cli.render import Line, pairs, print_lines, text_line, title, value_text
from foveate.clock import iso
from foveate.errors import InputError
from foveate.operations import documents
from foveate.types import CONTEXT_PREFIX, LAST

if TYPE_CHECKING:
    from foveate.engine import Engine
    from foveate.receipts.receipt import Receipt
    from foveate.types import Change, Link, Record

RECORD_FIELDS = (
    "tags", "entities", "paths", "subject", "attribute", "outcome", "confidence", "salience", "trust", "pinned", "origin",
    "key", "uses", "wins",
)  # fmt: skip


@click.command(cls=Verb, scoped=True)
@click.argument("id", metavar="[ID|CONTEXT]", default=LAST)
@click.option("--full", is_flag=True, help="Print the text as the model reads it; for a record, this counts as a use.")
@click.option("--history", is_flag=True, help="Of a record, print the text of each earlier version.")
@click.option("--as-of", metavar="TIME", help="Of a record, show it as it was then: 2026-11-15T12:00Z, 12h, 7d.")
@click.option("--against", metavar="CONTEXT", help="Of a context, show what changed since this earlier one.")
@click.option("--replay", is_flag=True, help="Compute a context again; exits with 1 if the text differs.")
@extra_option
@pass_call
def show(
    call: Call,
    id: str,
    full: bool,
    history: bool,
    as_of: str | None,
    against: str | None,
    replay: bool,
    extra: tuple[str, ...],
) -> None:
    """Show a record or a context; without an id, the latest context.

    A record is named by its id or its key, and shown with its lengths, fields, links and history. A context is shown with
    the use of its tokens, the reason why each item is in it or not, and suggestions. Code, such as `code:PATH::NAME`, and
    records of other memories are printed in full.
    """
    is_context = id == LAST or id.startswith(CONTEXT_PREFIX)
    of_record = {"--history": history, "--as-of": as_of is not None}
    of_context = {"--against": against is not None, "--replay": replay, "--extra": bool(extra)}
    for option, given in (of_record if is_context else of_context).items():
        if given and is_context:
            raise InputError(f"{option} is for a record, and {id!r} is a context. Name a record by its id.")
        if given:
            raise InputError(f"{option} is for a context, and {id!r} is not one. `foveate log` lists them.")
    views = {"--full": full, "--history": history or as_of is not None, "--against": against is not None, "--replay": replay}
    chosen = [option for option, given in views.items() if given]
    if len(chosen) > 1:
        raise InputError(f"{' and '.join(chosen)} are different views. Pass one of them.")
    if extra and not replay:
        raise InputError("--extra is for --replay: it passes the texts again that the context was computed with.")
    with call.open() as engine:
        if against is not None:
            _show_diff(call, engine, against, id)
        elif replay:
            _show_replay(call, engine, id, extra)
        elif is_context:
            _show_context(call, engine, engine.receipts.get(id), full)
        elif full or ":" in id:
            _show_full(call, engine, record_id(engine, id))
        else:
            _show_record(call, engine, record_id(engine, id), as_of, history)


# --- records -------------------------------------------------------------------------------------------------------


def _show_full(call: Call, engine: Engine, id: str) -> None:
    message = engine.expand(id)
    if call.as_json:
        call.print_json({"id": id, "message": message})
    else:
        click.echo(message["content"], nl=False)


def _show_record(call: Call, engine: Engine, id: str, as_of: str | None, history: bool) -> None:
    document = documents.record(engine, id, documents.RECORD_PARTS, as_of=as_of)
    if call.as_json:
        call.print_json(document)
        return
    record = engine.get(id, as_of=as_of)
    print_lines([*_record(record), *_links(record, document["links"]), *_changes(document["history"], history)])


def _record(record: Record) -> list[Line]:
    scope = ", ".join(
        f"{level} {name}" for level in ("user", "agent", "session", "task") if (name := getattr(record.scope, level))
    )
    fields = [(name, value_text(getattr(record, name))) for name in RECORD_FIELDS]
    times = [
        ("created", iso(record.created)),
        ("updated", iso(record.updated)),
        ("valid", f"{iso(record.valid_from)} to {iso(record.valid_to)}" if record.valid_to else ""),
    ]
    data = [(name, value_text(value)) for name, value in record.data.items()]
    lines: list[Line] = [[(record.id, "cyan"), (f"  {record.kind}, {record.status}, version {record.version}", "")]]
    lines += pairs([("scope", scope), *fields, *data, *times])
    sizes: dict[str, int] = {str(level): size for level, size in (record.tokens or {}).items()}
    for level, text in (("full", record.text), ("summary", record.summary), ("micro", record.micro)):
        lines += [
            [],
            title(f"{level} ({sizes[level]} tokens)" if level in sizes else level),
            *map(text_line, text.split("\n")),
        ]
    return lines


def _links(record: Record, links: Sequence[Link]) -> list[Line]:
    if not links:
        return []
    lines = [f"{link.src} {link.name} {link.dst}".replace(record.id, "this") for link in links]
    return [[], title("links"), *map(text_line, lines)]


def _changes(changes: Sequence[Change], with_text: bool) -> list[Line]:
    if not changes:
        return []
    lines: list[Line] = [[], title("history")]
    for change in changes:
        lines.append(text_line(f"version {change.version}  {iso(change.at)}  {change.verb}"))
        if with_text and change.before is not None:
            lines += [[(f"  before: {line}", "dim")] for line in change.before.text.split("\n")]
    return lines


# --- contexts ------------------------------------------------------------------------------------------------------


def _show_context(call: Call, engine: Engine, receipt: Receipt, full: bool) -> None:
    if full and not call.as_json:
        _print_text_again(engine, receipt)
        return
    if call.as_json:
        parts = ("candidates", "validation", *(["text"] if full else []))
        call.print_json(documents.receipt(engine, receipt, parts))
        return
    validation = engine.receipts.validate(receipt)
    counter = receipt.request.counter or engine.store.data.rules.counter
    lines = [
        *pairs([("query", " ".join(receipt.request.query.split())), ("computed", iso(receipt.created))]),
        *receipt_text.explain(receipt, counter, validation.not_considered),
    ]
    for heading, texts in (("Warnings", validation.warnings), ("Suggestions", validation.suggestions)):
        lines += [[], title(heading), *map(text_line, texts)] if texts else []
    print_lines(lines)


def _print_text_again(engine: Engine, receipt: Receipt) -> None:
    """Print the text of a past context. Receipts hold no texts, so it is computed again."""
    found = engine.receipts.replay(receipt)
    click.echo(found.prompt.text if found.reason else found.text, nl=False)
    if found.reason:
        say(f"warning: this is not the whole text: {found.reason}")


def _show_diff(call: Call, engine: Engine, before: str, after: str) -> None:
    found = engine.receipts.diff(before, after)
    call.print(documents.diff(found), receipt_text.diff(found))


def _show_replay(call: Call, engine: Engine, id: str, extra: tuple[str, ...]) -> None:
    found = engine.receipts.replay(id, extra=extra_texts(extra))
    result = f"differs: {found.reason}" if found.reason else "identical"
    call.print(documents.replay(found), f"{found.id}  {found.tokens} tokens, {result}")
    if found.reason:
        raise click.exceptions.Exit(1)


VERBS = {"show": show}
