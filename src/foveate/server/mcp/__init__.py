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

EngineProvider = Callable[[], "Engine"]
"""Returns the engine for the current call: always the same, or that of the caller."""


def create_server(engine: Engine | EngineProvider) -> MCPServer:
    """Return a server for an engine. A function is called for each tool call, so that nothing is opened before."""
    try:
        from foveate.server.mcp.server import build_server
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("foveate"):
            raise
        raise InputError("MCP needs an optional package. Install it with `pip install foveate[mcp]`.") from None
    return build_server(engine if callable(engine) else lambda: engine)
