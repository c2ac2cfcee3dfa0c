"""Estimate how relevant each record is: the probability that it is evidence for the request. Pure.

One small model for every profile, with and without vectors, so that a floor means the same everywhere. `relevance.toml` has
its coefficients. It works in three steps, each a weighted sum: how strongly a record matches; how likely anything stored
answers the request; and how likely this record does, if anything does. Relevance is the product of the last two.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from math import exp, fsum, log, log1p, sqrt

from foveate.records.render_events import role_of
from foveate.text import analysis
from foveate.types import Candidate, Profile, Record, Signals

ESTIMATED_SOURCES = ("search", "domains", "procedures")
"""Sources whose candidates get their relevance here. Others know it themselves: rules, code, the current task."""

TELLING_TOKENS = 50
"""Tokens from which on a text is as telling as a longer one."""

MAX_SPEAKER_CHARS = 60
"""Longest name before a colon that counts as a speaker."""

SIMILARITY_OF_UNRELATED, SIMILARITY_OF_SAME = 0.3, 0.7
"""Similarities of vectors that count as no coverage and as full coverage of the request."""

MIN_POOL = 20
"""Hits that a request counts as having at least: one hit is not evidence because nothing competes with it."""

MIN_REACH, MIN_ITEM_TOKENS = 40, 10
"""Each slot chooses among at least this many candidates, and among one for so many tokens of the budget."""

DIGITS = 6
"""Digits of a relevance. They are fewer than a machine has, so that candidates have the same order on every machine."""

_SAYS_YOU = re.compile(r"\b(?:you|your|we|our)\b", re.IGNORECASE)

_ONLY_A_QUESTION = re.compile(r"[^.!?\n]*\?\s*\Z")

REPEATS = "repeats"
"""Feature of a message that only repeats the request."""

Model = Mapping[str, Mapping[str, float]]


@lru_cache(maxsize=1)
def model() -> Model:
    """Return the coefficients by step."""
    return tomllib.loads((files("foveate.pipeline") / "relevance.toml").read_text("utf-8"))


def estimate(
    candidates: Sequence[Candidate], signals: Signals, query: str, excluded: Collection[str] = ()
) -> list[Candidate]:
    """Return the candidates, those of a search with the features `relevance`, `strength` and `answerable`.

    Records that the request excludes do not compete with the others. Messages that only repeat the request get
    the feature `repeats`, and are not shown: somebody asked the same in another session.
    """
    candidates = [_marked(each, query) for each in candidates]
    estimated = [candidate for candidate in candidates if is_estimated(candidate)]
    if not estimated:
        return list(candidates)
    keywords = frozenset(signals.keywords)
    to_assistant = asks_assistant(query)
    inputs = {id(each): match_features(each, keywords, asks_assistant=to_assistant) for each in estimated}
    strengths = {key: _sum("strength", values) for key, values in inputs.items()}
    competing = [each for each in estimated if each.record.id not in excluded and REPEATS not in each.features]
    competing = competing or estimated
    best = max(strengths[id(each)] for each in competing)
    coverage = max(map(coverage_of, competing))
    answerable = _sigmoid(
        _sum("answerable", {"intercept": 1, "strength": best, "coverage": coverage, "terms": log1p(len(signals.terms))})
    )
    pool = max(MIN_POOL, len({each.record.id for each in competing}))
    offset = log(pool / model()["evidence"]["pool"])
    return [
        replace(candidate, features=_with_relevance(candidate, inputs[key], strengths[key], best, answerable, offset))
        if (key := id(candidate)) in inputs
        else candidate
        for candidate in candidates
    ]


def within_reach(candidates: Sequence[Candidate], profile: Profile) -> list[Candidate]:
    """Return the candidates without those that no slot has room for, because too many of its others are more relevant.

    Relevance is estimated before, with all that compete: it must not depend on the budget.
    """
    limit = max(MIN_REACH, profile.total // MIN_ITEM_TOKENS)
    ranked = sorted((n for n, each in enumerate(candidates) if is_estimated(each)), key=lambda n: _rank(candidates[n]))
    in_reach: Counter[str] = Counter()
    beyond = set()
    for n in ranked:
        slot = candidates[n].slot
        in_reach[slot] += 1
        if in_reach[slot] > limit:
            beyond.add(n)
    return [candidate for n, candidate in enumerate(candidates) if n not in beyond]


def _rank(candidate: Candidate) -> tuple[float, int, str]:
    return -candidate.features["relevance"], -candidate.record.created, candidate.record.id


def is_estimated(candidate: Candidate) -> bool:
    """Return whether the relevance of a candidate is estimated from how it matches the request."""
    return candidate.source in ESTIMATED_SOURCES or "match" in candidate.features


def match_features(candidate: Candidate, keywords: frozenset[str], *, asks_assistant: bool = False) -> dict[str, float]:
    """Return the features of a record that its strength depends on, each between 0 and 1."""
    record, found = candidate.record, candidate.features
    match, neighbour = found.get("match", 0.0), found.get("neighbour", 0.0)
    values = {
        "match": match,
        "neighbour": neighbour,
        "overlap": sqrt(match * neighbour),
        "session": found.get("session", 0.0),
        "speaker": _said_by_named(record, keywords),
        "length": min(1.0, log1p(_tokens(record)) / log(TELLING_TOKENS)),
    }
    if record.kind != "event":
        values["curated"] = 1.0
    elif role_of(record) == "assistant":
        values["assistant_asked" if asks_assistant else "assistant"] = 1.0
    if record.kind == "event" and _ONLY_A_QUESTION.match(record.text):
        values["question"] = 1.0
    return {name: value for name, value in values.items() if value}


def coverage_of(candidate: Candidate) -> float:
    """Return how much of the request a record covers, by its words or by its vector."""
    by_vector = candidate.features.get("vector", 0.0) - SIMILARITY_OF_UNRELATED
    return max(candidate.features.get("coverage", 0.0), by_vector / (SIMILARITY_OF_SAME - SIMILARITY_OF_UNRELATED))


def asks_assistant(query: str) -> bool:
    """Return whether a question asks for what was said to the user: it says "you" or "we"."""
    return bool(_SAYS_YOU.search(query))


def contributions(features: Mapping[str, float]) -> dict[str, float]:
    """Return what each feature adds to the strength of a record."""
    weights = model()["strength"]
    return {name: round(weights[name] * features[name], DIGITS) for name in weights if features.get(name)}


def _with_relevance(
    candidate: Candidate, values: Mapping[str, float], strength: float, best: float, answerable: float, offset: float
) -> dict[str, float]:
    at_least = model()["at_least"]
    evidence = _sum("evidence", {"intercept": 1, "strength": strength, "best_strength": best}) - offset
    relevance = answerable * _sigmoid(evidence) if {"match", "neighbour"} & candidate.features.keys() else 0.0
    if domain := candidate.features.get("domain"):
        relevance = max(relevance, at_least["domain"] * domain)
    if candidate.source == "procedures":
        relevance = max(relevance, at_least["applies"])
    return {
        **candidate.features,
        **values,
        "strength": round(strength, DIGITS),
        "answerable": round(answerable, DIGITS),
        "relevance": round(relevance, DIGITS),
    }


def _said_by_named(record: Record, keywords: frozenset[str]) -> float:
    """Return 1 if the question has all words of the speaker's name. A text can begin with it, as in `Ada: ...`."""
    head, colon, _ = record.text[:MAX_SPEAKER_CHARS].partition(":")
    name = str(record.data.get("name", "")) if record.kind == "event" else ""
    words = analysis.words(name or (head if colon else ""))
    return 1.0 if words and keywords.issuperset(words) else 0.0


def _tokens(record: Record) -> int:
    return record.tokens["full"] if record.tokens else len(record.text) // 4


def _marked(candidate: Candidate, query: str) -> Candidate:
    """Return a candidate, with the feature `repeats` if it is a message with the words of the request alone."""
    record = candidate.record
    # The lengths are compared first, because a log can be long.
    if record.kind != "event" or len(record.text) > 2 * len(query) or record.text.split() != query.split():
        return candidate
    return replace(candidate, features={**candidate.features, REPEATS: 1.0})


def _sum(step: str, values: Mapping[str, float]) -> float:
    weights = model()[step]
    return fsum(weights[name] * value for name, value in values.items())


def _sigmoid(value: float) -> float:
    return 1.0 / (1.0 + exp(-max(-50.0, min(50.0, value))))
