"""Geometry of bars, in units of a drawing. The templates turn these numbers into SVG."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from foveate.server.inspector.candidate_rows import CandidateRow
from foveate.types import Budget, SlotBudget

WIDTH = 1000.0
"""Units of a drawing. Browsers stretch it to its place."""

COLOR_COUNT = 16
"""CSS classes `c0` to `c15`. Adjacent colors differ."""


@dataclass(frozen=True, slots=True)
class BarSegment:
    """One colored part of a bar."""

    name: str
    amount: float
    x: float
    width: float
    color: str


def bar(parts: Iterable[tuple[str, float, str]], total: float | None = None) -> list[BarSegment]:
    """Return segments for (name, amount, color) on a scale of `total`, or of their sum. Empty parts are dropped."""
    amounts = [(name, max(0, amount), color) for name, amount, color in parts]
    scale = total or sum(amount for _, amount, _ in amounts) or 1.0
    segments, x = [], 0.0
    for name, amount, color in amounts:
        # A part must not leave the drawing if the parts are more than `total`.
        width = min(amount * WIDTH / scale, WIDTH - x)
        if width > 0:
            segments.append(BarSegment(name, amount, round(x, 2), round(width, 2), color))
            x += width
    return segments


def colors(names: Iterable[str]) -> dict[str, str]:
    """Return a color class for each name, in order."""
    return {name: f"c{n % COLOR_COUNT}" for n, name in enumerate(dict.fromkeys(names))}


def slots(budget: Budget) -> list[SlotBudget]:
    """Return the slots of a budget, without those that had no tokens and needed none."""
    return [slot for slot in budget.slots if slot.base or slot.granted or slot.used]


def merged_tokens(budget: Budget) -> int:
    """Return how many tokens the whole takes less than its parts: a tokenizer merges tokens where texts meet."""
    return sum(slot.used for slot in budget.slots) + budget.framing - budget.used


def budget(budget: Budget, colors: Mapping[str, str], scale: float | None = None) -> list[BarSegment]:
    """Return the bar of a context's total: tokens of each slot, framing, free tokens and reserve."""
    parts = [(slot.name, slot.used, colors.get(slot.name, "c9")) for slot in budget.slots]
    parts += [("framing", budget.framing, "framing"), ("free", budget.free, "free"), ("reserve", budget.reserve, "reserve")]
    return bar(parts, max(scale or budget.total, sum(amount for _, amount, _ in parts)))


def score(row: CandidateRow, colors: Mapping[str, str], max_score: float) -> tuple[list[BarSegment], str]:
    """Return a bar with the parts of a score, and the same in words."""
    parts = row.score_parts
    label = f"score {row.entry.score:.3f} = {' + '.join(f'{name} {part:.3f}' for name, part in parts.items())}"
    return bar([(name, part, colors.get(name, "c9")) for name, part in parts.items()], max_score), label


def grant(slot: SlotBudget, max_tokens: float) -> dict[str, float]:
    """Return the widths of a slot's bars: its base, the granted tokens and the used ones."""
    scale = WIDTH / (max_tokens or 1)
    return {"base": slot.base * scale, "granted": slot.granted * scale, "used": slot.used * scale}
