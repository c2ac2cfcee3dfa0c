"""Rows for the candidates of a receipt: the item, the parts of its score, and the decision on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from foveate.code.model import CODE_ID_PREFIXES
from foveate.engine import Engine
from foveate.receipts.receipt import Receipt, parts_of, scope_within, sentence
from foveate.records.render import display_name
from foveate.types import Record

Row = dict[str, Any]
ReceiptEntry = Mapping[str, Any]

DECISION_FIELDS = ("kept", "level", "rank", "reason", "detail", "needs_tokens", "needs_score")


def candidate_rows(
    engine: Engine,
    receipt: Receipt,
    entries: Sequence[ReceiptEntry],
    external_records: Mapping[str, Record] | None = None,
) -> list[Row]:
    """Return a row for each entry. `external_records` are records that no store holds."""
    with engine.store.data.reader(scope_within(receipt, engine.scope)) as reader:
        stored = reader.get([entry["id"] for entry in entries])
    records = {**stored, **(external_records or {})}
    weights = receipt.document["profile"]["weights"]
    return [
        {**_row(entry, records.get(entry["id"]), weights), "is_record": entry["id"] in stored}  # others have no page
        for entry in entries
    ]


def _row(entry: ReceiptEntry, record: Record | None, weights: Mapping[str, float]) -> Row:
    is_code = str(entry["id"]).startswith(CODE_ID_PREFIXES)
    return {
        "id": entry["id"],
        "title": display_name(record) if record else str(entry["id"]),
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
        "changed_since": bool(record and not is_code and record.version != entry["version"]),
        "via": entry.get("via"),
        "sentence": sentence(entry),
        **{name: entry[name] for name in DECISION_FIELDS if name in entry},
    }


def features(rows: Iterable[Row]) -> list[str]:
    """Return the features that contribute to any of the scores, the most important first."""
    sums: dict[str, float] = {}
    for row in rows:
        for name, part in row["parts"].items():
            sums[name] = sums.get(name, 0.0) + part
    return sorted(sums, key=lambda name: -sums[name])
