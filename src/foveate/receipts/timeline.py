"""The timeline of a session: its contexts, each compared with the one before, and its compactions.

Contexts are compared by the ids of their items and by hashes, never by texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from foveate.receipts.summary import ReceiptSummary
from foveate.types import Record

COMPACTION_EVENT_TYPE = "compaction"
"""Type of the event that is stored when a host compacts a conversation. It is archived, so that no context shows it."""


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """A session in which contexts were computed."""

    name: str
    contexts: int
    last: int
    """Time of its latest context."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A context of a session, compared with the one before it. In the first context everything is new."""

    summary: ReceiptSummary
    added: int
    withdrawn: int
    same_prefix: bool

    @property
    def refresh(self) -> str:
        """Return the reason for which it replaced the context before it; empty if it did not."""
        return self.summary.notes.refresh


@dataclass(frozen=True, slots=True)
class Compaction:
    """The moment at which the host replaced a part of the conversation by a summary."""

    id: str
    at: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """A session turn by turn, oldest first."""

    session: str
    turns: tuple[Turn, ...]
    compactions: tuple[Compaction, ...]
    earlier: bool
    """The session has turns before these."""


def timeline_of(
    session: str,
    summaries: Sequence[ReceiptSummary],
    shown_ids: Mapping[str, Sequence[str]],
    compactions: Sequence[Record],
    limit: int,
) -> Timeline:
    """Return the latest `limit` turns of a session.

    `summaries` come newest first, with one more than `limit`, which the first turn is compared with. `shown_ids` has the ids
    of the items of each context.
    """
    in_order = [None, *reversed(summaries)]
    turns = tuple(_turn(before, summary, shown_ids) for before, summary in pairwise(in_order) if summary is not None)
    events = tuple(Compaction(event.id, event.created) for event in reversed(compactions))
    return Timeline(session, turns[-limit:], events, earlier=len(summaries) > limit)


def _turn(before: ReceiptSummary | None, summary: ReceiptSummary, shown_ids: Mapping[str, Sequence[str]]) -> Turn:
    old, new = (set(shown_ids.get(each.id, ())) if each else set() for each in (before, summary))
    same_prefix = before is not None and before.prefix_hash == summary.prefix_hash
    return Turn(summary, len(new - old), len(old - new), same_prefix)
