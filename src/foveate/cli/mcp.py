"""`foveate mcp`: serve the project to a model's host over MCP, on stdio or HTTP.

Hosts wait one or two seconds for a server, and importing the MCP package takes as long. On stdio the first requests are
therefore answered from a catalog while the server is loaded (`server/mcp/early.py`).
"""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING, Any

import click

from foveate.cli.call import Call, Verb, pass_call, say
from foveate.errors import InputError

if TYPE_CHECKING:
    from foveate.engine import Engine

PORT = 8766
HOST = "127.0.0.1"


@click.command(cls=Verb, scoped=True)
@click.option("--http", is_flag=True, help=f"Use streamable HTTP at http://{HOST}:PORT/mcp instead of stdio.")
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="Port for --http; 0: any free.")
@pass_call
def mcp(call: Call, http: bool, port: int) -> None:
    """Serve the project to a model's host over MCP.

    `claude mcp add foveate -- foveate mcp`. The store is opened when a tool is first called. HTTP is for this machine only.
    """
    from foveate.server.mcp import create_server

    engine = LazyEngine(call)
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, engine.close_and_exit)
    try:
        if http:
            _serve_http(create_server(engine), port)
        else:
            from foveate.server.mcp.early import serve

            serve(lambda: create_server(engine))
    finally:
        engine.close()


class LazyEngine:
    """The engine, opened when a tool first needs it. If that fails, the next tool tries again."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._lock = threading.Lock()
        self._engine: Engine | None = None

    def __call__(self) -> Engine:
        with self._lock:
            if self._engine is None:
                self._engine = self._call.engine(create=True)
            return self._engine

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()

    def close_and_exit(self, *_: object) -> None:
        """Write the receipts and exit. A normal exit would wait for the thread that reads stdin."""
        self.close()
        os._exit(0)


def _serve_http(server: Any, port: int) -> None:
    import asyncio
    import socket

    import uvicorn

    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen()
    except OSError as error:
        raise InputError(f"port {port} cannot be used: {error.strerror}. Choose another --port, or 0 for any.") from None
    say(f"MCP at http://{HOST}:{listener.getsockname()[1]}/mcp; press Ctrl-C to stop.")
    app = uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="warning"))
    asyncio.run(app.serve([listener]))


VERBS = {"mcp": mcp}
