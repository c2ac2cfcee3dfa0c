"""A scoped store reads the project's and the personal store as one, and writes to the right one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from foveate.errors import InputError
from foveate.records.make import Rules
from foveate.store.scoped import PERSONAL_PROJECT, ScopedStore
from foveate.store.sqlite.store import SQLiteStore
from foveate.text.embed import open_embedder
from foveate.types import Scope

NOW = 1_780_000_000_000
ADA = Scope("shop", user="ada", session="s1")


def numbered(kind: str, at: int) -> str:
    return f"{kind}_{next(NUMBERS)}"


NUMBERS: Iterator[int] = iter(range(1_000_000))


@pytest.fixture
def scoped(tmp_path: Path) -> Iterator[ScopedStore]:
    with closing(SQLiteStore(tmp_path / "state.db")) as store, closing(SQLiteStore(tmp_path / "ada.db")) as personal:
        yield ScopedStore(store=store, scope=ADA, rules=Rules(), clock=lambda: NOW, ids=numbered, personal=personal)


def test_records_are_made_with_the_scope_clock_and_ids_of_the_store(scoped: ScopedStore) -> None:
    record = scoped.make("fact", "The shop opens at nine", {"tags": ["hours"]})
    assert (record.scope, record.created, record.tags) == (ADA, NOW, ("hours",))
    assert record.id.startswith("fact_")


def test_project_and_personal_store_are_read_as_one(scoped: ScopedStore) -> None:
    with scoped.writer() as writer:
        shared = writer.add(scoped.make("fact", "The shop opens at nine", {})).record
    with scoped.writer(personal=True) as writer:
        record = scoped.make("fact", "Ada prefers short answers", {}, scoped.record_scope(personal=True))
        private = writer.add(record).record
    assert private.scope == Scope(PERSONAL_PROJECT, user="ada")
    with scoped.reader() as reader:
        assert set(reader.get([shared.id, private.id])) == {shared.id, private.id}
    with scoped.store.read(ADA) as reader:
        assert set(reader.get([shared.id, private.id])) == {shared.id}


def test_a_record_is_written_to_the_store_that_holds_it(scoped: ScopedStore) -> None:
    with scoped.writer(personal=True) as writer:
        private = writer.add(scoped.make("fact", "Ada prefers tea", {}, scoped.record_scope(personal=True))).record
    assert scoped.is_personal(private)
    with scoped.writer_of(private) as writer:
        writer.count_uses([private.id])
    with scoped.reader() as reader:
        assert reader.get([private.id])[private.id].uses == 1


def test_with_scope_reads_as_the_other_scope(scoped: ScopedStore) -> None:
    with scoped.writer() as writer:
        mine = writer.add(scoped.make("fact", "Ada's locker is 7", {})).record
    bob = scoped.with_scope(Scope("shop", user="bob"))
    with bob.reader() as reader:
        assert not reader.get([mine.id])
    with bob.reader(ADA) as reader:
        assert reader.get([mine.id])
    assert scoped.scope == ADA


def test_writing_to_a_missing_personal_store_raises(tmp_path: Path) -> None:
    with closing(SQLiteStore(tmp_path / "state.db")) as store:
        scoped = ScopedStore(store=store, scope=ADA, rules=Rules(), clock=lambda: NOW, ids=numbered)
        with pytest.raises(InputError, match="No personal store"), scoped.writer(personal=True):
            pass


def test_vectors_are_none_if_the_embedder_does_not_answer(scoped: ScopedStore) -> None:
    class Silent:
        fingerprint, dim = "silent:1", 1

        def embed(self, texts: object) -> list[list[float]]:
            raise OSError("no route to host")

        def query(self, text: str) -> list[float]:
            raise OSError("no route to host")

    def with_embedder(embedder: object) -> ScopedStore:
        from dataclasses import replace

        return replace(scoped, embedder=embedder)  # type: ignore[arg-type]

    assert scoped.vectors(["one", "two"]) == [None, None]
    assert [len(vector or ()) for vector in with_embedder(open_embedder("hash:16")).vectors(["one", "two"])] == [16, 16]
    assert with_embedder(Silent()).vectors(["one"]) == [None]
