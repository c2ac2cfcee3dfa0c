"""SQLite finds rows by an index and does not read a whole project, except in queries whose result is the whole project."""

from __future__ import annotations

import re
from contextlib import closing

from foveate.store.sql import queries
from foveate.store.sqlite.store import SQLiteStore

WHOLE_PROJECT = frozenset(
    (
        "all_links", "all_history", "records_page", "max_doc", "growth", "growth_by_day", "count_records", "count_rest",
        "count_created", "count_indexed", "count_missing_vectors", "receipts", "receipt_agents", "oldest_receipt",
        "receipt_bytes", "receipt_sizes", "index_sizes", "embedding_namespaces", "namespace_of_project", "delete_names",
        "clear_postings", "clear_volumes", "clear_names", "sessions", "receipt_sessions",
    )
)  # fmt: skip
"""Queries that list, count or delete rows of a whole project, read its newest rows, or use a table with few rows."""

_STATEMENT = re.compile(r"(?:--.*\n)*(?:select|with|update|delete)\b")
_READS_ALL = re.compile(r"\(project=\?(?: AND session>\?)?\)")
_PARAMETER = re.compile(r"\?\d*|:\w+")


def plans() -> dict[str, list[str]]:
    """Return the steps of SQLite's plan for each query that is a statement."""
    steps: dict[str, list[str]] = {}
    with closing(SQLiteStore(":memory:")) as store:
        connection = store._connections.current()
        for name, sql in queries.load("sqlite").items():
            if _STATEMENT.match(sql) and ";" not in re.sub(r"--.*", "", sql):
                sql, count = _PARAMETER.subn("?", re.sub(r"--.*", "", sql))
                rows = connection.execute(f"explain query plan {sql}", (None,) * count)
                steps[name] = [row[3] for row in rows]
    return steps


def test_no_query_reads_a_whole_project_by_accident() -> None:
    reads_all = {name for name, steps in plans().items() if any(map(_READS_ALL.search, steps))}
    assert reads_all == WHOLE_PROJECT
