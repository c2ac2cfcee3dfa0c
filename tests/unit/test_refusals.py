"""Refusals of a real PostgreSQL server become errors that say what to do, with the exit code of their class."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import psycopg
import pytest

from foveate.errors import Denied, FoveateError, InputError, StoreError
from foveate.store.postgres.errors import translate_errors
from postgres_server import LocalServer, server

RULES = "local all ada scram-sha-256\nlocal all postgres trust\nlocal all locked trust\nlocal all gone trust\n"


@pytest.fixture(scope="module")
def auth_server() -> Iterator[LocalServer]:
    with server() as running:
        running.execute("create role ada login password 'right'")
        running.execute("create role locked")
        (running.folder / "data" / "pg_hba.conf").write_text(RULES)
        running.restart()
        yield running


def error_of(url: str, statement: str = "select 1") -> FoveateError:
    with (
        pytest.raises(FoveateError) as caught,
        translate_errors(url),
        psycopg.connect(url, connect_timeout=60) as connection,
    ):
        connection.execute(statement.encode())
    return caught.value


@pytest.mark.slow
@pytest.mark.parametrize(
    ("user", "database", "statement", "sort", "advice"),
    [
        ("ada:s3cret", "postgres", "", Denied, "password is wrong. Check the URL, PGPASSWORD or ~/.pgpass"),
        ("ada", "postgres", "", Denied, "wants a password"),
        ("locked", "postgres", "", Denied, "may not log in"),
        ("eve", "postgres", "", Denied, "pg_hba.conf has no entry"),
        ("gone", "postgres", "", Denied, "no such role"),
        ("postgres:s3cret", "nope", "", StoreError, "no such database. Create it"),
        ("ada:right", "postgres", "create schema foveate", Denied, "foveate init --grant ROLE"),
        ("ada:right", "postgres", "create extension vector", StoreError, "have a superuser run `create extension vector`"),
        ("postgres", "postgres", "select * from nowhere", StoreError, 'relation "nowhere" does not exist'),
    ],
)
def test_refusal_of_a_server_becomes_an_error_with_advice(
    auth_server: LocalServer, user: str, database: str, statement: str, sort: type[FoveateError], advice: str
) -> None:
    error = error_of(
        f"postgresql://{user}@/{database}?host={quote(str(auth_server.folder), safe='')}", statement or "select 1"
    )
    assert type(error) is sort
    assert advice in str(error)
    assert "s3cret" not in str(error)
    assert error.exit_code == (4 if sort is Denied else 1)


@pytest.mark.parametrize(
    ("url", "sort", "advice"),
    [
        ("postgresql://ada:s3cret@127.0.0.1:1/shop", StoreError, "nothing listens there. Start the server"),
        ("postgresql://ada:s3cret@/shop?host=%2Fno%2Fsocket", StoreError, "nothing listens at that socket"),
        ("postgresql://ada:s3cret@127.0.0.1/shop?nope=1", InputError, "Write postgresql://"),
        ("postgresql://ada:s3cret@ho st/shop", InputError, "Write postgresql://"),
    ],
)
def test_missing_server_or_bad_url_becomes_an_error_with_advice(url: str, sort: type[FoveateError], advice: str) -> None:
    error = error_of(url)
    assert type(error) is sort
    assert advice in str(error)
    assert "s3cret" not in str(error)


def test_an_unknown_host_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(*_: object, **__: object) -> None:  # tests reach no name server
        raise OSError(-2, "Name or service not known")

    monkeypatch.setattr("socket.getaddrinfo", resolve)
    assert "there is no host of that name" in str(error_of("postgresql://ada:s3cret@db.invalid/shop"))


def test_server_that_shuts_down_is_reported(auth_server: LocalServer) -> None:
    with psycopg.connect(auth_server.url) as connection:
        auth_server.kill()
        with (
            pytest.raises(StoreError, match=r"terminating connection|closed the connection"),
            translate_errors(auth_server.url),
        ):
            connection.execute("select 1")
    auth_server.start()
