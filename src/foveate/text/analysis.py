"""Analyser: text -> terms, the same for a record and for a question.

Comes in: any text. Goes out: index terms (stems, whole identifiers, CJK bigrams), in order, repeats kept. It knows
nothing of fields, scores or stores. A change to what it gives must raise `VERSION`: stores then index again by themselves.

Measured on dialogue and code: stemming and identifier-aware tokens are worth more than any small embedding model, so
this is where relevance begins.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache
from itertools import chain
from typing import Any

VERSION = 2

TELLING = 8
"""The most telling terms of a question: what has all of these answers it in full, however much else was said."""

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

NEGATIONS = frozenset(("no", "not", "never", "without", "cannot", "nobody", "nothing"))
"""Words that turn a statement around."""

MAX_CACHED = 200_000
"""Words whose terms are remembered: a few ten megabytes at most, and nearly every word of a text is an old one."""

_CJK_RANGES = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD = re.compile(r"\w+")
_BLANKED = bytes(byte if chr(byte).isalnum() or byte == ord("_") else ord(" ") for byte in range(128)) + b" " * 128
"""What is of no word, as a space: words are split off in a quarter of the time, where a text is ASCII."""
_SPOKEN = re.compile(r"\w+(?:['’]\w+)*")
_NEGATED = re.compile(r"n['’]t$", re.IGNORECASE)
_CONTRACTED = re.compile(r"['’](?:s|m|d|re|ve|ll)$", re.IGNORECASE)
_RUN = re.compile(f"[{_CJK_RANGES}]+|[^\\W{_CJK_RANGES}]+")
_CJK = re.compile(f"[{_CJK_RANGES}]")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^\W\dA-Za-z_]+")


class _Known(dict[str, tuple[str, ...]]):
    """The terms of each word, worked out when it is first met."""

    def __missing__(self, word: str) -> tuple[str, ...]:
        if len(self) >= MAX_CACHED:
            self.clear()
        stems = self[word] = tuple(_stemmer().stemWords(_parts(word)))
        return stems


_known = _Known()


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    import Stemmer  # a compiled Snowball: 150 times the speed of the pure one

    return Stemmer.Stemmer("english", 0)  # without a cache of its own: no word comes here twice


@lru_cache(maxsize=8)  # a record's text is analysed for its sketch and again for its postings
def terms(text: str) -> tuple[str, ...]:
    """The index terms of a text, in order; stop words are gone, identifiers are there whole and in parts."""
    return tuple(chain.from_iterable(map(_known.__getitem__, _spoken(text))))


def stems(words: list[str]) -> list[str]:
    """The stems of plain words in lower case, many at once."""
    found: list[str] = _stemmer().stemWords(words)
    return found


def counted(text: str) -> Counter[str]:
    """How often a text has each index term. For code: nothing is contracted there, and a quote ends a word."""
    plain = text.isascii()
    words = text.encode("ascii").translate(_BLANKED).decode("ascii").split() if plain else _WORD.findall(text)
    return Counter(chain.from_iterable(map(_known.__getitem__, words)))


def words(text: str) -> list[str]:
    """The words of a text before stemming, lower-case, without stop words: for people to read."""
    return [part for word in _spoken(text) for part in _parts(word)]


def plain(text: str) -> list[str]:
    """The terms of a text that are a word by themselves, and no part of an identifier."""
    return [parts[0] for word in _spoken(text) if len(parts := _known[word]) == 1]


def names(text: str) -> str:
    """A name in the form in which variants meet: `Foo-Bar`, `foo_bar` and `fooBar` are all `foobar`."""
    return "".join(_RUN.findall(_fold(text).replace("_", "").casefold()))


def _spoken(text: str) -> list[str]:
    return (_SPOKEN if "'" in text or "’" in text else _WORD).findall(text)


def _parts(word: str) -> list[str]:
    """A spoken word taken apart: contractions undone, identifiers split, scripts told apart."""
    if word.isascii() and "'" not in word:  # nearly every word, and none of what follows
        return _identifier(word)
    if _NEGATED.search(word):
        stem = word[:-3]
        return ["not"] if stem.lower() in ("ca", "wo", "sha") else [*_parts(stem), "not"]
    word = _CONTRACTED.sub("", word)
    found: list[str] = []
    for run in _RUN.findall(_fold(word)):
        if not run.isascii() and _CJK.match(run):
            found += _bigrams(run)
        else:
            found += _identifier(run)
    return found


def _identifier(run: str) -> list[str]:
    """The whole form without separators, then its parts: `getUserName` -> getusername get user name."""
    whole = run.lower().replace("_", "")
    if not whole or whole in STOP_WORDS:
        return []
    if whole == run and run.isascii() and run.isalpha():
        return [whole[:MAX_TERM]]
    parts = [part.lower()[:MAX_TERM] for part in _PART.findall(run)]
    if len(parts) < 2:
        return [whole[:MAX_TERM]]
    return [whole[:MAX_TERM], *(part for part in parts if part not in STOP_WORDS)]


def _bigrams(run: str) -> list[str]:
    return [run] if len(run) == 1 else [run[i : i + 2] for i in range(len(run) - 1)]


def _fold(text: str) -> str:
    """Compatibility forms folded, Latin accents dropped: `café` meets `cafe`, full-width meets plain."""
    if text.isascii():
        return text
    folded = unicodedata.normalize("NFKD", text)
    return unicodedata.normalize("NFC", "".join(c for c in folded if not "\u0300" <= c <= "\u036f"))
