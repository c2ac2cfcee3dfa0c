"""`foveate mcp`: serve the project to a model's host over MCP, on stdio. `foveate serve` does it over HTTP.

Hosts wait one or two seconds for a server, and importing the MCP package takes as long. The first requests are therefore
answered from a catalog while the server is loaded (`server/mcp/early.py`).
"""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING

import click

from foveate.cli.call import Call, Verb, pass_call

if TYPE_CHECKING:
    from foveate.engine import Engine


@click.command(cls=Verb, scoped=True)
@pass_call
def mcp(call: Call) -> None:
    """Serve the project to a model's host over MCP.

    `claude mcp add foveate -- foveate mcp`. The store is opened when a tool is first called. `foveate serve` has the
    same over HTTP, at /mcp.
    """
    from foveate.server.mcp import create_server
    from foveate.server.mcp.early import serve

    engine = LazyEngine(call)
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, engine.close_and_exit)
    try:
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


VERBS = {"mcp": mcp}
