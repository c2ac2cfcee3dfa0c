"""Candidates -> scored candidates: named features in 0..1, times the profile's weights. Pure.

004's boosts of up to 1.2 (outcome) and 1.5 (usage) are scaled to 0..1 here; its profile carries the rescaled weights, so
that its composite keeps its value. Recency is one weighted feature and never a factor: decay would bury old, valid
records under new, irrelevant ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import log10

from foveate.pipeline.track_record import earned
from foveate.records.lifecycle import DEFAULT_THRESHOLDS, Thresholds
from foveate.text import analysis
from foveate.types import TRUST, Candidate, Profile, Record, Signals, Slot

HOUR = 3_600_000

OUTCOME_BOOST = {"success": 1.2, "partial": 1.0, None: 1.0, "pending": 0.9, "failure": 0.8}
"""004's boosts; a record without an outcome is neither proven nor disproven."""
MOST_OUTCOME = 1.2
MOST_USAGE = 1.5
"""004's bounds, which become 1."""
NAME = 60
"""Characters within which the name of a speaker ends."""
CONTAINED = 0.1
"""003's boost for a word that the text holds."""


def score(
    candidates: Sequence[Candidate],
    profile: Profile,
    signals: Signals,
    now: int,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
) -> list[Candidate]:
    """Every candidate with its features and their weighted sum."""
    slots = {slot.name: slot for slot in profile.slots}
    named = frozenset(name.casefold() for name in signals.entities.values())
    keywords = frozenset(signals.keywords)
    out = []
    for candidate in candidates:
        known = features(candidate.record, slots[candidate.slot], profile.half_life, now)
        known |= earned(candidate.record, signals, now, thresholds)
        if named:
            known["entity"] = _entity(candidate.record, named)
        if keywords and profile.weights.get("keyword"):
            known["keyword"] = _keyword(candidate.record, keywords)
        if keywords and profile.weights.get("contained"):
            known["contained"] = _contained(candidate.record, keywords)
        if keywords and profile.weights.get("speaker"):
            known["speaker"] = _speaker(candidate.record, keywords)
        every = {"relevance": 0.0, **known, **candidate.features}
        out.append(replace(candidate, features=_rounded(every), score=weigh(every, profile.weights)))
    return out


def weigh(features: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """The weighted sum. Rounded, so that the same features give the same order on every machine."""
    return round(sum(weight * features.get(name, 0.0) for name, weight in weights.items()), 6)


def features(record: Record, slot: Slot, half_life: float, now: int) -> dict[str, float]:
    """What a record says for itself, whatever the question."""
    age = max(0, now - record.created) / HOUR
    return {
        "recency": 2.0 ** (-age / half_life),
        "salience": record.salience,
        "type": slot.priority,
        "outcome": OUTCOME_BOOST[record.outcome] / MOST_OUTCOME,
        "usage": min(1.0 + log10(record.uses) * 0.1 if record.uses else 1.0, MOST_USAGE) / MOST_USAGE,
        "confidence": record.confidence,
        "trust": TRUST.index(record.trust) / (len(TRUST) - 1),
    }


def _entity(record: Record, named: frozenset[str]) -> float:
    """1 where the record is, or is about, an entity that the question names."""
    about = (*record.entities, record.subject or "", str(record.data.get("name", "")))
    return 1.0 if any(name.casefold() in named for name in about) else 0.0


def _keyword(record: Record, keywords: frozenset[str]) -> float:
    """The share of the question's words that its tags hold."""
    return len(keywords & {tag.lower() for tag in record.tags}) / len(keywords)


def _contained(record: Record, keywords: frozenset[str]) -> float:
    """003's boost of 0.1 for each of the question's words that the text holds, whatever its case; 1 from ten words on."""
    text = record.text.lower()
    return min(1.0, sum(word in text for word in keywords) * CONTAINED)


def _speaker(record: Record, keywords: frozenset[str]) -> float:
    """1 for what somebody said whom the question names: a text that begins with `Name:`."""
    name, colon, _ = record.text[:NAME].partition(":")
    words = analysis.words(name) if colon else ()
    return 1.0 if words and keywords.issuperset(words) else 0.0


def _rounded(features: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 6) for name, value in features.items()}
