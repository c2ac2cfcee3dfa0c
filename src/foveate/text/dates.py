"""Dates in words -> index terms, so that "last May", "14 May 2026" and "2026-05-14" match each other.

A date becomes a term that no word can be: `@2026-05-14`, `@2026-w20`, `@2026-05`, `@2026`. Relative dates are read as seen
from the day on which the text was written: "yesterday" in an old note is not yesterday. A record is indexed under every
coarser date, too, and a question for a day asks for its month as well, to find a note that knows only the month.

The words are English, and times are UTC.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Literal

from foveate.text.analysis import fold_variants

MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
          "december")  # fmt: skip
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
NUMBERS = {
    word: n
    for n, word in enumerate("one two three four five six seven eight nine ten eleven twelve".split(), 1)  # noqa: SIM905
} | {"a": 1, "an": 1, "couple": 2, "few": 3}

_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_PREPOSITIONS = r"(?:last|this|next|past|in|of|since|during|early|late|mid|by|until|around|from|before|after)"
_COUNT = rf"(?P<count>\d{{1,3}}|{'|'.join(NUMBERS)})"

_ISO = re.compile(rf"\b{_YEAR}-(?P<month>[01]\d)(?:-(?P<day>[0-3]\d))?(?![\d-])")
_DAY_FIRST = re.compile(rf"\b{_DAY}\s+(?:of\s+)?{_MONTH}(?:,?\s+{_YEAR})?\b", re.IGNORECASE)
_MONTH_FIRST = re.compile(rf"\b{_MONTH}\s+{_DAY}\b(?!:)(?:,?\s+{_YEAR}\b)?", re.IGNORECASE)
_MONTH_YEAR = re.compile(rf"\b{_MONTH},?\s+(?:of\s+)?{_YEAR}\b", re.IGNORECASE)
# `may` and `march` are verbs too: a month without a day or year needs a word before it that only times have. In lower case
# that is not enough: see `_is_month`.
_MONTH_ALONE = re.compile(rf"\b(?P<which>{_PREPOSITIONS})[\s-]+{_MONTH}\b(?!\s+\d)", re.IGNORECASE)
_RELATIVE_AGO = re.compile(
    rf"\b{_COUNT}\s+(?:of\s+)?(?P<unit>day|week|month|year)s?\s+(?:ago|earlier|before)\b", re.IGNORECASE
)
_RELATIVE_UNIT = re.compile(r"\b(?P<which>last|past|this|next)\s+(?P<unit>week(?!end)|month|year)\b", re.IGNORECASE)
_NAMED_DAY = re.compile(r"\b(?P<day>today|tonight|yesterday|last\s+night|tomorrow)\b", re.IGNORECASE)
_WEEKDAY = re.compile(rf"\b(?:(?P<which>last|this|next|on)\s+)(?P<day>{'|'.join(WEEKDAYS)})\b", re.IGNORECASE)
_BARE_YEAR = re.compile(rf"\b(?:in|of|since|during|from|by|until|before|after)\s+{_YEAR}\b(?!-)", re.IGNORECASE)
_HINT = re.compile(
    rf"\b(?:(?:19|20)\d\d|yesterday|today|tonight|last\s+night|tomorrow|days?|weeks?|months?|years?|{'|'.join(WEEKDAYS)}"
    rf"|{_MONTH})\b"
)
"""Most texts name no date. One search tells, instead of ten."""

_MAY = re.compile(r"\bmay\b", re.IGNORECASE)
_TIME_PREPOSITION_BEFORE = re.compile(rf"\b{_PREPOSITIONS}[\s-]+$", re.IGNORECASE)
_MONTH_BEFORE = re.compile(r"\b(?:\d{1,2}(?:st|nd|rd|th)?\s+(?:of\s+)?|the\s+|each\s+|every\s+)$", re.IGNORECASE)
_NUMBER_AFTER = re.compile(r"[.,]?\s+(?:of\s+)?\d")
_NO_VERB_AFTER = re.compile(
    r"\s*(?:$|[^\w\s]|(?:i|we|you|he|she|they|it|an?|the|this|these|my|our|your|his|her|their|and|or|but|of|at|in|on|to|for|with"
    r"|from|by|until|before|after|when|while|where|did|does|do|was|were|is|are|has|had|will|would|can|could)\b)",
    re.IGNORECASE,
)
_SUBJECT_AFTER = re.compile(
    r"\s+(?:i|we|you|he|she|they|it|an?|the|this|these|my|our|your|his|her|their)\b|[^.!\n]*\?", re.IGNORECASE
)
_SENTENCE_START_BEFORE = re.compile(r"(?:^|[.!?:;\n])\s*$")

Unit = Literal["day", "week", "month", "year"]
UNITS: tuple[Unit, ...] = ("day", "week", "month", "year")

DateSpan = tuple[date, Unit]
"""The first day of a part of the calendar, and how long that part is."""


def record_terms(text: str, at: int) -> tuple[str, ...]:
    """Return the dates under which a record is found: its own day, week and month, and every date that it names."""
    day = _to_date(at)
    if day is None:
        return ()
    # Without its own year: nearly all records of a store share it, so that it would distinguish nothing.
    terms = dict.fromkeys(_enclosing_terms(day, "day")[:-1])
    for first, unit in _mentioned_spans(text, day):
        terms |= dict.fromkeys(_enclosing_terms(first, unit))
    return tuple(terms)


def question_terms(text: str, now: int) -> tuple[str, ...]:
    """Return the dates that a question asks about."""
    day = _to_date(now)
    if day is None:
        return ()
    terms: dict[str, None] = {}
    for first, unit in _mentioned_spans(text, day):
        terms[_term(first, unit)] = None
        if unit == "day":
            terms[_term(first, "month")] = None
    return tuple(terms)


def without_modal_may(text: str) -> str:
    """Return a text without the verb `may`. The month stays: "in May", "May 5", "5 may", "the May release"."""
    return _MAY.sub(lambda match: match[0] if _is_month(match) else " ", text)


def _to_date(at: int) -> date | None:
    try:
        return datetime.fromtimestamp(at / 1000, UTC).date()
    except (ValueError, OverflowError, OSError):
        return None


def _term(day: date, unit: Unit) -> str:
    if unit == "week":
        year, week, _ = day.isocalendar()
        return f"@{year}-w{week:02}"
    return "@" + day.isoformat()[: {"day": 10, "month": 7, "year": 4}[unit]]


@lru_cache(maxsize=1000)  # most records are from a few days
def _enclosing_terms(day: date, unit: Unit) -> tuple[str, ...]:
    """Return the terms of a span and of everything that it lies in. A week can lie in two months, so it lies in none."""
    units = (unit,) if unit == "week" else UNITS[UNITS.index(unit) :]
    return tuple(_term(day, part) for part in units)


# --- reading ---------------------------------------------------------------------------------------------------------


def _mentioned_spans(text: str, at: date) -> Iterator[DateSpan]:
    """Yield the spans that a text names, as seen from a day."""
    text = fold_variants(text)
    if not _HINT.search(text.lower()):
        return
    for pattern, parse in _PARSERS:
        for match in pattern.finditer(text):
            try:
                yield parse(match, at)
            except (ValueError, OverflowError):  # the 31st of February, the year 0
                continue


def _parse_calendar(match: re.Match[str], at: date) -> DateSpan:
    """Read a month with a day, a year or both. Without a year, it is the latest one that is not in the future."""
    parts = match.groupdict()
    month, day, year = _parse_month(parts["month"]), parts.get("day"), parts.get("year")
    unit: Unit = "day" if day else "month"
    if year is not None:
        return date(int(year), month, int(day or 1)), unit
    this_year = date(at.year, month, int(day or 1))
    return (this_year if this_year <= at else this_year.replace(year=at.year - 1)), unit


def _parse_month(text: str) -> int:
    return int(text) if text.isdigit() else next(n for n, name in enumerate(MONTHS, 1) if name.startswith(text[:3].lower()))


def _parse_month_alone(match: re.Match[str], at: date) -> DateSpan:
    """Read `in May`, `last May` or `next May`, but not `this may fail`."""
    if match["month"].lower() == "may" and not _is_month(match, "month"):
        raise ValueError("the verb `may`")
    month, which = _parse_month(match["month"]), match["which"].lower()
    if which == "next":
        return date(at.year + (month <= at.month), month, 1), "month"
    is_this_year = month < at.month or (month == at.month and which != "last")
    return date(at.year if is_this_year else at.year - 1, month, 1), "month"


def _is_month(match: re.Match[str], group: str | int = 0) -> bool:
    """Return whether `may` is the month. The verb is followed by another verb or, in a question, by its subject."""
    before, may, after = match.string[: match.start(group)], match[group], match.string[match.end(group) :]
    if _NUMBER_AFTER.match(after) or _MONTH_BEFORE.search(before):
        return True
    if may != "May":
        return bool(_TIME_PREPOSITION_BEFORE.search(before) and _NO_VERB_AFTER.match(after))
    return not (_SENTENCE_START_BEFORE.search(before) and _SUBJECT_AFTER.match(after))


def _parse_year(match: re.Match[str], at: date) -> DateSpan:
    return date(int(match["year"]), 1, 1), "year"


def _parse_ago(match: re.Match[str], at: date) -> DateSpan:
    count = match["count"].lower()
    return _shift(at, -(int(count) if count.isdigit() else NUMBERS[count]), match["unit"].lower())


def _parse_relative_unit(match: re.Match[str], at: date) -> DateSpan:
    steps = {"last": -1, "past": -1, "this": 0, "next": 1}[match["which"].lower()]
    return _shift(at, steps, match["unit"].lower())


def _shift(at: date, steps: int, unit: str) -> DateSpan:
    if unit == "day":
        return at + timedelta(days=steps), "day"
    if unit == "week":
        return at + timedelta(weeks=steps), "week"
    if unit == "year":
        return date(at.year + steps, 1, 1), "year"
    years, month = divmod(at.month - 1 + steps, 12)
    return date(at.year + years, month + 1, 1), "month"


def _parse_named_day(match: re.Match[str], at: date) -> DateSpan:
    word = " ".join(match["day"].lower().split())
    return at + timedelta(days={"yesterday": -1, "last night": -1, "tomorrow": 1}.get(word, 0)), "day"


def _parse_weekday(match: re.Match[str], at: date) -> DateSpan:
    """Read `on Friday` and `last Friday` as the latest one before, `next` and `this` as the first one after."""
    weekday = WEEKDAYS.index(match["day"].lower())
    if match["which"].lower() in ("next", "this"):
        return at + timedelta(days=(weekday - at.weekday() - 1) % 7 + 1), "day"
    return at - timedelta(days=(at.weekday() - weekday - 1) % 7 + 1), "day"


_PARSERS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], date], DateSpan]], ...] = (
    (_ISO, _parse_calendar),
    (_DAY_FIRST, _parse_calendar),
    (_MONTH_FIRST, _parse_calendar),
    (_MONTH_YEAR, _parse_calendar),
    (_MONTH_ALONE, _parse_month_alone),
    (_BARE_YEAR, _parse_year),
    (_RELATIVE_AGO, _parse_ago),
    (_RELATIVE_UNIT, _parse_relative_unit),
    (_NAMED_DAY, _parse_named_day),
    (_WEEKDAY, _parse_weekday),
)
