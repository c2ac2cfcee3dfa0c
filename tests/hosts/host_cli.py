"""A host's command line, how it is told of our server, and ours beside it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fake_api import FakeAPI

ROOT = Path(__file__).parents[2]
SECONDS = 180


@dataclass
class Host:
    """A host's command line in its own home, in a project's folder."""

    program: Path
    home: Path
    folder: Path
    environment: dict[str, str]
    options: list[str]
    again: list[str]
    """What stands before the prompt of a second turn, to continue the session."""
    turns: int = 0

    def __call__(self, prompt: str, *more: str) -> list[dict[str, Any]]:
        """One turn; what the host tells of it, as JSON."""
        continued = self.again if self.turns else []
        self.turns += 1
        command = [str(self.program), *self.options, *continued, *more, prompt]
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=SECONDS, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    def write(self, path: str, content: Any) -> None:
        """A file of settings below the home: text, or what becomes JSON."""
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")


def foveate_says(host: Host, *arguments: str) -> str:
    """What our own command line prints in the host's project and home."""
    command = [sys.executable, "-m", "foveate", *arguments]
    done = subprocess.run(
        command, cwd=host.folder, env=host.environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def codex_hooks(codex: Host) -> list[dict[str, Any]]:
    """The hooks that Codex finds, with their keys, their hashes and whether it trusts them."""
    asked: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "tests", "version": "1"}}},
        {"method": "initialized"},
        {"id": 2, "method": "hooks/list", "params": {"cwds": [str(codex.folder)]}},
    ]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([str(codex.program), "app-server"], env=codex.environment, text=True, **pipes) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write("".join(json.dumps(each) + "\n" for each in asked))
        server.stdin.flush()
        answer = next(said["result"] for line in server.stdout if (said := json.loads(line)).get("id") == 2)
        server.terminate()
    hooks: list[dict[str, Any]] = answer["data"][0]["hooks"]
    return hooks


def served(folder: Path) -> dict[str, Any]:
    """The command of the server, for a host's configuration."""
    arguments = ["-m", "foveate", "mcp", "--store", str(folder)]
    return {"command": sys.executable, "args": arguments, "env": {"PYTHONPATH": str(ROOT / "src")}}


def codex_settings(api: FakeAPI, mcp: dict[str, Any] | None = None, *, trusted: Path | None = None) -> str:
    """A configuration of Codex: the fake API, a server where one is given, and a project whose own settings count."""
    lines = [
        'model = "fake"', 'model_provider = "fake"', 'approval_policy = "never"', "[model_providers.fake]", 'name = "fake"',
        f'base_url = "{api.url}/v1"', 'wire_api = "responses"', 'env_key = "FAKE_KEY"',
    ]  # fmt: skip
    if mcp is not None:
        lines += ["[mcp_servers.foveate]", *(f"{name} = {_toml(value)}" for name, value in mcp.items() if name != "type")]
    if trusted is not None:
        lines += [f"[projects.{json.dumps(str(trusted))}]", 'trust_level = "trusted"']
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {json.dumps(part)}" for name, part in value.items()) + " }"
    return json.dumps(value)
