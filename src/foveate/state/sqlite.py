"""The embedded store: one SQLite file, WAL, short immediate transactions, through apsw.

Several processes may read and write one file; `kill -9` at any moment loses no committed write. apsw and not the
standard library's module: it brings a SQLite with the WAL-reset fix, whatever Python was built with. A file is opened by
one driver only: two copies of SQLite on one file in one process break its locks.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from foveate import lexical, tokens
from foveate.errors import FoveateError, SchemaTooNew, StoreError
from foveate.ids import new_id, now
from foveate.state import queries, vectors
from foveate.state.kinds import RENDERER
from foveate.state.reading import ReadTransaction
from foveate.state.records import measure
from foveate.state.rows import from_row
from foveate.state.store import Forgotten, Health, Scrub, StoredReceipt
from foveate.state.writing import WriteTransaction
from foveate.types import Scope

APPLICATION = 0x464F5645
"""`FOVE` in the file's header: tells our files from other SQLite files."""

BUSY = 30_000
"""Milliseconds to wait for another writer: longer than any transaction of ours."""

WAL_LIMIT = 32 * 2**20
"""Bytes of log after which a writer checkpoints by itself: constant readers would otherwise let it grow without end."""

RECEIPT_DAYS = 30
RECEIPT_BYTES = 64 * 2**20
"""Receipts explain the recent past: a month or 64 MB of it, whichever is less."""


class SQLiteStore:
    """A store in one file, or in memory (`:memory:`) for tests."""

    def __init__(
        self,
        path: str | Path,
        *,
        counter: str = "o200k",
        space: str | None = None,
        multi_valued: Iterable[str] = (),
        create: bool = True,
    ) -> None:
        self.path = str(path)
        self.counter = counter
        self.space = space
        self._multi_valued = frozenset(multi_valued)
        self._memory = self.path == ":memory:"
        self._lock = threading.RLock()
        self._local = threading.local()
        self._connections: list[apsw.Connection] = []
        self._segments = vectors.Segments()
        self._queries = queries.load("sqlite")
        if not self._memory and not create and not os.path.exists(self.path):
            raise StoreError(f"There is no store at {self.path!r}. Create one with `foveate init`.")
        with _explained(self.path):
            self._shared = self._connect() if self._memory else None
            self._migrate()
            self._catch_up()

    # --- the contract ------------------------------------------------------------------------------------------

    @contextmanager
    def read(self, scope: Scope) -> Iterator[ReadTransaction]:
        with self._transaction("begin") as database:
            yield ReadTransaction(database, scope, self._segments, self.space)

    @contextmanager
    def write(self, scope: Scope) -> Iterator[WriteTransaction]:
        with self._transaction("begin immediate") as database:
            writer = WriteTransaction(database, scope, self._segments, self.space, new_id("chg", now()), self._multi_valued)
            yield writer
            writer.finish()
        self._mind_the_log()

    def forget(self, scope: Scope, ids: Sequence[str], scrub: Scrub | None = None) -> Forgotten:
        """Remove records down to the bytes of the file: deleted content is overwritten, the log is emptied."""
        with self.write(scope) as writer:
            counts = writer.forget(ids, scrub)
        warnings = (
            ()
            if self._memory or self._checkpoint("truncate")
            else ("Another process is reading: the log still holds the text. Run `foveate doctor` when it is done.",)
        )
        return Forgotten(counts, warnings)

    def save_receipts(self, scope: Scope, receipts: Iterable[StoredReceipt]) -> None:
        with self._transaction("begin immediate") as database:
            writer = WriteTransaction(database, scope, self._segments, self.space, "")
            for receipt in receipts:
                writer.save_receipt(receipt)
                latest = receipt.created
            writer.trim_receipts(latest - RECEIPT_DAYS * 86_400_000, RECEIPT_BYTES)
        self._mind_the_log()

    def backup(self, target: Path) -> None:
        """A consistent copy, taken while others write."""
        if target.exists():
            raise StoreError(f"{str(target)!r} exists already; choose another name for the backup.")
        part = target.with_name(target.name + ".part")
        part.unlink(missing_ok=True)
        with _explained(str(target)):
            copy = apsw.Connection(str(part))
            with copy.backup("main", self._connection(), "main") as steps:
                while not steps.done:
                    steps.step(10_000)
            copy.pragma("journal_mode", "delete")
            copy.close()
        os.replace(part, target)

    def health(self) -> Health:
        """Is the file sound, and does the index say what the records say?"""
        with _explained(self.path), self._exclusive():
            connection = self._connection()
            problems = [row[0] for row in connection.execute("pragma integrity_check(20)") if row[0] != "ok"]
            facts: dict[str, Any] = {
                "path": self.path,
                "sqlite": apsw.sqlite_lib_version(),
                "schema": connection.pragma("user_version"),
                "bytes": self._size(self.path),
                "log_bytes": self._size(self.path + "-wal"),
                "counter": self._meta().get("counter"),
                "analyser": self._meta().get("analyser"),
            }
        if problems:
            problems = [f"The file is damaged ({problems[0]}). Run `foveate doctor --fix`, or restore a backup."]
        elif astray := self._astray():
            problems = [f"The index disagrees with the records ({astray}). Run `foveate doctor --fix`."]
        if not self._memory and self._checkpoint("truncate"):
            facts["log_bytes"] = self._size(self.path + "-wal")
        return Health(not problems, facts, tuple(problems))

    def close(self) -> None:
        """Close every connection; the last one empties the log."""
        with self._lock:
            for connection in self._connections:
                connection.close()
            self._connections.clear()
            self._local = threading.local()
            self._shared = None

    # --- repair ------------------------------------------------------------------------------------------------

    def rebuild(self) -> int:
        """Make the index anew from the records; how many were indexed."""
        with self._transaction("begin immediate") as database:
            return self._rebuild(database)

    def salvage(self) -> int:
        """Carry every readable row into a new file and put it in place; the damaged one is kept beside it."""
        fresh_path = self.path + ".new"
        for leftover in (fresh_path, fresh_path + "-wal", fresh_path + "-shm"):
            Path(leftover).unlink(missing_ok=True)
        fresh = SQLiteStore(fresh_path, counter=self.counter, space=self.space)
        tables = ("projects", "kinds", "records", "links", "history", "spaces", "vectors", "receipts", "receipt_items")
        with fresh._transaction("begin immediate") as database:
            for table in tables:
                _carry(self._connection(), database.connection, table)
            kept = fresh._rebuild(database)
        fresh.close()
        self.close()
        os.replace(self.path, self.path + ".damaged")
        for leftover in ("-wal", "-shm"):
            Path(self.path + leftover).unlink(missing_ok=True)
        os.replace(fresh_path, self.path)
        return kept

    def _rebuild(self, database: _Database) -> int:
        for statement in self._queries["clear_index"].split(";"):
            database.connection.execute(statement)
        names = dict(database.rows("project_names"))
        writers: dict[int, WriteTransaction] = {}
        done = after = 0
        while page := database.rows("every_record", {"after": after}):
            for project, *row in page:
                if project not in writers:
                    scope = Scope(names[project])
                    writers[project] = WriteTransaction(database, scope, self._segments, self.space, "")
                record = from_row(row, names[project])
                sizes = measure(record, self.counter)
                database.run("update_tokens", (row[0], sizes["full"], sizes["summary"], sizes["micro"]))
                writers[project]._index(row[0], record, None)
                done += 1
            after = page[-1][1]
        for writer in writers.values():
            writer.finish()
        self._stamp(database)
        return done

    def _astray(self) -> str:
        """In which way index and records differ; nothing when they agree. Compares counts, then a sample of records."""
        with self._transaction("begin") as database:
            for project, name in database.rows("project_names"):
                reader = ReadTransaction(database, Scope(name), self._segments, self.space)
                counts = reader.counts()
                total = sum(number for kinds in counts["records"].values() for number in kinds.values())
                if total != counts["indexed"]:
                    return f"{total} records, {counts['indexed']} indexed"
                if lost := self._unposted(database, project):
                    return f"{lost} records have no postings"
        return ""

    @staticmethod
    def _unposted(database: _Database, project: int) -> int:
        found = database.sql(
            "select count(*) from records where project = :project and doc not in"
            " (select doc from postings where project = :project)"
            " and length(text) > 40",
            {"project": project},
        )
        return int(found[0][0])

    # --- connections -------------------------------------------------------------------------------------------

    def _connect(self) -> apsw.Connection:
        connection = apsw.Connection(self.path)
        connection.set_busy_timeout(BUSY)
        if not self._memory:
            connection.pragma("journal_mode", "wal")
        connection.pragma("synchronous", "normal")
        # Deleted content is overwritten: `forget` means it.
        connection.pragma("secure_delete", True)
        connection.pragma("journal_size_limit", WAL_LIMIT)
        connection.pragma("cache_size", -16_000)
        connection.pragma("mmap_size", 2**30)
        with self._lock:
            self._connections.append(connection)
        return connection

    def _connection(self) -> apsw.Connection:
        if self._memory:
            if self._shared is None:
                raise StoreError("This store is closed.")
            return self._shared
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._connect()
        return connection

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """A store in memory has one connection: one thread at a time."""
        if self._memory:
            with self._lock:
                yield
        else:
            yield

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[_Database]:
        with _explained(self.path), self._exclusive():
            connection = self._connection()
            connection.execute(begin)
            try:
                yield _Database(connection, self._queries)
            except BaseException:
                if connection.in_transaction:
                    connection.execute("rollback")
                raise
            try:
                connection.execute("commit")
            except apsw.Error:
                if connection.in_transaction:
                    connection.execute("rollback")
                raise

    def _checkpoint(self, mode: str) -> bool:
        busy, _, _ = next(iter(self._connection().execute(f"pragma wal_checkpoint({mode})")))
        return not busy

    def _mind_the_log(self) -> None:
        if not self._memory and self._size(self.path + "-wal") > WAL_LIMIT:
            self._checkpoint("restart")

    @staticmethod
    def _size(path: str) -> int:
        return os.path.getsize(path) if os.path.exists(path) else 0

    # --- schema ------------------------------------------------------------------------------------------------

    def _migrate(self) -> None:
        """Bring the file to this version's schema, in one transaction; refuse a newer one."""
        connection = self._connection()
        steps = queries.migrations("sqlite")
        version = connection.pragma("user_version")
        self._refuse(connection, version, steps[-1][0])
        if version == steps[-1][0]:
            return
        connection.execute("begin immediate")
        try:
            version = connection.pragma("user_version")  # another process may have been quicker
            for number, script in steps:
                if number > version:
                    connection.execute(script)
            connection.pragma("user_version", steps[-1][0])
            connection.pragma("application_id", APPLICATION)
            if version == 0:
                self._stamp(_Database(connection, self._queries))
            connection.execute("commit")
        except BaseException:
            connection.execute("rollback")
            raise

    def _refuse(self, connection: apsw.Connection, version: int, latest: int) -> None:
        application = connection.pragma("application_id")
        tables = next(iter(connection.execute("select count(*) from sqlite_schema")))[0]
        if tables and application != APPLICATION:
            raise StoreError(f"{self.path!r} is a SQLite file of another program, not a foveate store.")
        if version > latest:
            raise SchemaTooNew(
                f"{self.path!r} has schema {version}; this foveate knows up to {latest}. Upgrade foveate to open it."
            )

    def _stamp(self, database: _Database) -> None:
        for name, value in self._versions().items():
            database.run("set_meta", {"name": name, "value": value})

    def _versions(self) -> dict[str, str]:
        return {"analyser": str(lexical.VERSION), "renderer": str(RENDERER), "counter": self.counter}

    def _meta(self) -> dict[str, str]:
        return dict(_Database(self._connection(), self._queries).rows("meta"))

    def _catch_up(self) -> None:
        """Index and count again where the analyser, the renderer or the counter is not the one that was used."""
        tokens.counter(self.counter)
        if self._meta() != self._versions():
            self.rebuild()


class _Database:
    """apsw behind the seam of `transaction`."""

    def __init__(self, connection: apsw.Connection, named: Mapping[str, str]) -> None:
        self.connection = connection
        self._named = named

    @property
    def queries(self) -> Mapping[str, str]:
        return self._named

    def rows(self, query: str, params: Mapping[str, Any] | Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self.connection.execute(self._named[query], params).fetchall()

    def sql(self, text: str, params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        return self.connection.execute(text, params).fetchall()

    def run(self, query: str, params: Mapping[str, Any] | Sequence[Any] = ()) -> int:
        self.connection.execute(self._named[query], params)
        return self.connection.changes()

    def many(self, query: str, rows: Sequence[Sequence[Any]]) -> None:
        if rows:
            self.connection.executemany(self._named[query], rows)

    def insert(self, query: str, params: Sequence[Any]) -> int:
        self.connection.execute(self._named[query], params)
        return self.connection.last_insert_rowid()


def _carry(source: apsw.Connection, target: apsw.Connection, table: str) -> None:
    """Copy a table row by row, past the rows that cannot be read."""
    try:
        columns = [row[1] for row in source.execute(f"pragma table_info({table})")]
        marks = ",".join("?" * len(columns))
        for row in source.execute(f"select {','.join(columns)} from {table}"):
            target.execute(f"insert or ignore into {table} ({','.join(columns)}) values ({marks})", row)
    except apsw.CorruptError:
        return


_ADVICE: tuple[tuple[type[Exception], str], ...] = (
    (apsw.BusyError, "{path!r} is busy: another process has been writing for over 30 seconds. Try again."),
    (apsw.ReadOnlyError, "{path!r} cannot be written: the file or its directory is read-only. Nothing was changed."),
    (apsw.FullError, "The disk of {path!r} is full. Nothing was changed; make room and try again."),
    (apsw.NotADBError, "{path!r} is not a foveate store, or its header is damaged. Restore a backup, or move it away."),
    (apsw.CorruptError, "{path!r} is damaged ({error}). Run `foveate doctor --fix`, or restore a backup."),
    (apsw.CantOpenError, "{path!r} cannot be opened: does its directory exist, and may you write there?"),
    (apsw.IOError, "{path!r} cannot be read or written ({error}). Nothing was changed."),
)


@contextmanager
def _explained(path: str) -> Iterator[None]:
    """The driver's errors as ours: what happened, to which file, what to do."""
    try:
        yield
    except FoveateError:
        raise
    except apsw.Error as error:
        for sort, advice in _ADVICE:
            if isinstance(error, sort):
                raise StoreError(advice.format(path=path, error=error)) from error
        raise StoreError(f"{path!r}: {error}") from error
