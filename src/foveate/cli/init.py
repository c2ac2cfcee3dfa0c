"""`foveate init`: create a store, index the code of its project, and let database roles use a shared one."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from foveate.cli.call import Call, Verb, pass_call, say
from foveate.cli.render import Line, pairs, print_lines
from foveate.errors import InputError, StoreError
from foveate.project.locate import CONFIG_FILE

if TYPE_CHECKING:
    from foveate.project.project import ProjectLocation

MAX_NAMED = 8
"""Languages and reasons that a line names; the rest is counted."""


@click.command(cls=Verb)
@click.option("--code", is_flag=True, help="Index the files here and use them in contexts, also outside of a repository.")
@click.option("--personal", is_flag=True, help="Create your personal store instead, which all of your projects read.")
@click.option("--grant", "granted", multiple=True, metavar="ROLE", help="Let a database role use it. Repeatable.")
@click.option("--revoke", "revoked", multiple=True, metavar="ROLE", help="Take it from a database role. Repeatable.")
@pass_call
def init(call: Call, code: bool, personal: bool, granted: tuple[str, ...], revoked: tuple[str, ...]) -> None:
    """Create a project's store, .foveate/, and print its path.

    The store is at the root of the repository, or in the current directory if there is none. In a repository, and in a
    folder with a manifest such as pyproject.toml, contexts read the code by themselves; --code does it anywhere, at once.

    `--store URL --project NAME` keeps the records in a PostgreSQL database, and writes that to .foveate/config.toml. Its
    owner lets other roles of the server read and write the project: `foveate init --grant ada` (`create role ada login`).
    """
    if personal and (code or granted or revoked):
        raise click.UsageError("--personal takes none of --code, --grant and --revoke.")
    if personal:
        _print_store(call, *_create_personal(call))
        return
    if (granted or revoked) and call.place().database_url is None:
        raise InputError(
            "A store in a file has no roles: everyone who can read the file sees all of it. Roles are for a shared store: "
            "`foveate init --store postgresql://... --project NAME`."
        )
    if code and not (call.store or Path()).is_dir():
        raise InputError(f"{str(call.store)!r} is not a folder, so --code finds no files. Check --store.")
    document: dict[str, Any] = {}
    if call.place().database_url is not None:
        document |= _share(call)
        is_news = document["configured"] or not (granted or revoked)
        if is_news and not call.as_json:
            click.echo(f"{document['store']}  project {document['project']}")
    else:
        path, created = _create(call)
        document |= {"path": str(path), "created": created}
        if not call.as_json and (created or not code):
            _print_store(call, path, created)
    if granted or revoked:
        document |= _change_roles(call, granted, revoked)
    if code:
        document["code"] = _index(call)
    if call.as_json:
        call.print_json(document)


def _print_store(call: Call, path: Path, created: bool) -> None:
    if call.as_json:
        call.print_json({"path": str(path), "created": created})
        return
    click.echo(str(path))
    if not created:
        say("it exists already; nothing was changed.")


def _create(call: Call) -> tuple[Path, bool]:
    from foveate import factory

    place = call.place()
    created = not place.store_file.exists()
    factory.open(place.root, project=call.project).close()
    return place.folder, created


def _create_personal(call: Call) -> tuple[Path, bool]:
    from foveate.project.project import personal_store_path
    from foveate.store.sqlite.store import SQLiteStore

    path = personal_store_path()
    created = not path.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{str(path.parent)!r} cannot be created: {error.strerror}.") from None
    if created:
        SQLiteStore(path, counter=call.place().settings.get("counter", "o200k")).close()
    return path, created


# --- a shared store ------------------------------------------------------------------------------------------------


def _share(call: Call) -> dict[str, Any]:
    """Put the records of a project into a shared database: create its tables, then name it in the settings."""
    from foveate import factory
    from foveate.project import project
    from foveate.store.database_url import mask_passwords

    place = call.place()
    if place.store_file.exists():
        raise InputError(
            f"{str(place.store_file)!r} holds the records of this project. Copy them with `foveate store backup URL`, then "
            "move the file away."
        )
    name = call.project_name()
    text = _new_settings(call, place, name)
    factory.open(place.root, store=call.url, project=name, code=False).close()
    project.create(place)
    if text is not None:
        (place.folder / CONFIG_FILE).write_text(text, "utf-8")
    where = mask_passwords(place.database_url or "")
    return {"path": str(place.folder), "store": where, "project": name, "configured": text is not None}


def _new_settings(call: Call, place: ProjectLocation, name: str) -> str | None:
    """Return config.toml with the lines that name the store. None if it or the environment names it already."""
    from foveate.project.project import how_to_accept
    from foveate.project.trusted_files import refusal
    from foveate.store.database_url import has_password

    table = place.settings.get("project", {})
    if call.url in (None, os.environ.get("FOVEATE_STORE")):
        return None
    if (place.settings.get("store"), table.get("name")) == (call.url, name):
        return None
    config = place.folder / CONFIG_FILE
    if "store" in place.settings or table:
        raise InputError(f"{str(config)!r} has `store` or [project] already. Change them there yourself.")
    if has_password(call.url or ""):
        raise InputError(
            f"The URL contains a password, which does not belong into {str(config)!r}. Write $FOVEATE_PASSWORD instead of "
            "it, in single quotes, and set that variable; or keep the password in ~/.pgpass."
        )
    if reason := refusal(str(config)):
        raise InputError(f"{str(config)!r} is ignored: {reason}. {how_to_accept(str(config))}")
    before = config.read_text("utf-8") if config.exists() else ""
    store, project = (json.dumps(text, ensure_ascii=False) for text in (call.url, name))
    return f"store = {store}\n{before}\n[project]\nname = {project}\n"


def _change_roles(call: Call, granted: Sequence[str], revoked: Sequence[str]) -> dict[str, Any]:
    from foveate.store.postgres.store import PostgresStore

    project = call.project_name()
    with closing(PostgresStore(call.place().database_url or "", create=False)) as store:
        for role in granted:
            store.grant(role, project)
        for role in revoked:
            store.revoke(role, project)
    if not call.as_json:
        for role in granted:
            click.echo(f"{role}  sees {project}")
        for role in revoked:
            click.echo(f"{role}  no longer sees {project}")
    return {"project": project, "granted": list(granted), "revoked": list(revoked)}


# --- the code index ------------------------------------------------------------------------------------------------


def _index(call: Call) -> dict[str, Any]:
    """Index the code, and print what the index holds unless one document is wanted."""
    from foveate.operations import documents

    _warn_about_folder(call)
    with call.open(code=True, create=True) as engine:
        started = perf_counter()
        update = engine.code.index()
        document = documents.code_index(engine.code.workspace, update, perf_counter() - started)
    if not call.as_json:
        _print_index(document)
    return document


def _warn_about_folder(call: Call) -> None:
    place, folder = call.place(), call.store or Path()
    if place.code_root != folder.absolute().resolve() and not place.code_root.samefile(folder):
        say(f"{str(folder)!r} belongs to {str(place.code_root)!r}, which is indexed as a whole.")
    if place.settings.get("code", {}).get("enabled") is False:
        say("warning: contexts do not use the index, because config.toml says code.enabled = false.")


def _print_index(document: Mapping[str, Any]) -> None:
    print_lines(_index_lines(document))
    for note in document["notes"]:
        say(f"warning: {note}")
    if not document["files"]:
        say(f"no files to index in {document['root']!r}.")
    update = document["update"]
    counts = ", ".join(f"{update[f'{verb}_files']:,} {verb}" for verb in ("parsed", "removed"))
    say(f"{counts} in {update['seconds']:.1f} s")


def _index_lines(document: Mapping[str, Any]) -> list[Line]:
    skipped = document["aside"]
    return pairs(
        [
            ("files", f"{document['files']:,} ({document['lines']:,} lines)"),
            ("definitions", f"{document['definitions']:,}"),
            ("languages", _count_by_name(document["languages"])),
            ("read as lines", _count_by_name(document["read_as_lines"])),
            (
                "skipped",
                f"{sum(skipped.values()):,}: {_count_by_name(skipped)}; see `foveate doctor`" if skipped else "",
            ),
            ("syntax errors", _count_files(document["broken"])),
            ("redacted", _count_files(document["redacted"])),
        ]
    )


def _count_by_name(numbers: Mapping[str, int]) -> str:
    """Return `python 12, json 3 and 2 more`."""
    named = [f"{name or 'unknown'} {number:,}" for name, number in numbers.items()]
    more = len(named) - MAX_NAMED
    return ", ".join(named[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def _count_files(number: int) -> str:
    return "" if not number else f"{number:,} file{'s' if number > 1 else ''}"


VERBS = {"init": init}
