"""Measures how cost grows with the store: compute, search and ingest at several sizes, in one and in 100 projects.

All times are medians of CPU milliseconds, on PostgreSQL with the server's processes. Each is compared with the smallest
store, a bare FTS5 query over the same texts, and the other database. `FOVEATE_BENCH_SIZES=10000,100000,1000000` and
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
from foveate.store.protocol import Query, SearchGroup
from foveate.store.sql import ranking
from foveate.text import analysis
from foveate.types import Scope

QUERY_COUNT = 60
PROJECT_COUNT = 100
BATCH_SIZE = 5000

Clock = Callable[[], float]


def run() -> dict:
    sizes = [int(size) for size in os.environ.get("FOVEATE_BENCH_SIZES", "10000,100000").split(",")]
    stores = os.environ.get("FOVEATE_BENCH_STORES", "sqlite,postgres").split(",")
    corpus = texts(max(sizes))
    out: dict = {}
    for size in sizes:
        part = corpus[:size]
        baseline = measure_fts5(part)
        out[f"{size} records, FTS5"] = baseline
        print(size, "FTS5", baseline, flush=True)
        for kind in stores:
            for projects in (1, PROJECT_COUNT) if size == sizes[-1] else (1,):
                with open_database(kind) as (location, clock):
                    row = measure(location, clock, part, projects)
                row |= ratios(row, baseline, out.get(f"{sizes[0]} records, 1 project, {kind}"))
                row |= against(row, out.get(f"{size} records, 1 project, sqlite"), kind)
                out[f"{size} records, {projects} project{'s' * (projects > 1)}, {kind}"] = row
                print(size, projects, kind, row, flush=True)
    return out


def measure(location: str | Path, clock: Clock, corpus: list[str], projects: int) -> dict[str, Any]:
    """Write the corpus, then run queries. The projects take turns in one process with one pool, as in a service."""
    with foveate.open(location, project="p0", personal=False, code=False) as whole:
        engines = project_engines(whole, projects)
        wrote = fill(engines, clock, corpus)
        row = measure_queries(engines, clock, corpus)
    return row | {"ingest us a record": round(wrote / len(corpus) * 1e6, 1)}


def project_engines(whole: foveate.Engine, projects: int) -> list[foveate.Engine]:
    return [view_of(whole, Scope(f"p{n}"), personal=False, code=False) for n in range(projects)]


def fill(engines: list[Any], clock: Clock, corpus: list[str]) -> float:
    """Add each project's share of the corpus in batches, and return the CPU seconds."""
    share = len(corpus) // len(engines)
    began = clock()
    for start in range(0, share, BATCH_SIZE):
        for n, engine in enumerate(engines):
            engine.store.add_many(("note", text, {}) for text in corpus[n * share :][start : min(start + BATCH_SIZE, share)])
    return clock() - began


def measure_queries(engines: list[Any], clock: Clock, corpus: list[str]) -> dict[str, Any]:
    """Return the cost of contexts and searches, and how often pruned scoring gives the same results as full scoring."""
    share = len(corpus) // len(engines)
    runs = [(engines[n % len(engines)], text) for n, text in enumerate(project_queries(corpus, share, len(engines)))]
    for engine, text in (*runs[:5], *zip(engines, reversed([text for _, text in runs]), strict=False)):
        engine.context(text)  # warm up: the first query of a project costs more
    times, index_times, same = [], [], []
    for engine, text in runs:
        began = clock()
        engine.context(text)
        times.append((clock() - began) * 1000)
        began = clock()
        pruned = search(engine, text)
        index_times.append((clock() - began) * 1000)
        same.append(pruned == exhaustive(engine, text))
    return {
        "compute ms": round(statistics.median(times), 2),
        "compute p95 ms": round(sorted(times)[int(len(times) * 0.95)], 2),
        "search ms": round(statistics.median(index_times), 2),
        "same top 50 as scoring everything": f"{sum(same)} of {len(same)}",
    }


def project_queries(corpus: list[str], share: int, projects: int) -> list[str]:
    """Return queries about the texts of the project that each goes to."""
    if projects == 1:
        return queries(corpus, QUERY_COUNT)
    return [queries(corpus[n * share : (n + 1) * share], 1, seed=n)[0] for n in range(QUERY_COUNT)]


def search(engine: Any, text: str) -> list[str]:
    query = Query(dict.fromkeys(analysis.terms(text), 1.0), resolve("default").fields)
    with engine.store.data.reader() as reader:
        return [hit.record.id for hit in reader.search(query, [SearchGroup(("note",), 50)])[0]]


def exhaustive(engine: Any, text: str) -> list[str]:
    """Run the same search with every posting scored."""
    before, ranking.POSTINGS_PER_ROUND = ranking.POSTINGS_PER_ROUND, 10**12
    try:
        return search(engine, text)
    finally:
        ranking.POSTINGS_PER_ROUND = before


def ratios(row: dict[str, Any], baseline: dict[str, float], smallest: dict[str, Any] | None) -> dict[str, float]:
    result = {
        "compute to a bare FTS5 top 50": round(row["compute ms"] / baseline["top 50 ms"], 2),
        "ingest to FTS5 on prepared records": round(row["ingest us a record"] / baseline["ingest us a record"], 2),
    }
    return result | ({"compute to the smallest": round(row["compute ms"] / smallest["compute ms"], 2)} if smallest else {})


def against(row: dict[str, Any], sqlite: dict[str, Any] | None, kind: str) -> dict[str, float]:
    return {"compute to SQLite's": round(row["compute ms"] / sqlite["compute ms"], 2)} if sqlite and kind != "sqlite" else {}


def measure_fts5(corpus: list[str]) -> dict[str, float]:
    """Return the cost of a bare top-50 query and of the ingest in FTS5, over the same texts prepared as records."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "fts.db")
        wrote = fts5(path, corpus, prepared=True)
        db = apsw.Connection(str(path))
        times = []
        for text in queries(corpus, QUERY_COUNT):
            words = " OR ".join(f'"{word}"' for word in dict.fromkeys(analysis.words(text)))
            began = time.process_time()
            db.execute("select rowid from words where words match ? order by rank limit 50", (words,)).fetchall()
            times.append((time.process_time() - began) * 1000)
        db.close()
    return {"top 50 ms": round(statistics.median(times), 2), "ingest us a record": round(wrote / len(corpus) * 1e6, 1)}


@contextmanager
def open_database(kind: str) -> Iterator[tuple[str | Path, Clock]]:
    """Yield a location for a new store, and a clock of the CPU time of all processes that serve it."""
    with ExitStack() as stack:
        if kind == "sqlite":
            yield Path(stack.enter_context(tempfile.TemporaryDirectory())), time.process_time
            return
        from tests.postgres_server import server

        running = stack.enter_context(server())
        yield running.database(), lambda: time.process_time() + children_cpu(running.pid)


def children_cpu(parent: int) -> float:
    """Return the CPU seconds of a process and of its children.

    Running processes are counted in nanoseconds, because a query takes less than one of the ticks that ended ones are
    counted in.
    """
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
