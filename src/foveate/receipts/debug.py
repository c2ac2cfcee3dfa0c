"""000's debug section: a receipt as Markdown for whoever wonders what a task's context was computed from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from foveate.pipeline.sources.context_map import FULL_COUNT, total
from foveate.receipts.receipt import Receipt


def debug(receipt: Receipt) -> str:
    """000's debug section: what the signals were, and how many each step found and let through."""
    signals = receipt.document["signals"]
    kept = [entry for entry in receipt.candidates if entry["kept"]]
    sources = {report["source"]: report for report in receipt.document["sources"]}
    looked_up = [entry for entry in receipt.candidates if entry["kind"] in ("pattern", "gotcha", "decision")]
    inherited = [entry for entry in receipt.candidates if entry.get("via")]
    map_entries = [entry for entry in receipt.candidates if entry["source"] == "context_map"]
    top = max((total(entry["features"]) * FULL_COUNT for entry in map_entries), default=0)
    parts: dict[str, dict[str, Any]] = {
        "Signals Extracted": {
            "Keywords": _list(signals.get("keywords", ())),
            "Domains": _list(signals.get("domains", ())),
            "Files Mentioned": _list(signals.get("paths", ())),
            "Task Type": signals.get("task_type") or "none",
            "Complexity": f"{signals.get('complexity') or 'none'} ({signals.get('because') or 'no task'})",
        },
        "Knowledge Graph Query": {
            "Nodes matched": len({entry["id"] for entry in looked_up}),
            "Patterns found": _number(looked_up, "pattern"),
            "Gotchas found": _number(looked_up, "gotcha"),
            "Decisions found": _number(looked_up, "decision"),
        },
        "Dependencies Processed": {
            "Task IDs": _list(e["id"] for e in receipt.candidates if e["source"] == "dependencies" and e["kind"] == "task"),
            "Patterns inherited": _number(inherited, "pattern"),
            "Warnings inherited": _number(inherited, "gotcha"),
            "Blocking questions": _number(inherited, "question"),
        },
        "Context Map Filtering": {
            "Total entries": sources.get("context_map", {}).get("among") or 0,
            "Entries after filter": len(map_entries),
            "Top relevance score": round(top),
        },
        "Result": {
            "Context": f"{receipt.id}, profile {receipt.document['profile']['name']}",
            "Tokens": f"{receipt.document['budget']['used']} of {receipt.document['budget']['total']}",
            "Kept": len(kept),
            "Left out": len(receipt.candidates) - len(kept),
        },
    }
    blocks = [
        f"### {title}\n" + "".join(f"- {name}: {value}\n" for name, value in lines.items()) for title, lines in parts.items()
    ]
    return "\n".join(["## Context Debug\n", *blocks])


def _number(entries: Sequence[Mapping[str, Any]], kind: str) -> int:
    return len({entry["id"] for entry in entries if entry["kind"] == kind})


def _list(parts: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(parts)) or "none"
