"""Calibration: a note on how well past confidence predicted outcomes.

A success counts 1, a partial success 0.5, a failure 0. Decisions with a confidence of 1 are ignored, because that is the
default of decisions without a stated one. The note is not stored; the receipt has its text for a replay.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from foveate.pipeline.sources.base import SlotRequest, Source, SourceContext
from foveate.types import NO_FILTERS, Candidate, Record, Scope

MIN_REVIEWED = 10
"""Reviewed decisions below which a rate is chance."""

MAX_REVIEWED = 50
"""Decisions that count, the newest: people change."""

MAX_DECISIONS = 500
"""Newest decisions among which reviewed ones are searched."""

SLIGHT_GAP, CLEAR_GAP = 0.05, 0.15
"""Distances of confidence from accuracy: below the first it is well calibrated, from the second on it is clearly not."""

_OUTCOME_VALUE = {"success": 1.0, "partial": 0.5, "failure": 0.0}


class CalibrationNote(Source):
    """The note on calibration; empty while too few decisions were reviewed."""

    name = "calibration"
    unrelated = "the slot shows only the note on calibration"

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        text = note(context.reader.recent(("decision",), MAX_DECISIONS, NO_FILTERS), context.signals.domains)
        if text:
            record = note_record(text, context.request.scope, context.request.now)
            yield from (self.candidate(request, record, relevance=1.0) for request in requests)


def note_record(text: str, scope: Scope, now: int) -> Record:
    """Return the note as a record that no store has. Its id follows from its words."""
    id = f"calibration_{blake2b(text.encode(), digest_size=8).hexdigest()}"
    return Record(id=id, kind="note", scope=scope, text=text, summary=text, micro=text, created=now, updated=now)


@dataclass(frozen=True, slots=True)
class Calibration:
    """Calibration of some decisions. The best Brier score is 0; `gap` is above 0 for overconfidence."""

    number: int
    accuracy: float
    brier: float
    gap: float

    @property
    def tendency(self) -> str:
        if abs(self.gap) < SLIGHT_GAP:
            return "well calibrated"
        how = "overconfident" if self.gap > 0 else "underconfident"
        return how if abs(self.gap) >= CLEAR_GAP else f"slightly {how}"

    @property
    def advice(self) -> str:
        if abs(self.gap) < SLIGHT_GAP:
            return "go on as you do"
        return "look for what could go wrong" if self.gap > 0 else "trust your analysis"


def reviewed_decisions(decisions: Iterable[Record]) -> list[Record]:
    """Return the newest decisions with a stated confidence and an outcome."""
    known = [record for record in decisions if record.outcome in _OUTCOME_VALUE and record.confidence < 1.0]
    return sorted(known, key=lambda record: (record.created, record.id), reverse=True)[:MAX_REVIEWED]


def measure(decisions: Sequence[Record]) -> Calibration | None:
    """Return the calibration of reviewed decisions, or None without any."""
    if not decisions:
        return None
    pairs = [(record.confidence, _OUTCOME_VALUE[str(record.outcome)]) for record in decisions]
    number = len(pairs)
    accuracy = sum(worth for _, worth in pairs) / number
    brier = sum((sure - worth) ** 2 for sure, worth in pairs) / number
    gap = sum(sure for sure, _ in pairs) / number - accuracy
    return Calibration(number, round(accuracy, 6), round(brier, 6), round(gap, 6))


def by_domain(decisions: Sequence[Record]) -> dict[str, Calibration]:
    """Return the calibration for each tag."""
    groups: defaultdict[str, list[Record]] = defaultdict(list)
    for record in decisions:
        for tag in record.tags:
            groups[tag].append(record)
    return {tag: found for tag in sorted(groups) if (found := measure(groups[tag]))}


def note(decisions: Iterable[Record], domains: Sequence[str] = ()) -> str:
    """Return 004's note, with a sentence on each domain that differs; empty while there are too few decisions."""
    known = reviewed_decisions(decisions)
    whole = measure(known)
    if whole is None or whole.number < MIN_REVIEWED:
        return ""
    tendency = whole.tendency[0].upper() + whole.tendency[1:]
    lines = [f"Recent accuracy: {whole.accuracy:.0%}. Brier: {whole.brier:.3f}. {tendency} — {whole.advice}."]
    parts = by_domain(known)
    for domain in domains:
        part = parts.get(domain)
        if part is not None and part.number >= MIN_REVIEWED and part.tendency != whole.tendency:
            lines.append(f"On {domain}: {part.tendency} — {part.advice}.")
    return " ".join(lines)
