"""Opens a store by its path or URL. Drivers are imported only for the kind of store that is opened."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from foveate.errors import InputError
from foveate.store.database_url import is_url
from foveate.store.retention import Retention

if TYPE_CHECKING:
    from foveate.store.postgres.store import PostgresStore
    from foveate.store.sql.queries import SchemaStatus
    from foveate.store.sqlite.store import SQLiteStore


class StoreOptions(TypedDict, total=False):
    """Options that every store takes."""

    counter: str | None
    """Name of the token counter; by default the one that the store was counted with."""
    embedding_namespace: str | None
    """Fingerprint of the embedder whose vectors are read and written."""
    multi_valued: Iterable[str]
    """Attributes of which several values can be true at once, as `attribute` or `subject.attribute`."""
    create: bool
    secret: str | None
    """Fixes the random secret of a new store, for tests."""
    retention: Retention


def open_store(where: str | Path, **options: Unpack[StoreOptions]) -> SQLiteStore | PostgresStore:
    """Open the store at a path or at the URL of a PostgreSQL database."""
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
