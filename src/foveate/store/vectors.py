"""Vectors as a store keeps them, and the seam to whatever searches them. No NumPy here: most stores have no vectors.

Comes in: what a transaction may see (`View`), a question's vector, and groups of kinds. Goes out: the nearest records of
each group, exact under every filter. `segments` searches in this process; a database that can do it in SQL brings its own
`VectorSearch`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

BEATEN = 10
"""Superseded and disputed hits shown beside those that hold, so that a receipt can say what overruled them. They come on
top of the limit: what no longer holds must never crowd out what does."""


def pack(vector: Sequence[float]) -> bytes:
    """Half floats: 0.1 % of the precision matters to nobody's ranking, half the disk does."""
    return struct.pack(f"<{len(vector)}e", *vector)


@dataclass(frozen=True, slots=True)
class View:
    """The vectors of one project and space, as one transaction sees them under one filter."""

    rows: Callable[[str, Mapping[str, Any]], list[tuple[Any, ...]]]
    project: int
    space: int
    within: Mapping[str, Any] = field(default_factory=dict)
    """Parameters of the scope and the filters."""
    dirty: bool = False
    """Whether it holds what is not committed: nobody else may come to see it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One group of a search: kinds by name with their codes (None: any), and how many."""

    kinds: Mapping[str, int] | None
    limit: int


class Scored(NamedTuple):
    """A record that passed the filters. `similarity` is the cosine, to six places."""

    doc: int
    similarity: float
    holds: bool


class VectorSearch(Protocol):
    """What a database brings that searches vectors by itself."""

    def nearest(self, view: View, vector: Sequence[float], asked: Sequence[Asked]) -> list[list[Scored]]:
        """For each group what `best` takes of all that is visible and passes the filters."""
        ...

    def similarities(self, view: View, vector: Sequence[float], docs: Sequence[int]) -> dict[int, float]:
        """The nearness of these records, of those that have a vector."""
        ...


def best(found: Iterable[Scored], limit: int) -> list[Scored]:
    """The nearest that hold, ties by doc, and a few of those between them that no longer do; none that is not near."""
    ranked = sorted((one for one in found if one.similarity > 0), key=lambda one: (-one.similarity, one.doc))
    kept: list[Scored] = []
    holding = beaten = 0
    for one in ranked:
        if holding == limit:
            break
        if one.holds:
            holding += 1
        elif (beaten := beaten + 1) > BEATEN:
            continue
        kept.append(one)
    return kept
