"""Decide whether a newer statement says something else about the same thing than an older one. Pure.

It is a suspicion and says nothing about which of them is right. Both are kept and shown with their dates, the newer one
first. A wrong mark is worse than none, so two statements that are merely alike, such as "Room 12 seats 8 people" and "Room
14 seats 6 people", are left alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from foveate.text import analysis, quantities
from foveate.text.analysis import NEGATIONS

MIN_TOPIC_TERMS = 2
"""Terms that both statements have. `It is 3` and `it is 4` are about nothing in particular."""

MAX_VALUE_TERMS = 2
"""Terms of a value: "Jenkins", "the Lyon office"."""

MAX_STATEMENT_CHARS = 300
"""A longer text says several things, and no rule of words tells which of them another text corrects."""

ANTONYMS = (
    ("on", "off"), ("enabled", "disabled"), ("enable", "disable"), ("allowed", "forbidden"), ("always", "never"),
    ("true", "false"), ("before", "after"), ("above", "below"), ("up", "down"), ("open", "closed"), ("in", "out"),
    ("yes", "no"), ("with", "without"), ("public", "private"), ("required", "optional"),
)  # fmt: skip

_CHANGE = re.compile(
    r"\b(?:now|nowadays|currently|no longer|any ?more|any longer|instead|from now on|as of|since|starting|actually"
    r"|correction|correct(?:ed|s)|meanwhile|used to|formerly|previously|rather than|switch(?:ed|ing)?|mov(?:ed|ing)"
    r"|migrat(?:ed|ing)|replac(?:ed|es|ing)|chang(?:ed|es)|renamed|updated|increased|raised|lowered|reduced|decreased|extended|shortened|became"
    r"|postponed|rescheduled|went (?:up|down)|takes? over|took over|taken over)\b",
    re.IGNORECASE,
)
"""Words with which a statement says that something has changed."""

_CHANGED_TO = re.compile(
    r"\b(?:switched|switching|moved|moving|migrated|migrating|changed|renamed|rescheduled|postponed|went)\b"
    r".*\b(?:to|over to|into)\b",
    re.IGNORECASE,
)

_OLD_VALUE = re.compile(
    r"(?:\b(?:not|instead of|rather than|no longer|used to be|formerly|previously|replac(?:ed|es|ing)|away from"
    r"|from(?=.*\bto\b))|n['’]t)\s+(?P<value>[^,;.()]*?)"
    r"(?=\s+(?:to|with|by|any ?more|any longer|but|now|as of|for|since)\b|[,;.()]|$)",
    re.IGNORECASE,
)
"""The value that a statement says is no longer right."""

_GENERIC_VERBS = """base call currently do done get go handle happen have host keep live locate look make need place put run
    say see set sit stay store take use uses used using usually""".split()  # noqa: SIM905
"""Verbs that join a thing and its value and say little themselves."""

_ADDITION = re.compile(r"\b(?:also|too|as well|in addition|another|both|more)\b", re.IGNORECASE)
"""Words with which a statement adds to others instead of correcting them."""

_EVENT = re.compile(
    r"\b(?:today|yesterday|tonight|this (?:morning|afternoon|evening)|ago|last (?:night|week|month|year))\b"
    r"|^(?:the\s)?\w+\s(?:\w+ed|ate|bought|drove|flew|got|had|lost|made|met|paid|ran|sold|spent|took|went|won|wrote)\b",
    re.IGNORECASE,
)
"""Something that happened once. It does not become outdated."""

_JOINED = re.compile(r"\b(?:is|are|was|were|in|on|at|with|by)\b", re.IGNORECASE)
_DEFINITE = re.compile(r"^(?:the|our|my|his|her|their|\w+['’]s)\s[^.,]*\s(?:is|are)\s+(?:now\s+)?(?-i:[A-Z])", re.IGNORECASE)
"""One thing and its name: "The CFO is Maria Lopez"."""
_IS_TO = re.compile(r"\b(?:is|are|was|were)\b.*\bto\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+(?:['’]t)?")
_TOKEN = re.compile(r"\w+(?:['’]\w+)*")
_NAME = re.compile(r"(?<=\w )[^\W\d_a-z]\w*")
_NUMBER = re.compile(r"(?<![\w.])[$€£]?\d+(?:[.,:/-]\d+)*(?!\d*(?:st|nd|rd|th)\b)")
_LEADING_ID = re.compile(r"^(?:(?:the|our|my|a|an)\s+)?[^\W\d_]+\s+#?(\d[\w.:/-]*)\b", re.IGNORECASE)
_NUMBER_WITH_VERB = re.compile(
    r"(?<!\w)(\d[\d.,:/-]*)\s+(?:is|are|was|were|has|have|had|can|will|does|did|needs?|uses?|runs?)\b", re.IGNORECASE
)
_ROLE = re.compile(r"^\S+(?:\s\S+)?\s+(?:is|are)\s+(?:now\s+)?(?:the|our|my)\b|\btook over\b|\btakes over\b", re.IGNORECASE)
_CODE_NAME = re.compile(r"\b(?!\d+(?:st|nd|rd|th)\b)(?=\w*\d)(?=\w*[^\W\d])\w+\b")


@dataclass(frozen=True, slots=True)
class _Statement:
    """The parts of a text that the rules compare, computed once."""

    terms: tuple[str, ...]
    """Terms without change words, numbers and generic verbs, in order."""
    words: frozenset[str]
    names: frozenset[str]
    """Terms with a capital letter inside the sentence."""
    ids: frozenset[str]
    """Numbers and codes that say which thing is meant: "room 12", "host7"."""
    value: str
    """The last number, if any: what is said about the thing."""
    says_change: bool
    old_values: tuple[frozenset[str], ...]


def corrects(newer: str, older: str) -> bool:
    """Return whether a statement says something else about the same thing than an older one.

    They have the same topic and another number; a negation in one of them; a pair of opposites; or the newer one says that
    it is a change, and another value or the old one.
    """
    if max(len(newer), len(older)) > MAX_STATEMENT_CHARS or "?" in newer or "?" in older or _ADDITION.search(newer):
        return False
    if _EVENT.search(older) and not says_change(older):
        return False
    pair = _Pair(newer, older)
    if pair.new.ids != pair.old.ids:
        return False
    if _is_other_number(pair) or _is_reversed(pair):
        return True
    return pair.new.says_change and (_names_old_value(pair) or _is_other_value(pair))


def says_change(text: str) -> bool:
    """Return whether a text can correct another one by its words."""
    return _CHANGE.search(text) is not None


class _Pair:
    """A newer and an older statement, the terms of both, and those that only one has."""

    def __init__(self, newer: str, older: str) -> None:
        self.newer, self.older = newer, older
        self.new, self.old = _read(newer), _read(older)
        self.topic = frozenset(self.new.terms) & frozenset(self.old.terms)
        self.only_new, self.only_old = frozenset(self.new.terms) - self.topic, frozenset(self.old.terms) - self.topic


def _is_other_number(pair: _Pair) -> bool:
    new, old = pair.new, pair.old
    if not new.value or not old.value or new.value == old.value or not pair.topic:
        return False
    rest = pair.only_new | pair.only_old
    if new.says_change:
        return len(rest) <= 1 and rest.isdisjoint(new.names | old.names)
    return len(pair.topic) >= MIN_TOPIC_TERMS and not rest


def _is_reversed(pair: _Pair) -> bool:
    """Return whether one of two statements in the same words has a negation, or each has one of two opposites."""
    if len(pair.topic) < MIN_TOPIC_TERMS or pair.only_new or pair.only_old or pair.new.value != pair.old.value:
        return False
    new, old = pair.new.words, pair.old.words
    if bool(new & NEGATIONS) != bool(old & NEGATIONS):
        return True
    only_new, only_old = new - old, old - new
    return any((x in only_new and y in only_old) or (y in only_new and x in only_old) for x, y in ANTONYMS)


def _names_old_value(pair: _Pair) -> bool:
    """Return whether the newer statement names the value of the older one as past: "in Lyon, not in Bern"."""
    terms, rest = frozenset(pair.old.terms), pair.only_old
    if len(rest) > 1 or rest & pair.old.names:
        return False
    return any(value and value <= terms and pair.topic - value for value in pair.new.old_values)


def _is_other_value(pair: _Pair) -> bool:
    """Return whether both say something short about the same thing: "builds run on Jenkins", "moved the builds to ..."."""
    new, old = pair.new, pair.old
    if not all(0 < len(value) <= MAX_VALUE_TERMS for value in (pair.only_new, pair.only_old)):
        return False
    if new.value != old.value or not pair.topic:
        return False
    is_changed_to = _CHANGED_TO.search(pair.newer) is not None
    if len(pair.topic) < MIN_TOPIC_TERMS:
        are_names = pair.only_old <= old.names and pair.only_new <= new.names
        is_single = len(pair.only_old) == len(pair.only_new) == 1
        is_definite = _DEFINITE.search(pair.newer) is not None and _DEFINITE.search(pair.older) is not None
        return are_names and (is_definite or (is_changed_to and is_single and _value_is_last(pair)))
    if _ROLE.search(pair.newer) and _ROLE.search(pair.older):
        return True
    if not is_changed_to and (
        _IS_TO.search(pair.newer) or _joining_words(pair.newer).isdisjoint(_joining_words(pair.older))
    ):
        return False
    return old.terms[0] in pair.topic and (is_changed_to or new.terms[0] in pair.topic)


def _joining_words(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _JOINED.findall(text))


def _value_is_last(pair: _Pair) -> bool:
    """Return whether the value follows its thing, or a verb such as `use`: not "Ann maintains the builds"."""
    return pair.old.terms[-1] in pair.only_old or re.match(r"(?:we|i|they|you)\s", pair.older, re.IGNORECASE) is not None


@lru_cache(maxsize=1)
def _generic_terms() -> frozenset[str]:
    return frozenset(analysis.stems(_GENERIC_VERBS))


@lru_cache(maxsize=2048)
def _read(text: str) -> _Statement:
    words = frozenset(
        "not" if word.endswith(("n't", "n’t")) else word for word in (match.lower() for match in _WORD.findall(text))
    )
    reversing = NEGATIONS | {word for pair in ANTONYMS for word in pair}
    content = [
        word for word in _TOKEN.findall(_CHANGE.sub(" ", text)) if word.lower() not in reversing and not word[0].isdigit()
    ]
    terms = tuple(dict.fromkeys(term for word in content for term in _term(word) if term not in _generic_terms()))
    names = frozenset(term for word in _NAME.findall(text) for term in _term(word))
    numbers = [number.rstrip(".,").replace(",", "") for number in _NUMBER.findall(text)]
    numbers += [term for term in quantities.terms(text) if term.isdigit() and term not in numbers]
    marked = {match[1] for pattern in (_LEADING_ID, _NUMBER_WITH_VERB) for match in pattern.finditer(text)}
    values = [number for number in numbers if number not in marked]
    ids = marked | set(values[:-1]) | set(_CODE_NAME.findall(text.lower()))
    old_values = tuple(
        frozenset(term for word in _TOKEN.findall(match["value"]) for term in _term(word) if term not in _generic_terms())
        for match in _OLD_VALUE.finditer(text)
    )
    return _Statement(terms, words, names, frozenset(ids), values[-1] if values else "", says_change(text), old_values)


def _term(word: str) -> tuple[str, ...]:
    """Return the term of a whole word; that of `I`, which is who a message is about, is kept."""
    return ("i",) if word == "I" else tuple(term for term in analysis.terms(word)[:1] if term not in NEGATIONS)
