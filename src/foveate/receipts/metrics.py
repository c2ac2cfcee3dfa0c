"""Metrics of contexts with their targets (004), statistics of their sizes (001), and figures by day.

They are computed from summaries of receipts and from the growth of the store, and contain no texts and no ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import fsum

from foveate.clock import iso
from foveate.receipts.summary import ReceiptSummary

MAX_CONTEXTS = 500
"""Latest contexts that metrics are computed from: the last days of a busy agent, read in a fraction of a second."""

GROWTH_DAYS = 30
"""Days over which growth is measured. Receipts are kept for as long."""

MIN_MEASURED = 10
"""Measurements before a metric has a verdict. A new store has one context and four records, and has missed nothing."""

MAX_CONTEXTS_BY_DAY = 50_000
"""Contexts that figures by day are computed from: more than a store keeps by default. 10,000 take about 0.1 s."""

DAY_MS = 86_400_000
COLD_START_SHARE = 0.95
"""Cold start is the time within which this share of contexts is computed. A mean would hide the slow ones."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure with its target."""

    value: float | None
    """None if nothing was measured."""
    target: str
    holds: bool | None
    """None if there is no target, or too little was measured for a verdict."""
    measured: int
    """Number of contexts, answers, turns or facts that it was measured on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DayMetrics:
    """The figures of one day (UTC)."""

    day: str
    contexts: int = 0
    records: int = 0
    """Records that were written on this day."""
    tokens: int = 0
    """Mean size of a context."""
    context_relevance: float | None = None
    budget_utilisation: float | None = None
    refresh_rate: float | None = None
    recall_precision: float | None = None
    ms_p50: float | None = None
    ms_p95: float | None = None


@dataclass(frozen=True, slots=True)
class Sizes:
    """Mean and maximum of token counts, or of shares of a budget."""

    mean: float = 0
    max: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextStats:
    """001's statistics over the latest contexts."""

    contexts: int
    tokens: Sizes
    utilisation: Sizes
    """Share of the budget that was used."""
    by_profile: Mapping[str, int]
    by_section: Mapping[str, Sizes]
    """Tokens of each section where it is shown, the largest first."""


def measure(summaries: Sequence[ReceiptSummary], growth: Mapping[str, int], now: int) -> dict[str, Metric]:
    """Return 004's metrics by name. `growth` covers GROWTH_DAYS, or the age of a younger store."""
    days = min(GROWTH_DAYS, max(1.0, (now - growth["first"]) / DAY_MS))
    found = {
        "context_relevance": _above([summary.relevance for summary in summaries], 0.6),
        "budget_utilisation": _utilisation(summaries),
        "refresh_rate": _refresh_rate(summaries),
        "recall_precision": _above([summary.precision for summary in summaries], 0.4),
        "cold_start_ms": _cold_start(summaries),
        "memory_growth_per_day": Metric(round(growth["added"] / days, 2), "monitored", None, growth["added"]),
        "fact_confirmation": _confirmation(growth["confirmed"], growth["facts"]),
    }
    return {name: _with_due_verdict(metric) for name, metric in found.items()}


def _with_due_verdict(metric: Metric) -> Metric:
    return metric if metric.measured >= MIN_MEASURED else replace(metric, holds=None)


def first_day(now: int, days: int) -> int:
    """Return the start (UTC) of the first of the last `days` days, of which today is one."""
    return (now // DAY_MS + 1 - days) * DAY_MS


def by_day(summaries: Iterable[ReceiptSummary], records: Mapping[str, int], *, cut: bool = False) -> tuple[DayMetrics, ...]:
    """Return the figures of each day that has contexts or new records, oldest first. `summaries` come newest first.

    `cut` says that there are more summaries than these. Their oldest day can then be incomplete and is left out.
    """
    by_number = groupby(summaries, lambda summary: summary.created // DAY_MS)
    groups = {iso(number * DAY_MS)[:10]: list(group) for number, group in by_number}
    incomplete = min(groups, default="") if cut else ""
    names = sorted(day for day in groups.keys() | records.keys() if day > incomplete)
    return tuple(_day(day, groups.get(day, []), records.get(day, 0)) for day in names)


def _day(day: str, summaries: Sequence[ReceiptSummary], records: int) -> DayMetrics:
    if not summaries:
        return DayMetrics(day=day, records=records)
    times = [summary.ms for summary in summaries]
    return DayMetrics(
        day=day,
        contexts=len(summaries),
        records=records,
        tokens=round(_mean(summary.tokens for summary in summaries)),
        context_relevance=_above([summary.relevance for summary in summaries], 0).value,
        budget_utilisation=_utilisation(summaries).value,
        refresh_rate=_refresh_rate(summaries).value,
        recall_precision=_above([summary.precision for summary in summaries], 0).value,
        ms_p50=_percentile(times, 0.5),
        ms_p95=_percentile(times, COLD_START_SHARE),
    )


def _above(values: Iterable[float | None], target: float) -> Metric:
    """Return the mean of the values that were measured; it should be above the target."""
    known = [value for value in values if value is not None]
    mean = round(_mean(known), 4) if known else None
    return Metric(mean, f"> {target}", None if mean is None else mean > target, len(known))


def _confirmation(confirmed: int, facts: int) -> Metric:
    return replace(_above([confirmed / facts] if facts else [], 0.2), measured=facts)


def _utilisation(summaries: Sequence[ReceiptSummary]) -> Metric:
    shares = _used_shares(summaries)
    mean = round(_mean(shares), 4) if shares else None
    return Metric(mean, "0.5 to 0.9", None if mean is None else 0.5 <= mean <= 0.9, len(shares))


def _used_shares(summaries: Iterable[ReceiptSummary]) -> list[float]:
    sizes = [(summary.tokens, summary.total - summary.reserve) for summary in summaries]
    return [used / available for used, available in sizes if available > 0]


def _refresh_rate(summaries: Sequence[ReceiptSummary]) -> Metric:
    turns = sum(summary.notes.turns for summary in summaries)
    refreshed = sum(bool(summary.notes.refresh) for summary in summaries)
    rate = round(refreshed / turns, 4) if turns else None
    return Metric(rate, "< 0.3 per turn", None if rate is None else rate < 0.3, turns)


def _cold_start(summaries: Sequence[ReceiptSummary]) -> Metric:
    slow = _percentile([summary.ms for summary in summaries], COLD_START_SHARE)
    return Metric(slow, "< 500", None if slow is None else slow < 500, len(summaries))


def _percentile(times: Sequence[float], share: float) -> float | None:
    return round(sorted(times)[min(len(times) - 1, int(len(times) * share))], 3) if times else None


def context_stats(summaries: Sequence[ReceiptSummary]) -> ContextStats:
    """Return how large and how full contexts are, by profile and by section."""
    sections: dict[str, list[int]] = {}
    for summary in summaries:
        for name, tokens in summary.slots.items():
            sections.setdefault(name, []).append(tokens)
    largest_first = sorted(sections.items(), key=lambda section: (-sum(section[1]), section[0]))
    shares = _used_shares(summaries)
    return ContextStats(
        contexts=len(summaries),
        tokens=_token_sizes([summary.tokens for summary in summaries]),
        utilisation=Sizes(round(_mean(shares), 4), round(max(shares), 4)) if shares else Sizes(),
        by_profile=dict(sorted(Counter(summary.profile for summary in summaries).items())),
        by_section={name: _token_sizes(tokens) for name, tokens in largest_first},
    )


def _token_sizes(tokens: Sequence[int]) -> Sizes:
    return Sizes(round(_mean(tokens)), max(tokens)) if tokens else Sizes()


def _mean(values: Iterable[float]) -> float:
    """Return the mean. `statistics` would add 2 ms to the start of each command."""
    known = list(values)
    return fsum(known) / len(known)
