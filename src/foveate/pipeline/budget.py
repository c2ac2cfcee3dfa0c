"""Allocate the tokens of a budget to the slots of a profile. Pure arithmetic.

1. `keep` slots get their base size. If all of them together do not fit, they step down to their shortest items. They take
   tokens of other slots only if even those do not fit into their base size. Rules have one length: their whole text.
2. Slots with a fixed size get at most that. 3. Slots with a share divide the rest: each gets enough for its best item, then
   its share. The rest goes to the slots that can use it.

The order in which slots get tokens depends on the profile and on the candidates, never on the total. So a larger total gives
no slot less, and no slot loses its best item.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import ceil

from foveate.errors import BudgetError
from foveate.types import Budget, Profile, Slot, SlotBudget

ROUNDING_ERROR = 1e-6
"""Sums of shares can miss a whole number of tokens by this much."""


@dataclass(frozen=True, slots=True)
class Demand:
    """The tokens that a slot could use, heading included."""

    minimum: int = 0
    """Every item at its shortest."""
    at_level: int = 0
    """Every item at the level of the slot."""
    maximum: int = 0
    """Every item at its longest."""
    best_item: int = 0
    """The best item alone, at its shortest."""
    best_score: float = 0.0
    """Score of the best item."""


def allocate(profile: Profile, demands: Mapping[str, Demand], *, framing: int = 0, margin: int = 0) -> Budget:
    """Divide the total between the slots, less the reserve, the framing of messages and a margin."""
    available = max(0.0, profile.total - _unrounded_reserve(profile) - framing - margin)
    minimum = min_keep_tokens(profile, demands)
    if minimum > _floor(available):
        raise budget_error(profile, demands, minimum + framing + margin)
    base = base_sizes(profile, available)
    granted = _allocate_keep_slots(profile, demands, base, available)
    others = [slot for slot in profile.slots if not slot.keep]
    fixed = {s.name: min(base[s.name], demands[s.name].maximum) for s in others if s.stable or s.tokens is not None}
    granted |= _scale_down(fixed, max(0.0, available - sum(granted.values())))
    granted |= {slot.name: 0.0 for slot in others if slot.name not in granted}
    _redistribute(profile, demands, granted, available)
    slots = (
        SlotBudget(name=slot.name, base=_floor(base[slot.name]), granted=_floor(granted[slot.name]))
        for slot in profile.slots
    )
    return Budget(total=profile.total, reserve=scaled_reserve(profile), framing=framing, slots=tuple(slots))


def scaled_reserve(profile: Profile) -> int:
    """Return the tokens that stay free for the answer. They shrink with a total below that of the profile."""
    return ceil(_unrounded_reserve(profile) - ROUNDING_ERROR)


def _unrounded_reserve(profile: Profile) -> float:
    # Allocation uses it without rounding, so that the sizes of all slots grow evenly with the total.
    return profile.reserve * min(profile.total, profile.written_for) / profile.written_for


def min_keep_tokens(profile: Profile, demands: Mapping[str, Demand]) -> int:
    """Return the tokens of all `keep` slots with every item at its shortest."""
    return sum(demands[slot.name].minimum for slot in profile.slots if slot.keep)


def budget_error(profile: Profile, demands: Mapping[str, Demand], needed: int) -> BudgetError:
    """Return the error for a total that cannot hold the `keep` slots. `needed` includes the framing of messages."""
    total = profile.total
    while (missing := needed - (total - scaled_reserve(replace(profile, total=total)))) > 0:
        total += missing  # the reserve may grow with the total
    names = ", ".join(slot.name for slot in profile.slots if slot.keep and demands[slot.name].minimum)
    available = profile.total - scaled_reserve(profile)
    return BudgetError(
        f"The slots that must be kept ({names}) need {needed} tokens, and a budget of {profile.total} leaves {available}. "
        f"Raise the budget by {total - profile.total}, or retire or shorten records of these slots.",
        short=total - profile.total,
    )


def base_sizes(profile: Profile, available: float) -> dict[str, float]:
    """Return the size of each slot by the profile alone: its tokens, or its share of what the fixed slots leave."""
    shrink = min(1.0, profile.total / profile.written_for)
    fixed = {
        slot.name: float(slot.tokens) if slot.keep else slot.tokens * shrink
        for slot in profile.slots
        if slot.tokens is not None
    }
    shared = max(0.0, available - sum(fixed.values())) * profile.flexible_share
    shares = sum(slot.share or 0.0 for slot in profile.slots if slot.tokens is None)
    return {slot.name: fixed.get(slot.name, shared * (slot.share or 0.0) / (shares or 1.0)) for slot in profile.slots}


def _allocate_keep_slots(
    profile: Profile, demands: Mapping[str, Demand], base: Mapping[str, float], available: float
) -> dict[str, float]:
    granted: dict[str, float] = {}
    for slot in profile.slots:
        if slot.keep:
            demand = demands[slot.name]
            granted[slot.name] = min(float(demand.at_level), max(base[slot.name], float(demand.minimum)))
    # If they do not fit together, the volatile ones step down first, in proportion to what they have above their minimum. So
    # the text of a stable slot depends on stable slots alone, as long as possible.
    for stable in (False, True):
        names = [slot.name for slot in profile.slots if slot.keep and slot.stable is stable]
        above = sum(granted[name] - demands[name].minimum for name in names)
        excess = min(above, sum(granted.values()) - available)
        if excess > 0:
            for name in names:
                granted[name] -= (granted[name] - demands[name].minimum) * excess / above
    return granted


def _scale_down(sizes: Mapping[str, float], available: float) -> dict[str, float]:
    total = sum(sizes.values())
    return dict(sizes) if total <= available else {name: size * available / total for name, size in sizes.items()}


def _floor(tokens: float) -> int:
    return int(tokens + ROUNDING_ERROR)


def _redistribute(profile: Profile, demands: Mapping[str, Demand], granted: dict[str, float], available: float) -> None:
    """Grant the tokens that are left, goal by goal."""
    left = max(0.0, available - sum(granted.values())) * profile.flexible_share
    for name, goal in _goals(profile, demands, left):
        missing = min(goal, float(demands[name].maximum)) - granted[name]
        if missing > 0 and left > 0:
            added = min(missing, left)
            granted[name] += added
            left -= added


def _goals(profile: Profile, demands: Mapping[str, Demand], left: float) -> Iterator[tuple[str, float]]:
    """Yield the sizes to which slots grow: first the best item of each, then its share, then all items, then longer ones.

    Stable slots do not grow, because their text must not depend on other slots.
    """
    growing = [slot for slot in redistribution_order(profile, demands) if not slot.stable]
    shared = [slot for slot in growing if slot.tokens is None and not slot.keep]
    shares = sum(slot.share or 0.0 for slot in shared if demands[slot.name].maximum)
    yield from ((slot.name, demands[slot.name].best_item) for slot in shared)
    yield from ((slot.name, left * (slot.share or 0.0) / (shares or 1.0)) for slot in shared)
    yield from ((slot.name, demands[slot.name].at_level) for slot in growing)
    yield from ((slot.name, demands[slot.name].maximum) for slot in growing)


def redistribution_order(profile: Profile, demands: Mapping[str, Demand]) -> list[Slot]:
    """Return the slots in the order in which they get unused tokens: by priority, then by the score of their best item."""
    return sorted(profile.slots, key=lambda slot: (-slot.priority, -demands[slot.name].best_score, slot.order, slot.name))
