"""Logs with one JSON object on a line: `{type?, text|content|message, time?, role?, session?, ...}`.

Other fields of a line are stored in the event's data. Anyone may have written the file, so nothing in it can pin a record,
make it a rule or raise its trust.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from foveate.integrations.importers.rows import (
    ImportRows,
    Lines,
    SkippedLine,
    parse_millis,
    rows_of_objects,
)
from foveate.memory.messages import RecordRow, digest
from foveate.records.kinds import OUTCOMES
from foveate.records.render_events import ROLES

NAME = "jsonl"
_TEXT_KEYS = ("text", "content", "message")
_TIME_KEYS = ("time", "timestamp", "created", "created_at", "ts")
_SESSION_KEYS = ("session", "session_id", "sessionId", "conversation_id")
_OTHER_KEYS = ("type", "role", "outcome", "tags")


def read(lines: Lines, name: str) -> ImportRows:
    """Yield the events of a log. `name` is the session of lines that name none."""

    def line_rows(number: int, line: Mapping[str, Any]) -> ImportRows:
        yield _row(number, line, name) or SkippedLine(number, "it has no text, no type and no content")

    yield from rows_of_objects(lines, line_rows)


def _row(number: int, line: Mapping[str, Any], name: str) -> RecordRow | None:
    text_key = next((key for key in _TEXT_KEYS if _is_text(line.get(key))), None)
    time_key = next((key for key in _TIME_KEYS if parse_millis(line.get(key)) is not None), None)
    session_key = next((key for key in _SESSION_KEYS if _is_text(line.get(key))), None)
    used_keys = {text_key, time_key, session_key, *_OTHER_KEYS}
    data = {key: value for key, value in line.items() if key not in used_keys}
    event_type = line["type"] if isinstance(line.get("type"), str) else ""
    role = line["role"] if line.get("role") in ROLES else ""
    if role and event_type in ("", "message"):
        event_type = f"{role}_message"
    text = str(line[text_key]) if text_key else event_type or (json.dumps(data, ensure_ascii=False) if data else "")
    if not text.strip():
        return None
    session = str(line[session_key]) if session_key else name
    whole_line = json.dumps(line, ensure_ascii=False, sort_keys=True)
    values: dict[str, Any] = {
        "data": {**data, **({"type": event_type} if event_type else {})},
        "key": f"{NAME}:{digest(session, str(number), whole_line)}",
        "created": parse_millis(line[time_key]) if time_key else None,
        "outcome": line["outcome"] if line.get("outcome") in OUTCOMES else None,
        "trust": "tool",
    }
    if isinstance(line.get("tags"), list):
        values["tags"] = [tag for tag in line["tags"] if isinstance(tag, str)]
    return RecordRow("event", text, values, session)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())
