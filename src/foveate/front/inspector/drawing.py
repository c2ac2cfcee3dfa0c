"""Figures -> geometry: bars, lines and rings, in units of a drawing. Plain numbers: the templates make SVG of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WIDTH = 1000.0
"""Units across every drawing; what is drawn is stretched to its place."""

COLORS = 10
"""Classes of colour, `c0` to `c9`: neighbours differ."""


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
    given = [(name, max(0.0, float(amount)), color) for name, amount, color in parts]
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


def budget(ledger: Mapping[str, Any], tints: Mapping[str, str]) -> list[Piece]:
    """The one bar of a context's total: what each slot used, framing, free room, reserve."""
    slots = [(slot["name"], slot["used"], tints[slot["name"]]) for slot in ledger["slots"]]
    rest = ledger["used"] - sum(slot["used"] for slot in ledger["slots"])
    free = ledger["total"] - ledger["reserve"] - ledger["used"]
    return bar(
        [*slots, ("framing", rest, "framing"), ("free", free, "free"), ("reserve", ledger["reserve"], "reserve")],
        ledger["total"],
    )


def grant(slot: Mapping[str, Any], largest: float) -> dict[str, float]:
    """One slot's row: how far its own room, its grant and its use reach, on a scale that all slots share."""
    scale = WIDTH / (largest or 1)
    return {name: round(slot[name] * scale, 2) for name in ("own", "granted", "used")}


def points(values: Sequence[float | None], height: float, top: float) -> str:
    """A line through the values, as SVG points; a gap where there is none is bridged."""
    step = WIDTH / max(1, len(values) - 1)
    known = [(n * step, value) for n, value in enumerate(values) if value is not None]
    return " ".join(f"{x:.1f},{height - min(value, top) * height / (top or 1):.1f}" for x, value in known)
