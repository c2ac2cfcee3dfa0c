"""What the MCP tests share: the official client, and `foveate mcp` as a command."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp import Client, MCPError, StdioServerParameters
from mcp.types import CallToolResult, Implementation

ROOT = Path(__file__).parents[2]
ERAS = ("auto", "legacy")
"""With and without a handshake: the two protocols that hosts speak."""

Reached = Any
"""A server in memory, a URL, or a command."""


def within(server: Reached, use: Callable[[Client], Any], mode: str = "auto", name: str = "test") -> Any:
    """What a connected client of that name gives."""

    async def run() -> Any:
        async with Client(server, mode=mode, client_info=Implementation(name=name, version="1")) as client:
            try:
                return await use(client)
            except MCPError as error:  # raised outside: in here it would come in a group of one
                return error

    found = asyncio.run(run())
    if isinstance(found, MCPError):
        raise found
    return found


def call(server: Reached, tool: str, mode: str = "auto", **arguments: Any) -> CallToolResult:
    found: CallToolResult = within(server, lambda client: client.call_tool(tool, arguments), mode)
    return found


def text(result: CallToolResult) -> str:
    """What the model reads of a result."""
    return "\n".join(part.text for part in result.content)  # type: ignore[union-attr]


def figures(result: CallToolResult) -> dict[str, Any]:
    """What the program beside it reads."""
    found: dict[str, Any] = (result.meta or {})["foveate/figures"]
    return found


@dataclass
class Command:
    """`foveate mcp`, to be started by a client or by hand."""

    folder: Path
    environment: dict[str, str]

    def parameters(self) -> StdioServerParameters:
        arguments = ["-m", "foveate", "mcp", "--store", str(self.folder)]
        return StdioServerParameters(command=sys.executable, args=arguments, env=self.environment, cwd=self.folder)

    def started(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "foveate", "mcp", "--store", str(self.folder), *arguments]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, cwd=self.folder, env=self.environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True, bufsize=1
        )
