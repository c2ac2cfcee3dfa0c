"""Profile and demand -> Budget: what each slot may spend. Pure arithmetic on token counts.

`keep` slots come first and get what they need: their own room, stepping down to micro lines, then other slots' room.
The rest get their own room, and what a slot does not need flows on to those that do, most important first. The order
of flow is fixed, not proportional: that way a larger total never gives any slot less, so no slot loses its best item.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from foveate.errors import BudgetError
from foveate.types import Budget, Grant, Profile, Slot


@dataclass(frozen=True, slots=True)
class Demand:
    """Tokens that a slot would take, heading included: every item as a micro line, at its level, at its deepest."""

    micro: int = 0
    start: int = 0
    deep: int = 0


def allocate(profile: Profile, demands: Mapping[str, Demand], *, framing: int = 0, margin: int = 0) -> Budget:
    """Grants for every slot, within the total less reserve, message framing and margin."""
    reserve = scaled_reserve(profile)
    room = profile.total - reserve - framing - margin
    own = own_room(profile, room)
    granted = _keep_first(profile, demands, own, room)
    left = room - sum(granted.values())
    rest = [slot for slot in profile.slots if not slot.keep]
    granted |= _within(left, rest, {s.name: min(own[s.name], demands[s.name].deep) for s in rest})
    _flow(profile, demands, granted, room)
    grants = tuple(Grant(slot=slot.name, own=int(own[slot.name]), granted=int(granted[slot.name])) for slot in profile.slots)
    return Budget(total=profile.total, reserve=reserve, framing=framing, grants=grants)


def scaled_reserve(profile: Profile) -> int:
    """The reserve at this total: a profile is written for one, and shrinks below it in proportion."""
    return (
        profile.reserve if profile.total >= profile.written_for else profile.reserve * profile.total // profile.written_for
    )


def own_room(profile: Profile, room: int) -> dict[str, float]:
    """Each slot's own room: its tokens, or its share of what the fixed slots leave."""
    shrink = min(1.0, profile.total / profile.written_for)
    fixed = {
        slot.name: float(slot.tokens) if slot.keep else slot.tokens * shrink
        for slot in profile.slots
        if slot.tokens is not None
    }
    flexible = max(0.0, room - sum(fixed.values()))
    shares = sum(slot.share or 0.0 for slot in profile.slots if slot.tokens is None)
    return {
        slot.name: fixed[slot.name] if slot.tokens is not None else flexible * (slot.share or 0.0) / (shares or 1.0)
        for slot in profile.slots
    }


def _keep_first(profile: Profile, demands: Mapping[str, Demand], own: Mapping[str, float], room: int) -> dict[str, float]:
    kept: dict[str, float] = {}
    for slot in profile.slots:
        if slot.keep:
            demand = demands[slot.name]
            kept[slot.name] = min(float(demand.start), max(own[slot.name], float(demand.micro)))
    least = sum(demands[name].micro for name in kept)
    if least > room:
        names = ", ".join(name for name in kept if demands[name].micro)
        raise BudgetError(
            f"What must be kept ({names}) needs {least} tokens and there is room for {max(room, 0)}: "
            f"{least - room} too few. Raise the budget, or retire or shorten what is kept.",
            short=least - room,
        )
    if sum(kept.values()) > room:  # not all at their level: each gives back above its micro lines, in proportion
        above = sum(kept.values()) - least
        kept = {n: demands[n].micro + (k - demands[n].micro) * (room - least) / above for n, k in kept.items()}
    return kept


def _within(left: float, slots: Sequence[Slot], wanted: Mapping[str, float]) -> dict[str, float]:
    """What the other slots get of the room that `keep` slots leave: fixed ones before shares."""
    fixed = {slot.name: wanted[slot.name] for slot in slots if slot.tokens is not None}
    shared = {slot.name: wanted[slot.name] for slot in slots if slot.tokens is None}
    return _shrunk(fixed, left) | _shrunk(shared, left - min(left, sum(fixed.values())))


def _shrunk(wanted: Mapping[str, float], room: float) -> dict[str, float]:
    total = sum(wanted.values())
    return dict(wanted) if total <= room else {name: want * room / total for name, want in wanted.items()}


def _flow(profile: Profile, demands: Mapping[str, Demand], granted: dict[str, float], room: int) -> None:
    """Hand out what is left: first so that every slot can show its items at their level, then to deepen them."""
    left = room - sum(granted.values())
    for target in ("start", "deep"):
        for slot in sorted(profile.slots, key=flow_order):
            if slot.stable:
                continue  # its text must not depend on what others leave
            more = min(left, max(0.0, getattr(demands[slot.name], target) - granted[slot.name]))
            granted[slot.name] += more
            left -= more


def flow_order(slot: Slot) -> tuple[float, int, str]:
    """Who is offered unused room first: the more important slot, then the earlier one."""
    return (-slot.priority, slot.order, slot.name)
