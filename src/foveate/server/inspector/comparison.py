"""Tabs of a context: what was left out of it, how it differs from another one, and how it would look with other settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from foveate.engine import Engine
from foveate.engine.engine import view_of
from foveate.errors import BudgetError, InputError, NotFound, ProfileError, SourceError
from foveate.pipeline import profiles
from foveate.receipts import receipt as receipts
from foveate.receipts.prompt import whole
from foveate.receipts.receipt import Receipt, line, scope_within
from foveate.receipts.refresh import options_of
from foveate.records.render import display_name
from foveate.server.inspector.candidate_rows import Row, candidate_rows, features
from foveate.server.inspector.contexts import budget_view, context_header, context_view, receipt_of
from foveate.server.inspector.page import Page, PageRequest
from foveate.server.inspector.text_diff import diff_lines
from foveate.types import Reason

# --- left out --------------------------------------------------------------------------------------------------------

SORT_COLUMNS = ("score", "needs_tokens", "needs_score", "title")

REASONS_NAMING_RECORD = ("duplicate", "superseded", "disputed")
"""Reasons whose detail is the id of another record."""

ROWS_PER_PAGE = 100


def left_out_page(request: PageRequest) -> dict[str, Any]:
    """List the candidates of a context that were left out, with the reason and what each lacked."""
    receipt = receipt_of(request)
    every = candidate_rows(request.engine, receipt, [entry for entry in receipt.candidates if not entry["kept"]])
    reason, words = request.choice("reason", get_args(Reason)), request.text("q")
    sort = request.choice("sort", SORT_COLUMNS, "score")
    rows = _sort_rows([row for row in every if _matches(row, reason, words)], sort)
    limit = request.limit(ROWS_PER_PAGE)
    pages = max(1, -(-len(rows) // limit))
    page = min(request.integer("page", 1) or 1, pages)
    shown = rows[(page - 1) * limit : page * limit]
    return {
        "subject": f"Left out: {receipt.document['request']['query'][:60]}",
        "context": context_header(receipt),
        "summary": summary(receipt),
        "reasons": dict(Counter(row["reason"] for row in every).most_common()),
        "reason": reason,
        "q": words,
        "sort": sort,
        "features": features(shown),
        "max_score": max((row["score"] for row in every), default=0),
        "number": len(rows),
        "page": page,
        "pages": pages,
        "first": (page - 1) * limit + 1,
        "left_out": _with_related_records(request, receipt, shown),
        "why": _why(request, receipt),
    }


def summary(receipt: Receipt) -> str:
    """Return one or two sentences about what was left out."""
    lost = [entry for entry in receipt.candidates if not entry["kept"]]
    total = len(receipt.candidates)
    if not lost:
        return f"Nothing was left out of {total} candidates." if total else "No source returned a candidate."
    parts = []
    if too_large := [entry["needs_tokens"] for entry in lost if entry["reason"] == "budget"]:
        tokens = "1 token" if min(too_large) == 1 else f"{min(too_large):,} tokens"
        parts.append(f"{len(too_large)} of {total} candidates did not fit; the smallest shortfall was {tokens}")
    if too_low := [entry["needs_score"] for entry in lost if entry["needs_score"] > 0]:
        score = f"{min(too_low):.3f}" if min(too_low) >= 0.0005 else "less than 0.001"
        parts.append(f"{len(too_low)} of {total} scored too low; the smallest shortfall was {score}")
    if others := len(lost) - len(too_large) - len(too_low):
        parts.append(f"{others} of {total} were left out for other reasons")
    return f"{'. '.join(parts)}."


def _matches(row: Row, reason: str, words: str) -> bool:
    text = " ".join(str(row[name]) for name in ("title", "id", "kind", "slot", "source", "origin")).lower()
    return reason in ("", row["reason"]) and all(word in text for word in words.lower().split())


def _sort_rows(rows: list[Row], sort: str) -> list[Row]:
    """Sort by a column: best score, smallest shortfall or title first. Rows without a shortfall come last."""
    rows = sorted(rows, key=lambda row: (-row["score"], row["id"], row["slot"]))
    if sort == "title":
        return sorted(rows, key=lambda row: row["title"].lower())
    return rows if sort == "score" else sorted(rows, key=lambda row: (not row[sort], row[sort]))


def _with_related_records(request: PageRequest, receipt: Receipt, rows: Sequence[Row]) -> list[Row]:
    """Add to each row the record that it repeats or that superseded it."""
    ids = list(dict.fromkeys(row["detail"] for row in rows if row["reason"] in REASONS_NAMING_RECORD and row["detail"]))
    with request.engine.store.data.reader(scope_within(receipt, request.engine.scope)) as reader:
        records = reader.get(ids) if ids else {}
    others = {id: {"id": id, "title": id, "is_record": False} for id in ids}
    others |= {id: {"id": id, "title": display_name(record), "is_record": True} for id, record in records.items()}
    return [{**row, "other": others.get(row["detail"]) if row["reason"] in REASONS_NAMING_RECORD else None} for row in rows]


def _why(request: PageRequest, receipt: Receipt) -> dict[str, Any] | None:
    """Explain why a record is or is not in the context, even if it was not a candidate."""
    id = request.text("why").strip()
    if not id:
        return None
    try:
        return {"id": id, "found": True, "sentence": request.engine.why(id, receipt.id)["sentence"]}
    except (NotFound, InputError) as error:
        return {"id": id, "found": False, "sentence": str(error)}


# --- compare ---------------------------------------------------------------------------------------------------------

MAX_CONTEXT_CHOICES = 50

CHANGES = ("added", "withdrawn", "moved", "re_detailed", "changed")


def compare_page(request: PageRequest) -> dict[str, Any]:
    """Show what changed between two contexts."""
    after = receipt_of(request)
    before = receipt_of(request, "from") if request.text("from") else _previous_context(request.engine, after)
    latest = request.engine.receipts.list(limit=MAX_CONTEXT_CHOICES)
    if before is not None and before.id not in {row["id"] for row in latest}:
        latest = [*latest, line(before)]
    return {
        "subject": f"Compare: {after.document['request']['query'][:60]}",
        "context": context_header(after),
        "before": before and context_header(before),
        "choices": [{name: row[name] for name in ("id", "created", "query")} for row in latest if row["id"] != after.id],
        "diff": before and _diff_view(request, before, after),
    }


def _previous_context(engine: Engine, receipt: Receipt) -> Receipt | None:
    """Return the context before another one: of its session, or else of any."""
    request = receipt.document["request"]
    at, session = (request["now"], receipt.id), request["scope"]["session"]
    found = engine.receipts.list(limit=1, after=at, session=session) if session else []
    found = found or engine.receipts.list(limit=1, after=at)
    return engine.receipts.get(found[0]["id"]) if found else None


def _diff_view(request: PageRequest, before: Receipt, after: Receipt) -> dict[str, Any]:
    diff = request.engine.receipts.diff(before, after, texts=True)
    view = {
        "tokens": diff["tokens"],
        "same_prefix": diff["same_prefix"],
        "items": changed_items(request, before, after, diff),
        "budgets": [budget_view(receipt.document["budget"]) for receipt in (before, after)],
        "shared_prefix": None,
        "text": None,
        "unread": diff["unread"],
    }
    if not diff["unread"]:
        first, second = diff["texts"]
        view |= {"shared_prefix": {**diff["shared_prefix"], "of": len(second)}, "text": diff_lines(first, second)}
    return view


def changed_items(request: PageRequest, before: Receipt, after: Receipt, diff: Mapping[str, Any]) -> list[Row]:
    """Return a row for each item that was added, withdrawn, moved to another place or shown at another level or version."""
    rows = {receipt.id: _kept_rows(request, receipt, diff) for receipt in (before, after)}
    found = []
    for change in CHANGES:
        receipt = before if change == "withdrawn" else after
        for entry in diff[change]:
            steps = {"from": entry.get("from"), "to": entry.get("to")}
            found.append({**rows[receipt.id][entry["id"]], "change": change.replace("_", "-"), **steps})
    return found


def _kept_rows(request: PageRequest, receipt: Receipt, diff: Mapping[str, Any]) -> dict[str, Row]:
    ids = {entry["id"] for change in CHANGES for entry in diff[change]}
    kept = [entry for entry in receipt.candidates if entry["kept"] and entry["id"] in ids]
    return {row["id"]: row for row in candidate_rows(request.engine, receipt, kept)}


# --- try changes -----------------------------------------------------------------------------------------------------


def try_page(request: PageRequest) -> dict[str, Any]:
    """Compute a context again with another query, budget or profile. Nothing is stored."""
    start = receipt_of(request)
    form = {"query": request.text("query"), "budget": request.integer("budget"), "profile": request.text("profile")}
    document = {
        "subject": f"Try changes: {start.document['request']['query'][:60]}",
        "context": context_header(start),
        "form": form,
        "total": start.document["budget"]["total"],
        "profiles": [each.name for each in profiles.known(request.engine.store.profile_dirs)],
        "has_extra": bool(start.document["request"]["given"]),
        "problem": "",
        "result": None,
    }
    options = {**options_of(start), **{name: value for name, value in form.items() if value}}
    try:
        view = view_of(request.engine, scope_within(start, request.engine.scope))
        context = view.context(dry_run=True, **options)
        receipt = view.receipts.get(context)
    except (InputError, ProfileError, BudgetError, NotFound, SourceError) as error:  # shown next to the form
        return {**document, "problem": str(error)}
    records = {item.id: item.record for item in context.items}
    diff = receipts.diff(start, receipt)
    return {
        **document,
        "result": {
            **context_view(request, receipt, whole(context.sections, context.tag), records),
            "summary": summary(receipt),
            "tokens": diff["tokens"],
            "items_changed": changed_items(request, start, receipt, diff),
        },
    }


PAGES = (
    Page("left-out", "Left out", left_out_page, "context:read", in_navigation=False),
    Page("compare", "Compare", compare_page, "context:read", in_navigation=False),
    Page("try", "Try changes", try_page, "context:read", in_navigation=False),
)
