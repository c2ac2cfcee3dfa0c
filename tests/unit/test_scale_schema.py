"""The schema can be distributed by project: every key begins with the project, and every query names it."""

from __future__ import annotations

import re

import apsw
import pytest

from foveate.store.sql import queries

SHARED = {"meta", "projects", "kinds", "spaces", "members"}
"""Small tables without state, which every node of a distributed database would have."""

WHOLE = {"count_segments", "delete_orphans"}
"""Queries that a salvage runs for all projects in a new file, before any other process can open it."""

PASSING = {"numbered", "shelves", "lined", "measured"}
"""Names that tables had during a migration, and one table that was removed."""

DIALECTS = ("sqlite", "postgres")


def schema(dialect: str) -> str:
    """Return all migrations without comments."""
    text = "\n".join(script for _, script in queries.migrations(dialect))
    return re.sub(r"--[^\n]*", "", text)


def guarded(dialect: str) -> set[str]:
    """Return the tables with the state of projects."""
    return set(re.findall(r"create table (\w+)", schema(dialect))) - SHARED


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_query_on_state_names_its_project(dialect: str) -> None:
    for name, text in queries.load(dialect).items():
        used = {table for table in guarded(dialect) if re.search(rf"\b(?:from|into|update|join) {table}\b", text)}
        said = re.search(r"\bproject (?:=|in)|\(project,|:project|\$project", text)
        assert not used or said or name in WHOLE, f"{name} reads or writes {sorted(used)} without a project"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_dialect_replaces_a_shared_query(dialect: str) -> None:
    shared, own = (
        re.findall(r"^-- name: (\w+)$", (queries.SQL_DIR / folder / "queries.sql").read_text("utf-8"), re.MULTILINE)
        for folder in ("sql", dialect)
    )
    assert sorted((*shared, *own)) == sorted(queries.load(dialect))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_table_refers_to_another(dialect: str) -> None:
    assert not re.search(r"\breferences\b|foreign key", schema(dialect), re.IGNORECASE)


def test_every_index_of_a_file_begins_with_the_project() -> None:
    connection = apsw.Connection(":memory:")
    for _, script in queries.migrations("sqlite"):
        connection.execute(script)
    names = "select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'"
    tables = {row[0] for row in connection.execute(names)} - SHARED
    assert tables == guarded("sqlite") - PASSING
    for table in tables:
        found = connection.execute(f"pragma index_list({table})").fetchall()
        assert found, f"{table} has no key"
        for _, index, *_ in found:
            first = connection.execute(f"pragma index_info({index})").fetchall()[0][2]
            assert first == "project", f"{index} of {table} begins with {first}"


def test_both_dialects_know_the_same_tables() -> None:
    assert guarded("postgres") == guarded("sqlite") - PASSING
