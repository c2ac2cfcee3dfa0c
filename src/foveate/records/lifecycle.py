"""Computes the lifecycle stage of a record, its validity at a time, and the change that its stage requires. Pure.

Most stages only describe a record: a fact is core because it was confirmed often enough. Four of them require a change: an
old episode is archived, a procedure that fails is flagged, a censor that is violated often is escalated, and one that is
often wrong is withdrawn. Nothing here deletes a record, and a decision is never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from foveate.clock import iso
from foveate.errors import near
from foveate.types import Change, Record

DAY_MS = 86_400_000

REVIEWED_OUTCOMES = ("success", "partial", "failure")
"""Outcomes that say how a decision turned out, unlike `pending`."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Limits at which a record passes to its next stage; `[lifecycle]` in a project's settings changes them."""

    core_at: int = 3
    """Confirmations that make a fact core (004)."""
    summarize_after: float = 30.0
    """Days after which an episode is shown by its summary (004)."""
    archive_after: float = 90.0
    """Days after which only its summary stays in use (004)."""
    judged_at: int = 5
    """Uses before a procedure is judged (004)."""
    effective: float = 0.6
    """Success rate above which it is effective (004)."""
    ineffective: float = 0.4
    """Success rate below which it is ineffective (004). Between the two it is active."""
    escalate_above: int = 5
    """Violations after which a warning becomes a block. 004 gives no number."""
    false_alarms: int = 3
    """False alarms that withdraw a censor, if they are also more than `false_share` of its uses. 004 gives no number."""
    false_share: float = 0.5


DEFAULT_THRESHOLDS = Thresholds()


def threshold_problems(values: Mapping[str, Any]) -> list[str]:
    """Return the problems of a table of thresholds, as sentences."""
    known = {item.name: item.type for item in fields(Thresholds)}
    problems = []
    for name, value in values.items():
        if name not in known:
            problems.append(f"{name!r} is not a threshold.{near(name, known)}")
        elif isinstance(value, bool) or not isinstance(value, int if known[name] == "int" else int | float) or value < 0:
            type = "a whole number" if known[name] == "int" else "a number"
            problems.append(f"{name} must be {type} of at least 0, got {value!r}.")
    return problems


# --- stages --------------------------------------------------------------------------------------------------------


def stage(record: Record, now: int, thresholds: Thresholds = DEFAULT_THRESHOLDS) -> str:
    """Return the stage of a record. For a kind without stages it is the record's status."""
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
    days = (now - record.created) / DAY_MS
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
    if record.outcome in REVIEWED_OUTCOMES:
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

STAGE_SCORES = {"core": 1.0, "effective": 1.0, "confirmed": 0.5}
"""Added to a record's rank (004: core facts and effective procedures come first). Other stages add nothing."""


# --- validity ------------------------------------------------------------------------------------------------------


def invalidity(record: Record, now: int) -> str:
    """Return the bound of its validity outside which a time lies, as `until T` or `from T`; empty if the record is valid."""
    if record.valid_to is not None and record.valid_to <= now:
        return f"until {iso(record.valid_to)}"
    # Clocks differ. A record counts as dated ahead only if it was when it was written.
    if record.valid_from > max(now, record.updated):
        return f"from {iso(record.valid_from)}"
    return ""


def awaits_successor(record: Record, now: int) -> bool:
    """Return whether a superseded record is valid until its successor, which is dated ahead, replaces it."""
    return record.status == "superseded" and record.valid_to is not None and record.valid_to > now


# --- what is due ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Step:
    """A change that a record's stage requires, or a count of records that maintenance changed."""

    id: str
    kind: str
    verb: str
    was: str
    to: str
    why: str
    number: int = 1
    """Number of records. If it is not about one record, `id` is empty."""
    error: str = ""
    """Why other records could not be changed, such as an embedder that does not answer."""


DUE_KINDS = ("episode", "procedure", "pattern", "censor")
"""Kinds whose records may change by rule."""

RULE_VERBS = ("archive", "flag", "unflag", "escalate", "withdraw")
"""Operations in the history that a rule made. No person's operation has these names."""


def due_change(record: Record, now: int, thresholds: Thresholds = DEFAULT_THRESHOLDS) -> Step | None:
    """Return the change that is due for a record, or None."""
    if record.status != "active":
        return None
    to = stage(record, now, thresholds)
    success_rate = f"{record.wins} of {record.uses} uses were successful"
    change: tuple[str, str, str] | None = None
    if record.kind == "episode" and to == "archived" and not record.data.get("archived"):
        change = "archive", "summarized", f"older than {thresholds.archive_after:g} days"
    elif record.kind in ("procedure", "pattern"):
        flagged = bool(record.data.get("review"))
        if to == "ineffective" and not flagged:
            change = "flag", "active", success_rate
        elif flagged and to != "ineffective":
            change = "unflag", "ineffective", success_rate
    elif record.kind == "censor":
        if to == "retired":
            change = "withdraw", "active", f"{record.data.get('false_alarms', 0)} false alarms in {record.uses} uses"
        elif to == "escalated" and record.data.get("action") != "block":
            change = "escalate", "active", f"violated {record.uses} times, more than {thresholds.escalate_above}"
    return None if change is None else Step(record.id, record.kind, change[0], change[1], to, change[2])


def apply_change(record: Record, change: Step, now: int) -> Record:
    """Return the record after a change. An archived episode keeps its summary; the full text stays in its history."""
    match change.verb:
        case "archive":
            return replace(record, text=record.summary, data={**record.data, "archived": True}, updated=now)
        case "withdraw":
            return replace(record, status="retired", updated=now)
        case "escalate":
            return replace(record, data={**record.data, "action": "block"}, updated=now)
    return replace(record, data={**record.data, "review": change.verb == "flag"}, updated=now)


def was_undone(history: Sequence[Change], change: Step) -> bool:
    """Return whether a rule made this change before and a person undid it. Then it is not made again."""
    made = [entry.verb for entry in history if entry.verb in RULE_VERBS]
    return bool(made) and made[-1] == change.verb
