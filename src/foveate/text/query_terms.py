"""A question -> its terms with weights. "What kind of pet ...?" asks about the pet, not about "kind".

Function words are not searched for: negations, modal verbs such as `may`, and words of politeness. Records are indexed with
them, so that "push" and "never push" differ.

Words such as "kind" and "mention" belong to asking and seldom occur in what answers. Where they are rare, a search by words
would take them for the most significant ones. `question_words.txt` has the weight that is left to them. In a sentence that
asks nothing they keep their full weight: "Add a kind to each answer" is about kinds, and so is "Could you add a kind ...?".
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.resources import files

from foveate.text import analysis, dates, quantities

QUESTION = re.compile(
    r"\?(?:\s|$)|^(?:who|what|when|where|which|why|how|should|can|could|do|does|did|is|are|was|were|will|would|has|have)\b"
)
"""For text in lower case."""

_REQUEST = re.compile(
    r"^(?:please\s+)?(?:can|could|will|would)\s+(?:you|we)\s+(?:please\s+)?"
    r"(?!(?:tell|say|explain|describe|remember|recall|remind|show|know)\b)"
)
"""A polite request to do something. A request to tell something is a question."""

_STATEMENT_START = re.compile(
    r"^do\s+not\b"
    r"|^(?:when|where)\s+(?!(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|might|must)\b)[^?]*$"
)
"""Beginnings that only look like a question: "Do not ...", "When it fails, ..."."""

_SENTENCE_END = re.compile(r"(?<=[.!?:;\n])\s+|\n+")

_FUNCTION_WORDS = re.compile(
    r"(?:\b(?:ca|wo|sha))?n['’]t\b"
    r"|(?<![\w-])(?:not?|nor|cannot|might|must|shall|ought|yes|yeah|yep|nope|ok|okay|alright|please|thanks?|hi|hello|hey)(?![\w-])"
    r"|(?<=\bhow )(?:long(?!\s+ha[sd]\b|\s+have\b)|far|come)\b",
    re.IGNORECASE,
)
"""Negations, modal verbs, words of politeness, and the words that only make `how` a question for time or distance.
"How long has she had it?" asks since when, which `associations.txt` knows.

Not as a part of a name such as `no-op`. `may` can be a month: see `dates.without_modal_may`.
"""


def weighted_query_terms(query: str, now: int) -> dict[str, float]:
    """Return the terms of a question with their weights: its words, and the dates and quantities that it names."""
    weights = _question_word_weights()
    terms: dict[str, float] = {}
    for sentence in _SENTENCE_END.split(query):
        is_question = _is_question(sentence)
        for term in analysis.terms(without_function_words(sentence)):
            terms[term] = max(terms.get(term, 0.0), weights.get(term, 1.0) if is_question else 1.0)
    return terms | dict.fromkeys((*dates.question_terms(query, now), *quantities.terms(query)), 1.0)


def without_function_words(text: str) -> str:
    """Return a query without the words that are not searched for. A single word is kept, because it is all there is."""
    if len(text.split()) < 2:
        return text
    return _FUNCTION_WORDS.sub(" ", dates.without_modal_may(text))


def _is_question(sentence: str) -> bool:
    text = sentence.strip().lower()
    return bool(QUESTION.search(text)) and not (_REQUEST.match(text) or _STATEMENT_START.match(text))


@lru_cache(maxsize=1)
def _question_word_weights() -> dict[str, float]:
    text = (files("foveate.text") / "question_words.txt").read_text("utf-8")
    lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
    return {stem: float(weight) for weight, *words in lines for stem in analysis.stems(words)}
