"""Connections to PostgreSQL: a pool, transactions that begin whatever happened to the last one, commits that are certain.

Comes in: a URL, of one server or of several of which one takes writes, and how patient to be. Goes out: connections inside
an open transaction, and this store's errors in place of the driver's. No session state is kept on a server: all settings
are the transaction's own, so that a pooler may sit between. No SQL of state is here.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from foveate.errors import Busy, Denied, FoveateError, InputError, Interrupted, StoreError
from foveate.store.database_url import mask_passwords
from foveate.store.postgres.errors import may_pass, refusal

try:
    import psycopg
    from psycopg import errors, sql
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
    from psycopg.pq import TransactionStatus
    from psycopg.types.numeric import Int8BinaryDumper
    from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout
except ImportError as error:
    raise InputError("PostgreSQL needs its driver: install it with `pip install foveate[postgres]`.") from error

Connection = psycopg.Connection[tuple[Any, ...]]
Cursor = psycopg.Cursor[tuple[Any, ...]]
Failure = psycopg.Error

logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())  # what it says is ours to say: no noise on a terminal

READ = "begin isolation level repeatable read read only"
"""One snapshot, whatever others write."""

WRITE = "begin isolation level read committed"
"""Writers of one project take turns by its row; whoever comes next must see what the last one wrote."""

PLANNED = "; set local enable_seqscan = off; set local jit = off; set local max_parallel_workers_per_gather = 0"
"""Every query has an index that leads with the project: what the planner knows of all projects together, or does not know
yet of a new one, must not have it read a whole table. Queries are too short to be compiled, or for several processes."""

MIGRATING = 0x666F7665
"""The advisory lock of whoever brings the schema up to date, alone, and of every writer, shared: `fove`."""

LOOK = "; select value from meta where name = 'schema'"
"""The schema's version, in every transaction: another process may have changed it since."""

TICKET = (
    "; select pg_current_xact_id()::text, pg_backend_pid(), {project}::text, "
    "coalesce((select revision from projects where name = {project}), 0), "
    "(extract(epoch from transaction_timestamp()) * 1000000)::bigint"
)
"""What is needed to learn what became of a transaction whose commit was not answered: a `Ticket`."""

MARK = "select $1::bigint = any (recent), revision - $2::bigint > $3 from foveate.projects where name = $4"
"""Whether a project has the mark of a transaction, and whether more have changed it since than it remembers."""

PAUSE = 0.05
LONGEST_PAUSE = 0.25
"""Seconds before the second attempt to connect; each further pause is twice as long, up to the longest."""

DEFAULTS = {
    "application_name": "foveate",
    "connect_timeout": "10",
    "keepalives_idle": "30",  # a server that was cut off is noticed within a minute, not within two hours
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",  # and one that was asked and does not even acknowledge that, within half of one
}
"""Of the connection, where the URL says nothing else."""

OF_SEVERAL = {"target_session_attrs": "read-write", "connect_timeout": "3", "tcp_user_timeout": "5000"}
"""The same, where the URL names several servers: the one that takes writes, and the next is soon tried. A living server
acknowledges what it is sent while it works on it: a long statement is not cut off."""

LOST = ("08", "57P")
"""Classes of errors by which a server ends a connection."""

READ_ONLY = "25006"
"""What a standby says to whoever writes."""

UNDONE = ("40001", "40P01")
"""Serialization failures and deadlocks: the transaction is rolled back, and the next attempt may go through."""

RECENT = 64
"""Changes of which a project remembers when they began (the query `bump`)."""

PREPARED = 400
"""Statements that a connection keeps prepared: every named query, with several shapes of search."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How a store uses its server. Times are in seconds."""

    connections: int = 10
    """The most that the pool holds; a thread that reads while it reads takes two."""
    reach: float = 15.0
    """To try to begin while the server restarts, and to wait for a connection."""
    takeover: float = 60.0
    """The same, where the URL names several servers: until another takes over."""
    statement: float = 60.0
    lock: float = 30.0
    """To wait for another writer of the same project."""
    idle: float = 300.0
    """For a transaction in which nothing happens: an embedder may think inside of one."""
    prepare: bool = True
    """False behind a pooler that does not carry prepared statements over."""


class Ticket(NamedTuple):
    """A transaction that writes: its number, its process, its project as it was, and when it began, in microseconds."""

    xid: str
    pid: int
    project: str
    """Empty where it changes none: it leaves no mark, and may as well be run again."""
    revision: int
    began: int


Fate = Literal["committed", "lost", "forgotten"]
"""What became of a transaction; forgotten: too much was written since to tell."""


class Connections:
    """The connections of one store to one database."""

    def __init__(self, url: str, patience: Patience) -> None:
        self.patience = patience
        self.shown = mask_passwords(url)
        self._url = url
        self.path = "foveate"
        try:
            given = conninfo_to_dict(url)
        except psycopg.ProgrammingError:
            raise InputError(
                f"{self.shown!r} is no PostgreSQL URL. Write postgresql://USER:PASSWORD@HOST:PORT/DATABASE."
            ) from None
        self._several = any("," in str(given.get(name)) for name in ("host", "hostaddr"))
        self.reach = self.patience.takeover if self._several else self.patience.reach
        defaults = DEFAULTS | (OF_SEVERAL if self._several else {})
        self._conninfo = make_conninfo(**defaults | {name: str(value) for name, value in given.items() if value is not None})
        self._lock = threading.Lock()
        self._pool: ConnectionPool[Connection] | None = None
        self._closed = False
        self._local = threading.local()

    def reached(self) -> Connection:
        """A connection of one's own. Where several servers are named, none may take writes just now: that is waited for."""
        until, pause = time.monotonic() + self.reach, PAUSE
        while True:
            try:
                return self.connect()
            except psycopg.OperationalError as error:
                if not self._several or not may_pass(error) or time.monotonic() + pause > until:
                    raise
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def connect(self) -> Connection:
        """A connection of one's own, outside of the pool."""
        prepare = 2 if self.patience.prepare else None
        connection = psycopg.connect(
            self._conninfo, autocommit=True, prepare_threshold=prepare, cursor_factory=psycopg.RawCursor
        )
        _adapted(connection)
        return connection

    @contextmanager
    def explained(self) -> Iterator[None]:
        """The driver's errors as ours."""
        try:
            yield
        except psycopg.Error as error:
            raise self.explanation(error) from error

    def explanation(self, error: psycopg.Error) -> FoveateError:
        """An error of the driver as ours: what happened, to which database, what to do."""
        shown = self.shown
        said = str(error).strip().split("\n")[0]
        state = error.sqlstate or ""
        if known := refusal(error, self._url):
            return known
        if isinstance(error, PoolTimeout):
            return StoreError(f"{shown!r} cannot be reached, or all connections to it are in use. Try again.")
        if state == "55P03":
            return Busy(f"{shown!r} is busy: somebody else has been writing to the same project for long. Try again.")
        if state in _ADVICE:
            return StoreError(_ADVICE[state].format(shown=shown, error=said))
        if state == READ_ONLY:
            return Denied(
                f"{shown!r} takes no writes: it is a standby. Read from it, or name every server in the URL: "
                "postgresql://USER@ONE,OTHER/DATABASE finds the one that does."
            )
        if state in UNDONE:
            return Interrupted(_INTERRUPTED.format(shown=shown, why=said))
        if _is_lost(error):
            return Interrupted(_INTERRUPTED.format(shown=shown, why=f"the connection was lost ({said})"))
        if isinstance(error, psycopg.DataError):
            return InputError(f"PostgreSQL cannot hold or look for that value: {said}.")
        return StoreError(f"{shown!r}: {said}")

    @contextmanager
    def transaction(
        self,
        begin: str,
        check: Callable[[int], None],
        *,
        project: str = "",
        lock: float | None = None,
        unhurried: bool = False,
        alone: bool = False,
    ) -> Iterator[Connection]:
        """A connection inside a transaction, which is committed at the end of the block; `check` is told the schema.

        Until the block begins, the server may go away and come back. A commit that was not answered is looked up, by the
        mark that it left with its `project`. `alone`: no other transaction of this store writes meanwhile, in any project.
        """
        settings = self._settings(begin, project, lock, unhurried, alone)
        with self.explained(), self._taken(settings) as (connection, ticket, schema):
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
            self._closed = True
            if self._pool is not None:
                self._pool.close()
                self._pool = None

    # --- beginning ---------------------------------------------------------------------------------------------

    def _settings(self, begin: str, project: str, lock: float | None, unhurried: bool, alone: bool) -> str:
        """The whole beginning as one message: it costs the server's answer once."""
        times = {
            "statement_timeout": 0.0 if unhurried else self.patience.statement,
            "lock_timeout": self.patience.lock if lock is None else lock,
            "idle_in_transaction_session_timeout": 0.0 if unhurried else self.patience.idle,
        }
        settings = "".join(f"; set local {name} = {round(seconds * 1000)}" for name, seconds in times.items())
        # A migration waits for the writers of the old schema, and whoever comes after it finds the new one.
        lock_function = "pg_advisory_xact_lock" if alone else "pg_advisory_xact_lock_shared"
        writers = f"; select {lock_function}({MIGRATING})" if begin == WRITE else ""
        ticket = TICKET.format(project=sql.Literal(project).as_string(None)) if begin == WRITE else ""
        return f"{begin}; set local search_path = {self.path}{PLANNED}{settings}{writers}{LOOK}{ticket}"

    @contextmanager
    def _taken(self, begin: str) -> Iterator[tuple[Connection, Ticket | None, int]]:
        """A connection on which a transaction has begun, its ticket, and the schema's version; given back at the end."""
        until, pause = time.monotonic() + self.reach, PAUSE
        while True:
            connection = self._take(until)
            try:
                cursor = connection.execute(begin)
                break
            except BaseException as error:
                goes_on = isinstance(error, psycopg.Error) and self._goes_on(error)
                connection.close()
                self._give(connection, lost=goes_on)
                if not goes_on or time.monotonic() + pause > until:
                    raise
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
        self._depth += 1
        try:
            ticket = cursor.set_result(-1).fetchone() if begin.startswith(WRITE) else None
            seen = cursor.set_result(-1 if ticket is None else -2).fetchone()
            yield connection, Ticket(*ticket) if ticket else None, int(seen[0]) if seen else 0
        finally:
            self._depth -= 1
            lost = connection.broken
            if connection.info.transaction_status not in (TransactionStatus.IDLE, TransactionStatus.UNKNOWN):
                connection.close()
            self._give(connection, lost=lost)

    def _goes_on(self, error: psycopg.Error) -> bool:
        """Whether another connection may do what this one did not: it was lost, or its server takes no writes any more."""
        return _is_lost(error) or (self._several and error.sqlstate == READ_ONLY)

    def _take(self, until: float) -> Connection:
        while True:
            pool = self._open()
            stats = pool.get_stats()
            all_in_use = not stats["pool_available"] and stats["pool_size"] >= self.patience.connections
            if all_in_use and self._depth:  # a thread that waits for itself would wait for ever
                return self.connect()
            left = max(until - time.monotonic(), 0.1)
            try:  # the pool tries to connect once for each that asks it: ask again while no server answers
                return pool.getconn(left if all_in_use else min(left, LONGEST_PAUSE))
            except PoolClosed:  # another thread has dropped it meanwhile
                continue
            except PoolTimeout:
                if time.monotonic() >= until:
                    raise

    def _give(self, connection: Connection, *, lost: bool) -> None:
        """Give a connection back to the pool that it is from; where it was lost, that pool is used no more."""
        pool: ConnectionPool[Connection] | None = getattr(connection, "_pool", None)
        if pool is None:
            connection.close()
            return
        if lost:
            self._drop(pool)
        pool.putconn(connection)  # one that was dropped closes it

    def _drop(self, pool: ConnectionPool[Connection]) -> None:
        """Close idle connections unasked, the others when they are given back: to ask a dead one costs its whole timeout."""
        with self._lock:
            if pool is not self._pool:
                return
            self._pool = None
        pool.close(timeout=PAUSE)  # a worker that is trying to connect is not waited for

    def _open(self) -> ConnectionPool[Connection]:
        with self._lock:
            if self._closed:
                raise StoreError("This store is closed; open it again.")
            if self._pool is None:
                self._pool = ConnectionPool(
                    self._conninfo,
                    connection_class=psycopg.Connection,
                    kwargs={
                        "autocommit": True,
                        "prepare_threshold": 2 if self.patience.prepare else None,
                        "cursor_factory": psycopg.RawCursor,
                    },
                    configure=_adapted,
                    min_size=0,
                    max_size=self.patience.connections,
                    timeout=self.reach,
                    reconnect_timeout=0,
                    name="foveate",
                    open=True,
                )
            return self._pool

    @property
    def _depth(self) -> int:
        """Transactions that this thread has open."""
        return getattr(self._local, "depth", 0)

    @_depth.setter
    def _depth(self, depth: int) -> None:
        self._local.depth = depth

    # --- the end -----------------------------------------------------------------------------------------------

    def _commit(self, connection: Connection, ticket: Ticket | None) -> None:
        try:
            done = connection.execute("commit").statusmessage
        except psycopg.Error as error:
            if ticket is None or not _is_lost(error):
                raise
            if self._is_committed(ticket):
                return
            raise Interrupted(_INTERRUPTED.format(shown=self.shown, why="the connection was lost")) from error
        if done != "COMMIT":
            raise Interrupted(_INTERRUPTED.format(shown=self.shown, why="an error before had ended the transaction"))

    def _is_committed(self, ticket: Ticket) -> bool:
        """What became of a transaction whose commit was not answered."""
        until, pause = time.monotonic() + self.reach, PAUSE
        fate: Fate | None = None
        while fate is None and time.monotonic() < until:
            with suppress(psycopg.OperationalError), self.connect() as fresh:
                fate = _fate(fresh, ticket)
            if fate is None:
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
        if fate is None or fate == "forgotten":
            raise StoreError(f"{self.shown!r}: {_UNCERTAIN[fate]} Look before you write it again.")
        return fate == "committed"


def _fate(connection: Connection, ticket: Ticket) -> Fate | None:
    """What became of a transaction; None while that is not decided."""
    ((follows,),) = connection.execute("select pg_is_in_recovery()").fetchall()
    if follows:  # it may have more to come than it shows, until it takes over
        return None
    try:
        ((status,),) = connection.execute("select pg_xact_status($1::text::xid8)", (ticket.xid,)).fetchall()
    except errors.InvalidParameterValue:  # a server that crashed or took over, and never saw it
        return "lost"
    if status == "in progress":  # the server has not noticed yet that nobody listens: end it, so that it is decided
        connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where pid = $1 and backend_xid = $2::text::xid8::xid",
            (ticket.pid, ticket.xid),
        )
        return None
    if status == "aborted":
        return "lost"
    # Committed, but by whom? After a crash, of one of its processes even, a server may give the number of a transaction
    # that was lost to the next one, and so may another that took over. The mark is nobody else's.
    for known, forgotten in connection.execute(MARK, (ticket.began, ticket.revision, RECENT, ticket.project)):
        return "committed" if known else "forgotten" if forgotten else "lost"
    return "lost"


def quoted(name: str) -> str:
    """A name as an identifier of SQL."""
    return sql.Identifier(name).as_string(None)


def _adapted(connection: Connection) -> None:
    """Numbers always of one type, truth values as 0 and 1: a statement is prepared once, and columns are SQLite's."""
    for sort in (int, bool):
        connection.adapters.register_dumper(sort, Int8BinaryDumper)
    connection.prepared_max = PREPARED


def _is_lost(error: psycopg.Error) -> bool:
    if isinstance(error, PoolTimeout):
        return False
    state = error.sqlstate
    return isinstance(error, psycopg.OperationalError) and (state is None or state.startswith(LOST) or state == "53300")


_UNCERTAIN = {
    None: "it went away while it was committing and cannot be asked what became of that.",
    "forgotten": f"the answer to a commit was lost, and the project has had over {RECENT} changes since it began: "
    "what became of it cannot be told any more.",
}

_INTERRUPTED = "{shown!r}: {why}; nothing was written. Try again."

_ADVICE: dict[str, str] = {
    "25P03": "{shown!r}: a transaction was idle for too long and was ended. Nothing was changed.",
    "53100": "The disk of {shown!r} is full. Nothing was changed; make room and try again.",
    "54000": "{shown!r}: a name, key or subject is longer than the 2,700 bytes that PostgreSQL can index ({error}).",
    "57014": "{shown!r}: a query took too long and was ended. Nothing was changed.",
}
