"""The PostgreSQL store passes the conformance suite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from conformance import StoreConformance
from foveate.store.postgres.store import PostgresStore
from foveate.store.protocol import Store
from foveate.store.sqlite.store import SQLiteStore
from postgres_server import Server


@pytest.fixture(scope="module")
def template(postgres: Server) -> str:
    """Return an empty database with the schema. Copying it is faster than migrating for each test."""
    url = postgres.database()
    PostgresStore(url).close()
    return url


class TestPostgres(StoreConformance):
    @pytest.fixture(autouse=True)
    def databases(self, postgres: Server, template: str) -> Iterator[None]:
        self.server, self.template, self.urls = postgres, template, dict[Path, str]()
        yield
        for url in self.urls.values():
            postgres.drop(url)

    def open_store(self, tmp_path: Path, **options: Any) -> Store:
        """Open a store on a database of its own for each folder."""
        if tmp_path not in self.urls:
            self.urls[tmp_path] = self.server.database(like=self.template)
            with psycopg.connect(self.urls[tmp_path]) as connection:  # as if it were made anew
                connection.execute("update foveate.meta set value = random()::text where name = 'secret'")
        return PostgresStore(self.urls[tmp_path], **options)

    def open_backup(self, path: Path) -> Store:
        return SQLiteStore(path, create=False)
