"""Codex's rollouts, `~/.codex/sessions/Y/M/D/rollout-*.jsonl` -> events.

A line is `{timestamp, type, payload}`. Events come from `response_item`: messages, and calls joined with their outputs.
`event_msg` repeats them for the screen, so that only its errors are read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
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

NAME = "codex"
_TYPES = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "token_usage_record", "world_state"})
_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output", "local_shell_call_output"})
_INJECTED = re.compile(r"\s*(<(environment_context|user_instructions|INSTRUCTIONS)>|# AGENTS\.md instructions)")
_EXIT = re.compile(r"^(?:Exit code: |Process exited with code )(-?\d+)", re.MULTILINE)


def looks_like(value: Mapping[str, Any]) -> bool:
    """Whether a line is of such a rollout."""
    return value.get("type") in _TYPES and isinstance(value.get("payload"), dict)


def read(lines: Lines, name: str) -> Given:
    """The events of a rollout. `name`: the session, until the file says its own."""
    waiting, session = Waiting(), name
    for found in objects(lines):
        if isinstance(found, Skipped):
            yield found
            continue
        number, line = found
        if not isinstance(line.get("payload"), dict):
            yield Skipped(number, "it has no payload")
            continue
        payload = line["payload"]
        if line.get("type") == "session_meta":
            session = str(payload.get("id") or session)
        elif line.get("type") in ("response_item", "event_msg"):
            yield from _item(number, line, payload, session, waiting)
    yield from waiting.rest()


def _item(number: int, line: Mapping[str, Any], payload: Mapping[str, Any], session: str, waiting: Waiting) -> Given:
    sort, at = str(payload.get("type")), time_of(line.get("timestamp"))
    place = line.get("ordinal")
    key = f"{NAME}:{session}:{number if place is None else place}"
    if line["type"] == "event_msg":
        if sort == "error" and payload.get("message"):
            values = {"type": "error", "key": key, "created": at, "trust": "tool"}
            yield Row("event", str(payload["message"]), values, session)
    elif sort == "message":
        role = str(payload.get("role"))
        text = "\n".join(str(mapping(part).get("text") or "") for part in payload.get("content") or ())
        if role in ("user", "assistant") and not _INJECTED.match(text):
            yield from message(role, text, key=key, session=session, at=at)
    elif sort in _CALLS and payload.get("call_id"):
        id = str(payload["call_id"])
        tool = "shell" if sort == "local_shell_call" else str(payload.get("name"))
        yield from waiting.add(id, Call(number, tool, _input(payload), f"{NAME}:{session}:{id}", session, at))
    elif sort in _OUTPUTS:
        yield from _result(number, payload, waiting)


def _input(payload: Mapping[str, Any]) -> Any:
    """What a tool was called with: arguments come as JSON in a string, a custom tool's input as plain text."""
    if "action" in payload:
        return {"action": payload["action"]}
    given = payload.get("arguments", payload.get("input"))
    try:
        return json.loads(given) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        return given


def _result(number: int, payload: Mapping[str, Any], waiting: Waiting) -> Iterator[Row | Skipped]:
    call = waiting.pop(str(payload.get("call_id")))
    if call is None:
        yield Skipped(number, "it is the result of a call that is not in this file")
        return
    text, code = answered(payload.get("output"))
    yield from used(call, text, None if code is None else "success" if code == 0 else "failure")


def answered(output: Any) -> tuple[str, int | None]:
    """What a tool answered, and its exit code where it says one."""
    if isinstance(output, str) and output.lstrip().startswith("{"):
        with suppress(ValueError, RecursionError):
            output = json.loads(output)
    if isinstance(output, list):
        output = "\n".join(str(mapping(part).get("text") or "") for part in output)
    if isinstance(output, Mapping):
        code = mapping(output.get("metadata")).get("exit_code")
        if not isinstance(code, int) and isinstance(output.get("success"), bool):
            code = 0 if output["success"] else 1
        return str(output.get("output") or output.get("content") or ""), code if isinstance(code, int) else None
    text = str(output or "")
    said = _EXIT.search(text)
    return text, int(said[1]) if said else None
