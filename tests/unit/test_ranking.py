"""Blocks of postings, and pruning, which must never change the result of a search."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.base import HERE, change, found, hits, made
from foveate.errors import StoreError
from foveate.records.kinds import kind_of
from foveate.store.protocol import Query, SearchGroup
from foveate.store.sql import posting_blocks, postings, query_plan, ranking
from foveate.store.sql.ranking import FieldTerm
from foveate.store.sqlite.store import SQLiteStore
from foveate.text import analysis
from foveate.types import Scope
from property_settings import examples

Lists = dict[tuple[str, int], dict[int, int]]


def random_lists(seed: int, docs: int, terms: int) -> tuple[Lists, list[FieldTerm], float]:
    """Return posting lists with a few common and many rare terms, their plan and the mean length."""
    chance = random.Random(seed)
    lengths = [chance.randint(1, 90) for _ in range(docs)]
    lists: Lists = {}
    for n in range(terms):
        share = chance.random() ** 3
        having = [doc for doc in range(docs) if chance.random() < share]
        lists[f"t{n}", 0] = {doc: posting_blocks.encode(chance.choice((1, 1, 1, 2, 5)), lengths[doc]) for doc in having}
    rare = query_plan.idf({term: len(held) for (term, _), held in lists.items() if held}, docs)
    plan = [FieldTerm(term, 0, rare[term], 0.75, len(held)) for (term, _), held in lists.items() if held]
    return lists, sorted(plan, key=lambda item: -item.weight), sum(lengths) / docs


def exhaustive(lists: Lists, plan: Sequence[FieldTerm], average: float, limit: int) -> list[tuple[int, float]]:
    scores: dict[int, float] = defaultdict(float)
    for item in plan:
        for doc, code in lists[item.key].items():
            times, length = code >> 12, code & 4095
            norm = 1.2 * (1 - item.b + item.b * length / average)
            scores[doc] += item.weight * times * 2.2 / (times + norm)
    ranked = sorted(((doc, round(score, 9)) for doc, score in scores.items()), key=lambda pair: (-pair[1], -pair[0]))
    return ranked[:limit]


@examples(80)
@given(st.integers(0, 10**9), st.integers(1, 400), st.integers(1, 9), st.integers(1, 60), st.integers(1, 300))
def test_pruned_search_equals_scoring_every_posting(seed: int, docs: int, terms: int, limit: int, round_: int) -> None:
    lists, plan, average = random_lists(seed, docs, terms)
    loaded: list[str] = []

    def load(batch: Sequence[FieldTerm]) -> dict[tuple[str, int], ranking.Postings]:
        loaded.extend(item.term for item in batch)
        return {item.key: (list(lists[item.key]), list(lists[item.key].values())) for item in batch}

    before, ranking.POSTINGS_PER_ROUND = ranking.POSTINGS_PER_ROUND, round_
    try:
        assert ranking.top_k(plan, load, average, limit) == exhaustive(lists, plan, average, limit)
        within = {doc for doc in range(docs) if doc % 3 == 0}
        inside = {key: {doc: code for doc, code in held.items() if doc in within} for key, held in lists.items()}
        assert ranking.top_k(plan, load, average, limit, within) == exhaustive(inside, plan, average, limit)
    finally:
        ranking.POSTINGS_PER_ROUND = before
    assert len(loaded) == 2 * len(plan)  # each list once a search


def test_common_term_is_pruned_if_rare_terms_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"rare": 100, "common": 50_000}
    lists = [FieldTerm("rare", 0, 8.0, 0.75, 100), FieldTerm("common", 0, 0.1, 0.75, 50_000)]
    scored: list[int] = []
    add = ranking._add_scores
    monkeypatch.setattr(
        ranking, "_add_scores", lambda scores, found, *rest: (scored.append(len(found[0])), add(scores, found, *rest))
    )

    def load(batch: Sequence[FieldTerm]) -> dict[tuple[str, int], ranking.Postings]:
        return {one.key: (range(sizes[one.term]), [posting_blocks.encode(1, 10)] * sizes[one.term]) for one in batch}

    assert [doc for doc, _ in ranking.top_k(lists, load, 10.0, 20)] == list(range(99, 79, -1))
    assert scored == [100]


# --- blocks --------------------------------------------------------------------------------------------------------


@given(st.dictionaries(st.integers(0, 2**32 - 1), st.tuples(st.integers(1, 99), st.integers(0, 9999)), max_size=600))
def test_packed_postings_are_unpacked_unchanged(held: dict[int, tuple[int, int]]) -> None:
    pairs = sorted((doc, posting_blocks.encode(*value)) for doc, value in held.items())
    for appended in (True, False):
        parts = list(posting_blocks.split_blocks(pairs, appended=appended)) if pairs else []
        assert all(0 < len(part) <= posting_blocks.BLOCK_SIZE for part in parts)
        packs = [posting_blocks.pack(part) for part in parts]
        docs, codes = posting_blocks.concat([pack[0] for pack in packs], [pack[1] for pack in packs])
        assert list(zip(docs, codes, strict=True)) == pairs
    assert [posting_blocks.decode(code) for _, code in pairs] == [
        (min(times, 15), min(length, 4095)) for _, (times, length) in sorted(held.items())
    ]


@pytest.mark.slow
def test_index_matches_the_records_after_random_writes(tmp_path: Path) -> None:
    """After adding, editing and forgetting, each posting is there once, in order, in blocks of the right size."""
    chance = random.Random(5)
    words = [f"word{n}" for n in range(40)]
    store = SQLiteStore(tmp_path / "state.db")

    def text() -> str:
        return " ".join(["often", *chance.choices(words, k=chance.randint(1, 12))])

    with store.write(HERE) as writer:
        held = [writer.add(made(f"{text()} {n}")).record for n in range(500)]
    for _ in range(60):
        n = chance.randrange(len(held))
        held[n] = change(store, held[n], f"{text()} again {n}")
    doomed = [held.pop(chance.randrange(len(held))) for _ in range(40)]
    store.forget(HERE, [record.id for record in doomed])
    with store.write(HERE) as writer:
        held += [writer.add(made(f"{text()} later {n}")).record for n in range(300)]
    with store.read(HERE) as reader:
        docs = {
            record.id: reader._db.fetch_all("doc_of", {"project": reader._project, "id": record.id})[0][0] for record in held
        }
        wanted: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)
        for record in held:
            rows, length = postings.record_postings(record, kind_of(record.kind))
            for term, field, times in rows:
                wanted[term, field][docs[record.id]] = posting_blocks.encode(times, length)
        seen: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
        for term, _, field, numbers, codes in reader.index.all_postings():
            assert 0 < len(numbers) <= posting_blocks.BLOCK_SIZE
            seen[term, field] += zip(numbers, codes, strict=True)
        assert seen == {key: sorted(pairs.items()) for key, pairs in wanted.items()}
        assert reader.index_mismatch() == ""
    assert store.health().ok
    assert len(found(store, "often", limit=1000)) == len(held)
    store.close()


def test_number_of_a_deleted_record_is_not_reused(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "state.db")
    with store.write(HERE) as writer:
        last = [writer.add(made(f"remark {n}")).record for n in range(3)][-1]
    store.forget(HERE, [last.id])
    with store.write(HERE) as writer:
        new = writer.add(made("something else")).record
    with store.read(HERE) as reader:
        assert reader._db.fetch_all("doc_of", {"project": reader._project, "id": new.id})[0][0] == 4
    assert [hit.record.id for hit in hits(store, "something")] == [new.id]
    store.close()


def test_narrow_filter_is_queried_once_for_all_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SQLiteStore(tmp_path / "state.db")
    kinds = ("note", "fact", "decision")
    mine = Scope("alpha", user="ada")
    with store.write(Scope("alpha", user="ben")) as writer:
        for n in range(900):
            writer.add(made(f"Kestrels of others {n}", kinds[n % 3], scope=Scope("alpha", user="ben")))
    with store.write(mine) as writer:
        own = [
            writer.add(made(f"Kestrels of ada and more besides {n}", kinds[n % 3], scope=mine)).record.id for n in range(9)
        ]
    query = Query(dict.fromkeys(analysis.terms("kestrels"), 1.0), {"text": 1.0})
    asked = []
    with store.read(mine) as reader:
        rows = reader._db.fetch_all
        monkeypatch.setattr(reader._db, "fetch_all", lambda name, *rest: (asked.append(name), rows(name, *rest))[1])
        found = reader.search(query, [SearchGroup((kind,), 3) for kind in kinds])
    assert {hit.record.id for hits_ in found for hit in hits_} == set(own)
    assert asked.count("docs_matching") == 1
    store.close()


def test_project_with_the_highest_doc_refuses_another_record(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "state.db")
    with store.write(HERE) as writer:
        writer.add(made("the first"))
    store._connections.current().execute("update projects set docs = ?", (posting_blocks.MAX_DOC,))
    with pytest.raises(StoreError, match="cannot have more"), store.write(HERE) as writer:
        writer.add(made("one too many"))
    store.close()
