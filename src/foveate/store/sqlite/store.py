"""The embedded store: one SQLite file, WAL, short immediate transactions, through apsw.

Several processes may read and write one file; `kill -9` at any moment loses no committed write. apsw and not the
standard library's module: it brings a SQLite with the WAL-reset fix, whatever Python was built with. A file is opened by
one driver only: two copies of SQLite on one file in one process break its locks.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
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
from foveate.store.sqlite.errors import explained
from foveate.store.sqlite.salvage import carry_all
from foveate.store.vectors import VectorGroup, VectorHit, VectorSearch, VectorView
from foveate.text import analysis, tokens
from foveate.types import Scope

APPLICATION = 0x464F5645
"""`FOVE` in the file's header: tells our files from other SQLite files."""

BUSY = 30_000
"""Milliseconds to wait for another writer: longer than any transaction of ours."""

LOG_PAGES = 8192
"""Pages of log, 32 MB of them, after which it is made to begin anew: constant readers would otherwise keep it from that."""

COPIED_PAGES = 1000
"""Pages of log that are copied into the file together."""

MOST_PATIENCE = 2000
"""Milliseconds to wait for readers where the log is very long."""

TRY_EVERY = 1.0
"""Seconds between two tries of all processes to have it begin anew."""

MAPPED = 2**32
"""Bytes of a file that are read where the system has them, without a copy: more than most files have."""

INCREMENTAL = 2
"""SQLite's number for a file that gives room back when it is asked to."""

PATIENCE = 200
"""Milliseconds to wait for others where the work can be done later as well: receipts, a long log."""

FREE = 1 / 4
"""The part of the file that may lie free for what comes next; `tidy` gives the rest back to the system."""

STEP = 1000
"""Pages moved in one transaction to give room back: some 20 ms."""

AT_ONCE = 4 * 2**30
"""Bytes of a file that is written anew while others wait: 28 seconds, less than they are ready to wait."""


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
        self.retention = retention
        self._dropping: dict[str, tuple[int, int]] = {}
        self.path = str(path)
        self.counter = counter or "o200k"
        self.embedding_namespace = embedding_namespace
        self._multi_valued = frozenset(multi_valued)
        self._secret = secret or os.urandom(16).hex()
        self._memory = self.path == ":memory:"
        self._closed = False
        self._lock = threading.RLock()
        self._local = threading.local()
        self._connections: WeakSet[apsw.Connection] = WeakSet()  # a thread's connection goes with the thread
        self._segments = _Segments()
        self._queries = queries.load("sqlite")
        self._schema = queries.migrations("sqlite")[-1][0]
        if not self._memory and not create and not self._size(self.path):
            raise StoreError(f"There is no store at {self.path!r}. Create one with `foveate init`.")
        with explained(self.path):
            self._shared = self._connect() if self._memory else None
            self._migrate()
            if counter is None:  # nobody asks for another: the one that the store was counted with
                self.counter = self._meta().get("counter", self.counter)
            self._catch_up()

    # --- the contract ------------------------------------------------------------------------------------------

    def projects(self) -> list[str]:
        with self._transaction("begin") as database:
            return sorted(name for _, name in database.fetch_all("project_names"))

    @contextmanager
    def read(self, scope: Scope) -> Iterator[ReadTransaction]:
        # In memory, a reader inside of a writer sees what may be rolled back: what it loads is its own.
        with self._exclusive():
            nested = self._shared is not None and self._shared.in_transaction
            with self._transaction("begin") as database:
                yield ReadTransaction(database, scope, _Segments() if nested else self._segments, self.embedding_namespace)

    @contextmanager
    def write(self, scope: Scope) -> Iterator[WriteTransaction]:
        with self._transaction("begin immediate") as database:
            writer = WriteTransaction(
                database, scope, self._segments, self.embedding_namespace, new_id("chg", now()), self._multi_valued
            )
            yield writer
            writer.finish(self.retention, self._dropping)
        self._mind_the_log()

    def forget(
        self, scope: Scope, ids: Sequence[str], scrub: Scrub | None = None, other_store_ids: Sequence[str] = ()
    ) -> ForgetResult:
        """Remove records down to the bytes of the file.

        Deleted content is overwritten, but not the copies that SQLite leaves in the unused middle of a page when it
        splits or merges pages. So the file is written anew, without them: about 7 ms for each megabyte, in which others
        read and nobody else writes. A file for which writers would not wait so long keeps its mark until `tidy`.
        """
        with self.write(scope) as writer:
            counts = writer.forget(ids, scrub, other_store_ids)
            writer.set_flag(META_RESIDUE)
        if self._size(self.path) <= AT_ONCE:
            return ForgetResult(counts, self._compact())
        later = "The file is too large to be written anew while others wait; stray bytes may be in it until"
        return ForgetResult(counts, (f"{later} `foveate gc --apply`.",))

    def reclaim_space(self) -> int:
        """Give back what lies free beyond a quarter of the file, in small steps, and finish a forget; how many bytes."""
        if self._memory:
            return 0
        connection = self._connection()
        with explained(self.path):
            before, incremental = self._pages(), connection.pragma("auto_vacuum") == INCREMENTAL
            too_free = self._free_share() > FREE
            if META_RESIDUE in self._meta() or (too_free and not incremental and self._size(self.path) <= AT_ONCE):
                self._compact()
            while incremental and self._free_share() > FREE:
                with self._transaction("begin immediate"):
                    connection.execute(f"pragma incremental_vacuum({STEP})").fetchall()
                self._mind_the_log()
            self._checkpoint("passive")
            return (before - self._pages()) * int(connection.pragma("page_size"))

    def _pages(self) -> int:
        return int(self._connection().pragma("page_count"))

    def _free_share(self) -> float:
        return int(self._connection().pragma("freelist_count")) / max(1, self._pages())

    def save_receipts(self, scope: Scope, receipts: Iterable[StoredReceipt]) -> None:
        """Keep receipts, unless another process is writing: an answer must not wait for its explanation."""
        with self._transaction("begin immediate", PATIENCE) as database:
            writer = WriteTransaction(database, scope, self._segments, self.embedding_namespace, "")
            latest = 0
            for receipt in receipts:
                writer.save_receipt(receipt)
                latest = max(latest, receipt.created)
            latest = min(latest, now())  # a request may be dated ahead: that is no reason to drop the others
            writer.drop_receipts(self.retention, latest, only_if_overdue=True)
        self._mind_the_log()

    def backup(self, target: Path) -> None:
        """A consistent copy, taken while others write."""
        if target.exists():
            raise StoreError(f"{str(target)!r} exists already; choose another name for the backup.")
        part = target.with_name(f"{target.name}.{os.urandom(4).hex()}.part")  # its own: others may be at the same
        try:
            with explained(str(target)), self._exclusive(), closing(apsw.Connection(str(part))) as copy:
                with copy.backup("main", self._connection(), "main") as steps:
                    steps.step(-1)  # in one go: between two, a commit of others would have it begin anew
                copy.pragma("journal_mode", "delete")
            os.replace(part, target)
        finally:
            part.unlink(missing_ok=True)

    def health(self) -> Health:
        """Is the file sound, and does the index say what the records say?"""
        with explained(self.path), self._exclusive():
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
            damage = self._damage()
        problems = []
        if damage:
            problems = [f"The file is damaged ({damage}). Run `foveate doctor --fix`, or restore a backup."]
        elif astray := self._astray():
            problems = [f"The index disagrees with the records ({astray}). Run `foveate doctor --fix`."]
        elif META_RESIDUE in meta:
            problems = ["Bytes of forgotten records may still be in the file. Run `foveate doctor --fix`."]
        if not self._memory and self._checkpoint("truncate"):
            facts["log_bytes"] = self._size(self.path + "-wal")
        return Health(not problems, facts, tuple(problems), is_damaged=bool(damage))

    @property
    def label(self) -> str:
        return self.path if self._memory else os.path.realpath(self.path)

    @contextmanager
    def tables(self, *, write: bool = False) -> Iterator[SQLiteTables]:
        """Open every table as plain rows in one transaction, for copying."""
        with self._transaction("begin immediate" if write else "begin") as database:
            yield SQLiteTables(database.connection)
        if write:
            self._mind_the_log()

    def close(self) -> None:
        """Close every connection; the last one empties the log."""
        self._closed = True
        with self._lock:
            for connection in list(self._connections):
                connection.close()
            self._connections.clear()
            self._local = threading.local()
            self._shared = None

    # --- repair ------------------------------------------------------------------------------------------------

    def rebuild(self) -> int:
        """Make the index anew from the records, and the file without unused bytes; how many were indexed."""
        with self._transaction("begin immediate") as database:
            done = self._rebuild(database)
        self._compact()
        return done

    def salvage(self) -> int:
        """Carry every readable row into a new file and put it in place; the damaged one is kept beside it."""
        self.close()
        kept = self.salvage_file(self.path, counter=self.counter, embedding_namespace=self.embedding_namespace)
        self._segments = _Segments()
        self._closed = False
        return kept

    @classmethod
    def salvage_file(cls, path: str, *, counter: str = "o200k", embedding_namespace: str | None = None) -> int:
        """`salvage` of a file that is too damaged to be opened as a store."""
        new, damaged, logs = path + ".new", path + ".damaged", ("-wal", "-shm")
        for leftover in (new, *(new + log for log in logs)):
            Path(leftover).unlink(missing_ok=True)
        with explained(path):
            source = apsw.Connection(path)
            source.pragma("writable_schema", True)  # SQLite then also reads a file that was cut off
            fresh = cls(new, counter=counter, embedding_namespace=embedding_namespace, secret=_secret_in(source))
            with fresh._transaction("begin immediate") as database:
                carry_all(source, database.connection)
                for name in ("clear_strays", "count_segments"):
                    for statement in fresh._queries[name].split(";"):
                        database.connection.execute(statement)
                kept = fresh._rebuild(database)
            fresh.close()
            source.close()
        os.replace(path, damaged)
        for log in logs:
            Path(path + log).unlink(missing_ok=True)
        os.replace(new, path)
        Path(new + lock.LINE).unlink(missing_ok=True)
        return kept

    def _rebuild(self, database: _Database) -> int:
        done = 0
        for _, name in database.fetch_all("project_names"):
            writer = WriteTransaction(database, Scope(name), self._segments, self.embedding_namespace, "")
            done += writer.rebuild(self.counter)
            writer.finish()
        self._stamp(database)
        return done

    def _astray(self) -> str:
        """In which way index and records of any project differ; nothing when they agree."""
        with self._transaction("begin") as database:
            for _, name in database.fetch_all("project_names"):
                if found := ReadTransaction(
                    database, Scope(name), self._segments, self.embedding_namespace
                ).index_mismatch():
                    return found
        return ""

    def _compact(self) -> tuple[str, ...]:
        """Write the file anew with what it holds and nothing else, and empty the log; a warning where that must wait.

        The mark that a forget leaves in its own transaction goes only now: who was killed in between has this done
        when the store is next opened.
        """
        try:
            self._connection().execute("vacuum")
            left = "" if self._memory or self._checkpoint("truncate") else "another process is reading"
            if not left:
                _Database(self._connection(), self._queries).execute("drop_meta", {"name": META_RESIDUE})
        except apsw.Error as error:
            left = str(error)
        done = "It is tried again when the store is next opened."
        return (f"Bytes of what was forgotten may still be in the files ({left}). {done}",) if left else ()

    def _damage(self) -> str:
        """What SQLite finds wrong with the file, in its words."""
        try:
            found = self._connection().execute("pragma integrity_check(1)").fetchall()
        except apsw.CorruptError as error:
            return str(error)
        return "" if found == [("ok",)] else " ".join(str(found[0][0]).split())

    # --- connections -------------------------------------------------------------------------------------------

    def _connect(self) -> apsw.Connection:
        connection = apsw.Connection(self.path)
        connection.set_busy_handler(lock.Waiting(BUSY))
        if not self._memory:
            self._refuse_foreign(connection)
            if connection.pragma("auto_vacuum") != INCREMENTAL:  # of a new file, or of one that is next written anew
                connection.pragma("auto_vacuum", INCREMENTAL)  # even where it is so already, that would write
            connection.pragma("journal_mode", "wal")
        connection.pragma("synchronous", "normal")
        # Deleted content is overwritten: `forget` means it.
        connection.pragma("secure_delete", True)
        connection.pragma("journal_size_limit", LOG_PAGES * 4096)
        connection.pragma("wal_autocheckpoint", 0)  # see `_mind_the_log`
        connection.pragma("cache_size", -16_000)
        connection.pragma("mmap_size", MAPPED)
        with self._lock:
            self._connections.add(connection)
        return connection

    def _connection(self) -> apsw.Connection:
        if self._closed:
            raise StoreError("This store is closed; open it again.")
        if self._shared is not None:
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
    def _transaction(self, begin: str, patience: int = BUSY) -> Iterator[_Database]:
        with explained(self.path), self._exclusive(), self._free(begin) as (connection, (start, commit, rollback)):
            if begin == "begin" or self._memory:
                connection.execute(start)
            else:
                with lock.in_line(self.path, patience), _patient(connection, patience):
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
    def _free(self, begin: str) -> Iterator[tuple[apsw.Connection, tuple[str, str, str]]]:
        """A connection and how to begin, commit and roll back on it.

        A thread may read or write while it reads: beside a transaction that is open already, a file gets another
        connection and memory, which has only one, a savepoint. Writing while writing would wait for itself.
        """
        connection, writes = self._connection(), begin == "begin immediate"
        if writes and getattr(self._local, "writing", False):
            raise StoreError("This thread is writing already; use the writer that it has open.")
        self._local.writing = writes or getattr(self._local, "writing", False)
        try:
            if not connection.in_transaction:
                yield connection, (begin, "commit", "rollback")
            elif self._memory:
                yield connection, ("savepoint beside", "release beside", "rollback to beside; release beside")
            else:
                with closing(self._connect()) as beside:
                    yield beside, (begin, "commit", "rollback")
        finally:
            if writes:
                self._local.writing = False

    def _checkpoint(self, mode: str) -> bool:
        return not self._log(mode)[0]

    def _log(self, mode: str) -> tuple[int, int, int]:
        """Copy the log into the file, as far as a mode goes: was somebody in the way, its pages, and those copied."""
        busy, pages, copied = next(iter(self._connection().execute(f"pragma wal_checkpoint({mode})")))
        return busy, pages, copied

    def _mind_the_log(self) -> None:
        """Copy the log into the file from time to time, and have a long one begin anew.

        SQLite would do the first after every commit of a log that cannot begin anew, and whoever copies keeps others from
        the second. New readers do not hinder that: they need no log once all of it is in the file. One that stays longer
        than our patience does. Meanwhile the log grows, and our patience with it; one process tries it once a second, since
        a try holds up the writers.
        """
        if self._memory or self._connection().in_transaction:  # it wrote beside a snapshot of its own: the next one will do
            return
        _, pages, copied = self._log("noop")
        if pages > LOG_PAGES:
            if lock.due(self.path, TRY_EVERY):
                with _patient(self._connection(), min(PATIENCE * pages // LOG_PAGES, MOST_PATIENCE)):
                    self._checkpoint("restart")
                lock.due(self.path, 0.0)  # the second begins now
        elif pages - copied >= COPIED_PAGES:
            self._checkpoint("passive")

    @staticmethod
    def _size(path: str) -> int:
        return os.path.getsize(path) if os.path.exists(path) else 0

    # --- schema ------------------------------------------------------------------------------------------------

    def _migrate(self) -> None:
        """Bring the file to this version's schema, in one transaction."""
        connection = self._connection()
        if queries.pending_migrations("sqlite", connection.pragma("user_version"), repr(self.path)):
            connection.execute("begin immediate")
            try:
                version = connection.pragma("user_version")  # another process may have been quicker
                for number, script in queries.pending_migrations("sqlite", version, repr(self.path)):
                    connection.execute(script)
                    connection.pragma("user_version", number)
                connection.pragma("application_id", APPLICATION)
                if version == 0:
                    self._stamp(_Database(connection, self._queries))
                connection.execute("commit")
            except BaseException:
                connection.execute("rollback")
                raise
        self._check_schema(connection)

    def _check_schema(self, connection: apsw.Connection) -> None:
        version: int = connection.pragma("user_version")  # costs a microsecond
        queries.refuse_schema_mismatch(version, self._schema, repr(self.path))

    def _refuse_foreign(self, connection: apsw.Connection) -> None:
        """Before anything is set, since a journal mode is written into the file."""
        tables = next(iter(connection.execute("select count(*) from sqlite_schema")))[0]
        if tables and connection.pragma("application_id") != APPLICATION:
            connection.close()
            raise StoreError(f"{self.path!r} is a SQLite file of another program, not a foveate store.")

    def _stamp(self, database: _Database) -> None:
        for name, value in self._versions().items():
            database.execute("set_meta", {"name": name, "value": value})
        database.execute("add_meta", {"name": META_SECRET, "value": self._secret})

    def _versions(self) -> dict[str, str]:
        return {"analyser": str(analysis.VERSION), "renderer": str(RENDERER_VERSION), "counter": self.counter}

    def _meta(self) -> dict[str, str]:
        return dict(_Database(self._connection(), self._queries).fetch_all("meta"))

    def _catch_up(self) -> None:
        """Index and count again where the analyser, the renderer or the counter is not the one that was used."""
        tokens.counter(self.counter)
        meta = self._meta()
        if not self._is_current(meta):
            with self._transaction("begin immediate") as database:
                if not self._is_current(dict(database.fetch_all("meta"))):  # another process may have been quicker
                    self._rebuild(database)
        elif META_RESIDUE in meta and self._size(self.path) <= AT_ONCE:
            self._compact()

    def _is_current(self, meta: Mapping[str, str]) -> bool:
        return self._versions().items() <= meta.items() and META_SECRET in meta


class _Database:
    """apsw behind the seam of `transaction`."""

    def __init__(self, connection: apsw.Connection, named: Mapping[str, str]) -> None:
        self.connection = connection
        self._named = named

    def fetch_all(self, query: str, params: Mapping[str, Any] | Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self.connection.execute(self._named[query], params).fetchall()

    def execute(self, query: str, params: Mapping[str, Any] | Sequence[Any] = ()) -> int:
        self.connection.execute(self._named[query], params)
        return self.connection.changes()

    def execute_many(self, query: str, rows: Sequence[Sequence[Any]]) -> None:
        if rows:
            self.connection.executemany(self._named[query], rows)


class _Segments:
    """Vector search in this process, over what it holds in memory. NumPy is imported with the first search."""

    def __init__(self) -> None:
        self._search: VectorSearch | None = None
        self._lock = threading.Lock()

    def nearest(self, view: VectorView, vector: Sequence[float], groups: Sequence[VectorGroup]) -> list[list[VectorHit]]:
        return self._made().nearest(view, vector, groups)

    def similarities(self, view: VectorView, vector: Sequence[float], docs: Sequence[int]) -> dict[int, float]:
        return self._made().similarities(view, vector, docs)

    def _made(self) -> VectorSearch:
        with self._lock:
            if self._search is None:
                from foveate.store.sqlite.vectors import InMemoryVectorSearch

                self._search = InMemoryVectorSearch()
            return self._search


@contextmanager
def _patient(connection: apsw.Connection, milliseconds: int) -> Iterator[None]:
    """Have a connection wait this long for others."""
    connection.set_busy_handler(lock.Waiting(milliseconds))
    try:
        yield
    finally:
        connection.set_busy_handler(lock.Waiting(BUSY))


def _secret_in(source: apsw.Connection) -> str | None:
    """The secret of a damaged file, where it can still be read: with another, no past context could be replayed."""
    try:
        found = source.execute("select value from meta where name = ?", (META_SECRET,)).fetchone()
    except apsw.Error:
        return None
    return str(found[0]) if found else None
