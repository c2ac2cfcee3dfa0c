"""Types shared by the vector searches of the stores, and the order of their hits.

`sqlite/vectors.py` searches in this process, `postgres/vectors.py` in SQL. This module does not import NumPy, because most
stores hold no vectors.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from foveate.store.protocol import SearchGroup

MAX_SUPERSEDED_HITS = 10
"""Superseded and disputed hits that a search returns in addition to its limit, so that a receipt can name the record that
overruled them. They do not count towards the limit: an outdated record must never crowd out a current one."""


def pack(vector: Sequence[float]) -> bytes:
    """Return a vector as half floats. They need half the disk, and the error of 0.1 % does not change a ranking."""
    return struct.pack(f"<{len(vector)}e", *vector)


@dataclass(frozen=True, slots=True)
class VectorView:
    """The vectors of one project and embedder that one transaction sees, with the filters of one search."""

    rows: Callable[[str, Mapping[str, Any]], list[tuple[Any, ...]]]
    """Runs a named query in the transaction."""
    project: int
    namespace_id: int
    """Number of the embedding namespace: the vectors of one embedder at one dimension."""
    kind_codes: Mapping[str, int]
    """The code of each kind that the store has ever stored."""
    filter_params: Mapping[str, Any] = field(default_factory=dict)
    """Parameters of the scope and the filters for the queries."""
    has_uncommitted_writes: bool = False
    """The transaction sees its own writes. A search must not cache them for others: they may be rolled back."""


class VectorHit(NamedTuple):
    """A record that passed the filters. `similarity` is the cosine, rounded to six places."""

    doc: int
    similarity: float
    is_current: bool
    """The record is active, neither superseded nor disputed."""


class VectorSearch(Protocol):
    """Exact vector search in one database."""

    def nearest(self, view: VectorView, vector: Sequence[float], groups: Sequence[SearchGroup]) -> list[list[VectorHit]]:
        """Return for each group `best_hits` of all records that are visible and pass the filters."""
        ...

    def similarities(self, view: VectorView, vector: Sequence[float], docs: Sequence[int]) -> dict[int, float]:
        """Return the similarity of each of these records that has a vector."""
        ...


OpenVectorSearch = Callable[[], VectorSearch]
"""Called by the first search of a transaction that needs vectors."""


def best_hits(hits: Iterable[VectorHit], limit: int) -> list[VectorHit]:
    """Return the `limit` most similar current hits, and up to `MAX_SUPERSEDED_HITS` others that rank between them.

    Ties are in the order of `doc`. A hit without any similarity is never returned.
    """
    ranked = sorted((hit for hit in hits if hit.similarity > 0), key=lambda hit: (-hit.similarity, hit.doc))
    chosen: list[VectorHit] = []
    current = superseded = 0
    for hit in ranked:
        if current == limit:
            break
        if hit.is_current:
            current += 1
        elif (superseded := superseded + 1) > MAX_SUPERSEDED_HITS:
            continue
        chosen.append(hit)
    return chosen
