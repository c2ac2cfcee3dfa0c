"""The MCP server: tools, resources and a prompt that a model's host can call.

The server is one of the official package, for stdio, HTTP or tests. Importing this package loads neither `mcp` nor the
engine, so that `early` can answer a host at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from foveate.errors import InputError

if TYPE_CHECKING:
    from mcp.server import MCPServer

    from foveate.engine import Engine

Opens = Callable[[], "Engine"]
"""Gives the engine of the call at hand: the same each time, or that of whoever asks."""


def server(engine: Engine | Opens) -> MCPServer:
    """A server on an engine. A function is asked at each call, so that nothing is opened before a tool needs it."""
    try:
        from foveate.server.mcp.server import offer
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("foveate"):
            raise
        raise InputError("MCP needs its package: install it with `pip install foveate[mcp]`.") from None
    return offer(engine if callable(engine) else lambda: engine)
