"""What a PostgreSQL server says of itself, of the role that asks and of who sees what. For people who look after a store.

Comes in: the URL of a shared store. Goes out: facts, problems and warnings, each saying what to do. It has a connection of
its own, reads only, and needs no store that can be opened.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

from foveate.errors import InputError
from foveate.store.postgres.errors import explained, refusal

if TYPE_CHECKING:
    import psycopg

PATIENCE = 10
"""Seconds to wait for a server."""

LOOKS = 5
"""How often it is asked for nothing, to see how long an answer takes."""

SLOW = 20.0
"""Milliseconds: a context asks some thirty times, so that it takes above half a second from here on."""

MOST_NAMED = 10
"""Projects that a line names; the rest is counted."""


def facts(url: str, project: str) -> tuple[dict[str, Any], list[str]]:
    """The server, the role's rights and what it sees; and warnings, also where it does not see `project`."""
    with _asking(url) as connection:
        milliseconds = _latency(connection)
        role, is_owner = _role(connection)
        visible = [name for (name,) in connection.execute("select name from foveate.projects order by name")]
    named = ", ".join(visible[:MOST_NAMED]) + (f" and {len(visible) - MOST_NAMED} more" * (len(visible) > MOST_NAMED))
    found = {
        "role": f"{role} ({'owner of the store' if is_owner else 'sees what it was granted'})",
        "projects": named or "none yet",
        "latency": f"{milliseconds:.1f} ms for the smallest question",
    }
    warnings = []
    if project not in visible and not is_owner:
        warnings.append(
            f"Role {role!r} does not see project {project!r}. The store's owner can allow it: "
            f"`foveate init --grant {role} --project {project}`."
        )
    if milliseconds > SLOW:
        warnings.append(
            f"The server takes {milliseconds:.0f} ms to answer nothing: contexts will be slow. Move closer to it."
        )
    return found, warnings


def members(url: str) -> list[tuple[str, str]]:
    """Which role sees which project: all of it for the owner of the store, a role's own lines for others."""
    with _asking(url) as connection:
        return connection.execute(
            "select m.role, p.name from foveate.members m join foveate.projects p using (project) order by 1, 2"
        ).fetchall()


@contextmanager
def _asking(url: str) -> Iterator[psycopg.Connection[Any]]:
    try:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        raise InputError("PostgreSQL needs its driver: install it with `pip install foveate[postgres]`.") from None
    try:
        conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:  # its words may hold a part of the password
        raise refusal(error, url) or InputError("The store's URL is none that PostgreSQL understands.") from None
    with explained(url), psycopg.connect(url, connect_timeout=PATIENCE, autocommit=True) as connection:
        yield connection


def _latency(connection: psycopg.Connection[Any]) -> float:
    taken = []
    for _ in range(LOOKS):
        began = perf_counter()
        connection.execute("select 1")
        taken.append(1000 * (perf_counter() - began))
    return median(taken)


def _role(connection: psycopg.Connection[Any]) -> tuple[str, bool]:
    """Who we are, and whether the tables are ours, by whatever way."""
    found = connection.execute(
        "select current_user::text, coalesce((select pg_has_role(nspowner, 'usage') from pg_namespace "
        "where nspname = 'foveate'), false)"
    ).fetchone()
    assert found is not None
    return found[0], found[1]
