"""Starts one server for the session. Each test gets a database of its own, copied from one that has the schema."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from foveate.store.postgres.store import PostgresStore
from postgres_server import Server


@pytest.fixture(scope="session")
def template(postgres: Server) -> str:
    url = postgres.database()
    PostgresStore(url).close()
    return url


@pytest.fixture
def url(postgres: Server, template: str) -> Iterator[str]:
    made = postgres.database(like=template)
    yield made
    postgres.drop(made)


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    opened = PostgresStore(url)
    yield opened
    opened.close()
