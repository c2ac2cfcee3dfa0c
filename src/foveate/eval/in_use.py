"""Receipts -> how the variants of a profile do in real use, beside the sessions without one.

Comes in: receipts with the notes on them; each names the variant of its session. Goes out: figures by variant, and for each
whether it differs from `control`. Chance gave variants to sessions, so sessions are the sample: a figure is the mean over
sessions, and the test shuffles which session had which variant. A session that was asked with several variants says nothing
on any of them and is left out. Pure.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import fsum
from typing import Any

from foveate.eval.statistics import shuffled
from foveate.pipeline.profiles import CONTROL
from foveate.receipts.feedback import MARKS
from foveate.receipts.receipt import Receipt, recalled

DIGITS = 6


@dataclass(frozen=True, slots=True)
class Measured:
    """A mean over the sessions that have the figure; `p` is that of the difference from `control`."""

    mean: float
    sessions: int
    p: float | None = None


@dataclass(frozen=True, slots=True)
class Variant:
    """How one variant does."""

    name: str
    contexts: int
    sessions: int
    figures: Mapping[str, Measured]
    marks: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InUse:
    """All variants, `control` first; and how many sessions were left out, as they had several."""

    variants: tuple[Variant, ...]
    mixed: int = 0


def _tokens(session: Sequence[Receipt]) -> float | None:
    """Tokens of a context."""
    return fsum(receipt.document["budget"]["used"] for receipt in session) / len(session)


def _precision(session: Sequence[Receipt]) -> float | None:
    """The share of what was shown that an answer used, or a person called useful; None where nobody said."""
    shown = used = 0
    for receipt in session:
        notes = receipt.document.get("notes", {})
        if "used" in notes or "marks" in notes:
            found = set(recalled(receipt))
            useful = {id for id, mark in notes.get("marks", {}).items() if mark == "useful"}
            shown += len(found)
            used += len(found & (useful | set(notes.get("used", ()))))
    return used / shown if shown else None


def _refresh_rate(session: Sequence[Receipt]) -> float | None:
    """Contexts that had to be computed anew, for each turn of the conversation."""
    notes = [receipt.document.get("notes", {}) for receipt in session]
    turns = sum(note.get("turns", 0) for note in notes)
    return sum("refresh" in note for note in notes) / turns if turns else None


MEASURES: Mapping[str, Callable[[Sequence[Receipt]], float | None]] = {
    "tokens": _tokens,
    "precision": _precision,
    "refresh_rate": _refresh_rate,
}


def in_use(receipts: Iterable[Receipt]) -> InUse:
    """Every variant that some session had, with its figures."""
    sessions: defaultdict[str, defaultdict[str, list[Receipt]]] = defaultdict(lambda: defaultdict(list))
    for receipt in receipts:
        asked = receipt.document["request"]
        if asked.get("variant") and asked["scope"]["session"] is not None:
            sessions[asked["scope"]["session"]][asked["variant"]].append(receipt)
    groups: defaultdict[str, list[list[Receipt]]] = defaultdict(list)
    for by_variant in sessions.values():
        if len(by_variant) == 1:
            ((name, of_session),) = by_variant.items()
            groups[name].append(of_session)
    names = sorted(groups, key=lambda name: (name != CONTROL, name))
    values = {name: _values(groups[name]) for name in names}
    found = tuple(_variant(name, groups[name], values[name], values.get(CONTROL, {})) for name in names)
    return InUse(found, sum(len(by_variant) > 1 for by_variant in sessions.values()))


def _values(group: Sequence[Sequence[Receipt]]) -> dict[str, list[float]]:
    """Each measure's values, a session each."""
    found = {name: [measure(session) for session in group] for name, measure in MEASURES.items()}
    return {name: [value for value in values if value is not None] for name, values in found.items()}


def _variant(
    name: str,
    group: Sequence[Sequence[Receipt]],
    values: Mapping[str, Sequence[float]],
    control: Mapping[str, Sequence[float]],
) -> Variant:
    marks = Counter(
        mark
        for session in group
        for receipt in session
        for mark in receipt.document.get("notes", {}).get("marks", {}).values()
    )
    figures = {
        measure: Measured(
            fsum(mine) / len(mine),
            len(mine),
            shuffled(control[measure], mine) if name != CONTROL and control.get(measure) else None,
        )
        for measure, mine in values.items()
        if mine
    }
    return Variant(name, sum(map(len, group)), len(group), figures, {mark: marks[mark] for mark in MARKS})


def as_json(found: InUse) -> dict[str, Any]:
    """The comparison as a document."""
    return {
        "variants": [
            {
                **asdict(variant),
                "figures": {
                    name: {
                        "mean": round(one.mean, DIGITS),
                        "sessions": one.sessions,
                        "p": None if one.p is None else round(one.p, DIGITS),
                    }
                    for name, one in variant.figures.items()
                },
            }
            for variant in found.variants
        ],
        "mixed": found.mixed,
    }
