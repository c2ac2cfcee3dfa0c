"""Operations of `Memory` that do more than pass a record to the store."""

from __future__ import annotations

from pathlib import Path

import pytest

import foveate
from foveate.engine import Engine
from foveate.errors import Conflict, InputError, NotFound
from foveate.memory.backfill import embed_missing
from foveate.records.make import Rules
from foveate.store.protocol import Query, SearchGroup, StoredReceipt
from foveate.store.retention import Retention
from foveate.store.sqlite.store import SQLiteStore
from foveate.testing import FixedClock, embedder, engine
from foveate.types import Scope
from records import add_record


def vector_of(memory: Engine, id: str, query: str) -> float | None:
    """Return the similarity of a record's vector to a query."""
    with memory.store.data.reader() as reader:
        (found,) = reader.search(Query({}, {}, embedder().query(query)), [SearchGroup((), 10)])
    return next((hit.vector for hit in found if hit.record.id == id), None)


def test_record_that_was_confirmed_can_be_edited() -> None:
    with engine() as memory:
        memory.add("fact", "Said twice")
        confirmed = memory.add("fact", "said TWICE").record
        edited = memory.edit(confirmed.id, salience=0.9)
        assert (edited.data["confirmations"], edited.salience) == (1, 0.9)


def test_an_edit_that_changes_nothing_makes_no_version() -> None:
    with engine() as memory:
        old = memory.add("fact", "The port was 80", subject="api", attribute="port", tags=["ops"]).id
        id = memory.add("fact", "The port is 443", subject="api", attribute="port", tags=["ops"], data={"core": True}).id
        for same in (
            memory.edit(id, text="The port is 443"),
            memory.edit(id, text=" The port is 443 ", tags=["ops"], status="active"),
            memory.edit(id, data={"core": True}, pinned=False, expect_version=1),
        ):
            assert same.version == 1
        assert [change.verb for change in memory.history(id)] == ["add"]
        assert memory.get(old).status == "superseded"
        with pytest.raises(Conflict):
            memory.edit(id, text="The port is 443", expect_version=7)
        versions = [memory.edit(id, outcome="success").version for _ in range(2)]
        assert versions == [2, 3], "an outcome counts as a use each time"


def test_undo_restores_the_vector_with_the_text() -> None:
    with engine(embedder=embedder()) as memory:
        id = memory.add("note", "caching responses").record.id
        memory.edit(id, text="quarterly tax filing")
        assert (vector_of(memory, id, "quarterly tax filing") or 0) > 0.99
        memory.undo(id)
        assert (vector_of(memory, id, "caching responses") or 0) > 0.99


def test_an_edit_without_an_embedder_removes_the_vector_of_the_old_text(tmp_path: Path) -> None:
    with engine(str(tmp_path), embedder=embedder()) as memory:
        id = memory.add("note", "caching responses").record.id
    with engine(str(tmp_path)) as memory:
        memory.edit(id, text="quarterly tax filing")
    with engine(str(tmp_path), embedder=embedder()) as memory:
        assert vector_of(memory, id, "caching responses") is None


def test_undo_restores_allowed_words_that_look_like_a_secret(tmp_path: Path) -> None:
    key = "AKIA" + "QWERTYUIOPASDFGH"
    store = SQLiteStore(tmp_path / "state.db")
    with Engine(store, scope=Scope("main"), rules=Rules(allow={key}), clock=FixedClock()) as memory:
        record = memory.add("note", f"The sample key is {key}").record
        assert key in record.text
        memory.edit(record.id, text="Nothing")
        assert memory.undo(record.id)[0].text == record.text


def test_get_returns_a_record_as_of_a_time() -> None:
    clock = FixedClock()
    with engine(clock=clock) as memory:
        start = clock.now
        id = memory.add("note", "First").record.id
        clock.tick(1000)
        memory.edit(id, text="Second")
        clock.tick(1000)
        memory.edit(id, text="Third")
        times = (start, start + 999, start + 1000, start + 5000)
        assert [memory.get(id, as_of=at).text for at in times] == ["First", "First", "Second", "Third"]
        with pytest.raises(NotFound, match="did not exist"):
            memory.get(id, as_of=start - 1)


def test_an_export_can_be_read_while_the_same_store_is_written() -> None:
    with engine() as memory:
        memory.store.add_many(("note", f"Number {n}", {}) for n in range(5))
        done = memory.store.import_lines(memory.store.export_lines())
        assert (done.added, done.known) == (0, 5)


@pytest.mark.parametrize(("body", "line"), [(b"x" * 300, None), (b"x" * 100, "é" * 100)])
def test_receipts_beyond_the_maximum_size_are_deleted_oldest_first(tmp_path: Path, body: bytes, line: str | None) -> None:
    store, scope = SQLiteStore(tmp_path / "state.db", retention=Retention(receipt_mb=1000 / 2**20)), Scope("main")
    store.save_receipts(scope, [StoredReceipt(f"ctx_{n}", n, body, None, line, (f"note_{n}",)) for n in range(5)])
    with store.read(scope) as reader:
        assert [stored.id for stored in reader.receipts(10)] == ["ctx_4", "ctx_3", "ctx_2"]
        assert reader.receipts(10, "note_1") == []
    store.close()


def test_records_stored_before_the_embedder_was_set_get_vectors(tmp_path: Path) -> None:
    with foveate.open(tmp_path, personal=False) as plain:
        plain.add("fact", "Redis runs on port 6379")
        plain.add("fact", "Lunch is at noon")
    with foveate.open(tmp_path, personal=False, embedder="hash:64") as engine:
        assert engine.store.stats().vectors == 0
        assert embed_missing(engine.store.data).embedded_count == 2
        assert embed_missing(engine.store.data).embedded_count == 0
        features = engine.context("the Redis port").items[0].candidate.features
        assert features["vector"] > 0


def test_superseded_records_rank_behind_active_ones() -> None:
    with engine() as memory:
        old = memory.add("fact", "The limit is 100 requests", subject="api", attribute="limit").record
        new = memory.add("fact", "The limit is 200 requests", subject="api", attribute="limit").record
        assert [hit.record.id for hit in memory.search("request limit")] == [new.id, old.id]


@pytest.mark.parametrize("name", ["subject", "attribute", "key"])
def test_names_that_are_too_long_for_an_index_are_refused(name: str) -> None:
    memory = engine()
    values = {"subject": "a server", name: "é" * 251}
    with pytest.raises(InputError, match=f"{name} has 251 characters, and the limit is 500 bytes"):
        add_record(memory, "fact", "The port is 80", **values)
    add_record(memory, "fact", "The port is 80", **{**values, name: "é" * 250})


@pytest.mark.parametrize(("session", "said"), [("s" * 501, "500 bytes"), ("a\0b", "NUL"), ("\ud800", "lone surrogate")])
def test_levels_of_a_scope_must_be_names(session: str, said: str) -> None:
    memory = engine()
    with pytest.raises(InputError, match=said):
        memory.add("note", "It holds", session=session)
