"""Renders events, one function for each type (003's formatters).

The fields of an event (`path`, `command`, `stdout`, ...) are in `data`. If one is missing, the text is used instead. An
event without a type or fields is rendered as its text. `fence` puts one line with the date above the events of a day.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from foveate.records import render
from foveate.text.format import one_line, pluralize, truncate
from foveate.types import Level, Record

ERROR_LINE = re.compile(r"error|exception|traceback|failed", re.IGNORECASE)
"""Lines that are kept of a long output, wherever they are."""

MAX_TYPE_CHARS = 32
"""Length of the shown type of an event."""

MAX_NAME_CHARS = 60
"""Length of the shown name of a speaker."""

MAX_ARGUMENT_CHARS = 60
"""Length of the shown arguments of a tool's call."""

MAX_LINE_CHARS = 200
"""Length of one shown line of output. A minified file is one line."""


@dataclass(frozen=True, slots=True)
class EventLimits:
    """Limits of what is shown of an event: lines of output (first, last, errors between), and characters of the rest."""

    head: int
    tail: int
    errors: int
    chars: int


LIMITS_BY_LEVEL: Mapping[Level, EventLimits] = {
    "full": EventLimits(head=15, tail=15, errors=10, chars=600),
    "summary": EventLimits(head=1, tail=3, errors=4, chars=160),
    "micro": EventLimits(head=0, tail=0, errors=0, chars=44),
}
"""The micro line's date takes seven of its twenty tokens; 44 characters are about a dozen more."""

ROLES = ("user", "assistant", "system")
_MESSAGE_TYPES = {name: role for role in ROLES for name in (role, f"{role}_message", f"{role}_prompt")}

_TOOL_FIELDS = ("tool", "input", "turn", "order", "parts")

Content = Mapping[str, Any]
EventFormatter = Callable[[Record, Content, Level], tuple[str, str, str]]
"""Returns the text before the outcome, the text after it, and the output below."""


def event(record: Record, level: Level) -> str:
    """Return an event as text."""
    type, content = one_line(record.data.get("type", "")), content_of(record)
    formatter = _message if role_of(record) else _FORMATTERS.get(type, _generic)
    if not type or (not content and formatter not in (_message, _error)):
        return render.plain_text(record, level)
    lead, rest, output = formatter(record, content, level)
    is_plain = type == "file_read" or (type == "tool_call" and record.outcome == "success")  # a result says it itself
    outcome = f" [{record.outcome}]" if record.outcome and not is_plain else ""
    line = f"{lead}{outcome}{rest}"
    return render.block(f"{line}\n{_code_block(output)}" if output and level != "micro" else line)


def content_of(record: Record) -> Content:
    """Return the fields of an event without its type. 003 stores them in a field `content`."""
    own = {name: value for name, value in record.data.items() if name not in ("type", "content", "message_id")}
    content = record.data.get("content")
    return {**content, **own} if isinstance(content, Mapping) else own | ({"content": content} if content else {})


def role_of(record: Record) -> str:
    """Return the author's role if the event is a message, else an empty text."""
    type = str(record.data.get("type", ""))
    role = str(record.data.get("role", "")) if type == "message" else _MESSAGE_TYPES.get(type, "")
    return role if role in ROLES else ""


def shorten_output(text: str, head: int, tail: int, errors: int) -> str:
    """Return the first and last lines of an output and the errors between them, with notes on missing lines."""
    lines = text.strip("\n").splitlines()
    kept = set(range(len(lines)))
    if len(lines) > head + tail + 1:
        between = [n for n in range(head, len(lines) - tail) if ERROR_LINE.search(lines[n])]
        kept = {*range(head), *between[:errors], *range(len(lines) - tail, len(lines))}
    return "\n".join(_with_notes(lines, kept))


def _with_notes(lines: list[str], kept: set[int]) -> Iterator[str]:
    gap = 0
    for n, line in enumerate(lines):
        if n not in kept:
            gap += 1
            continue
        if gap:
            yield _note(gap)
        gap = 0
        yield truncate(line.rstrip(), MAX_LINE_CHARS)
    if gap:
        yield _note(gap)


def _note(missing: int) -> str:
    return f"... {pluralize(missing, 'line')} left out ..."


def _output(text: Any, level: Level, part: float = 1.0) -> str:
    limits = LIMITS_BY_LEVEL[level]
    return shorten_output(str(text), round(limits.head * part), round(limits.tail * part), limits.errors)


def _code_block(output: str) -> str:
    """Return output in a code fence that it cannot close."""
    return "```\n" + output.replace("```", "'''") + "\n```"


def _code(text: Any, limit: int) -> str:
    return f"`{truncate(one_line(text).replace('`', chr(39)), limit)}`"


def _event_text(record: Record, level: Level) -> str:
    words = render.body(record, level)
    return truncate(words, LIMITS_BY_LEVEL["micro"].chars) if level == "micro" else words


def _path(record: Record, content: Content, level: Level) -> str:
    path = one_line(content.get("path") or content.get("file_path") or next(iter(record.paths), "") or record.micro)
    limit = LIMITS_BY_LEVEL[level].chars
    return path if len(path) <= limit else f"…{path[1 - limit :]}"  # the end of a path is more specific than its beginning


def _message(record: Record, content: Content, level: Level) -> tuple[str, str, str]:
    words = _event_text(record, level)
    # A code fence must begin its own line.
    return _author(record), (":\n" if words.startswith(("```", "~~~")) else ": ") + words, ""


def _author(record: Record) -> str:
    """Return who said a message: by name, if it has one. The words of an assistant must not look like a turn of its own."""
    name = truncate(one_line(record.data.get("name", "")), MAX_NAME_CHARS)
    role = role_of(record)
    return name or ("Assistant said" if role == "assistant" else role.capitalize())


def _file_read(record: Record, content: Content, level: Level) -> tuple[str, str, str]:
    return f"Read: {_path(record, content, level)}", "", ""


def _file_write(record: Record, content: Content, level: Level) -> tuple[str, str, str]:
    return f"Wrote: {_path(record, content, level)}", "", ""


def _shell_exec(record: Record, content: Content, level: Level) -> tuple[str, str, str]:
    command = content.get("command") or record.micro
    words = " ".join(map(str, command)) if isinstance(command, list) else str(command)
    output = content.get("stdout") or content.get("stderr") or record.text.removeprefix(words.strip())
    return f"Executed: {_code(words, LIMITS_BY_LEVEL[level].chars)}", "", _output(output, level)


def _error(record: Record, content: Content, level: Level) -> tuple[str, str, str]:
    message = str(content.get("message") or record.text.split("\n")[0])
    stack = content.get("stack") or record.text.removeprefix(message.strip())
    return f"Error: {truncate(one_line(message), LIMITS_BY_LEVEL[level].chars)}", "", _output(stack, level, 0.5)


def _tool_call(record: Record, content: Content, level: Level) -> tuple[str, str, str]:
    """Return a tool's result: the tool, the values of its arguments, and what it returned."""
    name = str(content.get("tool") or "")
    words = _event_text(record, level)
    if record.text.partition("\n")[0].strip() == name:  # the stored text begins with the name, so that it is found by it
        words = words.removeprefix(name)
    arguments = "" if level == "micro" else _argument_values(content.get("input"))
    lead = f"Tool {truncate(one_line(name), MAX_TYPE_CHARS)}".rstrip() + (f"({arguments})" if arguments else "")
    other = {field: value for field, value in content.items() if field not in _TOOL_FIELDS}
    fields = "" if level == "micro" else _compact_json(other, level)
    rest = " ".join(filter(None, (one_line(words), fields)))
    return lead, f": {rest}" if rest else "", ""


def _argument_values(arguments: Any) -> str:
    """Return the values of a call's arguments without their names."""
    with suppress(ValueError, RecursionError):
        arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
    values = arguments.values() if isinstance(arguments, Mapping) else [arguments] if arguments else []
    texts = (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str) for value in values)
    return truncate(one_line(", ".join(texts)), MAX_ARGUMENT_CHARS)


def _compact_json(fields: Content, level: Level) -> str:
    if not fields:
        return ""
    compact = json.dumps(fields, ensure_ascii=False, separators=(",", ":"), default=str)
    return truncate(compact, LIMITS_BY_LEVEL[level].chars)


def _generic(record: Record, content: Content, level: Level) -> tuple[str, str, str]:
    """Return any other event: its words, then its fields as JSON."""
    type = one_line(record.data["type"])
    words = one_line(_event_text(record, level))
    parts = [] if words == type else [words]
    if content and level != "micro":
        parts.append(_compact_json(content, level))
    return truncate(type, MAX_TYPE_CHARS), f": {' '.join(parts)}" if parts else "", ""


_FORMATTERS: Mapping[str, EventFormatter] = {
    "file_read": _file_read,
    "file_write": _file_write,
    "shell_exec": _shell_exec,
    "tool_call": _tool_call,
    "error": _error,
}
