"""Profile and demand -> Budget: what each slot may spend. Pure arithmetic on token counts.

`keep` slots come first and get what they need: their own room, stepping down to micro lines, then other slots' room.
Fixed slots get their own room. What these leave unused joins the room that the others share: each first gets enough to
show its best item, then its share, then what is left flows on to those that can use it. Who is first in line depends on
the profile and the candidates, never on the total: that way a larger total never gives any slot less, so no slot loses
its best item.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import ceil

from foveate.errors import BudgetError
from foveate.types import Budget, Profile, Slot, SlotBudget


@dataclass(frozen=True, slots=True)
class Demand:
    """Tokens that a slot would take, heading included: every item as a micro line, at its level, at its deepest.

    `first` is for its best item alone, as a micro line, and `best` that item's score.
    """

    micro: int = 0
    start: int = 0
    deep: int = 0
    first: int = 0
    best: float = 0.0


def allocate(profile: Profile, demands: Mapping[str, Demand], *, framing: int = 0, margin: int = 0) -> Budget:
    """Grants for every slot, within the total less reserve, message framing and margin."""
    reserve = scaled_reserve(profile)
    room = max(0.0, profile.total - _exact_reserve(profile) - framing - margin)
    own = own_room(profile, room)
    least = keep_least(profile, demands)
    if least > _whole(room):
        raise too_small(profile, demands, least + framing + margin)
    granted = _keep_first(profile, demands, own, room)
    rest = [slot for slot in profile.slots if not slot.keep]
    firm = {s.name: min(own[s.name], demands[s.name].deep) for s in rest if s.stable or s.tokens is not None}
    granted |= _shrunk(firm, max(0.0, room - sum(granted.values())))
    granted |= {slot.name: 0.0 for slot in rest if slot.name not in granted}
    _flow(profile, demands, granted, room)
    slots = tuple(
        SlotBudget(name=slot.name, base=_whole(own[slot.name]), granted=_whole(granted[slot.name])) for slot in profile.slots
    )
    return Budget(total=profile.total, reserve=reserve, framing=framing, slots=slots)


def scaled_reserve(profile: Profile) -> int:
    """The reserve at this total: a profile is written for one, and shrinks below it in proportion."""
    return ceil(_exact_reserve(profile) - 1e-6)


def _exact_reserve(profile: Profile) -> float:
    """Before rounding: room is what it leaves, so that every slot's part grows evenly with the total."""
    return profile.reserve * min(profile.total, profile.written_for) / profile.written_for


def keep_least(profile: Profile, demands: Mapping[str, Demand]) -> int:
    """Tokens without which what must be kept cannot be shown at all."""
    return sum(demands[slot.name].micro for slot in profile.slots if slot.keep)


def too_small(profile: Profile, demands: Mapping[str, Demand], needs: int) -> BudgetError:
    """The error for a total that cannot hold what must be kept; `needs` counts framing too."""
    total = profile.total
    while total - scaled_reserve(replace(profile, total=total)) < needs:
        total += max(1, needs - (total - scaled_reserve(replace(profile, total=total))))
    names = ", ".join(slot.name for slot in profile.slots if slot.keep and demands[slot.name].micro)
    reserve = scaled_reserve(profile)
    return BudgetError(
        f"What must be kept ({names}) needs {needs} tokens and there is room for {profile.total - reserve}: the budget of "
        f"{profile.total} is {total - profile.total} too small. Raise it, or retire or shorten what is kept.",
        short=total - profile.total,
    )


def own_room(profile: Profile, room: float) -> dict[str, float]:
    """Each slot's own room: its tokens, or its share of what the fixed slots leave."""
    shrink = min(1.0, profile.total / profile.written_for)
    fixed = {
        slot.name: float(slot.tokens) if slot.keep else slot.tokens * shrink
        for slot in profile.slots
        if slot.tokens is not None
    }
    flexible = max(0.0, room - sum(fixed.values())) * profile.flexible_share
    shares = sum(slot.share or 0.0 for slot in profile.slots if slot.tokens is None)
    return {
        slot.name: fixed[slot.name] if slot.tokens is not None else flexible * (slot.share or 0.0) / (shares or 1.0)
        for slot in profile.slots
    }


def _keep_first(profile: Profile, demands: Mapping[str, Demand], own: Mapping[str, float], room: float) -> dict[str, float]:
    kept: dict[str, float] = {}
    for slot in profile.slots:
        if slot.keep:
            demand = demands[slot.name]
            kept[slot.name] = min(float(demand.start), max(own[slot.name], float(demand.micro)))
    # Not all at their level: volatile ones give back first, each in proportion to what it has above its micro lines, so
    # that the text of stable ones depends on stable ones alone for as long as there is any choice.
    for stable in (False, True):
        names = [slot.name for slot in profile.slots if slot.keep and slot.stable is stable]
        above = sum(kept[name] - demands[name].micro for name in names)
        back = min(above, sum(kept.values()) - room)
        if back > 0:
            for name in names:
                kept[name] -= (kept[name] - demands[name].micro) * back / above
    return kept


def _whole(tokens: float) -> int:
    """Rounded down, but not below a whole number that arithmetic missed by a hair."""
    return int(tokens + 1e-6)


def _shrunk(wanted: Mapping[str, float], room: float) -> dict[str, float]:
    total = sum(wanted.values())
    return dict(wanted) if total <= room else {name: want * room / total for name, want in wanted.items()}


def _flow(profile: Profile, demands: Mapping[str, Demand], granted: dict[str, float], room: float) -> None:
    """Hand out what is left: the best item of each slot, then shares, then every item at its level, then deeper ones."""
    left = max(0.0, room - sum(granted.values())) * profile.flexible_share
    open_slots = [slot for slot in profile.slots if slot.tokens is None and not (slot.keep or slot.stable)]
    shares = sum(slot.share or 0.0 for slot in open_slots if demands[slot.name].deep)
    fair = {slot.name: left * (slot.share or 0.0) / (shares or 1.0) for slot in open_slots}
    for slot, target in _targets(profile, demands, fair):
        goal = min(target, float(demands[slot.name].deep))
        if goal > granted[slot.name] and left > 0:
            reached = min(goal, granted[slot.name] + left)
            left -= reached - granted[slot.name]
            granted[slot.name] = reached


def _targets(profile: Profile, demands: Mapping[str, Demand], fair: Mapping[str, float]) -> Iterator[tuple[Slot, float]]:
    """Whom to fill up to how much, in order. Stable slots are not in it: their text must not depend on others."""
    order = [slot for slot in flow_order(profile, demands) if not slot.stable]
    yield from ((slot, demands[slot.name].first) for slot in order if slot.name in fair)
    yield from ((slot, fair[slot.name]) for slot in order if slot.name in fair)
    yield from ((slot, demands[slot.name].start) for slot in order)
    yield from ((slot, demands[slot.name].deep) for slot in order)


def flow_order(profile: Profile, demands: Mapping[str, Demand]) -> list[Slot]:
    """Who is offered room first: the more important slot, then the one with the better best item, then the earlier one."""
    return sorted(profile.slots, key=lambda slot: (-slot.priority, -demands[slot.name].best, slot.order, slot.name))
