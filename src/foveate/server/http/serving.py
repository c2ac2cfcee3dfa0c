"""The server process: binds a socket, serves the app and shuts down in order.

On SIGTERM or Ctrl-C, event streams are closed, running requests are finished, receipts are written, and the service file is
removed.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from math import inf
from pathlib import Path
from types import FrameType
from typing import Any

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from foveate import __version__
from foveate.clock import iso, now
from foveate.engine import Engine
from foveate.errors import InputError
from foveate.integrations.hooks.service_file import PORT, Service, remove_service_file, write_service_file
from foveate.server.http.app import create_app
from foveate.server.http.settings import Settings

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

SHUTDOWN_TIMEOUT_S = 20
"""How long the shutdown waits for running requests."""

HEADER_TIMEOUT_S = 10.0
"""How long a client may take to send the header of a request."""

RATE = "600/minute"
"""Default limit for one caller if other machines can reach the service."""

READ_TIMEOUT_S = 60.0
"""How long a client may read nothing of what was written to it."""

MAX_CONNECTIONS = 1000
"""Open connections. Above that, requests are answered with status 503 and their connections closed."""

CROWDED_SHARE = 0.75
"""Share of the connections above which each new one replaces the one that waits for its client longest: for the rest of a
request, or until it reads its answer."""

RESERVED_FILES = 256
"""File descriptors that connections leave to the store, the logs and outgoing requests."""

BACKLOG = 1024


def run(
    engine: Engine, settings: Settings, port: int | None, file: Path, on_ready: Callable[[str], None] | None = None
) -> None:
    """Serve until a signal ends the process. Without a port, use the default one, or any free one if it is taken.

    `on_ready` is called with the URL when the service can be reached. Without it, the URL and all requests are logged.
    """
    app = create_app(engine, settings=settings)
    freeze_gc()
    with _bind(settings.host, port) as listener:
        url = _url(settings.host, listener.getsockname()[1])
        write_service_file(file, Service(url, os.getpid(), __version__, iso(now()), settings.own_token))
        try:
            (on_ready or _start_log)(url)
            signal.signal(signal.SIGTERM, _ignore)  # uvicorn raises the signal again after its shutdown
            with suppress(KeyboardInterrupt):
                Server(make_config(app), app.state.stopping).run(sockets=[listener])
        finally:
            remove_service_file(file)


def freeze_gc() -> None:
    """Exclude all objects that exist now from garbage collection.

    They live as long as the service. To examine them all again takes a tenth of a second, in the middle of a request.
    """
    gc.collect()
    gc.freeze()


class PromptH11Protocol(H11Protocol):
    """Closes connections whose client keeps the service waiting: for a request, or until it reads the answer.

    uvicorn itself limits idle connections only. Nobody has to sign in to send half a header, so thousands of them would hold
    every file descriptor.
    """

    _timer: asyncio.TimerHandle | None = None
    _waiting_since = inf

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()
        self._close_longest_waiting()

    def handle_events(self) -> None:
        super().handle_events()
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Note since when the service waits for the client, and limit that time. Single bytes do not prolong it."""
        is_incomplete = self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
        if not is_incomplete and not self.flow.write_paused:
            self._waiting_since = inf
        elif self._waiting_since == inf:
            self._waiting_since = self.loop.time()
        # The middleware limits the body of a request that has no answer yet, and says so in its answer.
        has_no_other_limit = self.conn.their_state is h11.IDLE or self.conn.our_state is h11.DONE
        if self.flow.write_paused:
            self._start_timer(READ_TIMEOUT_S, self._close_unless_read, self.transport.get_write_buffer_size())
        elif is_incomplete and has_no_other_limit:
            self._start_timer(HEADER_TIMEOUT_S, self.transport.abort)
        else:
            self._stop_timer()

    def _start_timer(self, seconds: float, action: Callable[..., None], *args: int) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(seconds, action, *args)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close_unless_read(self, unread: int) -> None:
        self._timer = None
        if self.transport.get_write_buffer_size() < unread:
            self._watch()
        else:
            self.transport.abort()

    def _close_longest_waiting(self) -> None:
        """Close the connection that keeps the service waiting longest, if there are many.

        The newest is not refused instead: an honest client sends its request at once, but only if it is let in.
        """
        if not self.limit_concurrency or len(self.connections) <= CROWDED_SHARE * self.limit_concurrency:
            return
        others = [each for each in self.connections if isinstance(each, PromptH11Protocol) and each is not self]
        waiting = [each for each in others if each._waiting_since < inf]
        if waiting:
            longest = min(waiting, key=lambda each: each._waiting_since)
            longest._waiting_since = inf  # it is closed soon, but further connections may be made before
            longest.transport.abort()


def make_config(app: FastAPI) -> uvicorn.Config:
    """Return uvicorn's configuration, with the limits for clients that are slow or many."""
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        http=PromptH11Protocol,
        backlog=BACKLOG,
        limit_concurrency=_max_connections(),
        timeout_graceful_shutdown=SHUTDOWN_TIMEOUT_S,
        # The default, auto, would go on serving an app that failed to start.
        lifespan="on",
    )


def _max_connections() -> int:
    """Return how many connections may be open before further requests are refused: fewer if files are scarce."""
    files = _raise_file_limit() if resource is not None else MAX_CONNECTIONS + RESERVED_FILES
    return max(1, min(MAX_CONNECTIONS, files - RESERVED_FILES))


def _raise_file_limit() -> int:
    """Return how many files this process may open, after raising that to what all connections need, if it is allowed."""
    needed = MAX_CONNECTIONS + BACKLOG + RESERVED_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return needed
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


class Server(uvicorn.Server):
    """A server that ends event streams when a signal arrives: they would never end by themselves."""

    def __init__(self, config: uvicorn.Config, stopping: Any) -> None:
        super().__init__(config)
        self._stopping = stopping

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._stopping.set()
        super().handle_exit(sig, frame)


def _ignore(sig: int, frame: FrameType | None) -> None:
    return


def _bind(host: str, port: int | None) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, PORT if port is None else port), family=family, backlog=BACKLOG)
        # asyncio does this only for sockets that name their protocol. Without it, each request on an open connection waits
        # 40 ms for the client's acknowledgement.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except OSError as error:
        # The default port may belong to the service of another project. Clients read the port from the service file.
        if port is None:
            return _bind(host, 0)
        raise InputError(
            f"Cannot listen at {host}:{port}: {error.strerror or error}. Choose another --host or --port."
        ) from None


def _url(host: str, port: int) -> str:
    """Return the URL under which programs on this machine reach the service."""
    local = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{local}]:{port}" if ":" in local else f"http://{local}:{port}"


def _start_log(url: str) -> None:
    """Log to stderr as lines of JSON."""
    logging.basicConfig(
        stream=sys.stderr, format="%(message)s", level=logging.WARNING, force=True
    )  # replaces the handlers that MCP sets up
    logger = logging.getLogger("foveate.http")
    logger.setLevel(logging.INFO)
    logger.info(json.dumps({"at": iso(now()), "message": f"foveate serves {url}", "url": url}))
