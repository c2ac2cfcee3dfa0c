"""Decides whether a planned action matches a censor. The functions are pure and linear in the length of the action.

A censor's text is its trigger. Plain words match where all of its content words, in any form, occur close together:
"Pushing to main" matches "push the branch to main". The words after `without`, `unless` or `except` allow the action:
"Pushing to main without review" does not match a text that mentions a review. If `data.pattern` is set, that regular
expression decides instead.

Python's regular expressions backtrack. So only patterns that cannot become slow are accepted: no repeat around a group that
repeats or branches, no look-around, no back references, and a bounded product of repeats and branches. They are searched in
short windows, so that a long text costs no more than its length.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator, Set
from dataclasses import dataclass

from foveate.text import analysis
from foveate.types import Record

MAX_WORDS_BETWEEN = 8
"""Other words between those of a trigger: about a sentence."""

DIRECTIVES = frozenset("not never no avoid must stop".split())  # noqa: SIM905
"""Stems that forbid and name nothing: pushing to main matches "Never push to main"."""

WINDOW_CHARS, OVERLAP_CHARS = 240, 120
"""A pattern sees this much of a text at once. A match of up to OVERLAP_CHARS is never cut."""

MAX_MATCH_PATHS = 2 * WINDOW_CHARS**2
"""Ways in which a pattern may try to match at one place: two open repeats and a branch."""

_WORD = re.compile(r"\w+(?:['’]\w+)*")
_EXCEPTION = re.compile(r"\b(?:without|unless|except)\b", re.IGNORECASE)
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?:|\(\?P<\w+>|\(\?|\(|\)|\||[*+?]|\{\d*,?\d*\}|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class CensorMatch:
    """A censor that a planned action matches, or an instruction that it violates, and the words of the action that do."""

    censor: Record
    action: str
    reason: str
    matched_text: str


def match_censor(censor: Record, text: str) -> CensorMatch | None:
    """Return the match of a censor with a text, or None."""
    pattern = censor.data.get("pattern")
    matched = _match_pattern(str(pattern), text) if pattern else _match_words(censor.text, text)
    if not matched:
        return None
    data = censor.data
    return CensorMatch(censor, str(data.get("action", "warn")), str(data.get("reason", "")), matched)


# --- words -----------------------------------------------------------------------------------------------------------


def _match_words(trigger: str, text: str) -> str:
    action, allowing = split_exception(trigger)
    stems = content_stems(action) or content_stems(trigger)
    if not stems or (allowing and allowing <= frozenset(analysis.terms(text))):
        return ""
    return find_nearby(stems, text)


def split_exception(rule: str) -> tuple[str, frozenset[str]]:
    """Return a rule without its exception, and the stems of the exception, which allow an action that has them."""
    action, *exception = _EXCEPTION.split(rule, maxsplit=1)
    return action, content_stems(exception[0]) if exception else frozenset()


def content_stems(text: str) -> frozenset[str]:
    """Return the stems of a text that name something."""
    return frozenset(analysis.terms(text)) - DIRECTIVES


def find_nearby(stems: Set[str], text: str) -> str:
    """Return the first run of words that has all the stems, with few other words between them."""
    window: deque[tuple[int, int, Set[str]]] = deque()  # number and start of a word, and the stems that it has
    counts: Counter[str] = Counter()
    for number, (start, end, terms) in enumerate(_content_words(text)):
        found = stems & frozenset(terms)
        if not found:
            continue
        window.append((number, start, found))
        counts.update(found)
        while number - window[0][0] >= len(stems) + MAX_WORDS_BETWEEN or all(counts[stem] > 1 for stem in window[0][2]):
            counts.subtract(window.popleft()[2])
        if all(counts[stem] > 0 for stem in stems):
            return text[window[0][1] : end]
    return ""


def _content_words(text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Yield the start, the end and the stems of each content word."""
    for match in _WORD.finditer(text):
        terms = analysis.terms(match[0])
        if terms:
            yield match.start(), match.end(), terms


# --- patterns --------------------------------------------------------------------------------------------------------


def pattern_problem(pattern: str) -> str:
    """Return the reason why a pattern is not accepted, as the end of a sentence, or an empty text."""
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"is not a regular expression: {error}."
    paths = 1
    groups = [_Group()]
    last: _Group | None = None  # the group that has just been closed
    for token in _TOKEN.findall(pattern):
        if token == "(?" or re.fullmatch(r"\\[1-9]", token):
            return "must not have look-around, flags or back references."
        closed, last = last, None
        if token.startswith("("):
            groups.append(_Group())
        elif token == ")":
            last = groups.pop()
            paths *= last.branches
            groups[-1].is_variable |= last.is_variable or last.branches > 1
        elif token == "|":
            groups[-1].branches += 1
        elif (repeats := _repeat_paths(token)) > 1:
            if token != "?" and closed and (closed.is_variable or closed.branches > 1):
                return "must not repeat a group that itself repeats or branches, because that can take very long."
            paths *= repeats
            groups[-1].is_variable = True
    if paths * groups[0].branches > MAX_MATCH_PATHS:
        return "can match in too many ways. Bound its repeats, as in {0,20}, or write two censors."
    return ""


@dataclass(slots=True)
class _Group:
    """A group of a pattern that is being read. `is_variable`: something in it repeats or branches."""

    branches: int = 1
    is_variable: bool = False


def _repeat_paths(token: str) -> int:
    """Return in how many ways a quantifier can match within a window; 1 for any other token."""
    if token in ("*", "+"):
        return WINDOW_CHARS
    if token == "?":
        return 2
    bounds = re.fullmatch(r"\{(\d*),(\d*)\}", token)
    if bounds is None:
        return 1
    least, most = int(bounds[1] or 0), int(bounds[2] or WINDOW_CHARS)
    return max(1, min(most, WINDOW_CHARS) - least + 1)


def _match_pattern(pattern: str, text: str) -> str:
    compiled = re.compile(pattern, re.IGNORECASE)
    for line in text.splitlines():
        for start in range(0, max(len(line) - OVERLAP_CHARS, 1), WINDOW_CHARS - OVERLAP_CHARS):
            match = compiled.search(line, start, start + WINDOW_CHARS)
            if match and match[0]:
                return match[0]
    return ""
