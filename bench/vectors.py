"""Benchmark of vector search in one project: CPU time per query by size and selectivity, recall, and the cost after a write.

The hash embedder makes the vectors from real text. The baseline is one NumPy product over the same vectors as floats,
without sorting or filtering. Recall is measured against an exhaustive search.
"""

from __future__ import annotations

import os
import random
import statistics
import tempfile
from contextlib import closing
from pathlib import Path

import apsw
import numpy as np

from bench.corpus import queries, texts
from bench.speed import cpu
from foveate.engine import Engine
from foveate.store.protocol import Query, SearchGroup
from foveate.store.sqlite.store import SQLiteStore
from foveate.text.embed import open_embedder
from foveate.types import Filters, Scope

DIMENSIONS, MAX_HITS, QUERY_COUNT = 256, 50, 20
SCOPE = Scope("main")
TAG_SHARES = (0.5, 0.05, 0.005, 0.0005)
"""Shares of the records that the filters leave."""


def fill(path: Path, corpus: list[str], tags: list[str]) -> None:
    """Store the texts, one a second, with their tags and without vectors."""
    numbers = iter(range(10**9))
    with closing(SQLiteStore(path)) as store:
        engine = Engine(store, scope=SCOPE, clock=lambda: 10**12, ids=lambda kind, now: f"{kind}_{next(numbers):08d}")
        engine.store.add_many(
            ("note", text, {"tags": [tag] if tag else [], "created": (n + 1) * 1000})
            for n, (text, tag) in enumerate(zip(corpus, tags, strict=True))
        )


def random_tags(count: int) -> list[str]:
    """Return a tag for each record. Its name says which share of the records has it."""
    chance = random.Random(3)
    return chance.choices([*(f"share{share}" for share in TAG_SHARES), ""], [*TAG_SHARES, 1 - sum(TAG_SHARES)], k=count)


def stored_vectors(path: Path, size: int):
    """Return the stored vectors by the number of their text. A text that is a duplicate has zeros."""
    out = np.zeros((size, DIMENSIONS), "f2")
    db = apsw.Connection(str(path))
    for id, vector in db.execute("select r.id, v.vector from vectors v join records r on r.doc = v.doc"):
        out[int(id[5:])] = np.frombuffer(vector, "<f2")
    db.close()
    return out


def reference(vectors, passing, question) -> set[int]:
    """Return the nearest texts by an exhaustive search. Ties are broken by number."""
    scores = np.round(vectors[passing].astype("f8") @ np.asarray(question), 6)
    order = np.lexsort((passing, -scores))[:MAX_HITS]
    return {int(passing[i]) for i in order if scores[i] > 0}


def measure(size: int, corpus: list[str], folder: Path) -> dict:
    embedder = open_embedder(f"hash:{DIMENSIONS}")
    tags = random_tags(size)
    path = folder / f"v{size}.db"
    fill(path, corpus, tags)
    engine = Engine(SQLiteStore(path, embedding_namespace=embedder.fingerprint), scope=SCOPE, embedder=embedder)
    out: dict = {"embedding us a record": round(cpu(lambda: engine.store.maintain(only=["vectors"])) / size * 1000, 1)}
    raw = stored_vectors(path, size)
    floats = raw.astype("f4")
    questions = [embedder.query(text) for text in queries(corpus, QUERY_COUNT)]
    out["plain product ms"] = round(statistics.median(cpu(lambda q=q: floats @ np.asarray(q, "f4")) for q in questions), 2)

    def ask(question, filters: Filters = Filters()) -> list:  # noqa: B008
        with engine.store.data.store.read(SCOPE) as reader:
            return reader.search(Query({}, {}, question, filters), [SearchGroup((), MAX_HITS)])[0]

    out["first search, reading all vectors, ms"] = round(cpu(lambda: ask(questions[0])))
    everything, marks, times = np.arange(size), np.array(tags), (np.arange(size) + 1) * 1000
    cases = {"no filter": (Filters(), everything)}
    for share in TAG_SHARES:
        since = (size - int(size * share) + 1) * 1000
        cases[f"time, {share:.2%}"] = (Filters(since=since), np.flatnonzero(times >= since))
        cases[f"tag, {share:.2%}"] = (Filters(tags=(f"share{share}",)), np.flatnonzero(marks == f"share{share}"))
    lost = expected = 0
    for name, (filters, passing) in cases.items():
        spent = []
        for question in questions:
            found: list = []
            spent.append(cpu(lambda q=question, f=filters, found=found: found.extend(ask(q, f))))
            best = reference(raw, passing, question)
            got = {int(hit.record.id[5:]) for hit in found}
            lost, expected = lost + len(best - got), expected + len(best)
        out[f"{name}, ms"] = round(statistics.median(spent), 2)
    out["recall"] = round(1 - lost / expected, 6)
    after = []
    for n, question in enumerate(questions):
        engine.add("note", f"Written just now, number {n}")
        after.append(cpu(lambda q=question: ask(q)))
    out["right after a write, ms"] = round(statistics.median(after), 2)
    engine.close()
    return out


def run() -> dict:
    sizes = [int(size) for size in os.environ.get("FOVEATE_BENCH_SIZES", "10000,100000").split(",")]
    corpus = texts(max(sizes))
    out: dict = {"missed": []}
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            found = out[f"{size} vectors"] = measure(size, corpus[:size], Path(folder))
            print(size, found, flush=True)
            if found["recall"] < 1:
                out["missed"].append(f"recall {found['recall']} at {size} vectors")
    return out
