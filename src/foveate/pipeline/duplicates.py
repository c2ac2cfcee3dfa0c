"""Find records that say nearly the same. Pure.

Only records whose sketches share one of their first hashes are compared. These hashes are blocking keys, as in record
linkage: comparing every pair would be quadratic.
"""

from __future__ import annotations

import re
from collections import defaultdict

from foveate.records.kinds import kind_of
from foveate.text import analysis
from foveate.text.analysis import NEGATIONS
from foveate.types import Record

BLOCKING_HASHES = 3
"""Hashes of a sketch that are blocking keys. One in 300 pairs of texts that are 85 % alike shares none of them."""

MIN_SKETCH_OVERLAP = 0.75
"""Share of their hashes that two sketches must have in common before the texts are compared."""

MIN_SIMILARITY = 0.85
"""Share of their terms that two near-duplicates have in common."""

POLARITY_WORDS = frozenset(("off", "down", "out", "under", "above", "below", "before", "after", "until", "only"))
"""Words that search ignores, but that can reverse a statement."""

STATEMENT_KINDS = frozenset(("fact", "note", "episode", "event", "scratch"))
"""Kinds that only state something: the same words mean the same in each of them."""

_HASH_BYTES = 4
_LETTERS = re.compile(r"[a-z]+")


class DuplicateIndex:
    """The records that were selected so far."""

    def __init__(self) -> None:
        self._by_id: dict[str, Record] = {}
        self._by_hash: defaultdict[bytes, list[tuple[Record, frozenset[bytes]]]] = defaultdict(list)

    def add(self, record: Record) -> None:
        self._by_id[record.id] = record
        hashes = _sketch_hashes(record)
        for key in hashes[:BLOCKING_HASHES]:
            self._by_hash[key].append((record, frozenset(hashes)))

    def find(self, record: Record, *, id_only: bool = False) -> Record | None:
        """Return a record with the same id or, unless `id_only`, a near-duplicate."""
        return self._by_id.get(record.id) or (None if id_only else self._find_near_duplicate(record))

    def _find_near_duplicate(self, record: Record) -> Record | None:
        ordered = _sketch_hashes(record)
        hashes = frozenset(ordered)
        min_shared = max(1.0, MIN_SKETCH_OVERLAP * len(ordered))
        compared: set[str] = set()
        for key in ordered[:BLOCKING_HASHES]:
            for other, other_hashes in self._by_hash.get(key, ()):
                if len(hashes & other_hashes) < min_shared or other.id in compared:
                    continue
                compared.add(other.id)
                if are_near_duplicates(record.text, other.text) and _are_comparable(record, other):
                    return other
        return None


def _sketch_hashes(record: Record) -> list[bytes]:
    return [record.sketch[i : i + _HASH_BYTES] for i in range(0, len(record.sketch), _HASH_BYTES)]


def _are_comparable(a: Record, b: Record) -> bool:
    """Return whether the same text means the same in both records.

    The kind and its required fields are part of the meaning: a warning is not a question in the same words, and the same
    note on two files is two notes.
    """
    if a.kind != b.kind:
        return a.kind in STATEMENT_KINDS and b.kind in STATEMENT_KINDS
    return all(a.data.get(name) == b.data.get(name) for name in kind_of(a.kind).required_fields)


def are_near_duplicates(a: str, b: str) -> bool:
    """Return whether two texts have nearly the same words in the same order.

    Numbers, negations and small words decide: `30 s` is not `60 s`, `never push` is not `push`, `retries off` is not
    `retries on`, and `Postgres over Redis` is not `Redis over Postgres`.
    """
    terms_a, terms_b = (tuple(dict.fromkeys(analysis.terms(text))) for text in (a, b))
    shared, either = set(terms_a) & set(terms_b), set(terms_a) | set(terms_b)
    if not shared or len(shared) < MIN_SIMILARITY * len(either):
        return False
    if any(term in NEGATIONS or any(char.isdigit() for char in term) for term in either - shared):
        return False
    if [term for term in terms_a if term in shared] != [term for term in terms_b if term in shared]:
        return False
    return _polarity_words(a) == _polarity_words(b)


def _polarity_words(text: str) -> frozenset[str]:
    return POLARITY_WORDS & set(_LETTERS.findall(text.lower()))
