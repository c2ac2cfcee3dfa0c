"""The plan of a query, as arithmetic: which lists of postings are read, and what a score is worth.

BM25 with separate weighted fields, over rows that any SQL database can hold, so that two databases give the same order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log

from foveate.store.sql.postings import FIELDS
from foveate.store.sql.ranking import Listed
from foveate.text import analysis
from foveate.types import ExpansionTerm

LENGTH_WEIGHT = (0.75, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
"""BM25's b by field. Only running text has a length that says something."""


def idf(frequencies: Mapping[str, int], docs: int) -> dict[str, float]:
    """How much each term tells apart, by BM25's measure; a term in every record says next to nothing."""
    known = frequencies.items()
    return {term: log(1 + (docs - count + 0.5) / (count + 0.5)) if count <= docs else 0.0 for term, count in known}


@dataclass(frozen=True, slots=True)
class Plan:
    """How a query is scored: the lists to read, those that weigh most for their length first, and the reachable maximum."""

    lists: tuple[Listed, ...]
    ceiling: float

    def relevance(self, score: float) -> float:
        """0..1: how much of what the question asks for the record says.

        1 is a record of average length that has every telling term of the question once. Never divided by the best hit,
        so that a floor means the same for every question and a store without an answer gives low values.
        """
        return min(1.0, score / self.ceiling) if self.ceiling else 0.0


def plan(
    terms: Mapping[str, float],
    fields: Mapping[str, float],
    frequencies: Mapping[str, Mapping[int, int]],
    docs: int,
    expansions: Mapping[str, ExpansionTerm] | None = None,
    expansion_weight: float = 0.0,
) -> Plan:
    """Weigh terms by rarity and fields by their weight.

    `frequencies` gives for each term how many records have it in each field. A term's document frequency is that of the
    field in which it is commonest. An expansion term is worth a part of the one that it stands for, however rare it is
    itself, and the ceiling is what was asked for.
    """
    added = expansions if expansions and expansion_weight > 0 else {}
    weights = {**{term: expansion_weight * how.weight * terms[how.query_term] for term, how in added.items()}, **terms}
    rare = idf({term: max(frequencies[term].values()) for term in weights if frequencies.get(term)}, docs)
    if not rare:
        return Plan((), 0.0)
    rare |= {term: min(rare[term], rare.get(how.query_term, rare[term])) for term, how in added.items() if term in rare}
    asked = [rare[term] for term in terms if term in rare] or list(rare.values())
    typical = sum(asked) / len(asked)
    # A word that the store has never seen counts as a typical one: it may be what the question is about, or chatter.
    worth = sorted((weight * rare.get(term, typical) for term, weight in terms.items()), reverse=True)
    lists = [
        Listed(term, number, weight, LENGTH_WEIGHT[number], size)
        for term in rare
        for number, size in frequencies[term].items()
        if (weight := weights[term] * rare[term] * fields.get(FIELDS[number], 1.0)) > 0
    ]
    lists.sort(key=lambda listed: (-listed.weight / listed.size, listed.key))
    return Plan(tuple(lists), sum(worth[: analysis.MAX_SIGNIFICANT_TERMS]))
