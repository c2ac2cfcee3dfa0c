"""What a record has earned: features that come from its use, not from its words. Pure.

`success` is the success rate of a procedure or pattern with a prior of one success in two uses: (wins + 1) / (uses + 2).
It is one half where nothing is known, and 1 of 1 (0.67) does not beat 40 of 45 (0.87). `stage` ranks core facts and
effective procedures higher (004). `applies` is the share of its own conditions (intents, types of entities) that the
question meets; a record that states none has no such feature.
"""

from __future__ import annotations

from foveate.pipeline.sources.procedures import conditions
from foveate.records.lifecycle import DEFAULT_THRESHOLDS, STAGE_SCORES, Thresholds, stage
from foveate.types import Record, Signals

WAYS = ("procedure", "pattern")
"""Kinds that are ways of doing things: used again and again, each time well or badly."""

PRIOR_WINS, PRIOR_USES = 1, 2


def earned(record: Record, signals: Signals, now: int, thresholds: Thresholds = DEFAULT_THRESHOLDS) -> dict[str, float]:
    """The features of a record that has a track; few records have any."""
    if record.kind not in ("fact", *WAYS):
        return {}
    rank = STAGE_SCORES.get(stage(record, now, thresholds))
    found = {} if rank is None else {"stage": rank}
    if record.kind in WAYS:
        found["success"] = (record.wins + PRIOR_WINS) / (record.uses + PRIOR_USES)
        if met := conditions(record, signals):
            found["applies"] = sum(met) / len(met)
    return found
