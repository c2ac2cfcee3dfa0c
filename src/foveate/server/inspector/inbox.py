"""The inbox: records that wait for a person's decision."""

from __future__ import annotations

from typing import Any

from foveate.engine.inbox import Review
from foveate.errors import InputError
from foveate.server.inspector.page import Action, ActionResult, Page, PageRequest

REASONS = {
    "proposed": "proposed {kind}",
    "disputed": "disputed by a more trusted record",
    "conflict": "conflicts with another fact",
    "flagged": "mostly fails",
    "question": "open question",
}


def inbox_page(request: PageRequest) -> dict[str, Any]:
    """List the records that need a person's decision."""
    limit = request.limit()
    reviews = request.engine.inbox.list(limit=limit)
    return {"rows": [(review, _reason(review)) for review in reviews], "limit": limit}


def _reason(review: Review) -> str:
    return REASONS[review.reason].format(kind=review.proposed_kind)


def accept(request: PageRequest) -> ActionResult:
    (rule,) = request.engine.inbox.accept(request.require("id", "record"))
    return "inbox", {}, f"Accepted: it is the {rule.kind} {rule.id} now."


def edit_and_accept(request: PageRequest) -> ActionResult:
    id, text = request.require("id", "record"), request.text("text").strip()
    if not text:
        raise InputError("An accepted record needs a text. Reject the proposal instead.")
    (record,) = request.engine.inbox.accept(id, text=text)
    return "inbox", {}, f"Accepted with your text: it is the {record.kind} {record.id} now."


def answer(request: PageRequest) -> ActionResult:
    id, text = request.require("id", "question"), request.text("answer").strip()
    if not text:
        raise InputError("The answer is empty. Write one, or reject the question.")
    decision = request.engine.inbox.answer(id, text)
    return "inbox", {}, f"Answered: the decision {decision.id}."


def reject(request: PageRequest) -> ActionResult:
    id = request.require("id", "record")
    request.engine.inbox.reject(id)
    return "inbox", {}, f"Rejected: {id} is retired."


PAGES = (Page("inbox", "Inbox", inbox_page),)
ACTIONS = (
    Action("inbox-accept", "admin", accept),
    Action("inbox-edit", "admin", edit_and_accept),
    Action("inbox-answer", "memory:write", answer),
    Action("inbox-reject", "memory:write", reject),
)
