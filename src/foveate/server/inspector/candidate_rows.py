"""A receipt's entries as rows: what each candidate is, its score taken apart, and what was decided on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from foveate.code.derived import PREFIXES
from foveate.engine import Engine
from foveate.receipts.receipt import Receipt, parts_of, scope_within, sentence
from foveate.records.render import called
from foveate.types import Record

Entry = Mapping[str, Any]


def rows(
    engine: Engine, receipt: Receipt, entries: Sequence[Entry], known: Mapping[str, Record] | None = None
) -> list[dict[str, Any]]:
    """One row for each entry. `known`: records that no store keeps, where the caller has them."""
    with engine.reader(scope_within(receipt, engine.scope)) as reader:
        stored = reader.get([entry["id"] for entry in entries])
    records = {**stored, **(known or {})}
    weights = receipt.document["profile"]["weights"]
    return [
        {**_row(entry, records.get(entry["id"]), weights), "is_record": entry["id"] in stored}  # the rest has no page
        for entry in entries
    ]


def _row(entry: Entry, record: Record | None, weights: Mapping[str, float]) -> dict[str, Any]:
    decided = ("kept", "level", "rank", "reason", "detail", "needs_tokens", "needs_score")
    return {
        "id": entry["id"],
        "title": title(entry, record),
        "kind": entry["kind"],
        "slot": entry["slot"],
        "source": entry["source"],
        "score": entry["score"],
        "parts": {name: part for name, part in parts_of(entry, weights).items() if part},
        "features": dict(entry["features"]),
        "tokens": entry.get("shown_tokens"),
        "trust": record.trust if record else "",
        "origin": (record.origin or "") if record else "",
        "version": entry["version"],
        "changed_since": bool(record and not _is_code(entry) and record.version != entry["version"]),
        "via": entry.get("via"),
        "conflict": entry.get("conflict"),
        "stale": bool(entry.get("stale")),
        "sentence": sentence(entry),
        **{name: entry[name] for name in decided if name in entry},
    }


def title(entry: Entry, record: Record | None) -> str:
    """What a candidate is called; one that is gone, or is no record, goes by its id."""
    return called(record) if record else str(entry["id"])


def _is_code(entry: Entry) -> bool:
    return str(entry["id"]).startswith(PREFIXES)


def features(items: Iterable[Mapping[str, Any]]) -> list[str]:
    """The features that any of the rows has a part from, the heaviest first."""
    sums: dict[str, float] = {}
    for item in items:
        for name, part in item["parts"].items():
            sums[name] = sums.get(name, 0.0) + part
    return sorted(sums, key=lambda name: -sums[name])
