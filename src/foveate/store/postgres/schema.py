"""The schema of a PostgreSQL store: creating it, migrating it, and its status."""

from __future__ import annotations

from collections.abc import Mapping

from psycopg import errors

from foveate.errors import StoreError
from foveate.records.kinds import RENDERER_VERSION
from foveate.store.postgres.connections import MIGRATION_LOCK_ID, Connection, Connections, ConnectionSettings
from foveate.store.postgres.database import PostgresDatabase
from foveate.store.postgres.errors import NO_PGVECTOR_MESSAGE, translate_errors
from foveate.store.sql import queries
from foveate.store.sql.queries import META_SECRET, SchemaStatus, compute_schema_status
from foveate.text import analysis

MIN_SERVER_VERSION = 14
"""The oldest version of PostgreSQL that is still maintained."""

META_SCHEMA = "schema"
META_COUNTER = "counter"
"""Names in `meta`: the version of the schema, and the counter that tokens are counted with."""

_NO_STORE_MESSAGE = "No store found in {shown!r}. Create one with `foveate init --store URL --project NAME`."


def open_schema(connections: Connections, *, create: bool, counter: str | None, secret: str) -> dict[str, str]:
    """Migrate the schema if necessary, set the search path of the connections, and return the rows of `meta`."""
    label = repr(connections.shown)
    with translate_errors(connections.url), connections.connect_with_retry() as connection:
        version = _version(connections, connection)
        if version == 0 and not create:
            raise StoreError(_NO_STORE_MESSAGE.format(shown=connections.shown))
        if queries.pending_migrations("postgres", version, label):
            _migrate(connections, connection, {META_COUNTER: counter or "o200k", META_SECRET: secret})
        queries.refuse_schema_mismatch(_version(connections, connection), queries.migrations("postgres")[-1][0], label)
        connections.search_path = _search_path(connection)
        return dict(connection.execute("select name, value from foveate.meta").fetchall())


def read_schema_status(url: str) -> SchemaStatus:
    """Return how the schema of a database compares with this version's, without changing anything there."""
    connections = Connections(url, ConnectionSettings())
    try:
        with translate_errors(url), connections.connect_with_retry() as connection:
            meta: dict[str, str] = dict(connection.execute("select name, value from foveate.meta").fetchall())
            makers = [made_by for (made_by,) in connection.execute("select distinct made_by from foveate.projects")]
    except StoreError as error:
        if isinstance(error.__cause__, errors.UndefinedTable | errors.InvalidSchemaName):
            raise StoreError(_NO_STORE_MESSAGE.format(shown=connections.shown)) from None
        raise
    # A shared store is indexed project by project. One outdated project makes the store outdated.
    for made_by in makers:
        if made_by and not made_by.startswith(f"{analysis.VERSION}/{RENDERER_VERSION}/"):
            meta |= zip(("analyser", "renderer"), made_by.split("/"), strict=False)
    return compute_schema_status("postgres", connections.shown, int(meta[META_SCHEMA]), meta)


def made_by(counter: str) -> str:
    """Return the versions that the index and the token counts of a project depend on, as its row stores them."""
    return f"{analysis.VERSION}/{RENDERER_VERSION}/{counter}"


def is_made_by_newer(made_by: str) -> bool:
    """Return whether a newer analyser or renderer indexed a project."""
    parts = made_by.split("/")
    is_known = len(parts) == 3 and parts[0].isdigit() and parts[1].isdigit()
    return is_known and (int(parts[0]) > analysis.VERSION or int(parts[1]) > RENDERER_VERSION)


def _version(connections: Connections, connection: Connection) -> int:
    """Return the version of the schema, or 0 if there is no store."""
    server = connection.info.server_version // 10000
    if server < MIN_SERVER_VERSION:
        raise StoreError(f"{connections.shown!r} is PostgreSQL {server}; {MIN_SERVER_VERSION} or later is needed.")
    try:
        row = connection.execute("select value from foveate.meta where name = $1", (META_SCHEMA,)).fetchone()
    except (errors.UndefinedTable, errors.InvalidSchemaName):
        return 0
    return int(row[0]) if row else 0


def _migrate(connections: Connections, connection: Connection, new_meta: Mapping[str, str]) -> None:
    """Migrate the schema in one transaction. `new_meta` are rows for `meta`, added if they do not exist."""
    shown = connections.shown
    ((encoding,),) = connection.execute("select current_setting('server_encoding')").fetchall()
    if encoding != "UTF8":
        raise StoreError(f"{shown!r} is encoded in {encoding}; create a database with encoding UTF8.")
    try:
        with connection.transaction():
            # Several processes may find the old schema at once. The first migrates it, and the others find it done.
            connection.execute("select pg_advisory_xact_lock($1)", (MIGRATION_LOCK_ID,))
            connection.execute("create schema if not exists foveate")
            connection.execute("create extension if not exists vector schema foveate")
            connection.execute(f"set local search_path = {_search_path(connection)}")
            database = PostgresDatabase(connection, queries.load("postgres"), connections.url)
            # Looked up in the catalog first, because an error would end the transaction.
            ((has_meta,),) = connection.execute("select to_regclass('foveate.meta') is not null").fetchall()
            version = _version(connections, connection) if has_meta else 0
            for number, script in queries.pending_migrations("postgres", version, repr(shown)):
                connection.execute(script)
                database.execute("set_meta", {"name": META_SCHEMA, "value": str(number)})
            for name, value in new_meta.items():
                database.execute("add_meta", {"name": name, "value": value})
    except errors.InsufficientPrivilege as error:
        raise StoreError(
            f"This role may not migrate the schema of {shown!r} ({error.diag.message_primary}). "
            "Let the owner of the database run `foveate store maintain`."
        ) from None
    except (errors.UndefinedFile, errors.FeatureNotSupported) as error:
        raise StoreError(
            f"The store {shown!r} cannot be used: {NO_PGVECTOR_MESSAGE} ({error.diag.message_primary})."
        ) from None


def _search_path(connection: Connection) -> str:
    """Return the schema `foveate`, and the one that holds pgvector if the extension was created somewhere else."""
    row = connection.execute(
        "select quote_ident(n.nspname) from pg_extension e join pg_namespace n on n.oid = e.extnamespace "
        "where e.extname = 'vector'"
    ).fetchone()
    return ", ".join(dict.fromkeys(("foveate", row[0] if row else "foveate")))
