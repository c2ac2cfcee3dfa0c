"""A session turn by turn: what each context showed that the one before did not, what it withdrew, and why it was computed.

It compares ids and hashes, never texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from foveate.receipts.summary import ReceiptSummary
from foveate.types import Record

COMPACTION_EVENT_TYPE = "compaction"
"""Type of the event that a conversation was compacted. It is archived from the start: for people, not for prompts."""


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """A session that contexts were computed in."""

    name: str
    contexts: int
    last: int
    """Time of its latest context."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A context of a session, compared with the one before it. Everything in the first one is new."""

    line: ReceiptSummary
    added: int
    withdrawn: int
    same_prefix: bool

    @property
    def refresh(self) -> str:
        """Return why it replaced the context before it; empty if it did not."""
        return self.line.notes.refresh


@dataclass(frozen=True, slots=True)
class Compaction:
    """The host replaced a part of the conversation by a summary."""

    id: str
    at: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """A session turn by turn, oldest first."""

    session: str
    turns: tuple[Turn, ...]
    compactions: tuple[Compaction, ...]
    earlier: bool
    """There are turns before these."""


def timeline_of(
    session: str,
    lines: Sequence[ReceiptSummary],
    shown: Mapping[str, Sequence[str]],
    compactions: Sequence[Record],
    limit: int,
) -> Timeline:
    """Return the latest `limit` turns. `lines` come newest first, with one more that the first turn is compared with.

    `shown` has the ids that each context showed.
    """
    in_order = [None, *reversed(lines)]
    turns = tuple(_turn(before, line, shown) for before, line in pairwise(in_order) if line is not None)
    compacted = tuple(Compaction(event.id, event.created) for event in reversed(compactions))
    return Timeline(session, turns[-limit:], compacted, earlier=len(lines) > limit)


def _turn(before: ReceiptSummary | None, line: ReceiptSummary, shown: Mapping[str, Sequence[str]]) -> Turn:
    old, new = (set(shown.get(each.id, ())) if each else set() for each in (before, line))
    same_prefix = before is not None and before.prefix_hash == line.prefix_hash
    return Turn(line, len(new - old), len(old - new), same_prefix)
