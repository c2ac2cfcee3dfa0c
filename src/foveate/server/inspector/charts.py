"""Figures -> geometry: bars and lines, in units of a drawing. Plain numbers: the templates make SVG of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from math import floor, log2, log10
from typing import Any

WIDTH, HEIGHT = 1000.0, 200.0
"""Units across every drawing, and down a chart; what is drawn is stretched to its place."""

COLORS = 16
"""Classes of colour, `c0` to `c15`: neighbours differ."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a bar."""

    name: str
    amount: float
    x: float
    width: float
    color: str


def bar(parts: Iterable[tuple[str, float, str]], total: float | None = None) -> list[Piece]:
    """Amounts side by side, each with a name and a class; of `total`, or of their sum. What is nothing is left out."""
    given = [(name, max(0, amount), color) for name, amount, color in parts]
    whole = total or sum(amount for _, amount, _ in given) or 1.0
    out, at = [], 0.0
    for name, amount, color in given:
        width = min(amount * WIDTH / whole, WIDTH - at)
        if width > 0:
            out.append(Piece(name, amount, round(at, 2), round(width, 2), color))
            at += width
    return out


def colors(names: Iterable[str]) -> dict[str, str]:
    """A class of colour for each name, in order."""
    return {name: f"c{n % COLORS}" for n, name in enumerate(dict.fromkeys(names))}


def budget(ledger: Mapping[str, Any], tints: Mapping[str, str], scale: float | None = None) -> list[Piece]:
    """The one bar of a context's total: what each slot used, framing, free room, reserve. `scale`: that of several bars."""
    slots = [(slot["name"], slot["used"], tints.get(slot["name"], "c9")) for slot in ledger["slots"]]
    parts = [*slots, *((name, ledger[name], name) for name in ("framing", "free", "reserve"))]
    return bar(parts, max(scale or ledger["total"], sum(amount for _, amount, _ in parts)))


@dataclass(frozen=True, slots=True)
class Score:
    """A score as a bar, and in words."""

    pieces: list[Piece]
    label: str


def score(row: Mapping[str, Any], tints: Mapping[str, str], most: float) -> Score:
    """A row's score as its parts, on a scale up to `most` that all rows share."""
    parts: Mapping[str, float] = row["parts"]
    label = f"score {row['score']:.3f} = {' + '.join(f'{name} {part:.3f}' for name, part in parts.items())}"
    return Score(bar([(name, part, tints.get(name, "c9")) for name, part in parts.items()], most), label)


def grant(slot: Mapping[str, Any], largest: float) -> dict[str, float]:
    """One slot's row: how far its own room, its grant and its use reach, on a scale that all slots share."""
    scale = WIDTH / (largest or 1)
    return {name: round(slot[name] * scale, 2) for name in ("own", "granted", "used")}


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a line, from the upper left of its drawing."""

    x: float
    y: float
    value: float


def line(values: Sequence[float | None], top: float, places: Sequence[float] | None = None) -> list[Point]:
    """Values from left to right, up to `top`; what is not known is left out. `places`: where each stands, in 0..1."""
    step = 1 / max(1, len(values) - 1)
    at = [0.5] if len(values) == 1 else places or [n * step for n in range(len(values))]
    known = [(x, value) for x, value in zip(at, values, strict=True) if value is not None]
    return [
        Point(round(x * WIDTH, 1), round(HEIGHT - min(value, top) * HEIGHT / (top or 1), 1), value) for x, value in known
    ]


def path(points: Sequence[Point]) -> str:
    """As SVG has the points of a line."""
    return " ".join(f"{point.x},{point.y}" for point in points)


def top(values: Iterable[float | None]) -> float:
    """A round figure above all of them, for the upper end of a scale."""
    most = max((value for value in values if value is not None), default=0.0)
    if most <= 0:
        return 1.0
    unit = 10.0 ** floor(log10(most))
    return next(step * unit for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if step * unit >= most)


def by_day(days: Sequence[str]) -> list[float]:
    """Where each day stands between the first and the last, in 0..1: a week without anything is a week wide."""
    numbers = [date.fromisoformat(day).toordinal() for day in days]
    span = (numbers[-1] - numbers[0] if numbers else 0) or 1
    return [(number - numbers[0]) / span for number in numbers]


def by_power(amounts: Sequence[float]) -> list[float]:
    """Where each amount stands between the least and the most, in 0..1, if doubling is one step everywhere."""
    logs = [log2(amount) for amount in amounts]
    least, span = min(logs, default=0.0), (max(logs, default=0.0) - min(logs, default=0.0)) or 1.0
    return [(each - least) / span for each in logs]
