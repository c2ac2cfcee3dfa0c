"""Scored candidates -> items within their grants, down the ladder; every other candidate gets a reason. Pure.

Two steps: `sift` leaves out what no budget could bring in (superseded, excluded, below the floor, said twice, beyond
`max_items`), `fit` puts the rest into a grant. A candidate under its slot's floor is gone before anything is counted, so
it changes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from foveate import lexical
from foveate.state.kinds import kind_of
from foveate.state.records import SKETCH
from foveate.types import LEVELS, Candidate, Filters, Item, Level, Omission, Profile, Slot

SHARED_HASHES = 0.75
"""Share of two sketches that must agree before texts are compared at all."""

ALIKE = 0.85
"""Share of two texts' terms that makes them the same thing said twice."""


@dataclass(frozen=True, slots=True)
class Sifted:
    """Candidates by slot, best first, and those left out."""

    ranked: Mapping[str, tuple[Candidate, ...]]
    omitted: tuple[Omission, ...]


def sift(candidates: Sequence[Candidate], profile: Profile, filters: Filters) -> Sifted:
    """What is eligible, in order, and why the rest is not."""
    slots = {slot.name: slot for slot in profile.slots}
    omitted: list[Omission] = []
    eligible: list[Candidate] = []
    for candidate in candidates:
        omission = _refused(candidate, slots[candidate.slot], filters)
        if omission:
            omitted.append(omission)
        else:
            eligible.append(candidate)
    unique, repeats = distinct(eligible, slots)
    omitted += repeats
    ranked: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in unique:
        ranked[candidate.slot].append(candidate)
    kept = {}
    for slot in profile.slots:
        order = ranked[slot.name] if slot.stable else sorted(ranked[slot.name], key=best_first)
        cut = len(order) if slot.max_items is None else slot.max_items
        kept[slot.name] = tuple(order[:cut])
        if order[cut:]:
            bar = order[cut - 1].score if cut else 1.0
            omitted += [
                Omission(c, "max_items", f"rank {cut + n} of {cut}", needs_score=round(bar - c.score, 6))
                for n, c in enumerate(order[cut:], 1)
            ]
    return Sifted(kept, tuple(omitted))


def best_first(candidate: Candidate) -> tuple[float, str]:
    return (-candidate.score, candidate.record.id)


def _refused(candidate: Candidate, slot: Slot, filters: Filters) -> Omission | None:
    record = candidate.record
    if record.id in filters.exclude and not kind_of(record.kind).rule:
        return Omission(candidate, "excluded", "by the request")
    if record.status == "superseded":
        return Omission(candidate, "superseded", candidate.superseded_by or "")
    if candidate.score < slot.min_score:
        short = round(slot.min_score - candidate.score, 6)
        return Omission(candidate, "min_score", f"floor {slot.min_score:g}", needs_score=short)
    return None


# --- the same thing said twice -------------------------------------------------------------------------------------


def distinct(candidates: Sequence[Candidate], slots: Mapping[str, Slot]) -> tuple[list[Candidate], list[Omission]]:
    """One of each: what must be kept before what may, the better score before the lesser."""

    def claim(candidate: Candidate) -> tuple[bool, bool, float, str, str]:
        slot = slots[candidate.slot]
        return (not slot.keep, not slot.stable, -candidate.score, candidate.record.id, candidate.slot)

    held: dict[str, Candidate] = {}
    by_hash: dict[bytes, list[Candidate]] = defaultdict(list)
    losers: dict[int, Omission] = {}
    for candidate in sorted(candidates, key=claim):
        record = candidate.record
        twin = held.get(record.id) or _near(candidate, by_hash)
        if twin is None:
            held[record.id] = candidate
            for part in _parts(record.sketch):
                by_hash[part].append(candidate)
        elif slots[candidate.slot].keep and twin.record.id != record.id:
            held[record.id] = candidate  # what must be kept is kept even where it repeats another
        else:
            losers[id(candidate)] = Omission(candidate, "duplicate", twin.record.id)
    return [c for c in candidates if id(c) not in losers], list(losers.values())


def _parts(sketch: bytes) -> Iterable[bytes]:
    return (sketch[i : i + 4] for i in range(0, len(sketch), 4))


def _near(candidate: Candidate, by_hash: Mapping[bytes, Sequence[Candidate]]) -> Candidate | None:
    """A candidate that says the same: sketches point to it, terms decide."""
    shared: dict[int, int] = defaultdict(int)
    met: dict[int, Candidate] = {}
    parts = list(_parts(candidate.record.sketch))
    for part in parts:
        for other in by_hash.get(part, ()):
            shared[id(other)] += 1
            met[id(other)] = other
    needed = max(1.0, SHARED_HASHES * min(len(parts), SKETCH))
    for key, number in shared.items():
        if number >= needed and alike(candidate.record.text, met[key].record.text):
            return met[key]
    return None


def alike(one: str, other: str) -> bool:
    """Nearly the same words. Numbers and negations decide: 30 s is not 60 s, and `never push` is not `push`."""
    a, b = set(lexical.terms(one)), set(lexical.terms(other))
    if not a or not b or len(a & b) < ALIKE * len(a | b):
        return False
    return not any(term in ("no", "not", "never", "without") or any(c.isdigit() for c in term) for term in a ^ b)


# --- down the ladder -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fitted:
    """A slot filled: its items in order, what they cost with the heading, and what did not fit."""

    items: tuple[Item, ...]
    used: int
    omitted: tuple[Omission, ...] = ()


def fit(slot: Slot, ranked: Sequence[Candidate], grant: int, overhead: int) -> Fitted:
    """As many of the best as the grant holds, each as deep as the room allows."""
    if not ranked:
        return Fitted((), 0)
    room = grant - overhead
    levels = _all_kept(slot, ranked, room) if slot.keep else _greedy(slot, ranked, room)
    if not slot.stable:
        _deepen(slot, ranked, levels, room)
    items = tuple(
        Item(candidate, levels[n], candidate.tokens[levels[n]], n + 1) for n, candidate in enumerate(ranked) if n in levels
    )
    left = max(0, room - sum(item.tokens for item in items))
    lost = tuple(
        Omission(candidate, "budget", needs_tokens=least(candidate, slot) - left + (0 if items else overhead))
        for n, candidate in enumerate(ranked)
        if n not in levels
    )
    return Fitted(items, overhead + sum(item.tokens for item in items) if items else 0, lost)


def least(candidate: Candidate, slot: Slot) -> int:
    """The fewest tokens with which a candidate can be shown: a short text may cost less whole than shortened."""
    return min(candidate.tokens[level] for level in ladder(slot.level))


def ladder(top: Level) -> tuple[Level, ...]:
    """The levels from one down."""
    return LEVELS[LEVELS.index(top) :]


def _greedy(slot: Slot, ranked: Sequence[Candidate], room: int) -> dict[int, Level]:
    """In order of rank, each at the deepest level that still fits; past a misfit it goes on."""
    levels: dict[int, Level] = {}
    for n, candidate in enumerate(ranked):
        for level in ladder(slot.level):
            if candidate.tokens[level] <= room:
                levels[n] = level
                room -= candidate.tokens[level]
                break
    return levels


def _all_kept(slot: Slot, ranked: Sequence[Candidate], room: int) -> dict[int, Level]:
    """Every one, at its smallest first; then the best are raised as far as their slot's level."""
    steps = ladder(slot.level)
    levels: dict[int, Level] = {n: min(steps, key=lambda s, c=c: c.tokens[s]) for n, c in enumerate(ranked)}  # type: ignore[misc]
    room -= sum(candidate.tokens[levels[n]] for n, candidate in enumerate(ranked))
    _raise(ranked, levels, room, slot.level)
    return levels


def _deepen(slot: Slot, ranked: Sequence[Candidate], levels: dict[int, Level], room: int) -> None:
    """Room left over takes the best items back up, to the slot's deepest level."""
    left = room - sum(ranked[n].tokens[level] for n, level in levels.items())
    _raise(ranked, levels, left, slot.deepest)


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
