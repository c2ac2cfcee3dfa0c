"""Rows for the candidates of a receipt: the item, the parts of its score, and the decision on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from foveate.code.model import CODE_ID_PREFIXES
from foveate.engine import Engine
from foveate.receipts.codec import candidate_to_json
from foveate.receipts.parts import AnyCandidate
from foveate.receipts.receipt import Receipt
from foveate.records.render import display_name
from foveate.types import Record

Row = dict[str, Any]

DECISION_FIELDS = ("kept", "level", "rank", "reason", "detail", "needs_tokens", "needs_score")


def candidate_rows(
    engine: Engine,
    receipt: Receipt,
    entries: Sequence[AnyCandidate],
    external_records: Mapping[str, Record] | None = None,
) -> list[Row]:
    """Return a row for each entry. `external_records` are records that no store holds."""
    with engine.store.data.reader(receipt.narrow_scope(engine.scope)) as reader:
        stored = reader.get([entry.id for entry in entries])
    records = {**stored, **(external_records or {})}
    weights = receipt.profile.weights
    return [
        {**_row(entry, records.get(entry.id), weights), "is_record": entry.id in stored}  # others have no page
        for entry in entries
    ]


def _row(entry: AnyCandidate, record: Record | None, weights: Mapping[str, float]) -> Row:
    decision = candidate_to_json(entry)
    is_code = entry.id.startswith(CODE_ID_PREFIXES)
    return {
        "id": entry.id,
        "title": display_name(record) if record else entry.id,
        "kind": entry.kind,
        "slot": entry.slot,
        "source": entry.source,
        "score": entry.score,
        "parts": {name: part for name, part in entry.score_parts(weights).items() if part},
        "features": dict(entry.features),
        "tokens": entry.tokens if entry.is_kept else None,
        "trust": record.trust if record else "",
        "origin": (record.origin or "") if record else "",
        "version": entry.version,
        "changed_since": bool(record and not is_code and record.version != entry.version),
        "via": entry.inherited_from.id if entry.inherited_from else None,
        "sentence": str(entry),
        **{name: decision[name] for name in DECISION_FIELDS if name in decision},
    }


def features(rows: Iterable[Row]) -> list[str]:
    """Return the features that contribute to any of the scores, the most important first."""
    sums: dict[str, float] = {}
    for row in rows:
        for name, part in row["parts"].items():
            sums[name] = sums.get(name, 0.0) + part
    return sorted(sums, key=lambda name: -sums[name])
