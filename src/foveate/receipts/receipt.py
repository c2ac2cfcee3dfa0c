"""The receipt of a context: the request, every candidate with the decision on it, and the budget.

A receipt is a tree of frozen values. It has the ids, versions and hashes of records, never their texts, so that forgetting a
record needs no search for copies of its text. `codec` has the JSON form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from foveate.code.records import is_shown_in_parts
from foveate.memory.relations import KIND as RELATION
from foveate.pipeline.follow_up import TOPIC_WEIGHT
from foveate.pipeline.request_summary import RequestSummary, summarize
from foveate.pipeline.run import Run, text_hash
from foveate.pipeline.signals import ALIAS_WEIGHT
from foveate.pipeline.sources import SourceReport
from foveate.pipeline.sources.context_map import FULL_COUNT, total_points
from foveate.receipts.parts import (
    NO_NOTES,
    AnyCandidate,
    KeptCandidate,
    LeftOutCandidate,
    Notes,
    RecordRef,
    names_one_of,
)
from foveate.records.kinds import RENDERER_VERSION
from foveate.types import Budget, Candidate, Item, LeftOut, Prefix, Profile, Record, Scope, Signals

CONTEXT_SOURCES = ("always", "text", "project", "docs", "repo_map", "neighbours")
"""Sources whose items do not depend on the query: rules, pinned records, system prompts, the codebase, the map."""

UNSEARCHED_SOURCES = frozenset((
    *CONTEXT_SOURCES, "censors", "frame", "working", "given", "task", "latest", "stack-root", "stack-path", "stack-siblings",
    "dependencies", "transitive", "recent", "highlights", "calibration", "files",
))  # fmt: skip
"""Sources that select without comparing with the query. Their relevance is a rank, or 1 because somebody named the item."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The record of how a context was computed."""

    id: str
    request: RequestSummary
    signals: Signals
    """The signals of the request, without names of entities and other words of records."""
    profile: Profile
    """The profile as resolved, with the layer that set each value."""
    revision: str
    renderer: int
    """Version of the rendering of records; a later version may give other bytes."""
    measured_by: str
    """Name of the token counter of the store."""
    sources: tuple[SourceReport, ...]
    candidates: tuple[AnyCandidate, ...]
    budget: Budget
    prefix: Prefix
    text_hash: str
    warnings: tuple[str, ...]
    ms: float
    notes: Notes = NO_NOTES
    forgotten: int = 0
    """Number of candidates that were removed because their records were forgotten."""

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
        """Return the entry of a record. If it was a candidate for several slots, return the one that is shown."""
        entries = [entry for entry in self.candidates if entry.id == id]
        return next((entry for entry in entries if entry.is_kept), entries[0] if entries else None)

    def found_ids(self) -> list[str]:
        """Return the ids of the items that were found for the query, without those of CONTEXT_SOURCES."""
        return list(dict.fromkeys(entry.id for entry in self.items if entry.source not in CONTEXT_SOURCES))

    def debug(self) -> str:
        """Return 000's debug section as Markdown: the signals, and the number of items after each step."""
        return _debug_report(self)

    def narrow_scope(self, caller: Scope) -> Scope:
        """Return the scope of the request with the caller's session and task, so that a receipt gives no further access."""
        scope = self.request.scope
        return replace(scope, session=caller.session or scope.session, task=caller.task or scope.task)

    def with_notes(self, notes: Notes) -> Receipt:
        """Return the receipt with further notes on its context."""
        return self if notes == NO_NOTES else replace(self, notes=self.notes.merge(notes))

    def without_records(self, ids: frozenset[str], terms: frozenset[str] = frozenset()) -> Receipt | None:
        """Return the receipt without some records and without its query. Return None if it has no trace of them.

        `terms` are words that occur in no other record: a query with one of them quotes a record that is forgotten.
        """
        remaining = tuple(entry for entry in self.candidates if not names_one_of(ids, *_mentioned_ids(entry)))
        contradicted = [entry for entry in remaining if entry.conflict and names_one_of(ids, entry.conflict.id)]
        ids_in_request = (*self.request.filters.exclude, *self.signals.entities, *self.signals.follows, self.request.task)
        removed = len(self.candidates) - len(remaining)
        is_mentioned = removed or contradicted or names_one_of(ids, *ids_in_request)
        if not is_mentioned and terms.isdisjoint(self.signals.terms):
            return None
        return replace(
            self,
            request=self.request.without_query(),
            signals=Signals(),
            candidates=tuple(replace(entry, conflict=None) if entry in contradicted else entry for entry in remaining),
            notes=self.notes.without_records(ids),
            forgotten=self.forgotten + removed,
        )


def _mentioned_ids(entry: AnyCandidate) -> tuple[str | None, ...]:
    """Return the ids of records that an entry has, except the contradicting one, which can be removed by itself."""
    detail = None if entry.is_kept else entry.detail
    return (entry.id, detail, entry.overruled_by, entry.inherited_from.id if entry.inherited_from else None)


# --- building ------------------------------------------------------------------------------------------------------


def build_receipt(run: Run) -> Receipt:
    """Build the receipt of a computed context."""
    items = {_key(item.candidate): item for section in run.sections for item in section.items}
    omissions = {_key(omission.candidate): omission for omission in run.left_out}
    return Receipt(
        id=run.id,
        request=summarize(run.request),
        signals=_without_words_of_records(run.signals),
        profile=run.profile,
        revision=run.revision,
        renderer=RENDERER_VERSION,
        measured_by=run.record_counter,
        sources=run.reports,
        candidates=tuple(_entry(candidate, items, omissions) for candidate in run.candidates),
        budget=run.budget,
        prefix=run.prefix,
        text_hash=text_hash(run.text),
        warnings=run.warnings,
        ms=round((run.end_time - run.start_time) * 1000, 3),
    )


def _without_words_of_records(signals: Signals) -> Signals:
    """Return signals without words that come from records, because records can be forgotten."""
    return replace(
        signals,
        terms={term: weight for term, weight in signals.terms.items() if weight not in (ALIAS_WEIGHT, TOPIC_WEIGHT)},
        entities=dict.fromkeys(signals.entities, ""),
        entity_types=(),
        expansions={},
        embedding=None,
    )


_Key = tuple[str, str, float]


def _key(candidate: Candidate) -> _Key:
    return (candidate.record.id, candidate.slot, candidate.score)


def _entry(candidate: Candidate, items: dict[_Key, Item], omissions: Mapping[_Key, LeftOut]) -> AnyCandidate:
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
        "passage": candidate.passage,
        "versions": None if versions is None else tuple(versions),
        "conflict": _ref(candidate.conflict),
    }
    # Removed when it is found: a record that two sources returned for the same slot is shown once.
    item = items.pop(_key(candidate), None)
    if item is not None:
        in_parts = record.kind == "file" and item.level == "full" and is_shown_in_parts(record.text)
        return KeptCandidate(**common, level=item.level, tokens=item.tokens, rank=item.rank, in_parts=in_parts)
    omission = omissions[_key(candidate)]
    return LeftOutCandidate(
        **common,
        reason=omission.reason,
        detail=omission.detail,
        needs_tokens=omission.needs_tokens,
        needs_relevance=omission.needs_relevance,
    )


def _ref(record: Record | None) -> RecordRef | None:
    return None if record is None else RecordRef(record.id, record.version)


# --- debug section -------------------------------------------------------------------------------------------------


def _debug_report(receipt: Receipt) -> str:
    signals, budget = receipt.signals, receipt.budget
    kept = sum(1 for _ in receipt.items)
    sources = {report.source: report for report in receipt.sources}
    looked_up = [entry for entry in receipt.candidates if entry.kind in ("pattern", "gotcha", "decision")]
    inherited = [entry for entry in receipt.candidates if entry.inherited_from]
    map_entries = [entry for entry in receipt.candidates if entry.source == "context_map"]
    map_report = sources.get("context_map")
    parts: dict[str, dict[str, str | int]] = {
        "Signals Extracted": {
            "Keywords": _join(signals.keywords),
            **({"Topic From": _join(signals.follows)} if signals.follows else {}),
            "Domains": _join(signals.domains),
            "Files Mentioned": _join(signals.paths),
            "Task Type": signals.task_type or "none",
            "Complexity": f"{signals.complexity or 'none'} ({signals.complexity_reason or 'no task'})",
        },
        "Knowledge Graph Query": {
            "Nodes matched": len({entry.id for entry in looked_up}),
            "Patterns found": _count_kind(looked_up, "pattern"),
            "Gotchas found": _count_kind(looked_up, "gotcha"),
            "Decisions found": _count_kind(looked_up, "decision"),
        },
        "Dependencies Processed": {
            "Task IDs": _join(e.id for e in receipt.candidates if e.source == "dependencies" and e.kind == "task"),
            "Patterns inherited": _count_kind(inherited, "pattern"),
            "Warnings inherited": _count_kind(inherited, "gotcha"),
            "Blocking questions": _count_kind(inherited, "question"),
        },
        "Context Map Filtering": {
            "Total entries": (map_report.among if map_report else 0) or 0,
            "Entries after filter": len(map_entries),
            "Top relevance score": round(
                max((total_points(entry.features) * FULL_COUNT for entry in map_entries), default=0)
            ),
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


def _count_kind(entries: Sequence[AnyCandidate], kind: str) -> int:
    return len({entry.id for entry in entries if entry.kind == kind})


def _join(parts: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(parts)) or "none"
