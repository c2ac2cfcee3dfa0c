"""Does cost grow with the store? Compute, search and ingest at several sizes, in one project and in 100, on both stores.

CPU milliseconds, medians; for PostgreSQL the server's processes are counted in. Each figure has something beside it: the
smallest store, a bare FTS5 query over the same texts, the other store. `FOVEATE_BENCH_SIZES=10000,100000,1000000` and
`FOVEATE_BENCH_STORES=sqlite,postgres` choose; a million records take half an hour to write on two cores.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import apsw

import foveate
from bench.corpus import queries, texts
from bench.speed import fts5
from foveate.engine.engine import view_of
from foveate.pipeline.profiles import resolve
from foveate.store.protocol import Query, Want
from foveate.store.sql import ranking
from foveate.text import analysis
from foveate.types import Scope

ASKED = 60
PROJECTS = 100
BATCH = 5000

Clock = Callable[[], float]


def run() -> dict:
    sizes = [int(size) for size in os.environ.get("FOVEATE_BENCH_SIZES", "10000,100000").split(",")]
    stores = os.environ.get("FOVEATE_BENCH_STORES", "sqlite,postgres").split(",")
    corpus = texts(max(sizes))
    out: dict = {}
    for size in sizes:
        part = corpus[:size]
        beside = full_text(part)
        out[f"{size} records, FTS5"] = beside
        print(size, "FTS5", beside, flush=True)
        for kind in stores:
            for projects in (1, PROJECTS) if size == sizes[-1] else (1,):
                with opened(kind) as (where, clock):
                    row = measured(where, clock, part, projects)
                row |= ratios(row, beside, out.get(f"{sizes[0]} records, 1 project, {kind}"))
                row |= against(row, out.get(f"{size} records, 1 project, sqlite"), kind)
                out[f"{size} records, {projects} project{'s' * (projects > 1)}, {kind}"] = row
                print(size, projects, kind, row, flush=True)
    return out


def measured(where: str | Path, clock: Clock, corpus: list[str], projects: int) -> dict[str, Any]:
    """Write the corpus, then ask; the projects take turns in both, in one process with one pool, as in a service."""
    with foveate.open(where, project="p0", personal=False, code=False) as whole:
        engines = within(whole, projects)
        wrote = fill(engines, clock, corpus)
        row = ask(engines, clock, corpus)
    return row | {"ingest us a record": round(wrote / len(corpus) * 1e6, 1)}


def within(whole: foveate.Engine, projects: int) -> list[foveate.Engine]:
    return [view_of(whole, Scope(f"p{n}"), personal=False, code=False) for n in range(projects)]


def fill(engines: list[Any], clock: Clock, corpus: list[str]) -> float:
    """Each project its share, in batches; CPU seconds."""
    share = len(corpus) // len(engines)
    began = clock()
    for start in range(0, share, BATCH):
        for n, engine in enumerate(engines):
            engine.store.add_many(("note", text, {}) for text in corpus[n * share :][start : min(start + BATCH, share)])
    return clock() - began


def ask(engines: list[Any], clock: Clock, corpus: list[str]) -> dict[str, Any]:
    """What contexts and searches cost, and whether leaving postings out changes what is found."""
    share = len(corpus) // len(engines)
    asked = [(engines[n % len(engines)], text) for n, text in enumerate(asked_of(corpus, share, len(engines)))]
    for engine, text in (*asked[:5], *zip(engines, reversed([text for _, text in asked]), strict=False)):
        engine.context(text)  # the first question of a project is another matter
    took, index, same = [], [], []
    for engine, text in asked:
        began = clock()
        engine.context(text)
        took.append((clock() - began) * 1000)
        began = clock()
        pruned = search(engine, text)
        index.append((clock() - began) * 1000)
        same.append(pruned == exhaustive(engine, text))
    return {
        "compute ms": round(statistics.median(took), 2),
        "compute p95 ms": round(sorted(took)[int(len(took) * 0.95)], 2),
        "search ms": round(statistics.median(index), 2),
        "same top 50 as scoring everything": f"{sum(same)} of {len(same)}",
    }


def asked_of(corpus: list[str], share: int, projects: int) -> list[str]:
    """Questions about what the project that is asked knows."""
    if projects == 1:
        return queries(corpus, ASKED)
    return [queries(corpus[n * share : (n + 1) * share], 1, seed=n)[0] for n in range(ASKED)]


def search(engine: Any, text: str) -> list[str]:
    query = Query(dict.fromkeys(analysis.terms(text), 1.0), resolve("base").fields)
    with engine.store.data.reader() as reader:
        return [hit.record.id for hit in reader.search(query, [Want(("note",), 50)])[0]]


def exhaustive(engine: Any, text: str) -> list[str]:
    """The same search with every posting scored."""
    before, ranking.ROUND = ranking.ROUND, 10**12
    try:
        return search(engine, text)
    finally:
        ranking.ROUND = before


def ratios(row: dict[str, Any], beside: dict[str, float], smallest: dict[str, Any] | None) -> dict[str, float]:
    found = {
        "compute to a bare FTS5 top 50": round(row["compute ms"] / beside["top 50 ms"], 2),
        "ingest to FTS5 on prepared records": round(row["ingest us a record"] / beside["ingest us a record"], 2),
    }
    return found | ({"compute to the smallest": round(row["compute ms"] / smallest["compute ms"], 2)} if smallest else {})


def against(row: dict[str, Any], sqlite: dict[str, Any] | None, kind: str) -> dict[str, float]:
    return {"compute to SQLite's": round(row["compute ms"] / sqlite["compute ms"], 2)} if sqlite and kind != "sqlite" else {}


def full_text(corpus: list[str]) -> dict[str, float]:
    """FTS5 over the same texts, made into records as ours are: what a bare top-50 query and the ingest cost."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "fts.db")
        wrote = fts5(path, corpus, prepared=True)
        db = apsw.Connection(str(path))
        took = []
        for text in queries(corpus, ASKED):
            words = " OR ".join(f'"{word}"' for word in dict.fromkeys(analysis.words(text)))
            began = time.process_time()
            db.execute("select rowid from words where words match ? order by rank limit 50", (words,)).fetchall()
            took.append((time.process_time() - began) * 1000)
        db.close()
    return {"top 50 ms": round(statistics.median(took), 2), "ingest us a record": round(wrote / len(corpus) * 1e6, 1)}


@contextmanager
def opened(kind: str) -> Iterator[tuple[str | Path, Clock]]:
    """Where a fresh store can be, and a clock of the CPU that everything which serves it has used."""
    with ExitStack() as stack:
        if kind == "sqlite":
            yield Path(stack.enter_context(tempfile.TemporaryDirectory())), time.process_time
            return
        from tests.postgres_server import server

        running = stack.enter_context(server())
        yield running.database(), lambda: time.process_time() + children_cpu(running.pid)


def children_cpu(parent: int) -> float:
    """CPU seconds of a process and of those that it has started. Of those that run, to the nanosecond: one question takes
    less than one of the ticks by which ended ones are counted."""
    ticks = os.sysconf("SC_CLK_TCK")
    used = 0.0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if parent in (int(entry.name), int(fields[1])):
                    used += int((entry / "schedstat").read_text().split()[0]) / 1e9
            except OSError:
                continue
            if int(entry.name) == parent:
                used += sum(map(int, fields[13:15])) / ticks
    return used
