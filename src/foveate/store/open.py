"""Open a store by its path or URL. A driver is imported only for the kind of store that is opened."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from foveate.store.database_url import is_url
from foveate.store.retention import Retention

if TYPE_CHECKING:
    from foveate.store.postgres.store import PostgresStore
    from foveate.store.sql.queries import SchemaStatus
    from foveate.store.sqlite.store import SQLiteStore


class StoreOptions(TypedDict, total=False):
    """Options of every store."""

    counter: str | None
    """Name of the token counter. By default the one with which the store's tokens were counted."""
    embedding_namespace: str | None
    """Fingerprint of the embedder whose vectors are read and written."""
    multi_valued: Iterable[str]
    """Attributes that can have several values at once, as `attribute` or `subject.attribute`."""
    create: bool
    secret: str | None
    """The secret of a new store instead of a random one, for tests."""
    retention: Retention


def open_store(where: str | Path, **options: Unpack[StoreOptions]) -> SQLiteStore | PostgresStore:
    """Open the store at a path or at the URL of a PostgreSQL database."""
    if is_url(where):
        from foveate.store.postgres.store import PostgresStore

        return PostgresStore(str(where), **options)
    from foveate.store.sqlite.store import SQLiteStore

    return SQLiteStore(where, **options)


def read_schema_status(where: str | Path) -> SchemaStatus:
    """Return the schema version of a store compared with this version's, without changing the store."""
    if is_url(where):
        from foveate.store.postgres import schema

        return schema.read_schema_status(str(where))
    from foveate.store.sqlite import files

    return files.read_schema_status(where)
