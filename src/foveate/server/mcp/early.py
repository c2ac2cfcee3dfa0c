"""Answers a host's first requests while the MCP server is still being loaded. Hosts wait one or two seconds, then go on.

The relay stands between the host and the server. It answers the first requests from the catalog and passes every line on to
the server as well, so that the server misses nothing; the server's own response to such a request is dropped. Standard
library only.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from foveate.server.mcp.catalog import PROTOCOL_VERSION_KEY, load

if TYPE_CHECKING:
    from mcp.server import MCPServer

END_MARKER = b"\n"
"""A line that no server sends. It ends the relay, because the pipe does not: the server never closes its end."""


def serve(make_server: Callable[[], MCPServer]) -> None:
    """Run a server on stdio until the host closes it."""
    host_in, host_out = os.dup(0), os.dup(1)
    to_server, from_host = os.pipe()
    to_host, from_server = os.pipe()
    for end, stream in ((to_server, 0), (from_server, 1)):  # the server reads and writes these instead of the host's
        os.dup2(end, stream)
        os.close(end)
    relay = Relay(host_out)
    threading.Thread(target=relay.forward_to_server, args=(host_in, from_host), daemon=True).start()
    to_host_thread = threading.Thread(target=relay.forward_to_host, args=(to_host,), daemon=True)
    to_host_thread.start()
    make_server().run("stdio")
    os.write(1, END_MARKER)
    to_host_thread.join()


class Relay:
    """Passes lines between host and server, and answers for the server until it has started."""

    def __init__(self, host_out: int) -> None:
        self._catalog = load()
        self._version = ""
        self._answered: set[str] = set()
        self._has_started = False
        self._lock = threading.Lock()
        self._host_out = host_out

    def forward_to_server(self, host_in: int, from_host: int) -> None:
        with os.fdopen(host_in, "rb") as lines, os.fdopen(from_host, "wb") as server:
            for line in lines:
                with self._lock:
                    response = None if self._has_started else self._catalog_response(line)
                    if response is not None:
                        self._answered.add(_id(response))
                        self._write(json.dumps(response, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
                try:
                    server.write(line)
                    server.flush()
                except BrokenPipeError:
                    return  # the server ended, or could not start and said why on stderr

    def forward_to_host(self, to_host: int) -> None:
        with os.fdopen(to_host, "rb") as lines:
            for line in lines:
                if line == END_MARKER:
                    return
                with self._lock:
                    self._has_started = True
                    if not self._is_duplicate(line):
                        self._write(line)

    def _is_duplicate(self, line: bytes) -> bool:
        """Return whether the relay has already answered the request that this line responds to."""
        id = _id(json.loads(line)) if self._answered else ""
        if id not in self._answered:
            return False
        self._answered.remove(id)
        return True

    def _catalog_response(self, line: bytes) -> dict[str, Any] | None:
        """Return the response to a request whose response is the same for every host."""
        try:
            message = json.loads(line)
            params, method = message.get("params") or {}, message["method"]
            if method == "initialize":
                self._version = params["protocolVersion"]
            if "cursor" in params:
                return None
            version = params.get("_meta", {}).get(PROTOCOL_VERSION_KEY, self._version)
            return {"jsonrpc": "2.0", "id": message["id"], "result": self._catalog[version][method]}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None  # left to the server

    def _write(self, line: bytes) -> None:
        while line:
            line = line[os.write(self._host_out, line) :]


def _id(message: dict[str, Any]) -> str:
    """Return an id as text that distinguishes 1 from "1"."""
    return json.dumps(message.get("id"))
