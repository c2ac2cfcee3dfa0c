"""The schema of a PostgreSQL store: who migrates it, which databases are refused, and which projects are indexed again."""

from __future__ import annotations

import threading
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from foveate.clock import new_id, now
from foveate.engine import Engine
from foveate.errors import SchemaTooNew, StoreError
from foveate.records.make import Rules
from foveate.store.postgres.connections import MAX_COMMIT_MARKS
from foveate.store.postgres.store import PostgresStore
from foveate.text import analysis
from foveate.types import Scope
from postgres_server import Server

HERE = Scope("alpha")


def memory_of(store: PostgresStore) -> Engine:
    return Engine(store, scope=HERE, rules=Rules(), clock=now, ids=new_id)


def execute(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True, options="-csearch_path=foveate,public") as connection:
        connection.execute(statement.encode())


def test_opening_without_create_creates_no_store(postgres: Server) -> None:
    with pytest.raises(StoreError, match="foveate init"):
        PostgresStore(postgres.database(), create=False)


def test_processes_that_open_a_new_database_at_once_share_one_store(postgres: Server) -> None:
    url, other, secrets = postgres.database(), postgres.database(), []

    def work(url: str = url) -> None:
        store = PostgresStore(url)
        with store.read(HERE) as reader:
            secrets.append(reader.secret)
        store.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(secrets) == 4
    assert len(set(secrets)) == 1
    work(other)
    assert len(set(secrets)) == 2  # each store draws its own


def test_schema_of_a_newer_foveate_is_refused(url: str) -> None:
    execute(url, "update meta set value = '99' where name = 'schema'")
    with pytest.raises(SchemaTooNew, match="Upgrade foveate"):
        PostgresStore(url)


def test_role_without_the_right_to_migrate_is_told_who_has_it(postgres: Server) -> None:
    url = postgres.database()
    postgres.execute("create role visitor login")
    try:
        parts = urlsplit(url)
        with pytest.raises(StoreError, match="owner of the database run `foveate store maintain`"):
            PostgresStore(urlunsplit(parts._replace(netloc="visitor@" + parts.netloc.partition("@")[2])))
    finally:
        postgres.execute("drop role visitor")


def test_missing_server_is_reported_at_once() -> None:
    with pytest.raises(StoreError, match="nothing listens there"):
        PostgresStore("postgresql://localhost:1/shop")


def test_other_encodings_are_refused(postgres: Server) -> None:
    postgres.execute("create database latin template template0 encoding 'LATIN1' locale 'C'")
    try:
        with pytest.raises(StoreError, match="UTF8"):
            PostgresStore(urlunsplit(urlsplit(postgres.url)._replace(path="/latin")))
    finally:
        postgres.execute("drop database latin")


def test_outdated_project_is_indexed_again_at_its_first_use(url: str) -> None:
    store = PostgresStore(url)
    id = memory_of(store).add("note", "Walnuts are brown").record.id
    store.close()
    execute(url, "update projects set made_by = '0/0/o200k'; delete from postings; update records set full_tokens = 0")
    again = PostgresStore(url)
    assert [hit.record.id for hit in memory_of(again).search("walnuts")] == [id]
    assert (memory_of(again).get(id).tokens or {})["full"] > 0
    assert again.health().ok
    again.close()


def test_project_indexed_by_a_newer_foveate_is_read_only(url: str) -> None:
    store = PostgresStore(url)
    memory = memory_of(store)
    id = memory.add("note", "Walnuts are brown").record.id
    execute(url, f"update projects set made_by = '{analysis.VERSION + 1}/1/o200k'")
    assert memory.get(id).text == "Walnuts are brown"
    with pytest.raises(SchemaTooNew, match="Upgrade foveate to write"):
        memory.add("note", "Another")
    store.close()


def test_another_counter_counts_tokens_again_and_stops_older_writers(url: str) -> None:
    store = PostgresStore(url)
    id = memory_of(store).add("note", "Internationalisation of unusual 日本語 words " * 5).record.id
    before = memory_of(store).get(id).tokens
    other = PostgresStore(url, counter="chars4")
    assert memory_of(other).get(id).tokens != before
    with pytest.raises(StoreError, match="open it again"):
        memory_of(store).add("note", "Another")
    assert PostgresStore(url).counter == "chars4"
    other.close()
    store.close()


def test_index_that_differs_from_the_records_is_found_and_rebuilt(url: str) -> None:
    store = PostgresStore(url)
    id = memory_of(store).add("note", "Walnuts are brown").record.id
    execute(url, "delete from postings")
    health = store.health()
    assert not health.ok
    assert "project 'alpha'" in health.problems[0]
    assert store.rebuild() == 1
    assert store.health().ok
    assert [hit.record.id for hit in memory_of(store).search("walnuts")] == [id]
    store.close()


def test_health_reports_the_server(store: PostgresStore) -> None:
    facts = store.health().facts
    assert facts["postgresql"].startswith(("14", "15", "16", "17", "18", "19"))
    assert facts["pgvector"].startswith("0.")
    assert (facts["schema"], facts["projects"]) == (3, 0)
    assert facts["bytes"] > 0


def test_a_project_keeps_the_marks_of_its_latest_commits(url: str) -> None:
    store = PostgresStore(url)
    for n in range(MAX_COMMIT_MARKS + 5):
        memory_of(store).add("note", f"Note {n}")
    with psycopg.connect(url) as connection:
        ((recent,),) = connection.execute("select recent from foveate.projects").fetchall()
    assert len(recent) == MAX_COMMIT_MARKS
    assert recent == sorted(set(recent))
    store.close()


def test_forget_vacuums_the_tables_and_warns_about_logs_and_backups(url: str) -> None:
    store = PostgresStore(url)
    memory = memory_of(store)
    id = memory.add("note", "The password of Mallory is xyzzy").record.id
    memory.add("note", "Something else")
    done = memory.forget(id)
    assert "write-ahead log" in done.warnings[-1]
    assert len(done.warnings) == 1
    with psycopg.connect(url) as connection:
        dead = connection.execute(
            "select sum(n_dead_tup) from pg_stat_user_tables where schemaname = 'foveate' and relname <> 'projects'"
        ).fetchone()
    assert dead == (0,)
    store.close()


def test_every_index_begins_with_the_project_and_none_refers_to_another_table(url: str) -> None:
    """Distributed databases such as Citus require this, except for small tables that every node holds."""
    PostgresStore(url).close()
    with psycopg.connect(url) as connection:
        keys = connection.execute(
            "select t.relname, i.relname, "
            "(select attname from pg_attribute where attrelid = t.oid and attnum = x.indkey[0]) from pg_index x "
            "join pg_class t on t.oid = x.indrelid join pg_class i on i.oid = x.indexrelid "
            "join pg_namespace n on n.oid = t.relnamespace where n.nspname = 'foveate' and t.relkind = 'r'"
        ).fetchall()
        refers = connection.execute("select count(*) from pg_constraint where contype = 'f'").fetchone()
    shared = {"meta", "projects", "kinds", "spaces", "members"}
    assert {table for table, _, _ in keys} > shared
    assert {(table, index) for table, index, first in keys if table not in shared and first != "project"} == set()
    assert refers == (0,)
