"""The connections to one SQLite file, one for each thread, with their transactions, the care of the WAL, and errors."""

from __future__ import annotations

import json
import os
import shutil
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote
from weakref import WeakSet

import apsw

from foveate.errors import Damaged, FoveateError, StoreError
from foveate.store.sql import queries
from foveate.store.sqlite import lock

APPLICATION_ID = 0x464F5645
"""`FOVE` in the file's header. It distinguishes a store from the SQLite files of other programs."""

BUSY_TIMEOUT_MS = 30_000
"""Wait for another writer. No transaction of foveate takes this long."""

SHORT_TIMEOUT_MS = 200
"""Wait for others if the work can also be done later: saving receipts, restarting the WAL."""

CHECKPOINT_PAGES = 1000
"""Pages in the WAL after which a writer copies them into the file. 4,000 made no measurable difference."""

MAX_WAL_PAGES = 8192
"""Pages in the WAL (32 MB) after which it must be restarted from its beginning, which waits for readers."""

MAX_RESTART_TIMEOUT_MS = 2000
"""Longest wait for readers to restart a WAL that has grown far beyond its limit."""

RESTART_INTERVAL_S = 1.0
"""Time between two attempts of all processes together to restart the WAL. An attempt holds up the writers."""

MMAP_BYTES = 2**32
"""Bytes of the file that are mapped into memory, so that reading needs no copy. Most files are smaller."""

AUTO_VACUUM_INCREMENTAL = 2
"""SQLite's code for a file that returns free pages on request."""


class SQLiteDatabase:
    """An apsw connection as the `Database` of `store/sql`, which runs named queries."""

    def __init__(self, connection: apsw.Connection, queries_by_name: Mapping[str, str]) -> None:
        self.connection = connection
        self._queries = queries_by_name

    def fetch_all(self, query: str, params: Mapping[str, Any] | Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self.connection.execute(self._queries[query], params).fetchall()

    def execute(self, query: str, params: Mapping[str, Any] | Sequence[Any] = ()) -> int:
        self.connection.execute(self._queries[query], params)
        return self.connection.changes()

    def execute_many(self, query: str, rows: Sequence[Sequence[Any]]) -> None:
        if rows:
            self.connection.executemany(self._queries[query], rows)


class Connections:
    """The connections of one store to its file, or its one connection in memory (`:memory:`)."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.is_in_memory = path == ":memory:"
        self.is_read_only = not self.is_in_memory and _is_read_only(path)
        self._is_closed = False
        self._lock = threading.RLock()
        self._copy: TemporaryDirectory[str] | None = None
        self._thread = threading.local()
        self._open: WeakSet[apsw.Connection] = WeakSet()
        """All open connections. Weak, so that the connection of a thread is closed when the thread ends."""
        self._queries = queries.load("sqlite")
        self._schema_version = queries.migrations("sqlite")[-1][0]
        self._memory_connection = self._connect() if self.is_in_memory else None

    @property
    def has_open_transaction_in_memory(self) -> bool:
        """Return whether the only connection of a store in memory is in a transaction, which a reader then joins."""
        return self._memory_connection is not None and self._memory_connection.in_transaction

    def size(self, suffix: str = "") -> int:
        """Return the bytes of the file, or of a file next to it."""
        path = self.path + suffix
        return os.path.getsize(path) if os.path.exists(path) else 0

    def close(self) -> None:
        """Close every connection. SQLite empties the WAL when the last connection of all processes closes."""
        self._is_closed = True
        with self._lock:
            for connection in list(self._open):
                connection.close()
            self._open.clear()
            self._thread = threading.local()
            self._memory_connection = None
            if self._copy is not None:
                self._copy.cleanup()

    def current(self) -> apsw.Connection:
        """Return the connection of this thread."""
        if self._is_closed:
            raise StoreError("This store is closed. Open it again.")
        if self._memory_connection is not None:
            return self._memory_connection
        connection = getattr(self._thread, "connection", None)
        if connection is None:
            connection = self._thread.connection = self._connect()
        return connection

    def database(self) -> SQLiteDatabase:
        """Return the connection of this thread for named queries outside of a transaction."""
        return SQLiteDatabase(self.current(), self._queries)

    @contextmanager
    def memory_lock(self) -> Iterator[None]:
        """Keep other threads out while the block runs: a store in memory has one connection for all of them."""
        if self.is_in_memory:
            with self._lock:
                yield
        else:
            yield

    @contextmanager
    def transaction(self, begin: str, timeout_ms: int = BUSY_TIMEOUT_MS) -> Iterator[SQLiteDatabase]:
        """Open a transaction that is committed at the end of the block, and rolled back after an error."""
        with (
            translate_errors(self.path),
            self.memory_lock(),
            self._idle_connection(begin) as (connection, (start, commit, rollback)),
        ):
            if begin == "begin" or self.is_in_memory:
                connection.execute(start)
            else:
                # The place in the queue is given up as soon as SQLite's lock is held, so that the next writer can wait.
                with lock.wait_in_queue(self.path, timeout_ms), _busy_timeout(connection, timeout_ms):
                    connection.execute(start)
            try:
                self.check_schema(connection)
                yield SQLiteDatabase(connection, self._queries)
                connection.execute(commit)
            except BaseException as error:
                if connection.in_transaction:
                    connection.execute(rollback)
                self._raise_if_damaged(connection, error)
                raise

    def _raise_if_damaged(self, connection: apsw.Connection, error: BaseException) -> None:
        """Raise `Damaged` for an unexpected error if damage explains it: a missing value, or one of another type."""
        if not isinstance(error, Exception) or isinstance(error, (FoveateError, apsw.Error)):
            return
        if damage := integrity_error(connection):
            raise Damaged(DAMAGED_ADVICE.format(path=self.path, error=damage), path=self.path) from error

    @contextmanager
    def _idle_connection(self, begin: str) -> Iterator[tuple[apsw.Connection, tuple[str, str, str]]]:
        """Provide a connection without a transaction, and the statements that begin, commit and roll back on it.

        A thread may open a transaction while it is reading: a file gets another connection for it, and a store in memory,
        which has only one, a savepoint. A thread that is writing must not write a second time: it would wait for itself.
        """
        connection, is_write = self.current(), begin == "begin immediate"
        if is_write and getattr(self._thread, "is_writing", False):
            raise StoreError("This thread is writing already. Use the writer that it has open.")
        self._thread.is_writing = is_write or getattr(self._thread, "is_writing", False)
        try:
            if not connection.in_transaction:
                yield connection, (begin, "commit", "rollback")
            elif self.is_in_memory:
                yield connection, ("savepoint nested", "release nested", "rollback to nested; release nested")
            else:
                with closing(self._connect()) as second:
                    yield second, (begin, "commit", "rollback")
        finally:
            if is_write:
                self._thread.is_writing = False

    def checkpoint(self, mode: str) -> bool:
        """Copy the WAL into the file as far as the mode goes, and return whether no other process was in the way."""
        return not self._checkpoint_state(mode)[0]

    def _checkpoint_state(self, mode: str) -> tuple[int, int, int]:
        """Run a checkpoint and return whether it was blocked, the pages in the WAL, and how many of them are copied."""
        is_blocked, pages, copied = next(iter(self.current().execute(f"pragma wal_checkpoint({mode})")))
        return is_blocked, pages, copied

    def maintain_wal(self) -> None:
        """Copy the WAL into the file from time to time, and restart a long one from its beginning.

        SQLite's automatic checkpoint is off: past its limit it copies after every commit, and while one process copies, no
        other can restart the WAL (`docs/decisions/025`). New readers are no obstacle, because they do not use a WAL that is
        copied completely. A reader that stays longer than the timeout is one. The WAL then grows, and the timeout with it.
        One process tries it once a second, because an attempt holds up the writers.
        """
        # A write beside an open snapshot of this thread would wait for itself. The next write does it.
        if self.is_in_memory or self.current().in_transaction:
            return
        with suppress(apsw.Error):  # on a full disk the WAL stays as it is, and what was written is in it
            self._shorten_wal()

    def _shorten_wal(self) -> None:
        _, pages, copied = self._checkpoint_state("noop")
        if pages > MAX_WAL_PAGES:
            if lock.claim_interval(self.path, RESTART_INTERVAL_S):
                timeout_ms = min(SHORT_TIMEOUT_MS * pages // MAX_WAL_PAGES, MAX_RESTART_TIMEOUT_MS)
                with _busy_timeout(self.current(), timeout_ms):
                    self.checkpoint("restart")
                lock.claim_interval(self.path, 0.0)  # so that the interval begins at the end of this attempt
        elif pages - copied >= CHECKPOINT_PAGES:
            self.checkpoint("passive")

    def check_schema(self, connection: apsw.Connection) -> None:
        """Raise unless the file has this version's schema."""
        version: int = connection.pragma("user_version")  # costs a microsecond
        queries.refuse_schema_mismatch(version, self._schema_version, repr(self.path))

    def _connect(self) -> apsw.Connection:
        connection = self._connect_read_only() if self.is_read_only else self._connect_to_write()
        connection.set_busy_handler(lock.BusyHandler(BUSY_TIMEOUT_MS))
        if not self.is_in_memory:
            self._refuse_foreign(connection)
        if not self.is_in_memory and not self.is_read_only:
            # Setting this writes to the file even if it has the value already. It takes effect in a new file, and in an old
            # one when it is next rewritten.
            if connection.pragma("auto_vacuum") != AUTO_VACUUM_INCREMENTAL:
                connection.pragma("auto_vacuum", AUTO_VACUUM_INCREMENTAL)
            connection.pragma("journal_mode", "wal")
        # A killed process loses nothing. A power cut may lose the last commits, but never damages the file.
        connection.pragma("synchronous", "normal")
        # `forget` must leave no readable bytes in the file, so SQLite overwrites deleted content.
        connection.pragma("secure_delete", True)
        connection.pragma("journal_size_limit", MAX_WAL_PAGES * 4096)
        connection.pragma("wal_autocheckpoint", 0)  # `maintain_wal` does it
        connection.pragma("cache_size", -16_000)  # in KiB; 64 MB were not faster for a million records
        connection.pragma("mmap_size", MMAP_BYTES)
        with self._lock:
            self._open.add(connection)
        return connection

    def _connect_to_write(self) -> apsw.Connection:
        if not self.is_in_memory:
            create_private_file(self.path)
        return apsw.Connection(self.path)

    def _connect_read_only(self) -> apsw.Connection:
        """Open a file that this process cannot change. SQLite alone needs to write next to it, even to read."""
        with self._lock:
            if self._copy is None:
                with suppress(apsw.CantOpenError):  # possible if a program that may write has the file open
                    return _open_uri(self.path, "mode=ro")
                if not self.size("-wal"):
                    return _open_uri(self.path, "immutable=1")
                self._copy = self._copy_with_wal()
            return _open_uri(os.path.join(self._copy.name, "state.db"), "immutable=1")

    def _copy_with_wal(self) -> TemporaryDirectory[str]:
        """Copy the file and the WAL that a killed process has left, and move the content of the WAL into the copy."""
        folder = TemporaryDirectory(prefix="foveate-")
        target = os.path.join(folder.name, "state.db")
        for suffix in ("", "-wal"):
            shutil.copyfile(self.path + suffix, target + suffix)
        with closing(apsw.Connection(target)) as connection:
            connection.pragma("journal_mode", "delete")
        return folder

    def _refuse_foreign(self, connection: apsw.Connection) -> None:
        """Raise if the file is another program's. This comes before any setting: the journal mode is written to the file."""
        tables = next(iter(connection.execute("select count(*) from sqlite_schema")))[0]
        if tables and connection.pragma("application_id") != APPLICATION_ID:
            connection.close()
            raise StoreError(f"{self.path!r} is a SQLite file of another program, not a foveate store.")


@contextmanager
def _busy_timeout(connection: apsw.Connection, timeout_ms: int) -> Iterator[None]:
    """Set how long a connection waits for others while the block runs."""
    connection.set_busy_handler(lock.BusyHandler(timeout_ms))
    try:
        yield
    finally:
        connection.set_busy_handler(lock.BusyHandler(BUSY_TIMEOUT_MS))


def _is_read_only(path: str) -> bool:
    """Return whether this process cannot change a file, or cannot create SQLite's files next to it."""
    if not os.path.exists(path) or not os.path.getsize(path):
        return False
    return not (os.access(path, os.W_OK) and os.access(os.path.dirname(os.path.realpath(path)), os.W_OK))


def _open_uri(path: str, option: str) -> apsw.Connection:
    address = f"file:{quote(os.path.abspath(path))}?{option}"
    connection = apsw.Connection(address, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    try:
        connection.pragma("user_version")  # SQLite opens the file and its WAL with the first query
    except apsw.Error:
        connection.close()
        raise
    return connection


def create_private_file(path: str) -> None:
    """Create a file that only its owner can read, unless it exists. SQLite gives the files next to it the same mode."""
    with suppress(OSError):  # SQLite reports why it cannot be created
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def copy_database(source: apsw.Connection, target: apsw.Connection) -> None:
    """Copy all pages of one SQLite database into another."""
    with target.backup("main", source, "main") as steps:
        # All pages in one step: a commit by another process between two steps would restart the copy.
        steps.step(-1)


def integrity_error(connection: apsw.Connection) -> str:
    """Return the first error that SQLite finds in the file, in its words, or an empty string."""
    try:
        rows = connection.execute("pragma integrity_check(1)").fetchall()
    except (apsw.CorruptError, UnicodeDecodeError) as error:
        return str(error)
    return "" if rows == [("ok",)] else " ".join(str(rows[0][0]).split())


# --- errors -------------------------------------------------------------------------------------------------------

DAMAGED_ADVICE = "{path!r} is damaged ({error}). Run `foveate doctor --fix`, or restore a backup."

ADVICE_BY_ERROR: tuple[tuple[type[Exception], str], ...] = (
    (apsw.BusyError, "{path!r} is busy: another process has been writing for over 30 seconds. Try again."),
    (apsw.ReadOnlyError, "{path!r} cannot be written: the file or its directory is read-only. Nothing was changed."),
    (apsw.FullError, "The disk of {path!r} is full. Nothing was changed. Free some space and try again."),
    (apsw.NotADBError, "{path!r} is not a foveate store, or its header is damaged. Restore a backup, or move it away."),
    (apsw.CorruptError, DAMAGED_ADVICE),
    (apsw.CantOpenError, "{path!r} cannot be opened. Check that its directory exists and that you may write there."),
    (apsw.IOError, "{path!r} cannot be read or written ({error}). Nothing was changed."),
)

DECODING_ERRORS = (UnicodeDecodeError, zlib.error, json.JSONDecodeError)
"""Errors of stored values whose bytes have changed. SQLite has no checksums, so it does not notice."""


@contextmanager
def translate_errors(path: str) -> Iterator[None]:
    """Raise `StoreError` or `Damaged` for an error of apsw in the block."""
    try:
        yield
    except FoveateError:
        raise
    except UnicodeEncodeError:
        raise StoreError(f"{path!r} cannot be opened: SQLite needs a path in UTF-8. Choose another --store.") from None
    except DECODING_ERRORS as error:
        raise Damaged(DAMAGED_ADVICE.format(path=path, error=error), path=path) from error
    except apsw.Error as error:
        for error_type, advice in ADVICE_BY_ERROR:
            if isinstance(error, error_type):
                message = advice.format(path=path, error=error)
                if issubclass(error_type, apsw.NotADBError | apsw.CorruptError):
                    raise Damaged(message, path=path) from error
                raise StoreError(message) from error
        raise StoreError(f"{path!r}: {error}") from error
