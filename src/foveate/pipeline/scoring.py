"""Score candidates: the weighted sum of named features between 0 and 1. Pure.

The boosts of spec 004, up to 1.2 for an outcome and 1.5 for usage, are scaled to 0..1, and the weights of its profile make
up for it. Recency is one weighted feature and not a factor: as a factor it would rank old, valid records below new,
irrelevant ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import fsum, log10

from foveate.records.lifecycle import DEFAULT_THRESHOLDS, STAGE_SCORES, Thresholds, stage
from foveate.types import TRUST, Candidate, Profile, Record, Signals, Slot

HOUR_MS = 3_600_000

OUTCOME_BOOST = {"success": 1.2, "partial": 1.0, None: 1.0, "pending": 0.9, "failure": 0.8}
"""Boosts of spec 004. A record without an outcome is neither proven nor disproven."""
MAX_OUTCOME_BOOST = 1.2
MAX_USAGE_BOOST = 1.5
"""Limits of spec 004, which are scaled to 1."""
CONTAINED_WORD_BOOST = 0.1
"""Boost of spec 003 for each word of the question that a text contains."""

TRACKED_KINDS = ("procedure", "pattern")
"""Kinds that are used repeatedly, so that they have a success rate."""
PRIOR_WINS, PRIOR_USES = 1, 2
"""Prior of the success rate: an unused record has 0.5, and 1 of 1 (0.67) ranks below 40 of 45 (0.87)."""


def score(
    candidates: Sequence[Candidate],
    profile: Profile,
    signals: Signals,
    now: int,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
) -> list[Candidate]:
    """Return every candidate with its features and their weighted sum."""
    slots = {slot.name: slot for slot in profile.slots}
    named = frozenset(name.casefold() for name in signals.entities.values())
    keywords = frozenset(signals.keywords)
    scored = []
    for candidate in candidates:
        record = candidate.record
        found = {"relevance": 0.0, **features(record, slots[candidate.slot], profile.half_life_hours, now)}
        found |= track_record(record, signals, now, thresholds)
        if named:
            found["entity"] = _entity_feature(record, named)
        # These cost more than the others, so they are computed only if the profile weighs them.
        for name, feature in _WORD_FEATURES.items():
            if keywords and profile.weights.get(name):
                found[name] = feature(record, keywords)
        found |= candidate.features
        rounded = {name: round(value, 6) for name, value in found.items()}
        scored.append(replace(candidate, features=rounded, score=weigh(found, profile.weights)))
    return scored


def weigh(features: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Return the weighted sum of features, the same on every machine: since Python 3.12 `sum` of floats is more precise."""
    return round(fsum(weight * features.get(name, 0.0) for name, weight in weights.items()), 6)


def features(record: Record, slot: Slot, half_life: float, now: int) -> dict[str, float]:
    """Return the features of a record that depend only on the record, its slot and the time."""
    age = max(0, now - record.created) / HOUR_MS
    return {
        "recency": 2.0 ** (-age / half_life),
        "salience": record.salience,
        "type": slot.priority,
        "outcome": OUTCOME_BOOST[record.outcome] / MAX_OUTCOME_BOOST,
        "usage": min(1.0 + log10(record.uses) * 0.1 if record.uses else 1.0, MAX_USAGE_BOOST) / MAX_USAGE_BOOST,
        "confidence": record.confidence,
        "trust": TRUST.index(record.trust) / (len(TRUST) - 1),
    }


def track_record(
    record: Record, signals: Signals, now: int, thresholds: Thresholds = DEFAULT_THRESHOLDS
) -> dict[str, float]:
    """Return the features that come from the use of a fact, procedure or pattern.

    `stage` ranks core facts and effective procedures higher (spec 004), `success` is the success rate, and `applies` is the
    share of the record's conditions that the question meets.
    """
    if record.kind not in ("fact", *TRACKED_KINDS):
        return {}
    rank = STAGE_SCORES.get(stage(record, now, thresholds))
    found = {} if rank is None else {"stage": rank}
    if record.kind in TRACKED_KINDS:
        found["success"] = (record.wins + PRIOR_WINS) / (record.uses + PRIOR_USES)
        if met := met_conditions(record, signals):
            found["applies"] = sum(met) / len(met)
    return found


def met_conditions(record: Record, signals: Signals) -> list[bool]:
    """Return whether the question meets each condition of a record: its intents and its types of entities."""
    found = []
    if intents := record.data.get("intents"):
        found.append(signals.intent in intents)
    if types := record.data.get("entity_types"):
        found.append(not set(signals.entity_types).isdisjoint(str(type_).casefold() for type_ in types))
    return found


def _entity_feature(record: Record, named: frozenset[str]) -> float:
    """Return 1 if the record is an entity that the question names, or is about one."""
    about = (*record.entities, record.subject or "", str(record.data.get("name", "")))
    return 1.0 if any(name.casefold() in named for name in about) else 0.0


def _keyword_feature(record: Record, keywords: frozenset[str]) -> float:
    """Return the share of the question's words that are tags of the record."""
    return len(keywords & {tag.lower() for tag in record.tags}) / len(keywords)


def _contained_feature(record: Record, keywords: frozenset[str]) -> float:
    """Return 0.1 for each word of the question that the text contains in any case, at most 1 (spec 003)."""
    text = record.text.lower()
    return min(1.0, sum(word in text for word in keywords) * CONTAINED_WORD_BOOST)


_WORD_FEATURES = {"keyword": _keyword_feature, "contained": _contained_feature}
