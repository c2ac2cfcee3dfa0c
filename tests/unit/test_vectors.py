"""Cached vectors follow the store, filtered search is exact, and the embedder can be changed at any time."""

from __future__ import annotations

import math
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.base import HERE, MINUTE, T0, add, change, made, retire
from foveate.clock import new_id, now
from foveate.errors import InputError, SourceError
from foveate.memory.backfill import EmbedResult, drop_unused_vectors, embed_missing
from foveate.records.kinds import KINDS
from foveate.records.make import Rules
from foveate.store.protocol import Query, Reader, SearchGroup, Store
from foveate.store.scoped import ScopedStore
from foveate.store.sql import queries
from foveate.store.sql.rows import from_row
from foveate.store.sqlite import vectors
from foveate.store.sqlite.store import SQLiteStore
from foveate.store.sqlite.vectors import InMemoryVectorSearch, quantize
from foveate.store.vectors import MAX_SUPERSEDED_HITS, VectorView, best_hits, pack
from foveate.testing import embedder
from foveate.types import TRUST, Filters, Record, Scope
from property_settings import examples


class FunctionEmbedder:
    """An embedder that calls a function. If the function returns None, the embedder does not answer."""

    fingerprint = "calls"
    dim = 3

    def __init__(self, function: Callable[[Sequence[str]], Any]) -> None:
        self._function = function

    def embed(self, texts: Sequence[str], /) -> Any:
        vectors = self._function(texts)
        if vectors is None:
            raise SourceError("no answer")
        return vectors

    def query(self, text: str, /) -> Any:
        return self.embed([text])[0]


def scoped_store(store: Store, scope: Scope, function: Callable[[Sequence[str]], Any]) -> ScopedStore:
    """Return the store with an embedder that calls a function."""
    return ScopedStore(store=store, scope=scope, rules=Rules(), clock=now, ids=new_id, embedder=FunctionEmbedder(function))


def fill(store: Store, scope: Scope, function: Callable[[Sequence[str]], Any], batch: int, **options: Any) -> EmbedResult:
    """Embed the records without a vector by a function."""
    return embed_missing(scoped_store(store, scope, function), batch=batch, **options)


DIM = 16
MODELS = (embedder(DIM), embedder(DIM * 2))
WORDS = ("cache", "pages", "redis", "tax", "filing", "night", "backup", "cached", "queue", "broker")


def vector(text: str, model: int = 0) -> Sequence[float]:
    return MODELS[model].embed([text])[0]


def opened(folder: Path | str, model: int = 0) -> SQLiteStore:
    return SQLiteStore(Path(folder) / "state.db", embedding_namespace=MODELS[model].fingerprint)


def put(store: SQLiteStore, text: str, scope: Scope = HERE, **values: Any) -> Record:
    with store.write(scope) as writer:
        return writer.add(made(text, scope=scope, **values), vector(text)).record


def near(reader: Reader, text: str, limit: int = 5, model: int = 0, **filters: Any) -> list[str]:
    """Return the texts of the nearest records."""
    query = Query({}, {}, MODELS[model].query(text), Filters(**filters))
    return [hit.record.text for hit in reader.search(query, [SearchGroup((), limit)])[0]]


def seen(store: SQLiteStore, text: str, limit: int = 5, **filters: Any) -> list[str]:
    with store.read(HERE) as reader:
        return near(reader, text, limit, **filters)


# --- a reference -----------------------------------------------------------------------------------------------------


def half(numbers: Sequence[float]) -> Sequence[float]:
    return struct.unpack(f"<{len(numbers)}e", pack(numbers))


def visible(record: Record, scope: Scope) -> bool:
    walls = ("user", "agent", *(("session", "task") if KINDS[record.kind].is_private else ()))
    return all(getattr(record.scope, wall) in (None, getattr(scope, wall)) for wall in walls)


def passes(record: Record, filters: Filters) -> bool:
    return (
        record.status not in ("retired", "archived")
        and (filters.since is None or record.created >= filters.since)
        and (filters.until is None or record.created < filters.until)
        and TRUST.index(record.trust) >= TRUST.index(filters.min_trust)
        and (not filters.tags or bool(set(filters.tags) & set(record.tags)))
        and (not filters.kinds or record.kind in filters.kinds)
    )


def expected(
    records: dict[str, Record], held: set[str], question: Sequence[float], want: SearchGroup, scope: Scope, filters: Filters
) -> set[tuple[str, float]]:
    """Return (id, similarity) of the records that a search must find, from a scan over all records."""
    found = []
    for number, record in enumerate(records.values()):
        if record.id not in held or not visible(record, scope) or not passes(record, filters):
            continue
        if want.kinds and record.kind not in want.kinds:
            continue
        score = round(math.fsum(a * b for a, b in zip(half(vector(record.text)), question, strict=True)), 6)
        found.append((-score, number, record))
    ranked = [(record, -score) for score, _, record in sorted(found, key=lambda one: one[:2]) if score < 0]
    holding = [pair for pair in ranked if pair[0].status == "active"][: want.limit]
    end = len(ranked)
    if len(holding) == want.limit:
        end = ranked.index(holding[-1]) if holding else 0
    beaten = [pair for pair in ranked[:end] if pair[0].status != "active"][:MAX_SUPERSEDED_HITS]
    return {(record.id, min(score, 1.0)) for record, score in (*holding, *beaten)}


texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
filters_ = st.builds(
    Filters,
    kinds=st.sampled_from([(), ("note",), ("fact", "scratch")]),
    since=st.none() | st.integers(0, 12).map(lambda n: T0 - n * MINUTE),
    until=st.none() | st.integers(0, 12).map(lambda n: T0 - n * MINUTE),
    tags=st.sampled_from([(), ("a",), ("a", "b")]),
    min_trust=st.sampled_from(TRUST),
)
scopes = st.builds(
    Scope, st.just("alpha"), st.sampled_from((None, "ana")), st.sampled_from((None, "coder")), st.sampled_from((None, "s1"))
)
additions = st.fixed_dictionaries(
    {
        "text": texts,
        "kind": st.sampled_from(("note", "fact", "scratch")),
        "scope": scopes,
        "tags": st.sampled_from(((), ("a",), ("b", "c"))),
        "trust": st.sampled_from(("user", "tool")),
        "created": st.integers(0, 12).map(lambda n: T0 - n * MINUTE),
        "keyed": st.booleans(),
    }
)
steps = st.one_of(
    st.tuples(st.just("add"), additions),
    st.tuples(st.sampled_from(("fail", "bare")), additions),
    st.tuples(st.sampled_from(("edit", "edit bare")), st.tuples(st.integers(0, 99), texts)),
    st.tuples(st.sampled_from(("forget", "retire", "fill", "other", "search")), st.integers(0, 99)),
)


class StoreModel:
    """A file opened by two stores and by a third with another embedder, and the vectors that it must contain."""

    def __init__(self, folder: str) -> None:
        self.stores = [opened(folder), opened(folder)]
        self.other = opened(folder, 1)
        self.held: set[str] = set()

    def records(self) -> dict[str, Record]:
        """Return all records of any owner in the order of their numbers."""
        store = self.stores[0]
        with store._connections.transaction("begin") as database:
            rows = database.connection.execute(
                f"select {queries.load('sqlite')['record_columns']} from records order by doc"
            ).fetchall()
        return {record.id: record for record in (from_row(row, "alpha") for row in rows)}

    def step(self, verb: str, what: Any) -> None:
        store = self.stores[len(self.held) % 2]
        if verb in ("add", "fail", "bare"):
            self.added(store, verb, dict(what))
        elif verb == "fill":
            assert fill(store, HERE, lambda found: [vector(text) for text in found], 2, start=0.4).error == ""
            self.held = set(self.records())
        elif verb == "other":
            fill(self.other, HERE, lambda found: [vector(text, 1) for text in found], 3)
        elif verb != "search":
            self.changed(store, verb, what)

    def added(self, store: SQLiteStore, verb: str, values: dict[str, Any]) -> None:
        keyed = values.pop("keyed") and values["kind"] == "fact"
        record = made(**values, **({"subject": "it", "attribute": "is"} if keyed else {}))
        numbers = None if verb == "bare" else vector(record.text)
        try:
            with store.write(record.scope) as writer:
                done = writer.add(record, numbers)
                if verb == "fail":
                    near(writer, record.text)
                    raise ZeroDivisionError
        except ZeroDivisionError:
            return
        if numbers is not None and done.record.id == record.id:
            self.held.add(record.id)

    def changed(self, store: SQLiteStore, verb: str, what: Any) -> None:
        number, text = what if isinstance(what, tuple) else (what, "")
        records = list(self.records().values())
        if not records:
            return
        record = records[number % len(records)]
        with store.write(record.scope) as writer:
            if verb == "forget":
                writer.forget([record.id])
            elif verb == "retire":
                writer.change(replace(record, status="retired"), "retire")
            else:
                values = {name: getattr(record, name) for name in ("tags", "trust", "created", "status")}
                after = made(text, record.kind, scope=record.scope, id=record.id, **values)
                writer.change(after, "edit", vector=vector(text) if verb == "edit" else None)
        if verb == "forget" or (verb == "edit bare" and text != record.text):
            self.held.discard(record.id)
        elif verb == "edit":
            self.held.add(record.id)

    def check(self, question: str, wants: list[SearchGroup], scope: Scope, filters: Filters) -> None:
        asked = MODELS[0].query(question)
        records = self.records()
        for store in self.stores:
            with store.read(scope) as reader:
                found = reader.search(Query({}, {}, asked, filters), wants)
                assert reader.count_missing_vectors() == len(records) - len(self.held)
            for hits, want in zip(found, wants, strict=True):
                got = {(hit.record.id, hit.vector) for hit in hits}
                assert got == expected(records, self.held, asked, want, scope, filters)


@contextmanager
def small_pages(max_listed: int) -> Iterator[None]:
    """Make pages and sorted parts so small that the tests reach every branch of the search."""
    sizes = {
        "EXTRA_CANDIDATES": 1,
        "INITIAL_SORTED_ROWS": 3,
        "PAGE_ROWS": 4,
        "MAX_LISTED_DOCS": max_listed,
        "LOOKUP_COST": 1,
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in sizes.items():
            patch.setattr(vectors, name, value)
        yield


@pytest.mark.slow
@examples(60)
@given(
    st.lists(steps, min_size=4, max_size=24),
    texts,
    st.lists(
        st.builds(SearchGroup, st.sampled_from([(), ("note",), ("fact", "scratch")]), st.integers(0, 4)),
        min_size=1,
        max_size=3,
    ),
    scopes,
    filters_,
    st.sampled_from((2, 100)),
)
def test_hits_equal_those_of_a_scan_over_all_records(
    taken: list[tuple[str, Any]], question: str, wants: list[SearchGroup], scope: Scope, filters: Filters, max_listed: int
) -> None:
    with TemporaryDirectory() as folder, small_pages(max_listed):
        world = StoreModel(folder)
        for number, (verb, what) in enumerate(taken):
            world.step(verb, what)
            if number % 3 == 0 or verb == "search":
                world.check(question, wants, scope, Filters())
        world.check(question, wants, scope, filters)
        for store in (*world.stores, world.other):
            store.close()


# --- what is held in memory ------------------------------------------------------------------------------------------


@pytest.fixture
def read_rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of vectors that each read took from the database."""
    read: list[int] = []
    whole = vectors.quantize
    monkeypatch.setattr(vectors, "quantize", lambda rows: read.append(len(rows)) or whole(rows))
    return read


def test_only_what_changed_is_read_again(tmp_path: Path, read_rows: list[int]) -> None:
    store, other = opened(tmp_path), opened(tmp_path)
    records = [put(store, f"page {n} of the cache") for n in range(20)]
    assert "page 3 of the cache" in seen(store, "page 3 of the cache")
    assert read_rows == [20]
    put(other, "a tax filing")
    assert seen(store, "a tax filing")[0] == "a tax filing"
    retire(store, records[5])
    assert "page 5 of the cache" not in seen(store, "page 5 of the cache", 20)
    assert read_rows == [20, 1]
    with store.write(HERE) as writer:
        writer.change(made("nightly backup", id=records[7].id), "edit", vector=vector("nightly backup"))
    assert seen(store, "nightly backup")[0] == "nightly backup"
    assert read_rows == [20, 1, 1]
    store.forget(HERE, [records[8].id])
    assert "page 8 of the cache" not in seen(store, "page 8 of the cache", 20)
    assert read_rows == [20, 1, 1]
    store.close()
    other.close()


def test_a_record_number_used_again_after_forget_has_no_old_vector(tmp_path: Path) -> None:
    store, other = opened(tmp_path), opened(tmp_path)
    put(store, "a tax filing")
    last = put(store, "cached pages")
    assert seen(other, "cached pages")[0] == "cached pages"
    store.forget(HERE, [last.id])
    put(store, "nightly backup")
    assert "cached pages" not in seen(other, "cached pages")
    assert seen(other, "nightly backup")[0] == "nightly backup"
    store.close()
    other.close()


def test_a_record_whose_vector_was_replaced_is_found_once(tmp_path: Path) -> None:
    store = opened(tmp_path)
    first = put(store, "cached pages")
    put(store, "pages of a tax filing")
    assert len(seen(store, "cached pages", 2)) == 2
    with store.write(HERE) as writer:
        writer.change(made("pages cached", id=first.id), "edit", vector=vector("pages cached"))
    assert seen(store, "cached pages", 2) == ["pages cached", "pages of a tax filing"]
    store.close()


def test_an_older_snapshot_finds_the_old_vectors_while_others_write(tmp_path: Path, read_rows: list[int]) -> None:
    store = opened(tmp_path)
    first = put(store, "cached pages")
    assert seen(store, "cached pages") == ["cached pages"]
    with store.read(HERE) as old:
        assert old.revision
        put(store, "cached page two")
        change(store, first, "a tax filing")
        assert seen(store, "cached pages") == ["cached page two"]
        assert near(old, "cached pages") == ["cached pages"]
    assert read_rows == [1, 1]
    store.close()


def test_a_reader_inside_a_rolled_back_writer_caches_nothing() -> None:
    store = SQLiteStore(":memory:", embedding_namespace=MODELS[0].fingerprint)
    put(store, "a tax filing")
    with suppress(ZeroDivisionError), store.write(HERE) as writer:
        writer.add(made("cached pages"), vector("cached pages"))
        writer.flush()
        with store.read(HERE) as reader:
            near(reader, "cached pages")
        raise ZeroDivisionError
    put(store, "nightly backup")
    assert "cached pages" not in seen(store, "cached pages")
    assert seen(store, "nightly backup")[0] == "nightly backup"
    store.close()


def test_cached_segments_stay_within_max_bytes_except_the_one_in_use(tmp_path: Path, read_rows: list[int]) -> None:
    store, search = opened(tmp_path), InMemoryVectorSearch(max_bytes=1)
    for project in ("alpha", "beta"):
        put(store, f"cached pages of {project}", Scope(project))

    def asked(project: str) -> int:
        with store._connections.transaction("begin") as database:
            number = database.fetch_all("project", {"name": project})[0][0]
            within = dict.fromkeys(("user", "agent", "session", "task", *FILTERS))
            view = VectorView(database.fetch_all, number, 1, {}, within)
            return len(search.nearest(view, vector("cached pages"), [SearchGroup((), 3)])[0])

    assert [asked(project) for project in ("alpha", "alpha", "beta", "alpha")] == [1, 1, 1, 1]
    assert read_rows == [1, 1, 1]
    store.close()


def test_older_versions_count_towards_max_bytes_and_are_evicted_first() -> None:
    """Arrays that two versions share count once."""
    rows = [(n + 1, n + 1, 1, pack([1.0, float(n % 7)] * 32)) for n in range(2000)]
    versions = [quantize(rows[:1000])]
    for n in range(1000, 1003):
        versions.append(versions[-1].merge(quantize(rows[n : n + 1])))
    once = sum(part.nbytes for part in versions[0].arrays)
    for roomy, held in ((True, 4), (False, 2)):
        search = InMemoryVectorSearch(max_bytes=2 * once if roomy else int(1.3 * once))
        for version in versions:
            search._cache((1, 1), version)
        assert [each.last_change for each in search._versions[1, 1]] == [1000, 1001, 1002, 1003][-held:]
    search._cache((2, 1), quantize(rows[1000:]))
    assert {key: len(held) for key, held in search._versions.items()} == {(2, 1): 1}


FILTERS = ("since", "until", "trusts", "tags", "only_kinds", "event_types", "entity_types")


def test_threads_that_search_and_write_find_their_own_records(tmp_path: Path) -> None:
    store, failures = opened(tmp_path), list[str]()

    def work(name: str) -> None:
        for n in range(15):
            text = f"{name} {n} {WORDS[n % 10]}"
            put(store, text)
            if seen(store, text, 1) != [text]:
                failures.append(text)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("ash", "birch", "cedar")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    store.close()


def test_upper_bounds_are_never_below_the_exact_similarity() -> None:
    numbers = [[math.sin(n * 7.3 + d * d) for d in range(64)] for n in range(200)] + [[0.0] * 64]
    unit = [[x / (math.hypot(*row) or 1.0) for x in row] for row in numbers]
    segment = vectors.quantize([(n, n, 1, pack(row)) for n, row in enumerate(unit)])
    for question in unit[:20]:
        exact = [math.fsum(a * b for a, b in zip(half(row), question, strict=True)) for row in unit]
        bounds = segment.upper_bounds(vectors.np.asarray(question)).tolist()
        assert all(bound >= score for bound, score in zip(bounds, exact, strict=True))
        assert max(bound - score for bound, score in zip(bounds, exact, strict=True)) < 0.02


def test_superseded_hits_do_not_crowd_out_current_ones() -> None:
    ranked = [vectors.VectorHit(n, 1 - n / 100, n >= 30) for n in range(40)]
    assert [hit.doc for hit in best_hits(ranked, 3)] == [*range(MAX_SUPERSEDED_HITS), 30, 31, 32]


# --- changing the embedder -------------------------------------------------------------------------------------------


def embedded(texts_: Sequence[str]) -> list[Sequence[float]]:
    return [vector(text, 1) for text in texts_]


@pytest.fixture
def changed(tmp_path: Path) -> Iterator[SQLiteStore]:
    """A store of ten records by one embedder, opened with another."""
    old = opened(tmp_path)
    with old.write(HERE) as writer:
        for n in range(10):
            writer.add(made(f"page {n} of {WORDS[n]}"), vector(f"page {n} of {WORDS[n]}"))
    old.close()
    store = opened(tmp_path, 1)
    yield store
    store.close()


def test_a_new_embedder_finds_records_while_embedding_continues(changed: SQLiteStore) -> None:
    told: list[tuple[int, int]] = []
    done = fill(changed, HERE, embedded, 3, progress=lambda *so_far: told.append(so_far), should_stop=lambda: len(told) == 2)
    assert (done.embedded_count, done.remaining, told) == (6, 4, [(3, 10), (6, 10)])
    with changed.read(HERE) as reader:
        assert len(near(reader, "page", 20, model=1)) == 6
    assert fill(changed, HERE, embedded, 3, start=0.7).embedded_count == 4
    assert fill(changed, HERE, embedded, 3).embedded_count == 0
    with changed.read(HERE) as reader:
        assert len(near(reader, "page", 20, model=1)) == 10
        assert [(space.vector_count, space.is_current) for space in reader.embedding_namespaces()] == [
            (10, False),
            (10, True),
        ]
    assert drop_unused_vectors(scoped_store(changed, HERE, embedded)) == {MODELS[0].fingerprint: 10}
    with changed.read(HERE) as reader:
        assert [space.fingerprint for space in reader.embedding_namespaces()] == [MODELS[1].fingerprint]


def test_texts_are_embedded_outside_a_transaction_and_changed_records_are_skipped(changed: SQLiteStore) -> None:
    with changed.read(HERE) as reader:
        first, second = list(reader.records())[:2]
    touched: list[str] = []

    def slow(texts_: Sequence[str]) -> list[Sequence[float]]:
        if not touched:
            touched.append(change(changed, first, "entirely other words").id)
            changed.forget(HERE, [second.id])
            add(changed, "written meanwhile")
        return embedded(texts_)

    done = fill(changed, HERE, slow, 100)
    assert (done.embedded_count, done.remaining) == (8, 2)
    with changed.read(HERE) as reader:
        found = near(reader, first.text, 20, model=1)
    assert len(found) == 8
    assert first.text not in found
    assert fill(changed, HERE, embedded, 100).remaining == 0


@pytest.mark.parametrize(
    ("refused", "made_", "answered"), [((), 10, True), (("cache", "queue"), 8, True), (WORDS, 0, False)]
)
def test_rejected_texts_do_not_affect_others_and_a_silent_embedder_ends_the_run(
    changed: SQLiteStore, refused: Sequence[str], made_: int, answered: bool
) -> None:
    def fussy(texts_: Sequence[str]) -> list[Sequence[float]] | None:
        silent = len(refused) == len(WORDS)
        return None if silent or any(word in text.split() for text in texts_ for word in refused) else embedded(texts_)

    done = fill(changed, HERE, fussy, 10)
    assert (done.embedded_count, done.remaining, done.error == "") == (made_, 10 - made_, answered)


def test_concurrent_workers_embed_each_record_once(changed: SQLiteStore) -> None:
    made_: list[int] = []

    def work(begin: float) -> None:
        made_.append(fill(changed, HERE, embedded, 2, start=begin).embedded_count)

    threads = [threading.Thread(target=work, args=(begin,)) for begin in (0.0, 0.3, 0.9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(made_) == 10
    with changed.read(HERE) as reader:
        assert len(near(reader, "page", 20, model=1)) == 10


def test_an_edit_and_a_forget_reach_the_vectors_of_every_embedder(changed: SQLiteStore) -> None:
    fill(changed, HERE, embedded, 10)
    with changed.read(HERE) as reader:
        first, second = list(reader.records())[:2]
    change(changed, first, "other words")
    assert changed.forget(HERE, [second.id]).counts["vectors"] == 2
    with changed.read(HERE) as reader:
        assert [space.vector_count for space in reader.embedding_namespaces()] == [8, 8]


def test_vectors_in_use_are_not_dropped(changed: SQLiteStore) -> None:
    with changed.write(HERE) as writer, pytest.raises(InputError, match="in use"):
        writer.drop_vectors(MODELS[1].fingerprint, 10)
