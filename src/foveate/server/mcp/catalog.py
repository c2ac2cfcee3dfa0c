"""The responses that are the same for every host: `catalog.json`, written by the server and read before it has started.

`python -m foveate.server.mcp.catalog` writes the file. Run it after any change to tools, resources or prompts; a test
compares the two.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from foveate import __version__

FILE = Path(__file__).with_name("catalog.json")

HANDSHAKE_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26")
"""Protocol versions that begin with `initialize`. All get the same answers; other versions are left to the server."""

STATELESS_VERSION = "2026-07-28"
"""The protocol version without a handshake: each request names it in its `_meta`."""

PROTOCOL_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")

Results = dict[str, dict[str, Any]]
"""Results by method."""

# The file holds no version number: otherwise each release would have to write it again.
_VERSION, _ANY_VERSION = f'"version": "{__version__}"', '"version": "*"'


def load() -> dict[str, Results]:
    """Return results by protocol version."""
    stored: dict[str, Results] = json.loads(FILE.read_text("utf-8").replace(_ANY_VERSION, _VERSION))
    first, stateless = stored[HANDSHAKE_VERSIONS[0]], stored[STATELESS_VERSION]
    catalog = {
        version: {**first, "initialize": {**first["initialize"], "protocolVersion": version}}
        for version in HANDSHAKE_VERSIONS
    }
    catalog[STATELESS_VERSION] = {method: {**first.get(method, {}), **result} for method, result in stateless.items()}
    return catalog


def server_results(version: str) -> Results:
    """Return the responses of a server without an engine in one protocol version."""
    client = {"name": "foveate", "version": "0"}
    requests: dict[str, Any]
    if version == STATELESS_VERSION:
        meta = {PROTOCOL_VERSION_KEY: version, f"{PROTOCOL_VERSION_KEY.partition('/')[0]}/clientCapabilities": {}}
        requests = {method: {"_meta": meta} for method in ("server/discover", *LISTS)}
    else:
        hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
        requests = {"initialize": hello, **{method: {} for method in LISTS}}
    program = "from foveate.server.mcp import create_server; create_server(lambda: None).run('stdio')"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", program], stdin=pipe, stdout=pipe, text=True, bufsize=1) as process:
        return {method: _request(process, method, params) for method, params in requests.items()}


def _request(process: subprocess.Popen[str], method: str, params: Any) -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}) + "\n")
    result: dict[str, Any] = json.loads(process.stdout.readline())["result"]
    if method == "initialize":
        process.stdin.write('{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
    return result


def _without_equal_parts(results: Results, others: Results) -> Results:
    """Return results without the parts that other results have, too: the tools are the same in each version."""
    return {
        method: {name: part for name, part in result.items() if others.get(method, {}).get(name) != part}
        for method, result in results.items()
    }


if __name__ == "__main__":
    first, stateless = server_results(HANDSHAKE_VERSIONS[0]), server_results(STATELESS_VERSION)
    catalog = {HANDSHAKE_VERSIONS[0]: first, STATELESS_VERSION: _without_equal_parts(stateless, first)}
    FILE.write_text(json.dumps(catalog, ensure_ascii=False, indent=1).replace(_VERSION, _ANY_VERSION) + "\n", "utf-8")
