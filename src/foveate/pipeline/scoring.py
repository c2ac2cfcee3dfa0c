"""Score candidates: named features in 0..1, times the profile's weights. Pure.

004's boosts of up to 1.2 (outcome) and 1.5 (usage) are scaled to 0..1 here; its profile has the rescaled weights, so that
its composite keeps its value. Recency is one weighted feature and never a factor: decay would bury old, valid records under
new, irrelevant ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import log10

from foveate.records.lifecycle import DEFAULT_THRESHOLDS, STAGE_SCORES, Thresholds, stage
from foveate.text import analysis
from foveate.types import TRUST, Candidate, Profile, Record, Signals, Slot

HOUR = 3_600_000

OUTCOME_BOOST = {"success": 1.2, "partial": 1.0, None: 1.0, "pending": 0.9, "failure": 0.8}
"""004's boosts; a record without an outcome is neither proven nor disproven."""
MAX_OUTCOME_BOOST = 1.2
MAX_USAGE_BOOST = 1.5
"""004's bounds, which become 1."""
MAX_NAME_CHARS = 60
"""Characters within which the name of a speaker ends."""
CONTAINED_WORD_BOOST = 0.1
"""003's boost for a word that the text contains."""

TRACKED_KINDS = ("procedure", "pattern")
"""Ways of doing things, which are used again and again, each time well or badly."""
PRIOR_WINS, PRIOR_USES = 1, 2
"""With this prior the success rate is one half if nothing is known, and 1 of 1 (0.67) does not beat 40 of 45 (0.87)."""


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
    out = []
    for candidate in candidates:
        known = features(candidate.record, slots[candidate.slot], profile.half_life_hours, now)
        known |= track_record(candidate.record, signals, now, thresholds)
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
    """Return the weighted sum, rounded, so that the same features give the same order on every machine."""
    return round(sum(weight * features.get(name, 0.0) for name, weight in weights.items()), 6)


def features(record: Record, slot: Slot, half_life: float, now: int) -> dict[str, float]:
    """Return the features of a record that do not depend on the question."""
    age = max(0, now - record.created) / HOUR
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
    """Return the features that come from a record's use and not from its words; few records have any.

    `stage` ranks core facts and effective procedures higher (004), `success` is a success rate, and `applies` the share of a
    record's own conditions that the question meets.
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
    """Return for each condition that a record states (intents, types of entities) whether the question meets it."""
    found = []
    if intents := record.data.get("intents"):
        found.append(signals.intent in intents)
    if types := record.data.get("entity_types"):
        found.append(not set(signals.entity_types).isdisjoint(str(type_).casefold() for type_ in types))
    return found


def _entity(record: Record, named: frozenset[str]) -> float:
    """Return 1 if the record is, or is about, an entity that the question names."""
    about = (*record.entities, record.subject or "", str(record.data.get("name", "")))
    return 1.0 if any(name.casefold() in named for name in about) else 0.0


def _keyword(record: Record, keywords: frozenset[str]) -> float:
    """Return the share of the question's words that are tags of the record."""
    return len(keywords & {tag.lower() for tag in record.tags}) / len(keywords)


def _contained(record: Record, keywords: frozenset[str]) -> float:
    """Return 003's boost of 0.1 for each word of the question that the text contains, in any case; at most 1."""
    text = record.text.lower()
    return min(1.0, sum(word in text for word in keywords) * CONTAINED_WORD_BOOST)


def _speaker(record: Record, keywords: frozenset[str]) -> float:
    """Return 1 if a speaker whom the question names said it: the text begins with `Name:`."""
    name, colon, _ = record.text[:MAX_NAME_CHARS].partition(":")
    words = analysis.words(name) if colon else ()
    return 1.0 if words and keywords.issuperset(words) else 0.0


def _rounded(features: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 6) for name, value in features.items()}
