"""`add`, `search`, `edit`, `forget`, `undo`, `link` and `check`: commands on records."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields as fields_of
from typing import TYPE_CHECKING, Any, Literal

import click

from foveate.cli.call import (
    Call,
    Verb,
    pass_call,
    read_text,
    record_id,
    refuse_unreadable,
    say,
)
from foveate.cli.code import search_code
from foveate.cli.options import check_public_kind, collect, complete_kinds, public_kinds
from foveate.cli.render import Line, cut, print_lines, text_line, width
from foveate.clock import parse_time
from foveate.errors import InputError, NotFound, near
from foveate.operations import documents
from foveate.options import FilterFields, RecordFields
from foveate.records.kinds import KINDS, RULE_KINDS, kind_of
from foveate.types import Filters, Record

if TYPE_CHECKING:
    from foveate.engine import Engine
    from foveate.store.protocol import AddResult

MIN_TEXT_COLUMNS = 20
"""Columns of a record's text in a list, however narrow the terminal is."""

# --- fields --------------------------------------------------------------------------------------------------------

FIELDS = (
    "tags", "subject", "attribute", "outcome", "confidence", "salience", "trust", "key", "origin", "entities", "paths",
)  # fmt: skip

set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Field of the kind; JSON if the field is not a text. Repeatable.",
)

SETTABLE_TEXTS = ("summary", "micro")
SETTABLE_TIMES = ("valid_from", "valid_to", "created")
"""Columns that `--set` takes besides the fields of the kind. The other columns have options of their own."""

RESERVED_NAMES = {field.name for field in fields_of(Record)} | {"personal", "expect_version", "now", "rules"}
"""Names that an open kind cannot use for fields of its own."""


def parse_settings(kind: str, settings: tuple[str, ...]) -> dict[str, Any]:
    """Return `field=value` texts as fields of a record. The error lists every problem at once."""
    row = kind_of(kind)
    columns: dict[str, Any] = {}
    data: dict[str, Any] = {}
    problems = []
    for setting in settings:
        name, sign, value = setting.partition("=")
        if not sign or not name:
            problems.append(f"--set takes field=value, got {setting!r}.")
        elif name in SETTABLE_TIMES:
            columns[name] = parse_time(value, name)
        elif name in SETTABLE_TEXTS:
            columns[name] = value
        elif name in row.fields and row.fields[name].type is str:
            data[name] = value
        elif name in row.fields or (row.allow_extra and name not in RESERVED_NAMES):
            data[name] = _json_or_text(value)
        else:
            known = (*row.fields, *SETTABLE_TEXTS, *SETTABLE_TIMES)
            problems.append(f"Kind {kind!r} has no field {name!r}.{near(name, known)}")
    if problems:
        raise InputError(problems)
    refuse_unreadable({**columns, **data})
    return {**columns, **({"data": data} if data else {})}


def _json_or_text(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value


# --- add and edit --------------------------------------------------------------------------------------------------


def _kinds_text() -> str:
    """Return the kinds with their meaning, one on a line."""
    names = [name for name in public_kinds() if name != "task"]
    column = max(map(len, names)) + 2
    return "\n".join(["\b", "Kinds:", *(f"  {name:{column}}{KINDS[name].description}" for name in names)])


ADD_HELP = f"""Store a record and print its id.

TEXT `-` reads stdin. The same text again confirms the record. What a coding agent adds has an agent's trust, and a rule from
an agent waits in the inbox for a person; so does what is added without a terminal and without --trust. Tasks are added with
`foveate task add`, conversations with `foveate remember`.

{_kinds_text()}
"""


@click.command(cls=Verb, scoped=True, help=ADD_HELP)
@click.argument("kind", shell_complete=complete_kinds)
@click.argument("text")
@collect("fields", RecordFields, *FIELDS)
@set_option
@click.option("--pin", is_flag=True, help="Show it in every context.")
@click.option("--personal", is_flag=True, help="Store it in your personal store, which follows you across projects.")
@pass_call
def add(
    call: Call, kind: str, text: str, fields: RecordFields, settings: tuple[str, ...], pin: bool, personal: bool
) -> None:
    check_public_kind(kind)
    values: dict[str, Any] = {**fields, **parse_settings(kind, settings), **({"pinned": True} if pin else {})}
    call.trust = fields.get("trust")
    trust = call.author_trust(call.trust)
    if trust is not None:
        values["trust"] = trust
    if pin and call.is_agent():
        raise InputError("A pinned record is in every prompt, so only a person can pin one. Leave out --pin.")
    is_proposal = kind in RULE_KINDS and call.is_agent()
    with call.open() as engine:
        if is_proposal:
            added = _propose(engine, kind, read_text(text), values, personal=personal)
        else:
            added = engine.add(kind, read_text(text), personal=personal, **values)
    call.say_agent_trust()
    if call.as_json:
        call.print_json(documents.added(added))
        return
    click.echo(added.record.id)
    if is_proposal:
        say(f"proposed as {kind}. A person accepts it with `foveate inbox accept {added.record.id}`.")
    elif added.action != "added":
        say(f"{added.action}{': ' if added.affected else ''}{', '.join(added.affected)}")
    for warning in added.warnings:
        say(f"warning: {warning}")


def _propose(engine: Engine, kind: str, text: str, values: Mapping[str, Any], *, personal: bool) -> AddResult:
    """Propose a rule in the name of a coding agent, which must not add one itself."""
    other = values.keys() - {"tags", "data", "trust"}
    if other or personal:
        raise InputError(
            f"A coding agent can only propose a rule, with its text, --tag and --set. Leave out: "
            f"{', '.join(sorted({*other, *(['personal'] if personal else [])}))}."
        )
    return engine.inbox.propose(kind, text, tags=values.get("tags", ()), data=values.get("data"))


@click.command(cls=Verb, scoped=True)
@click.argument("id")
@click.option("--text", help="New text; `-` reads stdin.")
@collect("fields", RecordFields, *FIELDS)
@set_option
@click.option("--result", metavar="TEXT", help="The outcome in words; needs --outcome.")
@click.option("--pin/--no-pin", "pinned", default=None, help="Show it in every context, or no longer.")
@click.option("--retire/--no-retire", default=None, help="Take it out of use, or back into use; `forget` deletes it.")
@click.option("--expect", type=int, metavar="VERSION", help="Fail if another process changed it and it has another version.")
@pass_call
def edit(
    call: Call,
    id: str,
    text: str | None,
    fields: RecordFields,
    settings: tuple[str, ...],
    result: str | None,
    pinned: bool | None,
    retire: bool | None,
    expect: int | None,
) -> None:
    """Change a record: its text, its fields, or whether it is in use.

    Fields that are not named stay as they are, and the earlier version stays in the history. Setting an --outcome counts as
    a use of the record.
    """
    values: dict[str, Any] = dict(fields)
    call.trust = fields.get("trust")
    if text is not None or "trust" in fields:
        trust = call.author_trust(call.trust)
        values |= {} if trust is None else {"trust": trust}
    if pinned and call.is_agent():
        raise InputError("A pinned record is in every prompt, so only a person can pin one. Leave out --pin.")
    if pinned is not None:
        values["pinned"] = pinned
    if result is not None and "outcome" not in fields:
        raise InputError("--result says how an --outcome came about. Pass --outcome as well.")
    if text is None and not values and not settings and retire is None:
        raise InputError("Nothing to change: pass --text, --outcome, --pin, --retire or another field.")
    new_text = None if text is None else read_text(text)
    with call.open() as engine:
        id = record_id(engine, id)
        if settings:
            values |= parse_settings(engine.get(id).kind, settings)
        if text is not None or retire is not None or values.keys() - {"outcome"}:
            call.refuse_agent(engine, [id])
        record = engine.edit(id, text=new_text, status=STATUS_OF[retire], result=result, expect_version=expect, **values)
    if text is not None:
        call.say_agent_trust()
    call.print(documents.changed(record), changed_lines([record]))


STATUS_OF: Mapping[bool | None, Literal["active", "retired"] | None] = {None: None, True: "retired", False: "active"}
"""The status that `--retire` and `--no-retire` set."""


def changed_lines(records: Iterable[Record]) -> list[Line]:
    """Return a line about each record after a change."""
    return [text_line(f"{record.id}  version {record.version}, {record.status}") for record in records]


# --- search --------------------------------------------------------------------------------------------------------


@click.command(cls=Verb, scoped=True)
@click.argument("query", required=False)
@click.option("--code", is_flag=True, help="Find definitions in the project's files instead of records.")
@click.option("--files", is_flag=True, help="Find definitions and files.")
@collect("filters", FilterFields, "kinds", "tags", "since", "until")
@click.option("--limit", type=click.IntRange(1, 1000), default=10, show_default=True, help="How many at most.")
@pass_call
def search(call: Call, query: str | None, code: bool, files: bool, filters: FilterFields, limit: int) -> None:
    """Find records, best first; without QUERY, list the newest.

    They are found by words and meaning. QUERY `-` reads stdin. `foveate search --kind entity` lists the newest entities.
    With --code, each line has the relevance of a definition, where it is, its name, and why it was found.
    """
    text = "" if query is None else read_text(query).encode("utf-8", "replace").decode().replace("\x00", " ")
    if code or files:
        if filters:
            raise InputError("--kind, --tag, --since and --until select records; --code and --files find code.")
        if not text.strip():
            raise InputError("--code and --files need a QUERY. `foveate code map` shows the whole repository.")
        search_code(call, text, limit, files)
        return
    if not text.strip():
        _list_newest(call, filters, limit)
        return
    with call.open() as engine:
        hits = engine.search(text, filters=Filters(**filters), limit=limit)
        hint = "; --code searches the files" if engine.code.available else ""
        unknown = "" if hits else engine.store.unknown_project()
    if call.as_json:
        call.print_json(documents.hits(text, hits, unknown))
        return
    if not hits:
        say(unknown or f"nothing found{hint}")
    print_lines(_record_line(hit.record, f"{hit.relevance:.2f}  ") for hit in hits)


def _list_newest(call: Call, filters: FilterFields, limit: int) -> None:
    with call.open() as engine:
        found = list(engine.records(filters=Filters(**filters), limit=limit))
        unknown = "" if found else engine.store.unknown_project()
    if call.as_json:
        call.print_json({"records": found, **({"warnings": [unknown]} if unknown else {})})
        return
    if not found:
        say(unknown or "there are no such records." if filters else unknown or "there are no records yet.")
    print_lines(_record_line(record, "") for record in found)


def _record_line(record: Record, score: str) -> Line:
    status = "" if record.status == "active" else f"({record.status}) "
    room = max(MIN_TEXT_COLUMNS, width() - len(score) - len(record.id) - 2)
    return [(score, "dim"), (record.id, "cyan"), ("  " + cut(status + record.micro, room), "")]


# --- forget and undo -----------------------------------------------------------------------------------------------


@click.command(cls=Verb, scoped=True, authored=True)
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask.")
@pass_call
def forget(call: Call, ids: tuple[str, ...], yes: bool) -> None:
    """Delete records permanently, down to the bytes of the file.

    Each is named by its id or its key. They are removed from every table, index, version and receipt, and the number of
    each is printed. Asks first on a terminal, and needs --yes without one. `edit --retire` takes a record out of use and
    keeps it.
    """
    with call.open() as engine:
        wanted = tuple(dict.fromkeys(record_id(engine, id) for id in ids))
        call.refuse_agent(engine, wanted)
        if not yes and not _confirm_forget(engine, wanted):
            raise click.Abort
        done = engine.forget(*wanted)
    if call.as_json:
        call.print_json(documents.forgotten(wanted, done))
        return
    for table, number in done.counts.items():
        click.echo(f"{table.replace('_', ' ')}  {number}")
    for warning in done.warnings:
        say(f"warning: {warning}")


def _confirm_forget(engine: Engine, ids: tuple[str, ...]) -> bool:
    """Show the records and ask on a terminal; without one, raise an error that names --yes."""
    with engine.store.data.reader() as reader:
        found = reader.get(ids)
    missing = [id for id in ids if id not in found]
    if missing:
        raise NotFound(f"No record {missing[0]!r} in this scope; nothing was deleted.")
    if not sys.stdin.isatty():
        raise InputError("Forgetting cannot be undone. Pass --yes to delete without being asked; nothing was deleted.")
    for id in ids:
        click.echo(f"{id}  {found[id].micro}", err=True)
    return click.confirm("Delete permanently?", err=True)


@click.command(cls=Verb, scoped=True, authored=True)
@click.argument("id")
@pass_call
def undo(call: Call, id: str) -> None:
    """Undo the last change to a record and its effects on other records.

    ID is the id or the key of the record.
    """
    with call.open() as engine:
        id = record_id(engine, id)
        call.refuse_agent(engine, [id])
        undone = engine.undo(id)
    call.print({"undone": undone}, changed_lines(undone))


# --- link and check ------------------------------------------------------------------------------------------------


@click.command(cls=Verb, scoped=True, authored=True)
@click.argument("source", metavar="A")
@click.argument("name")
@click.argument("target", metavar="B")
@click.option("--weight", type=float, default=1.0, show_default=True, metavar="0..1", help="How much the link matters.")
@click.option("--create", is_flag=True, help="Add the entities that do not exist yet.")
@pass_call
def link(call: Call, source: str, name: str, target: str, weight: float, create: bool) -> None:
    """Link two records by id, or two entities by name.

    `foveate link Mira owns Uploader`. An entity is found by its name, an alias or its id.
    """
    with call.open() as engine:
        made = engine.link(source, name, target, weight=weight, create=create)
        ends = [engine.get(id) for id in (made.src, made.dst)]
    if create:
        call.say_agent_trust()
    from foveate.memory.entities import name_of

    names = [name_of(end) if end.kind == "entity" else end.id for end in ends]
    call.print(documents.plain(made), f"{names[0]} --[{made.name}]--> {names[1]}")


@click.command(cls=Verb, scoped=True)
@click.argument("text")
@click.option("--dry-run", is_flag=True, help="Do not count the matches.")
@pass_call
def check(call: Call, text: str, dry_run: bool) -> int:
    """Check a planned action against censors and instructions.

    TEXT `-` reads stdin. Prints each rule that the action violates, blocks first. Exits with 1 if a block is violated,
    and with 0 if nothing or only a warning is.
    """
    with call.open() as engine:
        matches = engine.check(read_text(text), dry_run=dry_run)
    lines = []
    for match in matches:
        reason = f" ({match.reason})" if match.reason else ""
        lines.append(text_line(f"{match.action.upper()}  {match.censor.id}  {match.censor.text}{reason}"))
    call.print(documents.check(matches), lines)
    return int(any(match.action == "block" for match in matches))


VERBS = {
    "add": add,
    "search": search,
    "edit": edit,
    "forget": forget,
    "undo": undo,
    "link": link,
    "check": check,
}
