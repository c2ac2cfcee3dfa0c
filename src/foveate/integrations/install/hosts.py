"""The files in which each coding agent keeps its settings, and what foveate adds to them: hooks, MCP server, skill.

Nothing is read or written here, except to find the programs and the service that the settings name.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from foveate.errors import InputError
from foveate.integrations.hooks.hosts import EVENTS
from foveate.integrations.hooks.service_file import find_service
from foveate.integrations.install.config_files import (
    AGENT_ENV_VAR,
    ENV_KEY,
    HOOK_PROGRAM,
    HOOKS_KEY,
    NAME,
    SERVERS_KEY,
    ConfigFile,
    JsonFile,
    SkillFile,
    TomlFile,
)
from foveate.project.project import ProjectLocation

HOOK_TIMEOUT_S = 30
"""Set in the host's settings. The hook program gives up earlier, so that it can still exit without an error."""


@dataclass(frozen=True, slots=True)
class InstallPaths:
    """Paths that end up in settings: the project, the home, both programs, and the URL of a running service."""

    root: Path
    home: Path
    hook: str
    program: str
    service: str = ""


@dataclass(frozen=True, slots=True)
class HostSettings:
    """Paths of a host's settings, below the project or the home, and the tools that it reports."""

    hooks: str
    servers: str
    skills: str = ".agents/skills"
    tools: Mapping[str, str] = field(default_factory=dict)
    """By event: a pattern of the tools that it is about. Other events have none."""
    async_events: frozenset[str] = field(default_factory=frozenset)
    """Events whose hook the host need not wait for."""


_CLAUDE_TOOLS = "Bash|Edit|MultiEdit|Write|NotebookEdit"

SETTINGS: Mapping[str, HostSettings] = {
    "claude": HostSettings(
        # A path of this machine does not belong into .claude/settings.json, which a team shares through git.
        hooks=".claude/settings.local.json",
        servers=".mcp.json",
        skills=".claude/skills",
        tools={"PostToolUse": _CLAUDE_TOOLS, "PostToolUseFailure": _CLAUDE_TOOLS},
        async_events=frozenset({"PostToolUse", "PostToolUseFailure"}),
    ),
    "codex": HostSettings(
        hooks=".codex/hooks.json",
        servers=".codex/config.toml",
        tools={"PostToolUse": "Bash|shell|exec_command|apply_patch"},
    ),
    "cursor": HostSettings(hooks=".cursor/hooks.json", servers=".cursor/mcp.json"),
    "gemini": HostSettings(
        hooks=".gemini/settings.json",
        servers=".gemini/settings.json",
        tools={"AfterTool": "run_shell_command|write_file|replace"},
    ),
}
GLOBAL_SETTINGS: Mapping[str, HostSettings] = {
    **SETTINGS,
    # `claude mcp add` writes the global server: Claude Code keeps it in a file with much other state.
    "claude": replace(SETTINGS["claude"], hooks=".claude/settings.json", servers=""),
}


def config_files(host: str, paths: InstallPaths, *, is_global: bool) -> list[ConfigFile]:
    """Return the files of a host in the order in which their changes are shown; the skill is the last."""
    settings = (GLOBAL_SETTINGS if is_global else SETTINGS)[host]
    base = paths.home if is_global else paths.root
    # Another project may be served tomorrow: global settings start a server instead of naming a running one.
    server = _server_entry(host, replace(paths, service="") if is_global else paths)
    hooks: dict[str, Any] = {"version": 1} if host == "cursor" else {}
    hooks[HOOKS_KEY] = {event: [hook_entry(host, event, paths)] for event in EVENTS[host]}
    if host == "claude":
        hooks[ENV_KEY] = {AGENT_ENV_VAR: host}
    servers = {SERVERS_KEY: {NAME: server}}
    skill = SkillFile(base / settings.skills / NAME / "SKILL.md")
    if settings.servers == settings.hooks:
        return [JsonFile(_config_path(base, settings.hooks), {**hooks, **servers}), skill]
    files: list[ConfigFile] = [JsonFile(_config_path(base, settings.hooks), hooks)]
    if settings.servers.endswith(".toml"):
        files.append(TomlFile(_config_path(base, settings.servers), server))
    elif settings.servers:
        files.append(JsonFile(_config_path(base, settings.servers), servers))
    return [*files, skill]


def manual_steps(host: str, paths: InstallPaths, *, is_global: bool) -> list[str]:
    """Return what the user has to do after the installation."""
    if host == "codex":
        steps = ["Codex runs only hooks that you trust: start `codex`, enter /hooks and trust those of foveate."]
        return steps if is_global else [*steps, "Codex reads a project's .codex folder only if you trust the project."]
    if host == "claude" and is_global:
        return [f"For the tools in every project: claude mcp add --scope user foveate -- {shlex.quote(paths.program)} mcp"]
    if host == "claude":
        return ["Claude Code asks once whether the server in .mcp.json may be used."]
    return []


def hook_entry(host: str, event: str, paths: InstallPaths) -> dict[str, Any]:
    """Return one hook in the form of the host's settings."""
    settings = SETTINGS[host]
    command = f"{shlex.quote(paths.hook)} {host}"
    if host == "cursor":
        return {"command": command, "timeout": HOOK_TIMEOUT_S}
    call: dict[str, Any] = {"type": "command", "command": command}
    if host == "claude":
        call |= {"command": paths.hook, "args": [host]}  # with `args`, Claude Code starts the program without a shell
    elif host == "gemini":
        call = {"name": NAME, **call}
    call["timeout"] = HOOK_TIMEOUT_S * (1000 if host == "gemini" else 1)
    if event in settings.async_events:
        call["async"] = True
    matcher = {"matcher": settings.tools[event]} if event in settings.tools else {}
    return {**matcher, "hooks": [call]}


def _server_entry(host: str, paths: InstallPaths) -> dict[str, Any]:
    """Return the MCP server: the running service over HTTP, which answers at once, else a program that the host starts."""
    if not paths.service:
        return {"command": paths.program, "args": ["mcp"]}
    url = f"{paths.service.rstrip('/')}/mcp"
    if host == "claude":
        return {"type": "http", "url": url}
    return {"httpUrl" if host == "gemini" else "url": url}


def _config_path(base: Path, name: str) -> Path:
    """Return the path of a settings file; variables of Codex and Claude Code can move their folder in the home."""
    first, _, rest = name.partition("/")
    moved = {".codex": os.environ.get("CODEX_HOME"), ".claude": os.environ.get("CLAUDE_CONFIG_DIR")}.get(first)
    return Path(moved) / rest if moved and base == Path.home() else base / name


def install_paths(root: Path) -> InstallPaths:
    """Return the paths for the project at `root` on this machine."""
    service = find_service(ProjectLocation(root).service_file)
    return InstallPaths(root, Path.home(), _find_program(HOOK_PROGRAM), _find_program(NAME), service.url if service else "")


def _find_program(name: str) -> str:
    """Return the program next to this Python, else the one on the PATH."""
    sibling = Path(sys.executable).with_name(name)
    found = str(sibling) if sibling.exists() else shutil.which(name)
    if found is None:
        raise InputError(
            f"The program {name!r} was not found next to {sys.executable!r} or on the PATH. "
            "Install foveate: `pip install foveate`."
        )
    return found
