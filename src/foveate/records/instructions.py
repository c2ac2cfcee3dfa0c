"""Decides whether a planned action violates an instruction. The functions are pure, and rather miss than accuse.

An instruction is read sentence by sentence, by four forms. Anything else, such as "Answer politely", is never violated.

- "Deploys only Tuesday to Thursday", "Deploy only between 9:00 and 16:00": the action names the topic and another time.
- "Never deploy on Fridays", "No deploys after 16:00": the action names the topic and such a time.
- "Never push to main", "Do not email customers": the action has all of the words close together.
- "Always run the tests before a release": the action says that it skips it, or does without.

An action that names no time, or an allowed and a forbidden one, violates no rule about times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from foveate.records.triggers import CensorMatch, content_stems, find_nearby, match_censor, split_exception
from foveate.text import analysis
from foveate.text.dates import WEEKDAYS
from foveate.types import Record

_DAY_NAMES = {name: number for number, day in enumerate(WEEKDAYS) for name in (day, f"{day}s")} | {
    short: number
    for number, shorts in enumerate(("mon", "tue tues", "wed", "thu thur thurs", "fri", "sat", "sun"))
    for short in shorts.split()
}
_DAY_GROUPS = {"weekday": range(5), "weekdays": range(5), "weekend": (5, 6), "weekends": (5, 6)}
_DAY = rf"(?:{'|'.join(sorted((*_DAY_NAMES, *_DAY_GROUPS), key=len, reverse=True))})\b\.?"
_AMBIGUOUS = ("wed", "sat", "sun")
"""Short names that are also words. They count as days only in a range, such as Sat-Sun."""
_DAY_IN_RANGE = _DAY
_DAY = rf"(?:{'|'.join(sorted({*_DAY_NAMES, *_DAY_GROUPS} - {*_AMBIGUOUS}, key=len, reverse=True))})\b\.?"
_RANGE_WORD = r"\s*(?:\bto\b|\bthrough\b|\bthru\b|\buntil\b|\btill\b|[-–—])\s*"
_DAYS = re.compile(
    rf"\b(?P<range>(?:(?:from|between)\s+)?(?P<first>{_DAY_IN_RANGE})(?:{_RANGE_WORD}|\s+and\s+)(?P<last>{_DAY_IN_RANGE}))"
    rf"|\b(?P<list>{_DAY}(?:\s*(?:,|/|\band\b|\bor\b|\bnor\b|&)+\s*{_DAY})*)|\b(?P<iso>\d{{4}}-\d\d-\d\d)\b",
    re.IGNORECASE,
)
_CLOCK = r"(?:\d{1,2}:\d\d(?:\s*[ap]\.?m\b\.?)?|\d{1,2}\s*[ap]\.?m\b\.?|\bnoon\b|\bmidnight\b)"
_HOUR = rf"(?:{_CLOCK}|\d{{1,2}}\b(?!\s*%))"
_HOURS = re.compile(
    rf"\b(?:(?:between|from)\s+)?(?P<from>{_HOUR})(?:{_RANGE_WORD}|\s+and\s+)(?P<to>{_CLOCK})"
    rf"|\b(?P<side>after|before|since|until|till|by)\s+(?P<bound>{_CLOCK})|\b(?:at\s+)?(?P<at>{_CLOCK})",
    re.IGNORECASE,
)
_MINUTES_PER_DAY = 24 * 60

_SENTENCE_END = re.compile(
    r"[;!?\n]+|\.(?=\s|$)|(?:,\s*(?:and\s+|but\s+)?|\s+(?:and|but)\s+)(?=(?:never|not|no|only|always)\b)", re.IGNORECASE
)
_LEAD = r"^\W*(?:(?:please|we|you|i|agents?|everybody|one)\s+)*"
_FORBIDS_FIRST = re.compile(
    rf"{_LEAD}(?:never|avoid|no|do not|don['’]t|(?:must|should|may|shall|can)\s*(?:not|n['’]t)|can['’]t)\b"
    r"(?!\s+(?:one|more|less)\b)",
    re.IGNORECASE,
)
_FORBIDS = re.compile(r"\b(?:never|not|no|avoid|cannot)\b|n['’]t\b", re.IGNORECASE)
_ALWAYS = re.compile(rf"{_LEAD}always\s+", re.IGNORECASE)
_ONLY = re.compile(r"\bonly\b", re.IGNORECASE)
_BETWEEN_ONLY_AND_TIME = re.compile(r"\W*(?:\w+\s+)?(?:(?:on|at|from|between|during|in|the)\s+)*$", re.IGNORECASE)
_CONDITION = re.compile(r"\b(?:before|after|when|whenever|if|for|on|in|at|until|while|once)\b.*", re.IGNORECASE | re.DOTALL)
_OMITS = re.compile(r"\b(?:without|skip(?:s|ped|ping)?|omit(?:s|ted|ting)?|never|not|no)\b|n['’]t\b", re.IGNORECASE)
_HOLDS_BACK = re.compile(
    r"(?:\b(?:never|not|no|without|avoid|instead of|rather than)\b|n['’]t\b)\W+(?:\w+\W+){0,2}$", re.IGNORECASE
)
_OTHER_DAY = re.compile(
    rf"(?:\b(?:never|not|no|avoid|instead of|rather than|by|before|until|till|after|since|last|the)\b|n['’]t\b)"
    rf"\W+(?:(?:on|at|a|the|last)\W+){{0,3}}{_DAY}|\b{_DAY}['’]s\b",
    re.IGNORECASE,
)
"""A day on which an action does not say that it happens: "not on Friday", "by Friday", "the Friday backup"."""

MAX_OMITTED_CHARS = 60
"""Characters after a word such as `without` in which an omitted step is named."""

_EMPTY_STEMS = frozenset(
    analysis.terms(
        "only always never not no avoid must stop happen allow permit take place go out occur hold held schedule start from"
    )
)
"""Stems that say that something happens, and not what."""


@dataclass(frozen=True, slots=True)
class _Times:
    """Weekdays and minutes of the day that a text names. None stands for a text that names none."""

    days: frozenset[int] | None
    minutes: frozenset[int] | None
    rest: str
    """The text without them."""

    def __bool__(self) -> bool:
        return self.days is not None or self.minutes is not None


def match_rule(rule: Record, action: str) -> CensorMatch | None:
    """Return the match of a censor or an instruction with a planned action, or None. An instruction only warns."""
    if rule.kind == "censor":
        return match_censor(rule, action)
    words = violated_words(rule.text, action)
    return CensorMatch(rule, "warn", "", words) if words else None


def violated_words(instruction: str, action: str) -> str:
    """Return the words of an action that violate an instruction, or an empty text."""
    topic: frozenset[str] = frozenset()
    for sentence in filter(str.strip, _SENTENCE_END.split(instruction)):
        rule, exception = split_exception(sentence)
        if exception and exception <= frozenset(analysis.terms(action)):
            continue
        times = _times(rule)
        topic = _topic(times.rest) or topic  # "..., and never after 16:00" is about the topic before
        if times and (matched := _timed_violation(rule, times, topic, action)):
            return matched
        if not times and (matched := _untimed_violation(rule, action)):
            return matched
    return ""


def _topic(text: str) -> frozenset[str]:
    return content_stems(text) - _EMPTY_STEMS


# --- rules about times -----------------------------------------------------------------------------------------------


def _timed_violation(rule: str, times: _Times, topic: frozenset[str], action: str) -> str:
    planned = _times(_OTHER_DAY.sub(" ", action))
    if not topic or not planned:
        return ""
    is_only = _is_only_at_times(rule)
    if not is_only and not _FORBIDS.search(times.rest):
        return ""
    outside = [
        not named & ruled if is_only else bool(named & ruled) and not named - ruled
        for named, ruled in ((planned.days, times.days), (planned.minutes, times.minutes))
        if named is not None and ruled is not None
    ]
    both_named = len(outside) == sum(ruled is not None for ruled in (times.days, times.minutes))
    # "Only on Monday at 9:00" is violated by one of both, "Never on Monday at 9:00" by both together.
    is_violated = any(outside) if is_only else bool(outside) and all(outside) and both_named
    return find_nearby(topic, action) if is_violated else ""


def _is_only_at_times(rule: str) -> bool:
    """Return whether `only` is about the time: "only on Mondays", and not "only admins deploy on Mondays"."""
    starts = sorted(match.start() for pattern in (_DAYS, _HOURS) for match in pattern.finditer(rule))
    only = _ONLY.search(rule)
    if only is None or not starts:
        return False
    following = next((start for start in starts if start >= only.end()), None)
    if following is None:  # "On Mondays only"
        return not analysis.terms(rule[only.end() :]) and only.start() - starts[-1] < MAX_OMITTED_CHARS
    return _BETWEEN_ONLY_AND_TIME.fullmatch(rule[only.end() : following]) is not None


def _times(text: str) -> _Times:
    days: set[int] = set()
    minutes: set[int] = set()

    def take_days(match: re.Match[str]) -> str:
        found = set(_days(match))
        days.update(found)
        return " " if found else match[0]

    def take_minutes(match: re.Match[str]) -> str:
        found = set(_minutes(match))
        minutes.update(found)
        return " " if found else match[0]

    rest = _HOURS.sub(take_minutes, _DAYS.sub(take_days, text))
    return _Times(frozenset(days) or None, frozenset(minutes) or None, rest)


def _days(match: re.Match[str]) -> Iterator[int]:
    if match["iso"]:
        try:
            yield date.fromisoformat(match["iso"]).weekday()
        except ValueError:
            return
    elif match["range"] and (ends := [_DAY_NAMES.get(_bare(match[name])) for name in ("first", "last")]):
        first, last = ends
        if first is None or last is None:
            return
        is_pair = re.search(r"\sand\s", match["range"]) and not re.match(r"between\b", match["range"], re.IGNORECASE)
        yield from (first, last) if is_pair else ((first + n) % 7 for n in range((last - first) % 7 + 1))
    else:
        for name in re.findall(_DAY, match["list"], re.IGNORECASE):
            yield from _DAY_GROUPS.get(_bare(name)) or (_DAY_NAMES[_bare(name)],)


def _bare(name: str) -> str:
    return name.lower().rstrip(".")


def _minutes(match: re.Match[str]) -> Iterator[int]:
    if match["at"]:
        minute = _minute(match["at"])
        yield from () if minute is None else (minute,)
        return
    if match["side"]:
        bound = _minute(match["bound"])
        if bound is not None:
            is_after = match["side"].lower() in ("after", "since")
            yield from range(bound, _MINUTES_PER_DAY) if is_after else range(bound)
        return
    last = _minute(match["to"])
    first = _minute(match["from"], like=match["to"])
    if first is not None and last is not None:
        yield from ((first + n) % _MINUTES_PER_DAY for n in range((last - first) % _MINUTES_PER_DAY))


def _minute(text: str, like: str = "") -> int | None:
    """Return the minute of the day that a time stands for. `like` is the end of a range, whose am or pm also counts here."""
    lowered = text.lower().replace(".", "").replace(" ", "")
    if lowered in ("noon", "midnight"):
        return 12 * 60 if lowered == "noon" else 0
    half = re.search(r"[ap]m$", lowered) or re.search(r"[ap]m$", like.lower().replace(".", ""))
    hour, _, minute = re.sub(r"[ap]m$", "", lowered).partition(":")
    number = int(hour) % 12 + (12 if half[0] == "pm" else 0) if half else int(hour)
    return number * 60 + int(minute or 0) if number < 24 and int(minute or 0) < 60 else None


# --- other rules -----------------------------------------------------------------------------------------------------


def _untimed_violation(rule: str, action: str) -> str:
    always = _ALWAYS.match(rule)
    if always:
        step = _topic(_CONDITION.sub("", rule[always.end() :]))
        return _omission(step, action) if step else ""
    forbids = _FORBIDS_FIRST.match(rule)
    stems = _topic(rule[forbids.end() :]) if forbids else frozenset()
    matched = find_nearby(stems, action) if stems else ""
    held_back = matched and _HOLDS_BACK.search(action[: action.find(matched)])
    return "" if held_back else matched


def _omission(step: frozenset[str], action: str) -> str:
    """Return the words that say that an action is done without a step."""
    for match in _OMITS.finditer(action):
        following = re.split(r"[.;,\n]", action[match.end() : match.end() + MAX_OMITTED_CHARS])[0]
        if step <= frozenset(analysis.terms(following)):
            return action[match.start() : match.end()] + following
    return ""
