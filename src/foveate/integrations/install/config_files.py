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
        super().__init__(path, split_settings(parts)[0])
        self._parts = parts

    def add_foveate(self, text: str) -> str:
        ours, others = split_settings(parse_json(text, str(self.path)))
        return text if ours == self.expected_parts else format_json(merge(others, self._parts, str(self.path)), text)

    def remove_foveate(self, text: str) -> str:
        settings = parse_json(text, str(self.path))
        others = split_settings(settings)[1]
        return format_json(others, text) if others != settings else text

    def installed_parts(self, text: str) -> Settings:
        return split_settings(parse_json(text, str(self.path)))[0]


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


def split_settings(settings: Settings) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return foveate's entries, and the settings without them and without the lists and objects that held only those.

    The entries are hooks by event, the MCP server and the environment variable.
    """
    ours: dict[str, Any] = {}
    others = dict(settings)
    for section, name in _NAMED_ENTRIES:
        if isinstance(table := settings.get(section), dict) and name in table:
            ours[section] = table[name]
            others[section] = {key: value for key, value in table.items() if key != name}
    if isinstance(hooks := settings.get(HOOKS_KEY), dict):
        others[HOOKS_KEY] = dict(hooks)
        for event, entries in hooks.items():
            if isinstance(entries, list):
                if mine := [entry for entry in entries if _is_foveate_hook(entry)]:
                    ours[event] = mine
                others[HOOKS_KEY][event] = [_without_calls(entry) for entry in entries if not _is_foveate_hook(entry)]
        others[HOOKS_KEY] = {event: entries for event, entries in others[HOOKS_KEY].items() if entries or not hooks[event]}
    return ours, {key: value for key, value in others.items() if value or not settings[key]}


def _without_calls(entry: Any) -> Any:
    """Drop foveate's calls from a group in which the user has added another call."""
    group = entry.get("hooks") if isinstance(entry, dict) else None
    return {**entry, "hooks": [call for call in group if not _calls_hook(call)]} if isinstance(group, list) else entry


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
