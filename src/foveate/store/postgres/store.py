"""The shared store: PostgreSQL with pgvector, for a team or a platform; the rules of state are those of the embedded one.

Comes in: a URL. Everything lives in the schema `foveate` of that database. Writers of one project take turns by a lock on
the project's row; different projects write at once. A role that is not the owner sees the projects that it was granted and
nothing else, whatever SQL it writes. `pooling` holds connections, retries and errors.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from foveate.clock import new_id, now
from foveate.errors import Busy, Denied, InputError, NotFound, SchemaTooNew, StoreError
from foveate.records.kinds import RENDERER_VERSION
from foveate.store.copy import PROJECT_TABLES, PostgresTables
from foveate.store.postgres.connections import MIGRATING, READ, WRITE, Connection, Connections, Patience, quoted
from foveate.store.postgres.database import PostgresDatabase
from foveate.store.postgres.errors import NO_VECTORS
from foveate.store.postgres.vectors import HalfVectors, Writing
from foveate.store.protocol import ForgetResult, Health, Scrub, StoredReceipt
from foveate.store.retention import DEFAULT_RETENTION, Retention
from foveate.store.retry import retry_interrupted
from foveate.store.sql import queries
from foveate.store.sql.queries import META_SECRET, SchemaStatus, compute_schema_status
from foveate.store.sql.read import ReadTransaction
from foveate.text import analysis, tokens
from foveate.types import Scope

# isort: split
import psycopg  # after `pooling`, which says what to install where it is missing
from psycopg import errors

OLDEST = 140000
"""PostgreSQL 14: the oldest that is still looked after when this is written."""

PATIENCE = 0.2
"""Seconds to wait for others where the work can be done later as well: receipts."""

SCHEMA = "schema"
COUNTER = "counter"
"""Names in `meta`: the version of the tables; by which counter tokens are counted."""

SHOWN = 5
"""Projects with a problem that are named one by one."""

VACUUMED = 2**30
"""Bytes of tables up to which a forget has the server drop dead rows at once; beyond, that would take minutes."""

NO_STORE = "There is no store in {shown!r}. Create one with `foveate init --store URL --project NAME`."

DEAD = "Dead rows stay in the tables until the server's own vacuum, or their owner's."

BEYOND_REACH = (
    "The server's write-ahead log, replicas and backups may hold what was forgotten until they are recycled; "
    "that is for whoever runs the server."
)


class PostgresStore:
    """A store in a PostgreSQL database, shared by everybody who has its URL."""

    def __init__(
        self,
        url: str,
        *,
        counter: str | None = None,
        embedding_namespace: str | None = None,
        multi_valued: Iterable[str] = (),
        create: bool = True,
        secret: str | None = None,
        patience: Patience | None = None,
        retention: Retention = DEFAULT_RETENTION,
    ) -> None:
        self.embedding_namespace = embedding_namespace
        self.retention = retention
        self._dropping: dict[str, tuple[int, int]] = {}
        self._multi_valued = frozenset(multi_valued)
        self._connections = Connections(url, patience or Patience())
        self.path = self._connections.shown
        self._local = threading.local()
        self._segments = HalfVectors()
        self._queries = queries.load("postgres")
        self._schema = queries.migrations("postgres")[-1][0]
        self._known: set[str] = set()
        meta = self._opened(create, counter, secret or os.urandom(16).hex())
        self.counter = counter or meta[COUNTER]
        tokens.counter(self.counter)
        if self.counter != meta[COUNTER]:
            with self._transaction(WRITE) as database:
                database.execute("set_meta", {"name": COUNTER, "value": self.counter})

    # --- the contract ------------------------------------------------------------------------------------------

    def projects(self) -> list[str]:
        with self._transaction(READ) as database:
            return sorted(name for _, name in database.fetch_all("project_names"))

    @contextmanager
    def read(self, scope: Scope) -> Iterator[ReadTransaction]:
        self._catch_up(scope.project)
        with self._transaction(READ) as database:
            yield ReadTransaction(database, scope, self._segments, self.embedding_namespace)

    @contextmanager
    def write(self, scope: Scope) -> Iterator[Writing]:
        with self._locked(scope.project) as database:
            writer = Writing(
                database, scope, self._segments, self.embedding_namespace, new_id("chg", now()), self._multi_valued
            )
            yield writer
            writer.finish(self.retention, self._dropping)

    def forget(
        self, scope: Scope, ids: Sequence[str], scrub: Scrub | None = None, other_store_ids: Sequence[str] = ()
    ) -> ForgetResult:
        """Remove records from every table, and their dead rows from the files where this role may."""
        with self.write(scope) as writer:
            counts = writer.forget(ids, scrub, other_store_ids)
        return ForgetResult(counts, (*self._vacuum(), BEYOND_REACH))

    def save_receipts(self, scope: Scope, receipts: Iterable[StoredReceipt]) -> None:
        """Keep receipts. They wait for no writer of the project: its row is not locked."""
        kept = list(receipts)
        with self._transaction(WRITE, lock=PATIENCE) as database:
            writer = Writing(database, scope, self._segments, self.embedding_namespace, "")
            for receipt in kept:
                writer.save_receipt(receipt)
            latest = min(max((receipt.created for receipt in kept), default=0), now())
            writer.drop_receipts(self.retention, latest, only_if_overdue=True)

    def reclaim_space(self) -> int:
        """Nothing: the server gives unused room to new rows by itself (autovacuum)."""
        return 0

    def backup(self, target: Path) -> None:
        """A consistent copy as an SQLite file, taken while others write."""
        from foveate.store.sqlite.files import back_up_to_file

        back_up_to_file(self, target)

    def health(self) -> Health:
        """Is the server fit, and does every project's index say what its records say?"""
        with self._transaction(READ, unhurried=True) as database:
            meta = dict(database.fetch_all("meta"))
            ((server, pgvector, size, own),) = database.fetch_all("server_facts")
            projects = [name for _, name in database.fetch_all("project_names")]
            astray = [said for name in projects if (said := self._astray(database, name))]
        facts = {
            "path": self.path,
            "postgresql": server,
            "pgvector": pgvector,
            "schema": int(meta[SCHEMA]),
            "bytes": own,
            "database_bytes": size,
            "projects": len(projects),
            "counter": meta[COUNTER],
            "analyser": str(analysis.VERSION),
        }
        problems = tuple(
            f"The index disagrees with the records ({said}). Run `foveate doctor --fix`." for said in astray[:SHOWN]
        )
        return Health(not problems, facts, problems)

    @property
    def label(self) -> str:
        return self.path

    @contextmanager
    def tables(self, *, write: bool = False) -> Iterator[PostgresTables]:
        """Open every table as plain rows in one transaction, for copying."""
        begin = WRITE if write else READ
        with self._connections.transaction(begin, self._check_schema, unhurried=True, alone=write) as connection:
            ((filtered,),) = connection.execute("select row_security_active('records')").fetchall()
            if filtered:
                raise StoreError(f"{self.path!r}: this role sees its own projects only. Copy as the owner of the tables.")
            yield PostgresTables(connection)

    def _check_schema(self, version: int) -> None:
        queries.refuse_schema_mismatch(version, self._schema, repr(self.path))

    def close(self) -> None:
        self._connections.close()

    # --- who may see what --------------------------------------------------------------------------------------

    @retry_interrupted
    def grant(self, role: str, project: str) -> None:
        """Let a role of the server read and write a project, and nothing else. For the owner of the tables."""
        who = quoted(role)
        if project not in self.projects():
            raise NotFound(f"There is no project {project!r} in {self.path!r}; it comes with its first record.")
        with self._locked(project) as database:
            self._refuse_role(database, role)
            database.execute("add_member", {"role": role, "project": database.project})
            for statement in _GRANTS:
                database.connection.execute(f"grant {statement} to {who}")

    @retry_interrupted
    def revoke(self, role: str, project: str) -> None:
        """Take a project from a role again; with the last one, every right in the schema."""
        who = quoted(role)
        if project not in self.projects():
            raise NotFound(f"There is no project {project!r} in {self.path!r}.")
        with self._locked(project) as database:
            database.fetch_all("lock_grants")
            database.execute("delete_member", {"role": role, "project": database.project})
            there = database.fetch_all("role", {"role": role})  # one that was dropped has no rights left to take
            if there and not database.fetch_all("count_memberships", {"role": role})[0][0]:
                for statement in _GRANTS:
                    database.connection.execute(f"revoke {statement} from {who}")

    def _refuse_role(self, database: PostgresDatabase, role: str) -> None:
        """Roles that would be more than one member, or could have the owner run what they wrote."""
        database.fetch_all("lock_grants")  # rights of one table cannot be given twice at once
        if role.lower() in ("public", "none"):
            raise InputError(f"{role!r} is every role at once. Grant a role of its own.")
        if not database.fetch_all("role", {"role": role}):
            raise InputError(f"There is no role {role!r} on the server. Create it first: `create role {role} login`.")
        schema = self._connections.path.rpartition(", ")[2]
        if (
            schema != "foveate"
            and database.fetch_all("may_create_in_schema", {"role": role, "schema": schema.strip('"')})[0][0]
        ):
            raise InputError(
                f"{role!r} may create in schema {schema}, where pgvector is, and so have others run what it writes. "
                f"Take that away first: `revoke create on schema {schema} from public, {role}`."
            )

    # --- repair ------------------------------------------------------------------------------------------------

    def rebuild(self) -> int:
        """Make the index of every project anew from its records, one project after the other; how many were indexed."""
        with self._transaction(READ) as database:
            names = [name for _, name in database.fetch_all("project_names")]
        done = 0
        for name in names:
            with self._locked(name, current=False, unhurried=True) as database:
                done += self._rebuild(database, name)
        return done

    def _rebuild(self, database: PostgresDatabase, name: str) -> int:
        writer = Writing(database, Scope(name), self._segments, self.embedding_namespace, "")
        done = writer.rebuild(self.counter)
        writer.finish()
        database.execute("set_made_by", {"project": database.project, "made_by": self._made_by})
        return done

    def _astray(self, database: PostgresDatabase, name: str) -> str:
        """In which way index and records of a project differ, nothing when they agree."""
        try:
            found = ReadTransaction(database, Scope(name), self._segments, self.embedding_namespace).index_mismatch()
        except ValueError as error:  # somebody wrote into the tables by hand
            found = f"it cannot be read: {error}"
        return found and f"project {name!r}: {found}"

    def _vacuum(self) -> tuple[str, ...]:
        """Have the server drop dead rows now. It skips tables of another owner with a notice."""
        refused: list[str] = []
        try:
            with self._connections.connect() as connection:
                ((size,),) = connection.execute(
                    "select coalesce(sum(pg_total_relation_size(c.oid)), 0) from pg_class c "
                    "join pg_namespace n on n.oid = c.relnamespace where n.nspname = 'foveate' and c.relkind = 'r'"
                ).fetchall()
                if size > VACUUMED:
                    return (DEAD,)
                connection.add_notice_handler(lambda notice: refused.append(str(notice.message_primary)))
                connection.execute(f"vacuum {', '.join(f'foveate.{table}' for table in PROJECT_TABLES)}")
        except psycopg.Error as error:  # the records are gone all the same
            refused.append(str(error))
        return (DEAD,) if refused else ()

    # --- projects ----------------------------------------------------------------------------------------------

    @property
    def _made_by(self) -> str:
        """What an index and its token counts are made by; a project remembers it."""
        return f"{analysis.VERSION}/{RENDERER_VERSION}/{self.counter}"

    def _catch_up(self, project: str) -> None:
        """Have a project that an older foveate indexed indexed anew, when this process first reads it."""
        if project in self._known or self._is_writing:
            return
        with self._transaction(READ) as database:
            found = database.fetch_all("made_by", {"name": project})
        if found and found[0][0] != self._made_by and not _is_newer(found[0][0]):
            try:
                with self._locked(project, unhurried=True, lock=PATIENCE):
                    pass
            except (Busy, Denied):  # somebody is at it, or this is a standby: the index as it is will do meanwhile
                return
        if found:
            self._known.add(project)

    @contextmanager
    def _locked(self, project: str, *, current: bool = True, **options: Any) -> Iterator[PostgresDatabase]:
        """A transaction that is the only one to write to a project; its index is brought up to date first."""
        if self._is_writing:
            raise StoreError("This thread is writing already; use the writer that it has open.")
        if not project:
            raise InputError("A scope needs a project.")
        self._local.writing = True
        try:
            with self._transaction(WRITE, project=project, **options) as database:
                made_by = database.lock(project)
                if current and made_by != self._made_by:
                    self._bring_up(database, project, made_by)
                yield database
        finally:
            self._local.writing = False

    def _bring_up(self, database: PostgresDatabase, project: str, made_by: str) -> None:
        if _is_newer(made_by):
            raise SchemaTooNew(f"Project {project!r} was indexed by a newer foveate. Upgrade foveate to write to it.")
        counter = dict(database.fetch_all("meta"))[COUNTER]
        if counter != self.counter:
            raise StoreError(f"{self.path!r} counts tokens with {counter!r} by now; open it again.")
        self._rebuild(database, project)

    @property
    def _is_writing(self) -> bool:
        return getattr(self._local, "writing", False)

    @contextmanager
    def _transaction(self, begin: str, **options: Any) -> Iterator[PostgresDatabase]:
        with self._connections.transaction(begin, self._check_schema, **options) as connection:
            yield PostgresDatabase(self._connections, connection, self._queries)

    # --- schema ------------------------------------------------------------------------------------------------

    def _opened(self, create: bool, counter: str | None, secret: str) -> dict[str, str]:
        """What `meta` says, once the schema is this version's."""
        with self._connections.explained(), self._connections.reached() as connection:
            version = self._version(connection)
            if version == 0 and not create:
                raise StoreError(
                    f"There is no store in {self.path!r}. Create one with `foveate init --store URL --project NAME`."
                )
            if queries.pending_migrations("postgres", version, repr(self.path)):
                self._migrate(connection, {COUNTER: counter or "o200k", META_SECRET: secret})
            queries.refuse_schema_mismatch(self._version(connection), self._schema, repr(self.path))
            self._connections.path = _path(connection)
            return dict(connection.execute("select name, value from foveate.meta").fetchall())

    def _version(self, connection: Connection) -> int:
        if connection.info.server_version < OLDEST:
            raise StoreError(
                f"{self.path!r} is PostgreSQL {connection.info.server_version // 10000}; 14 or later is needed."
            )
        try:
            found = connection.execute("select value from foveate.meta where name = $1", (SCHEMA,)).fetchone()
        except (errors.UndefinedTable, errors.InvalidSchemaName):
            return 0
        return int(found[0]) if found else 0

    def _migrate(self, connection: Connection, first: Mapping[str, str]) -> None:
        """Bring the schema to this version, in one transaction; several processes take turns.

        `first`: what `meta` is to say where it says nothing of it yet.
        """
        ((encoding,),) = connection.execute("select current_setting('server_encoding')").fetchall()
        if encoding != "UTF8":
            raise StoreError(f"{self.path!r} is encoded in {encoding}; create a database with encoding UTF8.")
        try:
            with connection.transaction():
                connection.execute("select pg_advisory_xact_lock($1)", (MIGRATING,))
                connection.execute("create schema if not exists foveate")
                connection.execute("create extension if not exists vector schema foveate")
                connection.execute(f"set local search_path = {_path(connection)}")
                database = PostgresDatabase(self._connections, connection, self._queries)
                for number, script in queries.pending_migrations(
                    "postgres", self._version_here(connection), repr(self.path)
                ):
                    connection.execute(script)
                    database.execute("set_meta", {"name": SCHEMA, "value": str(number)})
                for name, value in first.items():
                    database.execute("add_meta", {"name": name, "value": value})
        except errors.InsufficientPrivilege as error:
            raise StoreError(
                f"This role may not bring the schema of {self.path!r} up to date ({error.diag.message_primary}). "
                "Let the owner of the database run `foveate store maintain`."
            ) from None
        except (errors.UndefinedFile, errors.FeatureNotSupported) as error:
            raise StoreError(
                f"The store {self.path!r} cannot be used: {NO_VECTORS} ({error.diag.message_primary})."
            ) from None

    def _version_here(self, connection: Connection) -> int:
        """The version inside of the migration: an error would end its transaction."""
        ((there,),) = connection.execute("select to_regclass('foveate.meta') is not null").fetchall()
        return self._version(connection) if there else 0


def read_schema_status(url: str) -> SchemaStatus:
    """How a database's schema stands; nothing is changed there."""
    connections = Connections(url, Patience())
    try:
        with connections.explained(), connections.reached() as connection:
            meta: dict[str, str] = dict(connection.execute("select name, value from foveate.meta").fetchall())
            makers = [made_by for (made_by,) in connection.execute("select distinct made_by from foveate.projects")]
    except StoreError as error:
        if isinstance(error.__cause__, errors.UndefinedTable | errors.InvalidSchemaName):
            raise StoreError(
                f"There is no store in {connections.shown!r}. Create one with `foveate init --store URL --project NAME`."
            ) from None
        raise
    for made_by in makers:
        if made_by and not made_by.startswith(f"{analysis.VERSION}/{RENDERER_VERSION}/"):
            meta |= zip(("analyser", "renderer"), made_by.split("/"), strict=False)
    return compute_schema_status("postgres", connections.shown, int(meta[SCHEMA]), meta)


_GRANTS = (
    "usage on schema foveate",
    "select on foveate.meta, foveate.members, foveate.projects",
    "update (revision, docs, made_by, recent) on foveate.projects",
    "select on foveate.kinds, foveate.spaces, foveate.secrets",
    "insert (name) on foveate.kinds",
    "insert (fingerprint, dim) on foveate.spaces",
    f"select, insert, update, delete on {', '.join(f'foveate.{table}' for table in PROJECT_TABLES[1:])}",
)
"""What a member needs; which rows, the policies of the tables say."""


def _path(connection: Connection) -> str:
    """Where names are looked for: our own schema, and the one that pgvector was put into by somebody else."""
    found = connection.execute(
        "select quote_ident(n.nspname) from pg_extension e join pg_namespace n on n.oid = e.extnamespace "
        "where e.extname = 'vector'"
    ).fetchone()
    return ", ".join(dict.fromkeys(("foveate", found[0] if found else "foveate")))


def _is_newer(made_by: str) -> bool:
    """Whether a later analyser or renderer made it than this foveate has."""
    parts = made_by.split("/")
    known = len(parts) == 3 and parts[0].isdigit() and parts[1].isdigit()
    return known and (int(parts[0]) > analysis.VERSION or int(parts[1]) > RENDERER_VERSION)
