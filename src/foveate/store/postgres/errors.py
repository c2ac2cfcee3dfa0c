"""Translates the errors of the PostgreSQL driver into foveate's: which server, what is wrong, and what to do.

No message shows a password. While a connection is made, the driver reports no error codes, so errors are recognized by their
words. Messages that are not known here are passed on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg_pool import PoolTimeout

from foveate.errors import Busy, Denied, FoveateError, InputError, Interrupted, StoreError
from foveate.store.database_url import mask_passwords
from foveate.store.postgres.silence import ServerSilent

CONNECT_ERRORS: tuple[tuple[str, type[StoreError], str], ...] = (
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
    ("too many clients", StoreError, "it has no free connection. Try again, or raise its max_connections"),
    ("starting up", StoreError, "it is starting. Try again in a moment"),
)
"""Words of errors while connecting, the error that each becomes, and what to do. The first match counts."""

TRANSIENT_ERRORS = (
    *("no such file or directory", "connection refused", "timeout", "session is read-only", "hot standby mode"),
    *("too many clients", "starting up", "shutting down", "closed the connection"),
)
"""Words of errors that may be over in a moment: the server comes back, or another one takes over."""

INVALID_URL_ERRORS = ("invalid URI", "unexpected spaces", "percent-encoded")
"""Words of errors about a text that is not a PostgreSQL URL."""

CONNECTION_LOST_SQLSTATES = ("08", "57P")
"""Classes of errors with which a server ends a connection."""

TOO_MANY_CONNECTIONS_SQLSTATE = "53300"
PERMISSION_DENIED_SQLSTATE = "42501"
LOCK_TIMEOUT_SQLSTATE = "55P03"

READ_ONLY_SQLSTATE = "25006"
"""A standby answers a write with it."""

RETRYABLE_SQLSTATES = ("40001", "40P01")
"""Serialization failures and deadlocks. The transaction was rolled back, and the next attempt may succeed."""

NO_PGVECTOR_MESSAGE = (
    "it has no pgvector. Install it where the server runs (package postgresql-NN-pgvector), then have a superuser run "
    "`create extension vector` in this database"
)

INTERRUPTED_MESSAGE = "{shown!r}: {why}; nothing was written. Try again."

_MESSAGES_BY_SQLSTATE = {
    "25P03": "{shown!r}: a transaction was idle for too long and was ended. Nothing was changed.",
    "53100": "The disk of {shown!r} is full. Nothing was changed; make room and try again.",
    "54000": "{shown!r}: a name, key or subject is longer than the 2,700 bytes that PostgreSQL can index ({error}).",
    "57014": "{shown!r}: a query took too long and was ended. Nothing was changed.",
}


def translate_error(error: psycopg.Error, url: str) -> FoveateError:
    """Return foveate's error for an error of the driver."""
    shown = mask_passwords(url)
    first_line = str(error).strip().split("\n")[0]
    state = error.sqlstate or ""
    if refusal := _translate_refusal(error, shown):
        return refusal
    if isinstance(error, ServerSilent):
        return StoreError(f"{shown!r} does not answer. Nothing was changed. Try again, or look whether its server is well.")
    if isinstance(error, PoolTimeout):
        return StoreError(f"{shown!r} cannot be reached, or all connections to it are in use. Try again.")
    if state == LOCK_TIMEOUT_SQLSTATE:
        return Busy(f"{shown!r} is busy: another process has been writing to the same project for long. Try again.")
    if state in _MESSAGES_BY_SQLSTATE:
        return StoreError(_MESSAGES_BY_SQLSTATE[state].format(shown=shown, error=first_line))
    if state == READ_ONLY_SQLSTATE:
        return Denied(
            f"{shown!r} takes no writes: it is a standby. Read from it, or name every server in the URL: "
            "postgresql://USER@ONE,OTHER/DATABASE finds the one that does."
        )
    if state in RETRYABLE_SQLSTATES:
        return Interrupted(INTERRUPTED_MESSAGE.format(shown=shown, why=first_line))
    if is_connection_lost(error):
        return Interrupted(INTERRUPTED_MESSAGE.format(shown=shown, why=f"the connection was lost ({first_line})"))
    if isinstance(error, psycopg.DataError):
        return InputError(f"PostgreSQL cannot store or compare that value: {first_line}.")
    return StoreError(f"{shown!r}: {_server_message(error)}.")


@contextmanager
def translate_errors(url: str) -> Iterator[None]:
    """Translate the driver's errors inside a block."""
    try:
        yield
    except psycopg.Error as error:
        raise translate_error(error, url) from error


def is_connection_lost(error: psycopg.Error) -> bool:
    """Return whether the connection is gone, so that another one may succeed."""
    if isinstance(error, PoolTimeout) or not isinstance(error, psycopg.OperationalError):
        return False
    state = error.sqlstate
    return state is None or state.startswith(CONNECTION_LOST_SQLSTATES) or state == TOO_MANY_CONNECTIONS_SQLSTATE


def is_transient(error: psycopg.Error) -> bool:
    """Return whether no server that takes writes could be reached, but one may be in a moment."""
    message = str(error).lower()
    is_denied = any(sort is Denied and words in message for words, sort, _ in CONNECT_ERRORS)
    return not is_denied and any(words in message for words in TRANSIENT_ERRORS)


def _translate_refusal(error: psycopg.Error, shown: str) -> FoveateError | None:
    """Translate an error by which a server refuses the connection, the role or the database."""
    message = _server_message(error)
    store = f"The store {shown!r}"
    if any(words in message for words in INVALID_URL_ERRORS):
        return InputError(f"{store} is not a URL that PostgreSQL understands. Write postgresql://USER@HOST:PORT/DATABASE.")
    if 'extension "vector"' in message:
        return StoreError(f"{store} cannot be used: {NO_PGVECTOR_MESSAGE}.")
    if error.sqlstate == PERMISSION_DENIED_SQLSTATE:
        return Denied(f"{store} refuses: {message}. Its owner can allow it: `foveate init --grant ROLE --project NAME`.")
    if error.sqlstate is None:
        # If a URL names several servers, the message holds the words of each of them.
        all_lines = str(error).lower()
        for words, sort, advice in CONNECT_ERRORS:
            if words in all_lines:
                return sort(f"{store} cannot be opened: {advice}.")
    return None


def _server_message(error: psycopg.Error) -> str:
    """Return the first line of a message, without the driver's words around it."""
    lines = str(error).strip().splitlines()
    message = lines[0] if lines else type(error).__name__
    return message.rpartition("failed: ")[2].removeprefix("FATAL:").strip().rstrip(".")
