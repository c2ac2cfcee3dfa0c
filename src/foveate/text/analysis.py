"""The analyzer: text -> index terms (stems, whole identifiers, CJK bigrams), the same for a record and for a question.

It knows nothing of fields, scores or stores. Stemming and terms that keep identifiers whole are worth more than any small
embedding model, measured on dialogues and on code, so relevance begins here.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache
from itertools import chain
from typing import Any

from foveate.errors import FoveateError

VERSION = 4
"""Raise it when the terms of any text change, dates and quantities included: stores then rebuild their index."""

MAX_SIGNIFICANT_TERMS = 8
"""A record with all of the eight most significant terms of a question answers it in full, however long the question is."""

MAX_TERM_CHARS = 64
"""Longer runs (base64, hashes) are cut, because no query contains the end of one."""

MAX_CACHED_WORDS = 200_000
"""Nearly every word of a text occurred before. This many words take a few times ten megabytes."""

# Negations stay terms: "push to main" and "never push to main" must not become the same.
STOP_WORDS = frozenset(
    """a about above after again all also am an and any are as at be because been before being below between both but
    by can could did do does doing done down during each few for from further had has have having he her here hers
    herself him himself his how i if in into is it its itself just let me more most my myself of off on once only or
    other our ours ourselves out over own same she should so some such than that the their theirs them themselves
    then there these they this those through to too under until up us very was we were what when where which while
    who whom whose why will with would you your yours yourself yourselves""".split()  # noqa: SIM905
)

NEGATIONS = frozenset(("no", "not", "never", "without", "cannot", "nobody", "nothing"))
"""Words that reverse a statement."""

_CJK_RANGES = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD = re.compile(r"\w+")
_WORD_WITH_APOSTROPHE = re.compile(r"\w+(?:['’]\w+)*")
_NEGATION_SUFFIX = re.compile(r"n['’]t$", re.IGNORECASE)
_CONTRACTION_SUFFIX = re.compile(r"['’](?:s|m|d|re|ve|ll)$", re.IGNORECASE)
_RUN = re.compile(f"[{_CJK_RANGES}]+|[^\\W{_CJK_RANGES}]+")
_CJK = re.compile(f"[{_CJK_RANGES}]")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^\W\dA-Za-z_]+")
_NON_WORD_TO_SPACE = bytes(byte if chr(byte).isalnum() or byte == ord("_") else ord(" ") for byte in range(128)) + b" " * 128
"""A table for `bytes.translate`, which splits ASCII text into words in a quarter of the time of a pattern."""


class _TermCache(dict[str, tuple[str, ...]]):
    """The terms of each word, computed when the word is first seen."""

    def __missing__(self, word: str) -> tuple[str, ...]:
        if len(self) >= MAX_CACHED_WORDS:
            self.clear()
        stems = self[word] = tuple(_stemmer().stemWords(_split_word(word)))
        return stems


_term_cache = _TermCache()


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    try:
        import Stemmer  # compiled Snowball, 44 times as fast as the one in Python, and only loaded for text
    except ImportError:
        return _python_stemmer()
    return Stemmer.Stemmer("english", 0)  # without a cache of its own: `_TermCache` asks for each word once


def _python_stemmer() -> Any:
    """Return the stemmer for a Python that PyStemmer has no wheel for. It gives the same stems."""
    try:
        from snowballstemmer.english_stemmer import EnglishStemmer
    except ImportError as error:
        raise FoveateError(
            f"No stemmer is installed ({error}). Run `pip install PyStemmer` or `pip install snowballstemmer`."
        ) from None
    return EnglishStemmer()


# --- terms -----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=8)  # a record's text is analyzed for its sketch and again for its postings
def terms(text: str) -> tuple[str, ...]:
    """Return the index terms of a text in order, with repeats and without stop words; identifiers whole and in parts."""
    return tuple(chain.from_iterable(map(_term_cache.__getitem__, _split_words(text))))


def stems(words: list[str]) -> list[str]:
    """Return the stems of plain words in lower case."""
    stemmed: list[str] = _stemmer().stemWords(words)
    return stemmed


def term_frequencies(text: str) -> Counter[str]:
    """Count the index terms of a text of code, where a quote ends a word and nothing is contracted."""
    if text.isascii():
        words = text.encode("ascii").translate(_NON_WORD_TO_SPACE).decode("ascii").split()
    else:
        words = _WORD.findall(text)
    return Counter(chain.from_iterable(map(_term_cache.__getitem__, words)))


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, before stemming and without stop words, for people to read."""
    return [part for word in _split_words(text) for part in _split_word(word)]


def whole_word_terms(text: str) -> list[str]:
    """Return the terms that are a word by themselves, and not a part of an identifier."""
    return [terms[0] for word in _split_words(text) if len(terms := _term_cache[word]) == 1]


def normalize_name(text: str) -> str:
    """Return a name in the form in which its variants are equal: `foobar` for `Foo-Bar`, `foo_bar` and `fooBar`."""
    return "".join(_RUN.findall(_fold_accents(text).replace("_", "").casefold()))


# --- words -----------------------------------------------------------------------------------------------------------


def _split_words(text: str) -> list[str]:
    return (_WORD_WITH_APOSTROPHE if "'" in text or "’" in text else _WORD).findall(text)


def _split_word(word: str) -> list[str]:
    """Split a word as it is written: contractions are undone, identifiers and scripts separated."""
    if word.isascii() and "'" not in word:  # nearly every word
        return _split_identifier(word)
    if _NEGATION_SUFFIX.search(word):
        stem = word[:-3]
        return ["not"] if stem.lower() in ("ca", "wo", "sha") else [*_split_word(stem), "not"]
    parts: list[str] = []
    for run in _RUN.findall(_fold_accents(_CONTRACTION_SUFFIX.sub("", word))):
        parts += _bigrams(run) if not run.isascii() and _CJK.match(run) else _split_identifier(run)
    return parts


def _split_identifier(run: str) -> list[str]:
    """Return the whole form without separators, then its parts: `getUserName` -> getusername get user name."""
    whole = run.lower().replace("_", "")
    if not whole or whole in STOP_WORDS:
        return []
    if whole == run and run.isascii() and run.isalpha():
        return [whole[:MAX_TERM_CHARS]]
    parts = [part.lower()[:MAX_TERM_CHARS] for part in _PART.findall(run)]
    if len(parts) < 2:
        return [whole[:MAX_TERM_CHARS]]
    return [whole[:MAX_TERM_CHARS], *(part for part in parts if part not in STOP_WORDS)]


def _bigrams(run: str) -> list[str]:
    return [run] if len(run) == 1 else [run[i : i + 2] for i in range(len(run) - 1)]


def _fold_accents(text: str) -> str:
    """Fold compatibility forms and drop Latin accents: `café` becomes `cafe`, full-width letters become plain ones."""
    if text.isascii():
        return text
    folded = unicodedata.normalize("NFKD", text)
    return unicodedata.normalize("NFC", "".join(c for c in folded if not "\u0300" <= c <= "\u036f"))


_ASCII_VARIANT = re.compile(r"[ſ\u212aİı]|(?![0-9])\d")
_LETTER_VARIANTS = {"ſ": "s", "\u212a": "k", "İ": "i", "ı": "i"}


def fold_variants(text: str) -> str:
    """Return a text of the same length with ASCII digits, and without the letters that `re.IGNORECASE` takes for ASCII ones.

    A pattern for `5 days` then matches only what a table of `days` knows: without this, "7ſ" is seven seconds for the
    pattern and nothing for the table.
    """
    if text.isascii():
        return text
    return _ASCII_VARIANT.sub(lambda match: _LETTER_VARIANTS.get(match[0]) or str(unicodedata.decimal(match[0])), text)
