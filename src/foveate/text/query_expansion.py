"""A question -> more terms to search for, each with the term of the question that it stands for.

The tables are readable and in general English. `synonyms.txt` has words that mean nearly the same. For dialogues there are
also `associations.txt` (words that come along with common ones) and `hyponyms.txt` (examples of a kind). A store's own names
and aliases are expanded in `pipeline/signals.py`.

Some words have one sense in software and another one elsewhere: a message, the environment, a run. The other words of the
query decide: in "the staging environment of the API" it is that of software, and only that sense is expanded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Literal, NamedTuple

from foveate.text import analysis
from foveate.text.query_terms import without_function_words
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


_SOFTWARE, _TWO_SENSES = "# software", "# software: words that also have an everyday sense"
"""The headings in `synonyms.txt`: what those of software begin with, and that of words with two senses."""

_MEASURE = re.compile(
    r"\b(?:kinds?|sorts?|types?|number|amount|total|couple|lot|bit)(?=\s+(?:number\s+|amount\s+)?of\b)"
    r"|(?<!\bwhat )(?<!\bwhich )\b(?:months?|years?|weeks?|days?)\b|(?<!\bhow )\blong\b",
    re.IGNORECASE,
)
"""Words that measure others: "what kind of", "the number of", "two months ago". "Which month" asks for the name
of one, and only "how long has" for a time."""

_VERB = re.compile(
    r"\b(?:am|is|are|was|were|be|been|do|does|did|not|will|would|can|could|should|shall|may|might|must|i|we|you|they|he|she|it"
    r"|who|\w+n['’]t|(?:i|we|you|they|he|she|it)['’]\w+)\s+(?=(?P<verb>[^\W\d_]+))",
    re.IGNORECASE,
)
"""A word after a pronoun or an auxiliary is a verb, so that it names no kind: "does not work" asks for no occupation."""


def expand_query(query: str) -> dict[str, ExpansionTerm]:
    """Return terms beyond those of the query. Parts of a name such as `ChromaDB` or `user_id` are not expanded."""
    text = without_function_words(query)
    query_terms = dict.fromkeys(analysis.terms(text))
    expansions: dict[str, ExpansionTerm] = {}
    if len(query_terms) > MAX_QUERY_TERMS:
        return expansions
    words = dict.fromkeys(analysis.whole_word_terms(_MEASURE.sub(" ", text)))
    verbs = {term for match in _VERB.finditer(query) for term in analysis.terms(match["verb"])}
    senses = {word: _sense(word, words) for word in words}
    for table, meaning in TABLES.items():
        for word, sense in senses.items():
            if len(expansions) >= MAX_EXPANSIONS:
                return expansions
            if meaning.is_association and (sense == "software" or (table == "hyponyms.txt" and word in verbs)):
                continue
            for term in _expansions(table, word, sense != "everyday"):
                if term not in query_terms:
                    expansions.setdefault(term, meaning._replace(query_term=word))
    return expansions


def _sense(word: str, words: Iterable[str]) -> Literal["only", "software", "everyday"]:
    """Return the sense of a word in a query: another word that only software has decides."""
    senses = _senses()
    if word not in senses.two_senses:
        return "only"
    is_software = any(other in senses.software_only for other in words if other != word)
    return "software" if is_software else "everyday"


def synonyms_only(expansions: Mapping[str, ExpansionTerm]) -> dict[str, ExpansionTerm]:
    """Return the expansions that mean the same. Work is asked for in its own words: a login bug is no leak, although both
    are faults."""
    return {term: meaning for term, meaning in expansions.items() if not meaning.is_association}


@lru_cache(maxsize=4096)
def _expansions(table: str, term: str, with_software: bool) -> tuple[str, ...]:
    lines = [line for is_software, line in _read_table(table).get(term, ()) if with_software or not is_software]
    words = [word for line in lines for word in line.split()]
    return tuple(dict.fromkeys(stem for stem in analysis.stems(words) if stem != term))


@lru_cache(maxsize=len(TABLES))
def _read_table(name: str) -> dict[str, list[tuple[bool, str]]]:
    """Return the lines about each term as they are written, because a question needs only a few of them.

    Each line comes with whether it is about software.
    """
    lines = list(_lines(name))
    stems = iter(analysis.stems([word for line in lines for word in line.heads]))
    table: dict[str, list[tuple[bool, str]]] = {}
    for line in lines:
        for _ in line.heads:
            table.setdefault(next(stems), []).append((line.section.startswith(_SOFTWARE), line.expansions))
    return table


class _Senses(NamedTuple):
    software_only: frozenset[str]
    """Words of software that no table has in another sense."""
    two_senses: frozenset[str]


@lru_cache(maxsize=1)
def _senses() -> _Senses:
    software: set[str] = set()
    two_senses: set[str] = set()
    everyday = {word for line in _lines("hyponyms.txt") for word in (*line.heads, *line.expansions.split())}
    everyday.update(word for line in _lines("associations.txt") for word in line.heads)
    for line in _lines("synonyms.txt"):
        (software if line.section.startswith(_SOFTWARE) else everyday).update(line.heads)
        if line.section == _TWO_SENSES:
            two_senses.update(line.heads)
    stems = [frozenset(analysis.stems(list(words))) for words in (software, everyday, two_senses)]
    return _Senses(stems[0] - stems[1] - stems[2], stems[2])


class _Line(NamedTuple):
    section: str
    heads: list[str]
    expansions: str


def _lines(name: str) -> Iterator[_Line]:
    """Yield the lines of a table, each with the heading of its section.

    In `a b c` each word stands for the others. `a > b c` expands a to b and c, and not the other way round.
    """
    section = ""
    for line in (files("foveate.text") / name).read_text("utf-8").splitlines():
        if line.startswith("#"):
            section = line
        elif line:
            head, _, rest = line.partition(" > ")
            yield _Line(section, [head] if rest else line.split(), rest or line)
