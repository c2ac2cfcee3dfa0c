"""Scored candidates -> items within their grants, down the ladder; every other candidate gets a reason. Pure.

Two steps: `sift` leaves out what no budget could bring in (superseded, excluded, below the floor, said twice, beyond
`max_items`), `fit` puts the rest into a grant. A candidate under its slot's floor is gone before anything is counted, so
it changes nothing.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from foveate.clock import iso
from foveate.records import fence
from foveate.records.kinds import kind_of
from foveate.records.make import SKETCH_HASHES
from foveate.text import analysis
from foveate.text.analysis import NEGATIONS
from foveate.types import LEVELS, TRUST, Candidate, Filters, Item, LeftOut, Level, Profile, Record, Slot

SHARED_HASHES = 0.75
"""Share of two sketches that must agree before texts are compared at all."""

KEYS = 3
"""Smallest hashes by which texts meet: two that are 85 % alike differ in all three once in three hundred."""

ALIKE = 0.85
"""Share of two texts' terms that makes them the same thing said twice."""

TURNING = frozenset(("off", "down", "out", "under", "above", "below", "before", "after", "until", "only"))
"""Words that search ignores and that turn a sentence around."""

STATEMENTS = frozenset(("fact", "note", "episode", "event", "scratch"))
"""Kinds that merely say something: across them, the same words are the same thing."""

_LETTERS = re.compile(r"[a-z]+")


@dataclass(frozen=True, slots=True)
class Sifted:
    """Candidates by slot, best first, and those left out."""

    ranked: Mapping[str, tuple[Candidate, ...]]
    omitted: tuple[LeftOut, ...]


def sift(candidates: Sequence[Candidate], profile: Profile, filters: Filters, now: int | None = None) -> Sifted:
    """What is eligible, in order, and why the rest is not. `now`: the time at which records must be valid."""
    slots = {slot.name: slot for slot in profile.slots}
    omitted: list[LeftOut] = []
    eligible: list[Candidate] = []
    for candidate in candidates:
        omission = _refused(candidate, slots[candidate.slot], filters, now)
        if omission:
            omitted.append(omission)
        else:
            eligible.append(candidate)
    ranked: dict[str, list[Candidate]] = {slot.name: [] for slot in profile.slots}
    for candidate, omission in distinct(eligible, slots):
        if omission:
            omitted.append(omission)
        else:
            ranked[candidate.slot].append(candidate)
    return Sifted({name: tuple(kept) for name, kept in ranked.items()}, tuple(omitted))


def _refused(candidate: Candidate, slot: Slot, filters: Filters, now: int | None) -> LeftOut | None:
    record = candidate.record
    if record.id in filters.exclude and not kind_of(record.kind).is_rule:
        return LeftOut(candidate, "excluded", "by the request")
    floor = max(slot.min_trust, kind_of(record.kind).min_trust, key=TRUST.index)
    if TRUST.index(record.trust) < TRUST.index(floor):
        return LeftOut(candidate, "untrusted", f"{record.trust}, below {floor}")
    if record.status == "superseded" and not _holds_still(record, now):
        return LeftOut(candidate, "superseded", candidate.overruled_by or "")
    if record.status == "disputed":
        return LeftOut(candidate, "disputed", candidate.overruled_by or "")
    if now is not None and (bound := _outside(record, now)):
        return LeftOut(candidate, "not valid", bound)
    if candidate.score < slot.min_score:
        short = round(slot.min_score - candidate.score, 6)
        return LeftOut(candidate, "min_score", f"floor {slot.min_score:g}", needs_score=short)
    return None


def _holds_still(record: Record, now: int | None) -> bool:
    """Superseded by a value that is dated ahead: until then it is the one that holds."""
    return now is not None and record.valid_to is not None and record.valid_to > now


def _outside(record: Record, now: int) -> str:
    """Why a record does not hold at a time. One that was not dated ahead holds from the start: clocks differ."""
    if record.valid_to is not None and record.valid_to <= now:
        return f"until {iso(record.valid_to)}"
    if record.valid_from > max(now, record.updated):
        return f"from {iso(record.valid_from)}"
    return ""


# --- the same thing said twice -------------------------------------------------------------------------------------


def distinct(candidates: Sequence[Candidate], slots: Mapping[str, Slot]) -> Iterator[tuple[Candidate, LeftOut | None]]:
    """One of each and no more than `max_items`, in rank order by slot: what must be kept first, then the better score.

    What `max_items` cuts off claims nothing: its duplicate in another slot may still be shown. What a task handed on is
    not counted: the limit is on what was looked up, and a dependency's warning must not depend on how many others fit.
    """
    held: dict[str, Candidate] = {}
    by_hash: dict[bytes, list[tuple[Candidate, frozenset[bytes]]]] = defaultdict(list)
    taken: dict[str, list[Candidate]] = defaultdict(list)
    beyond: dict[str, int] = defaultdict(int)
    for candidate in _by_claim(candidates, slots):
        record, slot = candidate.record, slots[candidate.slot]
        # What must be kept is kept even where it repeats another: only the same record twice is too much.
        # Two tasks may be set in the same words and come to different things.
        own = slot.keep or kind_of(record.kind).allow_duplicates
        twin = held.get(record.id) or (None if own else _near(candidate, by_hash))
        if twin is not None:
            yield candidate, LeftOut(candidate, "duplicate", twin.record.id)
        elif slot.max_items is not None and candidate.inherited_from is None and len(taken[slot.name]) >= slot.max_items:
            beyond[slot.name] += 1
            bar = taken[slot.name][-1].score if slot.max_items else 1.0
            place = f"rank {slot.max_items + beyond[slot.name]} of {slot.max_items}"
            yield candidate, LeftOut(candidate, "max_items", place, needs_score=max(0.0, round(bar - candidate.score, 6)))
        else:
            held[record.id] = candidate
            if candidate.inherited_from is None:
                taken[slot.name].append(candidate)
            parts = _parts(record.sketch)
            for part in parts[:KEYS]:
                by_hash[part].append((candidate, frozenset(parts)))
            yield candidate, None


def _by_claim(candidates: Sequence[Candidate], slots: Mapping[str, Slot]) -> list[Candidate]:
    """Who may speak first: what must be kept, the more important slot, the better score; of equals, whom the source
    brought first. A stable slot keeps its source's order throughout:
    a score may depend on the question."""

    def claim(numbered: tuple[int, Candidate]) -> tuple[bool, bool, float, bool, float, int]:
        n, candidate = numbered
        slot = slots[candidate.slot]
        by = float(slot.order) if slot.stable else -candidate.score
        return (not slot.keep, not slot.stable, 0.0 if slot.stable else -slot.priority, candidate.stale, by, n)

    return [candidate for _, candidate in sorted(enumerate(candidates), key=claim)]


def _parts(sketch: bytes) -> list[bytes]:
    return [sketch[i : i + 4] for i in range(0, len(sketch), 4)]


def _near(candidate: Candidate, by_hash: Mapping[bytes, Sequence[tuple[Candidate, frozenset[bytes]]]]) -> Candidate | None:
    """A candidate that says the same: sketches point to it, terms decide."""
    parts = _parts(candidate.record.sketch)
    needed = max(1.0, SHARED_HASHES * min(len(parts), SKETCH_HASHES))
    mine = frozenset(parts)
    seen: set[str] = set()
    for part in parts[:KEYS]:
        for other, theirs in by_hash.get(part, ()):
            if len(mine & theirs) < needed or other.record.id in seen:
                continue
            seen.add(other.record.id)
            if alike(candidate.record.text, other.record.text) and _of_the_same(candidate.record, other.record):
                return other
    return None


def _of_the_same(one: Record, other: Record) -> bool:
    """Kind, and what it requires, are part of what a record says: a warning is no question in the same words, and the same
    note on two files is two notes."""
    if one.kind != other.kind:
        return one.kind in STATEMENTS and other.kind in STATEMENTS
    return all(one.data.get(name) == other.data.get(name) for name in kind_of(one.kind).required_fields)


def alike(one: str, other: str) -> bool:
    """Nearly the same words in the same order. Numbers and small words decide: 30 s is not 60 s, `never push` is not
    `push`, `retries off` is not `retries on` and `Postgres over Redis` is not `Redis over Postgres`."""
    a, b = (tuple(dict.fromkeys(analysis.terms(text))) for text in (one, other))
    shared = set(a) & set(b)
    either = set(a) | set(b)
    if not shared or len(shared) < ALIKE * len(either):
        return False
    if any(term in NEGATIONS or any(c.isdigit() for c in term) for term in either - shared):
        return False
    if [term for term in a if term in shared] != [term for term in b if term in shared]:
        return False
    return _turning(one) == _turning(other)


def _turning(text: str) -> frozenset[str]:
    return TURNING & set(_LETTERS.findall(text.lower()))


# --- down the ladder -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fitted:
    """A slot filled: its items in order, what they cost with the heading, and what did not fit."""

    items: tuple[Item, ...]
    used: int
    omitted: tuple[LeftOut, ...] = ()


def fit(slot: Slot, ranked: Sequence[Candidate], grant: int, overhead: int, per_fence: int = 0) -> Fitted:
    """As many of the best as the grant holds, each as deep as the room allows. `per_fence`: tokens around quoted ones."""
    if not ranked:
        return Fitted((), 0)
    room = grant - overhead
    levels = _all_kept(slot, ranked, room, per_fence) if slot.keep else _greedy(slot, ranked, room, per_fence)
    opening = dict(zip(sorted(levels), fences([ranked[n] for n in sorted(levels)], per_fence), strict=True))
    if not slot.stable:
        _deepen(slot, ranked, levels, room - sum(opening.values()))
    items = tuple(
        Item(candidate, levels[n], candidate.tokens[levels[n]] + opening[n], n + 1)
        for n, candidate in enumerate(ranked)
        if n in levels
    )
    left = room - sum(item.tokens for item in items)  # below 0 where not even the heading fits
    lost = tuple(
        LeftOut(candidate, "budget", needs_tokens=least(candidate, slot) + fences([candidate], per_fence)[0] - left)
        for n, candidate in enumerate(ranked)
        if n not in levels
    )
    return Fitted(items, overhead + sum(item.tokens for item in items) if items else 0, lost)


def fences(candidates: Sequence[Candidate], per_fence: int) -> list[int]:
    """Tokens that each adds for the fences around what is quoted, where they stand in this order."""
    return fence.fence_costs([candidate.record for candidate in candidates], per_fence)


def least(candidate: Candidate, slot: Slot) -> int:
    """The fewest tokens with which a candidate can be shown: a short text may cost less whole than shortened."""
    return min(candidate.tokens[level] for level in ladder(slot.level))


def most(candidate: Candidate, slot: Slot) -> int:
    """The tokens that a candidate takes where there is all the room that it could use."""
    return max(candidate.tokens[level] for level in ladder(slot.max_level))


def ladder(top: Level) -> tuple[Level, ...]:
    """The levels from one down."""
    return LEVELS[LEVELS.index(top) :]


def _greedy(slot: Slot, ranked: Sequence[Candidate], room: int, per_fence: int) -> dict[int, Level]:
    """In order of rank, each at the deepest level that still fits; past a misfit it goes on."""
    levels: dict[int, Level] = {}
    within = False
    for n, candidate in enumerate(ranked):
        quoted = fence.is_quoted(candidate.record)
        opening = per_fence if quoted and not within else 0
        for level in ladder(slot.level):
            if candidate.tokens[level] + opening <= room:
                levels[n] = level
                room -= candidate.tokens[level] + opening
                within = quoted
                break
    return levels


def _all_kept(slot: Slot, ranked: Sequence[Candidate], room: int, per_fence: int) -> dict[int, Level]:
    """Every one, at its smallest first; then the best are raised as far as their slot's level."""
    steps = ladder(slot.level)
    levels: dict[int, Level] = {n: min(steps, key=lambda s, c=c: c.tokens[s]) for n, c in enumerate(ranked)}  # type: ignore[misc]
    room -= sum(candidate.tokens[levels[n]] for n, candidate in enumerate(ranked)) + sum(fences(ranked, per_fence))
    _raise(ranked, levels, room, slot.level)
    return levels


def _deepen(slot: Slot, ranked: Sequence[Candidate], levels: dict[int, Level], room: int) -> None:
    """Room left over takes the best items back up, to the slot's deepest level."""
    left = room - sum(ranked[n].tokens[level] for n, level in levels.items())
    _raise(ranked, levels, left, slot.max_level)


def _raise(ranked: Sequence[Candidate], levels: dict[int, Level], left: int, top: Level) -> None:
    for n in sorted(levels):
        for level in ladder(top):
            if LEVELS.index(level) >= LEVELS.index(levels[n]):
                break
            more = ranked[n].tokens[level] - ranked[n].tokens[levels[n]]
            if more <= left:
                levels[n] = level
                left -= more
                break
