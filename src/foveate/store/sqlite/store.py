"""The embedded store: one SQLite file in WAL mode, with short immediate write transactions, through apsw.

Several processes may read and write one file. `kill -9` at any moment loses no committed write. apsw is used instead of the
standard library's module because it brings a SQLite with the fix for the WAL-reset corruption, regardless of the SQLite that
Python was built with. Never open the file with another driver: two copies of SQLite in one process break its locks.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

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
from foveate.store.sqlite.connections import (
    APPLICATION_ID,
    AUTO_VACUUM_INCREMENTAL,
    SHORT_TIMEOUT_MS,
    Connections,
    SQLiteDatabase,
    copy_database,
    create_private_file,
    integrity_error,
    translate_errors,
)
from foveate.store.sqlite.salvage import salvage_tables
from foveate.store.vectors import OpenVectorSearch, VectorSearch
from foveate.text import analysis, tokens
from foveate.types import Scope

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
        self._cleanup_positions: dict[str, tuple[int, int]] = {}
        """Where the next batch of expired events begins, by project."""
        self._vector_search = _lazy_vector_search()
        self._connections = Connections(self.path)
        if not self._connections.is_in_memory and not create and not self._connections.size():
            raise StoreError(f"No store found at {self.path!r}. Create one with `foveate init`.")
        with translate_errors(self.path):
            self._migrate()
            if counter is None:
                # No counter was requested, so use the one with which the stored tokens were counted.
                self.counter = self._meta().get("counter", self.counter)
            self._reindex_if_outdated()

    # --- the store protocol --------------------------------------------------------------------------------------

    def projects(self) -> list[str]:
        with self._connections.transaction("begin") as database:
            return sorted(name for _, name in database.fetch_all("project_names"))

    @contextmanager
    def read(self, scope: Scope) -> Iterator[ReadTransaction]:
        with self._connections.memory_lock():
            # In memory there is one connection: a reader inside a writer sees rows that may be rolled back. It gets a vector
            # search of its own, so that nothing of them is cached.
            is_nested = self._connections.has_open_transaction_in_memory
            vector_search = _lazy_vector_search() if is_nested else self._vector_search
            with self._connections.transaction("begin") as database:
                yield ReadTransaction(database, scope, vector_search, self.embedding_namespace)

    @contextmanager
    def write(self, scope: Scope) -> Iterator[WriteTransaction]:
        with self._connections.transaction("begin immediate") as database:
            writer = WriteTransaction(
                database, scope, self._vector_search, self.embedding_namespace, new_id("chg", now()), self._multi_valued
            )
            yield writer
            writer.finish(self.retention, self._cleanup_positions)
        self._connections.maintain_wal()

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
        if self._connections.size() <= MAX_VACUUM_BYTES:
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
        if self._connections.is_in_memory:
            return 0
        connection = self._connections.current()
        with translate_errors(self.path):
            pages_before = self._page_count()
            is_incremental = connection.pragma("auto_vacuum") == AUTO_VACUUM_INCREMENTAL
            is_too_free = self._free_share() > MAX_FREE_SHARE
            # A file of an older version is not incremental. Rewriting it once makes it so.
            may_convert = not is_incremental and self._connections.size() <= MAX_VACUUM_BYTES
            if META_RESIDUE in self._meta() or (is_too_free and may_convert):
                self._vacuum()
            while is_incremental and self._free_share() > MAX_FREE_SHARE:
                with self._connections.transaction("begin immediate"):
                    connection.execute(f"pragma incremental_vacuum({VACUUM_STEP_PAGES})").fetchall()
                self._connections.maintain_wal()
            self._connections.checkpoint("passive")
            return (pages_before - self._page_count()) * int(connection.pragma("page_size"))

    def _page_count(self) -> int:
        return int(self._connections.current().pragma("page_count"))

    def _free_share(self) -> float:
        return int(self._connections.current().pragma("freelist_count")) / max(1, self._page_count())

    def save_receipts(self, scope: Scope, receipts: Iterable[StoredReceipt]) -> None:
        """Store receipts, or raise an error soon if another process is writing: the caller can store them later."""
        with self._connections.transaction("begin immediate", SHORT_TIMEOUT_MS) as database:
            writer = WriteTransaction(database, scope, self._vector_search, self.embedding_namespace, "")
            writer.save_receipts(receipts, self.retention)
        self._connections.maintain_wal()

    def backup(self, target: Path) -> None:
        """Write a consistent copy while others write. The target appears when it is complete."""
        if target.exists():
            raise StoreError(f"{str(target)!r} exists already. Choose another name for the backup.")
        # A random name, because another process may make the same backup at this moment.
        part = target.with_name(f"{target.name}.{os.urandom(4).hex()}.part")
        create_private_file(str(part))
        try:
            with translate_errors(str(target)), self._connections.memory_lock(), closing(apsw.Connection(str(part))) as copy:
                copy_database(self._connections.current(), copy)
                copy.pragma("journal_mode", "delete")
            os.replace(part, target)
        finally:
            part.unlink(missing_ok=True)

    def health(self) -> Health:
        """Check the file and the index, and shorten the WAL if no other process is reading."""
        with translate_errors(self.path), self._connections.memory_lock():
            meta = self._meta()
            facts: dict[str, Any] = {
                "path": self.path,
                "sqlite": apsw.sqlite_lib_version(),
                "schema": self._connections.current().pragma("user_version"),
                "bytes": self._connections.size(),
                "log_bytes": self._connections.size("-wal"),
                "counter": meta.get("counter"),
                "analyser": meta.get("analyser"),
            }
            damage = integrity_error(self._connections.current())
        problems = []
        if damage:
            problems = [f"The file is damaged ({damage}). Run `foveate doctor --fix`, or restore a backup."]
        elif mismatch := self._index_mismatch():
            problems = [f"The index disagrees with the records ({mismatch}). Run `foveate doctor --fix`."]
        elif META_RESIDUE in meta:
            problems = ["Bytes of forgotten records may still be in the file. Run `foveate doctor --fix`."]
        try:
            with translate_errors(self.path):
                has_wal = not self._connections.is_in_memory and not self._connections.is_read_only
                if has_wal and self._connections.checkpoint("truncate"):
                    facts["log_bytes"] = self._connections.size("-wal")
        except StoreError as error:  # a full disk, for example: the rest of the report is all the more useful
            problems.append(str(error))
        return Health(not problems, facts, tuple(problems), is_damaged=bool(damage))

    @property
    def label(self) -> str:
        return self.path if self._connections.is_in_memory else os.path.realpath(self.path)

    @contextmanager
    def tables(self, *, write: bool = False) -> Iterator[SQLiteTables]:
        """Open every table as plain rows in one transaction, for copying."""
        with self._connections.transaction("begin immediate" if write else "begin") as database:
            yield SQLiteTables(database.connection)
        if write:
            self._connections.maintain_wal()

    def close(self) -> None:
        """Close every connection. SQLite empties the WAL when the last connection of all processes closes."""
        self._connections.close()

    # --- repair ----------------------------------------------------------------------------------------------------

    def rebuild(self) -> int:
        """Rebuild the index from the records, rewrite the file, and return how many records were indexed."""
        with self._connections.transaction("begin immediate") as database:
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
        self._connections = Connections(self.path)
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
            with fresh._connections.transaction("begin immediate") as database:
                salvage_tables(source, database.connection)
                for name in ("delete_orphans", "count_segments"):
                    for statement in queries.load("sqlite")[name].split(";"):
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

    def _rebuild(self, database: SQLiteDatabase) -> int:
        indexed = 0
        for _, name in database.fetch_all("project_names"):
            writer = WriteTransaction(database, Scope(name), self._vector_search, self.embedding_namespace, "")
            indexed += writer.rebuild(self.counter)
            writer.finish()
        self._write_meta(database)
        return indexed

    def _index_mismatch(self) -> str:
        """Return how the index and the records of any project differ, or an empty string."""
        with self._connections.transaction("begin") as database:
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
            self._connections.current().execute("vacuum")
            if self._connections.is_in_memory or self._connections.checkpoint("truncate"):
                self._connections.database().execute("delete_meta", {"name": META_RESIDUE})
                return ()
            obstacle = "another process is reading"
        except apsw.Error as error:
            obstacle = str(error)
        warning = f"Bytes of the forgotten records may still be in the files ({obstacle})."
        return (f"{warning} The next program that opens the store removes them.",)

    # --- schema ----------------------------------------------------------------------------------------------------

    def _migrate(self) -> None:
        """Migrate the file to this version's schema in one transaction."""
        connection = self._connections.current()
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
                    self._write_meta(self._connections.database())
                connection.execute("commit")
            except BaseException:
                connection.execute("rollback")
                raise
        self._connections.check_schema(connection)

    def _write_meta(self, database: SQLiteDatabase) -> None:
        for name, value in self._versions().items():
            database.execute("set_meta", {"name": name, "value": value})
        database.execute("add_meta", {"name": META_SECRET, "value": self._secret})

    def _versions(self) -> dict[str, str]:
        return {"analyser": str(analysis.VERSION), "renderer": str(RENDERER_VERSION), "counter": self.counter}

    def _meta(self) -> dict[str, str]:
        return dict(self._connections.database().fetch_all("meta"))

    def _reindex_if_outdated(self) -> None:
        """Rebuild the index if it was made with another analyzer, renderer or token counter."""
        tokens.counter(self.counter)  # raises an error if the name is unknown, before anything is changed
        meta = self._meta()
        if not self._is_current(meta):
            with self._connections.transaction("begin immediate") as database:
                # Another process may have rebuilt it since.
                if not self._is_current(dict(database.fetch_all("meta"))):
                    self._rebuild(database)
        elif META_RESIDUE in meta and self._connections.size() <= MAX_VACUUM_BYTES:
            self._vacuum()

    def _is_current(self, meta: Mapping[str, str]) -> bool:
        return self._versions().items() <= meta.items() and META_SECRET in meta


def _lazy_vector_search() -> OpenVectorSearch:
    """Return a function that opens a vector search. The first call imports NumPy: 0.1 s that many stores never need."""

    @cache
    def open_search() -> VectorSearch:
        from foveate.store.sqlite.vectors import InMemoryVectorSearch

        return InMemoryVectorSearch()

    return open_search


def _read_secret(source: apsw.Connection) -> str | None:
    """Return the secret of a damaged file if it can be read. With another one, no past context could be replayed."""
    try:
        row = source.execute("select value from meta where name = ?", (META_SECRET,)).fetchone()
    except apsw.Error:
        return None
    return str(row[0]) if row else None
