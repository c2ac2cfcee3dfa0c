"""Claude Code's transcripts, `~/.claude/projects/<project>/<session>.jsonl` -> events.

A line is a message or a note of the program's own. What was said becomes message events; a tool's call and its result
become one event. What the program or its hooks put in (reminders, injected contexts, summaries of itself) is left out: it
is not what happened, and what foveate has injected must not come back as news.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from foveate.integrations.importers.rows import (
    Call,
    Given,
    Lines,
    Row,
    Skipped,
    Waiting,
    mapping,
    message,
    objects,
    time_of,
    used,
)

NAME = "claude-code"
_INJECTED = re.compile(r"<(system-reminder|local-command-\w+|command-\w+)>.*?</\1>", re.DOTALL)
_OWN = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly")
"""Marks of lines that the program wrote for itself."""


def looks_like(value: Mapping[str, Any]) -> bool:
    """Whether a line is of such a transcript."""
    return "sessionId" in value or ("leafUuid" in value and value.get("type") == "summary")


def read(lines: Lines, name: str) -> Given:
    """The events of a transcript. `name`: the session of a line that names none."""
    waiting = Waiting()
    for found in objects(lines):
        if isinstance(found, Skipped):
            yield found
            continue
        number, line = found
        if line.get("type") not in ("user", "assistant") or any(line.get(mark) for mark in _OWN):
            continue
        if not isinstance(line.get("message"), dict):
            yield Skipped(number, "it has no message")
            continue
        yield from _said(number, line, name, waiting)
    yield from waiting.rest()


def _said(number: int, line: Mapping[str, Any], name: str, waiting: Waiting) -> Given:
    """The events of one message, part by part."""
    session = str(line.get("sessionId") or name)
    key = f"{NAME}:{session}:{line.get('uuid') or number}"
    at = time_of(line.get("timestamp"))
    content = line["message"].get("content")
    for n, part in enumerate(content if isinstance(content, list) else [{"type": "text", "text": content}]):
        block = mapping(part)
        if block.get("type") == "text":
            text = _INJECTED.sub("", str(block.get("text") or ""))
            yield from message(str(line["type"]), text, key=f"{key}:{n}", session=session, at=at)
        elif block.get("type") == "tool_use" and block.get("id"):
            id = str(block["id"])
            call = Call(number, str(block.get("name")), block.get("input"), f"{NAME}:{session}:{id}", session, at)
            yield from waiting.add(id, call)
        elif block.get("type") == "tool_result":
            yield from _result(number, block, line, waiting)


def _result(number: int, block: Mapping[str, Any], line: Mapping[str, Any], waiting: Waiting) -> Iterator[Row | Skipped]:
    call = waiting.pop(str(block.get("tool_use_id")))
    if call is None:
        yield Skipped(number, "it is the result of a call that is not in this file")
        return
    yield from used(call, _text(block.get("content"), line), "failure" if block.get("is_error") else "success")


def _text(content: Any, line: Mapping[str, Any]) -> str:
    """What a tool answered: as the model saw it, else as the program kept it."""
    if isinstance(content, list):
        content = "\n".join(str(mapping(part).get("text") or "") for part in content)
    if content:
        return _INJECTED.sub("", str(content)).strip()
    result = mapping(line.get("toolUseResult"))
    return str(result.get("stdout") or result.get("stderr") or "")
