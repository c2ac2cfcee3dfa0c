"""Conformance of scopes: no read crosses a project, user or agent, and private kinds stay in their session and task."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from conformance.base import HERE, T0, Suite, add, change, found, get, keep, made
from foveate.errors import NotFound
from foveate.store.protocol import Reader, Store, StoredReceipt
from foveate.types import NO_FILTERS, Link, Record, Scope

ADA = Scope("alpha", user="ada")
CODER = Scope("alpha", agent="coder")
BOTH = Scope("alpha", user="ada", agent="coder")
WALLS = (
    (Scope("beta"), HERE),
    (ADA, HERE),
    (ADA, Scope("alpha", user="bob")),
    (ADA, Scope("beta", user="ada")),
    (CODER, HERE),
    (CODER, Scope("alpha", agent="tester")),
    (BOTH, ADA),
    (BOTH, CODER),
)
"""The owner of a record, and a scope that must not see it."""


def receipt(id: str, *records: str, at: int = T0, session: str | None = None) -> StoredReceipt:
    return StoredReceipt(id, at, zlib.compress(id.encode()), session, json.dumps({"id": id}), records)


def without_summary(id: str, at: int = T0) -> StoredReceipt:
    """Return a receipt of a version without summaries."""
    return replace(receipt(id, at=at), summary=None)


def lines(reader: Reader, limit: int = 10, after: tuple[int, str] | None = None, session: str | None = None) -> list[str]:
    """Return the ids of the contexts on a page of summaries."""
    return ids_in(reader.receipt_summaries(limit, after, session))


def ids_in(lines: Sequence[str]) -> list[str]:
    """Return the ids of the contexts of summaries."""
    return [json.loads(line)["id"] for line in lines]


def seen(reader: Reader, ids: list[str]) -> Iterator[str]:
    """Yield the name of each read method that returns one of these records."""
    everything = {
        "get": reader.get(ids),
        "records": {record.id for record in reader.records()},
        "standing": {record.id for record in reader.always_on(["censor"])},
        "pinned": {record.id for record in reader.always_on([], pinned=True)},
        "by_key": {record.id for key in ("rule", "name") if (record := reader.by_key(key))},
        "number": set(ids) if reader.count("censor") or reader.count("entity") else set(),
        "count created": set(ids) if reader.count_created(T0) > 1 else set(),
        "recent": {record.id for record in reader.recent(["censor", "entity"], 10, NO_FILTERS)},
        "salient": {record.id for record in reader.most_salient(["censor", "entity"], 10, NO_FILTERS)},
        "relations": {end for link in reader.relations(ids, 10) for end in (link.src, link.dst)},
        "named": {record.id for record in reader.entities_by_name(["postgres"]).values()},
        "links": {end for link in reader.links(ids) for end in (link.src, link.dst)},
        "links back": {end for link in reader.links(ids, incoming=True) for end in (link.src, link.dst)},
        "all_links": {end for link in reader.all_links() for end in (link.src, link.dst)},
        "version": {id for id in ids for number in (1, 2) if reader.version(id, number)},
        "receipt": {id for id in ids if reader.receipt("ctx_1")},
        "receipts": {id for id in ids if reader.receipts(10)},
        "receipts of": {id for id in ids if reader.receipts(10, id)},
        "receipt lines": {id for id in ids if lines(reader)},
        "receipt lines of": {id for id in ids if lines(reader, session="s1")},
        "receipt lines since": {id for id in ids if reader.receipt_summaries(10, since=1)},
        "receipt sessions": {id for id in ids if reader.receipt_sessions(10)},
        "shown by": {id for shown in reader.items_shown_by(["ctx_1"]).values() for id in shown},
        "growth by day": set(ids) if sum(reader.growth_by_day(0).values()) > 1 else set(),
        "page": {record.id for record in reader.page(100, NO_FILTERS)[0]},
        "history": set(),
    }
    for id in ids:
        try:
            everything["history"] = {*everything["history"], *(step.id for step in reader.history(id))}
        except NotFound:
            continue
    yield from (way for way, there in everything.items() if not set(there).isdisjoint(ids))


def _numbers(store: Store, scope: Scope) -> dict[str, int]:
    with store.read(scope) as reader:
        counts = reader.counts()
    return {**asdict(counts), "records": sum(number for kinds in counts.records.values() for number in kinds.values())}


class Scopes(Suite):
    def kept(self, store: Store, scope: Scope) -> list[str]:
        """Add records that every read method could return, and return their ids."""
        rule: Record = add(store, "Never touch the vault", "censor", scope=scope, pinned=True, key="rule")
        name = add(store, "Postgres", "entity", scope=scope)
        host = add(store, "The host of Postgres", "entity", scope=scope)
        rule = change(store, rule, "Never open the vault", pinned=True, key="rule")
        with store.write(scope) as writer:
            writer.link(Link(rule.id, "about", name.id))
            writer.link(Link(name.id, "runs on", host.id))
        store.save_receipts(scope, [receipt("ctx_1", rule.id, name.id, session="s1"), without_summary("ctx_0")])
        return [rule.id, name.id, host.id]

    def test_counts_include_all_owners_only_if_the_scope_names_none(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            nothing, ben = _numbers(store, HERE), replace(HERE, user="ben")
            self.kept(store, ben)
            for scope in (ADA, BOTH):
                assert _numbers(store, scope) == nothing
            everybodys = _numbers(store, HERE)
            assert _numbers(store, ben) == everybodys
            assert {name for name, number in everybodys.items() if not number} == {"vectors"}

    def test_every_read_finds_what_is_in_scope(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            ids = self.kept(store, BOTH)
            with store.read(replace(BOTH, session="s9")) as reader:
                assert len(list(seen(reader, ids))) == 26
            assert set(found(store, "vault postgres", scope=BOTH)) == set(ids)

    def test_no_read_returns_records_of_another_scope(self, tmp_path: Path) -> None:
        for n, (owner, stranger) in enumerate(WALLS):
            folder = tmp_path / str(n)
            folder.mkdir()
            with self.opened(folder) as store:
                ids = self.kept(store, owner)
                add(store, "Something of the stranger's own", scope=stranger)
                with store.read(stranger) as reader:
                    assert list(seen(reader, ids)) == [], f"{stranger} sees what is {owner}'s"
                assert found(store, "vault postgres", scope=stranger) == []

    def test_no_write_changes_records_of_another_scope(self, tmp_path: Path) -> None:
        for n, (owner, stranger) in enumerate(WALLS):
            folder = tmp_path / str(n)
            folder.mkdir()
            with self.opened(folder) as store:
                record = add(store, "Mine alone", scope=owner)
                theirs = add(store, "Theirs", scope=stranger)
                with pytest.raises(NotFound), store.write(stranger) as writer:
                    writer.change(replace(record, scope=stranger, text="Overwritten"), "edit")
                with pytest.raises(NotFound), store.write(stranger) as writer:
                    writer.undo(record.id, T0)
                with pytest.raises(NotFound), store.write(stranger) as writer:
                    writer.link(Link(theirs.id, "near", record.id))
                with pytest.raises(NotFound):
                    store.forget(stranger, [record.id])
                assert get(store, record.id, owner) == record

    def test_same_text_and_key_of_two_owners_are_two_records(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            for n, scope in enumerate((HERE, ADA, replace(ADA, user="bob"), CODER, Scope("beta"))):
                added = keep(store, made("Prefers short answers", scope=scope, key="pref"))[0]
                assert (added.action, added.record.scope) == ("added", scope), n

    def test_records_without_user_and_agent_are_shared(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            shared = add(store, "Shared by all")
            hers = add(store, "Hers alone", scope=ADA)
            for scope in (HERE, ADA, CODER, BOTH):
                assert get(store, shared.id, scope) == shared
            assert get(store, hers.id, BOTH) == hers

    def test_knowledge_from_a_session_is_visible_in_the_project(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            learned = add(store, "The parser is recursive", "fact", scope=Scope("alpha", session="s1", task="t1"))
            for scope in (HERE, Scope("alpha", session="s2"), Scope("alpha", task="t2")):
                assert get(store, learned.id, scope) == learned
                assert found(store, "parser", scope=scope) == [learned.id]

    def test_private_kinds_are_visible_in_their_session_and_task_only(self, tmp_path: Path) -> None:
        here = Scope("alpha", session="s1", task="t1")
        with self.opened(tmp_path) as store:
            note = add(store, "Half a thought", "scratch", scope=here)
            assert found(store, "thought", scope=here) == [note.id]
            elsewhere = (HERE, replace(here, session="s2"), replace(here, task="t2"), replace(here, task=None))
            for scope in elsewhere:
                assert get(store, note.id, scope) is None
                assert found(store, "thought", scope=scope) == []
                with store.read(scope) as reader:
                    assert reader.recent(["scratch"], 5, NO_FILTERS) == []
                    assert list(reader.records()) == []
            assert keep(store, made("Half a thought", "scratch", scope=elsewhere[1]))[0].action == "added"

    def test_an_unknown_project_is_empty(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store, store.read(Scope("never written")) as reader:
            assert list(reader.records()) == []
            assert reader.recent(["note"], 5, NO_FILTERS) == []
            assert reader.receipts(5) == []
            assert reader.receipt_summaries(5) == []


class Receipts(Suite):
    def test_receipts_are_read_newest_first_and_by_record(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            store.save_receipts(HERE, [receipt("ctx_a", "note_1", at=T0), receipt("ctx_b", "note_1", "note_2", at=T0 + 5)])
            with store.read(HERE) as reader:
                assert [stored.id for stored in reader.receipts(10)] == ["ctx_b", "ctx_a"]
                assert [stored.id for stored in reader.receipts(1)] == ["ctx_b"]
                assert [stored.id for stored in reader.receipts(10, "note_1")] == ["ctx_b", "ctx_a"]
                assert [stored.id for stored in reader.receipts(10, "note_2")] == ["ctx_b"]
                assert reader.receipt("ctx_a") == zlib.compress(b"ctx_a")
                assert reader.receipt("ctx_none") is None

    def test_summaries_are_read_newest_first_in_pages_and_by_session(self, tmp_path: Path) -> None:
        kept = [receipt(f"ctx_{n}", at=T0 + n // 2, session=f"s{n % 2}") for n in range(4)]
        with self.opened(tmp_path) as store:
            store.save_receipts(HERE, [*kept, receipt("ctx_9", at=T0 - 1)])
            with store.read(HERE) as reader:
                assert lines(reader) == ["ctx_3", "ctx_2", "ctx_1", "ctx_0", "ctx_9"]
                assert lines(reader, 2) == ["ctx_3", "ctx_2"]
                assert lines(reader, 2, (T0 + 1, "ctx_2")) == ["ctx_1", "ctx_0"]
                assert lines(reader, session="s1") == ["ctx_3", "ctx_1"]
                assert lines(reader, 1, (T0 + 1, "ctx_3"), session="s1") == ["ctx_1"]
                assert lines(reader, session="s9") == []
                newest = ["ctx_3", "ctx_2", "ctx_1", "ctx_0"]
                for at, limit, known in ((0, 9, 4), (1, 2, 2), (1, 1, 1), (2, 9, 0)):
                    assert ids_in(reader.receipt_summaries(limit, since=T0 + at)) == newest[:known]
                assert ids_in(reader.receipt_summaries(9, session="s1", since=T0 + 1)) == ["ctx_3"]
                assert reader.receipts(1)[0] == replace(kept[3], shown_ids=())

    def test_sessions_of_contexts_are_counted_the_newest_first(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            asked = [("ctx_a", 1, "s1"), ("ctx_b", 5, "s2"), ("ctx_c", 3, "s1"), ("ctx_d", 5, "s0"), ("ctx_e", 9, None)]
            store.save_receipts(HERE, [receipt(id, at=T0 + at, session=session) for id, at, session in asked])
            with store.read(HERE) as reader:
                assert reader.receipt_sessions(9) == [("s0", 1, T0 + 5), ("s2", 1, T0 + 5), ("s1", 2, T0 + 3)]
                assert [name for name, _, _ in reader.receipt_sessions(1)] == ["s0"]

    def test_shown_items_are_read_by_the_ids_of_contexts(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            record = add(store, "Shown")
            store.save_receipts(HERE, [receipt("ctx_a", record.id, "file:a.py"), receipt("ctx_b")])
            with store.read(HERE) as reader:
                assert reader.items_shown_by(["ctx_a", "ctx_b", "ctx_c"]) == {"ctx_a": ["file:a.py", record.id]}
            store.forget(HERE, [record.id])
            with store.read(HERE) as reader:
                assert reader.items_shown_by(["ctx_a"]) == {"ctx_a": ["file:a.py"]}

    def test_pages_continue_after_the_last_one_while_receipts_are_added(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            ids = [add(store, f"Number {n}", created=T0).id for n in range(3)]
            store.save_receipts(HERE, [receipt(f"ctx_{n}", at=T0) for n in range(3)])
            with store.read(HERE) as reader:
                first, after = reader.page(2, NO_FILTERS)
                known = lines(reader, 2)
            add(store, "A late one", created=T0)
            store.save_receipts(HERE, [receipt("ctx_9", at=T0)])
            with store.read(HERE) as reader:
                rest, end = reader.page(2, NO_FILTERS, after=after)
                assert [record.id for record in (*first, *rest)] == ids[::-1]
                assert end == 0
                assert [record.id for record in reader.page(9, NO_FILTERS, status="retired")[0]] == []
                others = lines(reader, 9, (T0, known[-1]))
                assert [*known, *others] == ["ctx_2", "ctx_1", "ctx_0"]

    def test_receipts_do_not_change_the_revision(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            add(store, "Something")
            with store.read(HERE) as reader:
                before = reader.revision
            store.save_receipts(HERE, [receipt("ctx_a")])
            with store.read(HERE) as reader:
                assert reader.revision == before

    def test_saving_no_receipts_is_not_an_error(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            store.save_receipts(HERE, [])

    def test_receipts_older_than_a_month_are_deleted_when_new_ones_are_saved(self, tmp_path: Path) -> None:
        month = 31 * 86_400_000
        with self.opened(tmp_path) as store:
            store.save_receipts(
                HERE, [receipt("ctx_old", "note_1", at=T0), receipt("ctx_mid", "note_1", at=T0 + month // 2)]
            )
            store.save_receipts(HERE, [receipt("ctx_new", "note_2", at=T0 + month)])
            with store.read(HERE) as reader:
                assert [stored.id for stored in reader.receipts(10)] == ["ctx_new", "ctx_mid"]
                assert [stored.id for stored in reader.receipts(10, "note_1")] == ["ctx_mid"]

    def test_forget_scrubs_the_receipts_of_every_owner(self, tmp_path: Path) -> None:
        def scrub(body: bytes, ids: frozenset[str], words: frozenset[str]) -> tuple[bytes, str] | None:
            return (b"scrubbed", "clean") if ids == {record.id} else None

        with self.opened(tmp_path) as store:
            record = add(store, "To be forgotten")
            store.save_receipts(HERE, [receipt("ctx_a", record.id)])
            store.save_receipts(ADA, [receipt("ctx_b", record.id)])
            counts = store.forget(HERE, [record.id], scrub).counts
            assert (counts["receipts"], counts["receipt_items"]) == (2, 2)
            with store.read(ADA) as reader:
                assert {(stored.body, stored.summary) for stored in reader.receipts(10)} == {(b"scrubbed", "clean")}
                assert reader.receipt_summaries(10) == ["clean", "clean"]
                assert reader.receipts(10, record.id) == []
