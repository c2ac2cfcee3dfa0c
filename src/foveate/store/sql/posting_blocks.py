"""Posting lists as blocks of bytes, which any SQL database can hold.

A posting says that a record has a term in a field. It takes 6 bytes: 4 for the number of the record (`doc`) and 2 for a code
of the term's frequency and the length of the text.

One row for each posting would take five times the disk space, and a search eight times as long. One row for a whole list
would be rewritten for each new record. So a list is split into blocks, each nearly as large as a database keeps in a row.
Decision 024 has the figures.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

BLOCK_SIZE = 128
"""Postings in a block. They take 768 bytes, which SQLite still keeps inside the page of their row."""

MAX_DOC = 2**32 - 1
"""The highest number of a record that fits into 4 bytes."""

MAX_FREQUENCY = 15
MAX_LENGTH = 4095
"""Limits of the two parts of a code. A frequency above 15 adds almost nothing to a BM25 score."""

Posting = tuple[int, int]
"""The number of a record, and a code."""


def encode(frequency: int, length: int) -> int:
    """Pack the frequency of a term and the length of the text into one number of 16 bits."""
    return min(frequency, MAX_FREQUENCY) << 12 | min(length, MAX_LENGTH)


def decode(code: int) -> tuple[int, int]:
    """Return the frequency and the length of a code."""
    return code >> 12, code & MAX_LENGTH


def pack(postings: Sequence[Posting]) -> tuple[bytes, bytes]:
    """Return the docs and the codes of a block as little-endian bytes."""
    docs, codes = array("I", [doc for doc, _ in postings]), array("H", [code for _, code in postings])
    # A store may move between machines, so the byte order is fixed.
    if sys.byteorder == "big":
        docs.byteswap()
        codes.byteswap()
    return docs.tobytes(), codes.tobytes()


def concat(docs: Iterable[bytes], codes: Iterable[bytes]) -> tuple[Sequence[int], Sequence[int]]:
    """Unpack several blocks into one sequence of docs and one of codes."""
    all_docs, all_codes = array("I", b"".join(docs)), array("H", b"".join(codes))
    if sys.byteorder == "big":
        all_docs.byteswap()
        all_codes.byteswap()
    return all_docs, all_codes


def merge_postings(docs: bytes, codes: bytes, new: Sequence[Posting]) -> list[Posting]:
    """Return the postings of a block together with new ones, by doc. A new posting replaces an old one of the same doc."""
    old = list(zip(*concat([docs], [codes]), strict=True))
    if not old or new[0][0] > old[-1][0]:  # the usual case: records are numbered upwards
        return [*old, *new]
    return sorted((dict(old) | dict(new)).items())


def remove_doc(docs: bytes, codes: bytes, doc: int) -> list[Posting] | None:
    """Return the postings of a block without those of one record, or None if the block has none of it."""
    all_docs, all_codes = concat([docs], [codes])
    index = bisect_left(all_docs, doc)
    if index == len(all_docs) or all_docs[index] != doc:
        return None
    postings = list(zip(all_docs, all_codes, strict=True))
    return postings[:index] + postings[index + 1 :]


def split_blocks(postings: Sequence[Posting], *, appended: bool) -> Iterator[Sequence[Posting]]:
    """Split postings into as few blocks as possible.

    `appended` says that the new ones came at the end, where lists grow: all blocks but the last are full. Otherwise the
    blocks have equal sizes, so that each has room for the next posting in the middle, as after a split of a B-tree page.
    """
    count = -(-len(postings) // BLOCK_SIZE)
    size = BLOCK_SIZE if appended else -(-len(postings) // count)
    bounds = [*range(0, len(postings), size), len(postings)]
    for start, end in pairwise(bounds):
        yield postings[start:end]
