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

from foveate.cli.call import Call, Verb, pass_call, say, scoped
from foveate.errors import InputError

if TYPE_CHECKING:
    from foveate.engine import Engine

PORT = 8766
HOST = "127.0.0.1"


@click.command(cls=Verb)
@click.option("--http", is_flag=True, help=f"Streamable HTTP at http://{HOST}:PORT/mcp, instead of stdio.")
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="For --http; 0: any free one.")
@scoped
@pass_call
def mcp(call: Call, http: bool, port: int, **scope: Any) -> None:
    """Serve the project to a model's host over MCP.

    `claude mcp add foveate -- foveate mcp`. The store is opened when a tool is first called. HTTP is for this machine only.
    """
    from foveate.server.mcp import create_server

    opened = Opened(call, scope)
    for ended in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ended, opened.leave)
    try:
        if http:
            _serve(create_server(opened), port)
        else:
            from foveate.server.mcp.early import serve

            serve(lambda: create_server(opened))
    finally:
        opened.close()


class Opened:
    """The engine, opened when it is first asked for; where that fails, whoever asks next tries again."""

    def __init__(self, call: Call, scope: dict[str, Any]) -> None:
        self._call, self._scope = call, scope
        self._lock = threading.Lock()
        self._engine: Engine | None = None

    def __call__(self) -> Engine:
        with self._lock:
            if self._engine is None:
                self._engine = self._call.engine(**self._scope, create=True)
            return self._engine

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()

    def leave(self, *_: object) -> None:
        """End at once: receipts are written, and nobody waits for a thread that waits for stdin."""
        self.close()
        os._exit(0)


def _serve(offered: Any, port: int) -> None:
    import asyncio
    import socket

    import uvicorn

    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
        listening.listen()
    except OSError as error:
        raise InputError(f"port {port} cannot be used: {error.strerror}. Choose another --port, or 0 for any.") from None
    say(f"MCP at http://{HOST}:{listening.getsockname()[1]}/mcp; Ctrl-C ends it.")
    app = uvicorn.Server(uvicorn.Config(offered.streamable_http_app(), log_level="warning"))
    asyncio.run(app.serve([listening]))


VERBS = {"mcp": mcp}
