"""Conformance of a store as a whole: forgetting, concurrent access, backups, exports and health."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.base import HERE, T0, Suite, add, change, found, get, made, retire
from foveate.errors import NotFound, StoreError
from foveate.memory.memory import Memory
from foveate.memory.transfer import export_lines, import_lines
from foveate.records.make import Rules
from foveate.store.protocol import Store
from foveate.store.scoped import ScopedStore
from foveate.testing import FixedClock, counting_ids
from foveate.types import Link, Scope


def memory_of(store: Store, scope: Scope = HERE) -> Memory:
    return Memory(ScopedStore(store=store, scope=scope, rules=Rules(), clock=FixedClock(), ids=counting_ids()))


class Forgetting(Suite):
    def test_forget_returns_the_number_of_removed_rows(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            name = add(store, "Postgres", "entity", aliases=["pg"])
            name = change(store, name, "Postgres database", name="Postgres", aliases=["pg"])
            other = add(store, "Another record")
            with store.write(HERE) as writer:
                writer.link(Link(name.id, "near", other.id))
            counts = store.forget(HERE, [name.id]).counts
            assert (counts["records"], counts["history"], counts["links"], counts["names"]) == (1, 1, 1, 2)
            assert counts["postings"] > 0
            assert get(store, name.id) is None
            assert found(store, "postgres database pg") == []
            assert get(store, other.id) == other
            with store.read(HERE) as reader:
                assert reader.entities_by_name(["postgres", "pg"]) == {}
                with pytest.raises(NotFound):
                    reader.history(name.id)

    def test_forgetting_an_unknown_record_changes_nothing(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            here, away = add(store, "Here"), add(store, "Away", scope=Scope("beta"))
            with store.read(HERE) as reader:
                before = reader.revision
            for stranger in ("note_none", away.id):
                with pytest.raises(NotFound, match="nothing was forgotten"):
                    store.forget(HERE, [here.id, stranger])
            assert get(store, here.id) == here
            assert get(store, away.id, Scope("beta")) == away
            with store.read(HERE) as reader:
                assert reader.revision == before

    def test_a_forgotten_text_can_be_stored_again(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            record = add(store, "Phoenix rises", key="k")
            store.forget(HERE, [record.id])
            again = add(store, "Phoenix rises", key="k")
            assert again.version == 1
            assert found(store, "phoenix") == [again.id]


class Whole(Suite):
    def test_reader_is_one_snapshot(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            first = add(store, "Before the snapshot")
            with self.reopened(tmp_path) as other, store.read(HERE) as reader:
                revision = reader.revision
                later = add(other, "After the snapshot")
                assert reader.revision == revision
                assert set(reader.get([first.id, later.id])) == {first.id}
                assert [record.id for record in reader.records()] == [first.id]
            assert get(store, later.id) == later

    def test_a_thread_can_read_and_write_while_it_reads(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            records = [add(store, f"Number {n}") for n in range(3)]
            with store.read(HERE) as reader:
                for record in reader.records():
                    assert get(store, record.id) == record
                    retire(store, record)
            assert [getattr(get(store, record.id), "status", "") for record in records] == ["retired"] * 3

    def test_a_second_writer_in_one_thread_is_refused_at_once(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            with store.write(HERE) as writer:
                kept = writer.add(made("Outer")).record
                with pytest.raises(StoreError, match="writing already"):
                    add(store, "Inner")
            assert get(store, kept.id) == kept
            assert found(store, "inner") == []

    def test_threads_write_and_read_at_once(self, tmp_path: Path) -> None:
        failures: list[BaseException] = []

        def work(name: str) -> None:
            try:
                for n in range(10):
                    record = add(store, f"Thread {name} wrote {n}")
                    assert get(store, record.id) == record
                    assert record.id in found(store, f"thread {name} {n}", limit=50)
            except BaseException as failure:
                failures.append(failure)

        with self.opened(tmp_path) as store:
            threads = [threading.Thread(target=work, args=(name,)) for name in ("ash", "birch", "cedar", "dogwood")]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert failures == []
            with store.read(HERE) as reader:
                assert len(list(reader.records())) == 40
            assert store.health().ok

    def test_counts_include_every_table(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            retire(store, add(store, "Gone by"))
            a, b = add(store, "Here", "fact"), add(store, "There", "fact")
            with store.write(HERE) as writer:
                writer.link(Link(a.id, "near", b.id))
            with store.read(HERE) as reader:
                counts = reader.counts()
            assert counts.records == {"fact": {"active": 2}, "note": {"retired": 1}}
            assert (counts.links, counts.history, counts.receipts) == (1, 1, 0)

    def test_every_store_has_a_secret_of_its_own_that_never_changes(self, tmp_path: Path) -> None:
        folders = [tmp_path / name for name in ("one", "other")]
        secrets = []
        for folder in folders:
            folder.mkdir()
            with self.opened(folder) as store, store.read(HERE) as reader:
                secrets.append(reader.secret)
        assert len(set(secrets)) == 2
        assert all(len(secret) >= 16 for secret in secrets)
        with self.reopened(folders[0]) as store, store.read(HERE) as reader:
            assert reader.secret == secrets[0]

    def test_a_backup_during_writes_is_consistent(self, tmp_path: Path) -> None:
        target, stop = tmp_path / "copy", threading.Event()

        def write() -> None:
            n = 0
            while not stop.is_set():
                n += 1
                with store.write(HERE) as writer:
                    pair = [writer.add(made(f"Pair {n} {side}")).record.id for side in ("left", "right")]
                    writer.link(Link(pair[0], "beside", pair[1]))

        with self.opened(tmp_path) as store:
            add(store, "Already there")
            writer_thread = threading.Thread(target=write)
            writer_thread.start()
            try:
                store.backup(target)
            finally:
                stop.set()
                writer_thread.join()
            with pytest.raises(StoreError, match="exists already"):
                store.backup(target)
        copy = self.open_backup(target)
        try:
            assert copy.health().ok
            with copy.read(HERE) as reader:
                assert len(list(reader.records())) == 1 + 2 * len(list(reader.all_links()))
            assert found(copy, "already there", limit=1)
        finally:
            copy.close()

    def test_an_export_imported_into_another_store_loses_nothing(self, tmp_path: Path) -> None:
        (tmp_path / "one").mkdir()
        (tmp_path / "two").mkdir()
        with self.opened(tmp_path / "one") as one, self.opened(tmp_path / "two") as two:
            first = memory_of(one)
            first.add("fact", "Port is 8000", subject="server", attribute="port", valid_from=T0)
            first.add("fact", "Port is 9000", subject="server", attribute="port", valid_from=T0 + 5, tags=["net"])
            first.add(
                "task",
                "Long story. " * 80,
                data={"title": "Story"},
                key="k",
                paths=["a/b.py"],
                scope=replace(HERE, session="s"),
            )
            first.add("event", "ran tests", data={"type": "command"})
            note = first.add("note", "日本語 ünïcode", origin="chat").record
            first.link(note.id, "about", "fact_0002", weight=0.25)
            first.edit(note.id, salience=0.9)
            lines = list(export_lines(first.data))
            second = memory_of(two)
            done = import_lines(second.data, lines)
            assert (done.added, done.known, done.links) == (5, 0, 2)
            assert list(export_lines(second.data)) == lines
            with one.read(HERE) as here, two.read(HERE) as there:
                assert list(here.records()) == list(there.records())
                assert list(here.all_links()) == list(there.all_links())
            again = import_lines(second.data, lines)
            assert (again.added, again.known) == (0, 5)
            assert [hit.record.id for hit in second.search("port")] == [hit.record.id for hit in first.search("port")]

    def test_an_export_of_one_user_contains_nothing_of_another(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            ada = memory_of(store, Scope("alpha", user="ada"))
            one, two = ada.add("note", "Hers one").record, ada.add("note", "Hers two").record
            ada.link(one.id, "near", two.id)
            assert list(export_lines(memory_of(store, Scope("alpha", user="bob")).data)) == []
            assert len(list(export_lines(ada.data))) == 3

    def test_a_store_is_healthy_after_writes(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            record = add(store, "Something to index, long enough to be looked for in it")
            retire(store, change(store, record, "Something else to index, long enough to be looked for"))
            found_health = store.health()
            assert found_health.ok
            assert found_health.problems == ()
