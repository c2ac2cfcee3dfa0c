"""Summaries of receipts: figures for lists, timelines and metrics, without candidates and ids of records.

A summary is stored next to its receipt, so that a list of contexts does not have to unpack receipts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from foveate.receipts.parts import KeptCandidate
from foveate.receipts.receipt import UNSEARCHED_SOURCES, Receipt
from foveate.types import Scope

MAX_SUMMARY_QUERY_CHARS = 1_000
"""Characters of a query in a summary. A query can be a whole task, and lists show only its beginning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteCounts:
    """Notes on a context as counts, without ids."""

    turns: int = 0
    refresh: str = ""
    used: int | None = None
    marks: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptSummary:
    """The figures of one context."""

    id: str
    created: int
    query: str
    profile: str
    scope: Scope
    tokens: int
    total: int
    reserve: int
    framing: int
    slots: Mapping[str, int]
    """Tokens of each slot that shows something."""
    items: int
    left_out: int
    ms: float
    text_hash: str
    prefix_hash: str
    prefix_tokens: int
    relevance: float | None
    """Probability that at least one item that was found for the query is evidence for it."""
    precision: float | None
    """Share of the found items that an answer used or a person marked as useful; None if there is no feedback."""
    notes: NoteCounts
    warnings: int
    forgotten: int = 0


def summary_of(receipt: Receipt) -> ReceiptSummary:
    """Return the summary of a receipt."""
    query, budget, notes = receipt.request.query, receipt.budget, receipt.notes
    items = list(receipt.items)
    return ReceiptSummary(
        id=receipt.id,
        created=receipt.created,
        query=query if len(query) <= MAX_SUMMARY_QUERY_CHARS else f"{query[:MAX_SUMMARY_QUERY_CHARS]}…",
        profile=receipt.profile.name,
        scope=receipt.request.scope,
        tokens=budget.used,
        total=budget.total,
        reserve=budget.reserve,
        framing=budget.framing,
        slots={slot.name: slot.used for slot in budget.slots if slot.used},
        items=len(items),
        left_out=len(receipt.candidates) - len(items),
        ms=receipt.ms,
        text_hash=receipt.text_hash,
        prefix_hash=receipt.prefix.hash,
        prefix_tokens=receipt.prefix.tokens,
        relevance=_relevance(items),
        precision=_precision(receipt),
        notes=NoteCounts(
            turns=notes.turns,
            refresh=notes.refresh.reason if notes.refresh else "",
            used=None if notes.used is None else len(notes.used),
            marks=None if notes.marks is None else dict(Counter(notes.marks.values())),
        ),
        warnings=len(receipt.warnings),
        forgotten=receipt.forgotten,
    )


def _relevance(items: Sequence[KeptCandidate]) -> float | None:
    found = [entry.features for entry in items if entry.source not in UNSEARCHED_SOURCES]
    if not found:
        return None
    estimated = sorted(features["relevance"] for features in found if "answerable" in features)
    others = [features.get("relevance", 0.0) for features in found if "answerable" not in features]
    none_is = prod(1.0 - relevance for relevance in estimated)  # sorted: the result must not depend on the order of items
    return round(max(1.0 - none_is, *others, 0.0), 6)


def _precision(receipt: Receipt) -> float | None:
    notes = receipt.notes
    if notes.used is None and notes.marks is None:
        return None
    found = receipt.found_ids()
    useful = {id for id, mark in (notes.marks or {}).items() if mark == "useful"} | set(notes.used or ())
    return round(len(useful.intersection(found)) / len(found), 6) if found else None
