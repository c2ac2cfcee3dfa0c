"""Facts about a PostgreSQL server, for `doctor`: the role, its projects, the latency, and who was granted what.

These functions only read, on a connection of their own, and do not open the store.
"""

from __future__ import annotations

from statistics import median
from time import perf_counter
from typing import Any

from foveate.store.postgres.connections import Connection, Connections, ConnectionSettings
from foveate.store.postgres.errors import translate_errors

LATENCY_SAMPLES = 5

SLOW_LATENCY_MS = 20.0
"""Round trip from which `doctor` warns. A context takes about thirty round trips, so this adds more than half a second."""

MAX_NAMED_PROJECTS = 10
"""Projects that are listed by name. Further ones are counted."""


def facts(url: str, project: str) -> tuple[dict[str, Any], list[str]]:
    """Return facts about the server and the role, and warnings, for example if the role does not see `project`."""
    connections = Connections(url, ConnectionSettings())
    with translate_errors(url), connections.connect() as connection:
        milliseconds = _latency_ms(connection)
        role, is_owner = _role(connection)
        visible = [name for (name,) in connection.execute("select name from foveate.projects order by name")]
    more = len(visible) - MAX_NAMED_PROJECTS
    named = ", ".join(visible[:MAX_NAMED_PROJECTS]) + (f" and {more} more" if more > 0 else "")
    found = {
        "role": f"{role} ({'owner of the store' if is_owner else 'sees what it was granted'})",
        "projects": named or "none yet",
        "latency": f"{milliseconds:.1f} ms for the smallest query",
    }
    warnings = []
    if project not in visible and not is_owner:
        warnings.append(
            f"Role {role!r} does not see project {project!r}. The store's owner can allow it: "
            f"`foveate init --grant {role} --project {project}`."
        )
    if milliseconds > SLOW_LATENCY_MS:
        warnings.append(
            f"The server takes {milliseconds:.0f} ms to answer an empty query, so contexts will be slow. Run foveate closer "
            "to it."
        )
    return found, warnings


def members(url: str) -> list[tuple[str, str]]:
    """Return (role, project) for each grant: all of them for the owner of the store, their own for other roles."""
    connections = Connections(url, ConnectionSettings())
    with translate_errors(url), connections.connect() as connection:
        return connection.execute(
            "select m.role, p.name from foveate.members m join foveate.projects p using (project) order by 1, 2"
        ).fetchall()


def _latency_ms(connection: Connection) -> float:
    samples = []
    for _ in range(LATENCY_SAMPLES):
        started = perf_counter()
        connection.execute("select 1")
        samples.append(1000 * (perf_counter() - started))
    return median(samples)


def _role(connection: Connection) -> tuple[str, bool]:
    """Return the name of the role, and whether it owns the tables, also through another role."""
    ((name, is_owner),) = connection.execute(
        "select current_user::text, coalesce((select pg_has_role(nspowner, 'usage') from pg_namespace "
        "where nspname = 'foveate'), false)"
    ).fetchall()
    return name, is_owner
