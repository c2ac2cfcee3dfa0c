"""Triggers: does a planned action do what a censor forbids? Pure, and linear in the length of the action.

A censor's text is its trigger. Plain words trip where all of its content words, in any form, stand close together:
"Pushing to main" trips on "push the branch to main". What follows `without`, `unless` or `except` is what makes it all
right: "Pushing to main without review" does not trip where a review is spoken of. Where `data.pattern` is set, that
regular expression decides instead.

Python's matcher backtracks, so that only patterns are taken that cannot make it slow: no repeat around a group that repeats
or branches, no look-around, no back references, and repeats and branches that multiply to a bounded number of ways. They
are searched in short windows, so that a long text costs no more than its length.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass

from foveate.text import analysis
from foveate.types import Record

SPREAD = 8
"""Other words that may stand between those of a trigger: about a sentence."""

DIRECTIVES = frozenset("not never no avoid must stop".split())  # noqa: SIM905
"""Stems that forbid and name nothing: "Never push to main" is tripped by pushing to main."""

WINDOW, OVERLAP = 240, 120
"""Characters that a pattern sees at once; a match of up to `OVERLAP` is never cut."""

MOST_WAYS = 2 * WINDOW**2
"""Ways in which a pattern may try to match at one place: two open repeats and a branch."""

_WORD = re.compile(r"\w+(?:['’]\w+)*")
_EXCEPTION = re.compile(r"\b(?:without|unless|except)\b", re.IGNORECASE)
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?:|\(\?P<\w+>|\(\?|\(|\)|\||[*+?]|\{\d*,?\d*\}|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Trip:
    """A censor that a planned action trips, and on which of its words."""

    censor: Record
    action: str
    reason: str
    matched: str


def trip(censor: Record, text: str) -> Trip | None:
    """The trip of a censor on a text, if it trips."""
    pattern = censor.data.get("pattern")
    matched = _by_pattern(str(pattern), text) if pattern else _by_words(censor.text, text)
    if not matched:
        return None
    action, reason = (str(censor.data.get(name, default)) for name, default in (("action", "warn"), ("reason", "")))
    return Trip(censor, action, reason, matched)


# --- words ---------------------------------------------------------------------------------------------------------


def _by_words(trigger: str, text: str) -> str:
    head, *tail = _EXCEPTION.split(trigger, maxsplit=1)
    wanted = _content(head) or _content(trigger)
    allowed = _content(tail[0]) if tail else frozenset()
    if not wanted or (allowed and allowed <= frozenset(analysis.terms(text))):
        return ""
    return _nearby(wanted, text)


def _content(text: str) -> frozenset[str]:
    return frozenset(analysis.terms(text)) - DIRECTIVES


def _nearby(wanted: frozenset[str], text: str) -> str:
    """The first run of words that holds all the wanted stems, with few others between them."""
    window: deque[tuple[int, int, int, list[str]]] = deque()
    inside: Counter[str] = Counter()
    for n, (start, end, terms) in enumerate(_spoken(text)):
        found = [term for term in terms if term in wanted]
        if not found:
            continue
        window.append((n, start, end, found))
        inside.update(found)
        while n - window[0][0] >= len(wanted) + SPREAD or all(inside[term] > 1 for term in window[0][3]):
            inside.subtract(window.popleft()[3])
        if sum(count > 0 for count in inside.values()) == len(wanted):
            return text[window[0][1] : end]
    return ""


def _spoken(text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """The content words of a text: where each begins and ends, and its stems."""
    for match in _WORD.finditer(text):
        terms = analysis.terms(match[0])
        if terms:
            yield match.start(), match.end(), terms


# --- patterns ------------------------------------------------------------------------------------------------------


def pattern_problem(pattern: str) -> str:
    """Why a pattern is not taken, as the end of a sentence; empty where it is."""
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"is no regular expression: {error}."
    ways = 1
    groups = [_Group()]
    last: _Group | None = None  # the group that has just been closed
    for token in _TOKEN.findall(pattern):
        if token == "(?" or re.fullmatch(r"\\[1-9]", token):
            return "may hold no look-around, flags or back references; write it in plainer terms."
        closed, last = last, None
        if token.startswith("("):
            groups.append(_Group())
        elif token == ")":
            last = groups.pop()
            ways *= last.branches
            groups[-1].varies |= last.varies or last.branches > 1
        elif token == "|":
            groups[-1].branches += 1
        elif (times := _times(token)) > 1:
            if token != "?" and closed and (closed.varies or closed.branches > 1):
                return "repeats a group that itself repeats or branches, which can take for ever; write it without."
            ways *= times
            groups[-1].varies = True
    if ways * groups[0].branches > MOST_WAYS:
        return "can match in too many ways; bound its repeats, as in {0,20}, or make two censors of it."
    return ""


@dataclass(slots=True)
class _Group:
    """What is known of a group while a pattern is read."""

    branches: int = 1
    varies: bool = False
    """Something in it repeats or branches."""


def _times(token: str) -> int:
    """In how many ways a quantifier can be met within a window; 1 for what is none, or always the same."""
    if token in ("*", "+"):
        return WINDOW
    if token == "?":
        return 2
    bounds = re.fullmatch(r"\{(\d*),(\d*)\}", token)
    if bounds is None:
        return 1
    least, most = int(bounds[1] or 0), int(bounds[2] or WINDOW)
    return max(1, min(most, WINDOW) - least + 1)


def _by_pattern(pattern: str, text: str) -> str:
    wanted = re.compile(pattern, re.IGNORECASE)
    for line in text.splitlines():
        for start in range(0, max(len(line) - OVERLAP, 1), WINDOW - OVERLAP):
            match = wanted.search(line, start, start + WINDOW)
            if match and match[0]:
                return match[0]
    return ""
