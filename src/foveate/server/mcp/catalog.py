"""What the server says of itself, whoever asks: `catalog.json`, written by the server and read before it is there.

`python -m foveate.server.mcp.catalog` writes it anew, after any change to what is offered; a test compares the two.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from foveate import __version__

FILE = Path(__file__).with_name("catalog.json")

HANDSHAKES = ("2025-11-25", "2025-06-18", "2025-03-26")
"""Versions that begin with `initialize`, and are answered alike. Asked for another one, the server itself has to answer."""

WITHOUT = "2026-07-28"
"""The version that begins with any request: each names it in its `_meta`."""

VERSION = "io.modelcontextprotocol/protocolVersion"
LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")

Answers = dict[str, dict[str, Any]]
"""Results by method."""

_OWN_VERSION, _ANY_VERSION = f'"version": "{__version__}"', '"version": "*"'


def load() -> dict[str, Answers]:
    """Answers by version of the protocol."""
    found: dict[str, Answers] = json.loads(FILE.read_text("utf-8").replace(_ANY_VERSION, _OWN_VERSION))
    latest = found[HANDSHAKES[0]]
    for version in HANDSHAKES[1:]:
        found[version] = {**latest, "initialize": {**latest["initialize"], "protocolVersion": version}}
    return found


def asked(version: str) -> Answers:
    """What a server on no engine answers in one version, as it stands on the wire."""
    client = {"name": "foveate", "version": "0"}
    requests: dict[str, Any]
    if version == WITHOUT:
        meta = {VERSION: version, f"{VERSION.partition('/')[0]}/clientCapabilities": {}}
        requests = {method: {"_meta": meta} for method in ("server/discover", *LISTS)}
    else:
        hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
        requests = {"initialize": hello, **{method: {} for method in LISTS}}
    program = "from foveate.server.mcp import server; server(lambda: None).run('stdio')"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", program], stdin=pipe, stdout=pipe, text=True, bufsize=1) as process:
        return {method: _answer(process, method, params) for method, params in requests.items()}


def _answer(process: subprocess.Popen[str], method: str, params: Any) -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}) + "\n")
    found: dict[str, Any] = json.loads(process.stdout.readline())["result"]
    if method == "initialize":
        process.stdin.write('{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
    return found


if __name__ == "__main__":
    whole = {version: asked(version) for version in (HANDSHAKES[0], WITHOUT)}
    FILE.write_text(json.dumps(whole, ensure_ascii=False, indent=1).replace(_OWN_VERSION, _ANY_VERSION) + "\n", "utf-8")
