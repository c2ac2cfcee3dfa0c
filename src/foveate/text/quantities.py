"""Quantities in words -> index terms, so that "three kilometres", "3 km" and "3km" match each other.

A number word becomes its digits (`five` -> `5`, which the index of words has anyway). A number with a unit becomes one term
that no word can be: `=3km`, `=20usd`, `=50%`. Records and questions are read alike. The words are English, and nothing is
converted: 1000 m is not 1 km.
"""

from __future__ import annotations

import re

from foveate.text.analysis import fold_variants

_SMALL_NUMBERS = """two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
eighteen nineteen"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
NUMBER_WORDS = (
    {word: n for n, word in enumerate(_SMALL_NUMBERS.split(), 2)}
    | {word: 10 * n for n, word in enumerate(_TENS.split(), 2)}
    | {"dozen": 12, "hundred": 100, "thousand": 1000, "million": 1_000_000}
)
"""Without `one`, which is a pronoun far more often than a number."""

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
_CURRENCY_SIGNS = {"$": "usd", "€": "eur", "£": "gbp"}

_DIGITS = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_COUNT = rf"(?P<count>{_DIGITS}|{'|'.join(NUMBER_WORDS)})"
_UNIT_NAMES = "|".join(sorted(map(re.escape, UNITS), key=len, reverse=True))
_WITH_UNIT = re.compile(rf"(?<![\w.,]){_COUNT}[\s-]?(?P<unit>{_UNIT_NAMES})(?!\w)", re.IGNORECASE)
_PRICE = re.compile(rf"(?P<sign>[$€£])\s?(?P<count>{_DIGITS})(?![\w.])")
_NUMBER_IN_WORDS = re.compile(
    rf"\b(?:(?P<tens>{'|'.join(_TENS.split())})[\s-])?(?P<word>{'|'.join(NUMBER_WORDS)})\b", re.IGNORECASE
)
_HINT = re.compile(rf"\d|\b(?:{'|'.join(NUMBER_WORDS)})\b", re.IGNORECASE)


def terms(text: str) -> tuple[str, ...]:
    """Return the quantities of a text as index terms, each once."""
    text = fold_variants(text)
    if not _HINT.search(text):  # most texts name none
        return ()
    found: dict[str, None] = {}
    for match in _NUMBER_IN_WORDS.finditer(text):
        found[str(_parse_number_words(match))] = None
    for match in _WITH_UNIT.finditer(text):
        found[f"={_normalize_digits(match['count'])}{UNITS[match['unit'].lower()]}"] = None
    for match in _PRICE.finditer(text):
        found[f"={_normalize_digits(match['count'])}{_CURRENCY_SIGNS[match['sign']]}"] = None
    return tuple(found)


def _parse_number_words(match: re.Match[str]) -> int:
    """Read `five`, `twenty` or `twenty-five`. A longer compound is its last word."""
    number = NUMBER_WORDS[match["word"].lower()]
    tens = NUMBER_WORDS[match["tens"].lower()] if match["tens"] else 0
    return tens + number if number < 10 else number


def _normalize_digits(count: str) -> str:
    """Return `1000` for `1,000` and `3` for `3.0` and `three`."""
    if count.lower() in NUMBER_WORDS:
        return str(NUMBER_WORDS[count.lower()])
    digits = count.replace(",", "")
    return digits.rstrip("0").rstrip(".") if "." in digits else digits
