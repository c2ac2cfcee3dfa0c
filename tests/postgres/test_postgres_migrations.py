"""Databases of every earlier schema version are migrated with their contents."""

from __future__ import annotations

from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

import stores
from conformance.base import HERE, add
from foveate.engine import Engine
from foveate.store.copy import TABLE_KEYS, PostgresTables
from foveate.store.postgres.store import PostgresStore
from foveate.store.sql import queries
from foveate.store.sqlite.store import SQLiteStore
from foveate.testing import embedder
from foveate.types import Scope
from postgres_server import Server

AS_FILE = {1: 3, 2: 4, 3: 5}
"""The version of a file that keeps the same tables: its rows are those of the database."""

SECRET_KEPT = 3
"""The first version in which no member can read the store's secret; what members may have read is drawn anew."""

LISTS_RECEIPTS = 2
"""The first version that keeps a row of each receipt for lists."""

VERSIONS = [number for number, _ in queries.migrations("postgres")]
SPACE = embedder(8).fingerprint


def old_database(url: str, version: int, rows_of: Path) -> str:
    """Fill the database at the URL as that version would have, and return the URL."""
    with (
        psycopg.connect(url, cursor_factory=psycopg.RawCursor) as connection,
        closing(apsw.Connection(str(rows_of))) as file,
    ):
        connection.execute("create schema foveate; create extension vector schema foveate; set search_path = foveate")
        for number, script in queries.migrations("postgres"):
            if number <= version:
                connection.execute(script.encode())
        tables = PostgresTables(connection)
        for table in TABLE_KEYS:
            held = file.execute(f"select * from {table}").fetchall()
            assert held, table
            names = [row[0] for row in file.execute("select name from pragma_table_info(?)", (table,))]
            tables.insert(table, names, held)
        meta = dict(file.execute("select name, value from meta").fetchall())
        tables.insert("meta", ("name", "value"), [("schema", str(version)), ("counter", ""), ("secret", "")])
        tables.finalize(meta, replaced=False)
    return url


def shape(url: str) -> list[Any]:
    """Return every column, index and policy of a database."""
    with psycopg.connect(url) as connection:
        return [
            connection.execute(text).fetchall()
            for text in (
                "select table_name, column_name, ordinal_position, data_type, is_nullable, collation_name "
                "from information_schema.columns where table_schema = 'foveate' order by 1, 3",
                "select indexname, indexdef from pg_indexes where schemaname = 'foveate' order by 1",
                "select tablename, policyname, qual from pg_policies where schemaname = 'foveate' order by 1, 2",
            )
        ]


def test_every_schema_version_has_a_dump() -> None:
    assert list(AS_FILE) == VERSIONS
    assert all((stores.ROWS / f"{version:03d}.sql").exists() for version in AS_FILE.values())


@pytest.mark.parametrize("version", VERSIONS)
def test_a_migrated_database_equals_a_fresh_one_with_the_same_contents(
    postgres: Server, template: str, tmp_path: Path, version: int
) -> None:
    file = stores.old_file(tmp_path / "state.db", AS_FILE[version])
    url = old_database(postgres.database(), version, file)
    with (
        closing(PostgresStore(url, embedding_namespace=SPACE)) as migrated,
        closing(SQLiteStore(file, embedding_namespace=SPACE)) as same,
    ):
        assert migrated.health().ok
        # A database indexes a project anew when it is first used, a file does so when it is opened: so use it first.
        assert stores.answers(migrated) == stores.answers(same)
        assert stores.rows(migrated) == stores.rows(same)
        with migrated.read(HERE) as reader:
            same_secret = reader.secret == sha256(f"for tests/{HERE.project}".encode()).hexdigest()
            assert same_secret == (version >= SECRET_KEPT)
        in_database, in_file = (Engine(store, scope=Scope(stores.PROJECTS[0])).receipts.list() for store in (migrated, same))
        assert in_database == in_file
        assert bool(in_file) == (version >= LISTS_RECEIPTS)
        add(migrated, "Life goes on")
    assert shape(url) == shape(template)
    postgres.drop(url)
