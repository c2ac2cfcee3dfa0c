"""The rows that importers yield, and how messages and calls of tools become rows.

An importer is a generator over the numbered lines of one file. It holds only the calls that have no result yet, so that a
file can have any length. Every row has a key that is the same in the next import.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from foveate.clock import iso, millis
from foveate.memory.messages import MAX_OUTPUT_CHARS, TRUST_OF_ROLE, is_web_tool, shortened_output, without_private_parts
from foveate.text.format import truncate

Lines = Iterable[tuple[int, str]]
"""Lines with their numbers, from 1."""

MAX_PENDING_CALLS = 1_000
"""Calls that may wait for their result at once. Beyond that, the oldest is skipped."""

CONTEXT_BEGIN, CONTEXT_END = "<foveate-context>\n", "</foveate-context>"
"""Marker lines around a context in a conversation, by which it is recognised wherever it comes back."""

_TEXT_KEYS = ("text", "refusal", "stdout", "stderr")
_INJECTED_TAG = re.compile(
    r"<(system-reminder|task-notification|local-command-\w{1,40}|command-\w{1,40}|hook_context)\b[^<>]{0,500}>"
)
"""The beginning of a text that a program inserted into a message."""

_MAX_SECONDS = 100_000_000_000
"""Smaller numbers are seconds, not milliseconds: as milliseconds this is a day in 1973."""


@dataclass(frozen=True, slots=True)
class ImportRow:
    """A record to store: kind, text, the fields of `Engine.add`, and the session."""

    kind: str
    text: str
    values: Mapping[str, Any]
    session: str | None = None
    alternate_key: str = ""
    """Another key under which it may be stored: a hook receives the text of a message without the id of its line."""


@dataclass(frozen=True, slots=True)
class SkippedLine:
    """A line that could not be used."""

    number: int
    reason: str


ImportRows = Iterator[ImportRow | SkippedLine]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool, to be joined with its result."""

    number: int
    tool: str
    input: Any
    key: str
    session: str
    time: int | None


class PendingCalls:
    """Calls without a result by their id, the oldest first; at most `MAX_PENDING_CALLS`."""

    def __init__(self) -> None:
        self._calls: dict[str, ToolCall] = {}

    def add(self, id: str, call: ToolCall) -> ImportRows:
        self._calls[id] = call
        if len(self._calls) > MAX_PENDING_CALLS:
            yield _without_result(self._calls.pop(next(iter(self._calls))))

    def rows(self, number: int, id: str, output: str, outcome: str | None) -> ImportRows:
        """Yield the rows of a call, now that its result was found."""
        call = self._calls.pop(id, None)
        if call is None:
            yield SkippedLine(number, "it is the result of a call that is not in this file")
            return
        yield from tool_rows(call, output, outcome)

    def without_result(self) -> ImportRows:
        """Yield the calls without a result as skipped: they may still run, and the next import finds them."""
        yield from map(_without_result, self._calls.values())


def _without_result(call: ToolCall) -> SkippedLine:
    return SkippedLine(call.number, f"the call of {call.tool!r} has no result yet")


def rows_of_objects(lines: Lines, line_rows: Callable[[int, dict[str, Any]], ImportRows]) -> ImportRows:
    """Yield the rows of the JSON object on each line. Blank lines are ignored, and other lines are skipped."""
    for number, line in lines:
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            yield SkippedLine(number, "it is not JSON")
            continue
        if isinstance(value, dict):
            yield from line_rows(number, value)
        else:
            yield SkippedLine(number, "it is not a JSON object")


def as_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def parse_millis(value: Any) -> int | None:
    """Return the milliseconds of an ISO 8601 time or a number; None for anything else."""
    try:
        if isinstance(value, str):
            time = millis(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            time = int(value * 1000 if abs(value) < _MAX_SECONDS else value)
        else:
            return None
        iso(time)
    except (ValueError, OverflowError, OSError):
        return None
    return time


def content_text(content: Any) -> str:
    """Return the text of a message's content: a text, a part, or a list of both. Pictures and files have none."""
    if isinstance(content, str) or content is None:
        return content or ""
    parts = [content] if isinstance(content, Mapping) else content
    texts = (part if isinstance(part, str) else _part_text(as_mapping(part)) for part in parts)
    return "\n".join(text for text in texts if text)


def _part_text(part: Mapping[str, Any]) -> str:
    return "\n".join(str(part[key]) for key in _TEXT_KEYS if part.get(key))


def parse_arguments(arguments: Any) -> Any:
    """Return the arguments of a call. They are JSON in a string, or plain text for some tools."""
    try:
        return json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        return arguments


def strip_injected(text: str) -> str:
    """Remove what programs have inserted into a message. A tag that is never closed is part of the text."""
    parts, at = [], 0
    unclosed: set[str] = set()  # looked for once, or a text of many such tags would take quadratic time
    while match := _INJECTED_TAG.search(text, at):
        name = match[1]
        end = -1 if name in unclosed else text.find(f"</{name}>", match.end())
        parts.append(text[at : match.start() if end >= 0 else match.end()])
        at = end + len(name) + 3 if end >= 0 else match.end()
        if end < 0:
            unclosed.add(name)
    return "".join([*parts, text[at:]])


def digest(*parts: str) -> str:
    return blake2b("\x1f".join(parts).encode("utf-8", "replace"), digest_size=8).hexdigest()


def message_rows(role: str, text: str, *, key: str, session: str, time: int | None) -> Iterator[ImportRow]:
    """Yield the row of a message, or none if it has no text. Without a key, its text makes one."""
    text = without_private_parts(text)
    if text:
        trust = TRUST_OF_ROLE.get(role, "tool")
        text_key = f"words:{session}:{digest(role, ' '.join(text.split()))}"
        values = {"type": f"{role}_message", "key": key or text_key, "created": time, "trust": trust}
        yield ImportRow("event", text, values, session, text_key)


# --- tools ---------------------------------------------------------------------------------------------------------

_SHELL_TOOLS = frozenset(
    {"bash", "shell", "exec_command", "local_shell", "shell_command", "container.exec", "run_shell_command"}
)
_READ_TOOLS = frozenset({"read", "read_file", "notebookread", "view_image"})
_WRITE_TOOLS = frozenset({"write", "edit", "multiedit", "notebookedit", "write_file", "replace"})
_PATCH_TOOL = "apply_patch"
_PATCH_FILE = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_PATH_KEYS = ("file_path", "path", "notebook_path")
_WEB_COMMAND = re.compile(r"(?:^|[;&|(`]|\bsudo\b)\s*(?:curl|wget|lynx|w3m|https?)\s", re.MULTILINE)


def tool_rows(call: ToolCall, output: str, outcome: str | None) -> Iterator[ImportRow]:
    """Yield the events of a call: one, or for a patch one for each file."""
    arguments = as_mapping(call.input)
    tool, command = call.tool.lower(), _command(arguments)
    shared = {"created": call.time, "trust": _trust(tool, command), "outcome": outcome}
    if files := _patched_files(tool, call.input, command):
        for n, path in enumerate(files):
            write = {**shared, "type": "file_write", "path": path, "paths": [path], "key": f"{call.key}:{n}"}
            yield ImportRow("event", path, write, call.session)
        return
    path = next((str(arguments[key]) for key in _PATH_KEYS if arguments.get(key)), "")
    output = shortened_output(output)
    values: dict[str, Any]
    if tool in _SHELL_TOOLS and command:
        text = f"{command}\n{output}"
        values = {"type": "shell_exec", "command": truncate(command, MAX_OUTPUT_CHARS)}
    elif path and tool in (_READ_TOOLS | _WRITE_TOOLS):
        text = path if outcome != "failure" else f"{path}\n{output}"
        values = {"type": "file_read" if tool in _READ_TOOLS else "file_write", "path": path, "paths": [path]}
    else:
        text = f"{call.tool}\n{output}"
        values = {"type": "tool_call", "tool": call.tool}
        if call.input:
            values["input"] = truncate(json.dumps(call.input, ensure_ascii=False, default=str), MAX_OUTPUT_CHARS)
    yield ImportRow("event", text.strip(), {**shared, "key": call.key, **values}, call.session)


def _trust(tool: str, command: str) -> str:
    """Return `web` for output from the network, which anyone may have written."""
    is_web = _WEB_COMMAND.search(command) if tool in _SHELL_TOOLS else is_web_tool(tool)
    return "web" if is_web else "tool"


def _command(arguments: Mapping[str, Any]) -> str:
    command = arguments.get("command") or arguments.get("cmd") or as_mapping(arguments.get("action")).get("command") or ""
    if not isinstance(command, list):
        return str(command).strip()
    words = [str(word) for word in command]
    is_wrapped = len(words) == 3 and words[1] in ("-c", "-lc")  # `bash -lc "make test"`
    return words[2] if is_wrapped else " ".join(words)


def _patched_files(tool: str, input: Any, command: str) -> list[str]:
    """Return the files that a patch changes; none if the call is not a patch."""
    if tool != _PATCH_TOOL and not command.startswith(_PATCH_TOOL):
        return []
    arguments = as_mapping(input)
    patch = input if isinstance(input, str) else str(arguments.get("input") or arguments.get("patch") or command)
    return list(dict.fromkeys(path.strip() for path in _PATCH_FILE.findall(patch)))
