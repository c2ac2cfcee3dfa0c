"""A session turn by turn: what each context showed anew, what it withdrew, and why it was computed.

Comes in: the lines of a session's receipts, newest first, the ids that each showed, and the events of its compactions. Goes
out: one document, oldest first. Pure; what it compares are ids and hashes, never texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from foveate.clock import iso
from foveate.types import Record

COMPACTION = "compaction"
"""The type of the event that a conversation was compacted: its host put a summary in place of what was said. It is archived
from the start: it is for people who look, not for prompts."""

Line = Mapping[str, Any]
Shown = Mapping[str, Sequence[str]]
"""The ids of what each context showed, by its own id."""


def timeline(session: str, lines: Sequence[Line], shown: Shown, compactions: Sequence[Record], limit: int) -> dict[str, Any]:
    """The latest `limit` turns; one line more is what the first of them is compared with."""
    in_order = [None, *reversed(lines)]
    turns = [_turn(before, line, shown) for before, line in pairwise(in_order) if line is not None]
    return {
        "session": session,
        "turns": turns[-limit:],
        "compactions": [{"id": event.id, "at": iso(event.created), "now": event.created} for event in reversed(compactions)],
        "earlier": len(lines) > limit,
    }


def _turn(before: Line | None, line: Line, shown: Shown) -> dict[str, Any]:
    """A turn against the one before; of the first, everything is new."""
    old, new = (set(shown.get(each["id"], ())) if each else set() for each in (before, line))
    return {
        **line,
        "added": len(new - old),
        "withdrawn": len(old - new),
        "same_prefix": before is not None and before["prefix"]["hash"] == line["prefix"]["hash"],
        "refresh": line["notes"].get("refresh", ""),
    }
