"""SQLite and PostgreSQL return the same records in the same order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from foveate.clock import millis
from foveate.memory.memory import SEARCH_FIELDS, Memory
from foveate.records.make import Rules
from foveate.store.postgres.store import PostgresStore
from foveate.store.protocol import Query, Reader, SearchGroup, Store
from foveate.store.scoped import ScopedStore
from foveate.store.sqlite.store import SQLiteStore
from foveate.testing import START, FixedClock, counting_ids, embedder
from foveate.text import analysis
from foveate.text.query_expansion import expand_query
from foveate.types import NO_FILTERS, TRUST, Filters, Scope
from postgres_server import Server

MODEL = embedder()
SCOPE = Scope("alpha", user="ada", session="s1")
KINDS = ("note", "fact", "decision", "event", "entity", "episode", "gotcha")
VOCABULARY = """\
cache redis postgres index query deploy rollback timeout retry socket thread lock queue worker parser token budget
prompt context memory vector search rank merge branch commit release tuesday port 8080 latency p95 schema migration config
flag secret login session cookie header proxy nginx docker image volume backup restore straße übergrößen 日本語 naïve"""
WORDS = tuple(VOCABULARY.split())


def fill(store: Store) -> None:
    draw, clock = Random(7), FixedClock(step=61_000)
    data = ScopedStore(store=store, scope=SCOPE, rules=Rules(), clock=clock, ids=counting_ids(), embedder=MODEL)
    memory = Memory(data)
    for n in range(400):
        kind = draw.choice(KINDS)
        text = " ".join(draw.choices(WORDS, weights=range(len(WORDS), 0, -1), k=draw.randint(3, 40)))
        values: dict[str, object] = {"tags": draw.sample(WORDS, draw.randint(0, 3)), "trust": draw.choice(TRUST[1:])}
        if kind in ("event", "entity"):
            values["data"] = {"type": draw.choice(("command", "message") if kind == "event" else ("person", "service"))}
        if kind == "fact" and n % 3 == 0:
            values |= {"subject": draw.choice(WORDS[:9]), "attribute": draw.choice(("size", "port"))}
        scope = draw.choice((SCOPE, SCOPE, Scope("alpha"), Scope("alpha", user="bob"), Scope("beta", user="ada")))
        added = memory.add(kind, text, scope=scope, **values)
        if n % 17 == 0 and scope == SCOPE:
            memory.edit(added.record.id, status="retired")


def questions() -> Iterator[tuple[Query, list[SearchGroup]]]:
    draw = Random(11)
    for n in range(150):
        said = " ".join(draw.choices([*WORDS, "unheard", "slow"], k=draw.randint(1, 6)))
        filters = NO_FILTERS
        if n % 3 == 1:
            start = millis(START)
            filters = Filters(
                tags=tuple(draw.sample(WORDS[:12], 3)) if n % 2 else (),
                since=start + draw.randint(0, 100) * 61_000 if n % 4 else None,
                until=start + draw.randint(200, 400) * 61_000 if n % 5 else None,
                min_trust=draw.choice(TRUST),
                event_types=("command",) if n % 7 == 0 else (),
                entity_types=("service",) if n % 11 == 0 else (),
            )
        vector = MODEL.query(said) if n % 2 else None
        also = expand_query(said) if n % 5 else {}
        wants = [
            SearchGroup(tuple(draw.sample(KINDS, draw.randint(0, 3))), draw.randint(1, 60))
            for _ in range(draw.randint(1, 4))
        ]
        yield Query(dict.fromkeys(analysis.terms(said), 1.0), SEARCH_FIELDS, vector, filters, also), wants


def reads(reader: Reader) -> list[object]:
    """Return the results of every read that has an order and is not a search."""
    ids = [record.id for record in reader.records()]
    return [
        ids,
        [record.id for record in reader.recent(KINDS, 50, NO_FILTERS)],
        [record.id for record in reader.most_salient(KINDS, 50, NO_FILTERS)],
        [record.id for record in reader.page(100, NO_FILTERS)[0]],
        reader.links(ids),
        reader.idf(WORDS),
        reader.terms_with_prefix(["s", "re", "ü"]),
        sorted(
            (near.anchor_id, near.offset, near.record.id) for near in reader.session_neighbors(ids[:20], (), 3, NO_FILTERS)
        ),
        reader.sessions(5, NO_FILTERS),
        reader.growth(millis(START) + 10_000_000),
        reader.counts().records,
    ]


@pytest.fixture(scope="module")
def stores(postgres: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, Store]]:
    file: Path = tmp_path_factory.mktemp("same") / "state.db"
    pair = (
        SQLiteStore(file, embedding_namespace=MODEL.fingerprint),
        PostgresStore(postgres.database(), embedding_namespace=MODEL.fingerprint),
    )
    for store in pair:
        fill(store)
    yield pair
    for store in pair:
        store.close()


def test_both_stores_search_in_the_same_order_with_the_same_relevance(stores: tuple[Store, Store]) -> None:
    found = 0
    with stores[0].read(SCOPE) as embedded, stores[1].read(SCOPE) as shared:
        for n, (query, wants) in enumerate(questions()):
            one, other = embedded.search(query, wants), shared.search(query, wants)
            for mine, theirs in zip(one, other, strict=True):
                assert [hit.record for hit in mine] == [hit.record for hit in theirs], f"question {n}"
                assert [round(hit.lexical, 9) for hit in mine] == [round(hit.lexical, 9) for hit in theirs]
                near = [(hit.vector, twin.vector) for hit, twin in zip(mine, theirs, strict=True) if hit.vector is not None]
                assert all(a == pytest.approx(b, abs=2e-6) for a, b in near)
                found += len(mine)
    assert found > 3000


def test_both_stores_read_in_the_same_order(stores: tuple[Store, Store]) -> None:
    with stores[0].read(SCOPE) as embedded, stores[1].read(SCOPE) as shared:
        for mine, theirs in zip(reads(embedded), reads(shared), strict=True):
            assert mine == theirs
