"""004's key metrics, is context management working? And 001's statistics: where do the tokens go?

Comes in: the lines of receipts, and how the store grew. Goes out: one `Metric` for each row of the table, with its target
and whether it holds; or the figures of each day. A metric that nothing was measured for has no value, and neither holds
nor fails. The statistics are figures only, over contexts, by profile and by part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from statistics import fmean
from typing import Any

from foveate.clock import iso
from foveate.receipts.codec import unpack
from foveate.receipts.receipt import Receipt
from foveate.receipts.summary import ReceiptSummary
from foveate.store.protocol import Store, StoredReceipt
from foveate.tasks.claims import active_claims
from foveate.types import Scope

LATEST = 500
"""Receipts that are read: the last days of a busy agent, in a fraction of a second."""

DAYS = 30
"""The stretch over which growth is taken, as long as receipts are kept."""

MOST = 50_000
"""Lines that are read for figures by day: more than the room for receipts holds, unless somebody gives them more. 10,000
take some 0.1 s."""

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


def measure(lines: Sequence[ReceiptSummary], growth: Mapping[str, int], now: int) -> dict[str, dict[str, Any]]:
    """Every metric by name. `growth` is the reader's, over the last DAYS; a younger store is taken over its own age."""
    days = min(DAYS, max(1.0, (now - growth["first"]) / DAY))
    found = {
        "context_relevance": _over([line.relevance for line in lines], 0.6),
        "budget_utilisation": _utilisation(lines),
        "refresh_rate": _refresh_rate(lines),
        "recall_precision": _over([line.precision for line in lines], 0.4),
        "cold_start_ms": _cold_start(lines),
        "memory_growth_per_day": Metric(round(growth["added"] / days, 2), "monitored", None, growth["added"]),
        "fact_confirmation": _over([growth["confirmed"] / growth["facts"]] if growth["facts"] else [], 0.2, growth["facts"]),
    }
    return {name: asdict(metric) for name, metric in found.items()}


def since(now: int, days: int = DAYS) -> int:
    """The beginning of the first of so many days, of which today is the last (UTC)."""
    return (now // DAY + 1 - days) * DAY


def over_time(lines: Iterable[ReceiptSummary], *, cut: bool = False) -> dict[str, Any]:
    """The figures of each day, oldest first, from lines that come newest first; a day without contexts is left out, and what
    was not measured is None.

    `cut`: there are more lines than these. Then the oldest day is left out, too: they may be a part of it only.
    """
    days = [
        {"day": iso(day * DAY)[:10], **_figures(list(those))}
        for day, those in groupby(lines, lambda line: line.created // DAY)
    ]
    return {"days": days[: len(days) - cut][::-1], "cut": cut}


def _figures(lines: Sequence[ReceiptSummary]) -> dict[str, Any]:
    times = [line.ms for line in lines]
    return {
        "contexts": len(lines),
        "tokens": round(fmean(line.tokens for line in lines)),
        "context_relevance": _over([line.relevance for line in lines], 0).value,
        "budget_utilisation": _utilisation(lines).value,
        "refresh_rate": _refresh_rate(lines).value,
        "recall_precision": _over([line.precision for line in lines], 0).value,
        "ms_p50": _within(times, 0.5),
        "ms_p95": _within(times, SLOWEST),
    }


def _over(values: Sequence[float | None], target: float, measured: int | None = None) -> Metric:
    """The mean of what was measured, which should be above its target."""
    known = [value for value in values if value is not None]
    mean = round(fmean(known), 4) if known else None
    return Metric(mean, f"> {target}", None if mean is None else mean > target, len(known) if measured is None else measured)


def _utilisation(lines: Sequence[ReceiptSummary]) -> Metric:
    rooms = [(line.tokens, line.total - line.reserve) for line in lines]
    shares = [used / room for used, room in rooms if room > 0]
    mean = round(fmean(shares), 4) if shares else None
    return Metric(mean, "0.5 to 0.9", None if mean is None else 0.5 <= mean <= 0.9, len(shares))


def _refresh_rate(lines: Sequence[ReceiptSummary]) -> Metric:
    turns = sum(line.notes.turns for line in lines)
    refreshed = sum(bool(line.notes.refresh) for line in lines)
    rate = round(refreshed / turns, 4) if turns else None
    return Metric(rate, "< 0.3 per turn", None if rate is None else rate < 0.3, turns)


def _cold_start(lines: Sequence[ReceiptSummary]) -> Metric:
    slow = _within([line.ms for line in lines], SLOWEST)
    return Metric(slow, "< 500", None if slow is None else slow < 500, len(lines))


def _within(times: Sequence[float], share: float) -> float | None:
    """The time that this share of them stays within."""
    return round(sorted(times)[min(len(times) - 1, int(len(times) * share))], 3) if times else None


# --- 001: where the tokens go --------------------------------------------------------------------------------------


def context_stats(store: Store, scope: Scope, now: int) -> dict[str, Any]:
    """How many contexts there were lately, how large and how full, by profile and by part, and how many are in use.

    Those of the scope and, where it names no agent, those of every agent: figures only.
    """
    with store.read(scope) as reader:
        active = len(active_claims(reader, now))
        agents = [] if scope.agent is not None else reader.receipt_agents()
    found: dict[str, StoredReceipt] = {}
    for agent in (scope.agent, *agents):
        with store.read(replace(scope, agent=agent)) as reader:
            found |= {stored.id: stored for stored in reader.receipts(LATEST)}
    latest = sorted(found.values(), key=lambda stored: (-stored.created, stored.id))[:LATEST]
    return {"active": active, **_sizes_of([unpack(stored.body) for stored in latest])}


def _sizes_of(receipts: Sequence[Receipt]) -> dict[str, Any]:
    budgets = [receipt.budget for receipt in receipts]
    rooms = [(budget.used, budget.ceiling) for budget in budgets]
    parts: dict[str, list[int]] = {}
    for budget in budgets:
        for slot in budget.slots:
            parts.setdefault(slot.name, []).append(slot.used)
    return {
        "contexts": len(receipts),
        "tokens": _sizes([used for used, _ in rooms]),
        "full": _shares([used / room for used, room in rooms if room > 0]),
        "by_profile": dict(sorted(Counter(receipt.profile.name for receipt in receipts).items())),
        "by_part": {name: _sizes(used) for name, used in sorted(parts.items(), key=lambda part: (-sum(part[1]), part[0]))},
    }


def _sizes(tokens: Sequence[int]) -> dict[str, int]:
    return {"mean": round(fmean(tokens)) if tokens else 0, "max": max(tokens, default=0)}


def _shares(shares: Sequence[float]) -> dict[str, float]:
    return {"mean": round(fmean(shares), 4) if shares else 0.0, "max": round(max(shares, default=0.0), 4)}
