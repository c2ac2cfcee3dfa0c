"""The SQLite file of the code index: tables, transactions and counters. It can be deleted at any time; nothing is lost.

One connection writes, guarded by a lock: threads take turns, and processes wait for each other. Each reader has a connection
of its own, so that it sees one state of the index while others write.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import apsw

from foveate.code.languages import has_parser
from foveate.errors import StoreError
from foveate.text import analysis

VERSION = f"5.{analysis.VERSION}"
"""Raise the first number if the stored data change: every index is then built again."""

BUSY_TIMEOUT_MS = 120_000
"""How long to wait for another process that is indexing."""

PAGE_CACHE_KIB = 16_000
"""Size of SQLite's page cache. The postings of one edit are spread over the whole file."""

OPEN_TIMEOUT_S = 10.0
"""How long to wait for another process that creates the file. SQLite itself does not wait then."""

MAX_IDLE_READERS = 4
"""Connections that are kept for the next readers, because of their page caches."""

_SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE files (
  id INTEGER PRIMARY KEY, path TEXT UNIQUE, hash TEXT, size INTEGER, mtime INTEGER, checked INTEGER, language TEXT,
  role TEXT, lines INTEGER, imports TEXT, broken INTEGER, redacted TEXT);
CREATE TABLE aside (path TEXT PRIMARY KEY, reason TEXT, size INTEGER, mtime INTEGER) WITHOUT ROWID;
CREATE TABLE definitions (
  id INTEGER PRIMARY KEY, file INTEGER, name TEXT, qualified TEXT, nth INTEGER, kind TEXT, line INTEGER, last INTEGER,
  signature TEXT, doc TEXT, parent INTEGER, uses TEXT);
CREATE INDEX definitions_by_file ON definitions (file);
CREATE INDEX definitions_by_name ON definitions (name);
CREATE TABLE segments (id INTEGER PRIMARY KEY, ids BLOB, files BLOB, lengths BLOB);
CREATE TABLE postings (
  space INTEGER, term TEXT, segment INTEGER, list BLOB, PRIMARY KEY (space, term, segment)) WITHOUT ROWID;
"""


class Damaged(StoreError):
    """The index file is damaged. It is built again from the files of the repository."""


class IndexDatabase:
    """An open index file. `settings_key` identifies how texts are read; an index with another key is built again."""

    def __init__(self, root: Path, file: Path | str, settings_key: str = "") -> None:
        self.root = root
        self.file = str(file)
        self.lock = threading.RLock()
        self._pool_lock = threading.RLock()  # not `lock`: a reader need not wait for a refresh
        self.key = (VERSION if has_parser() else f"{VERSION} lines", str(root), settings_key)
        self._ids: dict[str, int] = {}
        self._damage: Damaged | None = None
        self._files_made = 0
        self._idle: list[apsw.Connection] = []
        self._open: apsw.Connection | None = self._open_file()

    def fetch_all(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return the rows of a query on the writer's connection."""
        with self.lock:
            try:
                return self._connection.execute(sql, values).fetchall()
            except apsw.Error as error:
                raise self.access_error("read", error) from None

    def execute(self, sql: str, values: Sequence[Any] = ()) -> None:
        """Run a statement inside `write_transaction`."""
        self._connection.execute(sql, values)

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self._connection.executemany(sql, rows)

    def begin_read(self) -> ReadTransaction:
        """Open a read transaction on the index as it is now. Close it after use."""
        with self._pool_lock:
            _ = self._connection  # raises once the index is closed
            connection = self._idle.pop() if self._idle else self._open_reader()
            return ReadTransaction(self, connection, self._files_made)

    def end_read(self, connection: apsw.Connection, file_number: int) -> None:
        """Return the connection of a reader to the pool, unless the file has been replaced since."""
        with self._pool_lock:
            is_reusable = self._open is not None and file_number == self._files_made and not connection.in_transaction
            if is_reusable and len(self._idle) < MAX_IDLE_READERS:
                self._idle.append(connection)
                return
        connection.close(True)

    @contextmanager
    def write_transaction(self, timeout_ms: int = BUSY_TIMEOUT_MS) -> Iterator[None]:
        """Run a transaction. Raises `StoreError` if another process holds the lock for too long."""
        with self.lock:
            connection = self._connection
            connection.set_busy_timeout(timeout_ms)
            try:
                connection.execute("BEGIN IMMEDIATE")
                self._ids = {}
                yield
                for name, last in self._ids.items():
                    self.set_meta(name, last)
                connection.execute("COMMIT")
            except apsw.Error as error:
                raise self.access_error("written", error) from None
            finally:
                _roll_back(connection)
                connection.set_busy_timeout(BUSY_TIMEOUT_MS)

    @property
    def generation(self) -> str:
        """Identifies the state of the index. It changes whenever the content does."""
        return ".".join(str(value) for (value,) in self.fetch_all(_GENERATION_SQL))

    @property
    def matches_settings(self) -> bool:
        """Whether the index was built with the settings of this process. Another process may have rebuilt it with others."""
        return self._stored_key() == self.key

    def meta(self, name: str) -> Any:
        found = self.fetch_all("SELECT value FROM meta WHERE name = ?", (name,))
        return found[0][0] if found else None

    def set_meta(self, name: str, value: Any) -> None:
        self.execute("REPLACE INTO meta VALUES (?, ?)", (name, value))

    def allocate_ids(self, name: str, number: int = 1) -> int:
        """Return the first of `number` new ids. Ids are never reused; the counter is saved with the transaction."""
        last = self._ids[name] if name in self._ids else int(self.meta(name) or 0)
        self._ids[name] = last + number
        return last + 1

    def close(self) -> None:
        with self.lock, self._pool_lock:
            self._close_idle_readers()
            if self._open is not None:
                self._open.close()
                self._open = None

    # --- opening -----------------------------------------------------------------------------------------------

    @property
    def _connection(self) -> apsw.Connection:
        if self._open is None:
            raise StoreError(f"The code index {self.file!r} is closed.")
        return self._open

    def access_error(self, verb: str, error: apsw.Error) -> StoreError:
        message = f"The code index {self.file!r} cannot be {verb}: {error}."
        if not isinstance(error, _CORRUPTION_ERRORS):
            return StoreError(message)
        self._damage = Damaged(f"{message} It is built again at the next look.")
        return self._damage

    def _open_file(self) -> apsw.Connection:
        try:
            try:
                return self._connect()
            except (Damaged, *_CORRUPTION_ERRORS):  # everything in it can be read from the files again
                return self._recreate_file()
        except (apsw.Error, OSError, UnicodeError) as error:
            raise StoreError(
                f"The code index {self.file!r} cannot be opened: {error}. Delete it, or check who may write there."
            ) from None

    def check(self) -> None:
        """Raise the damage that an earlier query found: other pages may still read well.

        If a process with other settings has rebuilt the index, it is cleared.
        """
        if self._damage is not None:
            raise self._damage
        if not self.matches_settings:
            with self.write_transaction():
                self.take_over()

    def recreate(self) -> None:
        """Replace a damaged file with an empty one."""
        with self.lock:
            try:
                self._recreate_file()
            except (apsw.Error, OSError) as error:
                raise StoreError(f"The code index {self.file!r} is damaged and cannot be replaced: {error}.") from None

    def _recreate_file(self) -> apsw.Connection:
        self._damage = None
        with self._pool_lock:
            self._files_made += 1
            self._close_idle_readers()
            if self._open is not None:
                self._open.close(True)
            for end in ("", "-wal", "-shm"):
                Path(self.file + end).unlink(missing_ok=True)
            return self._connect()

    def _connect(self) -> apsw.Connection:
        self._open = connection = apsw.Connection(self.file)
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        _enable_wal(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA cache_size = -{PAGE_CACHE_KIB}")
        if not self.matches_settings:
            with self.write_transaction():
                self.take_over()
        # Opened together with the writer: if the file is deleted later, both still see the same one.
        self._idle.append(self._open_reader())
        return connection

    def _open_reader(self) -> apsw.Connection:
        try:
            connection = apsw.Connection(self.file, flags=apsw.SQLITE_OPEN_READWRITE)  # never creates a file
            connection.set_busy_timeout(BUSY_TIMEOUT_MS)
            connection.execute(f"PRAGMA cache_size = -{PAGE_CACHE_KIB}")
        except apsw.Error as error:
            raise self.access_error("read", error) from None
        return connection

    def _close_idle_readers(self) -> None:
        while self._idle:
            self._idle.pop().close(True)

    def take_over(self) -> None:
        """Clear the index if it was built with other settings or by another version, inside `write_transaction`."""
        if not self.matches_settings:
            self.clear_tables()

    def _stored_key(self) -> tuple[Any, ...]:
        try:
            return tuple(self.meta(name) for name in _KEY)
        except Damaged:
            raise
        except StoreError:  # a new file, or one of another program
            return ()

    def clear_tables(self) -> None:
        """Create empty tables, inside `write_transaction`."""
        for (name,) in self.fetch_all("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"):
            self.execute(f'DROP TABLE "{name}"')
        self.execute(_SCHEMA)
        for name, value in zip((*_KEY, "made"), (*self.key, secrets.token_hex(4)), strict=True):
            self.set_meta(name, value)


class ReadTransaction:
    """The index in one state, until it is closed. Threads can share it."""

    def __init__(self, database: IndexDatabase, connection: apsw.Connection, file_number: int) -> None:
        self._database = database
        self._connection: apsw.Connection | None = connection
        self._file_number = file_number
        self._lock = threading.RLock()
        try:
            self.rows("BEGIN")
            self.generation = ".".join(str(value) for (value,) in self.rows(_GENERATION_SQL))
            """Identifies this state. SQLite fixes the state at the first read."""
        except BaseException:
            self.close()
            raise

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return the rows of a query."""
        with self._lock:
            if self._connection is None:
                raise StoreError(f"This reader of the code index {self._database.file!r} is closed.")
            try:
                return self._connection.execute(sql, values).fetchall()
            except apsw.Error as error:
                raise self._database.access_error("read", error) from None

    def meta(self, name: str) -> Any:
        found = self.rows("SELECT value FROM meta WHERE name = ?", (name,))
        return found[0][0] if found else None

    @property
    def matches_settings(self) -> bool:
        """Whether the index was built with the settings of this process."""
        return tuple(self.meta(name) for name in _KEY) == self._database.key

    def close(self) -> None:
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is None:
                return
            with suppress(apsw.Error):
                _roll_back(connection)
            self._database.end_read(connection, self._file_number)

    def __del__(self) -> None:  # an open transaction would keep SQLite from truncating its log
        self.close()


_GENERATION_SQL = "SELECT value FROM meta WHERE name IN ('generation', 'made') ORDER BY name"
_KEY = ("version", "root", "reads")
_CORRUPTION_ERRORS = (apsw.CorruptError, apsw.NotADBError)


def _roll_back(connection: apsw.Connection) -> None:
    """End a transaction if there is one. A full disk may have ended it already."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _enable_wal(connection: apsw.Connection) -> None:
    """Switch to write-ahead logging, so that writers do not block readers. Only one of several processes does so."""
    end = monotonic() + OPEN_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except apsw.BusyError:
            if monotonic() > end:
                raise
            sleep(0.02)
