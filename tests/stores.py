"""A small store with rows in every table, and functions to compare whole stores."""

from __future__ import annotations

from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import Any

import apsw

from foveate import testing
from foveate.store.copy import TABLE_KEYS, CopyableStore
from foveate.store.sqlite import connections
from foveate.text.embed import open_embedder as open_embedder
from foveate.types import Scope

ROWS = Path(__file__).parent / "migrations"
"""Dumps of stores of each version."""

PROJECTS = ("main", "shop")
EMBEDDER = "hash:8"
QUESTIONS = ("redis cache", "which port does the server use", "日本語", "deploy on tuesday", "cart checkout price")


def fill(path: str | Path, notes: int = 12, **options: Any) -> None:
    """Fill a store with records of several kinds, owners and projects, with history, links, receipts, names and vectors."""
    for project in PROJECTS:
        with testing.engine(path, project=project, embedder=EMBEDDER, code=False, **options) as engine:
            engine.add("fact", "The server uses port 8000", subject="server", attribute="port", valid_from=1_000)
            engine.add("fact", "The server uses port 9000", subject="server", attribute="port", valid_from=2_000)
            engine.add("decision", f"Chose Redis as the cache of {project}", outcome="success", confidence=0.85)
            engine.add("entity", "Redis", data={"aliases": ["redis server"]})
            engine.add("event", "Deploy on Tuesday went well", data={"type": "command"}, session="s1")
            engine.add("note", "日本語 and ünïcode, cart 'quoted'", tags=["net"], user="ada")
            for n in range(notes):
                engine.add("note", f"Note {n} on the checkout of {project}: price {n * 3} and cart {n % 4}", key=f"k{n}")
            engine.edit("note_0002", text="Note changed: the checkout is quick", tags=["a", "b"])
            engine.edit("note_0003", salience=0.25, pinned=True)
            engine.edit("note_0004", status="retired")
            engine.link("note_0002", "about", "decision_0001", weight=0.25)
            for question in QUESTIONS[:2]:
                engine.context(question, budget=800)


def old_file(path: Path, version: int) -> Path:
    """Return a store as that version wrote it."""
    scripts = files("foveate.store") / "sqlite" / "migrations"
    with closing(apsw.Connection(str(path))) as connection:
        for script in sorted(item.name for item in scripts.iterdir() if item.name[:3].isdigit()):
            if int(script[:3]) <= version:
                connection.execute((scripts / script).read_text("utf-8"))
        connection.execute((ROWS / f"{version:03d}.sql").read_text("utf-8"))
        connection.pragma("user_version", version)
        connection.pragma("application_id", connections.APPLICATION_ID)
    return path


def rows(store: CopyableStore) -> dict[str, list[Any]]:
    """Return all rows that are copied, by table, without the counters that each database keeps."""
    with store.tables() as tables:
        return {table: _plain(tables, table) for table in TABLE_KEYS}


def _plain(tables: Any, table: str) -> list[Any]:
    own = {
        "projects": ("revision", "docs", "made_by", "recent"),
        "segments": ("latest", "removed"),
        "vectors": ("seq",),
    }.get(table, ())
    columns = [name for name in tables.columns(table) if name not in own]
    found: list[Any] = tables.page(table, sorted(columns), None, 10**6)
    return sorted(found, key=repr)


def answers(store: Any) -> list[Any]:
    """Return what users see: records, history, links and search results."""
    from foveate.engine import Engine
    from foveate.records.make import Rules

    found: list[Any] = []
    for project in PROJECTS:
        memory = Engine(store, scope=Scope(project, user="ada"), rules=Rules(), clock=lambda: 0, ids=lambda kind, at: kind)
        found += memory.store.export_lines()
        found += [[(hit.record.id, round(hit.lexical, 9)) for hit in memory.search(question)] for question in QUESTIONS]
    return found


def dump(path: str | Path) -> str:
    """Return the rows of a SQLite file as SQL statements, without its schema."""
    lines = []
    with closing(apsw.Connection(str(path))) as connection:
        names = "select name from sqlite_schema where type = 'table' and name not like 'sqlite_%' order by name"
        for (table,) in connection.execute(names).fetchall():
            columns = [row[0] for row in connection.execute("select name from pragma_table_info(?)", (table,))]
            for row in connection.execute(f"select {', '.join(columns)} from {table} order by 1, 2").fetchall():
                values = ", ".join(apsw.format_sql_value(value) for value in row)
                lines.append(f"insert into {table} ({', '.join(columns)}) values ({values});")
    return "\n".join(lines) + "\n"
