"""Blocks of postings: which records have a term, how often and in how long a text, in 6 bytes a record.

Comes in: (number, code) pairs; goes out: two byte strings, which any SQL database can hold, and back. A row for each
posting costs five times the room and eight times the time of a search; a whole list in one value would be written anew
for each record. So a list is cut into blocks, each about as large as a row may be before databases put it elsewhere.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

SIZE = 128
"""Records in a block: 768 bytes, which SQLite still keeps inside of a page's row."""

MOST = 2**32 - 1
"""The highest number that a record can have."""

MOST_TIMES = 15
LONGEST = 4095
"""What a code can tell apart. Beyond 15 times in a text, one more adds nothing to a score."""

Pair = tuple[int, int]


def code(times: int, length: int) -> int:
    """How often a term is in a field and how long the text is, as one number of 16 bits."""
    return min(times, MOST_TIMES) << 12 | min(length, LONGEST)


def decoded(code: int) -> Pair:
    """(times, length) of a code."""
    return code >> 12, code & LONGEST


def packed(pairs: Sequence[Pair]) -> tuple[bytes, bytes]:
    """A block's numbers and codes, little-endian."""
    docs, codes = array("I", [doc for doc, _ in pairs]), array("H", [code for _, code in pairs])
    if sys.byteorder == "big":
        docs.byteswap()
        codes.byteswap()
    return docs.tobytes(), codes.tobytes()


def joined(docs: Iterable[bytes], codes: Iterable[bytes]) -> tuple[Sequence[int], Sequence[int]]:
    """The numbers and codes of many blocks, one beside the other."""
    numbers, values = array("I", b"".join(docs)), array("H", b"".join(codes))
    if sys.byteorder == "big":
        numbers.byteswap()
        values.byteswap()
    return numbers, values


def with_pairs(docs: bytes, codes: bytes, new: Sequence[Pair]) -> list[Pair]:
    """The pairs of a block and new ones, in the order of their numbers; a new one replaces an old one."""
    held = list(zip(*joined([docs], [codes]), strict=True))
    if not held or new[0][0] > held[-1][0]:
        return [*held, *new]
    return sorted((dict(held) | dict(new)).items())


def without(docs: bytes, codes: bytes, doc: int) -> list[Pair] | None:
    """The pairs of a block without a record; nothing where it was not there."""
    numbers, values = joined([docs], [codes])
    at = bisect_left(numbers, doc)
    if at == len(numbers) or numbers[at] != doc:
        return None
    held = list(zip(numbers, values, strict=True))
    return held[:at] + held[at + 1 :]


def cut(pairs: Sequence[Pair], *, appended: bool) -> Iterator[Sequence[Pair]]:
    """As many blocks as they need: full ones where they were appended, halves where one came in between."""
    count = -(-len(pairs) // SIZE)
    size = SIZE if appended else -(-len(pairs) // count)
    places = [*range(0, len(pairs), size), len(pairs)]
    for start, end in pairwise(places):
        yield pairs[start:end]
