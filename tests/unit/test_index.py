"""Postings, query plans and relevance, compared with BM25 by hand."""

from __future__ import annotations

from math import log
from pathlib import Path

import pytest

from conformance.base import HERE, add, hits, made
from foveate.records.kinds import kind_of
from foveate.store.sql import postings, query_plan
from foveate.store.sqlite.store import SQLiteStore
from foveate.types import Record

ONLY_TEXT = dict.fromkeys(postings.FIELDS, 0.0) | {"text": 1.0}


def rows(record: Record) -> dict[str, dict[str, int]]:
    out: dict[str, dict[str, int]] = {}
    for term, number, count in postings.record_postings(record, kind_of(record.kind))[0]:
        out.setdefault(postings.FIELDS[number], {})[term] = count
    out.pop("dates")  # every record has its own
    return out


# --- postings ------------------------------------------------------------------------------------------------------


def test_postings_are_counted_by_field() -> None:
    record = made(
        "Redis caches redis", "fact", tags=["cache layer"], subject="redis", attribute="role", entities=["Redis Labs"],
        paths=["src/cache.py"],
    )  # fmt: skip
    assert rows(record) == {
        "text": {"redi": 2, "cach": 1},
        "tags": {"cach": 1, "layer": 1},
        "subject": {"redi": 1, "role": 1},
        "entities": {"redi": 1, "lab": 1},
        "paths": {"src": 1, "cach": 1, "py": 1},
    }
    assert postings.record_postings(record, kind_of("fact"))[1] == 3


def test_summary_field_has_only_words_that_the_text_lacks() -> None:
    assert "summary" not in rows(made("A sentence of its own. " * 40))
    assert rows(made("Redis is fast", summary="Redis: a quick store"))["summary"] == {"quick": 1, "store": 1}
    told = made("Chose Redis", "decision", rationale="Latency mattered", alternatives=["Memcached"])
    assert rows(told)["summary"] == {"latenc": 1, "matter": 1, "memcach": 1}


def test_names_of_an_entity_include_its_aliases() -> None:
    record = made("The store", "entity", name="Postgres-SQL", aliases=["PG", "postgre_sql"])
    assert postings.entity_names(record) == {"postgressql", "pg", "postgresql"}
    assert postings.entity_names(made("The store")) == set()


def test_dates_field_has_the_date_of_the_record_and_dates_in_its_text() -> None:
    record = made("We moved to Lisbon last May", valid_from="2026-11-15")
    found = {
        term
        for term, number, _ in postings.record_postings(record, kind_of("fact"))[0]
        if postings.FIELDS[number] == "dates"
    }
    assert found == {"@2026-11-15", "@2026-w46", "@2026-11", "@2026", "@2026-05"}


# --- plan ----------------------------------------------------------------------------------------------------------


def test_idf_comes_from_the_field_with_the_highest_document_frequency() -> None:
    plan = query_plan.plan_query({"rare": 1.0, "common": 0.5}, {"text": 2.0}, {"rare": {0: 1}, "common": {0: 8, 2: 3}}, 10)
    rare, common = log(1 + 9.5 / 1.5), log(1 + 2.5 / 8.5)
    assert [(*item.key, item.weight, item.b, item.doc_frequency) for item in plan.field_terms] == [
        ("rare", 0, pytest.approx(2 * rare), 0.75, 1),
        ("common", 2, pytest.approx(0.5 * common), 0.0, 3),
        ("common", 0, pytest.approx(0.5 * 2 * common), 0.75, 8),
    ]
    assert plan.max_score == pytest.approx(rare + 0.5 * common)


def test_unknown_term_counts_with_the_mean_idf() -> None:
    known = query_plan.plan_query({"a": 1.0}, {}, {"a": {0: 2}}, 10)
    both = query_plan.plan_query({"a": 1.0, "never": 1.0}, {}, {"a": {0: 2}}, 10)
    assert both.max_score == pytest.approx(2 * known.max_score)
    assert query_plan.plan_query({"never": 1.0}, {}, {}, 10) == query_plan.QueryPlan((), 0.0)
    assert query_plan.QueryPlan((), 0.0).relevance(3.0) == 0.0


def test_field_with_weight_zero_is_not_read() -> None:
    plan = query_plan.plan_query({"a": 1.0}, {"text": 0.0}, {"a": {0: 2, 2: 1}}, 10)
    assert [item.field for item in plan.field_terms] == [2]


# --- scores, by hand and by the store ------------------------------------------------------------------------------


def test_relevance_equals_the_formula(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "state.db")
    texts = ["alpha beta gamma", "alpha alpha", "delta epsilon zeta eta", "theta"]
    ids = [add(store, text).id for text in texts]
    average = (3 + 2 + 4 + 1) / 4
    idf_alpha, idf_beta = log(1 + 2.5 / 2.5), log(1 + 3.5 / 1.5)

    def part(idf: float, tf: int, length: int) -> float:
        return idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * length / average))

    ceiling = idf_alpha + idf_beta
    by_hand = {
        ids[0]: min(1.0, (part(idf_alpha, 1, 3) + part(idf_beta, 1, 3)) / ceiling),
        ids[1]: min(1.0, part(idf_alpha, 2, 2) / ceiling),
    }
    by_store = {hit.record.id: hit.lexical for hit in hits(store, "alpha beta", fields=ONLY_TEXT)}
    assert by_store == pytest.approx(by_hand, abs=1e-8)
    store.close()


def test_record_of_average_length_with_each_term_once_has_relevance_one(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "state.db")
    target = add(store, "kestrel heron osprey")
    for text in ("lorem ipsum dolor", "amet sit elit", "sed eiusmod tempor"):
        add(store, text)
    (hit,) = hits(store, "heron kestrel osprey", fields=ONLY_TEXT)
    assert (hit.record.id, hit.lexical) == (target.id, pytest.approx(1.0))
    store.close()


def test_same_records_give_the_same_hits_in_two_stores(tmp_path: Path) -> None:
    answers = []
    for name in ("one", "two"):
        store = SQLiteStore(tmp_path / name)
        with store.write(HERE) as writer:
            for n in range(60):
                writer.add(made(f"remark {n % 7} on topic {n % 11} and {n % 3}", "event", id=f"event_{n}"))
        answers.append([(hit.record.id, hit.lexical) for hit in hits(store, "remark topic 3 5", limit=40)])
        store.close()
    assert answers[0] == answers[1]
