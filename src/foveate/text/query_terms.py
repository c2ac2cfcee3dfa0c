"""A question -> its terms, each with what it counts. Who asks "What kind of pet ...?" looks for the pet, not for "kind".

Words with which one asks stand in the question and seldom in what answers it; where they are rare, search by words would
take them for the most telling. What is left of their weight is in `question_words.txt`. A sentence that asks nothing keeps
them all: in "Add a kind to each answer", and in "Could you add a kind to each answer?", they are what it is about.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.resources import files

from foveate.text import analysis, dates, quantities

QUESTION = re.compile(
    r"\?(?:\s|$)|^(?:who|what|when|where|which|why|how|should|can|could|do|does|did|is|are|was|were|will|would|has|have)\b"
)
"""Of a text in lower case."""

_REQUEST = re.compile(
    r"^(?:please\s+)?(?:can|could|will|would)\s+(?:you|we)\s+(?:please\s+)?"
    r"(?!(?:tell|say|explain|describe|remember|recall|remind|show|know)\b)"
)
"""A deed that is asked for politely; of being told something, it is a question still."""

_TOLD = re.compile(
    r"^do\s+not\b"
    r"|^(?:when|where)\s+(?!(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|might|must)\b)[^?]*$"
)
"""What only begins like a question: "Do not ...", "When it fails, ..."."""

_SENTENCE_END = re.compile(r"(?<=[.!?:;\n])\s+|\n+")


def asked(query: str, now: int) -> dict[str, float]:
    """The terms of a question with their weights: words, and the dates and quantities that it names."""
    table = _table()
    terms: dict[str, float] = {}
    for sentence in _SENTENCE_END.split(query):
        asks = _asks(sentence)
        for term in analysis.terms(sentence):
            terms[term] = max(terms.get(term, 0.0), table.get(term, 1.0) if asks else 1.0)
    return terms | dict.fromkeys((*dates.question_terms(query, now), *quantities.terms(query)), 1.0)


def _asks(sentence: str) -> bool:
    spoken = sentence.strip().lower()
    return bool(QUESTION.search(spoken)) and not (_REQUEST.match(spoken) or _TOLD.match(spoken))


@lru_cache(maxsize=1)
def _table() -> dict[str, float]:
    text = (files("foveate.text") / "question_words.txt").read_text("utf-8")
    lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
    return {stem: float(weight) for weight, *words in lines for stem in analysis.stems(words)}
