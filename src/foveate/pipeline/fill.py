"""Scored candidates -> a filled prompt within its ceiling: budget, selection and assembly, run as one pure function.

`engine.context` and a replay both come through here, which is why a replay gives the same bytes. The rendered messages
are counted; where a counter's parts do not add up and the whole comes out too large, everything is fitted again into
less room, as little less as will do, down to what must be kept at its smallest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from foveate.pipeline.assembly import empty_cost, measured, messages, overhead, remarks_on, section
from foveate.pipeline.budget import Demand, allocate, flow_order, keep_least, scaled_reserve, too_small
from foveate.pipeline.selection import Fitted, Sifted, fences, fit, least, most, sift
from foveate.records import fence
from foveate.records.make import measure
from foveate.text import tokens
from foveate.types import Budget, Candidate, Filters, LeftOut, Profile, Section, Slot


@dataclass(frozen=True, slots=True)
class Composed:
    """The filled prompt, its ledger, and what was left out."""

    sections: tuple[Section, ...]
    budget: Budget
    left_out: tuple[LeftOut, ...]


def compose(
    candidates: Sequence[Candidate],
    profile: Profile,
    filters: Filters,
    counter: str,
    measured_by: str,
    now: int | None = None,
    tag: str = fence.NO_TAG,
) -> Composed:
    """Fill the profile's slots. `measured_by`: the counter of the records' own counts; `now`: when they must be valid;
    `tag`: that of the fences around what is quoted."""
    sized = [_sized(candidate, counter, measured_by) for candidate in candidates]
    sifted = sift(sized, profile, filters, now)
    quotes = any(fence.is_quoted(candidate.record) for ranked in sifted.ranked.values() for candidate in ranked)
    framing = _framing(len({slot.role for slot in profile.slots} | ({"user"} if quotes else set())), counter)
    demands = {slot.name: demand(slot, sifted.ranked[slot.name], counter, tag) for slot in profile.slots}
    smallest = framing + keep_least(profile, demands)
    spare = profile.total - scaled_reserve(profile) - smallest
    if spare < 0 and smallest > framing:
        bare = _filled(replace(profile, total=smallest, reserve=0), sifted, demands, counter, framing, 0, tag)
        raise too_small(profile, demands, max(smallest, bare.budget.used))

    def filled(margin: int) -> Composed:
        return _filled(profile, sifted, demands, counter, framing, margin, tag)

    composed = filled(0)
    excess = composed.budget.used - composed.budget.ceiling
    return composed if excess <= 0 else _squeezed(filled, profile, demands, excess, spare)


def _squeezed(
    filled: Callable[[int], Composed], profile: Profile, demands: Mapping[str, Demand], excess: int, spare: int
) -> Composed:
    """The largest filling that holds the ceiling: for counters whose parts do not add up to the whole."""
    composed = filled(spare)
    if composed.budget.used > composed.budget.ceiling:
        raise too_small(profile, demands, composed.budget.used)
    low, high, margin = 0, spare, min(excess, spare - 1)
    while low < margin < high:
        smaller = filled(margin)
        if smaller.budget.used > smaller.budget.ceiling:
            low = margin
        else:
            high, composed = margin, smaller
        margin = (low + high) // 2
    return composed


def _sized(candidate: Candidate, counter: str, measured_by: str) -> Candidate:
    if remarks_on(candidate):
        return replace(candidate, token_counts=measured(candidate, counter))
    if candidate.record.tokens is not None and counter == measured_by:
        return candidate
    return replace(candidate, token_counts=measure(candidate.record, counter))


def _framing(number: int, counter: str) -> int:
    """Tokens that so many messages cost before they say anything."""
    chosen = tokens.counter(counter)
    return chosen.per_request + chosen.per_message * number if number else 0


def _filled(
    profile: Profile, sifted: Sifted, demands: Mapping[str, Demand], counter: str, framing: int, margin: int, tag: str
) -> Composed:
    budget = allocate(profile, demands, framing=framing, margin=margin)
    granted = {slot.name: slot.granted for slot in budget.slots}
    fitted = {slot.name: _fit(slot, sifted, granted[slot.name], counter, tag) for slot in profile.slots}
    _use_up(flow_order(profile, demands), sifted, granted, fitted, counter, tag)
    sections = tuple(section(slot, fitted[slot.name].items, tag) for slot in profile.slots if fitted[slot.name].used)
    sent = messages(sections)
    used = tokens.count_messages(sent, counter)
    slots = tuple(
        replace(slot, granted=granted[slot.name], used=fitted[slot.name].used, items=len(fitted[slot.name].items))
        for slot in budget.slots
    )
    omitted = sifted.omitted + tuple(lost for slot in profile.slots for lost in fitted[slot.name].omitted)
    budget = replace(budget, used=used, framing=_framing(len(sent), counter), slots=slots)
    return Composed(sections, budget, omitted)


def demand(slot: Slot, ranked: Sequence[Candidate], counter: str, tag: str = fence.NO_TAG) -> Demand:
    """What a slot would take."""
    if not ranked:
        note = empty_cost(slot, counter)
        return Demand(0, note, note)
    above = overhead(slot, counter)
    around = fences(ranked, fence.cost(tag, counter))
    all_above = above + sum(around)
    return Demand(
        micro=all_above + sum(least(candidate, slot) for candidate in ranked),
        start=all_above + sum(candidate.tokens[slot.level] for candidate in ranked),
        deep=all_above + sum(most(candidate, slot) for candidate in ranked),
        first=above + around[0] + least(ranked[0], slot),
        best=ranked[0].score,
    )


def _fit(slot: Slot, sifted: Sifted, grant: int, counter: str, tag: str) -> Fitted:
    ranked = sifted.ranked[slot.name]
    if ranked:
        return fit(slot, ranked, grant, overhead(slot, counter), fence.cost(tag, counter))
    note = empty_cost(slot, counter)
    return Fitted((), note if note <= grant else 0)


def _use_up(
    order: Sequence[Slot], sifted: Sifted, granted: dict[str, int], fitted: dict[str, Fitted], counter: str, tag: str
) -> None:
    """Crumbs that no item of a slot could use, offered once more to the slots that already show their best item."""
    left = sum(granted[name] - fitted[name].used for name in fitted)
    taken = 0
    for slot in order:
        best_is_in = bool(fitted[slot.name].items) and fitted[slot.name].items[0].rank == 1
        if slot.stable or not best_is_in:
            continue
        again = _fit(slot, sifted, fitted[slot.name].used + left, counter, tag)
        if again.used > fitted[slot.name].used and len(again.items) >= len(fitted[slot.name].items):
            taken += max(0, again.used - granted[slot.name])
            granted[slot.name] = max(granted[slot.name], again.used)
            left -= again.used - fitted[slot.name].used
            fitted[slot.name] = again
    for slot in reversed(order):  # the ledger: what was taken was somebody's
        given = min(taken, granted[slot.name] - fitted[slot.name].used)
        granted[slot.name] -= given
        taken -= given
