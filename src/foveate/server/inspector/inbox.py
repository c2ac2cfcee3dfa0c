"""The inbox: records that wait for a person's decision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi import Request

from foveate.clock import iso
from foveate.engine import Engine
from foveate.server import proposals
from foveate.server.inspector.page import Action, ActionResult, Page, PageRequest
from foveate.server.inspector.record_history import record_row
from foveate.types import NO_FILTERS, Filters, Record


def inbox_page(request: PageRequest) -> dict[str, Any]:
    """List proposed rules, disputed records, procedures that mostly fail, and open questions."""
    limit = request.limit()
    rows = [_row(record, reason) for record, reason in _waiting(request.engine, limit)]
    return {"rows": rows, "limit": limit}


def _waiting(engine: Engine, limit: int) -> Iterator[tuple[Record, str]]:
    for record in proposals.proposals(engine, limit):
        yield record, f"proposed {proposals.proposed_kind(record)}"
    disputed, _ = engine.page(limit, filters=Filters(), status="disputed")
    yield from ((record, "disputed by a more trusted record") for record in disputed)
    with engine.reader() as reader:
        procedures = reader.recent(["procedure", "pattern"], limit, NO_FILTERS)
    yield from ((record, "mostly fails") for record in procedures if record.data.get("review"))
    questions, _ = engine.page(limit, filters=Filters(kinds=("question",)), status="active")
    yield from ((record, "open question") for record in questions)


def _row(record: Record, reason: str) -> dict[str, Any]:
    return {
        **record_row(record),
        "reason": reason,
        "text": record.text,
        "created": iso(record.created),
        "proposed_kind": proposals.proposed_kind(record),
    }


def accept(request: PageRequest, _: Request) -> ActionResult:
    rule = proposals.accept(request.engine, request.require("id", "record"))
    return "inbox", {}, f"Accepted: it is the {rule.kind} {rule.id} now."


def reject(request: PageRequest, _: Request) -> ActionResult:
    id = request.require("id", "record")
    request.engine.retire(id)
    return "inbox", {}, f"Rejected: {id} is retired."


PAGES = (Page("inbox", "Inbox", inbox_page),)
ACTIONS = (
    Action("inbox-accept", ("admin",), accept),
    Action("inbox-reject", ("memory:write",), reject),
)
