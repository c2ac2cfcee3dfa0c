"""Receipts: why each item is in a context, and why the others are not.

A receipt is a tree of frozen values with ids, versions and hashes, never the texts of records. `why`, `diff`, validation
and replay read it. Forgetting a record removes it from every receipt. `codec` has the JSON form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from foveate.code.model import is_shown_in_parts
from foveate.memory.relations import KIND as RELATION
from foveate.pipeline.request_summary import RequestSummary, summarize
from foveate.pipeline.run import Run, text_hash
from foveate.pipeline.signals import ALIAS_WEIGHT
from foveate.pipeline.sources import SourceReport
from foveate.pipeline.sources.context_map import FULL_COUNT, total
from foveate.receipts.parts import (
    NO_NOTES,
    AnyCandidate,
    KeptCandidate,
    LeftOutCandidate,
    Notes,
    RecordRef,
    SignalsSummary,
    names_one_of,
)
from foveate.records.kinds import RENDERER_VERSION
from foveate.types import Budget, Candidate, Item, LeftOut, Prefix, Profile, Record, Scope, Signals

CONTEXT_SOURCES = ("always", "text", "project", "docs", "repo_map", "neighbours")
"""Sources of what surrounds an answer and was not found for it: rules, pins, system prompts, the codebase, the map."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Why a context is as it is."""

    id: str
    request: RequestSummary
    signals: SignalsSummary
    profile: Profile
    """The profile as resolved, with the layer that set each value."""
    revision: str
    renderer: int
    measured_by: str
    """Token counter of the store."""
    sources: tuple[SourceReport, ...]
    candidates: tuple[AnyCandidate, ...]
    budget: Budget
    prefix: Prefix
    text_hash: str
    warnings: tuple[str, ...]
    ms: float
    notes: Notes = NO_NOTES
    forgotten: int = 0
    """Candidates that were removed because their records were forgotten."""

    @property
    def created(self) -> int:
        """Return the time of the request, in milliseconds since 1970."""
        return self.request.now

    @property
    def items(self) -> Iterator[KeptCandidate]:
        """Iterate over the candidates that the context shows."""
        return (entry for entry in self.candidates if entry.is_kept)

    @property
    def left_out(self) -> Iterator[LeftOutCandidate]:
        """Iterate over the candidates that the context does not show."""
        return (entry for entry in self.candidates if not entry.is_kept)

    def candidate(self, id: str) -> AnyCandidate | None:
        """Return the entry of a record: the one that is shown, if it was a candidate for several slots."""
        entries = [entry for entry in self.candidates if entry.id == id]
        return next((entry for entry in entries if entry.is_kept), entries[0] if entries else None)

    def found_ids(self) -> list[str]:
        """Return the ids of the items that were chosen for the query, without the rules that are always shown."""
        return list(dict.fromkeys(entry.id for entry in self.items if entry.source not in CONTEXT_SOURCES))

    def debug(self) -> str:
        """Return 000's debug section as Markdown."""
        return _debug(self)

    def narrow_scope(self, mine: Scope) -> Scope:
        """Return the receipt's scope, limited to the caller's own session and task: a receipt gives no further access."""
        asked = self.request.scope
        return replace(asked, session=mine.session or asked.session, task=mine.task or asked.task)

    def with_notes(self, notes: Notes) -> Receipt:
        """Return the receipt with more notes on its context."""
        return self if notes == NO_NOTES else replace(self, notes=self.notes.merge(notes))

    def without_records(self, ids: frozenset[str], terms: frozenset[str] = frozenset()) -> Receipt | None:
        """Return the receipt without some records and without the query that found or quotes them; None if it has none.

        `terms` are words that no other record holds: a query with one of them quotes what is to be forgotten.
        """
        left = tuple(entry for entry in self.candidates if not names_one_of(ids, *_mentioned_ids(entry)))
        contradicted = [entry for entry in left if entry.conflict and names_one_of(ids, entry.conflict.id)]
        named = (*self.request.filters.exclude, *self.signals.entities, self.request.task)
        gone = len(self.candidates) - len(left)
        if not gone and not contradicted and not names_one_of(ids, *named) and terms.isdisjoint(self.signals.terms):
            return None
        return replace(
            self,
            request=self.request.without_query(),
            signals=SignalsSummary(),
            candidates=tuple(replace(entry, conflict=None) if entry in contradicted else entry for entry in left),
            notes=self.notes.without_records(ids),
            forgotten=self.forgotten + gone,
        )


def _mentioned_ids(entry: AnyCandidate) -> tuple[str | None, ...]:
    """Return the ids that an entry holds, apart from that of a contradicting record."""
    detail = None if entry.is_kept else entry.detail
    return (entry.id, detail, entry.overruled_by, entry.inherited_from.id if entry.inherited_from else None)


# --- writing -------------------------------------------------------------------------------------------------------


def build_receipt(run: Run) -> Receipt:
    """Return the receipt of a computed context."""
    kept = {_key(item.candidate): item for section in run.sections for item in section.items}
    lost = {_key(omission.candidate): omission for omission in run.left_out}
    return Receipt(
        id=run.id,
        request=summarize(run.request),
        signals=_signals(run.signals),
        profile=run.profile,
        revision=run.revision,
        renderer=RENDERER_VERSION,
        measured_by=run.measured_by,
        sources=run.reports,
        candidates=tuple(_entry(candidate, kept, lost) for candidate in run.candidates),
        budget=run.budget,
        prefix=run.prefix,
        text_hash=text_hash(run.text),
        warnings=run.warnings,
        ms=round((run.ended - run.began) * 1000, 3),
    )


def _signals(signals: Signals) -> SignalsSummary:
    return SignalsSummary(
        keywords=signals.keywords,
        terms={term: weight for term, weight in signals.terms.items() if weight != ALIAS_WEIGHT},
        paths=signals.paths,
        symbols=signals.symbols,
        entities=tuple(signals.entities),
        intent=signals.intent,
        event_types=signals.event_types,
        domains=signals.domains,
        task_type=signals.task_type,
        complexity=signals.complexity,
        complexity_reason=signals.complexity_reason,
        frame=signals.frame,
        frame_reason=signals.frame_reason,
        input=signals.input,
        input_reason=signals.input_reason,
    )


_Key = tuple[str, str, float]


def _key(candidate: Candidate) -> _Key:
    return (candidate.record.id, candidate.slot, candidate.score)


def _entry(candidate: Candidate, kept: dict[_Key, Item], lost: Mapping[_Key, LeftOut]) -> AnyCandidate:
    record = candidate.record
    versions = record.data.get("versions") if record.kind == RELATION else None
    common: dict[str, Any] = {
        "id": record.id,
        "version": record.version,
        "hash": record.hash,
        "kind": record.kind,
        "slot": candidate.slot,
        "source": candidate.source,
        "features": dict(candidate.features),
        "score": candidate.score,
        "overruled_by": candidate.overruled_by,
        "inherited_from": _ref(candidate.inherited_from),
        "stale": candidate.stale,
        "text": record.text if candidate.source == "calibration" else None,
        "versions": None if versions is None else tuple(versions),
        "conflict": _ref(candidate.conflict),
    }
    item = kept.pop(_key(candidate), None)  # a record that two sources returned for a slot is kept once
    if item is not None:
        in_parts = record.kind == "file" and item.level == "full" and is_shown_in_parts(record.text)
        return KeptCandidate(**common, level=item.level, tokens=item.tokens, rank=item.rank, in_parts=in_parts)
    omission = lost[_key(candidate)]
    return LeftOutCandidate(
        **common,
        reason=omission.reason,
        detail=omission.detail,
        needs_tokens=omission.needs_tokens,
        needs_score=omission.needs_score,
    )


def _ref(record: Record | None) -> RecordRef | None:
    return None if record is None else RecordRef(record.id, record.version)


# --- debug section -------------------------------------------------------------------------------------------------


def _debug(receipt: Receipt) -> str:
    """Return 000's debug section as Markdown: the signals, and how much each step found and let through."""
    signals, budget = receipt.signals, receipt.budget
    kept = sum(1 for _ in receipt.items)
    sources = {report.source: report for report in receipt.sources}
    looked_up = [entry for entry in receipt.candidates if entry.kind in ("pattern", "gotcha", "decision")]
    inherited = [entry for entry in receipt.candidates if entry.inherited_from]
    map_entries = [entry for entry in receipt.candidates if entry.source == "context_map"]
    map_report = sources.get("context_map")
    parts: dict[str, dict[str, str | int]] = {
        "Signals Extracted": {
            "Keywords": _list(signals.keywords),
            "Domains": _list(signals.domains),
            "Files Mentioned": _list(signals.paths),
            "Task Type": signals.task_type or "none",
            "Complexity": f"{signals.complexity or 'none'} ({signals.complexity_reason or 'no task'})",
        },
        "Knowledge Graph Query": {
            "Nodes matched": len({entry.id for entry in looked_up}),
            "Patterns found": _number(looked_up, "pattern"),
            "Gotchas found": _number(looked_up, "gotcha"),
            "Decisions found": _number(looked_up, "decision"),
        },
        "Dependencies Processed": {
            "Task IDs": _list(e.id for e in receipt.candidates if e.source == "dependencies" and e.kind == "task"),
            "Patterns inherited": _number(inherited, "pattern"),
            "Warnings inherited": _number(inherited, "gotcha"),
            "Blocking questions": _number(inherited, "question"),
        },
        "Context Map Filtering": {
            "Total entries": (map_report.among if map_report else 0) or 0,
            "Entries after filter": len(map_entries),
            "Top relevance score": round(max((total(entry.features) * FULL_COUNT for entry in map_entries), default=0)),
        },
        "Result": {
            "Context": f"{receipt.id}, profile {receipt.profile.name}",
            "Tokens": f"{budget.used} of {budget.total}",
            "Kept": kept,
            "Left out": len(receipt.candidates) - kept,
        },
    }
    blocks = [
        f"### {title}\n" + "".join(f"- {name}: {value}\n" for name, value in lines.items()) for title, lines in parts.items()
    ]
    return "\n".join(["## Context Debug\n", *blocks])


def _number(entries: Sequence[AnyCandidate], kind: str) -> int:
    return len({entry.id for entry in entries if entry.kind == kind})


def _list(parts: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(parts)) or "none"
