"""The plugin folder that is shipped: what the hosts' own rules ask of it, and that it says what `install` would."""

from __future__ import annotations

import json
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import foveate
from foveate.integrations.hooks.hosts import EVENTS
from foveate.integrations.install.config_files import PLUGIN, SKILL
from foveate.integrations.install.hosts import InstallPaths, hook_entry
from foveate.tasks.handoff import parse
from foveate.text import tokens

PATHS = InstallPaths(Path("/project"), Path("/home"), "foveate-hook", "foveate")
MANIFEST = {
    "type": "object",
    "required": ["name", "version", "description"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$"},
        "version": {"type": "string", "pattern": r"^\d+\.\d+\.\d+"},
        "description": {"type": "string", "maxLength": 200},
        "author": {"type": "object", "required": ["name"]},
        "license": {"type": "string"},
        "keywords": {"type": "array", "items": {"type": "string"}},
        **{name: {"type": "string", "pattern": r"^\./"} for name in ("skills", "mcpServers", "hooks")},
    },
}
CALL = {
    "type": "object",
    "required": ["type", "command"],
    "additionalProperties": False,
    "properties": {
        "type": {"const": "command"},
        "command": {"type": "string", "minLength": 1},
        "args": {"type": "array", "items": {"type": "string"}},
        "timeout": {"type": "number", "exclusiveMinimum": 0},
        "async": {"type": "boolean"},
    },
}
HOOKS = {
    "type": "object",
    "required": ["hooks"],
    "additionalProperties": False,
    "properties": {
        "hooks": {
            "type": "object",
            "additionalProperties": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["hooks"],
                    "additionalProperties": False,
                    "properties": {"matcher": {"type": "string"}, "hooks": {"type": "array", "items": CALL}},
                },
            },
        }
    },
}


def read(name: str) -> Any:
    return json.loads((PLUGIN / name).read_text("utf-8"))


@pytest.mark.parametrize("name", [".claude-plugin/plugin.json", ".codex-plugin/plugin.json"])
def test_the_manifest_holds_and_names_files_that_are_there(name: str) -> None:
    manifest = read(name)
    jsonschema.validate(manifest, MANIFEST)
    assert manifest["version"] == foveate.__version__
    for field in ("skills", "mcpServers", "hooks"):
        assert field not in manifest or (PLUGIN / manifest[field]).exists()


@pytest.mark.parametrize(("host", "name"), [("claude", "hooks/hooks.json"), ("codex", "hooks/codex.json")])
def test_its_hooks_are_those_that_install_writes(host: str, name: str) -> None:
    found = read(name)
    jsonschema.validate(found, HOOKS)
    assert found["hooks"] == {event: [hook_entry(host, event, PATHS)] for event in EVENTS[host]}


def test_the_skill_is_within_the_limits_and_teaches_what_there_is() -> None:
    from foveate.cli.commands import MODULES

    text = SKILL.read_text("utf-8")
    _, front, body = text.split("---\n", 2)
    fields = dict(line.split(": ", 1) for line in front.strip().splitlines())
    assert fields.keys() == {"name", "description"}
    assert fields["name"] == SKILL.parent.name
    assert len(fields["name"]) <= 64
    assert len(fields["description"]) <= 1024
    assert tokens.count(body, "o200k") < 5_000
    words = body.replace("`", " ").split()
    named = {after for word, after in pairwise(words) if word == "foveate" and after in MODULES}
    assert {"show", "search", "context", "check", "add", "edit", "task"} <= named
    block = body[body.index("```handoff") : body.index("```\n", body.index("```handoff") + 5) + 4]
    assert parse(block).method == "yaml"
    assert parse(block).handoff["gotchas"][0]["severity"] == "high"


def test_claude_code_itself_accepts_the_plugin(tmp_path: Path) -> None:
    program = shutil.which("claude")
    if program is None:
        pytest.skip("Claude Code is not here")
    done = subprocess.run(
        [program, "plugin", "validate", str(PLUGIN)], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
