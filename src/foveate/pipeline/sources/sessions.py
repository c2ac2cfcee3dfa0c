"""Score sessions: how much of a query the hits of each session answer, 0..1. Pure.

The answer to a query is often spread over several messages of a session. So the hits of a session are scored as one
document, by the formula that scores records (BM25): a term of every session has no weight, and each repetition of a term
adds less.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping

from foveate.store.protocol import Query
from foveate.store.sql import postings, query_plan
from foveate.store.sql.ranking import K1
from foveate.text import analysis
from foveate.types import Record

EXPANSION_FACTOR = 0.8
"""Expansion terms count less here than in single records, because a whole session contains more of them by chance."""

TEXT_FIELD, DATES_FIELD = postings.FIELDS.index("text"), postings.FIELDS.index("dates")

TermCounts = Mapping[tuple[str, int], int]
"""Occurrences of each term in each field."""


def session_scores(records: Iterable[Record], query: Query) -> dict[str, float]:
    """Return the score of each session; 1 if its records repeat everything that the query asks for."""
    query_terms = {*query.terms, *query.expansions}
    has_dates = query_plan.has_date_or_quantity(query.terms)
    counts: defaultdict[str, Counter[tuple[str, int]]] = defaultdict(Counter)
    lengths: Counter[str] = Counter()
    for record in records:
        if session := record.scope.session:
            text = record.text[: postings.MAX_READ_CHARS]
            terms = analysis.terms(text)
            lengths[session] += len(terms)
            counts[session].update((term, TEXT_FIELD) for term in terms if term in query_terms)
            dates = postings.date_and_quantity_terms(text, record.valid_from) if has_dates else ()
            counts[session].update((term, DATES_FIELD) for term in dates if term in query_terms)
    frequencies = _session_frequencies(counts.values())
    weight = EXPANSION_FACTOR * query.expansion_weight
    plan = query_plan.plan_query(query.terms, query.field_weights, frequencies, len(counts), query.expansions, weight)
    average = max(1.0, sum(lengths.values()) / max(1, len(lengths)))
    return {
        session: plan.relevance(_bm25(plan, term_counts, lengths[session] / average))
        for session, term_counts in counts.items()
    }


def _session_frequencies(sessions: Collection[TermCounts]) -> dict[str, dict[int, int]]:
    """Return the number of sessions that contain each term, by field."""
    frequencies: defaultdict[str, dict[int, int]] = defaultdict(dict)
    for (term, field), number in Counter(key for counts in sessions for key in counts).items():
        frequencies[term][field] = number
    return frequencies


def _bm25(plan: query_plan.QueryPlan, counts: TermCounts, relative_length: float) -> float:
    """Return the BM25 score of a session. `relative_length` is its length relative to the average."""
    return sum(
        listed.weight * count / (count + K1 * (1 - listed.b + listed.b * relative_length))
        for listed in plan.field_terms
        if (count := counts.get(listed.key, 0))
    )
