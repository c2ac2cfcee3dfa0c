"""Finds out whether a transaction was committed whose commit was not answered (decision 030)."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from psycopg import Connection, errors, sql

MAX_COMMIT_MARKS = 64
"""Commit marks that a project remembers: when its latest changes began. The query `bump_revision` adds them."""

_TICKET_SQL = (
    "select pg_current_xact_id()::text, pg_backend_pid(), {project}::text, "
    "coalesce((select revision from projects where name = {project}), 0), "
    "(extract(epoch from transaction_timestamp()) * 1000000)::bigint"
)

_COMMIT_MARK_SQL = "select $1::bigint = any (recent), revision - $2::bigint > $3 from foveate.projects where name = $4"
"""Whether a project has the mark of a transaction, and whether it has changed more often since than it remembers."""

CommitStatus = Literal["committed", "lost", "forgotten"]
"""`forgotten`: the project has changed too often since then to tell."""


class Ticket(NamedTuple):
    """Identifies a transaction that writes, even on a server that crashed or took over."""

    xid: str
    pid: int
    project: str
    """Empty if the transaction changes no project. It leaves no mark then, and may be run again."""
    revision: int
    """Revision of the project when the transaction began."""
    started_us: int


def ticket_sql(project: str) -> str:
    """Return the query for the ticket of the current transaction."""
    return _TICKET_SQL.format(project=sql.Literal(project).as_string(None))


def commit_status(connection: Connection[Any], ticket: Ticket) -> CommitStatus | None:
    """Return what became of a transaction, or None while that is not decided."""
    ((is_standby,),) = connection.execute("select pg_is_in_recovery()").fetchall()
    if is_standby:  # until it takes over, it may still receive commits that it does not show yet
        return None
    try:
        ((status,),) = connection.execute("select pg_xact_status($1::text::xid8)", (ticket.xid,)).fetchall()
    except errors.InvalidParameterValue:  # the server crashed or took over, and never saw this transaction
        return "lost"
    if status == "in progress":
        # The server has not noticed yet that the client is gone. Ending the process decides the transaction.
        connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where pid = $1 and backend_xid = $2::text::xid8::xid",
            (ticket.pid, ticket.xid),
        )
        return None
    if status == "aborted":
        return "lost"
    # "Committed" is not proof. After a crash, even of one of its processes, a server may give the number of a lost
    # transaction to the next one, and so may a server that took over. The mark belongs to this transaction alone.
    params = (ticket.started_us, ticket.revision, MAX_COMMIT_MARKS, ticket.project)
    for has_mark, is_forgotten in connection.execute(_COMMIT_MARK_SQL, params):
        return "committed" if has_mark else "forgotten" if is_forgotten else "lost"
    return "lost"
