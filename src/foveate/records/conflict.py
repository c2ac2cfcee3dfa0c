"""Whether two statements seem to contradict each other. Pure: two texts in, a verdict out.

They speak of the same thing (nearly all their content words agree) and differ in what turns a statement around: a number,
a negation, one of two poles (on and off, before and after). It is a suspicion, never a verdict on which of them holds:
both are kept, linked, and shown together with their dates.
"""

from __future__ import annotations

import re

from foveate.text import analysis
from foveate.text.analysis import NEGATIONS

SAME = 0.75
"""Share of the content words that two statements have in common when they speak of the same thing."""

FEWEST = 2
"""Content words that must agree: `it is 3` and `it is 4` speak of nothing in particular."""

POLES = (
    ("on", "off"), ("enabled", "disabled"), ("enable", "disable"), ("allowed", "forbidden"), ("always", "never"),
    ("true", "false"), ("before", "after"), ("above", "below"), ("up", "down"), ("open", "closed"), ("in", "out"),
    ("yes", "no"), ("with", "without"), ("public", "private"), ("required", "optional"),
)  # fmt: skip

_WORD = re.compile(r"[^\W\d_]+(?:['’]t)?")
_NUMBER = re.compile(r"(?<!\w)\d+(?:[.,:/-]\d+)*")


def conflicting(one: str, other: str) -> bool:
    """Do they say different things about the same?"""
    here, there = _content(one), _content(other)
    shared = here & there
    if len(shared) < FEWEST or len(shared) < SAME * len(here | there):
        return False
    if _numbers(one) and _numbers(other) and _numbers(one) != _numbers(other):
        return True
    spoken, heard = _words(one), _words(other)
    if bool(spoken & NEGATIONS) != bool(heard & NEGATIONS):
        return True
    only_here, only_there = spoken - heard, heard - spoken
    return any((a in only_here and b in only_there) or (b in only_here and a in only_there) for a, b in POLES)


def _words(text: str) -> frozenset[str]:
    """Small words count here, which search ignores; `doesn't` is a negation."""
    found = [word.lower().replace("’", "'") for word in _WORD.findall(text)]
    return frozenset("not" if word.endswith("n't") else word for word in found)


def _content(text: str) -> frozenset[str]:
    turning = NEGATIONS | {pole for pair in POLES for pole in pair}
    words = (word for word in analysis.words(text) if word not in turning and not word[0].isdigit())
    return frozenset(term for word in words for term in analysis.terms(word))


def _numbers(text: str) -> frozenset[str]:
    return frozenset(number.replace(",", "") for number in _NUMBER.findall(text))
