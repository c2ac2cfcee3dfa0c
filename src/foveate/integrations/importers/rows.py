"""What an importer gives: rows to keep, lines that it could not use, and how a tool's call becomes an event.

An importer is a generator over the numbered lines of one file. It holds no more than what it still waits for, so that a
file of any length passes through. Every row carries a key that is the same in the next import.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from foveate.clock import iso, millis
from foveate.records.render_events import shortened
from foveate.text.format import truncate

Lines = Iterable[tuple[int, str]]
"""Lines with their numbers, from 1."""

MAX_OUTPUT = 8_000
"""Characters kept of one output. An event's line shows less; the rest would only weigh on the index."""

WAITING = 1_000
"""Calls that may wait for their result at once; the oldest is given up beyond that."""

BEGIN, END = "<foveate-context>\n", "</foveate-context>"
"""Around what foveate puts into somebody else's conversation, so that it is known wherever it turns up again."""

_NOT_KEPT = re.compile(r"<(private|foveate-context)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
"""A mark that is never closed hides all that follows it."""

_HEAD, _TAIL, _ERRORS = 40, 40, 20
_SECONDS = 100_000_000_000
"""A number below it counts seconds, not milliseconds: as milliseconds it would be a day in 1973."""


@dataclass(frozen=True, slots=True)
class Row:
    """Something to keep: a kind, a text, the values of `Memory.add`, and the session that it belongs to."""

    kind: str
    text: str
    values: Mapping[str, Any]
    session: str | None = None
    alias: str = ""
    """Another key under which it may be known: a hook hears the words, and not the id of their line."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A line that could not be used, and why."""

    number: int
    why: str


Given = Iterator[Row | Skipped]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool's call, waiting for its result."""

    number: int
    tool: str
    input: Any
    key: str
    session: str
    at: int | None


class Waiting:
    """Calls by id, the oldest first; never more than `WAITING`."""

    def __init__(self) -> None:
        self._calls: dict[str, Call] = {}

    def add(self, id: str, call: Call) -> Iterator[Skipped]:
        self._calls[id] = call
        if len(self._calls) > WAITING:
            yield _unanswered(self._calls.pop(next(iter(self._calls))))

    def pop(self, id: str) -> Call | None:
        return self._calls.pop(id, None)

    def rest(self) -> Iterator[Skipped]:
        """Calls that got no result: they may be running still, and the next import finds them."""
        yield from map(_unanswered, self._calls.values())


def _unanswered(call: Call) -> Skipped:
    return Skipped(call.number, f"the call of {call.tool!r} has no result yet")


def objects(lines: Lines) -> Iterator[tuple[int, dict[str, Any]] | Skipped]:
    """The JSON object on each line; blank lines are nothing."""
    for number, line in lines:
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            yield Skipped(number, "it is not JSON")
            continue
        yield (number, value) if isinstance(value, dict) else Skipped(number, "it is not a JSON object")


def mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def time_of(value: Any) -> int | None:
    """A time in milliseconds from ISO 8601 or a number; None where it is neither."""
    try:
        if isinstance(value, str):
            at = millis(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            at = int(value * 1000 if abs(value) < _SECONDS else value)
        else:
            return None
        iso(at)
    except (ValueError, OverflowError, OSError):
        return None
    return at


def digest(*parts: str) -> str:
    return blake2b("\x1f".join(parts).encode("utf-8", "replace"), digest_size=8).hexdigest()


def kept_output(text: str) -> str:
    """Output as it is kept: whole where it is short, else its ends and its errors."""
    if len(text) <= MAX_OUTPUT:
        return text
    return truncate(shortened(text, _HEAD, _TAIL, _ERRORS), MAX_OUTPUT)


def message(role: str, text: str, *, key: str, session: str, at: int | None) -> Iterator[Row]:
    """Somebody's words; nothing where there are none. Without a key, the words are it."""
    text = public(text)
    if text:
        trust = {"user": "user", "assistant": "agent"}.get(role, "tool")
        words = f"words:{session}:{digest(role, ' '.join(text.split()))}"
        values = {"type": f"{role}_message", "key": key or words, "created": at, "trust": trust}
        yield Row("event", text, values, session, words)


def public(text: str) -> str:
    """A text without what its author marked as private, and without what foveate itself put into the prompt."""
    return _NOT_KEPT.sub("", text).strip()


# --- tools ---------------------------------------------------------------------------------------------------------

_SHELL = frozenset({"bash", "shell", "exec_command", "local_shell", "shell_command", "container.exec", "run_shell_command"})
_READ = frozenset({"read", "read_file", "notebookread", "view_image"})
_WRITE = frozenset({"write", "edit", "multiedit", "notebookedit", "write_file", "replace"})
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_PATCH = "apply_patch"
_WEB_TOOL = re.compile(
    r"(?:^|[_\W])(?:web|fetch|http|brows|crawl|scrape|url|playwright|puppeteer|chrome|google|bing|brave|duckduckgo|tavily"
    r"|firecrawl|perplexity)|_(?:url|page)s?$"
)
_WEB_COMMAND = re.compile(r"(?:^|[;&|(`]|\bsudo\b)\s*(?:curl|wget|lynx|w3m|https?)\s", re.MULTILINE)
"""By their names: a tool does not say where its words come from."""


def used(call: Call, output: str, outcome: str | None) -> Iterator[Row]:
    """The events that a tool's call was, once it has its result."""
    given = mapping(call.input)
    tool, command = call.tool.lower(), _command(given)
    shared = {"created": call.at, "trust": _trust(tool, command), "outcome": outcome}
    if patched := _patched(tool, call.input, command):
        for n, path in enumerate(patched):
            values = {**shared, "type": "file_write", "path": path, "paths": [path], "key": f"{call.key}:{n}"}
            yield Row("event", path, values, call.session)
        return
    shared["key"] = call.key
    path = next((str(given[name]) for name in ("file_path", "path", "notebook_path") if given.get(name)), "")
    if tool in _SHELL and command:
        text = f"{command}\n{kept_output(output)}".strip()
        yield Row("event", text, {**shared, "type": "shell_exec", "command": truncate(command, MAX_OUTPUT)}, call.session)
    elif path and tool in (_READ | _WRITE):
        sort = "file_read" if tool in _READ else "file_write"
        text = path if outcome != "failure" else f"{path}\n{kept_output(output)}".strip()
        yield Row("event", text, {**shared, "type": sort, "path": path, "paths": [path]}, call.session)
    else:
        text = f"{call.tool}\n{kept_output(output)}".strip()
        asked = truncate(json.dumps(call.input, ensure_ascii=False, default=str), MAX_OUTPUT) if call.input else ""
        more = {"tool": call.tool, **({"input": asked} if asked else {})}
        yield Row("event", text, {**shared, "type": "tool_call", **more}, call.session)


def _trust(tool: str, command: str) -> str:
    """What a tool brings from outside was written by anybody."""
    outside = _WEB_COMMAND.search(command) if tool in _SHELL else _WEB_TOOL.search(tool)
    return "web" if outside else "tool"


def _command(given: Mapping[str, Any]) -> str:
    command = given.get("command") or given.get("cmd") or mapping(given.get("action")).get("command") or ""
    if not isinstance(command, list):
        return str(command).strip()
    words = [str(word) for word in command]
    # `bash -lc "make test"` is how a program says `make test`.
    return words[2] if len(words) == 3 and words[1] in ("-c", "-lc") else " ".join(words)


def _patched(tool: str, given: Any, command: str) -> list[str]:
    """The files that a patch changes, where the call is one."""
    if tool != _PATCH and not command.startswith(_PATCH):
        return []
    patch = given if isinstance(given, str) else str(mapping(given).get("input") or mapping(given).get("patch") or command)
    return list(dict.fromkeys(path.strip() for path in _PATCHED.findall(patch)))
