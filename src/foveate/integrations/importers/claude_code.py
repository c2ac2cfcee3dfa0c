"""Transcripts of Claude Code: `~/.claude/projects/<project>/<session>.jsonl`.

Messages become message events; a tool's call and its result become one event. Everything that the program or its hooks
inserted (reminders, contexts, summaries) is left out: it did not happen in the conversation, and an injected context must
not come back as an event.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from foveate.integrations.importers.rows import (
    ImportRows,
    Lines,
    PendingCalls,
    SkippedLine,
    as_mapping,
    content_text,
    parse_millis,
    rows_of_objects,
    strip_injected,
)
from foveate.memory.messages import ConversationMessage, text_id

NAME = "claude-code"
_INTERNAL_FLAGS = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly")
"""Flags of lines that the program wrote for itself."""


def is_transcript_line(value: Mapping[str, Any]) -> bool:
    return "sessionId" in value or ("leafUuid" in value and value.get("type") == "summary")


def read(lines: Lines, name: str) -> ImportRows:
    """Yield the events of a transcript. `name` is the session of lines that name none."""
    pending = PendingCalls()
    yield from rows_of_objects(lines, lambda number, line: _line_rows(number, line, name, pending))
    yield from pending.without_result()


def _line_rows(number: int, line: Mapping[str, Any], name: str, pending: PendingCalls) -> ImportRows:
    if line.get("type") not in ("user", "assistant") or any(line.get(flag) for flag in _INTERNAL_FLAGS):
        return
    if not isinstance(line.get("message"), dict):
        yield SkippedLine(number, "it has no message")
        return
    role: Literal["user", "assistant"] = line["type"]
    session, at = str(line.get("sessionId") or name), parse_millis(line.get("timestamp"))
    content = line["message"].get("content")
    for n, part in enumerate(content if isinstance(content, list) else [{"type": "text", "text": content}]):
        block = as_mapping(part)
        if block.get("type") == "text":
            text = strip_injected(str(block.get("text") or ""))
            id = f"{line.get('uuid') or number}:{n}"
            known_as = text_id(role, text)
            yield ConversationMessage(role=role, text=text, id=id, alternate_id=known_as, session=session, at=at)
        elif block.get("type") == "tool_use" and block.get("id"):
            name, id = str(block.get("name")), str(block["id"])
            call = ConversationMessage(
                role="tool", text="", name=name, id=id, tool_input=block.get("input"), session=session, at=at
            )
            yield from pending.add(number, call)
        elif block.get("type") == "tool_result":
            outcome = "failure" if block.get("is_error") else "success"
            text = _result_text(block.get("content"), line)
            yield from pending.results(number, str(block.get("tool_use_id")), text, outcome)


def _result_text(content: Any, line: Mapping[str, Any]) -> str:
    """Return the result of a tool as the model saw it, else as the program stored it."""
    text = strip_injected(content_text(content)).strip()
    return text or content_text(as_mapping(line.get("toolUseResult")))
