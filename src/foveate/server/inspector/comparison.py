"""Tabs of a context: what was left out of it, how it differs from another one, and how it would look with other settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, get_args

from foveate.engine import Engine
from foveate.engine.engine import view_of
from foveate.errors import BudgetError, InputError, NotFound, ProfileError, SourceError
from foveate.pipeline import profiles
from foveate.receipts.diff import Diff, ItemChange, diff_of
from foveate.receipts.parts import never_candidates
from foveate.receipts.receipt import Receipt
from foveate.receipts.replay import prompt_of
from foveate.receipts.summary import summary_of
from foveate.records.render import display_name
from foveate.server.inspector.candidate_rows import CandidateRow, candidate_rows, features
from foveate.server.inspector.contexts import context_view, receipt_of
from foveate.server.inspector.page import Page, PageRequest
from foveate.types import Reason

# --- left out --------------------------------------------------------------------------------------------------------

SORT_COLUMNS = ("score", "needs_tokens", "needs_relevance", "title")

REASONS_NAMING_RECORD = ("duplicate", "superseded", "disputed")
"""Reasons whose detail is the id of another record."""

ROWS_PER_PAGE = 100


def left_out_page(request: PageRequest) -> dict[str, Any]:
    """List the candidates of a context that were left out, with the reason and what each lacked."""
    receipt = receipt_of(request)
    every = candidate_rows(request.engine, receipt, list(receipt.left_out))
    reason, words = request.choice("reason", get_args(Reason)), request.text("q")
    sort = request.choice("sort", SORT_COLUMNS, "score")
    rows = _sort_rows([row for row in every if _matches(row, reason, words)], sort)
    limit = request.limit(ROWS_PER_PAGE)
    pages = max(1, -(-len(rows) // limit))  # rounded up
    page = min(request.integer("page", 1) or 1, pages)
    shown = rows[(page - 1) * limit : page * limit]
    return {
        "subject": f"Left out: {receipt.request.query[:60]}",
        "context": receipt,
        "summary": summary(receipt, request.engine.receipts.count_not_considered(receipt)),
        "reasons": dict(Counter(entry.reason for entry in receipt.left_out).most_common()),
        "reason": reason,
        "q": words,
        "sort": sort,
        "features": features(shown),
        "max_score": max((row.entry.score for row in every), default=0),
        "number": len(rows),
        "page": page,
        "pages": pages,
        "first": (page - 1) * limit + 1,
        "left_out": shown,
        "others": _other_records(request, receipt, shown),
        "why": _why(request, receipt),
    }


def summary(receipt: Receipt, not_considered: int) -> str:
    """Return a few sentences about what was left out, and how many records in scope were never candidates."""
    sentences = [_summary_of_candidates(receipt), *([never_candidates(not_considered)] if not_considered else [])]
    return " ".join(sentences)


def _summary_of_candidates(receipt: Receipt) -> str:
    lost = list(receipt.left_out)
    total = len(receipt.candidates)
    if not lost:
        return f"Nothing was left out of {total} candidates." if total else "No source returned a candidate."
    parts = []
    if too_large := [entry.needs_tokens for entry in lost if entry.reason == "budget"]:
        tokens = "1 token" if min(too_large) == 1 else f"{min(too_large):,} tokens"
        parts.append(f"{len(too_large)} of {total} candidates did not fit; the smallest shortfall was {tokens}")
    if too_low := [entry.needs_relevance for entry in lost if entry.needs_relevance > 0]:
        relevance = f"{min(too_low):.3f}" if min(too_low) >= 0.0005 else "less than 0.001"
        parts.append(f"{len(too_low)} of {total} were not relevant enough; the smallest shortfall was {relevance}")
    if others := len(lost) - len(too_large) - len(too_low):
        parts.append(f"{others} of {total} were left out for other reasons")
    return f"{'. '.join(parts)}."


def _matches(row: CandidateRow, reason: str, words: str) -> bool:
    entry = row.entry
    text = " ".join((row.title, entry.id, entry.kind, entry.slot, entry.source, row.origin)).lower()
    has_reason = not entry.is_kept and reason in ("", entry.reason)
    return has_reason and all(word in text for word in words.lower().split())


def _sort_rows(rows: list[CandidateRow], sort: str) -> list[CandidateRow]:
    """Sort by a column: best score, smallest shortfall or title first. Rows without a shortfall come last."""
    # Sorting is stable: rows that are equal in another column stay in the order of their scores.
    rows = sorted(rows, key=lambda row: (-row.entry.score, row.id, row.entry.slot))
    if sort == "title":
        return sorted(rows, key=lambda row: row.title.lower())
    if sort == "score":
        return rows
    return sorted(rows, key=lambda row: (not getattr(row.entry, sort), getattr(row.entry, sort)))


@dataclass(frozen=True, slots=True)
class OtherRecord:
    """The record that a candidate repeats, or that superseded it."""

    id: str
    title: str
    is_record: bool
    """It can still be read and has a page."""


def _other_records(request: PageRequest, receipt: Receipt, rows: Sequence[CandidateRow]) -> dict[str, OtherRecord]:
    """Return the records that the reasons of the rows name, by id."""
    entries = [row.entry for row in rows]
    ids = [entry.detail for entry in entries if not entry.is_kept and entry.reason in REASONS_NAMING_RECORD and entry.detail]
    with request.engine.store.data.reader(receipt.narrow_scope(request.engine.scope)) as reader:
        records = reader.get(ids) if ids else {}
    return {id: OtherRecord(id, display_name(records[id]) if id in records else id, id in records) for id in ids}


def _why(request: PageRequest, receipt: Receipt) -> dict[str, Any] | None:
    """Explain why a record is or is not in the context, even if it was not a candidate."""
    id = request.text("why").strip()
    if not id:
        return None
    try:
        return {"id": id, "found": True, "sentence": str(request.engine.why(id, receipt.id))}
    except (NotFound, InputError) as error:
        return {"id": id, "found": False, "sentence": str(error)}


# --- compare ---------------------------------------------------------------------------------------------------------

MAX_CONTEXT_CHOICES = 50


def compare_page(request: PageRequest) -> dict[str, Any]:
    """Show what changed between two contexts."""
    after = receipt_of(request)
    before = receipt_of(request, "from") if request.text("from") else _previous_context(request.engine, after)
    latest = request.engine.receipts.list(limit=MAX_CONTEXT_CHOICES)
    if before is not None and before.id not in {line.id for line in latest}:
        latest = [*latest, summary_of(before)]
    return {
        "subject": f"Compare: {after.request.query[:60]}",
        "context": after,
        "before": before,
        "choices": [line for line in latest if line.id != after.id],
        **_differences(request, before, after),
    }


def _previous_context(engine: Engine, receipt: Receipt) -> Receipt | None:
    """Return the context before another one: of its session, or else of any."""
    at, session = (receipt.created, receipt.id), receipt.request.scope.session
    found = engine.receipts.list(limit=1, after=at, session=session) if session else []
    found = found or engine.receipts.list(limit=1, after=at)
    return engine.receipts.get(found[0].id) if found else None


def _differences(request: PageRequest, before: Receipt | None, after: Receipt) -> dict[str, Any]:
    if before is None:
        return {"diff": None}
    diff = request.engine.receipts.diff(before, after)
    return {
        "diff": diff,
        "items": changed_items(request, before, after, diff),
        "text": diff_lines(*diff.texts) if diff.texts else None,
    }


@dataclass(frozen=True, slots=True)
class ChangedItem:
    """An item that differs between two contexts. `values` has the earlier and the later value of what changed."""

    change: str
    row: CandidateRow
    values: str


def changed_items(request: PageRequest, before: Receipt, after: Receipt, diff: Diff) -> list[ChangedItem]:
    """Return a row for each item that was added, withdrawn, moved to another place or shown at another level or version."""
    changes = (
        ("added", after, diff.added),
        ("withdrawn", before, diff.withdrawn),
        ("moved", after, diff.place_changes),
        ("re-detailed", after, diff.level_changes),
        ("changed", after, diff.version_changes),
    )
    ids = {entry.id for _, _, entries in changes for entry in entries}
    rows = {receipt.id: _item_rows(request, receipt, ids) for receipt in (before, after)}
    found = []
    for change, receipt, entries in changes:
        for entry in entries:
            values = f"{entry.before} → {entry.after}" if isinstance(entry, ItemChange) else ""
            found.append(ChangedItem(change, rows[receipt.id][entry.id], values))
    return found


def _item_rows(request: PageRequest, receipt: Receipt, ids: set[str]) -> dict[str, CandidateRow]:
    items = [entry for entry in receipt.items if entry.id in ids]
    return {row.id: row for row in candidate_rows(request.engine, receipt, items)}


# --- lines in which two texts differ ---------------------------------------------------------------------------------

CONTEXT_LINES = 2

MAX_LINES = 3_000
"""Lines of both texts that are aligned one by one. difflib takes quadratic time in the worst case."""

MAX_SHOWN_LINES = 600


def diff_lines(before: str, after: str) -> dict[str, Any]:
    """Return the rows to show and the number of added, withdrawn and hidden lines.

    `op` of a row is same, added, withdrawn or gap. A gap stands for equal lines that are not shown.
    """
    rows = list(_rows(before.split("\n"), after.split("\n")))
    counts = {op: sum(row["op"] == op for row in rows) for op in ("added", "withdrawn")}
    return {**counts, "not_shown": max(0, len(rows) - MAX_SHOWN_LINES), "lines": rows[:MAX_SHOWN_LINES]}


def _rows(old: Sequence[str], new: Sequence[str]) -> Iterator[dict[str, Any]]:
    end, groups = 0, _groups(old, new)
    for group in groups:
        if hidden := group[0][1] - end:
            yield {"op": "gap", "text": f"{hidden:,} equal lines"}
        for op, from_old, to_old, from_new, to_new in group:
            if op == "equal":
                yield from ({"op": "same", "text": line} for line in old[from_old:to_old])
            else:
                yield from ({"op": "withdrawn", "text": line} for line in old[from_old:to_old])
                yield from ({"op": "added", "text": line} for line in new[from_new:to_new])
        end = group[-1][2]
    if groups and (hidden := len(old) - end):
        yield {"op": "gap", "text": f"{hidden:,} equal lines"}


def _groups(old: Sequence[str], new: Sequence[str]) -> list[list[tuple[str, int, int, int, int]]]:
    """Return opcodes in groups, as difflib does. Long texts are one change between their equal beginning and end."""
    if len(old) + len(new) <= MAX_LINES:
        return [list(group) for group in SequenceMatcher(None, old, new).get_grouped_opcodes(CONTEXT_LINES)]
    start = _common_prefix_length(old, new)
    end = _common_prefix_length(old[start:][::-1], new[start:][::-1])
    if start == len(old) == len(new):
        return []
    return [[("replace", start, len(old) - end, start, len(new) - end)]]


def _common_prefix_length(old: Sequence[str], new: Sequence[str]) -> int:
    pairs = zip(old, new, strict=False)
    return next((n for n, (one, other) in enumerate(pairs) if one != other), min(len(old), len(new)))


# --- try changes -----------------------------------------------------------------------------------------------------


def try_page(request: PageRequest) -> dict[str, Any]:
    """Compute a context again with another query, budget or profile. Nothing is stored."""
    start = receipt_of(request)
    form = {"query": request.text("query"), "budget": request.integer("budget"), "profile": request.text("profile")}
    document = {
        "subject": f"Try changes: {start.request.query[:60]}",
        "context": start,
        "form": form,
        "total": start.budget.total,
        "profiles": [each.name for each in profiles.list_profiles(request.engine.store.profile_dirs)],
        "has_extra": bool(start.request.extra),
        "problem": "",
        "result": None,
    }
    query = request.text("query") or (None if start.request.is_forgotten else start.request.query)
    changes = {name: form[name] for name in ("budget", "profile") if form[name]}
    options: dict[str, Any] = {**start.request.options(), **changes}
    try:
        view = view_of(request.engine, start.narrow_scope(request.engine.scope))
        context = view.context(query, dry_run=True, **options)
        receipt = view.receipts.get(context)
    except (InputError, ProfileError, BudgetError, NotFound, SourceError) as error:  # shown next to the form
        return {**document, "problem": str(error)}
    records = {item.id: item.record for item in context.items}
    diff = diff_of(start, receipt)
    return {
        **document,
        "result": {
            **context_view(request, receipt, prompt_of(context.sections, context.tag), records),
            "summary": summary(receipt, view.receipts.count_not_considered(context)),
            "tokens": diff.tokens,
            "items_changed": changed_items(request, start, receipt, diff),
        },
    }


PAGES = (
    Page("left-out", "Left out", left_out_page, "context:read", in_navigation=False),
    Page("compare", "Compare", compare_page, "context:read", in_navigation=False),
    Page("try", "Try changes", try_page, "context:read", in_navigation=False),
)
