"""`foveate store`: back up, restore, export, import and maintain a whole store."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

import click

from foveate.cli.call import STDIN, Call, Verb, VerbGroup, decode_text, pass_call, say
from foveate.cli.render import print_lines, progress_bar, table
from foveate.errors import Conflict, InputError
from foveate.store.database_url import expand_env, refers_to_database
from foveate.text.atomic_write import replaced_on_success
from foveate.types import Scope

if TYPE_CHECKING:
    from foveate.engine.store_tools import Job
    from foveate.records.lifecycle import Step
    from foveate.store.sql.queries import SchemaStatus

T = TypeVar("T")

FILE = click.Path(dir_okay=False, allow_dash=True, path_type=str)
SQLITE_HEADER = b"SQLite format 3"
RECORD_PREFIX = '{"id":'
"""Start of an exported line that is a record; history and links begin differently."""

JOBS = ("lifecycle", "retention", "vectors", "summaries", "unused-vectors")
"""As `foveate.engine.store_tools.JOBS`, which imports the engine."""


@click.group(cls=VerbGroup)
def store() -> None:
    """Back up, restore, export, import and maintain the whole store.

    A backup holds everything: all projects and users, history, receipts and vectors. An export holds the records that the
    scope may see.
    """


# --- backup and restore --------------------------------------------------------------------------------------------


@store.command("backup", cls=Verb)
@click.argument("target")
@click.option("--yes", is_flag=True, help="Replace the content of a database without asking.")
@pass_call
def backup(call: Call, target: str, yes: bool) -> None:
    """Copy the store to a new file or into a database, while others write.

    `foveate store backup monday.db`. TARGET may be the URL of a PostgreSQL database: then everything is copied into it in
    one transaction and compared row by row.
    """
    if refers_to_database(target):
        _copy_into_database(call, expand_env(target), yes)
        return
    from foveate.store.open import open_store

    with closing(open_store(call.existing(), create=False)) as source:
        source.backup(Path(target))
    size = Path(target).stat().st_size
    call.print({"path": target, "bytes": size}, f"{target}  {size} bytes")


def _copy_into_database(call: Call, url: str, yes: bool) -> None:
    from foveate.store.copy import copy_store
    from foveate.store.open import open_store

    where = call.existing()
    if where == url:
        raise InputError("TARGET is the store itself; name another database.")
    with closing(open_store(where, create=False)) as source:
        with source.tables():
            pass  # a role that may not copy the store learns that before the target is created
        with closing(open_store(url)) as target:
            copied = _confirm_replacing(
                lambda replace: copy_store(source, target, replace=replace, progress=_copy_progress()), yes
            )
            labels = {"source": source.label, "target": target.label}
    if call.as_json:
        call.print_json({**labels, "tables": {name: asdict(result) for name, result in copied.items()}})
        return
    rows = [(name, f"{result.rows:,}", result.hash) for name, result in copied.items()]
    print_lines(table(("table", "rows", "hash"), rows, left=1))
    say(f"{labels['target']} is equal to {labels['source']}: counts and hashes match.")


def _confirm_replacing(action: Callable[[bool], T], yes: bool) -> T:
    """Run an action that replaces a store only if its argument is True: with `yes`, or if the person agrees."""
    try:
        return action(yes)
    except Conflict as error:
        if yes or not sys.stdin.isatty():
            raise
        click.confirm(f"{error}\nReplace it?", abort=True, err=True)
    return action(True)


def _copy_progress() -> Callable[[str, int, int], None] | None:
    bar = progress_bar("copying", "rows")
    if bar is None:
        return None

    def progress(doing: str, done: int, total: int) -> None:
        bar.doing = doing
        bar(done, total)

    return progress


@store.command("restore", cls=Verb)
@click.argument("source")
@click.option("--yes", is_flag=True, help="Replace the content of the store without asking.")
@pass_call
def restore(call: Call, source: str, yes: bool) -> None:
    """Replace the store by a backup, from a file or a database.

    SOURCE is a file that `foveate store backup` wrote, or the URL of a PostgreSQL database. It is checked first, and an
    older one is migrated; nothing is changed if it is damaged. The replaced content is kept in a file: stderr tells where.
    """
    from foveate.project import project
    from foveate.store.open import open_store
    from foveate.store.sqlite import files

    place = call.place()
    where = place.database_url or str(place.store_file)
    with _as_file(source, where) as file:
        if place.database_url is None:
            project.create(place)
            kept = _confirm_replacing(lambda replace: files.restore(file, where, replace=replace), yes)
        else:
            keep_in = Path() if refers_to_database(source) else file.parent
            with closing(open_store(where)) as target:
                kept = _confirm_replacing(
                    lambda replace: files.restore_into_database(file, target, replace=replace, keep_in=keep_in), yes
                )
                where = target.label
    if call.as_json:
        call.print_json({"path": where, "kept": str(kept) if kept else None})
        return
    click.echo(where)
    if kept:
        say(f"what it held is kept in {kept}. Delete that if you do not need it: `foveate forget` does not reach it.")


@contextmanager
def _as_file(source: str, where: str) -> Iterator[Path]:
    """Yield a backup as a file. A database is copied to one first."""
    if not refers_to_database(source):
        yield Path(source)
        return
    from foveate.store.open import open_store

    url = expand_env(source)
    if url == where:
        raise InputError("SOURCE is the store itself; name another database.")
    with TemporaryDirectory(prefix="foveate-") as folder:
        file = Path(folder, "backup.db")
        with closing(open_store(url, create=False)) as opened:
            opened.backup(file)
        yield file


# --- export and import ---------------------------------------------------------------------------------------------


@store.command("export", cls=Verb, scoped=True)
@click.argument("file", type=FILE, required=False)
@click.option("--yes", is_flag=True, help="Overwrite FILE without asking; a database is never overwritten.")
@click.option("--agents-md", is_flag=True, help="Write rules, patterns and gotchas as a block in AGENTS.md, or in FILE.")
@click.option("--check", is_flag=True, help="With --agents-md: write nothing, and exit with 1 if the block is out of date.")
@pass_call
def export(call: Call, file: str | None, yes: bool, agents_md: bool, check: bool) -> None:
    """Write records, their history and links as lines of JSON.

    Without FILE, or with `-`, writes to stdout. An export holds the records that the scope may see, and stderr tells how
    many it does not: name a --user or an --agent to export theirs.

    --agents-md writes something else: at most 60 lines for coding agents that read AGENTS.md. The rest of the file stays as
    it is.
    """
    if check and not agents_md:
        raise click.UsageError("--check belongs to --agents-md.")
    if agents_md:
        from foveate.cli import agents_md as block

        block.write_block(call, file or block.DEFAULT_FILE, check=check)
        return
    file = file or STDIN
    if file != STDIN:
        _refuse_overwriting(file, call.place().store_file, yes)
    from foveate.engine.engine import view_of

    with call.open() as engine:
        everything = view_of(engine, Scope(engine.scope.project)).store.stats().records
        total = sum(number for by_status in everything.values() for number in by_status.values())
        with closing(_closable(engine.store.export_lines())) as lines:
            if call.as_json and file == STDIN:
                count, exported = _print_document(call, lines)
            else:
                count, exported = _write(file, lines)
    if call.as_json and file != STDIN:
        call.print_json({"path": file, "lines": count})
    elif file != STDIN:
        say(f"{count} lines in {file}")
    if total > exported:
        say(f"{total - exported} records of other users, agents or sessions were not exported.")


def _print_document(call: Call, lines: Iterable[str]) -> tuple[int, int]:
    entries = [json.loads(line) for line in lines]
    links = [entry["link"] for entry in entries if "link" in entry]
    history = [entry["history"] for entry in entries if "history" in entry]
    records = [entry for entry in entries if "id" in entry]
    call.print_json({"records": records, "history": history, "links": links})
    return len(entries), len(records)


def _refuse_overwriting(file: str, store: Path, yes: bool) -> None:
    """Raise an error for a file that belongs to a store, for a database, and for a file that may not be overwritten."""
    from foveate.project.project import personal_store_path

    target = os.path.realpath(file)
    for path in (store, personal_store_path()):
        if target in {os.path.realpath(f"{path}{suffix}") for suffix in ("", "-wal", "-shm")}:
            raise InputError(f"{file!r} belongs to a store; export to another file. Nothing was written.")
    if not os.path.lexists(target) or _is_stream(target):
        return
    if os.path.isfile(target):
        with open(target, "rb") as existing:
            if existing.read(len(SQLITE_HEADER)) == SQLITE_HEADER:
                raise InputError(f"{file!r} is an SQLite database; export to another file. Nothing was written.")
    if yes:
        return
    if not sys.stdin.isatty():
        raise InputError(f"{file!r} exists already. Pass --yes to overwrite it; nothing was written.")
    click.confirm(f"{file!r} exists already. Overwrite it?", abort=True, err=True)


def _is_stream(path: str) -> bool:
    """Return whether a path is a pipe or a device: it holds nothing that could be lost, and no file can replace it."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)


def _closable(lines: Iterable[str]) -> Generator[str, None, None]:
    """Return a generator over lines: it can be closed before the engine is."""
    yield from lines


def _write(file: str, lines: Iterator[str]) -> tuple[int, int]:
    """Write lines as UTF-8 and return the number of lines, and of records. A file appears when it is complete."""
    if file == STDIN or _is_stream(file):
        with click.open_file(file, "wb") as out:
            return _copy(lines, out)
    try:
        with replaced_on_success(file) as part, open(part, "wb") as out:
            return _copy(lines, out)
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, file) from None  # without the name of the temporary file


def _copy(lines: Iterable[str], out: Any) -> tuple[int, int]:
    count = records = 0
    for line in lines:
        count += 1
        records += line.startswith(RECORD_PREFIX)
        out.write(line.encode() + b"\n")
    out.flush()
    return count, records


@store.command("import", cls=Verb, scoped=True, authored=True)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=str))
@pass_call
def import_(call: Call, file: str) -> None:
    """Read an export of foveate; `-` reads stdin.

    Records that are stored already stay as they are, so importing again adds only what is new. A line that cannot be read
    stops the import; batches before it are kept. `foveate remember FILE` reads transcripts and files of other programs.
    """
    if call.is_agent():
        raise InputError(f"An export can contain rules of a person, and {call.agent_reason()}.")
    with call.open() as engine, click.open_file(file, "rb") as source:
        imported = engine.store.import_lines(_decoded_lines(source, file))
    call.print(asdict(imported), f"{imported.added} added, {imported.known} known already, {imported.links} links")


def _decoded_lines(source: Iterable[bytes], file: str) -> Iterator[str]:
    for number, raw in enumerate(source, 1):
        if number == 1 and raw.startswith(SQLITE_HEADER):
            raise InputError(
                f"{file!r} is a database, not an export. `foveate store restore FILE` replaces this store by it. To add its "
                "records here, restore it into another folder with --store, and export them there."
            )
        yield decode_text(raw, f"line {number}")


# --- maintenance ---------------------------------------------------------------------------------------------------


@store.command("maintain", cls=Verb, scoped=True)
@click.option("--only", multiple=True, type=click.Choice(JOBS), metavar="JOB", help=f"{', '.join(JOBS)}. Repeatable.")
@click.option("--dry-run", is_flag=True, help="Only report what is due.")
@click.option("--check", is_flag=True, help="Only report what is due, and exit with 1 if anything is.")
@pass_call
def maintain(call: Call, only: tuple[Job, ...], dry_run: bool, check: bool) -> int:
    """Run the maintenance that is due.

    \b
    lifecycle       archive old episodes, flag procedures that mostly fail, escalate censors that match often
    retention       delete receipts and events beyond the limits of [retention] in config.toml
    vectors         embed records that have no vector, for example after the embedder was changed
    summaries       have the language model of config.toml write better summaries
    unused-vectors  delete vectors of other embedders; runs only when it is named

    `foveate undo` reverts a change of the lifecycle. The command can be interrupted at any point and continues from there.
    Opening a store of an older version migrates it, so this does too. Exits with 1 if a job could not be completed.
    """
    schema = _schema_status(call)
    only_report = dry_run or check
    steps: list[Step] = []
    if not only_report or schema.is_current or schema.is_too_new:  # opening the store migrates it, or refuses a newer one
        with call.open() as engine:
            steps = engine.store.maintain(only=only, dry_run=only_report, progress=progress_bar("embedding", "records"))
    is_due = bool(steps) or not schema.is_current
    if call.as_json:
        status = {**asdict(schema), "is_current": schema.is_current}
        call.print_json({"dry_run": only_report, "schema": status, "steps": [asdict(step) for step in steps]})
    else:
        _print_steps(schema, steps, only_report)
    for step in steps:
        if step.error:
            say(step.error)
    return int((check and is_due) or any(step.error for step in steps))


def _schema_status(call: Call) -> SchemaStatus:
    """Return how the schema of the store compares with this version's, before it is opened and so migrated."""
    from foveate.store.open import read_schema_status

    return read_schema_status(call.existing())


def _print_steps(schema: SchemaStatus, steps: Iterable[Step], only_report: bool) -> None:
    migrations = [f"{'would run' if only_report else 'ran'} migration {name}" for name in schema.pending_migrations]
    if schema.needs_reindex:
        migrations.append("would index all records again" if only_report else "indexed all records again")
    lines = [*migrations, *map(_step_line, steps)]
    for line in lines:
        click.echo(line)
    if not lines:
        say("nothing is due.")
    elif only_report:
        say("nothing was changed; without --dry-run and --check it is done.")
    if schema.pending_migrations and not only_report:
        say("the store was migrated. Restart programs of an older foveate that have it open.")


def _step_line(step: Step) -> str:
    subject = step.id or f"{step.number:,} {step.kind}{'' if step.number == 1 else 's'}"
    return f"{subject}  {step.verb}: {step.was} -> {step.to}, {step.why}"


VERBS = {"store": store}
