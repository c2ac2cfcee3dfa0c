"""Calibration: how sure somebody was, against how it turned out. Pure functions over decisions.

Comes in: decisions with a confidence and an outcome. Goes out: accuracy, Brier score and tendency, over all of them and by
domain, and 004's note once there are enough to say anything. A success counts 1, a partial one a half, a failure 0. A
confidence of 1 is what a decision has that states none, so that it says nothing here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from foveate.types import Record

ENOUGH = 10
"""Reviewed decisions below which a rate is chance."""

RECENT = 50
"""Decisions that count, the newest: people change."""

SLIGHT, CLEAR = 0.05, 0.15
"""Distances of confidence from accuracy: under the first it is well calibrated, from the second it is plain."""

_WORTH = {"success": 1.0, "partial": 0.5, "failure": 0.0}


@dataclass(frozen=True, slots=True)
class Calibration:
    """How well confidence foretold outcomes. `brier` is 0 at best; `gap` is above 0 where somebody was too sure."""

    number: int
    accuracy: float
    brier: float
    gap: float

    @property
    def tendency(self) -> str:
        if abs(self.gap) < SLIGHT:
            return "well calibrated"
        how = "overconfident" if self.gap > 0 else "underconfident"
        return how if abs(self.gap) >= CLEAR else f"slightly {how}"

    @property
    def advice(self) -> str:
        if abs(self.gap) < SLIGHT:
            return "go on as you do"
        return "look for what could go wrong" if self.gap > 0 else "trust your analysis"


def reviewed(decisions: Iterable[Record]) -> list[Record]:
    """The newest decisions that say how sure somebody was and how it turned out."""
    known = [record for record in decisions if record.outcome in _WORTH and record.confidence < 1.0]
    return sorted(known, key=lambda record: (-record.created, record.id))[:RECENT]


def measure(decisions: Sequence[Record]) -> Calibration | None:
    """The calibration of some reviewed decisions; None where there are none."""
    if not decisions:
        return None
    pairs = [(record.confidence, _WORTH[str(record.outcome)]) for record in decisions]
    number = len(pairs)
    accuracy = sum(worth for _, worth in pairs) / number
    brier = sum((sure - worth) ** 2 for sure, worth in pairs) / number
    gap = sum(sure for sure, _ in pairs) / number - accuracy
    return Calibration(number, round(accuracy, 6), round(brier, 6), round(gap, 6))


def by_domain(decisions: Sequence[Record]) -> dict[str, Calibration]:
    """The same for each tag."""
    groups: defaultdict[str, list[Record]] = defaultdict(list)
    for record in decisions:
        for tag in record.tags:
            groups[tag].append(record)
    return {tag: found for tag in sorted(groups) if (found := measure(groups[tag]))}


def note(decisions: Iterable[Record], domains: Sequence[str] = ()) -> str:
    """004's note, with a sentence on each domain that stands out; empty while there are too few decisions."""
    known = reviewed(decisions)
    whole = measure(known)
    if whole is None or whole.number < ENOUGH:
        return ""
    tendency = whole.tendency[0].upper() + whole.tendency[1:]
    lines = [f"Recent accuracy: {whole.accuracy:.0%}. Brier: {whole.brier:.3f}. {tendency} — {whole.advice}."]
    parts = by_domain(known)
    for domain in domains:
        part = parts.get(domain)
        if part is not None and part.number >= ENOUGH and part.tendency != whole.tendency:
            lines.append(f"On {domain}: {part.tendency} — {part.advice}.")
    return " ".join(lines)
