"""What was most telling in the latest other sessions (003: cross-session context): errors, decisions, outcomes.

A slot's limit for this source counts sessions, not candidates. Without a session in the request there are no others, and
`recent` has everything. Each line says of which session it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foveate.pipeline.sources.gather import Around
from foveate.types import Ask, Candidate, Record

EACH = 3
"""Highlights of one session: a reminder of what came of it, not its story."""

LOOKED_AT = 50
"""The latest events of a session among which the telling ones are looked for: as many as of one's own."""

ELSEWHERE = 0.5
"""Relevance of the newest other session: what happened in this one comes first."""


class Highlights:
    name = "highlights"

    def find(self, asks: Sequence[Ask], around: Around) -> Iterator[Candidate]:
        here = around.request.scope.session
        if here is None:
            return
        for ask in asks:
            latest = around.reader.sessions(ask.limit + 1, around.request.filters)
            others = [session for session in latest if session != here][: ask.limit]
            for n, session in enumerate(others):
                features = {"relevance": ELSEWHERE * (1.0 - n / ask.limit)}
                for record in _telling(session, around):
                    yield Candidate(record=record, slot=ask.slot.name, source=self.name, features=features)


def _telling(session: str, around: Around) -> list[Record]:
    """The few of a session that say most about it, newest first; its last event where nothing does."""
    reader, filters = around.reader, around.request.filters
    events = reader.recent(["event"], LOOKED_AT, filters, session=session)
    found = [record for record in (*events, *reader.recent(["decision"], EACH, filters, session=session)) if _weight(record)]
    best = sorted(found, key=lambda record: (-_weight(record), -record.created, record.id))[:EACH]
    return sorted(best, key=lambda record: (-record.created, record.id)) or events[:1]


def _weight(record: Record) -> int:
    """How telling a record is: what went wrong, then what was decided, then what came to an end at all."""
    if record.outcome in ("failure", "partial") or record.data.get("type") == "error":
        return 3
    if "decision" in (record.kind, record.data.get("type")):
        return 2
    return 1 if record.outcome == "success" else 0
