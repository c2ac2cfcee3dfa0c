"""Sessions: conversations, and the contexts of one of them turn by turn."""

from __future__ import annotations

from typing import Any

from foveate.clock import iso
from foveate.server.inspector.page import Action, Asked, Page
from foveate.types import NO_FILTERS

TURNS = 200
"""Turns on one page."""


def latest(asked: Asked) -> dict[str, Any]:
    """The sessions that contexts were computed in or events were kept of, the latest first."""
    limit = asked.limit(100)
    found = {each["name"]: each for each in asked.engine.sessions(limit)}
    with asked.engine.reader() as reader:
        spoken = reader.sessions(limit, NO_FILTERS)
    for name, at in spoken.items():
        known = found.setdefault(name, {"name": name, "contexts": 0, "last": ""})
        known["last"] = max(known["last"], iso(at))
    return {"sessions": sorted(found.values(), key=lambda each: each["last"], reverse=True)[:limit]}


def one(asked: Asked) -> dict[str, Any]:
    """A session turn by turn: what each context took and where, what came and went, and why it was computed."""
    name = asked.needed("name", "session")
    found = asked.engine.timeline(name, asked.limit(TURNS))
    turns = found["turns"]
    slots = list(dict.fromkeys(slot for turn in turns for slot in turn["slots"]))
    return {
        "subject": f"Session {name}",
        "session": name,
        "turns": turns,
        "slots": slots,
        "compactions": found["compactions"],
        "earlier": found["earlier"],
        "tokens": sum(turn["tokens"] for turn in turns),
        "refreshed": sum(bool(turn["refresh"]) for turn in turns),
        "same_prefix": sum(turn["same_prefix"] for turn in turns),
        "largest": max((turn["tokens"] for turn in turns), default=0),
        "rows": _in_order(turns, found["compactions"]),
    }


def _in_order(turns: list[dict[str, Any]], compactions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Turns and compactions by time, each by its place in its own list."""
    marks = [(turn["now"], "turn", n) for n, turn in enumerate(turns)]
    marks += [(each["now"], "compaction", n) for n, each in enumerate(compactions)]
    return [{"what": what, "n": n} for _, what, n in sorted(marks)]


PAGES: tuple[Page, ...] = (
    Page("sessions", "Sessions", latest, "context:read", "Conversations, and their contexts turn by turn."),
    Page("session", "Session", one, "context:read"),
)
ACTIONS: tuple[Action, ...] = ()
