"""The page about code: the repository map as ranked for a query, search, and the files that are not indexed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foveate.code.snapshot import CodeSnapshot
from foveate.engine.code import MAP_PROFILE, MAP_QUERY
from foveate.operations import documents
from foveate.server.http.responses import encode_cursor
from foveate.server.inspector.page import Page, PageRequest

MAX_RANKED = 40
"""Files of the map that are listed by rank."""

MAX_HITS = 20

PATHS_PER_PAGE = 100


def code_page(request: PageRequest) -> dict[str, Any]:
    """Show the map for a query, the definitions and files that it finds, and what was skipped."""
    engine, query = request.engine, request.text("q").strip()
    budget = request.integer("budget", maximum=200_000)
    if not engine.code.available or not engine.code.workspace.is_indexed:
        return {"state": "not indexed" if engine.code.available else "no code", "query": query}
    with engine.code.workspace.snapshot() as snapshot:
        return _indexed_view(request, snapshot, query, budget)


def _indexed_view(request: PageRequest, snapshot: CodeSnapshot, query: str, budget: int | None) -> dict[str, Any]:
    engine = request.engine
    context = engine.context(query or MAP_QUERY, profile=MAP_PROFILE, code_query=query, budget=budget, dry_run=True)
    receipt = engine.receipts.get(context)
    index = documents.code_index(engine.code.workspace)
    ranked = sorted(receipt.candidates, key=lambda entry: (-entry.score, entry.id))
    return {
        "state": "indexed",
        "query": query,
        "index": index,
        "map": {
            "text": context.text,
            "tokens": context.tokens,
            "total": context.budget.total,
            "ranked": ranked[:MAX_RANKED],
            "more": max(0, len(ranked) - MAX_RANKED),
        },
        "hits": documents.code_hits(query, snapshot.search(query, MAX_HITS, MAX_HITS)) if query else None,
        "skipped": _skipped(request, snapshot, index["aside"]),
        "notes": list(dict.fromkeys((*snapshot.notes, *context.warnings))),
    }


def _skipped(request: PageRequest, snapshot: CodeSnapshot, reasons: Mapping[str, int]) -> dict[str, Any]:
    """Return the reasons for which files are not indexed, and a page of the paths of one reason or of all."""
    reason = request.choice("reason", reasons)
    (start,) = request.cursor(int) or (0,)
    start = max(0, start)
    found = [  # the reason of a folder also counts its files, after a comma
        skipped
        for skipped in snapshot.index.exclusions()
        if not reason or skipped.reason == reason or skipped.reason.startswith(f"{reason}, ")
    ]
    return {
        "reason": reason,
        "reasons": dict(reasons),
        "paths": found[start : start + PATHS_PER_PAGE],
        "number": len(found),
        "next": encode_cursor(start + PATHS_PER_PAGE) if len(found) > start + PATHS_PER_PAGE else None,
    }


PAGES = (Page("code", "Code", code_page, "context:read"),)
