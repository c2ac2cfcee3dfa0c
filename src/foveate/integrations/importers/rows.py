"""What importers yield: messages, other records and lines that cannot be used.

An importer is a generator over the numbered lines of one file. It holds only the calls that have no result yet, so that a
file can have any length. Every message has an id, and every other row a key, that is the same in the next import.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from foveate.clock import iso, millis
from foveate.memory.messages import ConversationMessage, RecordRow

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
class SkippedLine:
    """A line that could not be used."""

    number: int
    reason: str


ImportRows = Iterator[ConversationMessage | RecordRow | SkippedLine]


class PendingCalls:
    """Calls of tools without a result by their id, the oldest first; at most `MAX_PENDING_CALLS`."""

    def __init__(self) -> None:
        self._calls: dict[str, tuple[int, ConversationMessage]] = {}

    def add(self, number: int, call: ConversationMessage) -> ImportRows:
        self._calls[call.id] = number, call
        if len(self._calls) > MAX_PENDING_CALLS:
            yield _without_result(*self._calls.pop(next(iter(self._calls))))

    def results(self, number: int, id: str, output: str, outcome: str | None) -> ImportRows:
        """Yield the message of a call, now that its result was found."""
        if id not in self._calls:
            yield SkippedLine(number, "it is the result of a call that is not in this file")
            return
        _, call = self._calls.pop(id)
        yield replace(call, text=output, outcome=outcome)

    def without_result(self) -> ImportRows:
        """Yield the calls without a result as skipped: they may still run, and the next import finds them."""
        for number, call in self._calls.values():
            yield _without_result(number, call)


def _without_result(number: int, call: ConversationMessage) -> SkippedLine:
    return SkippedLine(number, f"the call of {call.name!r} has no result yet")


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
    """Return the milliseconds of a datetime, an ISO 8601 time or a number; None for anything else."""
    try:
        if isinstance(value, str | datetime):
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
