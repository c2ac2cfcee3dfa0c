"""Why a PostgreSQL server does not let us in, or not do something, as our errors: at which server, and what to do.

Comes in: an error of the driver and the URL. Goes out: an error of ours, in which no password is shown. While a connection
is made, the driver knows no error codes, only the server's words; words that are not known here are passed on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from foveate.errors import Denied, FoveateError, InputError, StoreError
from foveate.store.database_url import mask_passwords

if TYPE_CHECKING:
    import psycopg

WORDS: tuple[tuple[str, type[StoreError], str], ...] = (
    ("password authentication failed", Denied, "the password is wrong. Check the URL, PGPASSWORD or ~/.pgpass"),
    ("no password supplied", Denied, "it wants a password. Put it into PGPASSWORD, ~/.pgpass or the URL"),
    ("is not permitted to log in", Denied, "the role may not log in. Its owner can change that: `alter role ... login`"),
    ("no pg_hba.conf entry", Denied, "its pg_hba.conf has no entry for this user, database and address. Have one added"),
    ('role "', Denied, "there is no such role. Create it on the server, or name another user in the URL"),
    ('database "', StoreError, "there is no such database. Create it (`createdb`), or name another in the URL"),
    ("session is read-only", StoreError, "none of its servers takes writes. Try again once one has taken over"),
    ("hot standby mode", StoreError, "none of its servers takes writes. Try again once one has taken over"),
    ("failed to resolve host", StoreError, "there is no host of that name. Check the URL"),
    ("no such file or directory", StoreError, "nothing listens at that socket. Start the server, or check the URL"),
    ("connection refused", StoreError, "nothing listens there. Start the server, or check host and port in the URL"),
    ("timeout", StoreError, "it does not answer. Check the network, and host and port in the URL"),
    ("too many clients", StoreError, "it has no connection left. Try again, or raise its max_connections"),
    ("starting up", StoreError, "it is starting. Try again in a moment"),
)
"""What a server or the driver says while connecting, the error that it is, and what to do; the first that fits."""

PASSING = (
    *("no such file or directory", "connection refused", "timeout", "session is read-only", "hot standby mode"),
    *("too many clients", "starting up", "shutting down", "closed the connection"),
)
"""What is said while a server is away and may come back, or another take its place."""

NO_URL = ("invalid URI", "unexpected spaces", "percent-encoded")
"""What the driver says of text that is no URL of its kind."""

NOT_ALLOWED = "42501"
NO_VECTORS = (
    "it has no pgvector. Install it where the server runs (package postgresql-NN-pgvector), then have a superuser run "
    "`create extension vector` in this database"
)


def refusal(error: psycopg.Error, url: str) -> FoveateError | None:
    """A refusal that we know, as an error of ours."""
    said = _said(error)
    where = f"The store {mask_passwords(url)!r}"
    if any(words in said for words in NO_URL):
        return InputError(f"{where} is no URL that PostgreSQL understands. Write postgresql://USER@HOST:PORT/DATABASE.")
    if 'extension "vector"' in said:
        return StoreError(f"{where} cannot be used: {NO_VECTORS}.")
    if error.sqlstate == NOT_ALLOWED:
        return Denied(f"{where} refuses: {said}. Its owner can allow it: `foveate init --grant ROLE --project NAME`.")
    if error.sqlstate is None:
        whole = str(error).lower()  # of several servers, each says something
        for words, sort, advice in WORDS:
            if words in whole:
                return sort(f"{where} cannot be opened: {advice}.")
    return None


def may_pass(error: psycopg.Error) -> bool:
    """Whether no server could be reached that takes writes, and one may be in a moment."""
    whole = str(error).lower()
    denied = any(sort is Denied and words in whole for words, sort, _ in WORDS)
    return not denied and any(words in whole for words in PASSING)


@contextmanager
def explained(url: str) -> Iterator[None]:
    """The driver's errors as ours."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        raise refusal(error, url) or StoreError(f"The store {mask_passwords(url)!r}: {_said(error)}.") from error


def _said(error: psycopg.Error) -> str:
    """The server's first line, without what the driver says around it."""
    first = next(iter(str(error).strip().splitlines()), type(error).__name__)
    return first.rpartition("failed: ")[2].removeprefix("FATAL:").strip().rstrip(".")
