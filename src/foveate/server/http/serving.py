"""A server process: a socket, the app on it, and an end in good order.

SIGTERM and Ctrl-C end it: streams of events are closed, requests at work are finished, receipts written, the service file
removed.
"""

from __future__ import annotations

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

import uvicorn

from foveate import __version__
from foveate.clock import iso, now
from foveate.engine import Engine
from foveate.errors import InputError
from foveate.integrations.hooks.service_file import PORT, Service, remove_service_file, write_service_file
from foveate.server.http.app import create_app
from foveate.server.http.settings import Settings

GRACE = 20
"""Seconds that requests have to finish."""

RATE = "600/minute"
"""Of one caller, where others than this machine's may call."""

BACKLOG = 1024


def run(
    engine: Engine, settings: Settings, port: int | None, file: Path, greet: Callable[[str], None] | None = None
) -> None:
    """Serve until told to stop; without a port, at the usual one or, where that is taken, at any.

    `greet` is told the address when somebody listens there; without it, the log is, and every request after it.
    """
    app = create_app(engine, settings=settings)
    settle()
    with _listening(settings.host, port) as listener:
        url = _url(settings.host, listener.getsockname()[1])
        write_service_file(file, Service(url, os.getpid(), __version__, iso(now()), settings.own_token))
        try:
            (greet or _begin_log)(url)
            config = uvicorn.Config(
                app, log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=GRACE, lifespan="on"
            )
            signal.signal(signal.SIGTERM, _ended)  # what uvicorn hands a signal on to when it is done
            with suppress(KeyboardInterrupt):
                Server(config, app.state.stopping).run(sockets=[listener])
        finally:
            remove_service_file(file)


def settle() -> None:
    """What is there when a service starts stays until it ends. The collector need not look at all of it again and again,
    in the middle of answers: that would take a tenth of a second each time."""
    gc.collect()
    gc.freeze()


class Server(uvicorn.Server):
    """A server that tells streams of events to end when it is told to stop."""

    def __init__(self, config: uvicorn.Config, stopping: Any) -> None:
        super().__init__(config)
        self._stopping = stopping

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._stopping.set()
        super().handle_exit(sig, frame)


def _ended(sig: int, frame: FrameType | None) -> None:
    return


def _listening(host: str, port: int | None) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, PORT if port is None else port), family=family, backlog=BACKLOG)
    except OSError as error:
        if port is None:
            return _listening(host, 0)
        raise InputError(
            f"Cannot listen at {host}:{port}: {error.strerror or error}. Choose another --host or --port."
        ) from None


def _url(host: str, port: int) -> str:
    """How this machine reaches it."""
    near = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{near}]:{port}" if ":" in near else f"http://{near}:{port}"


def _begin_log(url: str) -> None:
    """One line of JSON for everything that the process says."""
    logging.basicConfig(stream=sys.stderr, format="%(message)s", level=logging.WARNING, force=True)  # MCP sets up its own
    logger = logging.getLogger("foveate.http")
    logger.setLevel(logging.INFO)
    logger.info(json.dumps({"at": iso(now()), "message": f"foveate serves {url}", "url": url}))
