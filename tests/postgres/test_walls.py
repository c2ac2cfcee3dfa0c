"""A role sees and changes only the projects that it was granted, whatever SQL it runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import errors

from foveate.clock import new_id, now
from foveate.engine import Engine
from foveate.errors import InputError, NotFound, StoreError
from foveate.records.make import Rules
from foveate.store.copy import PROJECT_TABLES, copy_store
from foveate.store.postgres.store import PostgresStore
from foveate.store.protocol import StoredReceipt
from foveate.store.sqlite.store import SQLiteStore
from foveate.testing import embedder
from foveate.types import Scope
from postgres_server import Server

MODEL = embedder()

_roles = count(1)


def fill_project(store: PostgresStore, project: str) -> str:
    """Create a project with a row in every table, and return the id of a record."""
    memory = Engine(store, scope=Scope(project), rules=Rules(), clock=now, ids=new_id, embedder=MODEL)
    one, two = (memory.add("entity", f"{name} of {project}", data={"name": name}).record for name in ("Redis", "Postgres"))
    memory.link(one.id, "near", two.id)
    memory.edit(one.id, salience=0.9)
    store.save_receipts(Scope(project), [StoredReceipt(f"ctx_{project}", now(), b"body", shown_ids=(one.id,))])
    return one.id


@pytest.fixture
def owner(url: str) -> Iterator[PostgresStore]:
    store = PostgresStore(url, embedding_namespace=MODEL.fingerprint)
    for project in ("mine", "theirs"):
        fill_project(store, project)
    yield store
    store.close()


@pytest.fixture
def member(postgres: Server, url: str, owner: PostgresStore) -> Iterator[str]:
    """Yield the URL of a role that may use project `mine`."""
    role = f"member_{next(_roles)}"
    postgres.execute(f"create role {role} login")
    owner.grant(role, "mine")
    parts = urlsplit(url)
    yield urlunsplit(parts._replace(netloc=role + "@" + parts.netloc.partition("@")[2]))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"drop owned by {role}".encode())
    postgres.execute(f"drop role {role}")


def rows(url: str, statement: str, *params: Any) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, options="-csearch_path=foveate,public") as connection:
        cursor = connection.execute(statement.encode(), params)
        return cursor.fetchall() if cursor.description else [(cursor.rowcount,)]


@pytest.mark.parametrize("table", PROJECT_TABLES)
def test_raw_sql_sees_only_what_was_granted(url: str, member: str, table: str) -> None:
    everything = {project for (project,) in rows(url, f"select distinct project from {table}")}
    seen = {project for (project,) in rows(member, f"select distinct project from {table}")}
    assert len(everything) == 2
    assert len(seen) == 1
    assert rows(member, "select name from projects") == [("mine",)]


@pytest.mark.parametrize("table", PROJECT_TABLES)
def test_raw_sql_changes_only_what_was_granted(url: str, member: str, table: str) -> None:
    ((theirs,),) = rows(url, "select project from projects where name = 'theirs'")
    before = rows(url, f"select * from {table} where project = %s", theirs)
    column = "revision" if table == "projects" else "project"
    assert rows(member, f"update {table} set {column} = {column} where project = %s", theirs) == [(0,)]
    with pytest.raises(errors.InsufficientPrivilege):
        rows(member, f"update {table} set project = %s", theirs)
    with pytest.raises(errors.InsufficientPrivilege):  # of one's own rows, a copy in another project
        rows(member, _copy_statement(url, table), theirs)
    with pytest.raises(errors.InsufficientPrivilege):
        rows(member, f"truncate {table}")
    assert rows(url, f"select * from {table} where project = %s", theirs) == before


def _copy_statement(url: str, table: str) -> str:
    names = [row[0] for row in rows(url, "select column_name from information_schema.columns where table_name = %s", table)]
    columns = [f'"{name}"' for name in names if name != "project"]
    return f"insert into {table} (project, {', '.join(columns)}) select %s, {', '.join(columns)} from {table}"


def test_member_cannot_change_members_or_shared_tables(member: str) -> None:
    for statement in (
        "insert into members select role, project + 1 from members",
        "update members set project = project + 1",
        "delete from members",
        "update meta set value = 'x'",
        "update projects set name = 'theirs'",
        "insert into projects (name) values ('another')",
        "delete from projects",
        "alter table records disable row level security",
        "create table foveate.more (a int)",
    ):
        with pytest.raises(errors.InsufficientPrivilege):
            rows(member, statement)
    assert len(rows(member, "select * from members")) == 1


def test_member_reads_the_secrets_of_its_own_projects_only(url: str, owner: PostgresStore, member: str) -> None:
    """Untrusted text is fenced by marks that are made from it."""
    assert rows(member, "select name from meta where name = 'secret'") == []
    assert rows(member, "select name from secrets") == [("mine",)]
    with closing(PostgresStore(member)) as store:
        for project, same in (("mine", True), ("theirs", False), ("another", False)):
            with store.read(Scope(project)) as reader, owner.read(Scope(project)) as theirs:
                assert (reader.secret == theirs.secret) == same
    ((secret,),) = rows(url, "select value from meta where name = 'secret'")
    assert secret not in str(rows(member, "select * from meta") + rows(member, "select * from secrets"))


def test_wrong_dimensions_from_one_member_do_not_block_others(url: str, owner: PostgresStore, member: str) -> None:
    new = embedder(16)
    rows(member, "insert into spaces (fingerprint, dim) values (%s, 7)", new.fingerprint)
    with closing(PostgresStore(url, embedding_namespace=new.fingerprint)) as store:
        memory = Engine(store, scope=Scope("theirs"), rules=Rules(), clock=now, ids=new_id, embedder=new)
        memory.add("note", "Walnuts are brown")
        with store.read(Scope("theirs")) as reader:
            assert [
                (space.vector_count, space.is_current) for space in reader.embedding_namespaces() if space.is_current
            ] == [(1, True)]


def test_member_can_use_every_operation_of_the_store(member: str) -> None:
    store = PostgresStore(member, embedding_namespace=MODEL.fingerprint)
    id = fill_project(store, "mine")
    memory = Engine(store, scope=Scope("mine"), rules=Rules(), clock=now, ids=new_id)
    assert id in [hit.record.id for hit in memory.search("redis of mine")]
    assert store.forget(Scope("mine"), [id]).counts["records"] == 1
    assert store.health().ok
    with store.read(Scope("theirs")) as reader:
        assert list(reader.records()) == []
    with pytest.raises(StoreError, match="refuses"), store.write(Scope("theirs")):
        pass
    store.close()


def test_revoked_project_is_invisible(owner: PostgresStore, member: str) -> None:
    role = str(urlsplit(member).username)
    owner.grant(role, "theirs")
    assert len(rows(member, "select * from projects")) == 2
    owner.revoke(role, "mine")
    assert rows(member, "select name from projects") == [("theirs",)]
    owner.revoke(role, "theirs")
    with pytest.raises(errors.InsufficientPrivilege):
        rows(member, "select * from foveate.records")


def test_row_security_does_not_prevent_index_scans(url: str, member: str) -> None:
    """The policy of a table is evaluated once for a statement, and the index finds the rows."""
    rows(url, "insert into postings select 1, 'term' || n, 1, 0, n, 1, '', '' from generate_series(1, 9000) n")
    rows(url, "insert into links select 1, 'id' || n, 'near', 'id' || n, 1.0 from generate_series(1, 9000) n")
    rows(url, "analyze postings, links")
    for statement in (
        "select * from links where project = 1 and src = 'id7'",
        "select docs, codes from postings where project = 1 and term = 'term7' and kind = 1 and field = 0",
        "select min(term) from postings where project = 1 and term > 'term7'",
    ):
        plan = "\n".join(row[0] for row in rows(member, f"explain {statement}"))
        condition = next(line for line in plan.splitlines() if "Index Cond" in line and "project = 1" in line)
        assert condition.count("AND") >= statement.count(" and ")
        assert "hashed SubPlan" in plan


def test_every_table_of_a_project_has_row_security(url: str, owner: PostgresStore) -> None:
    open_ = rows(
        url,
        "select relname from pg_class where relnamespace = 'foveate'::regnamespace and relkind = 'r' and not relrowsecurity",
    )
    assert {name for (name,) in open_} == {"kinds", "spaces"}
    found = rows(url, "select tablename from pg_policies where schemaname = 'foveate' and policyname = 'members_only'")
    assert {name for (name,) in found} == set(PROJECT_TABLES)


def test_member_cannot_make_the_owner_run_its_code(url: str, owner: PostgresStore, member: str) -> None:
    """The member creates a function that PostgreSQL would prefer to its own, in a schema where every role may create."""
    rows(url, "grant create on schema public to public")
    role = urlsplit(member).netloc.partition("@")[0]
    rows(
        member,
        "create function public.json_array_elements_text(text) returns setof text language sql as "
        f"$$ insert into foveate.members select '{role}', project from foveate.projects on conflict do nothing; "
        "select * from pg_catalog.json_array_elements_text($1::json) $$",
    )
    memory = Engine(owner, scope=Scope("theirs"), rules=Rules(), clock=now, ids=new_id)
    memory.add("note", "Something that the owner keeps")
    assert memory.search("owner keeps")
    assert rows(member, "select name from projects") == [("mine",)]


@pytest.mark.parametrize(
    ("role", "project", "error", "said"),
    [
        ("public", "mine", InputError, "every role at once"),
        ("nobody_of_that_name", "mine", InputError, "create role"),
        ("postgres", "mien", NotFound, "No project 'mien'"),
    ],
)
def test_grant_needs_one_existing_role_and_an_existing_project(
    owner: PostgresStore, role: str, project: str, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        owner.grant(role, project)
    assert owner.projects() == ["mine", "theirs"]


def test_dropped_role_can_be_revoked(postgres: Server, url: str, owner: PostgresStore) -> None:
    postgres.execute("create role leaving login")
    owner.grant("leaving", "mine")
    rows(url, "drop owned by leaving")
    postgres.execute("drop role leaving")
    owner.revoke("leaving", "mine")
    assert rows(url, "select count(*) from members") == [(0,)]
    with pytest.raises(NotFound):
        owner.revoke("leaving", "mien")


def test_replaced_store_has_no_grants(tmp_path: Path, url: str, owner: PostgresStore, member: str) -> None:
    """Its projects have the same numbers, and may be quite others."""
    with closing(SQLiteStore(tmp_path / "other.db")) as source:
        for name in ("payroll", "hiring"):
            Engine(source, scope=Scope(name), rules=Rules(), clock=now, ids=new_id).add("note", f"Salaries of {name}")
        with closing(PostgresStore(url)) as target:
            copy_store(source, target, replace=True)
    assert rows(url, "select name from projects order by name") == [("hiring",), ("payroll",)]
    assert rows(member, "select text from records") == []


def test_copy_of_projects_indexed_by_different_versions_can_be_used(
    postgres: Server, url: str, owner: PostgresStore, template: str
) -> None:
    rows(url, "update projects set made_by = '' where name = 'theirs'")
    there = postgres.database(like=template)
    with closing(PostgresStore(there)) as target:
        copy_store(owner, target)
    with closing(PostgresStore(there)) as target:
        memory = Engine(target, scope=Scope("mine"), rules=Rules(), clock=now, ids=new_id)
        assert memory.search("redis")
        memory.add("note", "It takes more")
    postgres.drop(there)
