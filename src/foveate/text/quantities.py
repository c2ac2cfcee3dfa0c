"""Quantities in words -> index terms, so that "three kilometres", "3 km" and "3km" meet.

Comes in: a text. Goes out: the figure of a number word (`five` -> `5`, as the word for word index has figures anyway), and
for a number with a unit one term that no word can be (`=3km`, `=20usd`, `=50%`). The same for a record and for a question.
English; nothing is converted: 1000 m is not 1 km.
"""

from __future__ import annotations

import re

_SMALL = """two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
WORDS = (
    {word: n for n, word in enumerate(_SMALL.split(), 2)}
    | {word: 10 * n for n, word in enumerate(_TENS.split(), 2)}
    | {"dozen": 12, "hundred": 100, "thousand": 1000, "million": 1_000_000}
)
"""`one` is not among them: it is a pronoun far more often than a number."""

UNITS = {
    name: unit
    for unit, names in {
        "km": "km kilometre kilometres kilometer kilometers kms",
        "m": "m metre metres meter meters",
        "mi": "mi mile miles",
        "kg": "kg kilo kilos kilogram kilograms",
        "g": "g gram grams",
        "ms": "ms millisecond milliseconds",
        "s": "s sec secs second seconds",
        "min": "min mins minute minutes",
        "h": "h hr hrs hour hours",
        "d": "day days",
        "w": "week weeks",
        "mo": "month months",
        "y": "year years yrs",
        "kb": "kb kilobyte kilobytes",
        "mb": "mb megabyte megabytes",
        "gb": "gb gigabyte gigabytes",
        "tb": "tb terabyte terabytes",
        "%": "% percent pct",
        "usd": "dollar dollars usd bucks",
        "eur": "euro euros eur",
        "gbp": "pound pounds gbp",
    }.items()
    for name in names.split()
}
_MONEY = {"$": "usd", "€": "eur", "£": "gbp"}

_FIGURE = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_COUNT = rf"(?P<count>{_FIGURE}|{'|'.join(WORDS)})"
_NAMES = "|".join(sorted(map(re.escape, UNITS), key=len, reverse=True))
_WITH_UNIT = re.compile(rf"(?<![\w.,]){_COUNT}[\s-]?(?P<unit>{_NAMES})(?!\w)", re.IGNORECASE)
_PRICE = re.compile(rf"(?P<sign>[$€£])\s?(?P<count>{_FIGURE})(?![\w.])")
_SPOKEN = re.compile(rf"\b(?:(?P<tens>{'|'.join(_TENS.split())})[\s-])?(?P<word>{'|'.join(WORDS)})\b", re.IGNORECASE)
_HINT = re.compile(rf"\d|\b(?:{'|'.join(WORDS)})\b", re.IGNORECASE)


def terms(text: str) -> tuple[str, ...]:
    """The quantities of a text as index terms, each once."""
    if not _HINT.search(text):  # most texts name none
        return ()
    found: dict[str, None] = {}
    for match in _SPOKEN.finditer(text):
        found[str(_spoken(match))] = None
    for match in _WITH_UNIT.finditer(text):
        found[f"={_figure(match['count'])}{UNITS[match['unit'].lower()]}"] = None
    for match in _PRICE.finditer(text):
        found[f"={_figure(match['count'])}{_MONEY[match['sign']]}"] = None
    return tuple(found)


def _spoken(match: re.Match[str]) -> int:
    """`five`, `twenty`, `twenty-five`; larger compounds are their last word."""
    number = WORDS[match["word"].lower()]
    tens = WORDS[match["tens"].lower()] if match["tens"] else 0
    return tens + number if number < 10 else number


def _figure(count: str) -> str:
    """`1,000` is `1000`, `3.0` is `3`."""
    if count.lower() in WORDS:
        return str(WORDS[count.lower()])
    plain = count.replace(",", "")
    return plain.rstrip("0").rstrip(".") if "." in plain else plain
