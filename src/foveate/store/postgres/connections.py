"""Connections to PostgreSQL: a pool, transactions that survive a lost connection, and commits whose outcome is certain.

The URL names one server, or several of which one takes writes. No session state is kept on a server: every setting belongs
to a transaction, so that a pooler such as PgBouncer may sit between.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import psycopg
from psycopg import errors, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.types.numeric import Int8BinaryDumper
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from foveate.errors import InputError, Interrupted, StoreError
from foveate.store.database_url import mask_passwords
from foveate.store.postgres.errors import (
    INTERRUPTED_MESSAGE,
    READ_ONLY_SQLSTATE,
    is_connection_lost,
    is_transient,
    translate_errors,
)
from foveate.store.postgres.silence import ServerSilent, WatchedConnection

Connection = psycopg.Connection[tuple[Any, ...]]
Cursor = psycopg.Cursor[tuple[Any, ...]]

# The pool logs each failed attempt to connect. Callers get an error for it, so the log would only repeat it.
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())

BEGIN_READ_SQL = "begin isolation level repeatable read read only"
"""A reader sees one snapshot, whatever others write."""

BEGIN_WRITE_SQL = "begin isolation level read committed"
"""Writers of one project wait for the lock on its row. Each query after the lock must see what the last writer committed,
which the snapshot of `repeatable read`, taken before the wait, would not show."""

PLANNER_SETTINGS_SQL = "; set local enable_seqscan = off; set local jit = off; set local max_parallel_workers_per_gather = 0"
"""Every query has an index that begins with the project. The planner's statistics are of all projects together, or missing
for a new one, and could make it read a whole table instead. The queries are too short to gain from compilation or from
parallel workers."""

MIGRATION_LOCK_ID = 0x666F7665
"""Number of an advisory lock, `fove` in ASCII: a migration takes it alone, every writer shares it."""

SCHEMA_VERSION_SQL = "; select value from meta where name = 'schema'"
"""Read in every transaction, because another process may have migrated the schema since the last one."""

FIRST_RETRY_S = 0.05
MAX_RETRY_S = 0.25
"""Pauses between attempts to connect. They double from the first to the longest."""

DEFAULT_OPTIONS = {
    "application_name": "foveate",
    "connect_timeout": "10",
    # A server that vanished is noticed within a minute instead of two hours,
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    # and within 30 seconds if it does not even acknowledge a query.
    "tcp_user_timeout": "30000",
}
"""Connection options that the URL may override."""

FAILOVER_OPTIONS = {"target_session_attrs": "read-write", "connect_timeout": "3", "tcp_user_timeout": "5000"}
"""Options if the URL names several servers: use the one that takes writes, and try the next one soon. This does not cut off
long queries, because a living server acknowledges what it receives while it works."""

DOWN_S = 1.0
"""How long a service fails every transaction at once after its server could not be reached or did not answer. Otherwise each
request would wait for the requests before it, and then for the server."""

MAX_PREPARED_STATEMENTS = 400
"""Statements that a connection keeps prepared: room for every named query, and for several shapes of a search."""


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """The size of the pool and the timeouts of a store, in seconds."""

    max_connections: int = 10
    """A thread that reads while it reads needs two connections."""
    connect_timeout_s: float = 15.0
    """How long to try to begin a transaction while the server restarts, or to wait for a free connection."""
    failover_timeout_s: float = 60.0
    """The same if the URL names several servers, because another one has to take over first."""
    statement_timeout_s: float = 60.0
    lock_timeout_s: float = 30.0
    """How long to wait for another writer of the same project."""
    idle_timeout_s: float = 300.0
    """Long, because an embedder may run inside a transaction."""
    use_prepared_statements: bool = True
    """False behind a pooler that does not support them."""


# --- commits (decision 030) ---------------------------------------------------------------------------------------

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


def commit_status(connection: Connection, ticket: Ticket) -> CommitStatus | None:
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


# --- connections ---------------------------------------------------------------------------------------------------


class _Backoff:
    """The pauses between attempts, until a deadline."""

    def __init__(self, timeout_s: float) -> None:
        self.deadline = time.monotonic() + timeout_s
        self._pause_s = FIRST_RETRY_S

    def wait(self) -> bool:
        """Wait before the next attempt. Return False at once if the deadline is nearer than the pause is long."""
        if time.monotonic() + self._pause_s > self.deadline:
            return False
        time.sleep(self._pause_s)
        self._pause_s = min(2 * self._pause_s, MAX_RETRY_S)
        return True


class Connections:
    """The connections of one store to one database."""

    def __init__(self, url: str, settings: ConnectionSettings) -> None:
        self.settings = settings
        self.url = url
        self.shown = mask_passwords(url)
        self.search_path = "foveate"
        try:
            given = conninfo_to_dict(url)
        except psycopg.ProgrammingError:  # not chained: the driver's message may hold a part of the password
            raise InputError(
                f"{self.shown!r} is not a URL that PostgreSQL understands. "
                "Write postgresql://USER:PASSWORD@HOST:PORT/DATABASE."
            ) from None
        self._has_several_servers = any("," in str(given.get(name)) for name in ("host", "hostaddr"))
        self._timeout_s = settings.failover_timeout_s if self._has_several_servers else settings.connect_timeout_s
        options = DEFAULT_OPTIONS | (FAILOVER_OPTIONS if self._has_several_servers else {})
        self._conninfo = make_conninfo(**options | {name: str(value) for name, value in given.items() if value is not None})
        self._lock = threading.Lock()
        self._pool: ConnectionPool[Connection] | None = None
        self._is_closed = False
        self._local = threading.local()
        self._connection_class: type[Connection] = psycopg.Connection
        self._has_limited_waits = False
        self._down_until = 0.0

    def limit_waits(self, seconds: float) -> None:
        """Give up after this time if the server cannot be reached, instead of waiting for its restart or a failover.

        A server that is reached and does not answer is given up soon, too.
        """
        self._timeout_s = seconds
        self._has_limited_waits = True
        self._connection_class = WatchedConnection
        timeouts = {"tcp_user_timeout": str(round(seconds * 1000)), "connect_timeout": "2"}  # libpq's shortest
        self._conninfo = make_conninfo(self._conninfo, **timeouts)
        with self._lock:
            pool = self._pool
            self._pool = None
        if pool is not None:
            pool.close(timeout=FIRST_RETRY_S)

    def connect(self) -> Connection:
        """Return a new connection outside of the pool."""
        connection = self._connection_class.connect(self._conninfo, **self._connection_options())
        _configure(connection)
        return connection

    def connect_with_retry(self) -> Connection:
        """Return a new connection outside of the pool. If the URL names several servers, wait for one that takes writes."""
        backoff = _Backoff(self._timeout_s)
        while True:
            try:
                return self.connect()
            except psycopg.OperationalError as error:
                can_retry = self._has_several_servers and is_transient(error)
                if not can_retry or not backoff.wait():
                    raise

    @contextmanager
    def transaction(
        self,
        begin: str,
        check: Callable[[int], None],
        *,
        project: str = "",
        lock_timeout_s: float | None = None,
        no_timeout: bool = False,
        alone: bool = False,
    ) -> Iterator[Connection]:
        """Open a transaction that is committed at the end of the block. `check` is called with the schema version.

        Until the block begins, the server may go away and come back. If the commit is not answered, its outcome is looked up
        by the mark that it left with `project`. `alone` makes this the only transaction of the store that writes, in any
        project.
        """
        begin_sql = self._begin_sql(begin, project, lock_timeout_s, no_timeout, alone)
        with (
            translate_errors(self.url),
            self._noting_silence(),
            self._begin(begin_sql) as (connection, ticket, schema),
        ):
            try:
                check(schema)
                yield connection
            except BaseException:
                with suppress(psycopg.Error):
                    connection.execute("rollback")
                raise
            self._commit(connection, ticket)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            if self._pool is not None:
                self._pool.close()
                self._pool = None

    @contextmanager
    def _noting_silence(self) -> Iterator[None]:
        """Fail at once while the server is known to be down, and remember it if it does not answer in the block."""
        if time.monotonic() < self._down_until:
            raise ServerSilent("the server did not answer a moment ago")
        try:
            yield
        except (ServerSilent, PoolTimeout) as error:
            is_exhausted = isinstance(error, PoolTimeout) and self._all_in_use()
            if self._has_limited_waits and not is_exhausted:
                self._down_until = time.monotonic() + DOWN_S
            raise

    # --- the beginning of a transaction ------------------------------------------------------------------------

    def _begin_sql(self, begin: str, project: str, lock_timeout_s: float | None, no_timeout: bool, alone: bool) -> str:
        """Return everything that begins a transaction as one message, so that it takes one round trip."""
        timeouts = {
            "statement_timeout": 0.0 if no_timeout else self.settings.statement_timeout_s,
            "lock_timeout": self.settings.lock_timeout_s if lock_timeout_s is None else lock_timeout_s,
            "idle_in_transaction_session_timeout": 0.0 if no_timeout else self.settings.idle_timeout_s,
        }
        settings = "".join(f"; set local {name} = {round(seconds * 1000)}" for name, seconds in timeouts.items())
        settings = f"; set local search_path = {self.search_path}{PLANNER_SETTINGS_SQL}{settings}"
        if begin != BEGIN_WRITE_SQL:
            return f"{begin}{settings}{SCHEMA_VERSION_SQL}"
        # A migration waits until no writer uses the old schema. Writers that come later wait for it, and see the new one.
        lock_function = "pg_advisory_xact_lock" if alone else "pg_advisory_xact_lock_shared"
        lock = f"; select {lock_function}({MIGRATION_LOCK_ID})"
        return f"{begin}{settings}{lock}{SCHEMA_VERSION_SQL}; {ticket_sql(project)}"

    @contextmanager
    def _begin(self, begin_sql: str) -> Iterator[tuple[Connection, Ticket | None, int]]:
        """Yield a connection in a new transaction, its ticket if it writes, and the schema version."""
        backoff = _Backoff(self._timeout_s)
        while True:
            connection = self._acquire(backoff.deadline)
            try:
                cursor = connection.execute(begin_sql)
                break
            except BaseException as error:
                can_retry = isinstance(error, psycopg.Error) and self._can_retry(error)
                connection.close()
                self._release(connection, is_lost=can_retry)
                if not can_retry or not backoff.wait():
                    raise
        self._depth += 1
        try:
            ticket = cursor.set_result(-1).fetchone() if begin_sql.startswith(BEGIN_WRITE_SQL) else None
            schema = cursor.set_result(-1 if ticket is None else -2).fetchone()
            yield connection, Ticket(*ticket) if ticket else None, int(schema[0]) if schema else 0
        finally:
            self._depth -= 1
            is_lost = connection.broken
            if connection.info.transaction_status not in (TransactionStatus.IDLE, TransactionStatus.UNKNOWN):
                connection.close()
            self._release(connection, is_lost=is_lost)

    def _can_retry(self, error: psycopg.Error) -> bool:
        """Return whether another connection may succeed: this one was lost, or its server has become a standby."""
        return is_connection_lost(error) or (self._has_several_servers and error.sqlstate == READ_ONLY_SQLSTATE)

    def _acquire(self, deadline: float) -> Connection:
        """Take a connection from the pool, and wait for one until the deadline."""
        while True:
            pool = self._open_pool()
            all_in_use = self._all_in_use()
            if all_in_use and self._depth:  # this thread may hold the connection that it would wait for
                return self.connect()
            remaining = max(deadline - time.monotonic(), 0.1)
            try:
                # The pool tries to connect once for each call. So call it again and again while no server answers.
                return pool.getconn(remaining if all_in_use else min(remaining, MAX_RETRY_S))
            except PoolClosed:  # another thread has discarded it meanwhile
                continue
            except PoolTimeout:
                if time.monotonic() >= deadline:
                    raise

    def _all_in_use(self) -> bool:
        stats = self._open_pool().get_stats()
        return not stats["pool_available"] and stats["pool_size"] >= self.settings.max_connections

    def _release(self, connection: Connection, *, is_lost: bool) -> None:
        """Return a connection to its pool. If it was lost, discard the pool."""
        pool: ConnectionPool[Connection] | None = getattr(connection, "_pool", None)
        if pool is None:
            connection.close()
            return
        if is_lost:
            self._discard_pool(pool)
        pool.putconn(connection)  # closes the connection if its pool was discarded

    def _discard_pool(self, pool: ConnectionPool[Connection]) -> None:
        """Close idle connections without testing them: each test of a dead one would take its whole timeout.

        Connections in use are closed when they are released.
        """
        with self._lock:
            if pool is not self._pool:
                return
            self._pool = None
        pool.close(timeout=FIRST_RETRY_S)  # does not wait for a worker that is still trying to connect

    def _open_pool(self) -> ConnectionPool[Connection]:
        with self._lock:
            if self._is_closed:
                raise StoreError("This store is closed; open it again.")
            if self._pool is None:
                self._pool = ConnectionPool(
                    self._conninfo,
                    connection_class=self._connection_class,
                    kwargs=self._connection_options(),
                    configure=_configure,
                    min_size=0,
                    max_size=self.settings.max_connections,
                    timeout=self._timeout_s,
                    reconnect_timeout=0,
                    name="foveate",
                    open=True,
                )
            return self._pool

    def _connection_options(self) -> dict[str, Any]:
        prepare_threshold = 2 if self.settings.use_prepared_statements else None
        return {"autocommit": True, "prepare_threshold": prepare_threshold, "cursor_factory": psycopg.RawCursor}

    @property
    def _depth(self) -> int:
        """Return the number of transactions that this thread has open."""
        return getattr(self._local, "depth", 0)

    @_depth.setter
    def _depth(self, depth: int) -> None:
        self._local.depth = depth

    # --- the end of a transaction ------------------------------------------------------------------------------

    def _commit(self, connection: Connection, ticket: Ticket | None) -> None:
        try:
            status = connection.execute("commit").statusmessage
        except psycopg.Error as error:
            if ticket is None or not is_connection_lost(error):
                raise
            if isinstance(error, ServerSilent):  # a further connection would have to wait as well
                raise self._uncertain_commit(None) from error
            if self._is_committed(ticket):
                return
            raise Interrupted(INTERRUPTED_MESSAGE.format(shown=self.shown, why="the connection was lost")) from error
        # A transaction that had an error answers a commit with "ROLLBACK", and without an error.
        if status != "COMMIT":
            raise Interrupted(INTERRUPTED_MESSAGE.format(shown=self.shown, why="an error before had ended the transaction"))

    def _is_committed(self, ticket: Ticket) -> bool:
        """Return whether a transaction was committed whose commit was not answered."""
        backoff = _Backoff(self._timeout_s)
        status: CommitStatus | None = None
        while True:
            with suppress(psycopg.OperationalError), self.connect() as connection:
                status = commit_status(connection, ticket)
            if status is not None or not backoff.wait():
                break
        if status is None or status == "forgotten":
            raise self._uncertain_commit(status)
        return status == "committed"

    def _uncertain_commit(self, status: CommitStatus | None) -> StoreError:
        return StoreError(f"{self.shown!r}: {_UNCERTAIN_MESSAGES[status]} Look before you write it again.")


def quote_identifier(name: str) -> str:
    return sql.Identifier(name).as_string(None)


def _configure(connection: Connection) -> None:
    # One type for all numbers, so that a statement is prepared once. Truth values are 0 and 1, as in SQLite's columns.
    for sort in (int, bool):
        connection.adapters.register_dumper(sort, Int8BinaryDumper)
    connection.prepared_max = MAX_PREPARED_STATEMENTS


_UNCERTAIN_MESSAGES = {
    None: "the server went away during a commit, and cannot be asked whether it succeeded.",
    "forgotten": f"the answer to a commit was lost, and the project has had over {MAX_COMMIT_MARKS} changes since it began. "
    "Whether it succeeded cannot be told any more.",
}
