"""The embedder `builtin`: a table of vectors for 40,000 stems. The vector of a text is the sum of its stems' vectors.

`static_vectors.bin` is made by `training/`; decision 066 says from what, and how good it is. All sums are of whole numbers,
so a text has the same vector on every machine.

A row is added as one long integer with 32 bits for each dimension, because Python adds such numbers at the speed of C.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from math import sqrt

from foveate.text import analysis

VERSION = 1
"""Raise it with every new file: vectors of two files must not be compared."""

MAGIC = b"foveate vectors 1\n"

LANE_BYTES = 4
"""Bytes of a dimension in the long integer of a row."""

BIAS = 128
"""Added to every entry of a row, so that no part of the long integer is negative."""

MAX_SCALE = 255

MAX_TERMS = 4_000
"""Terms of a text that count. The sum of so many fits into 32 bits, and a longer text has no single meaning."""

MAX_CACHED_ROWS = 5_000
"""Rows that are kept as long integers, which take 5 MB."""


class StaticVectors:
    """The table of vectors. Opened once for each process, when the first text is embedded."""

    def __init__(self, content: bytes) -> None:
        header, rest = content[len(MAGIC) : len(MAGIC) + 8], content[len(MAGIC) + 8 :]
        self.dim, words_size = struct.unpack("<II", header)
        words = rest[:words_size].decode("ascii").split("\n")
        self._row_of = {word: row for row, word in enumerate(words)}
        self._scales = rest[words_size : words_size + len(words)]
        self._entries = memoryview(rest)[words_size + len(words) :]
        self._rows: dict[str, int] = {}

    def vector(self, text: str) -> tuple[float, ...]:
        """Return the vector of a text at length one, or zeros if it has no known stem."""
        counts = Counter(term for term in analysis.terms(text)[:MAX_TERMS] if term in self._row_of)
        total, weight = 0, 0
        for term, count in counts.items():
            scale = count * self._scales[self._row_of[term]]
            total += scale * self._row(term)
            weight += scale
        lanes = struct.unpack(f"<{self.dim}I", total.to_bytes(self.dim * LANE_BYTES, "little"))
        sums = [lane - weight * BIAS for lane in lanes]
        length = sqrt(sum(value * value for value in sums))
        return tuple(value / length for value in sums) if length else (0.0,) * self.dim

    def _row(self, term: str) -> int:
        row = self._rows.get(term)
        if row is None:
            start = self._row_of[term] * self.dim
            lanes = bytearray(self.dim * LANE_BYTES)
            if len(self._rows) >= MAX_CACHED_ROWS:
                self._rows.clear()
            lanes[::LANE_BYTES] = self._entries[start : start + self.dim]
            row = self._rows[term] = int.from_bytes(lanes, "little")
        return row


class BuiltinEmbedder:
    """Word vectors that need no download. A query has the same vector as a text with its words."""

    dim = 256
    fingerprint = f"builtin:{dim}:{VERSION}"

    def embed(self, texts: Sequence[str], /) -> list[tuple[float, ...]]:
        table = static_vectors()
        return [table.vector(text) for text in texts]

    def query(self, text: str, /) -> tuple[float, ...]:
        return static_vectors().vector(text)


@lru_cache(maxsize=1)
def static_vectors() -> StaticVectors:
    """Return the table of this package."""
    return StaticVectors((files("foveate.text") / "static_vectors.bin").read_bytes())


def to_bytes(words: Sequence[str], scales: Sequence[int], entries: Sequence[bytes]) -> bytes:
    """Return the content of a file: entries are signed bytes plus `BIAS`, a scale is from 1 to `MAX_SCALE`."""
    text = "\n".join(words).encode("ascii")
    return MAGIC + struct.pack("<II", len(entries[0]), len(text)) + text + bytes(scales) + b"".join(entries)
