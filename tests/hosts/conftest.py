"""Real hosts, against a model that is played: Claude Code and Codex, as their makers ship them.

Only for `pytest tests/hosts`: the first run installs both with npm, under build/hosts. They run in an environment and a home
of their own, and talk to the fake API. `claude(prompt)` and `codex(prompt)` are a turn; the next one continues the session.
What a test asserts on is what the API received.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_api import FakeAPI, serving
from host_cli import ROOT, Host, codex_settings, served

import foveate

INSTALLED = ROOT / "build" / "hosts"
PACKAGES = {"claude": "@anthropic-ai/claude-code", "codex": "@openai/codex"}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A plain `pytest` leaves this folder out."""
    return None if any("hosts" in argument for argument in config.args) else True


@pytest.fixture(scope="session")
def programs() -> dict[str, Path]:
    """Both hosts, installed once."""
    found = {name: INSTALLED / "node_modules" / ".bin" / name for name in PACKAGES}
    if not all(path.exists() for path in found.values()):
        if shutil.which("npm") is None:
            pytest.skip("npm is not installed")
        INSTALLED.mkdir(parents=True, exist_ok=True)
        install = ["npm", "install", "--prefix", str(INSTALLED), "--no-audit", "--no-fund", *PACKAGES.values()]
        subprocess.run(install, check=True, timeout=900, stdout=subprocess.DEVNULL)
    return found


@pytest.fixture
def fake_api() -> Iterator[FakeAPI]:
    with serving() as api:
        yield api


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    with foveate.open(folder) as engine:
        engine.add("decision", "Chose Postgres over ChromaDB for unified storage")
    return folder


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """An environment with nothing of this machine's but its programs."""
    home = tmp_path / "home"
    home.mkdir()
    node = Path(shutil.which("node") or "/usr/bin/node").parent
    return {"HOME": str(home), "PATH": f"{node}:/usr/bin:/bin", "TERM": "dumb", "PYTHONPATH": str(ROOT / "src")}


@pytest.fixture
def warm(project: Path, bare: dict[str, str]) -> Iterator[str]:
    """The URL of a server that is there already."""
    command = [sys.executable, "-m", "foveate", "serve", "--port", "0", "--store", str(project)]
    process = subprocess.Popen(command, env=bare, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    yield f"{json.loads(process.stderr.readline())['url']}/mcp"
    process.terminate()
    process.communicate(timeout=30)


@pytest.fixture(params=["http", "stdio"])
def reached(request: pytest.FixtureRequest, project: Path) -> dict[str, Any]:
    """How a host reaches the server: over HTTP or as a command."""
    return served(project) if request.param == "stdio" else {"type": "http", "url": request.getfixturevalue("warm")}


@pytest.fixture
def claude(programs: dict[str, Path], fake_api: FakeAPI, project: Path, bare: dict[str, str]) -> Host:
    """Claude Code. Settings are `.claude/settings.json` below its home, MCP servers `mcp.json`."""
    home = Path(bare["HOME"])
    environment = {
        **bare,
        "ANTHROPIC_BASE_URL": fake_api.url,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    options = [
        "-p", "--output-format", "stream-json", "--verbose", "--strict-mcp-config", f"--mcp-config={home / 'mcp.json'}",
        "--allowedTools=mcp__foveate",
    ]  # fmt: skip
    host = Host(programs["claude"], home, project, environment, options, ["--continue"])
    host.write("mcp.json", {"mcpServers": {}})
    return host


@pytest.fixture
def codex(programs: dict[str, Path], fake_api: FakeAPI, project: Path, bare: dict[str, str]) -> Host:
    """Codex. Its settings are `.codex/config.toml` below its home; `codex_settings` gives those that reach the fake API."""
    home = Path(bare["HOME"])
    host = Host(
        programs["codex"], home, project, {**bare, "FAKE_KEY": "none"}, ["exec", "--skip-git-repo-check", "--json"],
        ["resume", "--last"],
    )  # fmt: skip
    host.write(".codex/config.toml", codex_settings(fake_api))
    return host
