"""Stores the vectors of records. Each database finds them again in its own way, by a `VectorSearch`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from foveate.errors import InputError
from foveate.store.sql.queries import Database

FLUSH_VECTORS = 5000
"""New vectors that are written together."""


def find_namespace(database: Database, project: int, fingerprint: str) -> tuple[int, int] | None:
    """Return (id, dimensions) of an embedder's namespace, or None if the project has no vector of it."""
    rows = database.fetch_all("namespace_of_project", {"project": project, "fingerprint": fingerprint})
    return rows[0] if rows else None


class VectorWriter:
    """The vectors of one project, inside one transaction that writes. New vectors are collected and written by `flush`."""

    def __init__(
        self, database: Database, project: int, embedding_namespace: str | None, pack: Callable[[Sequence[float]], Any]
    ) -> None:
        self._db = database
        self._project = project
        self._fingerprint = embedding_namespace
        self._pack = pack
        self._namespace: tuple[int, int] | None = None
        self._new_vectors: dict[int, tuple[int, Any]] = {}

    def put(self, doc: int, kind_code: int, vector: Sequence[float]) -> None:
        """Store the vector of a record, in place of the one that it had of the same embedder."""
        if self._namespace is None:
            self._namespace = self._find_namespace() or self._add_namespace(len(vector))
        if self._namespace[1] != len(vector):
            raise InputError(
                f"The stored vectors of {self._fingerprint!r} have {self._namespace[1]} dimensions, got {len(vector)}. "
                "Check which model the embedder uses."
            )
        self._new_vectors[doc] = (kind_code, self._pack(vector))
        if len(self._new_vectors) >= FLUSH_VECTORS:
            self.flush()

    def delete_all(self, doc: int, *, keep_current: bool = False) -> int:
        """Delete the vectors of a record, of every embedder, and return how many they were.

        `keep_current` keeps the one of the store's embedder, which a new one is about to replace.
        """
        self.flush()
        namespace = self._find_namespace() if keep_current else None
        params = {"project": self._project, "doc": doc, "keep_space": namespace[0] if namespace else 0}
        deleted = self._db.fetch_all("delete_vectors", params)
        for (space,) in deleted:
            self._db.execute("shrink_segment", {"project": self._project, "space": space, "count": 1})
        return len(deleted)

    def drop(self, fingerprint: str, limit: int) -> int:
        """Delete up to `limit` vectors of an embedder that is no longer used, and return how many they were."""
        if fingerprint == self._fingerprint:
            raise InputError(
                f"The vectors of {fingerprint!r} are in use: it is the embedder of this store. Name another one."
            )
        namespace = find_namespace(self._db, self._project, fingerprint)
        if namespace is None:
            return 0
        params = {"project": self._project, "space": namespace[0]}
        dropped = self._db.execute("drop_vectors", {**params, "limit": limit})
        if dropped:
            self._db.execute("shrink_segment", {**params, "count": dropped})
        return dropped

    def flush(self) -> None:
        """Write the collected vectors. Each gets the next number, so that readers load only those above their last one."""
        if not self._new_vectors or self._namespace is None:
            return
        space = self._namespace[0]
        params = {"project": self._project, "space": space}
        rows = self._db.fetch_all("segment", params)
        latest = rows[0][0] if rows else 0
        replaced = self._db.fetch_all("docs_with_vector", {**params, "docs": json.dumps(list(self._new_vectors))})
        new = [
            (self._project, space, doc, kind_code, number, vector)
            for number, (doc, (kind_code, vector)) in enumerate(self._new_vectors.items(), latest + 1)
        ]
        self._db.execute_many("add_vector", new)
        self._db.execute("grow_segment", {**params, "latest": latest + len(new), "count": len(new) - len(replaced)})
        self._new_vectors = {}

    def _find_namespace(self) -> tuple[int, int] | None:
        return find_namespace(self._db, self._project, self._fingerprint) if self._fingerprint else None

    def _add_namespace(self, dim: int) -> tuple[int, int]:
        """Return the namespace of the store's embedder at so many dimensions, and create it if no project has it yet."""
        params = {"fingerprint": self._fingerprint, "dim": dim}
        self._db.execute("add_namespace", params)
        ((space, dim),) = self._db.fetch_all("namespace_id", params)
        return space, dim
