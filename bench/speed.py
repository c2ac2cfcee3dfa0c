"""Measures speed in one scope: compute relative to its bare index query, ingest to FTS5's, start-up to Python's.

Times are medians of the CPU time of this process. Each value is a ratio to something run in the same process on the same
data.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

import apsw

import foveate
from bench.corpus import queries, texts
from foveate.clock import new_id
from foveate.pipeline.profiles import resolve
from foveate.pipeline.sources.base import limit_of
from foveate.records.make import Rules, make
from foveate.store.protocol import Query, SearchGroup
from foveate.text import analysis
from foveate.types import Scope

QUERY_COUNT = 100


def cpu(job: Callable[[], object]) -> float:
    """Return the CPU milliseconds of one call."""
    began = time.process_time()
    job()
    return (time.process_time() - began) * 1000


def child_cpu(command: list[str], **options) -> float:
    """Return the CPU milliseconds of a new process: the minimum of five runs, which is the least disturbed one."""

    def once() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **options)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000

    return min(once() for _ in range(5))


def fill(folder: Path, corpus: list[str]) -> float:
    """Store the texts, and return the CPU seconds."""
    engine = foveate.open(folder, personal=False)
    began = time.process_time()
    engine.store.add_many(("note", text, {}) for text in corpus)
    engine.close()
    return time.process_time() - began


def fts5(path: Path, corpus: list[str], *, prepared: bool) -> float:
    """Write the texts into a record table and an FTS5 index, and return the CPU seconds.

    `prepared`: each text is first made into a record as in foveate (checked, redacted, shortened to three lengths, its
    tokens counted), so that only the difference between the two indexes remains.
    """
    db = apsw.Connection(str(path))
    db.pragma("journal_mode", "wal")
    db.pragma("synchronous", "normal")
    db.execute(
        "create table records(doc integer primary key, id text not null, kind text not null, text text not null,"
        " hash text not null, created integer not null, data text);"
        "create unique index by_id on records(id); create index by_hash on records(hash);"
        "create index by_kind on records(kind, created);"
        "create virtual table words using fts5(text, summary, tags, subject, entities, paths,"
        " content='', tokenize='porter unicode61')"
    )
    rules, scope = Rules(), Scope("main")
    began = time.process_time()
    for start in range(0, len(corpus), 5000):
        rows, words = [], []
        for n, text in enumerate(corpus[start : start + 5000], start):
            id = new_id("note", n)
            if prepared:
                record = make("note", text, scope=scope, id=id, now=n, rules=rules)
                rows.append((n, id, "note", record.text, record.hash, n, None))
            else:
                rows.append((n, id, "note", text, blake2b(text.encode(), digest_size=16).hexdigest(), n, None))
            words.append((n, text, "", "", "", "", ""))
        with db:
            db.executemany("insert into records values (?, ?, ?, ?, ?, ?, ?)", rows)
            db.executemany(
                "insert into words(rowid, text, summary, tags, subject, entities, paths) values (?, ?, ?, ?, ?, ?, ?)", words
            )
    db.close()
    return time.process_time() - began


def measure_queries(folder: Path, questions: list[str]) -> dict[str, float]:
    """Return the median CPU time of compute and of its index query."""
    engine = foveate.open(folder, personal=False)
    profile = resolve("default")
    slots = [slot for slot in profile.slots if slot.source == "search"]
    wants = [SearchGroup(slot.kinds, limit_of(slot, profile)) for slot in slots]
    bare, whole = [], []

    def index_query(text: str) -> None:
        with engine.store.data.reader() as reader:
            reader.search(Query(dict.fromkeys(analysis.terms(text), 1.0), profile.fields), wants)

    engine.context(questions[0])
    for text in questions:
        bare.append(cpu(lambda text=text: index_query(text)))
        whole.append(cpu(lambda text=text: engine.context(text)))
    engine.close()
    return {
        "index query ms": round(statistics.median(bare), 2),
        "compute ms": round(statistics.median(whole), 2),
        "compute p95 ms": round(sorted(whole)[int(len(whole) * 0.95)], 2),
        "ratio": round(statistics.median(whole) / statistics.median(bare), 2),
    }


def run() -> dict:
    sizes = [int(size) for size in os.environ.get("FOVEATE_BENCH_SIZES", "10000,100000").split(",")]
    corpus = texts(max(sizes))
    out: dict = {}
    with tempfile.TemporaryDirectory() as root:
        for size in sizes:
            part = corpus[:size]
            folder = Path(root, f"s{size}")
            folder.mkdir()
            ingest = fill(folder, part)
            bare = fts5(Path(root, f"f{size}.db"), part, prepared=False)
            same = fts5(Path(root, f"p{size}.db"), part, prepared=True)
            row = measure_queries(folder, queries(part, QUERY_COUNT))
            row |= {
                "ingest us a record": round(ingest / size * 1e6, 1),
                "FTS5 alone, us a record": round(bare / size * 1e6, 1),
                "FTS5 on prepared records, us a record": round(same / size * 1e6, 1),
                "ingest to FTS5 alone": round(ingest / bare, 2),
                "ingest to FTS5 on prepared records": round(ingest / same, 2),
                "bytes a record": round((folder / ".foveate" / "state.db").stat().st_size / size),
            }
            out[f"{size} records"] = row
            print(size, row, flush=True)
        first, last = out[f"{sizes[0]} records"], out[f"{sizes[-1]} records"]
        out["compute, largest to smallest"] = round(last["compute ms"] / first["compute ms"], 2)
        python, flags = sys.executable, ["-I"]
        bare = child_cpu([python, *flags, "-c", "pass"])
        out["start"] = {
            "python ms": round(bare, 1),
            "import foveate ms": round(child_cpu([python, *flags, "-c", "import foveate"]), 1),
            "import foveate, all names ms": round(child_cpu([python, *flags, "-c", "import foveate; foveate.Engine"]), 1),
        }
        out["start"]["ratio"] = round(out["start"]["import foveate ms"] / bare, 2)
        question = queries(corpus[: sizes[0]], 1)[0]
        command = [python, "-m", "foveate", "--store", str(Path(root, f"s{sizes[0]}")), "context", question]
        out[f"foveate context at {sizes[0]} records, new process, CPU ms"] = round(child_cpu(command), 1)
    print({key: value for key, value in out.items() if "records" not in key or "context" in key})
    return out
