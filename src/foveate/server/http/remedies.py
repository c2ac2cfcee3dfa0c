"""Remedies in errors, as requests: the engine's errors name commands, which a client of the service cannot run.

Commands without an endpoint stay as they are. They are for the person who runs the service, such as `foveate doctor --fix`.
"""

from __future__ import annotations

import re

_REQUESTS = {
    r"edit (\S+) --retire": r'PATCH /v1/records/\1 {"status": "retired"}',
    r"edit (\S+)": r"PATCH /v1/records/\1",
    r"inbox accept (\S+)": r'POST /v1/inbox/\1 {"action": "accept"}',
    r"inbox accept": 'POST /v1/inbox/{id} {"action": "accept"}',
    r"link A NAME B": "POST /v1/links",
    r"log": "GET /v1/contexts",
    r"remember FILE": "POST /v1/import",
    r"search --code": 'POST /v1/search {"where": "code"}',
    r"search --kind entity": "GET /v1/records?kind=entity",
    r"search": "POST /v1/search",
    r"task add \w+ --push": 'POST /v1/tasks {"push": true}',
    r"task done": 'PATCH /v1/tasks/{id} {"status": "completed"}',
    r"task fail": 'PATCH /v1/tasks/{id} {"status": "failed"}',
    r"task handoff --template": "GET /v1/tasks/{id}/handoff",
    r"task list": "GET /v1/tasks",
    r"undo (\S+)": r"POST /v1/records/\1/undo",
    r"why (\S+)": r"GET /v1/contexts/last/why/\1",
}
"""The request that does what a command does. Each pattern must match the whole command."""


def name_requests(text: str) -> str:
    """Return a text that names requests instead of the commands that do the same."""
    return re.sub(r"`foveate ([^`]+)`", _request, text)


def _request(found: re.Match[str]) -> str:
    for command, request in _REQUESTS.items():
        if match := re.fullmatch(command, found[1]):
            return f"`{match.expand(request)}`"
    return found[0]
