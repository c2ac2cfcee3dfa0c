"""Select candidates: rank those that each slot could show, then fit them into the tokens of the slot. Pure.

`rank` leaves out what no budget could bring in: candidates that are excluded, untrusted, superseded, disputed, not valid,
below the slot's `min_score`, duplicates, or beyond `max_items`. `fit` chooses the level at which each of the others is
shown. Each candidate ends up as an item or as a `LeftOut` with its reason.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from foveate.pipeline.duplicates import DuplicateIndex
from foveate.records import fence
from foveate.records.kinds import kind_of
from foveate.records.lifecycle import awaits_successor, invalidity
from foveate.types import LEVELS, TRUST, Candidate, Filters, Item, LeftOut, Level, Profile, Slot


@dataclass(frozen=True, slots=True)
class Ranking:
    """The candidates that each slot could show, best first, and those that are left out."""

    by_slot: Mapping[str, tuple[Candidate, ...]]
    left_out: tuple[LeftOut, ...]


def rank(candidates: Sequence[Candidate], profile: Profile, filters: Filters, now: int | None = None) -> Ranking:
    """Rank the candidates of each slot. `now` is the time at which records must be valid."""
    slots = {slot.name: slot for slot in profile.slots}
    eligible: list[Candidate] = []
    left_out: list[LeftOut] = []
    for candidate in candidates:
        rejected = _reject(candidate, slots[candidate.slot], filters, now)
        if rejected is None:
            eligible.append(candidate)
        else:
            left_out.append(rejected)

    by_slot: dict[str, list[Candidate]] = {slot.name: [] for slot in profile.slots}
    limited: defaultdict[str, list[Candidate]] = defaultdict(list)
    overflow: Counter[str] = Counter()
    selected = DuplicateIndex()
    for candidate in sorted(eligible, key=lambda candidate: _selection_key(candidate, slots[candidate.slot])):
        slot, record = slots[candidate.slot], candidate.record
        # `keep` slots show every record, even in the same words. Two tasks in the same words can have different results.
        id_only = slot.keep or kind_of(record.kind).allow_duplicates
        # Inherited records are not limited: whether a dependency's warning is shown must not depend on the search results.
        is_limited = slot.max_items is not None and candidate.inherited_from is None
        duplicate = selected.find(record, id_only=id_only)
        if duplicate is not None:
            left_out.append(LeftOut(candidate, "duplicate", duplicate.id))
        elif is_limited and len(limited[slot.name]) == slot.max_items:
            # It is not added to `selected`, so that another slot may show its duplicate.
            overflow[slot.name] += 1
            left_out.append(_beyond_max_items(candidate, limited[slot.name], overflow[slot.name]))
        else:
            selected.add(record)
            by_slot[slot.name].append(candidate)
            if is_limited:
                limited[slot.name].append(candidate)
    return Ranking({name: tuple(ranked) for name, ranked in by_slot.items()}, tuple(left_out))


def _reject(candidate: Candidate, slot: Slot, filters: Filters, now: int | None) -> LeftOut | None:
    """Return the candidate as left out if no budget could bring it into this slot, else None."""
    record, kind = candidate.record, kind_of(candidate.record.kind)
    if record.id in filters.exclude and not kind.is_rule:
        return LeftOut(candidate, "excluded", "by the request")
    min_trust = max(slot.min_trust, kind.min_trust, key=TRUST.index)
    if TRUST.index(record.trust) < TRUST.index(min_trust):
        return LeftOut(candidate, "untrusted", f"{record.trust}, below {min_trust}")
    if record.status == "superseded" and (now is None or not awaits_successor(record, now)):
        return LeftOut(candidate, "superseded", candidate.overruled_by or "")
    if record.status == "disputed":
        return LeftOut(candidate, "disputed", candidate.overruled_by or "")
    if now is not None and (bound := invalidity(record, now)):
        return LeftOut(candidate, "not valid", bound)
    if candidate.score < slot.min_score:
        missing = round(slot.min_score - candidate.score, 6)
        return LeftOut(candidate, "min_score", f"floor {slot.min_score:g}", needs_score=missing)
    return None


def _selection_key(candidate: Candidate, slot: Slot) -> tuple[bool, bool, float, bool, float]:
    """Return the sort key of a candidate: `keep` slots first, then stable slots, then by priority of the slot and by score.

    The first of several duplicates is shown. Candidates whose file is gone come last in their slot.
    """
    if slot.stable:
        # Scores can depend on the question, and a stable section must not: it keeps the order of its source.
        return (not slot.keep, False, 0.0, candidate.stale, float(slot.order))
    return (not slot.keep, True, -slot.priority, candidate.stale, -candidate.score)


def _beyond_max_items(candidate: Candidate, limited: Sequence[Candidate], overflow: int) -> LeftOut:
    lowest_score = limited[-1].score if limited else 1.0
    missing = max(0.0, round(lowest_score - candidate.score, 6))
    return LeftOut(candidate, "max_items", f"rank {len(limited) + overflow} of {len(limited)}", needs_score=missing)


# --- levels --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FittedSlot:
    """The items of a slot in order, their tokens with the heading, and the candidates that did not fit."""

    items: tuple[Item, ...]
    used: int
    left_out: tuple[LeftOut, ...] = ()


def fit(
    slot: Slot, ranked: Sequence[Candidate], max_tokens: int, heading_tokens: int, tokens_per_fence: int = 0
) -> FittedSlot:
    """Fit the best candidates into `max_tokens`, heading included, each at the longest level for which there are tokens.

    A fence around quoted candidates costs `tokens_per_fence`.
    """
    if not ranked:
        return FittedSlot((), 0)
    available = max_tokens - heading_tokens
    levels = (_fit_all if slot.keep else _fit_greedily)(slot, ranked, available, tokens_per_fence)
    fences = dict(zip(levels, fence_tokens([ranked[n] for n in levels], tokens_per_fence), strict=True))
    if not slot.stable:
        # Leftover tokens depend on other slots, so stable slots spend none.
        _spend_rest(slot, ranked, levels, available - sum(fences.values()))
    items = tuple(Item(ranked[n], level, ranked[n].tokens[level] + fences[n], rank=n + 1) for n, level in levels.items())
    rest = available - sum(item.tokens for item in items)  # negative if not even the heading fits
    left_out = tuple(
        LeftOut(
            candidate,
            "budget",
            needs_tokens=min_tokens(candidate, slot) + fence_tokens([candidate], tokens_per_fence)[0] - rest,
        )
        for n, candidate in enumerate(ranked)
        if n not in levels
    )
    return FittedSlot(items, heading_tokens + sum(item.tokens for item in items) if items else 0, left_out)


def levels_of(candidate: Candidate, longest: Level) -> tuple[Level, ...]:
    """Return the levels at which a candidate may be shown, longest first. A rule is always shown in full."""
    return (LEVELS[0],) if kind_of(candidate.record.kind).is_rule else levels_from(longest)


def levels_from(level: Level) -> tuple[Level, ...]:
    """Return a level and all shorter ones, longest first."""
    return LEVELS[LEVELS.index(level) :]


def min_tokens(candidate: Candidate, slot: Slot) -> int:
    """Return the smallest number of tokens with which a slot can show a candidate."""
    return candidate.tokens[_cheapest_level(candidate, slot)]


def max_tokens(candidate: Candidate, slot: Slot) -> int:
    """Return the largest number of tokens that a candidate can use in a slot."""
    return max(candidate.tokens[level] for level in levels_of(candidate, slot.max_level))


def fence_tokens(candidates: Sequence[Candidate], tokens_per_fence: int) -> list[int]:
    """Return the tokens that each candidate adds for fences around quoted ones, in this order."""
    return fence.fence_costs([candidate.record for candidate in candidates], tokens_per_fence)


def _cheapest_level(candidate: Candidate, slot: Slot) -> Level:
    # Not always the shortest one: a short text can have fewer tokens than its summary.
    return min(levels_of(candidate, slot.level), key=lambda level: candidate.tokens[level])


def _fit_greedily(slot: Slot, ranked: Sequence[Candidate], available: int, tokens_per_fence: int) -> dict[int, Level]:
    """Give each candidate, best first, the longest level that fits. One that fits at no level is skipped."""
    levels: dict[int, Level] = {}
    in_fence = False
    for n, candidate in enumerate(ranked):
        quoted = fence.is_quoted(candidate.record)
        fence_cost = tokens_per_fence if quoted and not in_fence else 0
        for level in levels_of(candidate, slot.level):
            if candidate.tokens[level] + fence_cost <= available:
                levels[n] = level
                available -= candidate.tokens[level] + fence_cost
                in_fence = quoted
                break
    return levels


def _fit_all(slot: Slot, ranked: Sequence[Candidate], available: int, tokens_per_fence: int) -> dict[int, Level]:
    """Give every candidate its cheapest level, then raise the best ones to the level of the slot."""
    levels = {n: _cheapest_level(candidate, slot) for n, candidate in enumerate(ranked)}
    used = sum(ranked[n].tokens[level] for n, level in levels.items()) + sum(fence_tokens(ranked, tokens_per_fence))
    _raise_levels(ranked, levels, available - used, slot.level)
    return levels


def _spend_rest(slot: Slot, ranked: Sequence[Candidate], levels: dict[int, Level], available: int) -> None:
    """Raise the best items to the slot's `max_level`, as far as tokens are left."""
    used = sum(ranked[n].tokens[level] for n, level in levels.items())
    _raise_levels(ranked, levels, available - used, slot.max_level)


def _raise_levels(ranked: Sequence[Candidate], levels: dict[int, Level], available: int, max_level: Level) -> None:
    """Replace levels by longer ones, for the best candidates first."""
    for n, current in levels.items():
        for level in LEVELS[LEVELS.index(max_level) : LEVELS.index(current)]:
            added = ranked[n].tokens[level] - ranked[n].tokens[current]
            if added <= available:
                levels[n] = level
                available -= added
                break
