"""Sources by time: the latest records of this session, and the most important ones of other sessions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foveate.pipeline.sources.base import SlotRequest, Source, SourceContext
from foveate.records.kinds import KINDS
from foveate.text import analysis
from foveate.types import Candidate, Record, Signals

MAX_HIGHLIGHTS = 3
"""Highlights of one session: a reminder of its results, not its story."""

MAX_EVENTS = 50
"""Latest events of another session among which highlights are chosen."""

QUERY_WEIGHT = 2.0
"""Weight of the request relative to the order: an old event that has its words comes before the latest that have none."""

TYPE_WEIGHT = 0.25
"""Added for a type of event that matters for the intent of the request, such as errors for a repair."""

MAX_READ_CHARS = 2_000
"""Characters of an event that are compared with the request."""

OTHER_SESSION_RELEVANCE = 0.5
"""Relevance of the newest other session: events of this one come first."""


class Recent(Source):
    """The latest records of this session, by the request and by their order. Without a session, those of no session."""

    name = "recent"

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        for request in requests:
            for n, record in enumerate(_latest_records(request, context)):
                age = n / request.limit
                relevance = (1.0 - age + QUERY_WEIGHT * _match(record, context.signals)) / (1.0 + QUERY_WEIGHT)
                yield self.candidate(request, record, relevance=round(relevance, 6))


def _latest_records(request: SlotRequest, context: SourceContext) -> list[Record]:
    reader, filters, session = context.reader, context.request.filters, context.request.scope.session
    kinds = request.slot.kinds or tuple(name for name, kind in KINDS.items() if not (kind.is_rule or kind.is_internal))
    events = [kind for kind in kinds if KINDS[kind].is_append_only]
    found = reader.recent([kind for kind in kinds if kind not in events], request.limit, filters)
    if session is not None:
        found += reader.recent(events, request.limit, filters, session=session)
    found += [record for record in reader.recent(events, request.limit, filters) if record.scope.session is None]
    return sorted(found, key=lambda record: (record.created, record.id), reverse=True)[: request.limit]


def _match(record: Record, signals: Signals) -> float:
    """Return how well a record matches the request: the share of its words, and whether its type matters (003)."""
    total = sum(signals.terms.values())
    terms = frozenset(analysis.terms(record.text[:MAX_READ_CHARS]))
    share = sum(weight for term, weight in signals.terms.items() if term in terms) / total if total else 0.0
    type = str(record.data.get("type", ""))
    return min(1.0, share + (TYPE_WEIGHT if share and type in signals.event_types else 0.0))


class Highlights(Source):
    """Errors, decisions and outcomes of the latest other sessions (003: cross-session context).

    The limit of a slot counts sessions, not candidates. Without a session in the request there are no others.
    """

    name = "highlights"
    unrelated = "it is not among the most important records of the latest other sessions"

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        current = context.request.scope.session
        if current is None:
            return
        for request in requests:
            latest = context.reader.sessions(request.limit + 1, context.request.filters)
            others = [session for session in latest if session != current][: request.limit]
            for n, session in enumerate(others):
                relevance = OTHER_SESSION_RELEVANCE * (1.0 - n / request.limit)
                yield from (self.candidate(request, record, relevance=relevance) for record in _best(session, context))


def _best(session: str, context: SourceContext) -> list[Record]:
    """Return the most important records of a session, newest first."""
    reader, filters = context.reader, context.request.filters
    events = reader.recent(["event"], MAX_EVENTS, filters, session=session)
    decisions = reader.recent(["decision"], MAX_HIGHLIGHTS, filters, session=session)
    found = [record for record in (*events, *decisions) if _importance(record)]
    best = sorted(found, key=lambda record: (-_importance(record), -record.created, record.id))[:MAX_HIGHLIGHTS]
    return sorted(best, key=lambda record: (record.created, record.id), reverse=True)


def _importance(record: Record) -> int:
    """Return 3 for a failure, 2 for a decision, 1 for a success, else 0."""
    if record.outcome in ("failure", "partial") or record.data.get("type") == "error":
        return 3
    if "decision" in (record.kind, record.data.get("type")):
        return 2
    return 1 if record.outcome == "success" else 0
