"""Finds the records with the highest BM25 scores without scoring every record that has a common term.

Posting lists are read in rounds, those with the highest weight for their length first. Once the remaining lists together
cannot lift a record that has no score yet into the result (MaxScore), they are only added to the records that still can get
there. The result is the same as if every posting had been scored.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest

from foveate.store.sql.posting_blocks import MAX_FREQUENCY, decode

K1 = 1.2
"""BM25's saturation: the lower it is, the less each further occurrence of a term adds."""

POSTINGS_PER_ROUND = 4000
"""Postings that are scored before checking whether the remaining lists can be pruned, or a quarter of the scored records
if that is more. The check takes a few nanoseconds for each scored record, a posting about a hundred."""

SCORE_EPSILON = 1e-9
"""Scores are compared to nine places. The order in which a score was summed must not decide a rank."""

Postings = tuple[Sequence[int], Sequence[int]]
"""The docs of a posting list, and their codes."""


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """A term of a query in one field. It names one posting list."""

    term: str
    field: int
    weight: float
    b: float
    """BM25's normalization by length, for this field."""
    doc_frequency: int
    """The number of records that have the term in this field."""

    @property
    def key(self) -> tuple[str, int]:
        return self.term, self.field

    @property
    def max_score(self) -> float:
        """Return an upper bound of what this list adds to a score: the highest frequency, in an empty text."""
        return self.weight * MAX_FREQUENCY * (K1 + 1) / (MAX_FREQUENCY + K1 * (1 - self.b))


Load = Callable[[Sequence[FieldTerm]], Mapping[tuple[str, int], Postings]]
"""Reads posting lists, by `FieldTerm.key`."""


class _ScoreTable(dict[int, float]):
    """The score of each code of one list. Codes repeat often, so each score is computed once."""

    def __init__(self, item: FieldTerm, average_length: float) -> None:
        super().__init__()
        self._item, self._average_length = item, average_length

    def __missing__(self, code: int) -> float:
        frequency, length = decode(code)
        b = self._item.b
        norm = K1 * (1 - b + b * length / self._average_length)
        score = self[code] = self._item.weight * frequency * (K1 + 1) / (frequency + norm)
        return score


def top_k(
    field_terms: Sequence[FieldTerm],
    load: Load,
    average_length: float,
    limit: int,
    allowed_docs: Container[int] | None = None,
) -> list[tuple[int, float]]:
    """Return (doc, score) of the `limit` records with the highest scores.

    `field_terms` are in the order in which they are read. `allowed_docs` restricts the result to some records. The newer of
    two records with the same score comes first.
    """
    if limit < 1:
        return []
    scores: dict[int, float] = {}
    read, min_score = 0, 0.0
    remaining = sum(item.max_score for item in field_terms)
    while read < len(field_terms) and remaining >= min_score - SCORE_EPSILON:
        batch = _next_batch(field_terms[read:], max(POSTINGS_PER_ROUND, len(scores) // 4))
        lists = load(batch)
        for item in batch:
            if item.key in lists:
                _add_scores(scores, lists[item.key], _ScoreTable(item, average_length), allowed_docs)
        read += len(batch)
        remaining = sum(item.max_score for item in field_terms[read:])
        min_score = _min_competitive_score(scores, limit, min_score)
    if read < len(field_terms):
        scores, min_score = _complete_scores(scores, field_terms[read:], load, average_length, limit, min_score)
    ranked = sorted(
        ((round(score, 9), doc) for doc, score in scores.items() if score >= min_score - SCORE_EPSILON), reverse=True
    )
    return [(doc, score) for score, doc in ranked[:limit]]


def _next_batch(field_terms: Sequence[FieldTerm], max_postings: int) -> Sequence[FieldTerm]:
    """Return the lists of the next round: at least one, and at most `max_postings` postings otherwise."""
    end, postings = 1, field_terms[0].doc_frequency
    while end < len(field_terms) and postings + field_terms[end].doc_frequency <= max_postings:
        postings += field_terms[end].doc_frequency
        end += 1
    return field_terms[:end]


def _min_competitive_score(scores: Mapping[int, float], limit: int, previous: float) -> float:
    """Return the score that a record needs for a place in the result, or 0 while there are fewer than `limit` records.

    Scores only grow, so this never falls below its previous value.
    """
    competitive = [score for score in scores.values() if score >= previous]
    return nlargest(limit, competitive)[-1] if len(competitive) >= limit else previous


def _add_scores(
    scores: dict[int, float], postings: Postings, table: _ScoreTable, allowed_docs: Container[int] | None
) -> None:
    """Add one list to the scores. Three loops instead of one, because this is the innermost code of a search."""
    docs, codes = postings
    added = map(table.__getitem__, codes)
    if allowed_docs is not None:
        for doc, score in zip(docs, added, strict=True):
            if doc in allowed_docs:
                scores[doc] = scores.get(doc, 0.0) + score
    elif not scores:
        scores.update(zip(docs, added, strict=True))
    else:
        get = scores.get
        for doc, score in zip(docs, added, strict=True):
            scores[doc] = get(doc, 0.0) + score


def _complete_scores(
    scores: dict[int, float],
    field_terms: Sequence[FieldTerm],
    load: Load,
    average_length: float,
    limit: int,
    min_score: float,
) -> tuple[dict[int, float], float]:
    """Add the remaining lists to the records that can still reach the result, and return their scores."""
    remaining = sum(item.max_score for item in field_terms)
    lists = load(field_terms)
    for item in field_terms:
        threshold = min_score - remaining - SCORE_EPSILON
        scores = {doc: score for doc, score in scores.items() if score >= threshold}
        remaining -= item.max_score
        table = _ScoreTable(item, average_length)
        for doc, code in zip(*lists.get(item.key, ((), ())), strict=True):
            if doc in scores:
                scores[doc] += table[code]
        min_score = _min_competitive_score(scores, limit, min_score)
    return scores, min_score
