"""Hits and the query that found them -> how much of the question each of their sessions answers, 0..1. Pure.

What is asked for is often said in pieces: a word here and a word there in one talk. So the hits of a session are read as
one document, by the formula that weighs records: a term of every session tells nothing, and one that comes again and again
gains a little less each time.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping

from foveate.store.protocol import Query
from foveate.store.sql import postings, query_plan
from foveate.store.sql.ranking import K1
from foveate.text import analysis
from foveate.types import Record

MAX_CHARS = 4_000
"""Of one record: what a session is about shows in the beginnings of what was said, and a pasted log is long."""

OTHER_WORDS = 0.8
"""What a word that stands for another counts here, of what it counts in a record: a whole talk has more by chance."""

TEXT, DATES = postings.FIELDS.index("text"), postings.FIELDS.index("dates")

Said = Mapping[tuple[str, int], int]
"""How often each term comes in each field."""


def answered(records: Iterable[Record], query: Query) -> dict[str, float]:
    """By session: 1 where all that the question asks for comes again and again."""
    wanted = {*query.terms, *query.expansions}
    # Reading dates and quantities costs more than all else here, and few questions name any.
    names = any(not term[:1].isalpha() for term in query.terms)
    said: dict[str, Counter[tuple[str, int]]] = defaultdict(Counter)
    lengths: Counter[str] = Counter()
    for record in records:
        if session := record.scope.session:
            text = record.text[:MAX_CHARS]
            terms = analysis.terms(text)
            lengths[session] += len(terms)
            said[session].update((term, TEXT) for term in terms if term in wanted)
            named = postings.date_and_quantity_terms(text, record.valid_from) if names else ()
            said[session].update((term, DATES) for term in named if term in wanted)
    frequencies = _frequencies(said.values())
    weight = OTHER_WORDS * query.expansion_weight
    plan = query_plan.plan_query(query.terms, query.field_weights, frequencies, len(said), query.expansions, weight)
    average = max(1.0, sum(lengths.values()) / max(1, len(lengths)))
    return {name: plan.relevance(_score(plan, found, lengths[name] / average)) for name, found in said.items()}


def _frequencies(sessions: Collection[Said]) -> dict[str, dict[int, int]]:
    """In how many sessions each term comes, by field."""
    found: dict[str, dict[int, int]] = defaultdict(dict)
    for (term, field), number in Counter(key for said in sessions for key in said).items():
        found[term][field] = number
    return found


def _score(plan: query_plan.QueryPlan, said: Said, length: float) -> float:
    """BM25 of one session, below the plan's ceiling; `length` is a multiple of the average."""
    return sum(
        listed.weight * times / (times + K1 * (1 - listed.b + listed.b * length))
        for listed in plan.field_terms
        if (times := said.get(listed.key, 0))
    )
