"""Notices a PostgreSQL server that accepts queries and never answers: a stopped process, a host behind a broken network.

A query may take long on a server that is well. So when an answer is late, the server is asked on a second connection whether
it still takes requests, and only silence there ends the wait. A service needs this, because its callers wait, too.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Generator
from time import monotonic
from typing import Any

import psycopg

MAX_SILENCE_S = 1.0
"""How long to wait for a part of an answer before the server is asked whether it still takes requests."""

PING_TIMEOUT_S = 1.0

SSL_REQUEST = struct.pack("!ii", 8, 80877103)
"""The shortest request of PostgreSQL's protocol. A server answers with one byte, before it asks who is there."""


class ServerSilent(psycopg.OperationalError):
    """The server keeps its connections and answers nothing."""


class WatchedConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that is given up when its server has become silent. Raises `ServerSilent` then."""

    def wait(self, gen: Generator[Any, Any, Any], *args: Any, **options: Any) -> Any:
        return super().wait(self._watch(gen), *args, **options)

    def _watch(self, operation: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Run an operation of the driver, which is told every tenth of a second that there is nothing to read."""
        heard = monotonic()
        try:
            wanted = next(operation)
            while True:
                ready = yield wanted
                if ready:
                    heard = monotonic()
                elif monotonic() - heard > MAX_SILENCE_S:
                    self._refuse_silence()
                    heard = monotonic()
                wanted = operation.send(ready)
        except StopIteration as end:
            return end.value

    def _refuse_silence(self) -> None:
        if not takes_requests(self.pgconn.hostaddr or self.pgconn.host, self.pgconn.port):
            self.pgconn.finish()  # a rollback on it would have to wait as well
            raise ServerSilent("the server does not answer")


def takes_requests(host: bytes, port: bytes) -> bool:
    """Return whether a server answers to anything. One that refuses connections is not silent: the caller learns of that."""
    address = host.decode()
    try:
        if address.startswith("/"):
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(PING_TIMEOUT_S)
            connection.connect(f"{address}/.s.PGSQL.{port.decode()}")
        else:
            connection = socket.create_connection((address, int(port)), timeout=PING_TIMEOUT_S)
        with connection:
            connection.settimeout(PING_TIMEOUT_S)
            connection.sendall(SSL_REQUEST)
            connection.recv(1)
    except TimeoutError:
        return False
    except (OSError, ValueError):
        return True
    return True
