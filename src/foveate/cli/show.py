"""`show` and `search`: records for people to read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from foveate.cli.call import Call, Verb, complete_kinds, pass_call, read_text, say, scoped
from foveate.cli.render import Line, cut, pairs, plain, plainly, print_lines, title, width
from foveate.errors import InputError
from foveate.operations import json

if TYPE_CHECKING:
    from foveate.types import Change, Link, Record

FIELDS = (
    "tags", "entities", "paths", "subject", "attribute", "outcome", "confidence", "salience", "trust", "pinned", "origin",
    "key", "uses", "wins",
)  # fmt: skip


@click.command(cls=Verb)
@click.argument("id")
@click.option("--as-of", metavar="TIME", help="As it was then: 2026-11-15T12:00Z, 12h, 7d.")
@click.option("--history", "full", is_flag=True, help="With the text of each earlier version.")
@scoped
@pass_call
def show(call: Call, id: str, as_of: str | None, full: bool, **scope: Any) -> None:
    """Show a record: lengths, fields, links and history."""
    with call.open(**scope) as engine:
        record = engine.get(id, as_of=as_of)
        history = engine.history(id)
        with engine.store.data.reader() as reader:
            links = [*reader.links([id]), *reader.links([id], incoming=True)]
    if call.as_json:
        call.print_json(json.whole_record(record, links, history))
    else:
        print_lines([*_record(record), *_links(record, links), *_history(history, full)])


def _record(record: Record) -> list[Line]:
    from foveate.clock import iso

    scope = ", ".join(
        f"{level} {name}" for level in ("user", "agent", "session", "task") if (name := getattr(record.scope, level))
    )
    fields = [(name, plainly(getattr(record, name))) for name in FIELDS]
    times = [
        ("created", iso(record.created)),
        ("updated", iso(record.updated)),
        ("valid", f"{iso(record.valid_from)} to {iso(record.valid_to)}" if record.valid_to else ""),
    ]
    data = [(name, plainly(value)) for name, value in record.data.items()]
    lines: list[Line] = [[(record.id, "cyan"), (f"  {record.kind}, {record.status}, version {record.version}", "")]]
    lines += pairs([("scope", scope), *fields, *data, *times])
    sizes: dict[str, int] = {str(level): size for level, size in (record.tokens or {}).items()}
    for level, text in (("full", record.text), ("summary", record.summary), ("micro", record.micro)):
        lines += [[], title(f"{level} ({sizes[level]} tokens)" if level in sizes else level), *map(plain, text.split("\n"))]
    return lines


def _links(record: Record, links: Sequence[Link]) -> list[Line]:
    if not links:
        return []
    lines = [f"{link.src} {link.name} {link.dst}".replace(record.id, "this") for link in links]
    return [[], title("links"), *map(plain, lines)]


def _history(history: Sequence[Change], full: bool) -> list[Line]:
    from foveate.clock import iso

    if not history:
        return []
    lines: list[Line] = [[], title("history")]
    for step in history:
        lines.append(plain(f"version {step.version}  {iso(step.at)}  {step.verb}"))
        if full and step.before is not None:
            lines += [[(f"  before: {line}", "dim")] for line in step.before.text.split("\n")]
    return lines


@click.command(cls=Verb)
@click.argument("query")
@click.option("--kind", "kinds", multiple=True, shell_complete=complete_kinds, help="Only these kinds. Repeatable.")
@click.option("--code", is_flag=True, help="Definitions in the project's files, instead of records.")
@click.option("--files", is_flag=True, help="The same, and files as well.")
@click.option("--limit", type=click.IntRange(1, 1000), default=10, show_default=True, help="At most this many.")
@scoped
@pass_call
def search(call: Call, query: str, kinds: tuple[str, ...], code: bool, files: bool, limit: int, **scope: Any) -> None:
    """Find records by their words, best first.

    With --code, find definitions: each line has how relevant it is, where it stands, its name, and why.
    """
    readable = read_text(query).encode("utf-8", "replace").decode().replace("\x00", " ")
    if code or files:
        from foveate.cli.code import search_code

        if kinds:
            raise InputError("--kind is for records; --code finds definitions.")
        search_code(call, readable, limit, files)
        return
    with call.open(**scope) as engine:
        hits = engine.search(readable, kinds=kinds, limit=limit)
        hint = "; --code looks into the files" if engine.code.available else ""
        unknown = "" if hits else engine.store.unknown_project()
    if call.as_json:
        call.print_json(json.hits(readable, hits, unknown))
        return
    if not hits:
        say(unknown or f"nothing found{hint}")
    lines: list[Line] = []
    for hit in hits:
        record = hit.record
        score = f"{max(hit.lexical, hit.vector or 0.0):.2f}  "
        status = "" if record.status == "active" else f"({record.status}) "
        room = max(20, width() - len(score) - len(record.id) - 2)
        lines.append([(score, "dim"), (record.id, "cyan"), ("  " + cut(status + record.micro, room), "")])
    print_lines(lines)


VERBS = {"show": show, "search": search}
