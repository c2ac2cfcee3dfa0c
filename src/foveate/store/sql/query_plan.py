"""Plans the scoring of a query: which posting lists to read, with which weights, and the score that means full relevance.

The formula is BM25 over separate, weighted fields. It is computed here and not in SQL, so that every database returns the
same scores to the last bit.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from math import log

from foveate.store.sql.postings import FIELDS
from foveate.store.sql.ranking import FieldTerm
from foveate.text import analysis
from foveate.types import ExpansionTerm

BM25_B_BY_FIELD = (0.75, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
"""BM25's `b`, the influence of a text's length. Tags, names and paths are short whatever the record is about, so only the
text is normalized by its length."""


MIN_COVERAGE_DOCS = 100
"""Records that a store counts as having when coverage is measured: in a store of three, no word that occurs is rare."""


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """The posting lists to read, those with the highest weight for their length first, and the score of relevance 1."""

    field_terms: tuple[FieldTerm, ...]
    max_score: float
    term_weights: Mapping[str, float] = field(default_factory=dict)
    """The weight of each term of the query and of its expansions. One that the store has never seen is as rare as can be."""
    expansions: Mapping[str, ExpansionTerm] = field(default_factory=dict)

    def relevance(self, score: float) -> float:
        """Return which share of the query a record answers, from 0 to 1.

        A record of average length that has each significant term once has relevance 1. Scores are not divided by the best
        hit, because then a store without an answer would look as good as one with it (decision 003).
        """
        return min(1.0, score / self.max_score) if self.max_score else 0.0

    def coverage(self, terms: Container[str]) -> float:
        """Return the share of the query's weight whose terms, or expansions of them, are among `terms`.

        Unlike relevance it counts terms that the store has never seen: they show that it does not answer the query.
        """
        wanted = {term: weight for term, weight in self.term_weights.items() if term not in self.expansions}
        found = {term: weight for term, weight in wanted.items() if term in terms}
        for term, how in self.expansions.items():
            if term in terms:
                found[how.query_term] = max(found.get(how.query_term, 0.0), self.term_weights.get(term, 0.0))
        total = sum(sorted(wanted.values(), reverse=True)[: analysis.MAX_SIGNIFICANT_TERMS])
        return min(1.0, sum(found.values()) / total) if total else 0.0


def has_date_or_quantity(terms: Iterable[str]) -> bool:
    """Return whether a query asks for a date or a quantity. Their terms begin with a sign or a digit."""
    return any(not term[:1].isalpha() for term in terms)


def idf(frequencies: Mapping[str, int], docs: int) -> dict[str, float]:
    """Return BM25's inverse document frequency of each term: near 0 for a term that nearly every record has."""
    return {
        term: log(1 + (docs - count + 0.5) / (count + 0.5)) if count <= docs else 0.0 for term, count in frequencies.items()
    }


def plan_query(
    terms: Mapping[str, float],
    fields: Mapping[str, float],
    frequencies: Mapping[str, Mapping[int, int]],
    docs: int,
    expansions: Mapping[str, ExpansionTerm] | None = None,
    expansion_weight: float = 0.0,
) -> QueryPlan:
    """Weight each term by its idf and each field by its weight.

    `frequencies` holds the number of records with a term, by field. The field with the highest number decides the idf.
    Expansion terms add to scores, but not to the score of relevance 1: a record that has only the words of the query
    answers it fully.
    """
    expansions = expansions if expansions and expansion_weight > 0 else {}
    weights = {term: expansion_weight * how.weight * terms[how.query_term] for term, how in expansions.items()} | dict(terms)
    idfs = idf({term: max(frequencies[term].values()) for term in weights if frequencies.get(term)}, docs)
    if not idfs:
        return QueryPlan((), 0.0)
    # A rare synonym must not count more than the word that it stands for.
    idfs |= {term: min(idfs[term], idfs.get(how.query_term, idfs[term])) for term, how in expansions.items() if term in idfs}
    known = [idfs[term] for term in terms if term in idfs and not has_date_or_quantity([term])]
    # A term that the store has never seen may be the point of the query, or chatter. So it gets the mean: with its own idf,
    # which would be the highest, it would push every hit below the threshold.
    mean = sum(known) / len(known) if known else idf({"": 0}, docs)[""]
    scores = sorted((weight * idfs.get(term, mean) for term, weight in terms.items()), reverse=True)
    field_terms = [
        FieldTerm(term, field, weight, BM25_B_BY_FIELD[field], frequency)
        for term in idfs
        for field, frequency in frequencies[term].items()
        if (weight := weights[term] * idfs[term] * fields.get(FIELDS[field], 1.0)) > 0
    ]
    field_terms.sort(key=lambda item: (-item.weight / item.doc_frequency, item.key))
    # No record shares all words of a long query. Its most significant ones say what it is about.
    covered = idf({term: max(frequencies.get(term, {0: 0}).values()) for term in weights}, max(docs, MIN_COVERAGE_DOCS))
    covered |= {term: min(covered[term], covered[how.query_term]) for term, how in expansions.items()}
    return QueryPlan(
        tuple(field_terms),
        sum(scores[: analysis.MAX_SIGNIFICANT_TERMS]),
        {term: weight * covered[term] for term, weight in weights.items()},
        expansions,
    )
