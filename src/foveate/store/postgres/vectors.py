"""Vector search in PostgreSQL, by pgvector: exact, under every filter, and no vector is brought into this process.

Comes in: what a transaction sees, and a question's vector. Goes out: the nearest, as from the embedded store. The cosine
of unit vectors is their product.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence

from foveate.store.sql.write import WriteTransaction
from foveate.store.vectors import MAX_SUPERSEDED_HITS, VectorGroup, VectorHit, VectorView, best_hits

SPARE = 50
"""Records scored first beyond those that are wanted: mostly enough, and the filters are then asked of these alone."""


class HalfVectors:
    """A `VectorSearch` in SQL: the nearest of all first; where they do not suffice, with the filter inside."""

    def nearest(self, view: VectorView, vector: Sequence[float], groups: Sequence[VectorGroup]) -> list[list[VectorHit]]:
        at = {
            "project": view.project,
            "space": view.namespace_id,
            **view.filter_params,
            **_halves(vector),
            "max_superseded": MAX_SUPERSEDED_HITS,
        }
        width = 2 * max((group.limit for group in groups), default=0) + SPARE
        near = view.rows("nearest", {**at, "limit": width})
        found = [self._of(group, near) for group in groups]
        if not near or near[0][4] < width:  # these were all
            return found
        few = [n for n, group in enumerate(groups) if sum(one.is_current for one in found[n]) < group.limit]
        if few:
            wants = [(n, groups[n].limit, None if (kinds := groups[n].kinds) is None else list(kinds)) for n in few]
            rows = view.rows("nearest_matching", {**at, "groups": json.dumps(wants)})
            for n in few:
                found[n] = best_hits((VectorHit(*row[1:]) for row in rows if row[0] == n), groups[n].limit)
        return found

    def similarities(self, view: VectorView, vector: Sequence[float], docs: Sequence[int]) -> dict[int, float]:
        at = {"project": view.project, "space": view.namespace_id, **_halves(vector), "docs": json.dumps(list(docs))}
        return dict(view.rows("similarities", at)) if docs else {}

    @staticmethod
    def _of(group: VectorGroup, near: Sequence[tuple[int, float, bool, str, int]]) -> list[VectorHit]:
        """What one group takes of rows that passed the filters."""
        fitting = (row for row in near if row[0] is not None and (group.kinds is None or row[3] in group.kinds))
        return best_hits((VectorHit(*row[:3]) for row in fitting), group.limit)


class Writing(WriteTransaction):
    """One transaction on one scope."""

    @staticmethod
    def _pack_vector(vector: Sequence[float]) -> str:
        return _written(vector)


def _written(vector: Sequence[float]) -> str:
    return f"[{','.join(map(repr, map(float, vector)))}]"


def _halves(vector: Sequence[float]) -> dict[str, str]:
    """A vector as the sum of two of half floats: a product with both is as exact as with the vector itself."""
    shape = f"<{len(vector)}e"
    coarse = struct.unpack(shape, struct.pack(shape, *vector))
    return {"coarse": _written(coarse), "fine": _written([a - b for a, b in zip(vector, coarse, strict=True)])}
