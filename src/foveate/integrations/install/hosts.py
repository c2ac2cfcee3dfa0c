"""What each host should have of foveate, and in which file: hooks, the MCP server, the skill.

Comes in: a host, a scope and where things are. Goes out: files with the edits that they need. Nothing is read or written.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from foveate.integrations.hooks.program import HOSTS as HOSTS
from foveate.integrations.install import config_edits

Scope = Literal["project", "user"]
NAME, PROGRAM = "foveate", "foveate-hook"
SERVER = "mcpServers"
MARKS = ("# BEGIN foveate", "# END foveate")
FILES = Path(__file__).parent / "host_files"
PLUGIN = FILES / "foveate"
SKILL = PLUGIN / "skills" / NAME / "SKILL.md"

VERSION = ("version",)
"""What Cursor's settings begin with, whoever wrote them."""

SECONDS = 30
"""How long a host waits for a hook; the hook gives up before."""


@dataclass(frozen=True, slots=True)
class Where:
    """The project, the person's home, the programs, and the running service where there is one."""

    root: Path
    home: Path
    hook: str
    program: str
    service: str = ""


@dataclass(frozen=True, slots=True)
class File:
    """A file to edit. `put` gives the text with ours in it, `take` the text without, `has` what of ours is in it."""

    path: Path
    put: Callable[[str], str]
    take: Callable[[str], str]
    has: Callable[[str], Any]
    wants: Any = None


@dataclass(frozen=True, slots=True)
class Settings:
    """A host's settings. `events`: when it calls us, and for which tools."""

    hooks: Mapping[Scope, str]
    servers: Mapping[Scope, str]
    skills: str
    events: Mapping[str, str]
    aside: frozenset[str] = field(default_factory=frozenset)
    """Events that need not be waited for, where the host can do without waiting."""


_SHELL = "Bash|Edit|MultiEdit|Write|NotebookEdit"
_ALL = ""

SETTINGS: Mapping[str, Settings] = {
    "claude": Settings(
        # A path of this machine has no place in the settings that a team shares.
        hooks={"project": ".claude/settings.local.json", "user": ".claude/settings.json"},
        servers={"project": ".mcp.json"},
        skills=".claude/skills",
        events={
            "SessionStart": _ALL,
            "SubagentStart": _ALL,
            "UserPromptSubmit": _ALL,
            "PostToolUse": _SHELL,
            "PostToolUseFailure": _SHELL,
            "Stop": _ALL,
            "SubagentStop": _ALL,
            "PostCompact": _ALL,
        },
        aside=frozenset({"PostToolUse", "PostToolUseFailure"}),
    ),
    "codex": Settings(
        hooks={"project": ".codex/hooks.json", "user": ".codex/hooks.json"},
        servers={"project": ".codex/config.toml", "user": ".codex/config.toml"},
        skills=".agents/skills",
        events={
            "SessionStart": _ALL,
            "SubagentStart": _ALL,
            "UserPromptSubmit": _ALL,
            "PostToolUse": "Bash|shell|exec_command|apply_patch",
            "Stop": _ALL,
            "SubagentStop": _ALL,
            "PostCompact": _ALL,
        },
    ),
    "cursor": Settings(
        hooks={"project": ".cursor/hooks.json", "user": ".cursor/hooks.json"},
        servers={"project": ".cursor/mcp.json", "user": ".cursor/mcp.json"},
        skills=".agents/skills",
        events=dict.fromkeys(
            (
                "sessionStart",
                "beforeSubmitPrompt",
                "afterShellExecution",
                "afterFileEdit",
                "afterMCPExecution",
                "afterAgentResponse",
                "preCompact",
                "sessionEnd",
            ),
            _ALL,
        ),
    ),
    "gemini": Settings(
        hooks={"project": ".gemini/settings.json", "user": ".gemini/settings.json"},
        servers={"project": ".gemini/settings.json", "user": ".gemini/settings.json"},
        skills=".agents/skills",
        events={
            "SessionStart": _ALL,
            "BeforeAgent": _ALL,
            "AfterTool": "run_shell_command|write_file|replace",
            "AfterAgent": _ALL,
            "PreCompress": _ALL,
            "SessionEnd": _ALL,
        },
    ),
}


def files(host: str, scope: Scope, where: Where) -> list[File]:
    """The files of a host, each once, in the order in which they are shown."""
    settings = SETTINGS[host]
    base = where.root if scope == "project" else where.home
    hooks = _json_file(base, settings.hooks[scope], _hook_parts(host, where))
    found = [hooks]
    target = settings.servers.get(scope)
    server = _server(host, where if scope == "project" else _without_service(where))
    if target == settings.hooks[scope]:
        found = [_json_file(base, target, {**_hook_parts(host, where), (SERVER, NAME): server})]
    elif target and target.endswith(".toml"):
        found.append(_toml_file(_place(base, target), server))
    elif target:
        found.append(_json_file(base, target, {(SERVER, NAME): server}))
    return [*found, _skill(base / settings.skills / NAME / "SKILL.md")]


def notes(host: str, scope: Scope, where: Where) -> list[str]:
    """What a person has to do besides."""
    if host == "codex":
        trust = "Codex runs no hook that you have not trusted: start `codex`, enter /hooks and trust those of foveate."
        local = ["Codex reads a project's .codex folder only once the project is trusted."] if scope == "project" else []
        return [trust, *local]
    if host == "claude" and scope == "user":
        return [f"For the tools in every project: claude mcp add --scope user foveate -- {shlex.quote(where.program)} mcp"]
    if host == "claude":
        return ["Claude Code asks once whether the server in .mcp.json may be used."]
    return []


def entry(host: str, event: str, where: Where) -> dict[str, Any]:
    """One hook, as the host's settings have it. Where a host can call a program without a shell, it does."""
    settings = SETTINGS[host]
    command = f"{shlex.quote(where.hook)} {host}"
    if host == "cursor":
        return {"command": command, "timeout": SECONDS}
    call: dict[str, Any] = {"type": "command", "command": command}
    if host == "claude":
        call |= {"command": where.hook, "args": [host]}
    elif host == "gemini":
        call = {"name": NAME, **call}
    call["timeout"] = SECONDS * (1000 if host == "gemini" else 1)
    if event in settings.aside:
        call["async"] = True
    matcher = {"matcher": settings.events[event]} if settings.events[event] else {}
    return {**matcher, "hooks": [call]}


# --- the sorts of files --------------------------------------------------------------------------------------------

Parts = Mapping[tuple[str, ...], Any]


def _hook_parts(host: str, where: Where) -> Parts:
    parts: dict[tuple[str, ...], Any] = {VERSION: 1} if host == "cursor" else {}
    return parts | {("hooks", event, ""): entry(host, event, where) for event in SETTINGS[host].events}


def _json_file(base: Path, name: str, parts: Parts) -> File:
    """Paths that end with an empty name are lists to which something is appended."""
    path = _place(base, name)

    def put(text: str) -> str:
        if has(text) == wants:
            return text
        text = take(text)
        for way, value in parts.items():
            if way == VERSION and text.strip() and config_edits.parsed(text, str(path)).get(VERSION[0]):
                continue  # theirs
            to_list = way[-1] == ""
            text = config_edits.added(text, way[:-1] if to_list else way, value, name=str(path), to_list=to_list)
        return text

    def take(text: str) -> str:
        return config_edits.without(text, str(path), is_ours)

    def has(text: str) -> Any:
        return _held(config_edits.parsed(text, str(path)).plain()) if text.strip() else {}

    wants = _held(_nested({way: value for way, value in parts.items() if way != VERSION}))
    return File(path, put, take, has, wants)


def is_ours(path: tuple[str, ...], value: Any) -> bool:
    """Whether a part of some settings is foveate's: the server of that name, a call of the hook, a group of nothing else."""
    if path == (SERVER, NAME):
        return True
    if path[:1] != ("hooks",) or not isinstance(value, dict):
        return False
    group = value.get("hooks") if len(path) == 2 else None
    if isinstance(group, list):
        return bool(group) and all(map(_calls_us, group))
    return (len(path) == 2 or path[2:] == ("hooks",)) and _calls_us(value)


def _calls_us(entry: Any) -> bool:
    command = entry.get("command") if isinstance(entry, dict) else None
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        words = []
    return any(Path(word).stem == PROGRAM for word in (*words[:1], command if isinstance(command, str) else ""))


def _held(settings: Any) -> dict[str, Any]:
    """What of ours some settings hold, in a form that can be compared."""
    hooks = settings.get("hooks") if isinstance(settings, dict) else None
    found: dict[str, Any] = {}
    for event, entries in hooks.items() if isinstance(hooks, dict) else ():
        ours = [each for each in entries if is_ours(("hooks", event), each)] if isinstance(entries, list) else []
        if ours:
            found[event] = ours
    servers = settings.get(SERVER) if isinstance(settings, dict) else None
    if isinstance(servers, dict) and NAME in servers:
        found[SERVER] = servers[NAME]
    return found


def _nested(parts: Parts) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for way, value in parts.items():
        here = out.setdefault(way[0], {})
        here[way[1]] = [value] if way[-1] == "" else value
    return out


def _toml_file(path: Path, server: Mapping[str, Any]) -> File:
    lines = [f"[mcp_servers.{NAME}]", *(f"{key} = {json.dumps(value)}" for key, value in server.items())]

    def has(text: str) -> Any:
        span = config_edits.block_span(text, MARKS, str(path))
        return text[span[0] : span[1]].split("\n")[1:-2] if span else []

    def put(text: str) -> str:
        if f"[mcp_servers.{NAME}]" in config_edits.without_block(text, MARKS, str(path)):
            return text  # somebody has made one: theirs counts
        return config_edits.with_block(text, lines, MARKS, str(path))

    return File(path, put, lambda text: config_edits.without_block(text, MARKS, str(path)), has, lines)


def _skill(path: Path) -> File:
    wanted = SKILL.read_text("utf-8")
    return File(path, lambda _: wanted, lambda text: "" if text == wanted else text, lambda text: text, wanted)


def _server(host: str, where: Where) -> dict[str, Any]:
    """The MCP server: the running one over HTTP, which is there at once, else a program that the host starts."""
    if not where.service:
        return {"command": where.program, "args": ["mcp"]}
    url = f"{where.service.rstrip('/')}/mcp"
    if host == "claude":
        return {"type": "http", "url": url}
    return {"httpUrl" if host == "gemini" else "url": url}


def _without_service(where: Where) -> Where:
    return Where(where.root, where.home, where.hook, where.program)


def _place(base: Path, name: str) -> Path:
    """A host's folder in the home may be elsewhere."""
    first, _, rest = name.partition("/")
    moved = {".codex": os.environ.get("CODEX_HOME"), ".claude": os.environ.get("CLAUDE_CONFIG_DIR")}.get(first)
    return Path(moved) / rest if moved and base == Path.home() else base / name
