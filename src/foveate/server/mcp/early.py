"""Answers a host's first questions while the server is still being loaded: hosts wait a second or two, then go on without.

Comes in: the host's stdin and stdout, and a function that makes the server. Goes out: the same conversation, with its
beginning told from the catalogue. Every line goes on to the server too, so that it misses nothing; what it says to a
question that is answered already is dropped. Standard library only.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from foveate.server.mcp.catalog import VERSION, load

if TYPE_CHECKING:
    from mcp.server import MCPServer

END = b"\n"
"""What no server says. Its pipe does not end with it: it keeps a hand on it for good."""


def serve(make: Callable[[], MCPServer]) -> None:
    """Run a server on stdio until the host closes it."""
    host_in, host_out = os.dup(0), os.dup(1)
    to_server, from_host = os.pipe()
    to_host, from_server = os.pipe()
    for end, stream in ((to_server, 0), (from_server, 1)):  # the server takes these for the host's
        os.dup2(end, stream)
        os.close(end)
    relay = Relay(host_out)
    threading.Thread(target=relay.listen, args=(host_in, from_host), daemon=True).start()
    telling = threading.Thread(target=relay.tell, args=(to_host,), daemon=True)
    telling.start()
    make().run("stdio")
    os.write(1, END)
    telling.join()


class Relay:
    """Lines to the server and back, and what was answered before it could."""

    def __init__(self, host_out: int) -> None:
        self._catalogue = load()
        self._version = ""
        self._early: set[str] = set()
        self._is_there = False
        self._lock = threading.Lock()
        self._host_out = host_out

    def listen(self, host_in: int, from_host: int) -> None:
        with os.fdopen(host_in, "rb") as lines, os.fdopen(from_host, "wb") as server:
            for line in lines:
                with self._lock:
                    answer = None if self._is_there else self._known(line)
                    if answer is not None:
                        self._early.add(_id(answer))
                        self._write(json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
                try:
                    server.write(line)
                    server.flush()
                except BrokenPipeError:
                    return  # the server is gone: it ended, or could not begin, and said why on stderr

    def tell(self, to_host: int) -> None:
        with os.fdopen(to_host, "rb") as lines:
            for line in lines:
                if line == END:
                    return
                with self._lock:
                    self._is_there = True
                    if not self._is_answered(line):
                        self._write(line)

    def _is_answered(self, line: bytes) -> bool:
        """Whether it is the server's own word on what was answered early; soon there are no more of those."""
        id = _id(json.loads(line)) if self._early else ""
        if id not in self._early:
            return False
        self._early.remove(id)
        return True

    def _known(self, line: bytes) -> dict[str, Any] | None:
        """The answer to a question that everybody gets the same answer to."""
        try:
            message = json.loads(line)
            params, method = message.get("params") or {}, message["method"]
            if method == "initialize":
                self._version = params["protocolVersion"]
            if "cursor" in params:
                return None
            version = params.get("_meta", {}).get(VERSION, self._version)
            return {"jsonrpc": "2.0", "id": message["id"], "result": self._catalogue[version][method]}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None  # the server knows

    def _write(self, line: bytes) -> None:
        while line:
            line = line[os.write(self._host_out, line) :]


def _id(message: dict[str, Any]) -> str:
    """An id as a text that tells 1 from "1"."""
    return json.dumps(message.get("id"))
