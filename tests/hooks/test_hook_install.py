"""`install` and `uninstall` on settings that other people wrote: nothing of theirs is lost, and ours comes and goes."""

from __future__ import annotations

import json
import os
import socket
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from foveate.cli import cli
from foveate.errors import InputError
from foveate.integrations.hooks.program import HOSTS
from foveate.integrations.install.config_files import (
    PLUGIN,
    format_json,
    insert_block,
    merge,
    parse_json,
    remove_block,
    split_settings,
)
from foveate.text.atomic_write import write_file

SETTINGS = {
    "claude": ".claude/settings.local.json",
    "codex": ".codex/hooks.json",
    "cursor": ".cursor/hooks.json",
    "gemini": ".gemini/settings.json",
}
RICH = {
    "claude": """{
    "permissions": {"allow": ["Bash(make:*)"], "deny": []},
    "hooks": {
        "PostToolUse": [
            { "matcher": "Edit|Write", "hooks": [{"type": "command", "command": "ruff format"}] }
        ],
        "Stop": []
    },
    "model": "opus"
}
""",
    "codex": '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}}',
    "cursor": '{\n\t"version": 1,\n\t"hooks": {\n\t\t"stop": [{"command": "./audit.sh"}]\n\t}\n}\n',
    "gemini": """{
  "theme": "GitHub",
  "mcpServers": {
    "docs": { "command": "docs-mcp" }
  },
  "hooks": {
    "AfterTool": [
      {
        "matcher": "write_file",
        "hooks": [{"type": "command", "command": "ruff format"}]
      }
    ]
  }
}
""",
}
TOML = '# mine\nmodel = "gpt"  # the good one\n\n[mcp_servers.docs]\ncommand = "docs-mcp"\n'


def run(*args: str, code: int = 0) -> Result:
    result = CliRunner().invoke(cli, list(args), catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("CODEX_HOME", raising=False)
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    run("init")
    return folder


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def tree(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and ".foveate" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def settings_of(path: Path) -> Any:
    return parse_json(path.read_bytes().decode(), str(path))


@pytest.mark.parametrize("scope", [[], ["--global"]])
@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("there", ["nothing", "an empty file", "rich settings", "other line ends"])
def test_install_twice_and_uninstall_gives_back_every_byte(project: Path, host: str, scope: list[str], there: str) -> None:
    folder = Path(os.environ["HOME"]) if scope else project
    name = ".claude/settings.json" if host == "claude" and scope else SETTINGS[host]
    text = {"nothing": None, "an empty file": "", "rich settings": RICH[host]}.get(there, RICH[host].replace("\n", "\r\n"))
    if text is not None:
        put(folder / name, text)
    if text and host == "codex":
        put(folder / ".codex" / "config.toml", TOML)
    before = tree(folder)
    run("install", host, *scope, "--yes")
    installed = tree(folder)
    assert run("install", host, *scope).stdout == ""
    assert tree(folder) == installed != before
    assert any(path.endswith("skills/foveate/SKILL.md") for path in installed)
    held = settings_of(folder / name)
    for event, theirs in (json.loads(text)["hooks"] if text else {}).items():
        assert held["hooks"][event][: len(theirs)] == theirs
    run("uninstall", host, *scope, "--yes")
    assert tree(folder) == before
    assert not (project / ".foveate" / "installed.json").exists()


@pytest.mark.parametrize("host", HOSTS)
def test_what_others_changed_since_stays_and_only_ours_goes(project: Path, host: str) -> None:
    path = put(project / SETTINGS[host], RICH[host])
    run("install", host, "--yes")
    changed = path.read_text("utf-8").replace("ruff format", "black").replace("say done", "say yes").replace("audit", "log")
    path.write_text(changed, "utf-8")
    run("uninstall", host, "--yes")
    left = settings_of(path)
    theirs = json.loads(RICH[host])
    assert "foveate" not in path.read_text("utf-8")
    for name, value in theirs.items():
        if name != "hooks":
            assert left[name] == value
    texts = json.dumps(left["hooks"])
    assert any(word in texts for word in ("black", "say yes", "log.sh"))


def test_hooks_call_the_program_of_this_installation_and_wait_only_where_it_matters(project: Path) -> None:
    run("install", "claude", "--yes")
    hooks = settings_of(project / SETTINGS["claude"])["hooks"]
    assert {"SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "PostCompact"} <= hooks.keys()
    for event, (group,) in hooks.items():
        (call,) = group["hooks"]
        assert call["command"] == str(Path(sys.executable).with_name("foveate-hook"))
        assert call["args"] == ["claude"]
        assert call.get("async", False) == event.startswith("PostToolUse")
    assert settings_of(project / ".mcp.json")["mcpServers"]["foveate"]["args"] == ["mcp"]


def test_codex_gets_a_block_in_its_toml_and_a_word_on_trust(project: Path) -> None:
    put(project / ".codex" / "config.toml", TOML)
    said = run("install", "codex", "--yes").stderr
    text = (project / ".codex" / "config.toml").read_text("utf-8")
    assert text.startswith(TOML)
    assert tomllib.loads(text)["mcp_servers"].keys() == {"docs", "foveate"}
    assert "/hooks" in said


def test_somebody_elses_server_of_that_name_is_left_alone(project: Path) -> None:
    path = put(project / ".codex" / "config.toml", '[mcp_servers.foveate]\ncommand = "mine"\n')
    run("install", "codex", "--yes")
    assert path.read_text("utf-8") == '[mcp_servers.foveate]\ncommand = "mine"\n'


def test_a_skill_that_hosts_share_goes_with_the_last_of_them(project: Path) -> None:
    skill = project / ".agents" / "skills" / "foveate" / "SKILL.md"
    for host in ("codex", "cursor", "gemini"):
        run("install", host, "--yes")
    for host in ("codex", "gemini"):
        run("uninstall", host, "--yes")
        assert skill.exists()
    run("uninstall", "cursor", "--yes")
    assert tree(project) == {}


def test_changes_are_shown_and_none_is_made_without_consent(project: Path) -> None:
    put(project / SETTINGS["claude"], json.dumps(json.loads(RICH["claude"]), indent=4) + "\n")
    before = tree(project)
    shown = run("install", "claude", "--dry-run").stdout
    assert "--- .claude/settings.local.json" in shown
    assert "+++ .mcp.json" in shown
    removed = [line for line in shown.splitlines() if line.startswith("-") and not line.startswith("---")]
    assert removed == ['-        "Stop": []', '-    "model": "opus"']  # one gets an entry, the other a comma
    assert "pass --yes" in run("install", "claude", code=2).stderr
    assert tree(project) == before


@pytest.mark.parametrize(
    "text",
    ["{", '{"hooks": 3}', "[]", '{"hooks": {"AfterTool": 7}}', '{"a": tru}', "\ufeff{", '{"a": 1, "a": 2}', "[" * 9999],
)
def test_settings_that_cannot_be_read_are_an_error_and_nothing_is_written(project: Path, text: str) -> None:
    put(project / SETTINGS["gemini"], text)
    before = tree(project)
    assert "nothing was written" in run("install", "gemini", "--yes", code=2).stderr
    assert tree(project) == before


@pytest.mark.parametrize("text", ['{\n  // mine\n  "theme": "x"\n}', '{"theme": "x" /* dark */}', '{"a": "//", "b": [1,]}'])
def test_settings_with_comments_are_not_edited_and_not_destroyed(project: Path, text: str) -> None:
    put(project / SETTINGS["gemini"], text)
    before = tree(project)
    said = run("install", "gemini", "--yes", code=2).stderr
    assert "Comments and trailing commas would be lost: remove them" in said
    assert tree(project) == before


def test_without_a_store_nothing_is_installed(tmp_path: Path) -> None:
    assert "foveate init" in run("--store", str(tmp_path), "install", "claude", "--yes", code=2).stderr


def test_json_answers_name_the_files(project: Path) -> None:
    found = json.loads(run("install", "cursor", "--yes", "--json").stdout)
    assert [file["action"] for file in found["files"]] == ["create", "create", "create"]
    assert (found["host"], found["global"], found["dry_run"]) == ("cursor", False, False)
    assert json.loads(run("install", "--plugin-dir", "--json").stdout)["plugin_dir"] == str(PLUGIN)
    assert run("install", "--plugin-dir").stdout.strip() == str(PLUGIN)


def test_a_symbolic_link_stays_one_and_rights_are_kept(project: Path, tmp_path: Path) -> None:
    real = put(tmp_path / "dotfiles" / "hooks.json", RICH["cursor"])
    real.chmod(0o600)
    link = project / SETTINGS["cursor"]
    link.parent.mkdir()
    link.symlink_to(real)
    run("install", "cursor", "--yes")
    assert link.is_symlink()
    assert "foveate-hook" in real.read_text("utf-8")
    assert real.stat().st_mode & 0o777 == 0o600
    run("uninstall", "cursor", "--yes")
    assert link.is_symlink()
    assert real.read_text("utf-8") == RICH["cursor"]


# --- doctor --------------------------------------------------------------------------------------------------------


def test_doctor_finds_hooks_that_do_nothing(project: Path) -> None:
    assert "foveate install claude" in run("doctor").stdout
    run("install", "codex", "--yes")
    run("install", "claude", "--yes")
    (project / ".foveate" / "service.json").write_text('{"url": "http://127.0.0.1:1"}', "utf-8")
    profiles = project / ".foveate" / "profiles"
    put(profiles / "hook.toml", "total = 5000\n")
    said = run("doctor").stdout
    assert "claude (project), codex (project)" in said
    assert "Codex does not trust the hooks" in said
    assert "No service answers at http://127.0.0.1:1" in said
    assert "asks for 5,000 tokens; hooks deliver 2,000 at most" in said
    assert "0 items on record for 0 windows" in said
    hooks = project / SETTINGS["codex"]
    config = Path(os.environ["HOME"]) / ".codex" / "config.toml"
    names = (
        "subagent_start",
        "user_prompt_submit",
        "post_tool_use",
        "stop",
        "subagent_stop",
        "post_compact",
        "session_start",
    )
    states = [f'[hooks.state."{hooks}:{name}:0:0"]\ntrusted_hash = "x"\n' for name in names]
    put(config, "".join(states[:-1]))
    assert f"Codex does not trust SessionStart in {hooks}" in run("doctor").stdout
    put(config, "".join(states))
    assert "does not trust" not in run("doctor").stdout
    config.unlink()
    path = project / SETTINGS["claude"]
    program = str(Path(sys.executable).with_name("foveate-hook"))
    path.write_text(path.read_text("utf-8").replace(program, "/gone/foveate-hook"), "utf-8")
    said = run("doctor", code=1).stdout
    assert "calls /gone/foveate-hook, which is missing" in said
    assert "differ from those that this version installs" in said
    run("install", "claude", "--yes")
    assert "is missing" not in run("doctor").stdout


def test_a_running_service_is_the_server_and_its_end_is_told(project: Path) -> None:
    run("install", "gemini", "--yes")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        write_file(project / ".foveate" / "service.json", json.dumps({"url": url, "pid": 1}), private=True)
        assert "warning" not in run("doctor").stdout
        for host in ("claude", "codex", "gemini"):
            run("install", host, "--yes")
        assert settings_of(project / ".mcp.json")["mcpServers"]["foveate"] == {"type": "http", "url": f"{url}/mcp"}
        assert settings_of(project / SETTINGS["gemini"])["mcpServers"]["foveate"] == {"httpUrl": f"{url}/mcp"}
        assert tomllib.loads((project / ".codex" / "config.toml").read_text("utf-8"))["mcp_servers"]["foveate"] == {
            "url": f"{url}/mcp"
        }
    said = run("doctor").stdout
    for name in (".mcp.json", SETTINGS["gemini"], ".codex/config.toml"):
        assert f"{name} names the server {url}/mcp, where nothing listens" in said.replace(f"{project}/", "")


def test_a_hook_that_somebody_put_beside_ours_stays(project: Path) -> None:
    run("install", "claude", "--yes")
    path = project / ".claude" / "settings.local.json"
    held = settings_of(path)
    mine = {"type": "command", "command": "/opt/mine/foveate-hook-wrapper claude"}
    held["hooks"]["Stop"][0]["hooks"].append(mine)
    put(path, json.dumps(held))
    run("install", "claude", "--yes")
    assert mine in [hook for group in settings_of(path)["hooks"]["Stop"] for hook in group["hooks"]]
    run("uninstall", "claude", "--yes")
    assert settings_of(path)["hooks"] == {"Stop": [{"hooks": [mine]}]}


# --- the edits themselves ------------------------------------------------------------------------------------------

KEYS = st.text('ab"\\{}[]:,/ *é', max_size=4)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | KEYS,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(KEYS, below, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(KEYS, VALUES, max_size=4), st.sampled_from([None, 1, 2, 4, "\t"]))
def test_what_is_added_can_be_removed_and_nothing_else_changes(value: dict[str, Any], indent: Any) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    hook = {"hooks": [{"command": "foveate-hook claude"}]}
    parts = {"hooks": {"Stop": [hook]}, "mcpServers": {"foveate": {"command": "x"}}}
    added = format_json(merge(parse_json(text, "f"), parts, "f"), text)
    assert json.loads(added) == {**value, **parts}
    ours, left = split_settings(json.loads(added))
    assert ours == {"Stop": [hook], "mcpServers": {"command": "x"}}
    assert left == value
    if isinstance(indent, int) and value:
        assert format_json(left, added) == json.dumps(value, indent=indent, ensure_ascii=text.isascii())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "B\nx\nE\n"),
        ("a\n", "a\n\nB\nx\nE\n"),
        ("a", "a\n\nB\nx\nE\n"),
        ("a\nB\nold\nE\nz\n", "a\nB\nx\nE\nz\n"),
        ("a\r\n", "a\r\n\r\nB\r\nx\r\nE\r\n"),
    ],
)
def test_a_block_has_its_place(before: str, after: str) -> None:
    assert insert_block(before, ["x"], ("B", "E"), "f") == after
    assert insert_block(after, ["x"], ("B", "E"), "f") == after
    assert remove_block(after, ("B", "E"), "f") in (before, before + "\n", "a\nz\n")


@pytest.mark.parametrize("text", ["B\nx\n", "E\n", "E\nB\n"])
def test_half_a_block_is_an_error(text: str) -> None:
    with pytest.raises(InputError, match="neither"):
        insert_block(text, ["x"], ("B", "E"), "f")
