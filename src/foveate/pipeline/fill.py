"""Fill the slots of a profile within its budget: rank, allocate, fit and assemble, as one pure function.

`engine.context` and a replay call the same function, so that a replay gives the same bytes. The rendered messages are
counted as a whole, because with some counters the counts of the parts do not add up. If the whole exceeds the ceiling,
everything is fitted again with a margin: the smallest that suffices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from foveate.pipeline.assembly import (
    build_messages,
    build_section,
    count_line,
    empty_note_tokens,
    heading_tokens,
    line_notes,
    render_line,
)
from foveate.pipeline.budget import Demand, allocate, budget_error, min_keep_tokens, redistribution_order, scaled_reserve
from foveate.pipeline.selection import FittedSlot, Ranking, fit, levels_of, max_tokens, min_tokens, rank, shared_tokens
from foveate.records import fence
from foveate.records.make import measure
from foveate.text import tokens
from foveate.types import Budget, Candidate, Filters, LeftOut, Profile, Section, Slot, SlotBudget


@dataclass(frozen=True, slots=True)
class FilledSlots:
    """The sections that the model reads, the tokens of each slot, and the candidates that were left out."""

    sections: tuple[Section, ...]
    budget: Budget
    left_out: tuple[LeftOut, ...]


def fill_slots(
    candidates: Sequence[Candidate],
    profile: Profile,
    filters: Filters,
    counter: str,
    record_counter: str,
    now: int | None = None,
    tag: str = fence.NO_TAG,
) -> FilledSlots:
    """Fill the slots of a profile with scored candidates.

    `counter` counts the tokens, `record_counter` made the counts that records have. `now` is the time at which records must
    be valid. `tag` is the tag of the fences around quoted text. Raises BudgetError if the `keep` slots do not fit.
    """
    counted = [_with_token_counts(candidate, counter, record_counter) for candidate in candidates]
    ranking = rank(counted, profile, filters, now)
    demands = {slot.name: demand(slot, ranking.by_slot[slot.name], counter, tag) for slot in profile.slots}
    filler = _Filler(profile, ranking, demands, counter, tag, _max_framing(profile, ranking, counter))

    minimum = filler.framing + min_keep_tokens(profile, demands)
    slack = profile.total - scaled_reserve(profile) - minimum
    if slack < 0 and minimum > filler.framing:
        smallest = replace(filler, profile=replace(profile, total=minimum, reserve=0)).fill()
        raise budget_error(profile, demands, max(minimum, smallest.budget.used))
    filled = filler.fill()
    excess = filled.budget.used - filled.budget.ceiling
    return filled if excess <= 0 else _shrink(filler, excess, slack)


@dataclass(frozen=True, slots=True)
class _Filler:
    """Ranked candidates, which can be fitted into the budget of the profile with different margins."""

    profile: Profile
    ranking: Ranking
    demands: dict[str, Demand]
    counter: str
    tag: str
    framing: int

    def fill(self, margin: int = 0) -> FilledSlots:
        """Return the filled slots if `margin` tokens of the budget stay unused."""
        budget = allocate(self.profile, self.demands, framing=self.framing, margin=margin)
        granted = {slot.name: slot.granted for slot in budget.slots}
        fitted = {slot.name: self.fit_slot(slot, granted[slot.name]) for slot in self.profile.slots}
        _spend_leftovers(self, granted, fitted)
        sections = tuple(
            build_section(slot, fitted[slot.name].items, self.tag) for slot in self.profile.slots if fitted[slot.name].used
        )
        messages = build_messages(sections)
        budget = replace(
            budget,
            used=tokens.count_messages(messages, self.counter),
            framing=_framing(len(messages), self.counter),
            slots=tuple(_with_usage(slot, granted[slot.name], fitted[slot.name]) for slot in budget.slots),
        )
        left_out = (candidate for slot in self.profile.slots for candidate in fitted[slot.name].left_out)
        return FilledSlots(sections, budget, (*self.ranking.left_out, *left_out))

    def fit_slot(self, slot: Slot, granted: int) -> FittedSlot:
        """Return the items of a slot within its tokens; without candidates, only the tokens of its note."""
        ranked = self.ranking.by_slot[slot.name]
        if ranked:
            shared, weight = fence.shared_costs(self.tag, self.counter), self.profile.weights.get("relevance", 0.0)
            return fit(slot, ranked, granted, heading_tokens(slot, self.counter), shared, weight)
        note = empty_note_tokens(slot, self.counter)
        return FittedSlot((), note if note <= granted else 0)


def _with_usage(slot: SlotBudget, granted: int, fitted: FittedSlot) -> SlotBudget:
    return replace(slot, granted=granted, used=fitted.used, items=len(fitted.items))


def _shrink(filler: _Filler, excess: int, slack: int) -> FilledSlots:
    """Return the slots filled up to the ceiling: bisect the margin, starting with the tokens in excess."""
    filled = filler.fill(slack)
    if filled.budget.used > filled.budget.ceiling:
        raise budget_error(filler.profile, filler.demands, filled.budget.used)
    low, high, margin = 0, slack, min(excess, slack - 1)
    while low < margin < high:
        larger = filler.fill(margin)
        if larger.budget.used > larger.budget.ceiling:
            low = margin
        else:
            high, filled = margin, larger
        margin = (low + high) // 2
    return filled


def _spend_leftovers(filler: _Filler, granted: dict[str, int], fitted: dict[str, FittedSlot]) -> None:
    """Offer tokens that are too few for another item of their slot to the slots that already show their best item."""
    leftover = sum(granted[name] - fitted[name].used for name in fitted)
    borrowed = 0
    order = redistribution_order(filler.profile, filler.demands)
    for slot in order:
        before = fitted[slot.name]
        if slot.stable or not before.items or before.items[0].rank > 1:
            continue
        after = filler.fit_slot(slot, before.used + leftover)
        if after.used > before.used and len(after.items) >= len(before.items):
            borrowed += max(0, after.used - granted[slot.name])
            granted[slot.name] = max(granted[slot.name], after.used)
            leftover -= after.used - before.used
            fitted[slot.name] = after
    # The grants must not exceed the ceiling. The borrowed tokens come from slots that did not use theirs.
    for slot in reversed(order):
        lent = min(borrowed, granted[slot.name] - fitted[slot.name].used)
        granted[slot.name] -= lent
        borrowed -= lent


def demand(slot: Slot, ranked: Sequence[Candidate], counter: str, tag: str = fence.NO_TAG) -> Demand:
    """Return the tokens that a slot could use for its candidates."""
    if not ranked:
        note = empty_note_tokens(slot, counter)
        return Demand(0, note, note)
    heading = heading_tokens(slot, counter)
    shared = shared_tokens(ranked, fence.shared_costs(tag, counter))
    fixed = heading + sum(shared)
    return Demand(
        minimum=fixed + sum(min_tokens(candidate, slot) for candidate in ranked),
        at_level=fixed + sum(candidate.tokens[levels_of(candidate, slot.level)[0]] for candidate in ranked),
        maximum=fixed + sum(max_tokens(candidate, slot) for candidate in ranked),
        best_item=heading + shared[0] + min_tokens(ranked[0], slot),
        best_score=ranked[0].score,
    )


def _with_token_counts(candidate: Candidate, counter: str, record_counter: str) -> Candidate:
    """Return a candidate that has the tokens of its line by this counter."""
    if line_notes(candidate):
        return replace(candidate, token_counts=count_line(candidate, counter))
    is_counted = candidate.record.tokens is not None and counter == record_counter
    if is_counted and not candidate.passage:
        return candidate
    counts = candidate.record.tokens if is_counted else None
    counts = counts or measure(candidate.record, counter)
    if candidate.passage:
        counts = {**counts, "passage": tokens.count(render_line(candidate, "passage"), counter)}
    return replace(candidate, token_counts=counts)


def _max_framing(profile: Profile, ranking: Ranking, counter: str) -> int:
    """Return the framing of all messages that could be needed. Words of strangers are always in the user's message."""
    foreign = any(fence.is_foreign(candidate.record) for ranked in ranking.by_slot.values() for candidate in ranked)
    roles = {slot.role for slot in profile.slots} | ({"user"} if foreign else set())
    return _framing(len(roles), counter)


def _framing(number: int, counter: str) -> int:
    """Return the tokens of a number of messages without their contents."""
    chosen = tokens.counter(counter)
    return chosen.per_request + chosen.per_message * number if number else 0
