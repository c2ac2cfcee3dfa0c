"""Conformance of writing: stored records, superseded values, versions, undo and links."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from conformance.base import (
    DAY,
    HERE,
    MINUTE,
    T0,
    Suite,
    add,
    change,
    found,
    get,
    keep,
    made,
    retire,
    status,
    undo,
)
from foveate.clock import iso
from foveate.errors import Conflict, InputError, NotFound
from foveate.records.kinds import KINDS
from foveate.store.protocol import Store
from foveate.testing import START
from foveate.types import Link, Record, Scope


def port(value: int, at: int = T0, **values: Any) -> Record:
    """Return a keyed fact: the port of the server."""
    return made(f"The server listens on {value}", "fact", subject="server", attribute="port", valid_from=at, **values)


def revision(store: Store, scope: Scope = HERE) -> str:
    with store.read(scope) as reader:
        return reader.revision


def everything(store: Store, scope: Scope = HERE) -> list[Record]:
    with store.read(scope) as reader:
        return list(reader.records())


class AddingRecords(Suite):
    def test_a_record_is_read_with_every_column_as_stored(self, tmp_path: Path) -> None:
        scope = Scope("alpha", user="ada", agent="coder", session="s1", task="t1")
        record = made(
            "Payments go through src/pay/gateway.py, never around it.\n\n" + "It retries three times. " * 60,
            "task", scope=scope, title="Gateway", nested={"list": [1, 2.5, None, "ö"], "yes": True}, tags=["pay", "ünï"],
            entities=["Stripe"], paths=["src/pay/gateway.py"], subject="gateway", attribute="owner", outcome="partial",
            salience=0.25, confidence=0.75, uses=7, wins=3, trust="agent", pinned=True, origin="chat", key="k-1",
            status="disputed", created=T0 - DAY, valid_from=T0 - 2 * DAY, valid_to=T0 + DAY,
        )  # fmt: skip
        with self.opened(tmp_path) as store:
            assert keep(store, record)[0].record == record
            assert get(store, record.id, scope) == record

    def test_texts_of_any_script_and_length_are_read_unchanged(self, tmp_path: Path) -> None:
        texts = ["x", "naïve café — “quoted” 🙂", "日本語のテキスト", "line\n\n  indented\ttabbed", "w" * 900_000]
        with self.opened(tmp_path) as store:
            kept = [add(store, text) for text in texts]
            assert [get(store, record.id) for record in kept] == kept
            assert [record.text for record in kept] == texts

    def test_three_lengths_are_stored_with_their_token_counts(self, tmp_path: Path) -> None:
        given = made("The long version. " * 50, summary="The middle one.", micro="Short.")
        shortened = made("The long version of something else. " * 50)
        with self.opened(tmp_path) as store:
            keep(store, given, shortened)
            for record in (given, shortened):
                kept = get(store, record.id)
                assert kept is not None
                assert (kept.text, kept.summary, kept.micro) == (record.text, record.summary, record.micro)
                assert kept.tokens is not None
                assert kept.tokens["full"] > kept.tokens["summary"] >= kept.tokens["micro"] > 0

    def test_records_are_visible_to_the_next_handle(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            record = add(store, "Kept beyond the handle")
            with self.reopened(tmp_path) as other:
                assert get(other, record.id) == record
                assert found(other, "beyond handle") == [record.id]

    def test_a_known_key_changes_nothing(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            first = add(store, "Said once", key="call-7")
            before = revision(store)
            again = keep(store, made("Said otherwise", key="call-7", now=T0 + DAY))[0]
            assert (again.action, again.record) == ("unchanged", first)
            assert everything(store) == [first]
            assert revision(store) == before

    def test_the_same_content_confirms_one_record(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            first = add(store, "The API is versioned", trust="agent")
            again = keep(store, made("the  API is VERSIONED", trust="user", now=T0 + DAY))[0]
            assert again.action == "confirmed"
            (kept,) = everything(store)
            assert (kept.id, kept.text, kept.trust, kept.version) == (first.id, first.text, "user", 2)
            assert kept.data["confirmations"] == 1
            assert kept.updated == T0 + DAY

    def test_the_same_text_of_another_kind_is_another_record(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            keep(store, made("Use tabs"), made("Use tabs", "pattern"))
            assert len(everything(store)) == 2

    def test_a_retired_text_can_be_added_again(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            retire(store, add(store, "Deploy on Fridays"))
            assert keep(store, made("Deploy on Fridays"))[0].action == "added"

    def test_events_with_the_same_text_are_separate_unless_their_key_is_the_same(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            first, second = add(store, "ran pytest", "event"), add(store, "ran pytest", "event")
            keyed = add(store, "ran ruff", "event", key="e1")
            assert keep(store, made("ran ruff again", "event", key="e1"))[0].action == "unchanged"
            assert {record.id for record in everything(store)} == {first.id, second.id, keyed.id}
            with pytest.raises(InputError, match="append-only"):
                change(store, first, "ran something else")

    def test_a_kind_that_allows_duplicates_stores_both(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            one, two = add(store, "Run the tests", "task"), add(store, "Run the tests", "task")
            assert one.id != two.id
            assert add(store, "Run the tests", "task", key="k").id == add(store, "Or others", "task", key="k").id

    def test_by_key_returns_the_record_of_the_nearest_owner(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            shared = add(store, "For all", key="k")
            own = add(store, "For the coder", key="k", scope=replace(HERE, agent="coder"))
            with store.read(HERE) as reader:
                assert reader.by_key("k") == shared
                assert reader.by_key("l") is None
            with store.read(replace(HERE, agent="coder")) as reader:
                assert reader.by_key("k") == own

    def test_a_session_is_a_nearer_owner_only_for_private_kinds(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            inside = replace(HERE, session="s1")
            shared, own = add(store, "For all", "scratch", key="k"), add(store, "Here", "scratch", key="k", scope=inside)
            for scope, nearest in ((HERE, shared), (inside, own), (replace(HERE, session="s2"), shared)):
                with store.read(scope) as reader:
                    assert reader.by_key("k") == nearest

    def test_by_key_returns_the_older_record_of_two_equally_near_owners(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            older = add(store, "For the coder", key="k", scope=replace(HERE, agent="coder"), now=T0)
            add(store, "For Ada", key="k", scope=replace(HERE, user="ada"), now=T0 + 1)
            with store.read(replace(HERE, user="ada", agent="coder")) as reader:
                assert reader.by_key("k") == older

    def test_by_key_returns_records_of_unregistered_kinds(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            KINDS["recipe"] = replace(KINDS["note"], name="recipe")
            try:
                soup = add(store, "Soup", "recipe", key="k")
            finally:
                del KINDS["recipe"]
            with store.read(HERE) as reader:
                assert reader.by_key("k") == soup

    def test_record_of_another_project_or_owner_is_refused(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            for scope in (Scope("beta"), Scope("alpha", user="bob"), Scope("alpha", agent="tester")):
                with pytest.raises(InputError, match="belongs to"):
                    keep(store, made("Not yours", scope=scope), scope=Scope("alpha", user="ada", agent="coder"))
            with pytest.raises(InputError), store.write(HERE) as writer:
                writer.restore(made("Not yours", scope=Scope("beta")))
            assert everything(store) == []

    def test_failed_transaction_leaves_nothing(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            old = add(store, "Earlier zebra")
            before = revision(store)

            def fail() -> None:
                with store.write(HERE) as writer:
                    new = writer.add(made("Halfway giraffe")).record
                    writer.change(replace(old, text="Changed okapi", updated=T0 + 1), "edit")
                    writer.link(Link(old.id, "near", new.id))
                    raise RuntimeError("in the middle")

            with pytest.raises(RuntimeError):
                fail()
            assert everything(store) == [old]
            assert (found(store, "giraffe"), found(store, "okapi"), found(store, "zebra")) == ([], [], [old.id])
            assert revision(store) == before
            with store.read(HERE) as reader:
                assert reader.history(old.id) == []
                assert list(reader.all_links()) == []
            assert store.health().ok

    def test_uses_are_counted_without_a_new_version(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            record = add(store, "Deploys happen on Tuesdays", "fact")
            before = revision(store)
            with store.write(HERE) as writer:
                writer.count_uses([record.id])
                writer.count_uses([record.id], success=True)
            assert get(store, record.id) == replace(record, uses=2, wins=1)
            assert revision(store) != before
            with store.read(HERE) as reader:
                assert reader.history(record.id) == []
            with pytest.raises(NotFound), store.write(HERE) as writer:
                writer.count_uses(["fact_unknown"])

    def test_growth_counts_new_records_and_confirmed_facts(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            add(store, "An old one", created=T0 - 9 * DAY)
            for text in ("One fact", "Another fact", "One fact"):
                add(store, text, "fact")
            retire(store, add(store, "A fact that is gone", "fact"))
            add(store, "Somebody else's", scope=Scope("alpha", user="eve"))
            with store.read(HERE) as reader:
                found = reader.growth(T0 - DAY)
                by_day = reader.growth_by_day(T0 - DAY)
        assert found == {"first": T0 - 9 * DAY, "added": 3, "facts": 2, "confirmed": 1}
        assert by_day == {START[:10]: 3}

    def test_growth_by_day_counts_the_records_of_each_day(self, tmp_path: Path) -> None:
        midnight = T0 // DAY * DAY
        with self.opened(tmp_path) as store:
            for n, at in enumerate((midnight - 1, midnight, midnight + DAY - 1, midnight - 5 * DAY, midnight - 9 * DAY)):
                add(store, f"Number {n}", created=at, now=midnight + DAY)
            with store.read(HERE) as reader:
                found = reader.growth_by_day(midnight - 5 * DAY)
        days = {iso(midnight + n * DAY)[:10]: number for n, number in ((-5, 1), (-1, 1), (0, 2))}
        assert list(found.items()) == list(days.items())

    def test_every_write_changes_the_revision(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            seen = [revision(store)]
            first, second = add(store, "One"), add(store, "Two")
            seen.append(revision(store))
            first = change(store, first, "One and a half")
            seen.append(revision(store))
            with store.write(HERE) as writer:
                writer.link(Link(first.id, "near", second.id))
            seen.append(revision(store))
            undo(store, first.id)
            seen.append(revision(store))
            store.forget(HERE, [second.id])
            seen.append(revision(store))
            assert len(set(seen)) == len(seen)
            assert revision(store, Scope("beta")) != seen[-1]


class Superseding(Suite):
    def test_newer_value_supersedes_the_older_at_once(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            old, new = port(8000, T0), port(9000, T0 + DAY)
            keep(store, old)
            added = keep(store, new)[0]
            assert (added.action, added.affected) == ("superseded older", (old.id,))
            kept = get(store, old.id)
            assert kept is not None
            assert (kept.status, kept.valid_to, kept.version) == ("superseded", T0 + DAY, 2)
            assert status(store, new) == "active"
            with store.read(HERE) as reader:
                assert reader.links([old.id], ["superseded_by"]) == [Link(old.id, "superseded_by", new.id)]

    def test_older_value_that_arrives_late_is_superseded_itself(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            new, late = port(9000, T0 + DAY), port(8000, T0, now=T0 + 2 * DAY)
            keep(store, new)
            assert keep(store, late)[0].action == "older"
            kept = get(store, late.id)
            assert kept is not None
            assert (kept.status, kept.valid_to) == ("superseded", T0 + DAY)
            assert status(store, new) == "active"
            with store.read(HERE) as reader:
                assert reader.links([late.id]) == [Link(late.id, "superseded_by", new.id)]

    def test_late_value_that_arrives_twice_is_one_record(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            keep(store, port(9000, T0 + DAY), port(8000, T0), port(8000, T0))
            assert len(everything(store)) == 2

    def test_lower_trust_disputes_and_never_supersedes(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            said = port(8000, T0, trust="user")
            guess = port(9000, T0 + DAY, trust="tool")
            keep(store, said)
            added = keep(store, guess)[0]
            assert (added.action, added.affected) == ("disputed", (said.id,))
            assert (status(store, said), status(store, guess)) == ("active", "disputed")
            assert keep(store, port(9000, T0 + DAY, trust="tool"))[0].action == "confirmed"
            assert len(everything(store)) == 2

    def test_a_disputed_value_becomes_active_when_confirmed_with_enough_trust(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            old, guess = port(8000, T0, trust="user"), port(9000, T0 + MINUTE, trust="tool")
            keep(store, old, guess)
            now = keep(store, port(9000, T0 + DAY, trust="user"))[0]
            assert (now.action, set(now.affected)) == ("superseded older", {old.id, guess.id})
            active = [record.text for record in everything(store) if record.status == "active"]
            assert active == ["The server listens on 9000"]

    def test_equal_or_higher_trust_supersedes(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            first, second = port(8000, T0, trust="tool"), port(9000, T0 + DAY, trust="repo")
            keep(store, first, second)
            assert (status(store, first), status(store, second)) == ("superseded", "active")

    def test_an_earlier_value_that_is_added_again_becomes_active(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            a, b, again = port(8000, T0), port(9000, T0 + DAY), port(8000, T0 + 2 * DAY)
            keep(store, a, b)
            assert keep(store, again)[0].action == "superseded older"
            assert [status(store, record) for record in (a, b, again)] == ["superseded", "superseded", "active"]

    def test_attribute_declared_multi_valued_keeps_every_value(self, tmp_path: Path) -> None:
        with self.opened(tmp_path, multi_valued=["server.port"]) as store:
            keep(store, port(8000, T0), port(9000, T0 + DAY))
            assert [record.status for record in everything(store)] == ["active", "active"]

    def test_users_and_agents_do_not_supersede_each_other(self, tmp_path: Path) -> None:
        ada, bob, tester = (Scope("alpha", user="ada"), Scope("alpha", user="bob"), Scope("alpha", agent="tester"))
        with self.opened(tmp_path) as store:
            kept = [port(8000 + n, T0 + n, scope=scope) for n, scope in enumerate((ada, bob, tester, HERE))]
            keep(store, *kept)
            assert [status(store, record) for record in kept] == ["active"] * 4

    def test_facts_without_an_attribute_do_not_supersede_each_other(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            keep(store, made("The server is fast", "fact", subject="server"))
            keep(store, made("The server is old", "fact", subject="server"))
            assert [record.status for record in everything(store)] == ["active", "active"]


class Versions(Suite):
    def test_changing_an_outdated_version_is_a_conflict(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            record = add(store, "First")
            second = change(store, record, "Second")
            with pytest.raises(Conflict, match="version 2, not 1"), store.write(HERE) as writer:
                writer.change(replace(record, salience=0.9), "edit", expect_version=1)
            assert get(store, record.id) == second
            with store.write(HERE) as writer:
                assert writer.change(replace(second, salience=0.9), "edit", expect_version=2).version == 3

    def test_changing_an_unknown_record_raises_not_found(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store, pytest.raises(NotFound):
            change(store, made("Never kept"), "Nor changed")

    def test_history_lists_every_version_and_each_can_be_read(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            versions = [add(store, "Version one", tags=["a"], outcome="pending")]
            for text in ("Version two", "Version three"):
                versions.append(change(store, versions[-1], text))
            versions.append(retire(store, versions[-1]))
            with store.read(HERE) as reader:
                history = reader.history(versions[0].id)
                assert [step.version for step in history] == [2, 3, 4]
                assert [step.verb for step in history] == ["edit", "edit", "retire"]
                assert [step.before for step in history] == versions[:3]
                assert [reader.version(versions[0].id, n) for n in (1, 2, 3, 4)] == versions
                assert reader.version(versions[0].id, 5) is None
                assert reader.version("note_none", 1) is None
                with pytest.raises(NotFound):
                    reader.history("note_none")

    def test_undo_restores_the_text_and_a_second_undo_is_a_redo(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            before = add(store, "Original wording", tags=["x"])
            after = change(store, before, "Altered phrasing")
            (back,) = undo(store, before.id)
            assert replace(back, version=1, updated=before.updated) == before
            assert back.version == 3
            assert (found(store, "original"), found(store, "altered")) == ([before.id], [])
            (again,) = undo(store, before.id)
            assert replace(again, version=2, updated=after.updated) == after
            assert found(store, "altered") == [before.id]

    def test_undo_of_a_retire_makes_the_record_findable_again(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            record = add(store, "Prefer composition")
            retire(store, record)
            assert found(store, "composition") == []
            assert undo(store, record.id)[0].status == "active"
            assert found(store, "composition") == [record.id]

    def test_undo_of_an_add_retires_it_and_twice_is_a_redo(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            record = add(store, "Added by mistake")
            assert undo(store, record.id)[0].status == "retired"
            assert undo(store, record.id)[0].status == "active"
            assert found(store, "mistake") == [record.id]

    def test_undo_of_a_superseding_add_restores_the_older_value(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            old, new = port(8000, T0), port(9000, T0 + DAY)
            keep(store, old, new)
            undo(store, new.id)
            assert (status(store, old), status(store, new)) == ("active", "retired")
            kept = get(store, old.id)
            assert kept is not None
            assert kept.valid_to is None
            with store.read(HERE) as reader:
                assert reader.links([old.id, new.id]) == []
            undo(store, new.id)
            assert (status(store, old), status(store, new)) == ("superseded", "active")
            with store.read(HERE) as reader:
                assert reader.links([old.id]) == [Link(old.id, "superseded_by", new.id)]

    def test_undo_reverts_one_add_of_a_transaction_and_no_other(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            old = port(8000, T0)
            said = add(store, "Said before")
            keep(store, old)
            with store.write(HERE) as writer:
                new = writer.add(port(9000, T0 + DAY)).record
                writer.add(made("Said before"))
                writer.add(made("Said before"))
            undo(store, new.id)
            kept = get(store, said.id)
            assert status(store, old) == "active"
            assert kept is not None
            assert kept.data["confirmations"] == 2
            undo(store, said.id)
            kept = get(store, said.id)
            assert kept is not None
            assert "confirmations" not in kept.data

    def test_undo_after_a_later_change_of_the_other_record_is_a_conflict(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            old, new = port(8000, T0), port(9000, T0 + DAY)
            keep(store, old, new)
            kept = get(store, old.id)
            assert kept is not None
            change(store, kept, "The server listened on 8000")
            with pytest.raises(Conflict, match="undo that change first"):
                undo(store, new.id)
            assert status(store, new) == "active"

    def test_undo_after_a_later_change_that_was_undone_is_no_conflict(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            old, new = port(8000, T0), port(9000, T0 + DAY)
            keep(store, old, new)
            kept = get(store, old.id)
            assert kept is not None
            change(store, kept, "The server listened on 8000")
            undo(store, old.id)
            undo(store, new.id)
            assert status(store, old) == "active"
            assert status(store, new) == "retired"

    def test_an_undo_or_edit_cannot_make_two_values_active(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            old = keep(store, port(8000, T0))[0].record
            retire(store, old)
            new = keep(store, port(9000, T0 + DAY))[0].record
            with pytest.raises(Conflict, match=f"while {new.id!r} is"):
                undo(store, old.id)
            free = add(store, "The server listens nowhere", "fact")
            with pytest.raises(Conflict, match=f"while {new.id!r} is"):
                change(store, free, "The server listens on 7000", subject="server", attribute="port")
            assert [status(store, record) for record in (old, new, free)] == ["retired", "active", "active"]
            retire(store, new)
            assert undo(store, old.id)[0].status == "active"


class Links(Suite):
    def test_relations_are_links_between_active_entities(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            a, b, c, gone = (add(store, f"Thing {n}", "entity") for n in range(4))
            note = add(store, "A note")
            with store.write(HERE) as writer:
                for link in (
                    Link(a.id, "owns", b.id, 0.5),
                    Link(c.id, "reads", a.id, 0.9),
                    Link(b.id, "feeds", c.id, 0.7),
                    Link(a.id, "owns", gone.id),
                    Link(a.id, "about", note.id),
                    Link(a.id, "part_of", b.id),
                    Link(a.id, "is", a.id, 0.1),
                ):
                    writer.link(link)
            retire(store, gone)
            with store.read(HERE) as reader:
                of_a = [Link(c.id, "reads", a.id, 0.9), Link(a.id, "owns", b.id, 0.5), Link(a.id, "is", a.id, 0.1)]
                assert reader.relations([a.id], 9) == of_a
                assert reader.relations([a.id], 1) == of_a[:1]
                assert reader.relations([a.id, b.id, c.id], 9)[1] == Link(b.id, "feeds", c.id, 0.7)
                assert reader.relations([note.id], 9) == []

    def test_links_are_read_both_ways_by_name_and_weight(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            a, b, c = (add(store, text).id for text in ("Aaa", "Bbb", "Ccc"))
            with store.write(HERE) as writer:
                writer.link(Link(a, "needs", b, 0.2))
                writer.link(Link(a, "needs", c, 0.9))
                writer.link(Link(b, "near", c))
                writer.link(Link(a, "needs", b, 0.5))
            with store.read(HERE) as reader:
                assert reader.links([a]) == [Link(a, "needs", c, 0.9), Link(a, "needs", b, 0.5)]
                assert reader.links([c], incoming=True) == [Link(b, "near", c), Link(a, "needs", c, 0.9)]
                assert reader.links([a, b], ["near"]) == [Link(b, "near", c)]
                assert len(list(reader.all_links())) == 3
            with store.write(HERE) as writer:
                assert writer.unlink(Link(a, "needs", b)) is True
                assert writer.unlink(Link(a, "needs", b)) is False

    def test_cyclic_dependencies_are_refused(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            ids = [add(store, f"Task {n}", "task").id for n in range(4)]
            with store.write(HERE) as writer:
                for here, there in pairwise(ids):
                    writer.link(Link(here, "depends_on", there))
                writer.link(Link(ids[0], "depends_on", ids[3]))
            for start, end in ((3, 0), (2, 1), (1, 1)):
                with pytest.raises(InputError, match="cycle"), store.write(HERE) as writer:
                    writer.link(Link(ids[start], "depends_on", ids[end]))
            with store.write(HERE) as writer:
                writer.link(Link(ids[3], "near", ids[0]))

    def test_a_link_to_a_missing_record_is_refused(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            here = add(store, "Here").id
            away = add(store, "Away", scope=Scope("beta")).id
            for link in (Link(here, "near", "note_none"), Link("note_none", "near", here), Link(here, "near", away)):
                with pytest.raises(NotFound), store.write(HERE) as writer:
                    writer.link(link)
            with store.read(HERE) as reader:
                assert list(reader.all_links()) == []

    def test_forget_removes_the_links_of_a_record(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            a, b = add(store, "Aaa").id, add(store, "Bbb").id
            with store.write(HERE) as writer:
                writer.link(Link(a, "near", b))
                writer.link(Link(b, "near", a))
            store.forget(HERE, [b])
            with store.read(HERE) as reader:
                assert list(reader.all_links()) == []
