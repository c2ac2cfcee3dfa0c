"""Lifecycles: at which stage a record is, and what is due for it. Pure rules over a record, a clock and thresholds.

Comes in: a record and the time. Goes out: the name of its stage and, where its stage asks for a change that was not made
yet, that change. Most stages are only read (a fact is core because it was confirmed often enough); four of them change
what is kept: an old episode is archived, a procedure that fails is flagged, a censor that trips often is escalated, and
one that is often wrong is withdrawn. Nothing here deletes anything, and a decision is never changed at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from foveate.errors import near
from foveate.types import Change, Record

DAY = 86_400_000

REVIEWED = ("success", "partial", "failure")
"""Outcomes that say how a decision turned out; `pending` is none."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """When a record passes from one stage to the next; `[lifecycle]` in a project's settings changes them."""

    core_at: int = 3
    """Confirmations that make a fact core (004)."""
    summarize_after: float = 30.0
    """Days after which an episode is known by its summary (004)."""
    archive_after: float = 90.0
    """Days after which only its summary is kept in use (004)."""
    judged_at: int = 5
    """Uses before a procedure is judged (004)."""
    effective: float = 0.6
    """It is effective above this success rate (004)."""
    ineffective: float = 0.4
    """And ineffective below this one (004); between the two it is active."""
    escalate_above: int = 5
    """Trips after which a warning becomes a block. 004 gives no figure: five times is no accident."""
    false_alarms: int = 3
    """False alarms that withdraw a censor, where they are also more than `false_share` of its trips. No figure in 004."""
    false_share: float = 0.5


DEFAULT = Thresholds()


def problems_in(values: Mapping[str, Any]) -> list[str]:
    """What is wrong with a table of thresholds, as sentences."""
    known = {item.name: item.type for item in fields(Thresholds)}
    found = []
    for name, value in values.items():
        if name not in known:
            found.append(f"There is no threshold {name!r}.{near(name, known)}")
        elif isinstance(value, bool) or not isinstance(value, int if known[name] == "int" else int | float) or value < 0:
            wanted = "a whole number" if known[name] == "int" else "a number"
            found.append(f"{name} must be {wanted}, 0 or more, not {value!r}.")
    return found


# --- stages --------------------------------------------------------------------------------------------------------


def stage(record: Record, now: int, thresholds: Thresholds = DEFAULT) -> str:
    """The stage of a record by the diagram of its kind; kinds without one have their status."""
    rule = _STAGES.get(record.kind)
    return record.status if rule is None else rule(record, now, thresholds)


def _fact(record: Record, now: int, at: Thresholds) -> str:
    if record.status in ("retired", "archived"):
        return "inactive"
    if record.status == "superseded":
        return "superseded"
    confirmations = int(record.data.get("confirmations", 0))
    if record.data.get("core") or confirmations >= at.core_at:
        return "core"
    return "confirmed" if confirmations else "new"


def _episode(record: Record, now: int, at: Thresholds) -> str:
    days = (now - record.created) / DAY
    if record.data.get("archived") or (days > at.archive_after and not record.pinned):
        return "archived"
    return "active" if days < at.summarize_after else "summarized"


def _procedure(record: Record, now: int, at: Thresholds) -> str:
    if record.status != "active":
        return "retired"
    if record.uses < at.judged_at:
        return "active"
    rate = record.wins / max(record.uses, 1)
    return "effective" if rate > at.effective else "ineffective" if rate < at.ineffective else "active"


def _censor(record: Record, now: int, at: Thresholds) -> str:
    alarms = int(record.data.get("false_alarms", 0))
    if record.status != "active" or (alarms >= at.false_alarms and alarms > record.uses * at.false_share):
        return "retired"
    if record.uses > at.escalate_above:
        return "escalated"
    return "active" if record.uses else "created"


def _decision(record: Record, now: int, at: Thresholds) -> str:
    if record.outcome in REVIEWED:
        return "reviewed"
    return "pending" if record.outcome == "pending" else "recorded"


_STAGES: Mapping[str, Callable[[Record, int, Thresholds], str]] = {
    "fact": _fact,
    "episode": _episode,
    "procedure": _procedure,
    "pattern": _procedure,
    "censor": _censor,
    "decision": _decision,
}

RANKS = {"core": 1.0, "effective": 1.0, "confirmed": 0.5}
"""What a stage adds to a record's rank (004: core facts and effective procedures come first); others add nothing."""


# --- what is due ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Step:
    """A change that a record's stage asks for."""

    id: str
    kind: str
    verb: str
    was: str
    to: str
    why: str
    number: int = 1
    """Of how many records, where they are not named one by one: then `id` is empty."""


DUE_KINDS = ("episode", "procedure", "pattern", "censor")
"""Kinds whose records may change by rule."""

VERBS = ("archive", "flag", "unflag", "escalate", "withdraw")
"""What a rule does, as history tells it; none is a verb that a person uses."""


def due(record: Record, now: int, thresholds: Thresholds = DEFAULT) -> Step | None:
    """The change that is due for a record, if any."""
    if record.status != "active":
        return None
    to = stage(record, now, thresholds)
    used = f"{record.wins} of {record.uses} uses went well"
    found: tuple[str, str, str] | None = None
    if record.kind == "episode" and to == "archived" and not record.data.get("archived"):
        found = "archive", "summarized", f"older than {thresholds.archive_after:g} days"
    elif record.kind in ("procedure", "pattern"):
        flagged = bool(record.data.get("review"))
        if to == "ineffective" and not flagged:
            found = "flag", "active", used
        elif flagged and to != "ineffective":
            found = "unflag", "ineffective", used
    elif record.kind == "censor":
        if to == "retired":
            found = "withdraw", "active", f"{record.data.get('false_alarms', 0)} false alarms in {record.uses} trips"
        elif to == "escalated" and record.data.get("action") != "block":
            found = "escalate", "active", f"tripped {record.uses} times, more than {thresholds.escalate_above}"
    return None if found is None else Step(record.id, record.kind, found[0], found[1], to, found[2])


def done(record: Record, step: Step, now: int) -> Record:
    """The record after a step. An archived episode is found by its summary; the full text stays in its history."""
    match step.verb:
        case "archive":
            return replace(record, text=record.summary, data={**record.data, "archived": True}, updated=now)
        case "withdraw":
            return replace(record, status="retired", updated=now)
        case "escalate":
            return replace(record, data={**record.data, "action": "block"}, updated=now)
    return replace(record, data={**record.data, "review": step.verb == "flag"}, updated=now)


def taken_back(history: Sequence[Change], step: Step) -> bool:
    """Whether a rule did this before and somebody undid it: what a person took back is not done again."""
    made = [change.verb for change in history if change.verb in VERBS]
    return bool(made) and made[-1] == step.verb
