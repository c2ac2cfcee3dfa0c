"""The inbox: records that wait for a person's decision."""

from __future__ import annotations

from typing import Any

from fastapi import Request

from foveate.clock import iso
from foveate.engine.inbox import Review
from foveate.server.inspector.page import Action, ActionResult, Page, PageRequest
from foveate.server.inspector.record_history import record_row

REASONS = {
    "proposed": "proposed {kind}",
    "disputed": "disputed by a more trusted record",
    "conflict": "conflicts with another fact",
    "flagged": "mostly fails",
    "question": "open question",
}


def inbox_page(request: PageRequest) -> dict[str, Any]:
    """List what needs a person's decision."""
    limit = request.limit()
    return {"rows": [_row(review) for review in request.engine.inbox.list(limit=limit)], "limit": limit}


def _row(review: Review) -> dict[str, Any]:
    record = review.record
    return {
        **record_row(record),
        "reason": REASONS[review.reason].format(kind=review.proposed_kind),
        "text": record.text,
        "created": iso(record.created),
        "proposed_kind": review.proposed_kind,
    }


def accept(request: PageRequest, _: Request) -> ActionResult:
    (rule,) = request.engine.inbox.accept(request.require("id", "record"))
    return "inbox", {}, f"Accepted: it is the {rule.kind} {rule.id} now."


def reject(request: PageRequest, _: Request) -> ActionResult:
    id = request.require("id", "record")
    request.engine.inbox.reject(id)
    return "inbox", {}, f"Rejected: {id} is retired."


PAGES = (Page("inbox", "Inbox", inbox_page),)
ACTIONS = (
    Action("inbox-accept", ("admin",), accept),
    Action("inbox-reject", ("memory:write",), reject),
)
