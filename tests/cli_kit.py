"""Run `foveate` in this process, and read what it prints."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner, Result

from foveate.cli import cli


def run(*args: str, stdin: str | bytes | None = None, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(cli, args, input=stdin, env=env, catch_exceptions=False)


def ok(*args: str, stdin: str | bytes | None = None) -> str:
    """Return what a command prints that must succeed."""
    result = run(*args, stdin=stdin)
    assert result.exit_code == 0, result.stderr
    return result.stdout.strip()


def document(*args: str, code: int = 0, stdin: str | bytes | None = None) -> Any:
    """Return the JSON document that a command prints, which must be one line."""
    result = run(*args, "--json", stdin=stdin)
    assert result.exit_code == code, result.stderr
    assert result.stdout.count("\n") == 1
    found = json.loads(result.stdout)
    assert found["schema_version"] == 1
    return found


def refused(result: Result, code: int) -> str:
    """Return the only line of a refusal. Nothing is on stdout."""
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("foveate: ")
    assert result.stderr.count("\n") == 1
    return result.stderr
