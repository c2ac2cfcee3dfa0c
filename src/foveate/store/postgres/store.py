"""A store in PostgreSQL, for a team or a platform. The rules of writing are those of every SQL store.

All tables are in the schema `foveate` of the database. Writers of one project wait for a lock on the project's row, and
different projects are written at the same time. A role that does not own the tables sees the projects that it was granted,
and row-level security makes sure of it whatever SQL it runs.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg

from foveate.clock import new_id, now
from foveate.errors import Busy, Denied, InputError, NotFound, SchemaTooNew, StoreError
from foveate.store.copy import PROJECT_TABLES, PostgresTables
from foveate.store.postgres.connections import (
    BEGIN_READ_SQL,
    BEGIN_WRITE_SQL,
    Connections,
    ConnectionSettings,
    quote_identifier,
)
from foveate.store.postgres.database import PostgresDatabase
from foveate.store.postgres.schema import META_COUNTER, META_SCHEMA, is_made_by_newer, made_by, open_schema
from foveate.store.postgres.vectors import PgVectorSearch, PostgresWriteTransaction
from foveate.store.protocol import ForgetResult, Health, Scrub, StoredReceipt
from foveate.store.retention import DEFAULT_RETENTION, Retention
from foveate.store.retry import retry_interrupted
from foveate.store.sql import queries
from foveate.store.sql.read import ReadTransaction
from foveate.text import analysis, tokens
from foveate.types import Scope

SHORT_LOCK_TIMEOUT_S = 0.2
"""How long to wait for a lock if the work can be done later as well."""

MAX_NAMED_PROJECTS = 5
"""Projects with a problem that `health` names one by one."""

MAX_VACUUM_BYTES = 2**30
"""Size of the tables up to which a forget vacuums them at once. Larger ones would take minutes."""

DEAD_ROWS_WARNING = "Dead rows stay in the tables until the server vacuums them, or their owner does."

LOG_WARNING = (
    "The server's write-ahead log, replicas and backups may contain the forgotten records until they are recycled. "
    "The administrator of the server can do that."
)


class PostgresStore:
    """A store in a PostgreSQL database, shared by everyone who has its URL."""

    def __init__(
        self,
        url: str,
        *,
        counter: str | None = None,
        embedding_namespace: str | None = None,
        multi_valued: Iterable[str] = (),
        create: bool = True,
        secret: str | None = None,
        settings: ConnectionSettings | None = None,
        retention: Retention = DEFAULT_RETENTION,
    ) -> None:
        self.embedding_namespace = embedding_namespace
        self.retention = retention
        self._cleanup_positions: dict[str, tuple[int, int]] = {}
        self._multi_valued = frozenset(multi_valued)
        self._connections = Connections(url, settings or ConnectionSettings())
        self.path = self._connections.shown
        self._local = threading.local()
        self._queries = queries.load("postgres")
        self._schema = queries.migrations("postgres")[-1][0]
        self._current_projects: set[str] = set()
        meta = open_schema(self._connections, create=create, counter=counter, secret=secret or os.urandom(16).hex())
        self.counter = counter or meta[META_COUNTER]
        tokens.counter(self.counter)  # raises if there is no counter of that name
        if self.counter != meta[META_COUNTER]:
            with self._transaction(BEGIN_WRITE_SQL) as database:
                database.execute("set_meta", {"name": META_COUNTER, "value": self.counter})

    def limit_waits(self, seconds: float) -> None:
        """Raise StoreError after this time if the server cannot be reached: a service must answer its callers."""
        self._connections.limit_waits(seconds)

    # --- the protocol ------------------------------------------------------------------------------------------

    def projects(self) -> list[str]:
        with self._transaction(BEGIN_READ_SQL) as database:
            return sorted(name for _, name in database.fetch_all("project_names"))

    @contextmanager
    def read(self, scope: Scope) -> Iterator[ReadTransaction]:
        self._reindex_before_read(scope.project)
        with self._transaction(BEGIN_READ_SQL) as database:
            yield self._reader(database, scope)

    @contextmanager
    def write(self, scope: Scope) -> Iterator[PostgresWriteTransaction]:
        with self._lock_project(scope.project) as database:
            writer = self._writer(database, scope, new_id("chg", now()))
            yield writer
            writer.finish(self.retention, self._cleanup_positions)

    def forget(
        self, scope: Scope, ids: Sequence[str], scrub: Scrub | None = None, other_store_ids: Sequence[str] = ()
    ) -> ForgetResult:
        """Delete records from every table, and vacuum their dead rows if this role may do that."""
        with self.write(scope) as writer:
            counts = writer.forget(ids, scrub, other_store_ids)
        return ForgetResult(counts, (*self._vacuum(), LOG_WARNING))

    def save_receipts(self, scope: Scope, receipts: Iterable[StoredReceipt]) -> None:
        """Store receipts without the lock on the project: they change no record, so they wait for no writer."""
        with self._transaction(BEGIN_WRITE_SQL, lock_timeout_s=SHORT_LOCK_TIMEOUT_S) as database:
            self._writer(database, scope).save_receipts(receipts, self.retention)

    def reclaim_space(self) -> int:
        """Return 0: the server reuses the space of deleted rows by itself (autovacuum)."""
        return 0

    def backup(self, target: Path) -> None:
        """Write a consistent copy as an SQLite file while others write."""
        from foveate.store.sqlite.files import back_up_to_file

        back_up_to_file(self, target)

    def health(self) -> Health:
        """Return facts about the server, and the projects whose index does not match their records."""
        with self._transaction(BEGIN_READ_SQL, no_timeout=True) as database:
            meta = dict(database.fetch_all("meta"))
            ((server, pgvector, database_size, store_size),) = database.fetch_all("server_facts")
            projects = [name for _, name in database.fetch_all("project_names")]
            mismatches = [mismatch for name in projects if (mismatch := self._index_mismatch(database, name))]
        facts = {
            "path": self.path,
            "postgresql": server,
            "pgvector": pgvector,
            "schema": int(meta[META_SCHEMA]),
            "bytes": store_size,
            "database_bytes": database_size,
            "projects": len(projects),
            "counter": meta[META_COUNTER],
            "analyser": str(analysis.VERSION),
        }
        problems = tuple(
            f"The index disagrees with the records ({mismatch}). Run `foveate doctor --fix`."
            for mismatch in mismatches[:MAX_NAMED_PROJECTS]
        )
        return Health(not problems, facts, problems)

    @property
    def label(self) -> str:
        return self.path

    @contextmanager
    def tables(self, *, write: bool = False) -> Iterator[PostgresTables]:
        """Open every table as plain rows in one transaction, for copying."""
        begin = BEGIN_WRITE_SQL if write else BEGIN_READ_SQL
        with self._connections.transaction(begin, self._check_schema, no_timeout=True, alone=write) as connection:
            ((is_filtered,),) = connection.execute("select row_security_active('records')").fetchall()
            if is_filtered:
                raise StoreError(f"{self.path!r}: this role sees its own projects only. Copy as the owner of the tables.")
            yield PostgresTables(connection)

    def close(self) -> None:
        self._connections.close()

    # --- access ------------------------------------------------------------------------------------------------

    @retry_interrupted
    def grant(self, role: str, project: str) -> None:
        """Let a role of the server read and write a project, and nothing else. Only the owner of the tables can do this."""
        grantee = quote_identifier(role)
        if project not in self.projects():
            raise NotFound(f"No project {project!r} in {self.path!r}. A project is created with its first record.")
        with self._lock_project(project) as database:
            self._refuse_unsafe_role(database, role)
            database.execute("add_member", {"role": role, "project": database.project})
            for privilege in _PRIVILEGES:
                database.connection.execute(f"grant {privilege} to {grantee}")

    @retry_interrupted
    def revoke(self, role: str, project: str) -> None:
        """Take a project from a role. With its last project, a role loses every privilege in the schema."""
        grantee = quote_identifier(role)
        if project not in self.projects():
            raise NotFound(f"No project {project!r} in {self.path!r}.")
        with self._lock_project(project) as database:
            database.fetch_all("lock_grants")
            database.execute("delete_member", {"role": role, "project": database.project})
            exists = database.fetch_all("role", {"role": role})  # a role that was dropped has lost its privileges with that
            if exists and not database.fetch_all("count_memberships", {"role": role})[0][0]:
                for privilege in _PRIVILEGES:
                    database.connection.execute(f"revoke {privilege} from {grantee}")

    def _refuse_unsafe_role(self, database: PostgresDatabase, role: str) -> None:
        """Refuse a role that stands for several users, or that could make the owner run its code."""
        # PostgreSQL fails if two transactions change the privileges of one table at once.
        database.fetch_all("lock_grants")
        if role.lower() in ("public", "none"):
            raise InputError(f"{role!r} is every role at once. Grant a role of its own.")
        if not database.fetch_all("role", {"role": role}):
            raise InputError(f"No role {role!r} on the server. Create it first: `create role {role} login`.")
        schema = self._connections.search_path.rpartition(", ")[2]
        params = {"role": role, "schema": schema.strip('"')}
        if schema != "foveate" and database.fetch_all("may_create_in_schema", params)[0][0]:
            raise InputError(
                f"{role!r} may create functions in schema {schema}, where pgvector is, and others would run them. "
                f"Revoke that first: `revoke create on schema {schema} from public, {role}`."
            )

    # --- the index ---------------------------------------------------------------------------------------------

    def rebuild(self) -> int:
        """Index every record again, one project after the other, and return how many there are."""
        with self._transaction(BEGIN_READ_SQL) as database:
            projects = [name for _, name in database.fetch_all("project_names")]
        count = 0
        for name in projects:
            with self._lock_project(name, reindex_if_outdated=False, no_timeout=True) as database:
                count += self._rebuild(database, name)
        return count

    def _rebuild(self, database: PostgresDatabase, project: str) -> int:
        writer = self._writer(database, Scope(project))
        count = writer.rebuild(self.counter)
        writer.finish()
        database.execute("set_made_by", {"project": database.project, "made_by": made_by(self.counter)})
        return count

    def _index_mismatch(self, database: PostgresDatabase, project: str) -> str:
        """Describe how the index of a project differs from its records, or return an empty string."""
        try:
            mismatch = self._reader(database, Scope(project)).index_mismatch()
        except ValueError as error:  # another program wrote into the tables
            mismatch = f"it cannot be read: {error}"
        return mismatch and f"project {project!r}: {mismatch}"

    def _reindex_before_read(self, project: str) -> None:
        """Index a project again if an older version did, once in a process."""
        if project in self._current_projects or self._is_writing:
            return
        with self._transaction(BEGIN_READ_SQL) as database:
            rows = database.fetch_all("made_by", {"name": project})
        if rows and rows[0][0] != made_by(self.counter) and not is_made_by_newer(rows[0][0]):
            try:
                with self._lock_project(project, no_timeout=True, lock_timeout_s=SHORT_LOCK_TIMEOUT_S):
                    pass
            except (Busy, Denied):  # another process is at it, or this is a standby: search in the old index until then
                return
        if rows:
            self._current_projects.add(project)

    def _reindex_if_outdated(self, database: PostgresDatabase, project: str, indexed_by: str) -> None:
        if indexed_by == made_by(self.counter):
            return
        if is_made_by_newer(indexed_by):
            raise SchemaTooNew(f"Project {project!r} was indexed by a newer foveate. Upgrade foveate to write to it.")
        counter = dict(database.fetch_all("meta"))[META_COUNTER]
        if counter != self.counter:
            raise StoreError(
                f"{self.path!r} now counts tokens with {counter!r}, and did with {self.counter!r} when it was opened: "
                "open it again."
            )
        self._rebuild(database, project)

    def _vacuum(self) -> tuple[str, ...]:
        """Vacuum the tables, and return a warning if that is not possible now."""
        failures: list[str] = []
        try:
            with self._connections.connect() as connection:
                ((size,),) = connection.execute(
                    "select coalesce(sum(pg_total_relation_size(c.oid)), 0) from pg_class c "
                    "join pg_namespace n on n.oid = c.relnamespace where n.nspname = 'foveate' and c.relkind = 'r'"
                ).fetchall()
                if size > MAX_VACUUM_BYTES:
                    return (DEAD_ROWS_WARNING,)
                # The server does not fail on tables of another owner. It skips them with a notice.
                connection.add_notice_handler(lambda notice: failures.append(str(notice.message_primary)))
                connection.execute(f"vacuum {', '.join(f'foveate.{table}' for table in PROJECT_TABLES)}")
        except psycopg.Error as error:  # the records are deleted all the same
            failures.append(str(error))
        return (DEAD_ROWS_WARNING,) if failures else ()

    # --- transactions ------------------------------------------------------------------------------------------

    @contextmanager
    def _lock_project(
        self,
        project: str,
        *,
        reindex_if_outdated: bool = True,
        lock_timeout_s: float | None = None,
        no_timeout: bool = False,
    ) -> Iterator[PostgresDatabase]:
        """Open the only transaction that writes to a project, and index the project again if its index is outdated."""
        # A second transaction of this thread would wait for the lock of the first one, which waits for the thread.
        if self._is_writing:
            raise StoreError("This thread is writing already; use the writer that it has open.")
        if not project:
            raise InputError("A scope needs a project, got an empty name.")
        self._local.writing = True
        try:
            with self._transaction(
                BEGIN_WRITE_SQL, project, lock_timeout_s=lock_timeout_s, no_timeout=no_timeout
            ) as database:
                indexed_by = database.lock(project)
                if reindex_if_outdated:
                    self._reindex_if_outdated(database, project, indexed_by)
                yield database
        finally:
            self._local.writing = False

    @property
    def _is_writing(self) -> bool:
        return getattr(self._local, "writing", False)

    @contextmanager
    def _transaction(
        self, begin: str, project: str = "", *, lock_timeout_s: float | None = None, no_timeout: bool = False
    ) -> Iterator[PostgresDatabase]:
        with self._connections.transaction(
            begin, self._check_schema, project=project, lock_timeout_s=lock_timeout_s, no_timeout=no_timeout
        ) as connection:
            yield PostgresDatabase(connection, self._queries, self._connections.url)

    def _check_schema(self, version: int) -> None:
        queries.refuse_schema_mismatch(version, self._schema, repr(self.path))

    def _reader(self, database: PostgresDatabase, scope: Scope) -> ReadTransaction:
        return ReadTransaction(database, scope, PgVectorSearch, self.embedding_namespace)

    def _writer(self, database: PostgresDatabase, scope: Scope, change: str = "") -> PostgresWriteTransaction:
        return PostgresWriteTransaction(
            database, scope, PgVectorSearch, self.embedding_namespace, change, self._multi_valued
        )


_PRIVILEGES = (
    "usage on schema foveate",
    "select on foveate.meta, foveate.members, foveate.projects",
    "update (revision, docs, made_by, recent) on foveate.projects",
    "select on foveate.kinds, foveate.spaces, foveate.secrets",
    "insert (name) on foveate.kinds",
    "insert (fingerprint, dim) on foveate.spaces",
    f"select, insert, update, delete on {', '.join(f'foveate.{table}' for table in PROJECT_TABLES[1:])}",
)
"""Privileges that a member needs on the tables. The row-level policies decide which rows it sees."""
