"""The kinds of files that foveate edits for a host, and which entries in them are foveate's.

JSON files are changed as a whole, other files by a block between two marker lines.
"""

from __future__ import annotations

import json
import re
import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from foveate.errors import InputError

Settings = Mapping[str, Any]
Container = TypeVar("Container", dict[str, Any], list[Any])

FIX_FILE = "Fix the file and run the command again; nothing was written."

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


# --- JSON ----------------------------------------------------------------------------------------------------------


def parse_json(text: str, name: str) -> dict[str, Any]:
    """Return the JSON object in a settings file; an empty file has no settings.

    Raises InputError for a file that could not be written back without loss: invalid JSON, comments or repeated keys.
    """
    if not text.strip():
        return {}
    try:
        settings = json.loads(text, object_pairs_hook=_unique_keys)
    except (ValueError, RecursionError) as error:
        # Gemini CLI and Cursor accept comments. Rewriting the file would delete them.
        comments = "Comments and trailing commas would be lost: remove them. " if _has_comments(text) else ""
        reason = "too many levels" if isinstance(error, RecursionError) else error
        raise InputError(f"{name!r} is not plain JSON ({reason}). {comments}{FIX_FILE}") from None
    if not isinstance(settings, dict):
        raise InputError(f"{name!r} must be a JSON object. {FIX_FILE}")
    return settings


def format_json(settings: Settings, before: str) -> str:
    """Return the settings as JSON with the indentation, line ends and end of file of the text `before`."""
    indent = re.search(r"^([ \t]{1,8})\S", before, re.MULTILINE)
    # An ASCII file may need to stay one, and its `\u` escapes are kept that way.
    text = json.dumps(settings, indent=indent[1] if indent else "  ", ensure_ascii=before.isascii())
    text += before[len(before.rstrip()) :] if before.strip() else "\n"
    return text.replace("\r\n", "\n").replace("\n", "\r\n") if "\r\n" in before else text


def merge(settings: Settings, parts: Settings, name: str) -> dict[str, Any]:
    """Return the settings with the parts added: objects are merged, lists are extended, and other values are kept."""
    merged = dict(settings)
    for key, part in parts.items():
        if isinstance(part, dict):
            merged[key] = merge(_expect(dict, merged.get(key, {}), key, name), part, name)
        elif isinstance(part, list):
            merged[key] = [*_expect(list, merged.get(key, []), key, name), *part]
        else:
            merged.setdefault(key, part)
    return merged


def _expect(kind: type[Container], value: Any, key: str, name: str) -> Container:
    if not isinstance(value, kind):
        raise InputError(f"{name!r}: {key!r} must be {'an object' if kind is dict else 'a list'}. {FIX_FILE}")
    return value


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has the same key twice")
    return found


def _has_comments(text: str) -> bool:
    without_strings = re.sub(r'"(?:[^"\\]|\\.)*"', "", text)
    return bool(re.search(r"//|/\*|,\s*[}\]]", without_strings))


# --- blocks between marker lines -------------------------------------------------------------------------------------


def insert_block(text: str, lines: Sequence[str], markers: tuple[str, str], name: str) -> str:
    """Return the text with the lines between two marker lines: in place of the previous block, else at the end."""
    line_end = "\r\n" if "\r\n" in text else "\n"
    block = line_end.join((markers[0], *lines, markers[1])) + line_end
    span = block_span(text, markers, name)
    if span:
        return text[: span[0]] + block + text[span[1] :]
    gap = "" if not text else line_end if text.endswith("\n") else line_end * 2
    return text + gap + block


def remove_block(text: str, markers: tuple[str, str], name: str) -> str:
    span = block_span(text, markers, name)
    if not span:
        return text
    before, after = text[: span[0]], text[span[1] :]
    if not after.strip():
        before = re.sub(r"(\r?\n)(?:\r?\n)\Z", r"\1", before)
    return before + after


def block_span(text: str, markers: tuple[str, str], name: str) -> tuple[int, int] | None:
    """Return the start and end of a block with its last line end; None without one. Raises InputError for half a block."""
    begin, end = (re.search(rf"^{re.escape(marker)}[ \t]*(?:\r?\n|\Z)", text, re.MULTILINE) for marker in markers)
    if begin is None and end is None:
        return None
    if begin is None or end is None or end.start() < begin.start():
        raise InputError(f"{name!r} needs the lines {markers[0]!r} and {markers[1]!r} in this order, or neither. {FIX_FILE}")
    return begin.start(), end.end()
