"""Any log with one JSON object on a line -> events: `{type?, text|content|message, time?, role?, session?, ...}`.

Whatever else a line holds stays with the event, as its content. A file is somebody's word, not the user's: nothing in it
can pin a record, make a rule of it or raise its trust.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from foveate.integrations.importers.rows import Given, Lines, Row, Skipped, digest, objects, time_of
from foveate.records.kinds import OUTCOMES
from foveate.records.render_events import ROLES

NAME = "jsonl"
_TEXT = ("text", "content", "message")
_TIME = ("time", "timestamp", "created", "created_at", "ts")
_SESSION = ("session", "session_id", "sessionId", "conversation_id")
_TAKEN = ("type", "role", "outcome", "tags")


def read(lines: Lines, name: str) -> Given:
    """The events of a log. `name`: the session of a line that names none."""
    for found in objects(lines):
        if isinstance(found, Skipped):
            yield found
            continue
        number, line = found
        row = _row(number, line, name)
        yield row or Skipped(number, "it has no text, no type and no content")


def _row(number: int, line: Mapping[str, Any], name: str) -> Row | None:
    said = next((field for field in _TEXT if isinstance(line.get(field), str) and line[field].strip()), None)
    timed = next((field for field in _TIME if time_of(line.get(field)) is not None), None)
    within = next((field for field in _SESSION if isinstance(line.get(field), str) and line[field].strip()), None)
    used = {said, timed, within, *_TAKEN}
    data = {field: value for field, value in line.items() if field not in used}
    sort = line["type"] if isinstance(line.get("type"), str) else ""
    role = line["role"] if line.get("role") in ROLES else ""
    if role and sort in ("", "message"):
        sort = f"{role}_message"
    text = str(line[said]) if said else sort or (json.dumps(data, ensure_ascii=False) if data else "")
    if not text.strip():
        return None
    session = str(line[within]) if within else name
    whole = json.dumps(line, ensure_ascii=False, sort_keys=True)
    values: dict[str, Any] = {
        "data": {**data, **({"type": sort} if sort else {})},
        "key": f"{NAME}:{digest(session, str(number), whole)}",
        "created": time_of(line[timed]) if timed else None,
        "outcome": line["outcome"] if line.get("outcome") in OUTCOMES else None,
        "trust": "tool",
    }
    if isinstance(line.get("tags"), list):
        values["tags"] = [tag for tag in line["tags"] if isinstance(tag, str)]
    return Row("event", text, values, session)
