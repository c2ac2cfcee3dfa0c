"""`copy`, `restore`, `migrate`: a store moves to another place, back to an earlier state, or on to this version's schema."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from foveate.cli.call import Call, Verb, pass_call, say
from foveate.errors import InputError

REPLACE = click.option("--replace", is_flag=True, help="Also where something has been written already: it is replaced.")


@click.command(cls=Verb)
@click.argument("source")
@click.argument("target")
@REPLACE
@pass_call
def copy(call: Call, source: str, target: str, replace: bool) -> None:
    """Copy a whole store into another, between files and PostgreSQL databases.

    SOURCE and TARGET are a project's directory, a store's file, or a URL, postgresql://... Everything is kept: ids,
    versions, history, links, receipts, vectors. Others may continue to write to SOURCE; one moment of it is copied.
    TARGET is written in one transaction and compared row by row at the end. If the copy fails or is stopped, TARGET stays
    as it was.
    """
    from foveate.store.copy import copy_store
    from foveate.store.open import open_store

    here = _store_of(source)
    with closing(open_store(here, create=False)) as left:
        with left.tables():
            pass  # who may not copy it learns that before there is a target
        there = _store_of(target, create=True)
        if here == there:
            raise InputError("SOURCE and TARGET are the same store; nothing was copied.")
        with closing(open_store(there)) as right:
            done = copy_store(left, right, replace=replace, progress=_bar())
            shown = {"source": left.label, "target": right.label}
    if call.as_json:
        call.print_json({**shown, "tables": {name: asdict(moved) for name, moved in done.items()}})
        return
    from foveate.cli.render import print_lines, table

    rows = [(name, f"{moved.rows:,}", moved.hash) for name, moved in done.items()]
    print_lines(table(("table", "rows", "hash"), rows, left=1))
    say(f"{shown['target']} holds what {shown['source']} held: counts and hashes are equal.")


@click.command(cls=Verb)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@REPLACE
@pass_call
def restore(call: Call, file: Path, replace: bool) -> None:
    """Put a backup in the place of the store.

    FILE is what `foveate backup` wrote. It is examined first, and an older one is migrated; nothing is changed where it is
    damaged or no store. What is replaced is kept in a file beside it.
    """
    from foveate.project import project
    from foveate.store.open import open_store
    from foveate.store.sqlite import files

    place = call.place()
    where = place.shared or str(place.store)
    if place.shared is not None:
        with closing(open_store(where)) as store:
            kept = files.restore_into_database(file, store, replace=replace)
            where = store.label
    else:
        project.create(place)
        kept = files.restore(file, where, replace=replace)
    if call.as_json:
        call.print_json({"path": where, "kept": str(kept) if kept else None})
        return
    click.echo(where)
    if kept:
        say(f"what was there is kept in {kept}: delete it when it is not wanted; `foveate forget` does not reach it.")


@click.command(cls=Verb)
@click.option("--check", is_flag=True, help="Only say what would be done; the exit code is 1 where there is something.")
@pass_call
def migrate(call: Call, check: bool) -> int:
    """Bring the store to this foveate's schema.

    Opening a store does that too, in one transaction that happens or does not. Programs of an older foveate that have it
    open refuse to go on, and say so.
    """
    from foveate.store.open import open_store, read_schema_status

    where = call.existing()
    before = read_schema_status(where)
    after = before
    if not check and not before.is_too_new:
        open_store(where, counter=None).close()
        after = read_schema_status(where)
    if call.as_json:
        status = {**asdict(before), "current": after.is_current}
        call.print_json({**status, "restart": before.needs_restart, "advice": after.advice})
        return int(not after.is_current)
    click.echo(f"{before.label}  schema {before.version}, this foveate has {before.latest_version}")
    for step in before.pending_migrations:
        click.echo(f"{'would run' if check else 'ran'}  {step}")
    if before.needs_reindex:
        click.echo(f"{'would index' if check else 'indexed'} again")
    if after.advice:
        say(after.advice)
    return int(not after.is_current)


def _store_of(where: str, *, create: bool = False) -> str:
    """The file or URL that an argument names; a folder stands for the store of its project."""
    from foveate.project import project
    from foveate.store.database_url import expand_env, refers_to_database

    if refers_to_database(where):
        return expand_env(where)
    path = Path(where).expanduser()
    if path.is_dir():
        place = project.find(path)
        if place.shared is not None:
            return place.shared
        if create:
            project.create(place)
        path = place.store
    if not create and not path.exists():
        raise InputError(f"There is no store at {where!r}.")
    if not path.parent.is_dir():
        raise InputError(f"There is no folder {str(path.parent)!r}. Make it, or check the path.")
    return str(path.resolve())


def _bar() -> Any:
    """A bar on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        return None
    from foveate.cli.render import Bar

    bar = Bar("copying", "rows")
    click.get_current_context().call_on_close(bar.close)

    def told(doing: str, done: int, total: int) -> None:
        bar.doing = doing
        bar(done, total)

    return told


VERBS = {"copy": copy, "restore": restore, "migrate": migrate}
