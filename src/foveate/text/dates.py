"""Dates in words -> index terms, so that "last May", "14 May 2026" and "2026-05-14" meet.

Comes in: a text and the time at which it was said: "yesterday" in an old note is not yesterday. Goes out: terms for the
days, weeks, months and years that it names (`@2026-05-14`, `@2026-w20`, `@2026-05`, `@2026`), which no word can be. A record
is found under everything coarser too, a question asks for what it names: a day also finds a note that knows the month only.
English; times are UTC.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Literal

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
_BEFORE = r"(?:last|this|next|past|in|of|since|during|early|late|mid|by|until|around|from|before|after)"
_COUNT = rf"(?P<count>\d{{1,3}}|{'|'.join(NUMBERS)})"

_ISO = re.compile(rf"\b{_YEAR}-(?P<month>[01]\d)(?:-(?P<day>[0-3]\d))?(?![\d-])")
_DAY_FIRST = re.compile(rf"\b{_DAY}\s+(?:of\s+)?{_MONTH}(?:,?\s+{_YEAR})?\b", re.IGNORECASE)
_MONTH_FIRST = re.compile(rf"\b{_MONTH}\s+{_DAY}\b(?!:)(?:,?\s+{_YEAR}\b)?", re.IGNORECASE)
_MONTH_YEAR = re.compile(rf"\b{_MONTH},?\s+(?:of\s+)?{_YEAR}\b", re.IGNORECASE)
# `may` and `march` are verbs too: a month without a day or year needs a word before it that only a time has.
_MONTH_ALONE = re.compile(rf"\b(?P<which>{_BEFORE})[\s-]+{_MONTH}\b(?!\s+\d)", re.IGNORECASE)
_AGO = re.compile(rf"\b{_COUNT}\s+(?:of\s+)?(?P<unit>day|week|month|year)s?\s+(?:ago|earlier|before)\b", re.IGNORECASE)
_UNIT = re.compile(r"\b(?P<which>last|past|this|next)\s+(?P<unit>week(?!end)|month|year)\b", re.IGNORECASE)
_NAMED = re.compile(r"\b(?P<day>today|tonight|yesterday|last\s+night|tomorrow)\b", re.IGNORECASE)
_WEEKDAY = re.compile(rf"\b(?:(?P<which>last|this|next|on)\s+)(?P<day>{'|'.join(WEEKDAYS)})\b", re.IGNORECASE)
_BARE_YEAR = re.compile(rf"\b(?:in|of|since|during|from|by|until|before|after)\s+{_YEAR}\b(?!-)", re.IGNORECASE)
_HINT = re.compile(
    rf"\b(?:(?:19|20)\d\d|yesterday|today|tonight|last\s+night|tomorrow|days?|weeks?|months?|years?|{'|'.join(WEEKDAYS)}"
    rf"|{_MONTH})\b"
)
"""Most texts name no date: one look spares them ten."""

Unit = Literal["day", "week", "month", "year"]
UNITS: tuple[Unit, ...] = ("day", "week", "month", "year")
Span = tuple[date, Unit]
"""A day and how much of the calendar around it is meant."""


def record_terms(text: str, at: int) -> tuple[str, ...]:
    """Under which dates a record is found: its own day, week and month, and what it names with everything coarser."""
    day = _day(at)
    if day is None:
        return ()
    found = dict.fromkeys(_within(day, "day")[:-1])  # nearly all of a store is of one year: it would tell nothing apart
    for first, unit in _named(text, day):
        found |= dict.fromkeys(_within(first, unit))
    return tuple(found)


def question_terms(text: str, now: int) -> tuple[str, ...]:
    """The dates that a question asks about."""
    day = _day(now)
    if day is None:
        return ()
    found: dict[str, None] = {}
    for first, unit in _named(text, day):
        found[_term(first, unit)] = None
        if unit == "day":
            found[_term(first, "month")] = None
    return tuple(found)


def _day(at: int) -> date | None:
    try:
        return datetime.fromtimestamp(at / 1000, UTC).date()
    except (ValueError, OverflowError, OSError):
        return None


def _term(day: date, unit: Unit) -> str:
    if unit == "week":
        year, week, _ = day.isocalendar()
        return f"@{year}-w{week:02}"
    return "@" + day.isoformat()[: {"day": 10, "month": 7, "year": 4}[unit]]


@lru_cache(maxsize=1000)  # most records are of a few days
def _within(day: date, unit: Unit) -> tuple[str, ...]:
    """A span and what it lies in; a week may lie in two months and is said to lie in none."""
    parts = (unit,) if unit == "week" else UNITS[UNITS.index(unit) :]
    return tuple(_term(day, part) for part in parts)


# --- reading -------------------------------------------------------------------------------------------------------


def _named(text: str, at: date) -> Iterator[Span]:
    """The spans that a text names, as seen from a day."""
    if not _HINT.search(text.lower()):
        return
    for pattern, read in _READERS:
        for match in pattern.finditer(text):
            try:
                span = read(match, at)
            except (ValueError, OverflowError):  # the 31st of February, the year 0
                continue
            if span is not None:
                yield span


def _calendar(match: re.Match[str], at: date) -> Span | None:
    """A month with a day, a year or both. Without a year, the latest one that is not ahead."""
    parts = match.groupdict()
    month = _month(parts["month"])
    day, year = parts.get("day"), parts.get("year")
    if year is None:
        named = date(at.year, month, int(day or 1))
        return (named if named <= at else named.replace(year=at.year - 1)), "day" if day else "month"
    return date(int(year), month, int(day or 1)), "day" if day else "month"


def _month(text: str) -> int:
    return int(text) if text.isdigit() else next(n for n, name in enumerate(MONTHS, 1) if name.startswith(text[:3].lower()))


def _alone(match: re.Match[str], at: date) -> Span | None:
    """`in May`, `last May`, `next May`."""
    month, which = _month(match["month"]), match["which"].lower()
    if which == "next":
        return date(at.year + (month <= at.month), month, 1), "month"
    past = month < at.month or (month == at.month and which != "last")
    return date(at.year if past else at.year - 1, month, 1), "month"


def _year(match: re.Match[str], at: date) -> Span | None:
    return date(int(match["year"]), 1, 1), "year"


def _ago(match: re.Match[str], at: date) -> Span | None:
    count = match["count"].lower()
    return _moved(at, -(int(count) if count.isdigit() else NUMBERS[count]), match["unit"].lower())


def _relative(match: re.Match[str], at: date) -> Span | None:
    step = {"last": -1, "past": -1, "this": 0, "next": 1}[match["which"].lower()]
    return _moved(at, step, match["unit"].lower())


def _moved(at: date, steps: int, unit: str) -> Span | None:
    if unit == "day":
        return at + timedelta(days=steps), "day"
    if unit == "week":
        return at + timedelta(weeks=steps), "week"
    if unit == "year":
        return date(at.year + steps, 1, 1), "year"
    years, month = divmod(at.month - 1 + steps, 12)
    return date(at.year + years, month + 1, 1), "month"


def _spoken(match: re.Match[str], at: date) -> Span | None:
    word = " ".join(match["day"].lower().split())
    return at + timedelta(days={"yesterday": -1, "last night": -1, "tomorrow": 1}.get(word, 0)), "day"


def _weekday(match: re.Match[str], at: date) -> Span | None:
    """`on Friday` and `last Friday` are the latest one before; `next` and `this` the first one to come."""
    there = WEEKDAYS.index(match["day"].lower())
    if match["which"].lower() in ("next", "this"):
        return at + timedelta(days=(there - at.weekday() - 1) % 7 + 1), "day"
    return at - timedelta(days=(at.weekday() - there - 1) % 7 + 1), "day"


_READERS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], date], Span | None]], ...] = (
    (_ISO, _calendar),
    (_DAY_FIRST, _calendar),
    (_MONTH_FIRST, _calendar),
    (_MONTH_YEAR, _calendar),
    (_MONTH_ALONE, _alone),
    (_BARE_YEAR, _year),
    (_AGO, _ago),
    (_UNIT, _relative),
    (_NAMED, _spoken),
    (_WEEKDAY, _weekday),
)
