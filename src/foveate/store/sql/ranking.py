"""The best records for a weighted list of terms, without scoring every record that has a common one.

Comes in: lists of postings, those that weigh most for their length first, and a way to load them. Goes out: (number,
score) pairs, best first, as if everything had been scored. Once the lists that are left cannot together lift an unseen
record among the best (MaxScore), they only add to the records that still can get there.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest

from foveate.store.sql.posting_blocks import MOST_TIMES, decoded

K1 = 1.2
"""BM25's saturation: how soon a further mention of a term stops to count."""

ROUND = 4000
"""Postings after which it is looked whether the rest can be left out; or as many as a quarter of the records that were
seen: the look costs a few nanoseconds for each of those, a posting a hundred."""

SLACK = 1e-9
"""Scores are equal when their ninth place is: what is summed in another order must not decide."""

Postings = tuple[Sequence[int], Sequence[int]]


@dataclass(frozen=True, slots=True)
class Listed:
    """One term in one field: its weight, BM25's b of the field, and how many records have it."""

    term: str
    field: int
    weight: float
    b: float
    size: int

    @property
    def key(self) -> tuple[str, int]:
        return self.term, self.field

    @property
    def bound(self) -> float:
        """More than it can ever add to a score."""
        return self.weight * MOST_TIMES * (K1 + 1) / (MOST_TIMES + K1 * (1 - self.b))


class _Worth(dict[int, float]):
    """What each code of a list adds to a score, worked out when it is first met."""

    def __init__(self, listed: Listed, average: float) -> None:
        super().__init__()
        self._listed, self._average = listed, average

    def __missing__(self, code: int) -> float:
        times, length = decoded(code)
        b = self._listed.b
        norm = K1 * (1 - b + b * length / self._average)
        worth = self[code] = self._listed.weight * times * (K1 + 1) / (times + norm)
        return worth


def best(
    lists: Sequence[Listed],
    load: Callable[[Sequence[Listed]], Mapping[tuple[str, int], Postings]],
    average: float,
    limit: int,
    within: Container[int] | None = None,
) -> list[tuple[int, float]]:
    """The best `limit` of the records that have any of the terms; `within`: of these records only. Ties: the newer first."""
    if limit < 1:
        return []
    scores: dict[int, float] = {}
    start, floor = 0, 0.0
    left = sum(listed.bound for listed in lists)
    while start < len(lists) and left >= floor - SLACK:
        batch = _next(lists[start:], max(ROUND, len(scores) // 4))
        found = load(batch)
        for listed in batch:
            if listed.key in found:
                _add(scores, found[listed.key], _Worth(listed, average), within)
        start += len(batch)
        left = sum(listed.bound for listed in lists[start:])
        floor = _floor(scores, limit, floor)
    if start < len(lists):
        scores, floor = _finished(scores, lists[start:], load, average, limit, floor)
    least = floor - SLACK
    ranked = sorted(((round(score, 9), doc) for doc, score in scores.items() if score >= least), reverse=True)
    return [(doc, score) for score, doc in ranked[:limit]]


def _next(lists: Sequence[Listed], room: int) -> Sequence[Listed]:
    """The lists of the next round: as many as fit, one at least."""
    end, size = 1, lists[0].size
    while end < len(lists) and size + lists[end].size <= room:
        size += lists[end].size
        end += 1
    return lists[:end]


def _floor(scores: Mapping[int, float], limit: int, before: float) -> float:
    """What a record must reach to be among the best; nothing while there are too few. Scores only grow, and it with them."""
    reaching = [score for score in scores.values() if score >= before]
    return nlargest(limit, reaching)[-1] if len(reaching) >= limit else before


def _add(scores: dict[int, float], postings: Postings, worth: _Worth, within: Container[int] | None) -> None:
    docs, codes = postings
    adds = map(worth.__getitem__, codes)
    if within is not None:
        for doc, add in zip(docs, adds, strict=True):
            if doc in within:
                scores[doc] = scores.get(doc, 0.0) + add
    elif not scores:
        scores.update(zip(docs, adds, strict=True))
    else:
        known = scores.get
        for doc, add in zip(docs, adds, strict=True):
            scores[doc] = known(doc, 0.0) + add


def _finished(
    scores: dict[int, float],
    lists: Sequence[Listed],
    load: Callable[[Sequence[Listed]], Mapping[tuple[str, int], Postings]],
    average: float,
    limit: int,
    floor: float,
) -> tuple[dict[int, float], float]:
    """The scores of those that can still be among the best, with what the lists that were left out add to them."""
    left = sum(listed.bound for listed in lists)
    found = load(lists)
    for listed in lists:
        least = floor - left - SLACK
        scores = {doc: score for doc, score in scores.items() if score >= least}
        left -= listed.bound
        worth = _Worth(listed, average)
        for doc, code in zip(*found.get(listed.key, ((), ())), strict=True):
            if doc in scores:
                scores[doc] += worth[code]
        floor = _floor(scores, limit, floor)
    return scores, floor
