"""Code: the map of the repository as ranked for a question, and what was set aside while indexing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foveate.code.languages import grammar
from foveate.code.model import MODULE
from foveate.code.show import first_sentence
from foveate.code.snapshot import CodeSnapshot
from foveate.engine import MAP, WHOLE, Engine
from foveate.errors import NotFound, near
from foveate.operations import json
from foveate.pipeline.assembly import Context
from foveate.receipts.receipt import Receipt, sentence
from foveate.server.http.responses import cursor
from foveate.server.inspector.page import Action, Asked, Page

RANKED = 40
"""Files of the map that are listed by rank."""

HITS = 20
"""Definitions, and files, that a search shows."""

PATHS = 100
"""Paths that were set aside, or read as lines, on one page."""

OUTLINED = 500
"""Definitions of one file."""

DEEPEST = 6


def shown(asked: Asked) -> dict[str, Any]:
    """The code as it is now: what is indexed, the map for a question, what it finds, and what is not indexed."""
    engine, query = asked.engine, asked.text("q").strip()
    path = asked.text("path")
    if not engine.has_code or not engine.code.is_indexed:
        return {"state": "not indexed" if engine.has_code else "no code", "query": query, "path": path}
    with engine.code.snapshot() as look:
        return _shown(asked, engine, look)


def _shown(asked: Asked, engine: Engine, look: CodeSnapshot) -> dict[str, Any]:
    query, path, budget = asked.text("q").strip(), asked.text("path"), asked.number("budget", most=200_000)
    context, receipt = engine.what_if(query or WHOLE, profile=MAP, code_query=query, budget=budget)
    facts = json.code_index(engine.code)
    del facts["root"]  # where it is on this machine says nothing about the code
    return {
        "subject": f"Code: {path or query}"[:80] if path or query else "Code",
        "state": "indexed",
        "query": query,
        "path": path,
        "index": {**facts, "generation": look.index.generation},
        "outline": _outline(look, path) if path else None,
        "map": _map(context, receipt),
        "hits": json.code_hits(query, look.search(query, HITS, HITS)) if query else None,
        "aside": _aside(asked, look, facts["aside"]),
        "read_as_lines": _read_as_lines(look, facts["read_as_lines"]),
        "notes": list(dict.fromkeys((*look.notes, *context.warnings))),
    }


def _map(context: Context, receipt: Receipt) -> dict[str, Any]:
    """The tree as a model would see it, and the files by rank, each with what was decided on it."""
    ranked = sorted(receipt.candidates, key=lambda entry: (-entry["score"], entry["id"]))
    budget = context.budget
    return {
        "text": context.text,
        "tokens": context.tokens,
        "total": budget.total,
        "shown": len(context.items),
        "ranked": [_ranked(entry) for entry in ranked[:RANKED]],
        "more": max(0, len(ranked) - RANKED),
    }


def _ranked(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "path": str(entry["id"]).removeprefix("map:"),
        "score": entry["score"],
        "kept": entry["kept"],
        "level": entry.get("level", ""),
        "tokens": entry.get("shown_tokens"),
        "needs_tokens": entry.get("needs_tokens", 0),
        "sentence": sentence(entry),
    }


def _aside(asked: Asked, look: CodeSnapshot, reasons: Mapping[str, int]) -> dict[str, Any]:
    """What is not indexed, by reason; of one reason or of all, a page of the paths."""
    reason = asked.choice("aside", reasons)
    (start,) = asked.after(int) or (0,)
    start = max(0, start)
    found = [one for one in look.index.exclusions() if not reason or _is_for(one.reason, reason)]
    return {
        "reason": reason,
        "reasons": dict(reasons),
        "paths": [{"path": one.path, "reason": one.reason} for one in found[start : start + PATHS]],
        "number": len(found),
        "next": cursor(start + PATHS) if len(found) > start + PATHS else None,
    }


def _is_for(said: str, reason: str) -> bool:
    """Whether a path was set aside for a reason; a folder says how many files besides."""
    return said == reason or said.startswith(f"{reason}, ")


def _read_as_lines(look: CodeSnapshot, languages: Mapping[str, int]) -> dict[str, Any]:
    """Files that no grammar reads: they are found by their words, and have no definitions."""
    files = look.index.file_table().by_path.values() if languages else ()
    paths = sorted(file.path for file in files if grammar(file.language) is None)
    return {"languages": dict(languages), "paths": paths[:PATHS], "more": max(0, len(paths) - PATHS)}


def _outline(look: CodeSnapshot, asked: str) -> dict[str, Any]:
    """One file: what it is, what it imports, and what it defines, in order."""
    path = look.resolve_path(asked)
    file = look.file(path) if path else None
    if path is None or file is None:
        raise NotFound(_why_not_indexed(look, asked))
    symbols = [symbol for symbol in look.index.symbols_in_file(path) if symbol.kind != MODULE]
    depth: dict[int, int] = {}
    for symbol in symbols:
        depth[symbol.id] = 0 if symbol.parent is None else min(DEEPEST, depth.get(symbol.parent, -1) + 1)
    return {
        "path": path,
        "role": file.role,
        "language": file.language,
        "lines": file.lines,
        "read_as_lines": grammar(file.language) is None,
        "imports": list(look.index.imports(path)),
        "definitions": [
            {
                "name": symbol.qualified,
                "kind": symbol.kind,
                "line": symbol.line,
                "end": symbol.end,
                "signature": symbol.signature or symbol.name,
                "doc": first_sentence(symbol.doc),
                "depth": depth[symbol.id],
            }
            for symbol in symbols[:OUTLINED]
        ],
        "more": max(0, len(symbols) - OUTLINED),
    }


def _why_not_indexed(look: CodeSnapshot, path: str) -> str:
    for one in look.index.exclusions():
        if path == one.path or (one.path.endswith("/") and path.startswith(one.path)):
            return f"{path!r} is set aside: {one.reason}."
    return f"There is no file {path!r} in the index.{near(path, look.index.file_table().by_path)}"


PAGES: tuple[Page, ...] = (
    Page("code", "Code", shown, "context:read", "The map of the repository for a question, and what is not indexed."),
)
ACTIONS: tuple[Action, ...] = ()
