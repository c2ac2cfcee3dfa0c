"""A question -> more terms to search for, each with the term of the question that it stands for.

The tables are readable and in general English. `synonyms.txt` has words that mean nearly the same. For dialogues there are
also `associations.txt` (words that come along with common ones) and `hyponyms.txt` (examples of a kind). A store's own names
and aliases are expanded in `pipeline/signals.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

from foveate.text import analysis
from foveate.types import ExpansionTerm

MAX_QUERY_TERMS = 24
"""A query with more terms is a task or a report. It describes itself and needs no other words."""

MAX_EXPANSIONS = 500
"""With so many expansions, no further words are looked up: each costs a lookup in the index."""

TABLES = {
    "synonyms.txt": ExpansionTerm("", 1.0),
    "associations.txt": ExpansionTerm("", 1.0, is_association=True),
    "hyponyms.txt": ExpansionTerm("", 0.5, is_association=True),
}
"""The weight of each table's words. A word that one table gives is not taken from the next."""


def expand_query(query: str) -> dict[str, ExpansionTerm]:
    """Return terms beyond those of the query. Parts of a name such as `ChromaDB` or `user_id` are not expanded."""
    query_terms = dict.fromkeys(analysis.terms(query))
    expansions: dict[str, ExpansionTerm] = {}
    if len(query_terms) > MAX_QUERY_TERMS:
        return expansions
    words = dict.fromkeys(analysis.whole_word_terms(query))
    for table, meaning in TABLES.items():
        for word in words:
            if len(expansions) >= MAX_EXPANSIONS:
                return expansions
            for term in _expansions(table, word):
                if term not in query_terms:
                    expansions.setdefault(term, meaning._replace(query_term=word))
    return expansions


def synonyms_only(expansions: Mapping[str, ExpansionTerm]) -> dict[str, ExpansionTerm]:
    """Return the expansions that mean the same. Work is asked for in its own words: a login bug is no leak, although both
    are faults."""
    return {term: meaning for term, meaning in expansions.items() if not meaning.is_association}


@lru_cache(maxsize=4096)
def _expansions(table: str, term: str) -> tuple[str, ...]:
    words = [word for line in _read_table(table).get(term, ()) for word in line.split()]
    return tuple(dict.fromkeys(stem for stem in analysis.stems(words) if stem != term))


@lru_cache(maxsize=len(TABLES))
def _read_table(name: str) -> dict[str, list[str]]:
    """Return the lines about each term as they are written, because a question needs only a few of them.

    In `a b c` each word stands for the others. `a > b c` expands a to b and c, and not the other way round.
    """
    heads: list[str] = []
    expansions: list[str] = []
    for line in (files("foveate.text") / name).read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            head, _, rest = line.partition(" > ")
            words = [head] if rest else line.split()
            heads += words
            expansions += [rest or line] * len(words)
    table: dict[str, list[str]] = {}
    for stem, line in zip(analysis.stems(heads), expansions, strict=True):
        table.setdefault(stem, []).append(line)
    return table
