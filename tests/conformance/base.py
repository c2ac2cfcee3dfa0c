"""Helpers of the conformance suite: records and a store that is closed after the test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import pytest

from foveate.clock import millis
from foveate.records import make
from foveate.records.make import Rules
from foveate.store.protocol import AddResult, Hit, Query, SearchGroup, Store
from foveate.testing import START
from foveate.text import analysis
from foveate.types import NO_FILTERS, Filters, Record, Scope

T0 = millis(START)
MINUTE = 60_000
DAY = 86_400_000
HERE = Scope("alpha")
FIELDS: Mapping[str, float] = {"text": 1.0, "summary": 0.5, "tags": 1.5, "subject": 1.5, "entities": 1.0, "paths": 1.0}

_numbers = count(1)


class Suite:
    """A part of the suite. The author of a store implements `open_store`; the rest has defaults."""

    several_handles: ClassVar[bool] = True
    """False if only one handle can see the data, as in memory."""

    def open_store(self, tmp_path: Path, **options: Any) -> Store:
        """A store on the data that belongs to `tmp_path`, new or as an earlier handle left it.

        Options: `embedding_namespace`, the fingerprint of an embedder; `multi_valued`, attributes that may have several
        values at once.
        """
        raise NotImplementedError

    def open_backup(self, path: Path) -> Store:
        """Open the file that `backup` wrote as a store."""
        raise NotImplementedError

    @contextmanager
    def opened(self, tmp_path: Path, **options: Any) -> Iterator[Store]:
        store = self.open_store(tmp_path, **options)
        try:
            yield store
        finally:
            store.close()

    @contextmanager
    def reopened(self, tmp_path: Path, **options: Any) -> Iterator[Store]:
        """Open another handle on the same data."""
        if not self.several_handles:
            pytest.skip("this store has one handle")
        with self.opened(tmp_path, **options) as store:
            yield store


def made(text: str, kind: str = "note", *, scope: Scope = HERE, now: int = T0, **values: Any) -> Record:
    """Return a record as the engine would make it, with a new id."""
    id = values.pop("id", None) or f"{kind}_{next(_numbers):05d}"
    return make.make(kind, text, scope=scope, id=id, now=now, rules=Rules(), **values)


def keep(store: Store, *found: Record, scope: Scope | None = None) -> list[AddResult]:
    """Add records, each in its own transaction and scope."""
    out = []
    for record in found:
        with store.write(scope or record.scope) as writer:
            out.append(writer.add(record))
    return out


def add(store: Store, text: str, kind: str = "note", **values: Any) -> Record:
    """Add a record and return it as the store has it."""
    return keep(store, made(text, kind, **values))[0].record


def get(store: Store, id: str, scope: Scope = HERE) -> Record | None:
    with store.read(scope) as reader:
        return reader.get([id]).get(id)


def status(store: Store, record: Record) -> str:
    found = get(store, record.id, record.scope)
    return found.status if found else "gone"


def change(store: Store, record: Record, text: str, *, verb: str = "edit", **values: Any) -> Record:
    """Write a new version of a record with another text."""
    names = ("tags", "subject", "attribute", "status", "trust", "valid_from", "valid_to", "created")
    carried = {name: getattr(record, name) for name in names}
    after = made(text, record.kind, scope=record.scope, id=record.id, now=record.updated + MINUTE, **carried | values)
    with store.write(record.scope) as writer:
        return writer.change(after, verb)


def retire(store: Store, record: Record) -> Record:
    with store.write(record.scope) as writer:
        return writer.change(replace(record, status="retired", updated=record.updated + MINUTE), "retire")


def undo(store: Store, id: str, scope: Scope = HERE) -> list[Record]:
    with store.write(scope) as writer:
        return writer.undo(id, T0 + DAY)


def hits(
    store: Store,
    query: str,
    kinds: Sequence[str] = (),
    limit: int = 10,
    *,
    scope: Scope = HERE,
    filters: Filters = NO_FILTERS,
    fields: Mapping[str, float] = FIELDS,
    vector: Sequence[float] | None = None,
) -> list[Hit]:
    terms = dict.fromkeys(analysis.terms(query), 1.0)
    with store.read(scope) as reader:
        return reader.search(Query(terms, fields, vector, filters), [SearchGroup(tuple(kinds), limit)])[0]


def found(store: Store, query: str, kinds: Sequence[str] = (), limit: int = 10, **options: Any) -> list[str]:
    """Return the ids of the hits, best first."""
    return [hit.record.id for hit in hits(store, query, kinds, limit, **options)]
