"""Conformance of search: which words find which records, their order, and an index that follows every change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from conformance.base import (
    DAY,
    FIELDS,
    HERE,
    MINUTE,
    T0,
    Suite,
    add,
    change,
    found,
    hits,
    keep,
    made,
    retire,
    undo,
)
from foveate.store.protocol import Query, SearchGroup, Store
from foveate.testing import embedder
from foveate.text import analysis
from foveate.types import Filters, Scope

SESSION = Scope("alpha", session="s1")


class Searching(Suite):
    def test_words_are_found_in_every_inflection(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            record = add(store, "Caching responses reduced the latencies")
            for query in ("cache", "cached", "response", "reducing latency", "CACHING"):
                assert found(store, query) == [record.id], query
            assert found(store, "database") == []

    def test_identifiers_are_found_in_every_style_and_by_their_parts(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            camel = add(store, "Call getUserName first").id
            snake = add(store, "Never call get_user_name twice").id
            plain = add(store, "The user has a name").id
            for query in ("getUserName", "get_user_name", "GetUserName"):
                assert set(found(store, query)[:2]) == {camel, snake}, query
            assert set(found(store, "user name")) == {camel, snake, plain}

    def test_scripts_without_spaces_are_found(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            japanese = add(store, "東京都の天気は晴れです").id
            korean = add(store, "서울의 날씨는 맑음").id
            assert found(store, "東京") == [japanese]
            assert found(store, "天気") == [japanese]
            assert found(store, "날씨") == [korean]

    def test_accents_do_not_matter(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            record = add(store, "Der Größenvergleich im Café").id
            assert found(store, "cafe großenvergleich") == [record]

    def test_every_field_is_searched_with_its_weight(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            filler = "The quick report covers several unrelated matters"
            by_field = {
                "text": add(store, filler + " kumquat").id,
                "tags": add(store, filler + " one", tags=["kumquat"]).id,
                "subject": add(store, filler + " two", "fact", subject="kumquat").id,
                "entities": add(store, filler + " three", entities=["kumquat"]).id,
                "paths": add(store, filler + " four", paths=["src/kumquat/main.py"]).id,
                "summary": add(store, filler + " five", summary="About kumquat").id,
            }
            assert set(found(store, "kumquat")) == set(by_field.values())
            for field, id in by_field.items():
                weights = dict.fromkeys(FIELDS, 0.0) | {field: 1.0}
                assert found(store, "kumquat", fields=weights) == [id], field
                weights = dict.fromkeys(FIELDS, 0.1) | {field: 0.9}
                assert found(store, "kumquat", fields=weights)[0] == id, field

    def test_rarer_words_and_more_of_them_rank_higher(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            common = [add(store, f"The service number {n} is running").id for n in range(8)]
            rare = add(store, "The service uses a mutex").id
            both = add(store, "The mutex of the service deadlocked").id
            ranked = found(store, "service mutex deadlock", limit=20)
            assert ranked[:2] == [both, rare]
            assert set(ranked[2:]) == set(common)

    def test_relevance_is_calibrated_and_not_relative_to_the_best_hit(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            for n in range(20):
                add(store, f"Ordinary remark number {n} about the weather outside")
            record = add(store, "Kubernetes ingress rewrites the path of requests")
            whole = hits(store, "kubernetes ingress rewrites path requests")[0]
            part = hits(store, "kubernetes billing invoices taxes refunds")[0]
            assert whole.record.id == part.record.id == record.id
            assert 0.8 < whole.lexical <= 1.0
            assert 0.0 < part.lexical < 0.35
            assert all(0.0 <= hit.lexical <= 1.0 for hit in hits(store, "ordinary weather kubernetes", limit=50))

    def test_equal_hits_come_in_the_same_order_every_time(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            ids = [add(store, "Twin statement", key=str(n), subject=None, kind="event").id for n in range(12)]
            newest_first = ids[::-1]
            assert found(store, "twin", limit=12) == newest_first
            assert found(store, "twin", limit=5) == newest_first[:5]

    def test_hits_beyond_full_relevance_keep_the_order_of_their_scores(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            for n in range(30):
                add(store, f"A longer remark number {n} on something else entirely, with several more words in it")
            once = add(store, "Quorum").id
            more = add(store, "Quorum quorum quorum", tags=["quorum"]).id
            assert [hit.lexical for hit in hits(store, "quorum")] == [1.0, 1.0]
            assert found(store, "quorum") == [more, once]

    def test_superseded_records_are_found_as_such_and_retired_ones_are_not(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            values = {"kind": "fact", "subject": "editor", "attribute": "name"}
            old = add(store, "The editor is Emacs", **values, valid_from=T0).id
            new = add(store, "The editor is Vim", **values, valid_from=T0 + DAY).id
            assert {hit.record.id: hit.record.status for hit in hits(store, "editor")} == {old: "superseded", new: "active"}
            retire(store, next(hit.record for hit in hits(store, "vim")))
            assert found(store, "vim") == []

    def test_each_group_is_answered_by_its_kinds_and_limit(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            facts = [add(store, f"Redis fact {n}", "fact").id for n in range(5)]
            notes = [add(store, f"Redis note {n}").id for n in range(5)]
            events = [add(store, f"Redis event {n}", "event").id for n in range(5)]
            terms = dict.fromkeys(analysis.terms("redis"), 1.0)
            wants = [
                SearchGroup(("fact",), 2),
                SearchGroup(("note", "event"), 20),
                SearchGroup((), 3),
                SearchGroup(("censor",), 5),
                SearchGroup(("note",), 0),
            ]
            with store.read(HERE) as reader:
                answers = reader.search(Query(terms, FIELDS), wants)
            got = [{hit.record.id for hit in answer} for answer in answers]
            assert len(got[0]) == 2
            assert got[0] < set(facts)
            assert got[1] == {*notes, *events}
            assert [len(answer) for answer in got[2:]] == [3, 0, 0]

    def test_events_do_not_set_the_weights_of_knowledge(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            keep(store, made("Vault tokens expire"), made("Backups run nightly"), made("Tokens are signed"))
            before = {hit.record.id: hit.lexical for hit in hits(store, "vault tokens", ["note"])}
            with store.write(HERE) as writer:
                for n in range(200):
                    writer.add(made(f"vault {n}", "event"))
            assert {hit.record.id: hit.lexical for hit in hits(store, "vault tokens", ["note"])} == before

    def test_filters_restrict_the_hits(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            old = add(store, "Plan alpha", created=T0 - DAY, tags=["a", "b"], trust="tool").id
            new = add(store, "Plan beta", created=T0, tags=["b"], trust="user").id
            fact = add(store, "Plan gamma", "fact", created=T0 + DAY, trust="agent").id
            cases = [
                (Filters(since=T0), {new, fact}),
                (Filters(until=T0), {old}),
                (Filters(since=T0, until=T0 + 1), {new}),
                (Filters(kinds=("fact",)), {fact}),
                (Filters(tags=("a",)), {old}),
                (Filters(tags=("a", "b")), {old, new}),
                (Filters(tags=("none",)), set()),
                (Filters(min_trust="agent"), {new, fact}),
                (Filters(min_trust="user", kinds=("fact",)), set()),
            ]
            for filters, expected in cases:
                assert set(found(store, "plan", filters=filters)) == expected, filters
                with store.read(HERE) as reader:
                    assert {r.id for r in reader.recent(["note", "fact"], 9, filters)} == expected, filters

    def test_a_narrow_filter_still_gives_exact_results(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            with store.write(HERE) as writer:
                for n in range(1500):
                    tags = ["rare"] if n % 500 == 0 else []
                    writer.add(made(f"Deploy log {n} deploy" + (" with much more to say" if tags else ""), tags=tags))
            filters = Filters(tags=("rare",))
            got = hits(store, "deploy", limit=10, filters=filters)
            assert len(got) == 3
            assert all("rare" in hit.record.tags for hit in got)
            assert len(hits(store, "deploy", limit=2, filters=filters)) == 2

    def test_recent_returns_the_newest_first(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            order = [add(store, f"Happened {n}", "event", created=T0 + n).id for n in (3, 1, 2)]
            note = add(store, "Noted", created=T0 + 5).id
            with store.read(HERE) as reader:
                assert [r.id for r in reader.recent(["event"], 2, Filters())] == [order[0], order[2]]
                assert reader.recent(["event", "note"], 9, Filters())[0].id == note

    def test_most_salient_returns_the_highest_salience_then_the_newest(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            rows = ((0.2, 1), (0.9, 1), (0.5, 1), (0.5, 2))
            low, high, old, new = (
                add(store, f"Thing {n}", "entity", salience=salience, created=T0 + at)
                for n, (salience, at) in enumerate(rows)
            )
            gone = add(store, "Gone", "entity", salience=1.0)
            add(store, "A note", salience=1.0)
            retire(store, gone)
            with store.read(HERE) as reader:
                assert [r.id for r in reader.most_salient(["entity"], 9, Filters())] == [high.id, new.id, old.id, low.id]
                assert [r.id for r in reader.most_salient(["entity"], 2, Filters())] == [high.id, new.id]
                assert [r.id for r in reader.most_salient(["entity"], 9, Filters(since=T0 + 2))] == [new.id]
                assert [r.text for r in reader.most_salient(["note", "entity"], 1, Filters())] == ["A note"]

    def test_a_name_of_several_entities_means_the_active_and_most_salient_one(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            add(store, "Mira from sales", "entity", name="Mira", salience=0.4)
            meant = add(store, "Mira from the uploads", "entity", name="Mira", salience=0.6)
            add(store, "Mira who was", "entity", name="Mira", salience=0.9, status="disputed")
            with store.read(HERE) as reader:
                assert reader.entities_by_name(["mira"])["mira"].id == meant.id

    def test_recent_of_a_session_returns_the_records_written_in_it(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            mine = [add(store, f"Step {n}", "event", scope=SESSION, created=T0 + n).id for n in (2, 3, 1)]
            note = add(store, "Noted", scope=SESSION, created=T0).id
            archived = add(store, "Put aside", "event", scope=SESSION, status="archived").id
            for scope in (HERE, replace(HERE, session="s2")):
                add(store, "Elsewhere", "event", scope=scope, created=T0 + 9)
                add(store, "Put aside elsewhere", "event", scope=scope, status="archived")
            for scope in (HERE, SESSION):
                with store.read(scope) as reader:
                    assert [r.id for r in reader.recent(["event"], 2, Filters(), session="s1")] == [mine[1], mine[0]]
                    assert [r.id for r in reader.recent(["note", "event"], 9, Filters(), session="s1")][-1] == note
                    assert reader.recent(["event"], 9, Filters(), session="s3") == []
                    since = Filters(since=T0 + 3)
                    assert [r.id for r in reader.recent(["event"], 9, since, session="s1")] == [mine[1]]
                    assert [r.id for r in reader.recent(["event"], 9, Filters(), archived=True, session="s1")] == [archived]

    def test_sessions_are_sorted_by_their_latest_event(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            for session, at in (("s1", 1), ("s2", 5), ("s3", 3), ("s1", 4), (None, 9)):
                add(store, f"Happened {at}", "event", scope=replace(HERE, session=session), created=T0 + at)
            add(store, "A note is no event", scope=replace(HERE, session="s4"), created=T0 + 9)
            add(store, "Hers", "event", scope=replace(HERE, user="ada", session="s5"), created=T0 + 9)
            retire(store, add(store, "Retired", "event", scope=replace(HERE, session="s6"), created=T0 + 9))
            with store.read(HERE) as reader:
                assert list(reader.sessions(9, Filters()).items()) == [("s2", T0 + 5), ("s1", T0 + 4), ("s3", T0 + 3)]
                assert list(reader.sessions(1, Filters())) == ["s2"]
                assert reader.sessions(9, Filters(until=T0 + 4)) == {"s3": T0 + 3, "s1": T0 + 1}
            with store.read(Scope("beta")) as reader:
                assert reader.sessions(9, Filters()) == {}

    def test_filters_on_a_type_affect_only_their_kind(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            note = add(store, "Plan alpha", type="error").id
            error, read = (add(store, f"Plan {sort}", "event", type=sort).id for sort in ("error", "file_read"))
            untyped = add(store, "Plan beta", "event").id
            person, place = (add(store, f"Plan {sort}", "entity", type=sort).id for sort in ("person", "place"))
            kinds = ["note", "event", "entity"]
            cases = [
                (Filters(event_types=("error",)), {note, error, person, place}),
                (Filters(event_types=("error", "file_read")), {note, error, read, person, place}),
                (Filters(entity_types=("place",)), {note, error, read, untyped, place}),
                (Filters(event_types=("none",), entity_types=("none",)), {note}),
            ]
            for filters, expected in cases:
                assert set(found(store, "plan", kinds, filters=filters)) == expected, filters
                with store.read(HERE) as reader:
                    assert {r.id for r in reader.recent(kinds, 9, filters)} == expected, filters

    def test_terms_are_found_by_prefix(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            add(store, "Authentication and authors of the auto pilot")
            add(store, "authorised events do not count", "event")
            with store.read(HERE) as reader:
                assert set(reader.terms_with_prefix(["auth"])) == {"authent", "author"}
                assert reader.terms_with_prefix(["auto", "pil", "zebra"]) == ["auto", "pilot"]

    def test_idf_is_higher_for_rare_terms_and_missing_for_unknown_ones(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            for n in range(5):
                add(store, f"The upload of host {n} is slow")
            add(store, "The kafka upload", scope=Scope("beta"))
            add(store, "A lease on lobby was taken", "event")
            with store.read(HERE) as reader:
                known = reader.idf(["upload", "host", "3", "lobbi", "kafka"])
        assert known["3"] > known["upload"] == known["host"]
        assert "lobbi" in known
        assert "kafka" not in known

    def test_count_includes_only_records_in_use(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            first, *_ = [add(store, f"Note number {n}") for n in range(3)]
            retire(store, first)
            with store.read(HERE) as reader:
                assert (reader.count("note"), reader.count("fact")) == (2, 0)

    def test_entities_are_found_by_any_form_of_their_names(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            record = add(store, "The payment service", "entity", name="Pay-Gate", aliases=["billing_api"])
            with store.read(HERE) as reader:
                assert {name: r.id for name, r in reader.entities_by_name(["paygate", "billingapi", "other"]).items()} == {
                    "paygate": record.id,
                    "billingapi": record.id,
                }
            change(store, record, "The payment service", name="Till", aliases=[])
            with store.read(HERE) as reader:
                assert list(reader.entities_by_name(["paygate", "billingapi", "till"])) == ["till"]


class Index(Suite):
    def test_index_follows_every_change(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            record = add(store, "Speaks of walnuts", tags=["brazil"])
            assert found(store, "walnut") == found(store, "brazil") == [record.id]
            record = change(store, record, "Speaks of almonds", tags=["peru"])
            assert found(store, "walnut") == found(store, "brazil") == []
            assert found(store, "almond") == found(store, "peru") == [record.id]
            undo(store, record.id)
            assert (found(store, "walnut"), found(store, "almond")) == ([record.id], [])
            store.forget(HERE, [record.id])
            assert found(store, "walnut") == []
            assert store.health().ok

    def test_index_is_up_to_date_within_the_transaction(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store, store.write(HERE) as writer:
            first = writer.add(made("Pistachio")).record
            second = writer.add(made("Pistachio"))
            assert (second.action, second.record.id) == ("confirmed", first.id)
            writer.forget([first.id])
            assert writer.get([first.id]) == {}
            assert writer.add(made("Pistachio")).action == "added"

    def test_relevance_returns_to_its_value_after_a_forget(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            keep(store, made("Steady words here"), made("Other words there"))
            before = [(hit.record.id, hit.lexical) for hit in hits(store, "steady words")]
            extra = [add(store, f"Steady extra {n} words " * 5) for n in range(20)]
            change(store, extra[0], "Quite different")
            assert [(hit.record.id, hit.lexical) for hit in hits(store, "steady words")] != before
            store.forget(HERE, [record.id for record in extra])
            assert [(hit.record.id, hit.lexical) for hit in hits(store, "steady words")] == before


class Vectors(Suite):
    """Tests with the deterministic embedder. A store without vectors overrides them."""

    model = embedder()

    def put(self, store: Store, text: str, **values: object) -> str:
        with store.write(HERE) as writer:
            return writer.add(made(text, **values), self.model.embed([text])[0]).record.id  # type: ignore[arg-type]

    def near(self, store: Store, query: str, limit: int = 3, **options: object) -> list[str]:
        """Return the texts found by vector alone: no record contains the words of the query."""
        vector = self.model.query(query)
        return [hit.record.id for hit in hits(store, "", limit=limit, vector=vector, **options)]  # type: ignore[arg-type]

    def test_nearest_come_first_without_a_shared_word(self, tmp_path: Path) -> None:
        with self.opened(tmp_path, embedding_namespace=self.model.fingerprint) as store:
            near, far = self.put(store, "caching responses"), self.put(store, "quarterly tax filing")
            assert self.near(store, "cached response")[0] == near
            both = hits(store, "tax", vector=self.model.query("cached response"))
            relevance = {hit.record.id: hit for hit in both}
            assert relevance[far].lexical > 0
            assert relevance[near].vector is not None
            assert all(0.0 <= (hit.vector or 0.0) <= 1.0 for hit in both)

    def test_vectors_are_counted_for_the_owners_that_the_scope_names(self, tmp_path: Path) -> None:
        with self.opened(tmp_path, embedding_namespace=self.model.fingerprint) as store:
            self.put(store, "caching responses")
            ada, ben = (replace(HERE, user=name) for name in ("ada", "ben"))
            with store.write(ada) as writer:
                writer.add(made("cached pages", scope=ada), self.model.embed(["cached pages"])[0])
            for scope, number in ((HERE, 2), (ada, 2), (ben, 1)):
                with store.read(scope) as reader:
                    assert reader.counts().vectors == number

    def test_vector_changes_together_with_the_record(self, tmp_path: Path) -> None:
        with self.opened(tmp_path, embedding_namespace=self.model.fingerprint) as store:
            id = self.put(store, "caching responses")
            with store.read(HERE) as reader:
                record = reader.get([id])[id]
            with store.write(HERE) as writer:
                after = made("quarterly tax filing", id=id)
                writer.change(after, "edit", vector=self.model.embed([after.text])[0])
            same = {hit.record.id: hit.vector for hit in hits(store, "", vector=self.model.query("quarterly tax filing"))}
            assert (same[id] or 0.0) > 0.99
            change(store, record, "entirely other words")
            assert self.near(store, "quarterly tax filing") == []
            with store.write(HERE) as writer:
                writer.put_vector(id, self.model.embed(["entirely other words"])[0])
            assert self.near(store, "entirely other words") == [id]
            store.forget(HERE, [id])
            assert self.near(store, "entirely other words") == []

    def test_vectors_of_another_embedder_are_not_mixed_in(self, tmp_path: Path) -> None:
        other = embedder(32)
        with self.opened(tmp_path, embedding_namespace=self.model.fingerprint) as store:
            self.put(store, "caching responses")
            with self.reopened(tmp_path, embedding_namespace=other.fingerprint) as second:
                assert hits(second, "", vector=other.query("caching responses")) == []
                with second.write(HERE) as writer:
                    new = writer.add(made("cached pages"), other.embed(["cached pages"])[0]).record.id
                assert [hit.record.id for hit in hits(second, "", vector=other.query("cached pages"))] == [new]
            assert new not in self.near(store, "cached pages")

    def test_failed_transaction_leaves_no_vector(self, tmp_path: Path) -> None:
        with self.opened(tmp_path, embedding_namespace=self.model.fingerprint) as store:
            kept = self.put(store, "cached responses")
            try:
                with store.write(HERE) as writer:
                    writer.add(made("cached pages"), self.model.embed(["cached pages"])[0])
                    vector = self.model.query("cached pages")
                    assert len(writer.search(Query({}, FIELDS, vector), [SearchGroup((), 5)])[0]) == 2
                    raise RuntimeError
            except RuntimeError:
                pass
            assert self.near(store, "cached pages") == [kept]

    def test_filters_and_scopes_restrict_vector_hits(self, tmp_path: Path) -> None:
        with self.opened(tmp_path, embedding_namespace=self.model.fingerprint) as store:
            for n in range(150):
                self.put(store, f"cached page {n}")
            tagged = self.put(store, "pages of a book", tags=["rare"])
            fact = self.put(store, "a page of facts", kind="fact")
            assert self.near(store, "cached page", filters=Filters(tags=("rare",))) == [tagged]
            assert self.near(store, "cached page", kinds=("fact",)) == [fact]
            assert self.near(store, "cached page", scope=Scope("beta")) == []

    def test_a_narrow_filter_loses_no_vector_hit(self, tmp_path: Path) -> None:
        with self.opened(tmp_path, embedding_namespace=self.model.fingerprint) as store:
            with store.write(HERE) as writer:
                for n in range(400):
                    text = f"cached page {n}"
                    writer.add(made(text, now=T0 - n * MINUTE), self.model.embed([text])[0])
            ranked = self.near(store, "cached page", limit=400)
            assert len(ranked) == 400
            with store.read(HERE) as reader:
                kept = reader.get(ranked)
            for share in (2, 20, 130):
                filters = Filters(since=T0 - 400 // share * MINUTE + MINUTE)
                passing = [id for id in ranked if kept[id].created >= (filters.since or 0)]
                assert len(passing) == 400 // share
                assert self.near(store, "cached page", limit=5, filters=filters) == passing[:5]

    def test_superseded_hits_do_not_count_towards_the_limit(self, tmp_path: Path) -> None:
        with self.opened(tmp_path, embedding_namespace=self.model.fingerprint) as store:
            values = [
                self.put(store, f"cached pages live {n} days", kind="fact", subject="page", attribute="days", now=T0 + n)
                for n in range(5)
            ]
            other = self.put(store, "cached pages and more of them", kind="fact")
            found = self.near(store, "cached pages live days", limit=2)
            assert {values[-1], other} <= set(found)
            assert len(found) > 2

    def test_records_without_a_vector_are_counted_paged_and_filled(self, tmp_path: Path) -> None:
        with self.opened(tmp_path, embedding_namespace=self.model.fingerprint) as store:
            self.put(store, "has one")
            first, second, third = (add(store, f"cached page {n}") for n in range(3))
            with store.read(HERE) as reader:
                page, further = reader.records_without_vector(0, 2)
                rest, end = reader.records_without_vector(further, 2)
                assert ([record.id for record in (*page, *rest)], end) == ([first.id, second.id, third.id], 0)
                assert (reader.count_missing_vectors(), reader.max_doc() >= further) == (3, True)
            vectors = self.model.embed([record.text for record in (first, second, third)])
            change(store, first, "other words by now")
            store.forget(HERE, [second.id])
            with store.write(HERE) as writer:
                assert writer.add_missing_vectors(list(zip((first, second, third), vectors, strict=True))) == 1
                assert writer.add_missing_vectors([(third, vectors[2])]) == 0
            assert third.id in self.near(store, "cached page 2")
            with store.read(HERE) as reader:
                assert reader.count_missing_vectors() == 1
            assert store.projects() == ["alpha"]

    def test_vectors_of_other_embedders_are_counted_and_dropped(self, tmp_path: Path) -> None:
        other = embedder(32)
        with self.opened(tmp_path, embedding_namespace=self.model.fingerprint) as store:
            self.put(store, "caching responses")
            id = self.put(store, "cached pages")
            with self.reopened(tmp_path, embedding_namespace=other.fingerprint) as second:
                with second.read(HERE) as reader:
                    assert [
                        (namespace.vector_count, namespace.is_current) for namespace in reader.embedding_namespaces()
                    ] == [(2, False)]
                with second.write(HERE) as writer:
                    assert writer.drop_vectors(self.model.fingerprint, 1) == 1
                    assert writer.drop_vectors(self.model.fingerprint, 9) == 1
            assert self.near(store, "cached pages") == []
            with store.write(HERE) as writer:
                writer.put_vector(id, self.model.embed(["cached pages"])[0])
            assert self.near(store, "cached pages") == [id]
