"""Rows for the candidates of a receipt: the entry, its record as it is now, and the parts of its score."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from foveate.code.records import CODE_ID_PREFIXES
from foveate.engine import Engine
from foveate.receipts.parts import AnyCandidate
from foveate.receipts.receipt import Receipt
from foveate.records.render import display_name
from foveate.types import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateRow:
    """A candidate of a receipt, as a page shows it."""

    entry: AnyCandidate
    record: Record | None
    """None if it can no longer be read, or is read only for a prompt."""
    is_record: bool
    """The record is stored and has a page."""
    score_parts: Mapping[str, float]
    """The features that contribute to the score."""
    number: int = 0
    """Position in the prompt, from 1."""
    is_missing: bool = False
    """The prompt is shown without it, because it can no longer be read."""

    @property
    def id(self) -> str:
        return self.entry.id

    @property
    def title(self) -> str:
        return self.entry.id if self.record is None else display_name(self.record)

    @property
    def trust(self) -> str:
        return "" if self.record is None else self.record.trust

    @property
    def origin(self) -> str:
        return "" if self.record is None else self.record.origin or ""

    @property
    def has_changed(self) -> bool:
        """Return whether the record has another version now. Code has no versions."""
        is_code = self.entry.id.startswith(CODE_ID_PREFIXES)
        return self.record is not None and not is_code and self.record.version != self.entry.version


def candidate_rows(
    engine: Engine,
    receipt: Receipt,
    entries: Sequence[AnyCandidate],
    external_records: Mapping[str, Record] | None = None,
) -> list[CandidateRow]:
    """Return a row for each entry. `external_records` are records that are not stored."""
    # The context may have seen records of a session or task that the page's own scope does not name.
    with engine.store.data.reader(receipt.narrow_scope(engine.scope)) as reader:
        stored = reader.get([entry.id for entry in entries])
    records = {**stored, **(external_records or {})}
    return [
        CandidateRow(
            entry=entry,
            record=records.get(entry.id),
            is_record=entry.id in stored,
            score_parts={name: part for name, part in entry.score_parts(receipt.profile.weights).items() if part},
        )
        for entry in entries
    ]


def features(rows: Iterable[CandidateRow]) -> list[str]:
    """Return the features that contribute to any of the scores, the most important first."""
    sums: dict[str, float] = {}
    for row in rows:
        for name, part in row.score_parts.items():
            sums[name] = sums.get(name, 0.0) + part
    return sorted(sums, key=lambda name: -sums[name])
