"""The embedded store: one SQLite file in WAL mode, with short immediate write transactions, through apsw.

Several processes may read and write one file. `kill -9` at any moment loses no committed write. apsw is used instead of the
standard library's module because it brings a SQLite with the fix for the WAL-reset corruption, regardless of the SQLite that
Python was built with. Never open the file with another driver: two copies of SQLite in one process break its locks.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from weakref import WeakSet

import apsw

from foveate.clock import new_id, now
from foveate.errors import StoreError
from foveate.records.kinds import RENDERER_VERSION
from foveate.store.copy import SQLiteTables
from foveate.store.protocol import ForgetResult, Health, Scrub, StoredReceipt
from foveate.store.retention import DEFAULT_RETENTION, Retention
from foveate.store.sql import queries
from foveate.store.sql.queries import META_RESIDUE, META_SECRET
from foveate.store.sql.read import ReadTransaction
from foveate.store.sql.write import WriteTransaction
from foveate.store.sqlite import lock
from foveate.store.sqlite.errors import translate_errors
from foveate.store.sqlite.salvage import salvage_tables
from foveate.store.vectors import OpenVectorSearch, VectorSearch
from foveate.text import analysis, tokens
from foveate.types import Scope

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

MAX_FREE_SHARE = 1 / 4
"""Share of the file that may stay free for new rows. `reclaim_space` returns the rest to the operating system."""

VACUUM_STEP_PAGES = 1000
"""Pages returned in one transaction. It takes about 20 ms, so no writer waits long."""

MAX_VACUUM_BYTES = 4 * 2**30
"""Largest file that is rewritten while others wait. It takes 28 seconds, just below `BUSY_TIMEOUT_MS`."""


class SQLiteStore:
    """A store in one file, or in memory (`:memory:`) for tests."""

    def __init__(
        self,
        path: str | Path,
        *,
        counter: str | None = None,
        embedding_namespace: str | None = None,
        multi_valued: Iterable[str] = (),
        create: bool = True,
        secret: str | None = None,
        retention: Retention = DEFAULT_RETENTION,
    ) -> None:
        self.path = str(path)
        self.counter = counter or "o200k"
        self.embedding_namespace = embedding_namespace
        self.retention = retention
        self._multi_valued = frozenset(multi_valued)
        self._secret = secret or os.urandom(16).hex()
        self._is_in_memory = self.path == ":memory:"
        self._is_closed = False
        self._cleanup_positions: dict[str, tuple[int, int]] = {}
        """Where the next batch of expired events begins, by project."""
        self._lock = threading.RLock()
        self._thread = threading.local()
        self._connections: WeakSet[apsw.Connection] = WeakSet()
        """All open connections. Weak, so that the connection of a thread is closed when the thread ends."""
        self._vector_search = _lazy_vector_search()
        self._queries = queries.load("sqlite")
        self._schema_version = queries.migrations("sqlite")[-1][0]
        if not self._is_in_memory and not create and not self._size(self.path):
            raise StoreError(f"No store found at {self.path!r}. Create one with `foveate init`.")
        with translate_errors(self.path):
            self._memory_connection = self._connect() if self._is_in_memory else None
            self._migrate()
            if counter is None:
                # No counter was requested, so use the one with which the stored tokens were counted.
                self.counter = self._meta().get("counter", self.counter)
            self._reindex_if_outdated()

    # --- the store protocol --------------------------------------------------------------------------------------

    def projects(self) -> list[str]:
        with self._transaction("begin") as database:
            return sorted(name for _, name in database.fetch_all("project_names"))

    @contextmanager
    def read(self, scope: Scope) -> Iterator[ReadTransaction]:
        with self._memory_lock():
            # In memory there is one connection: a reader inside a writer sees rows that may be rolled back. It gets a vector
            # search of its own, so that nothing of them is cached.
            is_nested = self._memory_connection is not None and self._memory_connection.in_transaction
            vector_search = _lazy_vector_search() if is_nested else self._vector_search
            with self._transaction("begin") as database:
                yield ReadTransaction(database, scope, vector_search, self.embedding_namespace)

    @contextmanager
    def write(self, scope: Scope) -> Iterator[WriteTransaction]:
        with self._transaction("begin immediate") as database:
            writer = WriteTransaction(
                database, scope, self._vector_search, self.embedding_namespace, new_id("chg", now()), self._multi_valued
            )
            yield writer
            writer.finish(self.retention, self._cleanup_positions)
        self._maintain_wal()

    def forget(
        self, scope: Scope, ids: Sequence[str], scrub: Scrub | None = None, other_store_ids: Sequence[str] = ()
    ) -> ForgetResult:
        """Remove records so that no readable byte of them stays in the file.

        SQLite overwrites deleted content (`secure_delete`), but not the copies that it leaves in the unused middle of a page
        when it splits or merges pages. So the file is rewritten without them: about 7 ms per megabyte, in which others can
        read and cannot write. A file that would make writers wait too long keeps a mark, and `reclaim_space` rewrites it.
        """
        with self.write(scope) as writer:
            counts = writer.forget(ids, scrub, other_store_ids)
            writer.set_flag(META_RESIDUE)
        if self._size(self.path) <= MAX_VACUUM_BYTES:
            return ForgetResult(counts, self._vacuum())
        warning = (
            "The file is too large to rewrite while others wait, so bytes of the forgotten records may still be in it. "
            "Run `foveate store maintain` to remove them."
        )
        return ForgetResult(counts, (warning,))

    def reclaim_space(self) -> int:
        """Return free pages beyond a quarter of the file to the operating system, and return how many bytes that was.

        It works in short steps. It also finishes a `forget` whose bytes may still be in the file.
        """
        if self._is_in_memory:
            return 0
        connection = self._connection()
        with translate_errors(self.path):
            pages_before = self._page_count()
            is_incremental = connection.pragma("auto_vacuum") == AUTO_VACUUM_INCREMENTAL
            is_too_free = self._free_share() > MAX_FREE_SHARE
            # A file of an older version is not incremental. Rewriting it once makes it so.
            may_convert = not is_incremental and self._size(self.path) <= MAX_VACUUM_BYTES
            if META_RESIDUE in self._meta() or (is_too_free and may_convert):
                self._vacuum()
            while is_incremental and self._free_share() > MAX_FREE_SHARE:
                with self._transaction("begin immediate"):
                    connection.execute(f"pragma incremental_vacuum({VACUUM_STEP_PAGES})").fetchall()
                self._maintain_wal()
            self._checkpoint("passive")
            return (pages_before - self._page_count()) * int(connection.pragma("page_size"))

    def _page_count(self) -> int:
        return int(self._connection().pragma("page_count"))

    def _free_share(self) -> float:
        return int(self._connection().pragma("freelist_count")) / max(1, self._page_count())

    def save_receipts(self, scope: Scope, receipts: Iterable[StoredReceipt]) -> None:
        """Store receipts, or raise an error soon if another process is writing: the caller can store them later."""
        with self._transaction("begin immediate", SHORT_TIMEOUT_MS) as database:
            writer = WriteTransaction(database, scope, self._vector_search, self.embedding_namespace, "")
            writer.save_receipts(receipts, self.retention)
        self._maintain_wal()

    def backup(self, target: Path) -> None:
        """Write a consistent copy while others write. The target appears when it is complete."""
        if target.exists():
            raise StoreError(f"{str(target)!r} exists already. Choose another name for the backup.")
        # A random name, because another process may make the same backup at this moment.
        part = target.with_name(f"{target.name}.{os.urandom(4).hex()}.part")
        try:
            with translate_errors(str(target)), self._memory_lock(), closing(apsw.Connection(str(part))) as copy:
                with copy.backup("main", self._connection(), "main") as steps:
                    # All pages in one step: a commit by another process between two steps would restart the copy.
                    steps.step(-1)
                copy.pragma("journal_mode", "delete")
            os.replace(part, target)
        finally:
            part.unlink(missing_ok=True)

    def health(self) -> Health:
        """Check the file and the index, and shorten the WAL if no other process is reading."""
        with translate_errors(self.path), self._memory_lock():
            meta = self._meta()
            facts: dict[str, Any] = {
                "path": self.path,
                "sqlite": apsw.sqlite_lib_version(),
                "schema": self._connection().pragma("user_version"),
                "bytes": self._size(self.path),
                "log_bytes": self._size(self.path + "-wal"),
                "counter": meta.get("counter"),
                "analyser": meta.get("analyser"),
            }
            damage = self._integrity_error()
        problems = []
        if damage:
            problems = [f"The file is damaged ({damage}). Run `foveate doctor --fix`, or restore a backup."]
        elif mismatch := self._index_mismatch():
            problems = [f"The index disagrees with the records ({mismatch}). Run `foveate doctor --fix`."]
        elif META_RESIDUE in meta:
            problems = ["Bytes of forgotten records may still be in the file. Run `foveate doctor --fix`."]
        if not self._is_in_memory and self._checkpoint("truncate"):
            facts["log_bytes"] = self._size(self.path + "-wal")
        return Health(not problems, facts, tuple(problems), is_damaged=bool(damage))

    @property
    def label(self) -> str:
        return self.path if self._is_in_memory else os.path.realpath(self.path)

    @contextmanager
    def tables(self, *, write: bool = False) -> Iterator[SQLiteTables]:
        """Open every table as plain rows in one transaction, for copying."""
        with self._transaction("begin immediate" if write else "begin") as database:
            yield SQLiteTables(database.connection)
        if write:
            self._maintain_wal()

    def close(self) -> None:
        """Close every connection. SQLite empties the WAL when the last connection of all processes closes."""
        self._is_closed = True
        with self._lock:
            for connection in list(self._connections):
                connection.close()
            self._connections.clear()
            self._thread = threading.local()
            self._memory_connection = None

    # --- repair ----------------------------------------------------------------------------------------------------

    def rebuild(self) -> int:
        """Rebuild the index from the records, rewrite the file, and return how many records were indexed."""
        with self._transaction("begin immediate") as database:
            indexed = self._rebuild(database)
        self._vacuum()
        return indexed

    def salvage(self) -> int:
        """Replace a damaged file by a new one with its readable rows, and return how many records it has.

        The damaged file is kept with the suffix `.damaged`.
        """
        self.close()
        saved = self.salvage_file(self.path, counter=self.counter, embedding_namespace=self.embedding_namespace)
        self._vector_search = _lazy_vector_search()
        self._is_closed = False
        return saved

    @classmethod
    def salvage_file(cls, path: str, *, counter: str = "o200k", embedding_namespace: str | None = None) -> int:
        """Salvage a file that is too damaged to be opened as a store."""
        new, damaged, wal_suffixes = path + ".new", path + ".damaged", ("-wal", "-shm")
        for leftover in (new, *(new + suffix for suffix in wal_suffixes)):
            Path(leftover).unlink(missing_ok=True)
        with translate_errors(path):
            source = apsw.Connection(path)
            # With a writable schema, SQLite also reads a file that was cut off.
            source.pragma("writable_schema", True)
            fresh = cls(new, counter=counter, embedding_namespace=embedding_namespace, secret=_read_secret(source))
            with fresh._transaction("begin immediate") as database:
                salvage_tables(source, database.connection)
                for name in ("delete_orphans", "count_segments"):
                    for statement in fresh._queries[name].split(";"):
                        database.connection.execute(statement)
                saved = fresh._rebuild(database)
            fresh.close()
            source.close()
        os.replace(path, damaged)
        # SQLite would play a WAL that stays into the new file.
        for suffix in wal_suffixes:
            Path(path + suffix).unlink(missing_ok=True)
        os.replace(new, path)
        Path(new + lock.QUEUE_FILE_SUFFIX).unlink(missing_ok=True)
        return saved

    def _rebuild(self, database: _Database) -> int:
        indexed = 0
        for _, name in database.fetch_all("project_names"):
            writer = WriteTransaction(database, Scope(name), self._vector_search, self.embedding_namespace, "")
            indexed += writer.rebuild(self.counter)
            writer.finish()
        self._write_meta(database)
        return indexed

    def _index_mismatch(self) -> str:
        """Return how the index and the records of any project differ, or an empty string."""
        with self._transaction("begin") as database:
            for _, name in database.fetch_all("project_names"):
                reader = ReadTransaction(database, Scope(name), self._vector_search, self.embedding_namespace)
                if mismatch := reader.index_mismatch():
                    return mismatch
        return ""

    def _vacuum(self) -> tuple[str, ...]:
        """Rewrite the file without unused bytes and empty the WAL. Return a warning if that is not possible now.

        The mark that a `forget` sets in its own transaction is removed last. If the process is killed before that, the store
        is rewritten when it is next opened.
        """
        try:
            self._connection().execute("vacuum")
            obstacle = "" if self._is_in_memory or self._checkpoint("truncate") else "another process is reading"
            if not obstacle:
                _Database(self._connection(), self._queries).execute("delete_meta", {"name": META_RESIDUE})
        except apsw.Error as error:
            obstacle = str(error)
        if not obstacle:
            return ()
        warning = f"Bytes of the forgotten records may still be in the files ({obstacle})."
        return (f"{warning} The next program that opens the store removes them.",)

    def _integrity_error(self) -> str:
        """Return the first error that SQLite finds in the file, in its words, or an empty string."""
        try:
            rows = self._connection().execute("pragma integrity_check(1)").fetchall()
        except apsw.CorruptError as error:
            return str(error)
        return "" if rows == [("ok",)] else " ".join(str(rows[0][0]).split())

    # --- connections -----------------------------------------------------------------------------------------------

    def _connect(self) -> apsw.Connection:
        connection = apsw.Connection(self.path)
        connection.set_busy_handler(lock.BusyHandler(BUSY_TIMEOUT_MS))
        if not self._is_in_memory:
            self._refuse_foreign(connection)
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
        connection.pragma("wal_autocheckpoint", 0)  # `_maintain_wal` does it
        connection.pragma("cache_size", -16_000)  # in KiB; 64 MB were not faster for a million records
        connection.pragma("mmap_size", MMAP_BYTES)
        with self._lock:
            self._connections.add(connection)
        return connection

    def _connection(self) -> apsw.Connection:
        """Return the connection of this thread."""
        if self._is_closed:
            raise StoreError("This store is closed. Open it again.")
        if self._memory_connection is not None:
            return self._memory_connection
        connection = getattr(self._thread, "connection", None)
        if connection is None:
            connection = self._thread.connection = self._connect()
        return connection

    @contextmanager
    def _memory_lock(self) -> Iterator[None]:
        """Keep other threads out while the block runs: a store in memory has one connection for all of them."""
        if self._is_in_memory:
            with self._lock:
                yield
        else:
            yield

    @contextmanager
    def _transaction(self, begin: str, timeout_ms: int = BUSY_TIMEOUT_MS) -> Iterator[_Database]:
        with (
            translate_errors(self.path),
            self._memory_lock(),
            self._idle_connection(begin) as (connection, (start, commit, rollback)),
        ):
            if begin == "begin" or self._is_in_memory:
                connection.execute(start)
            else:
                # The place in the queue is given up as soon as SQLite's lock is held, so that the next writer can wait.
                with lock.wait_in_queue(self.path, timeout_ms), _busy_timeout(connection, timeout_ms):
                    connection.execute(start)
            try:
                self._check_schema(connection)
                yield _Database(connection, self._queries)
                connection.execute(commit)
            except BaseException:
                if connection.in_transaction:
                    connection.execute(rollback)
                raise

    @contextmanager
    def _idle_connection(self, begin: str) -> Iterator[tuple[apsw.Connection, tuple[str, str, str]]]:
        """Provide a connection without a transaction, and the statements that begin, commit and roll back on it.

        A thread may open a transaction while it is reading: a file gets another connection for it, and a store in memory,
        which has only one, a savepoint. A thread that is writing must not write a second time: it would wait for itself.
        """
        connection, is_write = self._connection(), begin == "begin immediate"
        if is_write and getattr(self._thread, "is_writing", False):
            raise StoreError("This thread is writing already. Use the writer that it has open.")
        self._thread.is_writing = is_write or getattr(self._thread, "is_writing", False)
        try:
            if not connection.in_transaction:
                yield connection, (begin, "commit", "rollback")
            elif self._is_in_memory:
                yield connection, ("savepoint nested", "release nested", "rollback to nested; release nested")
            else:
                with closing(self._connect()) as second:
                    yield second, (begin, "commit", "rollback")
        finally:
            if is_write:
                self._thread.is_writing = False

    def _checkpoint(self, mode: str) -> bool:
        """Copy the WAL into the file as far as the mode goes, and return whether no other process was in the way."""
        return not self._checkpoint_state(mode)[0]

    def _checkpoint_state(self, mode: str) -> tuple[int, int, int]:
        """Run a checkpoint and return whether it was blocked, the pages in the WAL, and how many of them are copied."""
        is_blocked, pages, copied = next(iter(self._connection().execute(f"pragma wal_checkpoint({mode})")))
        return is_blocked, pages, copied

    def _maintain_wal(self) -> None:
        """Copy the WAL into the file from time to time, and restart a long one from its beginning.

        SQLite's automatic checkpoint is off: past its limit it copies after every commit, and while one process copies, no
        other can restart the WAL (`docs/decisions/025`). New readers are no obstacle, because they do not use a WAL that is
        copied completely. A reader that stays longer than the timeout is one. The WAL then grows, and the timeout with it.
        One process tries it once a second, because an attempt holds up the writers.
        """
        # A write beside an open snapshot of this thread would wait for itself. The next write does it.
        if self._is_in_memory or self._connection().in_transaction:
            return
        _, pages, copied = self._checkpoint_state("noop")
        if pages > MAX_WAL_PAGES:
            if lock.claim_interval(self.path, RESTART_INTERVAL_S):
                timeout_ms = min(SHORT_TIMEOUT_MS * pages // MAX_WAL_PAGES, MAX_RESTART_TIMEOUT_MS)
                with _busy_timeout(self._connection(), timeout_ms):
                    self._checkpoint("restart")
                lock.claim_interval(self.path, 0.0)  # so that the interval begins at the end of this attempt
        elif pages - copied >= CHECKPOINT_PAGES:
            self._checkpoint("passive")

    @staticmethod
    def _size(path: str) -> int:
        return os.path.getsize(path) if os.path.exists(path) else 0

    # --- schema ----------------------------------------------------------------------------------------------------

    def _migrate(self) -> None:
        """Migrate the file to this version's schema in one transaction."""
        connection = self._connection()
        if queries.pending_migrations("sqlite", connection.pragma("user_version"), repr(self.path)):
            connection.execute("begin immediate")
            try:
                # Read again inside the transaction: another process may have migrated it since.
                version = connection.pragma("user_version")
                for number, script in queries.pending_migrations("sqlite", version, repr(self.path)):
                    connection.execute(script)
                    connection.pragma("user_version", number)
                connection.pragma("application_id", APPLICATION_ID)
                if version == 0:
                    self._write_meta(_Database(connection, self._queries))
                connection.execute("commit")
            except BaseException:
                connection.execute("rollback")
                raise
        self._check_schema(connection)

    def _check_schema(self, connection: apsw.Connection) -> None:
        version: int = connection.pragma("user_version")  # costs a microsecond
        queries.refuse_schema_mismatch(version, self._schema_version, repr(self.path))

    def _refuse_foreign(self, connection: apsw.Connection) -> None:
        """Raise if the file is another program's. This comes before any setting: the journal mode is written to the file."""
        tables = next(iter(connection.execute("select count(*) from sqlite_schema")))[0]
        if tables and connection.pragma("application_id") != APPLICATION_ID:
            connection.close()
            raise StoreError(f"{self.path!r} is a SQLite file of another program, not a foveate store.")

    def _write_meta(self, database: _Database) -> None:
        for name, value in self._versions().items():
            database.execute("set_meta", {"name": name, "value": value})
        database.execute("add_meta", {"name": META_SECRET, "value": self._secret})

    def _versions(self) -> dict[str, str]:
        return {"analyser": str(analysis.VERSION), "renderer": str(RENDERER_VERSION), "counter": self.counter}

    def _meta(self) -> dict[str, str]:
        return dict(_Database(self._connection(), self._queries).fetch_all("meta"))

    def _reindex_if_outdated(self) -> None:
        """Rebuild the index if it was made with another analyzer, renderer or token counter."""
        tokens.counter(self.counter)  # raises an error if the name is unknown, before anything is changed
        meta = self._meta()
        if not self._is_current(meta):
            with self._transaction("begin immediate") as database:
                # Another process may have rebuilt it since.
                if not self._is_current(dict(database.fetch_all("meta"))):
                    self._rebuild(database)
        elif META_RESIDUE in meta and self._size(self.path) <= MAX_VACUUM_BYTES:
            self._vacuum()

    def _is_current(self, meta: Mapping[str, str]) -> bool:
        return self._versions().items() <= meta.items() and META_SECRET in meta


class _Database:
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


def _lazy_vector_search() -> OpenVectorSearch:
    """Return a function that opens a vector search. The first call imports NumPy: 0.1 s that many stores never need."""

    @cache
    def open_search() -> VectorSearch:
        from foveate.store.sqlite.vectors import InMemoryVectorSearch

        return InMemoryVectorSearch()

    return open_search


@contextmanager
def _busy_timeout(connection: apsw.Connection, timeout_ms: int) -> Iterator[None]:
    """Set how long a connection waits for others while the block runs."""
    connection.set_busy_handler(lock.BusyHandler(timeout_ms))
    try:
        yield
    finally:
        connection.set_busy_handler(lock.BusyHandler(BUSY_TIMEOUT_MS))


def _read_secret(source: apsw.Connection) -> str | None:
    """Return the secret of a damaged file if it can be read. With another one, no past context could be replayed."""
    try:
        row = source.execute("select value from meta where name = ?", (META_SECRET,)).fetchone()
    except apsw.Error:
        return None
    return str(row[0]) if row else None
