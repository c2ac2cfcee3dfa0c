"""Analyser: text -> terms, the same for a record and for a question.

Comes in: any text. Goes out: index terms (stems, whole identifiers, CJK bigrams), in order, repeats kept. It knows
nothing of fields, scores or stores. A change to what it gives must raise `VERSION`: stores then index again by themselves.

Measured on dialogue and code: stemming and identifier-aware tokens are worth more than any small embedding model, so
this is where relevance begins.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Any

VERSION = 1

MAX_TERM = 64
"""Longer runs (base64, hashes in a row) are cut: nobody searches for the tail of one."""

# Negations stay: "push to main" and "never push to main" must not become the same terms.
STOP_WORDS = frozenset(
    """a about above after again all also am an and any are as at be because been before being below between both but
    by can could did do does doing done down during each few for from further had has have having he her here hers
    herself him himself his how i if in into is it its itself just let me more most my myself of off on once only or
    other our ours ourselves out over own same she should so some such than that the their theirs them themselves
    then there these they this those through to too under until up us very was we were what when where which while
    who whom whose why will with would you your yours yourself yourselves""".split()  # noqa: SIM905
)

_CONTRACTION = re.compile(r"['’](?:s|m|d|re|ve|ll)\b", re.IGNORECASE)
_NEGATION = re.compile(r"n['’]t\b", re.IGNORECASE)
_CJK_RANGES = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_CJK = re.compile(f"[{_CJK_RANGES}]")
_PLAIN = re.compile(r"[a-z0-9]+")
_TOKEN = re.compile(f"[{_CJK_RANGES}]+|[^\\W{_CJK_RANGES}]+")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^\W\dA-Za-z_]+")
_IDENTIFIER = re.compile(r"_|[a-z0-9][A-Z]|[A-Z][A-Z][a-z]|[a-zA-Z][0-9]|[0-9][a-zA-Z]")


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    import Stemmer  # a compiled Snowball: 150 times the speed of the pure one

    return Stemmer.Stemmer("english", 50_000)


@lru_cache(maxsize=8)  # a record's text is analysed for its sketch and again for its postings
def terms(text: str) -> tuple[str, ...]:
    """The index terms of a text, in order; stop words are gone, identifiers are there whole and in parts."""
    return tuple(_stemmer().stemWords(_words(text)))


def words(text: str) -> list[str]:
    """The words of a text before stemming, lower-case, without stop words: for people to read."""
    return _words(text)


def names(text: str) -> str:
    """A name in the form in which variants meet: `Foo-Bar`, `foo_bar` and `fooBar` are all `foobar`."""
    return "".join(_TOKEN.findall(_fold(text).replace("_", "").casefold()))


def _words(text: str) -> list[str]:
    if "'" in text or "’" in text:
        text = _CONTRACTION.sub("", _NEGATION.sub(" not", text))
    lowered = text.lower()
    if text.isascii() and not _IDENTIFIER.search(text):
        return [word for word in _PLAIN.findall(lowered) if word not in STOP_WORDS and len(word) <= MAX_TERM]
    found: list[str] = []
    for token in _TOKEN.findall(text if text.isascii() else _fold(text)):
        if not token.isascii() and _CJK.match(token):
            found.extend(_bigrams(token))
        elif (low := token.lower()) not in STOP_WORDS:
            found.extend(_identifier(token, low))
    return found


def _identifier(token: str, low: str) -> list[str]:
    """The whole form without separators, then its parts: `getUserName` -> getusername get user name."""
    parts = _split(token)
    if len(parts) < 2:
        return [low.strip("_")[:MAX_TERM]] if low.strip("_") else []
    whole = low.replace("_", "")
    return [whole[:MAX_TERM], *(part for part in parts if part not in STOP_WORDS)]


@lru_cache(maxsize=20_000)
def _split(token: str) -> tuple[str, ...]:
    return tuple(part.lower()[:MAX_TERM] for part in _PART.findall(token))


def _bigrams(run: str) -> list[str]:
    return [run] if len(run) == 1 else [run[i : i + 2] for i in range(len(run) - 1)]


def _fold(text: str) -> str:
    """Compatibility forms folded, Latin accents dropped: `café` meets `cafe`, full-width meets plain."""
    if text.isascii():
        return text
    folded = unicodedata.normalize("NFKD", text)
    return unicodedata.normalize("NFC", "".join(c for c in folded if not "\u0300" <= c <= "\u036f"))
