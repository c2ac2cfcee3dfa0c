"""`add` and `edit`: the verbs that take a record's text and fields."""

from __future__ import annotations

import json
from typing import Any

import click

from foveate.cli.call import (
    Call,
    Function,
    Verb,
    author_trust,
    complete_kinds,
    pass_call,
    read_text,
    refuse_unreadable,
    say,
    scoped,
)
from foveate.cli.render import Line, cut, print_lines, width
from foveate.clock import parse_time
from foveate.errors import InputError, near
from foveate.operations import json as documents

TEXTS = ("summary", "micro")
TIMES = ("valid_from", "valid_to", "created")
"""What `--set` takes besides the kind's own fields; the other columns have options."""


def fields(function: Function) -> Function:
    """The options that set a record's fields, the same for a new record and a changed one."""
    options = (
        click.option("--tag", "tags", multiple=True, help="A word to find it by. Repeatable."),
        click.option("--subject", help="Of whom or what it speaks."),
        click.option("--attribute", help="Of which attribute: a newer value for it supersedes an older one."),
        click.option("--outcome", metavar="OUTCOME", help="success, partial, failure or pending."),
        click.option("--confidence", type=float, metavar="0..1", help="How sure its author is."),
        click.option("--salience", type=float, metavar="0..1", help="How much it matters."),
        click.option("--trust", metavar="TRUST", help="Who says so: user, agent, repo, tool or web."),
        click.option("--key", help="Your own key: adding it again changes nothing."),
        click.option("--origin", help="Where it comes from: a file, a URL, a tool."),
        click.option("--entity", "entities", multiple=True, metavar="NAME", help="A name that it is about. Repeatable."),
        click.option("--path", "paths", multiple=True, help="A file that it is about. Repeatable."),
        click.option(
            "--set",
            "settings",
            multiple=True,
            metavar="FIELD=VALUE",
            help="A field of the kind; JSON where the field is not a text. Repeatable.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


@click.command(cls=Verb)
@click.argument("kind", shell_complete=complete_kinds)
@click.argument("text")
@fields
@click.option("--pin", "pinned", is_flag=True, help="Have it in every context.")
@click.option("--own", is_flag=True, help="Into your own store, which follows you across projects.")
@scoped
@pass_call
def add(
    call: Call,
    kind: str,
    text: str,
    settings: tuple[str, ...],
    own: bool,
    agent: str | None,
    session: str | None,
    task: str | None,
    **values: Any,
) -> None:
    """Keep something; prints its id.

    TEXT `-` reads stdin. Known content is confirmed, and a fact with a subject and an attribute supersedes the older value.
    """
    values["trust"] = author_trust(values.get("trust"))
    with call.open(agent=agent, session=session, task=task) as engine:
        added = engine.add(kind, read_text(text), personal=own, **_given(values), **parsed(kind, settings))
    if call.as_json:
        call.print_json(documents.added(added))
        return
    click.echo(added.record.id)
    affected = f": {', '.join(added.affected)}" if added.affected else ""
    if added.action != "added":
        say(f"{added.action}{affected}")
    for warning in added.warnings:
        say(f"warning: {warning}")


@click.command(cls=Verb)
@click.argument("id")
@click.option("--text", help="The new text; `-` reads stdin.")
@fields
@click.option("--pin/--no-pin", "pinned", default=None, help="Have it in every context, or no longer.")
@click.option("--expect", type=int, metavar="VERSION", help="Fail where somebody changed it since this version.")
@scoped
@pass_call
def edit(
    call: Call,
    id: str,
    text: str | None,
    settings: tuple[str, ...],
    pinned: bool | None,
    expect: int | None,
    agent: str | None,
    session: str | None,
    task: str | None,
    **values: Any,
) -> None:
    """Change a record's text or fields.

    What is not named stays as it is; the earlier version stays in the record's history.
    """
    if text is not None or values.get("trust"):
        values["trust"] = author_trust(values.get("trust"))
    changes = _given(values)
    if pinned is not None:
        changes["pinned"] = pinned
    if text is not None:
        changes["text"] = read_text(text)
    if not changes and not settings:
        raise InputError("There is nothing to change. Name a new --text, or fields to set.")
    with call.open(agent=agent, session=session, task=task) as engine:
        if settings:
            changes |= parsed(engine.get(id).kind, settings)
        record = engine.edit(id, expect_version=expect, **changes)
    print_changed(call, record)


def print_changed(call: Call, record: Any) -> None:
    """What became of a record that was changed."""
    if call.as_json:
        call.print_json(documents.changed(record))
    else:
        click.echo(f"{record.id}  version {record.version}, {record.status}")


def _given(values: dict[str, Any]) -> dict[str, Any]:
    """The options that were given; a flag that was not is no wish."""
    return {name: value for name, value in values.items() if value is not None and value is not False and value != ()}


def parsed(kind: str, settings: tuple[str, ...]) -> dict[str, Any]:
    """`field=value` as the kind's fields want them; lists every problem at once."""
    from foveate.records.kinds import kind_of

    row = kind_of(kind)
    out: dict[str, Any] = {}
    problems = []
    for setting in settings:
        name, sign, value = setting.partition("=")
        if not sign or not name:
            problems.append(f"--set takes field=value, not {setting!r}.")
        elif name in TIMES:
            out[name] = parse_time(value, name)
        elif name in TEXTS or (name in row.fields and row.fields[name].type is str):
            out[name] = value
        elif name in row.fields or (row.allow_extra and name not in _taken()):
            out[name] = _json_or_text(value)
        else:
            problems.append(f"Kind {kind!r} has no field {name!r}.{near(name, (*row.fields, *TEXTS, *TIMES))}")
    if problems:
        raise InputError(problems)
    refuse_unreadable(out)
    data = {name: value for name, value in out.items() if name not in (*TEXTS, *TIMES)}
    columns = {name: value for name, value in out.items() if name not in data}
    return {**columns, **({"data": data} if data else {})}


def _taken() -> set[str]:
    """Names that an open kind cannot use for fields of its own: columns, and the engine's own words."""
    from dataclasses import fields as fields_of

    from foveate.types import Record

    return {field.name for field in fields_of(Record)} | {"personal", "expect_version", "now", "rules"}


def _json_or_text(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value


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
        call.print_json(documents.hits(readable, hits, unknown))
        return
    if not hits:
        say(unknown or f"nothing found{hint}")
    lines: list[Line] = []
    for hit in hits:
        record = hit.record
        score = f"{hit.relevance:.2f}  "
        status = "" if record.status == "active" else f"({record.status}) "
        room = max(20, width() - len(score) - len(record.id) - 2)
        lines.append([(score, "dim"), (record.id, "cyan"), ("  " + cut(status + record.micro, room), "")])
    print_lines(lines)


VERBS = {"add": add, "edit": edit, "search": search}
