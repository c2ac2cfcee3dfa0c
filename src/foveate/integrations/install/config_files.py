"""The kinds of files that foveate edits for a host, and which entries in them are foveate's."""

from __future__ import annotations

import json
import shlex
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from foveate.integrations.install.config_edits import (
    Settings,
    block_span,
    format_json,
    insert_block,
    merge,
    parse_json,
    remove_block,
)

NAME, HOOK_PROGRAM, AGENT_ENV_VAR = "foveate", "foveate-hook", "FOVEATE_AGENT"
HOOKS_KEY, SERVERS_KEY, ENV_KEY = "hooks", "mcpServers", "env"
BLOCK_MARKERS = ("# BEGIN foveate", "# END foveate")
PLUGIN = Path(__file__).parent / "host_files" / "foveate"
SKILL = PLUGIN / "skills" / NAME / "SKILL.md"

_NAMED_ENTRIES = ((SERVERS_KEY, NAME), (ENV_KEY, AGENT_ENV_VAR))


class ConfigFile(ABC):
    """A file of a host that foveate edits."""

    def __init__(self, path: Path, expected_parts: Any) -> None:
        self.path = path
        self.expected_parts = expected_parts

    @abstractmethod
    def add_foveate(self, text: str) -> str:
        """Return the text with foveate's entries in it."""

    @abstractmethod
    def remove_foveate(self, text: str) -> str:
        """Return the text without foveate's entries."""

    @abstractmethod
    def installed_parts(self, text: str) -> Any:
        """Return foveate's entries in the text, in a form that can be compared with `expected_parts`; falsy without any."""


class JsonFile(ConfigFile):
    """Settings in JSON. `parts` are the entries to add, nested as in the file."""

    def __init__(self, path: Path, parts: Settings) -> None:
        super().__init__(path, foveate_parts(parts))
        self._parts = parts

    def add_foveate(self, text: str) -> str:
        settings = parse_json(text, str(self.path))
        if foveate_parts(settings) == self.expected_parts:
            return text
        return format_json(merge(without_foveate(settings), self._parts, str(self.path)), text)

    def remove_foveate(self, text: str) -> str:
        settings = parse_json(text, str(self.path))
        left = without_foveate(settings)
        return format_json(left, text) if left != settings else text

    def installed_parts(self, text: str) -> Settings:
        return foveate_parts(parse_json(text, str(self.path)))


class TomlFile(ConfigFile):
    """Codex's settings in TOML: a block between two marker lines. The rest of the file keeps every byte."""

    def __init__(self, path: Path, server: Settings) -> None:
        self._table = f"[mcp_servers.{NAME}]"
        super().__init__(path, [self._table, *(f"{key} = {json.dumps(value)}" for key, value in server.items())])

    def add_foveate(self, text: str) -> str:
        if self._table in self.remove_foveate(text):
            return text  # the user has defined this server; a second definition would make the file invalid
        return insert_block(text, self.expected_parts, BLOCK_MARKERS, str(self.path))

    def remove_foveate(self, text: str) -> str:
        return remove_block(text, BLOCK_MARKERS, str(self.path))

    def installed_parts(self, text: str) -> list[str]:
        span = block_span(text, BLOCK_MARKERS, str(self.path))
        return text[span[0] : span[1]].splitlines()[1:-1] if span else []


class SkillFile(ConfigFile):
    """The skill, which is a file of its own."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, SKILL.read_text("utf-8"))

    def add_foveate(self, text: str) -> str:
        return str(self.expected_parts)

    def remove_foveate(self, text: str) -> str:
        return "" if text == self.expected_parts else text

    def installed_parts(self, text: str) -> str:
        return text


def foveate_parts(settings: Settings) -> dict[str, Any]:
    """Return foveate's entries in some settings: hooks by event, the MCP server and the environment variable."""
    hooks = settings.get(HOOKS_KEY)
    parts: dict[str, Any] = {}
    for event, entries in hooks.items() if isinstance(hooks, dict) else ():
        ours = [entry for entry in entries if _is_foveate_hook(entry)] if isinstance(entries, list) else []
        if ours:
            parts[event] = ours
    for section, name in _NAMED_ENTRIES:
        if isinstance(table := settings.get(section), dict) and name in table:
            parts[section] = table[name]
    return parts


def without_foveate(settings: Settings) -> dict[str, Any]:
    """Return the settings without foveate's entries, and without the lists and objects that held only those."""
    left = dict(settings)
    tables = {section: _without_key(settings.get(section), name) for section, name in _NAMED_ENTRIES}
    tables[HOOKS_KEY] = _without_hooks(settings.get(HOOKS_KEY))
    for section, table in tables.items():
        if section in left:
            left[section] = table
            if not table and settings[section]:
                del left[section]
    return left


def _without_key(table: Any, name: str) -> Any:
    return {key: value for key, value in table.items() if key != name} if isinstance(table, dict) else table


def _without_hooks(hooks: Any) -> Any:
    if not isinstance(hooks, dict):
        return hooks
    cleaned = {event: _without_hook_entries(entries) for event, entries in hooks.items()}
    return {event: entries for event, entries in cleaned.items() if entries or not hooks[event]}


def _without_hook_entries(entries: Any) -> Any:
    """Drop foveate's calls, also from groups in which the user has added another call."""
    if not isinstance(entries, list):
        return entries
    left = []
    for entry in entries:
        if _is_foveate_hook(entry):
            continue
        group = entry.get("hooks") if isinstance(entry, dict) else None
        if isinstance(group, list):
            entry = {**entry, "hooks": [call for call in group if not _calls_hook(call)]}
        left.append(entry)
    return left


def _is_foveate_hook(entry: Any) -> bool:
    """Return whether an entry calls foveate's hook and nothing else. Most hosts group calls; Cursor lists them directly."""
    group = entry.get("hooks") if isinstance(entry, dict) else None
    if isinstance(group, list):
        return bool(group) and all(map(_calls_hook, group))
    return _calls_hook(entry)


def _calls_hook(entry: Any) -> bool:
    command = entry.get("command") if isinstance(entry, dict) else None
    if not isinstance(command, str):
        return False
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    # With `args`, the command is a path, which may contain spaces.
    return any(Path(word).stem == HOOK_PROGRAM for word in (*words[:1], command))
