"""Pages about contexts: the list of past contexts, the timeline of a session, and one context as the model received it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from foveate.receipts.codec import signals_to_json
from foveate.receipts.receipt import Receipt
from foveate.receipts.replay import Prompt
from foveate.receipts.summary import ReceiptSummary
from foveate.server.http.responses import encode_cursor
from foveate.server.inspector.candidate_rows import CandidateRow, candidate_rows, features
from foveate.server.inspector.page import Page, PageRequest
from foveate.types import LAST, Record

TURNS_PER_PAGE = 200


def contexts_page(request: PageRequest) -> dict[str, Any]:
    """List past contexts, newest first, grouped by session."""
    limit = request.limit()
    rows = request.engine.receipts.list(limit=limit + 1, after=request.cursor(int, str))
    shown = rows[:limit]
    groups: dict[str | None, list[ReceiptSummary]] = {}
    for row in shown:
        groups.setdefault(row.scope.session, []).append(row)
    # A token for one agent must not tell its holder the names of the others.
    speaks_for_one_agent = request.caller.principal.scope.agent and not request.caller.principal.is_owner
    return {
        "groups": [{"session": session, "contexts": contexts} for session, contexts in groups.items()],
        "next": encode_cursor(shown[-1].created, shown[-1].id) if len(rows) > limit else None,
        "agents": [] if speaks_for_one_agent else request.engine.receipts.agents(),
        "agent": request.engine.scope.agent,
        "is_first_page": not request.text("after"),
    }


def session_page(request: PageRequest) -> dict[str, Any]:
    """Show a session turn by turn: tokens by slot, what was added and withdrawn, and why contexts were refreshed."""
    name = request.require("name", "session")
    timeline = request.engine.receipts.timeline(name, limit=request.limit(TURNS_PER_PAGE))
    turns, compactions = timeline.turns, timeline.compactions
    order = [(turn.summary.created, "turn", n) for n, turn in enumerate(turns)]
    order += [(compaction.at, "compaction", n) for n, compaction in enumerate(compactions)]
    tokens = [turn.summary.tokens for turn in turns]
    return {
        "subject": f"Session {name}",
        "turns": turns,
        "slots": list(dict.fromkeys(slot for turn in turns for slot in turn.summary.slots)),
        "compactions": compactions,
        "earlier": timeline.earlier,
        "tokens": sum(tokens),
        "refreshed": sum(bool(turn.refresh) for turn in turns),
        "same_prefix": sum(turn.same_prefix for turn in turns),
        "largest": max(tokens, default=0),
        "rows": [{"type": type, "n": n} for _, type, n in sorted(order)],
    }


def context_page(request: PageRequest) -> dict[str, Any]:
    """Show a context: the prompt, the budget, and its items."""
    receipt = receipt_of(request)
    return context_view(request, receipt, request.engine.receipts.replay(receipt).prompt)


def receipt_of(request: PageRequest, name: str = "id") -> Receipt:
    """Return the receipt of the context that a parameter names, the latest one by default."""
    return request.engine.receipts.get(request.text(name, LAST))


def context_view(
    request: PageRequest, receipt: Receipt, prompt: Prompt, external_records: Mapping[str, Record] | None = None
) -> dict[str, Any]:
    """Return everything that the page of a context shows."""
    slots = [slot.name for slot in receipt.budget.slots]
    kept = sorted(receipt.items, key=lambda entry: (slots.index(entry.slot), entry.rank))
    items = _in_prompt_order(candidate_rows(request.engine, receipt, kept, external_records), prompt)
    return {
        "subject": f"Context: {receipt.request.query[:60]}",
        "context": receipt,
        "prompt": _prompt_view(prompt, items),
        "items": items,
        "features": features(items),
        "left_out": dict(Counter(entry.reason for entry in receipt.left_out).most_common()),
        "signals": {name: value for name, value in signals_to_json(receipt.signals).items() if value},
    }


def _in_prompt_order(items: list[CandidateRow], prompt: Prompt) -> list[CandidateRow]:
    """Number the items in the order of the prompt. Those that can no longer be read come last."""
    place = {id: n for n, id in enumerate(span.id for part in prompt.parts for span in part.pieces if span.id)}
    ordered = sorted(items, key=lambda item: place.get(item.id, len(place)))
    return [replace(item, number=n, is_missing=item.id not in place) for n, item in enumerate(ordered, 1)]


def _prompt_view(prompt: Prompt, items: list[CandidateRow]) -> dict[str, Any]:
    numbers = {item.id: item.number for item in items}
    parts = [
        {
            "name": part.name,
            "role": part.role,
            "stable": part.stable,
            "spans": [{"text": span.text, "item": numbers.get(span.id)} for span in part.pieces],
        }
        for part in prompt.parts
    ]
    return {"identical": prompt.identical, "missing": list(prompt.missing), "text": prompt.text, "parts": parts}


PAGES = (
    Page("contexts", "Contexts", contexts_page, "context:read"),
    Page("context", "Context", context_page, "context:read", in_navigation=False),
    Page("session", "Session", session_page, "context:read", in_navigation=False),
)
