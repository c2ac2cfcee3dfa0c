"""`role`: which role of a shared database sees which project, also with SQL of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import click

from foveate.cli.call import Call, Verb, VerbGroup, pass_call, say
from foveate.errors import InputError

if TYPE_CHECKING:
    from foveate.store.postgres.store import PostgresStore


def _url(call: Call) -> str:
    """The shared store of the project."""
    url = call.place().shared
    if url is None:
        raise InputError(
            "A store in a file has no roles: whoever can read the file sees all of it. Roles are for a shared store: "
            "`foveate init --store postgresql://...`."
        )
    return url


@contextmanager
def _store(call: Call) -> Iterator[PostgresStore]:
    from foveate.store.postgres.store import PostgresStore

    with closing(PostgresStore(_url(call), create=False)) as store:
        yield store


@click.group(cls=VerbGroup)
def role() -> None:
    """Let roles of a PostgreSQL server see projects.

    The server itself keeps to it, whatever a role asks it with. The owner of the store sees every project.
    """


@role.command("grant", cls=Verb)
@click.argument("name", metavar="ROLE")
@pass_call
def grant(call: Call, name: str) -> None:
    """Let ROLE see and change this project, or that of --project.

    The role is one of the server's: `create role ada login`.
    """
    _url(call)
    project = call.project_name()
    with _store(call) as store:
        store.grant(name, project)
    _say_done(call, name, project, granted=True)


@role.command("revoke", cls=Verb)
@click.argument("name", metavar="ROLE")
@pass_call
def revoke(call: Call, name: str) -> None:
    """Take this project, or that of --project, from ROLE."""
    _url(call)
    project = call.project_name()
    with _store(call) as store:
        store.revoke(name, project)
    _say_done(call, name, project, granted=False)


def _say_done(call: Call, name: str, project: str, *, granted: bool) -> None:
    if call.as_json:
        call.print_json({"role": name, "project": project, "granted": granted})
    else:
        click.echo(f"{name}  {'sees' if granted else 'no longer sees'} {project}")


@role.command("list", cls=Verb)
@pass_call
def list_(call: Call) -> None:
    """List the roles, each with the projects that it sees."""
    from foveate.store.postgres.server import members

    found = members(_url(call))
    if call.as_json:
        call.print_json({"roles": [{"role": name, "project": project} for name, project in found]})
        return
    if not found:
        say("no role sees a project yet but the owner's own. `foveate role grant ROLE` lets one.")
        return
    from foveate.cli.render import print_lines, table

    print_lines(table(("role", "project"), found, left=2))


VERBS: dict[str, Any] = {"role": role}
