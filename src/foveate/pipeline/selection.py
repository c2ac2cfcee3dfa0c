"""Select candidates: rank those that each slot could show, then fit them into the tokens of the slot. Pure.

`rank` leaves out what no budget could bring in: candidates that are excluded, untrusted, superseded, disputed, not valid,
below the slot's `min_relevance`, duplicates, or beyond `max_items`. `fit` chooses the level at which each of the others is
shown. Each candidate ends up as an item or as a `LeftOut` with its reason.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from foveate.pipeline.duplicates import DuplicateIndex
from foveate.pipeline.relevance import REPEATS, is_estimated
from foveate.records.fence import SharedCosts
from foveate.records.kinds import kind_of
from foveate.records.lifecycle import awaits_successor, invalidity
from foveate.types import LEVELS, TRUST, Candidate, Filters, Item, LeftOut, Level, Profile, Slot

MIN_ANSWERABLE = 0.11
"""Probability that the store answers the request from which on `fill = "related"` fills the room. Below it are two in three
requests that nothing in a store answers, and one in fifty of those that something answers (decision 047)."""

SHARE_OF_BEST = 0.2
"""Share of the relevance of the best record of a slot from which on another one counts as relevant, too."""

PRICE_EXPONENT = 0.75
"""Power of the tokens by which a value is divided. Below 1, because a longer text is also more likely to be evidence than
its relevance says."""

LINE_TOKENS = 4
"""Tokens added to those of a text, so that the shortest ones are not nearly free."""

FULL_TEXT_SHARE = 0.5
"""Share of the value of a long record that its passage does not have."""

NO_SHARED_COSTS = SharedCosts()


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
    eligible = _above_floors(eligible, slots, left_out)
    weight = profile.weights.get("relevance", 0.0)
    for candidate in sorted(eligible, key=lambda candidate: _selection_key(candidate, slots[candidate.slot], weight)):
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
    if REPEATS in candidate.features:
        return LeftOut(candidate, "excluded", "because it only repeats the request")
    min_trust = max(slot.min_trust, kind.min_trust, key=TRUST.index)
    if TRUST.index(record.trust) < TRUST.index(min_trust):
        return LeftOut(candidate, "untrusted", f"{record.trust}, below {min_trust}")
    if record.status == "superseded" and (now is None or not awaits_successor(record, now)):
        return LeftOut(candidate, "superseded", candidate.overruled_by or "")
    if record.status == "disputed":
        return LeftOut(candidate, "disputed", candidate.overruled_by or "")
    if now is not None and (bound := invalidity(record, now)):
        return LeftOut(candidate, "not valid", bound)
    return None


def _above_floors(candidates: Sequence[Candidate], slots: Mapping[str, Slot], left_out: list[LeftOut]) -> list[Candidate]:
    """Return the candidates that are relevant enough for their slot, and add the others to `left_out`."""
    best: defaultdict[str, float] = defaultdict(float)
    for candidate in candidates:
        best[candidate.slot] = max(best[candidate.slot], candidate.features.get("relevance", 0.0))
    answerable = max((candidate.features.get("answerable", 0.0) for candidate in candidates), default=0.0)
    above = []
    for candidate in candidates:
        slot = slots[candidate.slot]
        floor = effective_floor(slot, best[slot.name])
        missing = round(floor - candidate.features.get("relevance", 0.0), 6)
        # A record that a dependency passed on is relevant to the task, whatever words it has.
        is_relevant = missing <= 0 or candidate.inherited_from is not None
        if is_relevant or slot.fill == "all" or _is_filled(slot, answerable):
            above.append(candidate)
        else:
            left_out.append(LeftOut(candidate, "min_relevance", f"floor {floor:.3g}", needs_relevance=missing))
    return above


def _is_filled(slot: Slot, answerable: float) -> bool:
    """Return whether a slot with `fill = "related"` may show what is below its floor."""
    return slot.fill == "related" and answerable >= max(MIN_ANSWERABLE, slot.min_relevance)


def effective_floor(slot: Slot, best: float) -> float:
    """Return the relevance from which on records of a slot are shown. `best` is the relevance of its best one.

    Where one record is relevant, so are others that are nearly as relevant: several decisions may answer one question.
    """
    return min(slot.min_relevance, SHARE_OF_BEST * best) if best >= slot.min_relevance else slot.min_relevance


def _selection_key(candidate: Candidate, slot: Slot, weight: float) -> tuple[bool, bool, float, bool, bool, float, float]:
    """Return the sort key of a candidate: `keep` slots first, then stable slots, then by priority of the slot and by value.

    The first of several duplicates is shown. Candidates whose file is gone come last in their slot.
    """
    if slot.stable:
        # Scores can depend on the question, and a stable section must not: it keeps the order of its source.
        return (not slot.keep, False, 0.0, candidate.stale, False, float(slot.order), 0.0)
    estimated = is_estimated(candidate) and candidate.inherited_from is None
    value = value_per_token(candidate, slot, weight) if estimated else candidate.score
    return (not slot.keep, True, -slot.priority, candidate.stale, estimated, -value, -candidate.score)


def expected_value(candidate: Candidate, weight: float) -> float:
    """Return the relevance of a candidate, times its other features.

    They decide between records of similar relevance, and never lift an irrelevant one. `weight` is that of relevance.
    """
    relevance = candidate.features.get("relevance", 0.0)
    return relevance * (candidate.score + weight * (1.0 - relevance))


def value_per_token(candidate: Candidate, slot: Slot, weight: float) -> float:
    """Return the expected value of a candidate for the tokens of its usual level."""
    return expected_value(candidate, weight) / _price(candidate.tokens[_first_level(candidate, slot)])


def _price(tokens: int) -> float:
    return float((tokens + LINE_TOKENS) ** PRICE_EXPONENT)


def _beyond_max_items(candidate: Candidate, limited: Sequence[Candidate], overflow: int) -> LeftOut:
    lowest = limited[-1].features.get("relevance", 0.0) if limited else 1.0
    missing = max(0.0, round(lowest - candidate.features.get("relevance", 0.0), 6))
    return LeftOut(candidate, "max_items", f"rank {len(limited) + overflow} of {len(limited)}", needs_relevance=missing)


# --- levels --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FittedSlot:
    """The items of a slot in order, their tokens with the heading, and the candidates that did not fit."""

    items: tuple[Item, ...]
    used: int
    left_out: tuple[LeftOut, ...] = ()


def fit(
    slot: Slot,
    ranked: Sequence[Candidate],
    max_tokens: int,
    heading_tokens: int,
    shared: SharedCosts = NO_SHARED_COSTS,
    relevance_weight: float = 0.0,
) -> FittedSlot:
    """Fit the best candidates into `max_tokens`, heading included, each at the level that is worth its tokens.

    `shared` are the tokens of lines that several items share. `relevance_weight` is the profile's.
    """
    if not ranked:
        return FittedSlot((), 0)
    available = max_tokens - heading_tokens
    if slot.keep:
        levels = _fit_all(slot, ranked, available, shared)
    else:
        levels = _fit_greedily(slot, ranked, available, shared, relevance_weight)
    added = dict(zip(levels, shared_tokens([ranked[n] for n in levels], shared), strict=True))
    if not slot.stable:
        # Leftover tokens depend on other slots, so stable slots spend none.
        _spend_rest(slot, ranked, levels, available - sum(added.values()))
    items = tuple(Item(ranked[n], level, ranked[n].tokens[level] + added[n], rank=n + 1) for n, level in levels.items())
    rest = available - sum(item.tokens for item in items)  # negative if not even the heading fits
    left_out = tuple(
        LeftOut(
            candidate,
            "budget",
            needs_tokens=min_tokens(candidate, slot) + shared_tokens([candidate], shared)[0] - rest,
        )
        for n, candidate in enumerate(ranked)
        if n not in levels
    )
    return FittedSlot(items, heading_tokens + sum(item.tokens for item in items) if items else 0, left_out)


def levels_of(candidate: Candidate, longest: Level) -> list[Level]:
    """Return the levels that a candidate has, from `longest` to the shortest. A rule is always shown in full."""
    if kind_of(candidate.record.kind).is_rule:
        return ["full"]
    return [level for level in LEVELS[LEVELS.index(longest) :] if level in candidate.tokens]


def min_tokens(candidate: Candidate, slot: Slot) -> int:
    """Return the smallest number of tokens with which a slot can show a candidate."""
    return candidate.tokens[_cheapest_level(candidate, slot)]


def max_tokens(candidate: Candidate, slot: Slot) -> int:
    """Return the largest number of tokens that a candidate can use in a slot."""
    return max(candidate.tokens[level] for level in levels_of(candidate, slot.max_level))


def shared_tokens(candidates: Sequence[Candidate], shared: SharedCosts) -> list[int]:
    """Return the tokens that each candidate adds for lines that several share, in this order."""
    return shared.of(candidate.record for candidate in candidates)


def _cheapest_level(candidate: Candidate, slot: Slot) -> Level:
    # Not always the shortest one: a short text can have fewer tokens than its summary.
    return min(levels_of(candidate, slot.level), key=lambda level: candidate.tokens[level])


def _first_level(candidate: Candidate, slot: Slot) -> Level:
    """Return the level at which a slot shows a candidate first: its passage if it has one, before its full text."""
    levels = levels_of(candidate, slot.level)
    return "passage" if "passage" in levels else levels[0]


def _fit_greedily(
    slot: Slot, ranked: Sequence[Candidate], available: int, shared: SharedCosts, relevance_weight: float
) -> dict[int, Level]:
    """Show candidates, best first, at their first level, and the best passages in full. What does not fit is skipped.

    The full text of a candidate competes with further candidates: by the value that it adds, for the tokens that it adds.
    """
    steps: list[tuple[float, int, Level]] = []
    for n, candidate in enumerate(ranked):
        first = _first_level(candidate, slot)
        price = _price(candidate.tokens[first])
        value = expected_value(candidate, relevance_weight)
        steps.append((value / price if is_estimated(candidate) else inf, n, first))
        if first == "passage" and slot.level == "full" and candidate.tokens["full"] > candidate.tokens[first]:
            added = candidate.tokens["full"] - candidate.tokens["passage"]
            steps.append((FULL_TEXT_SHARE * value / _price(added), n, "full"))
    levels: dict[int, Level] = {}
    paid: set[object] = set()
    # Candidates keep their rank among each other. Only full texts are sorted in between.
    for _, n, level in _merge_by_value(steps):
        candidate = ranked[n]
        if n in levels:
            added = candidate.tokens[level] - candidate.tokens[levels[n]]
            if added <= available:
                levels[n] = level
                available -= added
        elif level != "full" or _first_level(candidate, slot) == "full":
            for shorter in levels_of(candidate, level):
                line = shared.add(candidate.record, set(paid))
                if candidate.tokens[shorter] + line <= available:
                    levels[n] = shorter
                    available -= candidate.tokens[shorter] + shared.add(candidate.record, paid)
                    break
    return levels


def _merge_by_value(steps: Sequence[tuple[float, int, Level]]) -> list[tuple[float, int, Level]]:
    """Return the steps by value, without changing the order of candidates: each is worth at most the one before it."""
    capped: list[tuple[float, int, Level]] = []
    limit = inf
    for value, n, level in steps:
        if level == "full" and capped and capped[-1][1] == n:
            capped.append((min(value, limit), n, level))
        else:
            limit = min(limit, value)
            capped.append((limit, n, level))
    return sorted(capped, key=lambda step: (-step[0], step[1]))


def _fit_all(slot: Slot, ranked: Sequence[Candidate], available: int, shared: SharedCosts) -> dict[int, Level]:
    """Give every candidate its cheapest level, then raise the best ones to the level of the slot."""
    levels = {n: _cheapest_level(candidate, slot) for n, candidate in enumerate(ranked)}
    used = sum(ranked[n].tokens[level] for n, level in levels.items()) + sum(shared_tokens(ranked, shared))
    _raise_levels(ranked, levels, available - used, slot.level)
    return levels


def _spend_rest(slot: Slot, ranked: Sequence[Candidate], levels: dict[int, Level], available: int) -> None:
    """Raise the best items to the slot's `max_level`, as far as tokens are left."""
    used = sum(ranked[n].tokens[level] for n, level in levels.items())
    _raise_levels(ranked, levels, available - used, slot.max_level)


def _raise_levels(ranked: Sequence[Candidate], levels: dict[int, Level], available: int, max_level: Level) -> None:
    """Replace levels by longer ones, for the best candidates first."""
    for n, current in levels.items():
        for level in levels_of(ranked[n], max_level):
            added = ranked[n].tokens[level] - ranked[n].tokens[current]
            if level == current:
                break
            if added <= available:
                levels[n] = level
                available -= added
                break
