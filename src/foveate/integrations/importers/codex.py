"""Rollouts of Codex: `~/.codex/sessions/Y/M/D/rollout-*.jsonl`.

A line is `{timestamp, type, payload}`. Events come from lines of type `response_item`: messages, and calls joined with their
outputs. Lines of type `event_msg` repeat them for the screen, so only their errors are read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from foveate.integrations.importers.rows import (
    ImportRows,
    Lines,
    PendingCalls,
    SkippedLine,
    as_mapping,
    content_text,
    parse_arguments,
    parse_millis,
    rows_of_objects,
)
from foveate.memory.messages import ConversationMessage, RecordRow, text_id

NAME = "codex"
_TYPES = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "token_usage_record", "world_state"})
_CALL_TYPES = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
_OUTPUT_TYPES = frozenset({"function_call_output", "custom_tool_call_output", "local_shell_call_output"})
_INJECTED_TEXT = re.compile(r"\s*(<(environment_context|user_instructions|INSTRUCTIONS)>|# AGENTS\.md instructions)")
_EXIT_CODE = re.compile(r"^(?:Exit code: |Process exited with code )(-?\d+)", re.MULTILINE)


def is_rollout_line(value: Mapping[str, Any]) -> bool:
    return value.get("type") in _TYPES and isinstance(value.get("payload"), dict)


def read(lines: Lines, name: str) -> ImportRows:
    """Yield the events of a rollout. `name` is the session until a line names it."""
    pending, session = PendingCalls(), name

    def line_rows(number: int, line: Mapping[str, Any]) -> ImportRows:
        nonlocal session
        payload = line.get("payload")
        if not isinstance(payload, dict):
            yield SkippedLine(number, "it has no payload")
        elif line.get("type") == "session_meta":
            session = str(payload.get("id") or session)
        elif line.get("type") == "event_msg":
            key = f"{NAME}:{session}:{_line_id(number, line)}"
            yield from _error_rows(payload, key, session, parse_millis(line.get("timestamp")))
        elif line.get("type") == "response_item":
            yield from _item_rows(number, line, payload, session, pending)

    yield from rows_of_objects(lines, line_rows)
    yield from pending.without_result()


def _line_id(number: int, line: Mapping[str, Any]) -> str:
    ordinal = line.get("ordinal")
    return str(number if ordinal is None else ordinal)


def _error_rows(payload: Mapping[str, Any], key: str, session: str, time: int | None) -> ImportRows:
    if payload.get("type") == "error" and payload.get("message"):
        values = {"type": "error", "key": key, "created": time, "trust": "tool"}
        yield RecordRow("event", str(payload["message"]), values, session)


def _item_rows(
    number: int, line: Mapping[str, Any], payload: Mapping[str, Any], session: str, pending: PendingCalls
) -> ImportRows:
    item_type, at = str(payload.get("type")), parse_millis(line.get("timestamp"))
    if item_type == "message":
        role, text = payload.get("role"), content_text(payload.get("content"))
        if (role == "user" or role == "assistant") and not _INJECTED_TEXT.match(text):
            id, known_as = _line_id(number, line), text_id(role, text)
            yield ConversationMessage(role=role, text=text, id=id, alternate_id=known_as, session=session, at=at)
    elif item_type in _CALL_TYPES and payload.get("call_id"):
        id = str(payload["call_id"])
        tool = "shell" if item_type == "local_shell_call" else str(payload.get("name"))
        call = ConversationMessage(
            role="tool", text="", name=tool, id=id, tool_input=_tool_input(payload), session=session, at=at
        )
        yield from pending.add(number, call)
    elif item_type in _OUTPUT_TYPES:
        text, code = parse_output(payload.get("output"))
        outcome = None if code is None else "success" if code == 0 else "failure"
        yield from pending.results(number, str(payload.get("call_id")), text, outcome)


def _tool_input(payload: Mapping[str, Any]) -> Any:
    if "action" in payload:
        return {"action": payload["action"]}
    return parse_arguments(payload.get("arguments", payload.get("input")))


def parse_output(output: Any) -> tuple[str, int | None]:
    """Return the text of a tool's output, and its exit code if it contains one."""
    if isinstance(output, str) and output.lstrip().startswith("{"):
        with suppress(ValueError, RecursionError):
            output = json.loads(output)
    if isinstance(output, list):
        output = content_text(output)
    if isinstance(output, Mapping):
        code = as_mapping(output.get("metadata")).get("exit_code")
        if not isinstance(code, int) and isinstance(output.get("success"), bool):
            code = 0 if output["success"] else 1
        return str(output.get("output") or output.get("content") or ""), code if isinstance(code, int) else None
    text = str(output or "")
    match = _EXIT_CODE.search(text)
    return text, int(match[1]) if match else None
