"""Vector search in PostgreSQL, by pgvector: exact, under every filter, and no vector is brought into this process.

Comes in: a question's vector. Goes out: hits, as from the embedded store. The cosine of unit vectors is their product.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from foveate.state.reading import OVERFETCH, ReadTransaction
from foveate.state.rows import filter_params
from foveate.state.store import Hit, Query, Want
from foveate.state.writing import WriteTransaction


class _Nearest(ReadTransaction):
    """A transaction that asks the database for the nearest."""

    def _add_vector_hits(self, query: Query, wants: Sequence[Want], found: list[dict[int, Hit]]) -> None:
        known = self._db.rows("space", {"fingerprint": self._space})
        if not known or query.vector is None:
            return
        at = {"project": self._project, "space": known[0][0], **_halves(query.vector)}
        width = 2 * max((want.limit for want in wants), default=0) + OVERFETCH
        near = dict(self._db.rows("nearest", {**at, "limit": width}))
        records = self._by_docs(sorted(near), query.filters)
        best = [
            [doc for doc in near if doc in records and (not want.kinds or records[doc].kind in want.kinds)][: want.limit]
            for want in wants
        ]
        lacking = {n: want for n, want in enumerate(wants) if len(best[n]) < want.limit}
        if lacking and len(near) == width:
            inside = self._nearest_within(query, lacking, at)
            near |= {doc: score for pairs in inside.values() for doc, score in pairs}
            records |= self._by_docs(
                sorted({doc for pairs in inside.values() for doc, _ in pairs} - set(records)), query.filters
            )
            for n, pairs in inside.items():
                best[n] = [doc for doc, _ in pairs]
        for hits, docs in zip(found, best, strict=True):
            for doc in docs:
                hits.setdefault(doc, Hit(records[doc], 0.0))
        others = {doc for hits in found for doc in hits if doc not in near}
        near |= dict(self._db.rows("near_of", {**at, "docs": json.dumps(sorted(others))})) if others else {}
        for hits in found:
            for doc, hit in hits.items():
                hits[doc] = replace(hit, vector=near.get(doc))

    def _nearest_within(
        self, query: Query, wants: Mapping[int, Want], at: Mapping[str, Any]
    ) -> dict[int, list[tuple[int, float]]]:
        """The same, with the filter inside: for a filter or kinds that let little through."""
        kinds = sorted({kind for want in wants.values() for kind in want.kinds})
        anything = any(not want.kinds for want in wants.values())
        params = {
            **at, **self._who, **filter_params(query.filters), "kinds": None if anything else json.dumps(kinds),
            "wants": json.dumps([(n, want.limit, want.kinds) for n, want in wants.items()]),
        }  # fmt: skip
        inside: dict[int, list[tuple[int, float]]] = {n: [] for n in wants}
        for n, doc, near in self._db.rows("nearest_within", params):
            inside[n].append((doc, near))
        return inside


class Reading(_Nearest):
    """One snapshot of one scope."""


class Writing(_Nearest, WriteTransaction):
    """One transaction on one scope."""

    @staticmethod
    def _packed(vector: Sequence[float]) -> str:
        return _written(vector)


def _written(vector: Sequence[float]) -> str:
    return f"[{','.join(map(repr, map(float, vector)))}]"


def _halves(vector: Sequence[float]) -> dict[str, str]:
    """A vector as the sum of two of half floats: a product with both is as exact as with the vector itself."""
    shape = f"<{len(vector)}e"
    coarse = struct.unpack(shape, struct.pack(shape, *vector))
    return {"coarse": _written(coarse), "fine": _written([a - b for a, b in zip(vector, coarse, strict=True)])}
