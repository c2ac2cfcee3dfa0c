"""A question -> its terms, each with what it counts. Who asks "What kind of pet ...?" looks for the pet, not for "kind".

Words with which one asks stand in the question and seldom in what answers it; where they are rare, search by words would
take them for the most telling. What is left of their weight is in `asking.txt`. A text that asks nothing keeps them all:
in "Add a type to each answer" they are what it is about.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.resources import files

from foveate import dates, lexical, quantities

QUESTION = re.compile(
    r"\?(?:\s|$)|^(?:who|what|when|where|which|why|how|should|can|could|do|does|did|is|are|was|were|will|would|has|have)\b"
)
"""Of a text in lower case."""


def asked(query: str, now: int) -> dict[str, float]:
    """The terms of a question with their weights: words, and the dates and quantities that it names."""
    terms = dict.fromkeys(lexical.terms(query), 1.0)
    if QUESTION.search(query.strip().lower()):
        table = _table()
        terms = {term: table.get(term, 1.0) for term in terms}
    return terms | dict.fromkeys((*dates.question_terms(query, now), *quantities.terms(query)), 1.0)


@lru_cache(maxsize=1)
def _table() -> dict[str, float]:
    text = (files("foveate") / "asking.txt").read_text("utf-8")
    lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
    return {stem: float(weight) for weight, *words in lines for stem in lexical.stems(words)}
