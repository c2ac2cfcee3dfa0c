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
from pathlib import Path
from types import FrameType
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from foveate import __version__
from foveate.clock import iso, now
from foveate.engine import Engine
from foveate.errors import InputError
from foveate.integrations.hooks.service_file import PORT, Service, remove_service_file, write_service_file
from foveate.server.http.app import create_app
from foveate.server.http.settings import Settings

SHUTDOWN_TIMEOUT_S = 20
"""How long the shutdown waits for running requests."""

HEADER_TIMEOUT_S = 10.0
"""How long a client may take to send the header of a request."""

RATE = "600/minute"
"""Default limit for one caller if other machines can reach the service."""

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
            config = uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                server_header=False,
                http=PromptH11Protocol,
                timeout_graceful_shutdown=SHUTDOWN_TIMEOUT_S,
                # The default, auto, would go on serving an app that failed to start.
                lifespan="on",
            )
            signal.signal(signal.SIGTERM, _ignore)  # uvicorn raises the signal again after its shutdown
            with suppress(KeyboardInterrupt):
                Server(config, app.state.stopping).run(sockets=[listener])
        finally:
            remove_service_file(file)


def freeze_gc() -> None:
    """Exclude all objects that exist now from garbage collection.

    They live as long as the service. To examine them all again takes a tenth of a second, in the middle of a request.
    """
    gc.collect()
    gc.freeze()


class PromptH11Protocol(H11Protocol):
    """Closes a connection whose request has no complete header in time. uvicorn itself limits idle connections only.

    Nobody has to sign in to send half a header, so thousands of them would hold every file descriptor.
    """

    _header_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch_header()

    def handle_events(self) -> None:
        super().handle_events()
        self._watch_header()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_watching()
        super().connection_lost(exc)

    def _watch_header(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._stop_watching()
        elif self._header_timer is None:
            self._header_timer = self.loop.call_later(HEADER_TIMEOUT_S, self.transport.close)

    def _stop_watching(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None


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
