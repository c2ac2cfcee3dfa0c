"""A store by where it is: a file, or the URL of a PostgreSQL database, whose driver is imported when it is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from foveate.errors import InputError
from foveate.store.address import is_url

if TYPE_CHECKING:
    from foveate.store.postgres.store import PostgresStore
    from foveate.store.sql.queries import SchemaStatus
    from foveate.store.sqlite.store import SQLiteStore


def open_store(where: str | Path, **options: Any) -> SQLiteStore | PostgresStore:
    """The store at a path or URL, with a store's own options."""
    if is_url(where):
        from importlib.util import find_spec

        if find_spec("psycopg") is None or find_spec("psycopg_pool") is None:
            raise InputError("A store on PostgreSQL needs its driver: install it with `pip install foveate[postgres]`.")
        from foveate.store.postgres.store import PostgresStore

        return PostgresStore(str(where), **options)
    from foveate.store.sqlite.store import SQLiteStore

    return SQLiteStore(where, **options)


def read_schema_status(where: str | Path) -> SchemaStatus:
    """Return how the schema of a store compares with this version's, without changing anything there."""
    if is_url(where):
        from foveate.store.postgres import store

        return store.read_schema_status(str(where))
    from foveate.store.sqlite import files

    return files.read_schema_status(where)
