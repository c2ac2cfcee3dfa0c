"""Exact vector search in PostgreSQL, with pgvector. Vectors are compared in the server and not loaded into this process.

Vectors have length one, so their cosine similarity is their inner product.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence

from foveate.store.protocol import SearchGroup
from foveate.store.sql.write import WriteTransaction
from foveate.store.vectors import MAX_SUPERSEDED_HITS, VectorHit, VectorView, best_hits

EXTRA_CANDIDATES = 50
"""Candidates of the first query beyond twice the largest limit. They nearly always suffice, so that filters are tested on
these few records instead of on all."""


class PgVectorSearch:
    """A `VectorSearch` in SQL."""

    def nearest(self, view: VectorView, vector: Sequence[float], groups: Sequence[SearchGroup]) -> list[list[VectorHit]]:
        params = {
            "project": view.project,
            "space": view.namespace_id,
            **view.filter_params,
            **_split_precision(vector),
            "max_superseded": MAX_SUPERSEDED_HITS,
        }
        candidates = 2 * max((group.limit for group in groups), default=0) + EXTRA_CANDIDATES
        rows = view.rows("nearest", {**params, "limit": candidates})
        hits = [_hits_of(group, rows) for group in groups]
        if not rows or rows[0][4] < candidates:  # the project has no further vectors
            return hits
        short = [n for n, group in enumerate(groups) if sum(hit.is_current for hit in hits[n]) < group.limit]
        if short:
            # Too few candidates passed the filters. The second query filters first, and scores all records that remain.
            requests = [(n, groups[n].limit, groups[n].kinds or None) for n in short]
            rows = view.rows("nearest_matching", {**params, "groups": json.dumps(requests)})
            for n in short:
                hits[n] = best_hits((VectorHit(*row[1:]) for row in rows if row[0] == n), groups[n].limit)
        return hits

    def similarities(self, view: VectorView, vector: Sequence[float], docs: Sequence[int]) -> dict[int, float]:
        if not docs:
            return {}
        params = {"project": view.project, "space": view.namespace_id, "docs": json.dumps(list(docs))}
        return dict(view.rows("similarities", {**params, **_split_precision(vector)}))


class PostgresWriteTransaction(WriteTransaction):
    """A `WriteTransaction` that stores vectors in pgvector's text form."""

    @staticmethod
    def _pack_vector(vector: Sequence[float]) -> str:
        return _vector_literal(vector)


def _hits_of(group: SearchGroup, rows: Sequence[tuple[int | None, float, bool, str, int]]) -> list[VectorHit]:
    """Return the best hits of a group among candidates. A candidate that did not pass the filters has no doc."""
    passed = (row for row in rows if row[0] is not None and (not group.kinds or row[3] in group.kinds))
    return best_hits((VectorHit(*row[:3]) for row in passed), group.limit)  # type: ignore[arg-type]


def _vector_literal(vector: Sequence[float]) -> str:
    return f"[{','.join(map(repr, map(float, vector)))}]"


def _split_precision(vector: Sequence[float]) -> dict[str, str]:
    """Return a vector as the sum of two half-precision vectors.

    pgvector multiplies only vectors of the same type, and stored ones are half floats. The sum of both products is as exact
    as the product with the full vector.
    """
    layout = f"<{len(vector)}e"
    coarse = struct.unpack(layout, struct.pack(layout, *vector))
    fine = [a - b for a, b in zip(vector, coarse, strict=True)]
    return {"coarse": _vector_literal(coarse), "fine": _vector_literal(fine)}
