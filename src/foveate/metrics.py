"""004's key metrics, is context management working? And 001's statistics: where do the tokens go?

Comes in: receipts with the notes on them, and how the store grew. Goes out: one `Metric` for each row of the table, with its
target and whether it holds. A metric that nothing was measured for has no value, and neither holds nor fails. The
statistics are figures only, over contexts, by profile and by part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any

from foveate.feedback import AROUND, recalled
from foveate.receipts import Receipt, unpack
from foveate.state.store import Store, StoredReceipt
from foveate.state.task import EVERY
from foveate.types import NO_FILTERS, Scope

LATEST = 500
"""Receipts that are read: the last days of a busy agent, in a fraction of a second."""

DAYS = 30
"""The stretch over which growth is taken, as long as receipts are kept."""

DAY = 86_400_000
SLOWEST = 0.95
"""Cold start is the time that this share of contexts stays within; the mean would hide the slow ones."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure with what it should be. `holds` is None where there is no figure or no target."""

    value: float | None
    target: str
    holds: bool | None
    measured: int
    """Contexts, answers, turns or facts that it was measured on."""


def measure(receipts: Sequence[Receipt], growth: Mapping[str, int], now: int) -> dict[str, dict[str, Any]]:
    """Every metric by name. `growth` is the reader's, over the last DAYS; a younger store is taken over its own age."""
    days = min(DAYS, max(1.0, (now - growth["first"]) / DAY))
    turns = sum(receipt.document.get("notes", {}).get("turns", 0) for receipt in receipts)
    found = {
        "context_relevance": _over([_relevance(receipt) for receipt in receipts], 0.6),
        "budget_utilisation": _utilisation(receipts),
        "refresh_rate": _refresh_rate(receipts, turns),
        "recall_precision": _over([_precision(receipt) for receipt in receipts], 0.4),
        "cold_start_ms": _cold_start(receipts),
        "memory_growth_per_day": Metric(round(growth["added"] / days, 2), "monitored", None, growth["added"]),
        "fact_confirmation": _over([growth["confirmed"] / growth["facts"]] if growth["facts"] else [], 0.2, growth["facts"]),
    }
    return {name: asdict(metric) for name, metric in found.items()}


def _over(values: Sequence[float | None], target: float, measured: int | None = None) -> Metric:
    """The mean of what was measured, which should be above its target."""
    known = [value for value in values if value is not None]
    mean = round(fmean(known), 4) if known else None
    return Metric(mean, f"> {target}", None if mean is None else mean > target, len(known) if measured is None else measured)


def _relevance(receipt: Receipt) -> float | None:
    """The mean calibrated relevance of what was found for the question."""
    kept = [entry for entry in receipt.candidates if entry["kept"] and entry["source"] not in AROUND]
    return fmean(entry["features"].get("relevance", 0.0) for entry in kept) if kept else None


def _precision(receipt: Receipt) -> float | None:
    """The share of found items that an answer used, or a person called useful; None where nobody said."""
    notes = receipt.document.get("notes", {})
    found = recalled(receipt)
    if not found or not ("used" in notes or "marks" in notes):
        return None
    useful = {id for id, mark in notes.get("marks", {}).items() if mark == "useful"} | set(notes.get("used", ()))
    return len(useful.intersection(found)) / len(found)


def _utilisation(receipts: Sequence[Receipt]) -> Metric:
    budgets = [receipt.document["budget"] for receipt in receipts]
    rooms = [(budget["used"], budget["total"] - budget["reserve"]) for budget in budgets]
    shares = [used / room for used, room in rooms if room > 0]
    mean = round(fmean(shares), 4) if shares else None
    return Metric(mean, "0.5 to 0.9", None if mean is None else 0.5 <= mean <= 0.9, len(shares))


def _refresh_rate(receipts: Sequence[Receipt], turns: int) -> Metric:
    refreshed = sum("refresh" in receipt.document.get("notes", {}) for receipt in receipts)
    rate = round(refreshed / turns, 4) if turns else None
    return Metric(rate, "< 0.3 per turn", None if rate is None else rate < 0.3, turns)


def _cold_start(receipts: Sequence[Receipt]) -> Metric:
    times = sorted(receipt.document["ms"] for receipt in receipts)
    slow = round(times[min(len(times) - 1, int(len(times) * SLOWEST))], 3) if times else None
    return Metric(slow, "< 500", None if slow is None else slow < 500, len(times))


# --- 001: where the tokens go --------------------------------------------------------------------------------------


def context_stats(store: Store, scope: Scope, now: int) -> dict[str, Any]:
    """How many contexts there were lately, how large and how full, by profile and by part, and how many are in use.

    Those of the scope, and those that were prepared for agents: an agent's receipts are its own, its lease names it.
    """
    with store.read(scope) as reader:
        leases = [lease for old in (False, True) for lease in reader.recent(["lease"], EVERY, NO_FILTERS, archived=old)]
    agents = {lease.data["agent"] for lease in leases} if scope.agent is None else set()
    found: dict[str, StoredReceipt] = {}
    for agent in (scope.agent, *sorted(agents)):
        with store.read(replace(scope, agent=agent)) as reader:
            found |= {stored.id: stored for stored in reader.receipts(LATEST)}
    latest = sorted(found.values(), key=lambda stored: (-stored.created, stored.id))[:LATEST]
    active = [lease for lease in leases if lease.status == "active" and lease.data["expires"] > now]
    return {"active": len(active), **_sizes_of([unpack(stored.body) for stored in latest])}


def _sizes_of(receipts: Sequence[Receipt]) -> dict[str, Any]:
    budgets = [receipt.document["budget"] for receipt in receipts]
    rooms = [(budget["used"], budget["total"] - budget["reserve"]) for budget in budgets]
    parts: dict[str, list[int]] = {}
    for budget in budgets:
        for slot in budget["slots"]:
            parts.setdefault(slot["name"], []).append(slot["used"])
    return {
        "contexts": len(receipts),
        "tokens": _sizes([used for used, _ in rooms]),
        "full": _shares([used / room for used, room in rooms if room > 0]),
        "by_profile": dict(sorted(Counter(receipt.document["profile"]["name"] for receipt in receipts).items())),
        "by_part": {name: _sizes(used) for name, used in sorted(parts.items(), key=lambda part: (-sum(part[1]), part[0]))},
    }


def _sizes(tokens: Sequence[int]) -> dict[str, int]:
    return {"mean": round(fmean(tokens)) if tokens else 0, "max": max(tokens, default=0)}


def _shares(shares: Sequence[float]) -> dict[str, float]:
    return {"mean": round(fmean(shares), 4) if shares else 0.0, "max": round(max(shares, default=0.0), 4)}
