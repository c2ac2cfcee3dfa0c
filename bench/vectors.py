"""Vector search in one project: CPU time a question at each size and selectivity, recall, and the cost after a write.

The vectors are those of the hash embedder over real text. Beside each figure stands one plain NumPy product over the same
vectors as floats, which finds nothing yet: it neither sorts nor filters. Recall is against going through everything.
"""

from __future__ import annotations

import os
import random
import statistics
import tempfile
from pathlib import Path

import apsw
import numpy as np

from bench.corpus import queries, texts
from bench.speed import cpu
from foveate.engine import Engine
from foveate.records.make import Rules
from foveate.store.protocol import Query, SearchGroup
from foveate.store.sqlite.store import SQLiteStore
from foveate.text.embed import open_embedder
from foveate.types import Filters, Scope

DIM, LIMIT, ASKED = 256, 50, 20
HERE = Scope("main")
SHARES = (0.5, 0.05, 0.005, 0.0005)


def fill(path: Path, corpus: list[str], tags: list[str], embedder) -> Engine:
    """A store of these texts, one a second, with tags; vectors come in a step of their own."""
    store = SQLiteStore(path, space=embedder.fingerprint)
    numbers = iter(range(10**9))
    memory = Engine(
        store, scope=HERE, rules=Rules(), clock=lambda: 10**12, ids=lambda kind, now: f"{kind}_{next(numbers):08d}",
        vectors=embedder.embed,
    )  # fmt: skip
    store.space = None
    rows = ((n, text, tag) for n, (text, tag) in enumerate(zip(corpus, tags, strict=True)))
    embed, memory._vectors = memory._vectors, None
    memory.store.add_many(("note", text, {"tags": [tag] if tag else [], "created": (n + 1) * 1000}) for n, text, tag in rows)
    store.space, memory._vectors = embedder.fingerprint, embed
    return memory


def drawn(count: int) -> list[str]:
    """A tag for each record, with a name that says what share of them has it."""
    chance = random.Random(3)
    return chance.choices([*(f"share{share}" for share in SHARES), ""], [*SHARES, 1 - sum(SHARES)], k=count)


def stored(path: Path, size: int):
    """The vectors as they are stored, by the number of the text; of one that is kept already, zeros."""
    out = np.zeros((size, DIM), "f2")
    db = apsw.Connection(str(path))
    for id, vector in db.execute("select r.id, v.vector from vectors v join records r on r.doc = v.doc"):
        out[int(id[5:])] = np.frombuffer(vector, "<f2")
    db.close()
    return out


def reference(vectors, passing, question) -> set[int]:
    """The nearest by going through everything, ties by number."""
    scores = np.round(vectors[passing].astype("f8") @ np.asarray(question), 6)
    order = np.lexsort((passing, -scores))[:LIMIT]
    return {int(passing[i]) for i in order if scores[i] > 0}


def measured(size: int, corpus: list[str], folder: Path) -> dict:
    embedder = open_embedder(f"hash:{DIM}")
    tags = drawn(size)
    memory = fill(folder / f"v{size}.db", corpus, tags, embedder)
    out: dict = {"embedding us a record": round(cpu(memory.embed_missing) / size * 1000, 1)}
    raw = stored(folder / f"v{size}.db", size)
    floats = raw.astype("f4")
    questions = [embedder.query(text) for text in queries(corpus, ASKED)]
    out["plain product ms"] = round(statistics.median(cpu(lambda q=q: floats @ np.asarray(q, "f4")) for q in questions), 2)

    def ask(question, filters: Filters = Filters()) -> list:  # noqa: B008
        with memory.store.data.store.read(HERE) as reader:
            return reader.search(Query({}, {}, question, filters), [SearchGroup((), LIMIT)])[0]

    out["first search, reading all vectors, ms"] = round(cpu(lambda: ask(questions[0])))
    everything, marks, times = np.arange(size), np.array(tags), (np.arange(size) + 1) * 1000
    cases = {"no filter": (Filters(), everything)}
    for share in SHARES:
        since = (size - int(size * share) + 1) * 1000
        cases[f"time, {share:.2%}"] = (Filters(since=since), np.flatnonzero(times >= since))
        cases[f"tag, {share:.2%}"] = (Filters(tags=(f"share{share}",)), np.flatnonzero(marks == f"share{share}"))
    lost = wanted = 0
    for name, (filters, passing) in cases.items():
        spent = []
        for question in questions:
            found: list = []
            spent.append(cpu(lambda q=question, f=filters, found=found: found.extend(ask(q, f))))
            best = reference(raw, passing, question)
            got = {int(hit.record.id[5:]) for hit in found}
            lost, wanted = lost + len(best - got), wanted + len(best)
        out[f"{name}, ms"] = round(statistics.median(spent), 2)
    out["recall"] = round(1 - lost / wanted, 6)
    after = []
    for n, question in enumerate(questions):
        memory.add("note", f"Written just now, number {n}")
        after.append(cpu(lambda q=question: ask(q)))
    out["right after a write, ms"] = round(statistics.median(after), 2)
    memory.close()
    return out


def run() -> dict:
    sizes = [int(size) for size in os.environ.get("FOVEATE_BENCH_SIZES", "10000,100000").split(",")]
    corpus = texts(max(sizes))
    out: dict = {"missed": []}
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            found = out[f"{size} vectors"] = measured(size, corpus[:size], Path(folder))
            print(size, found, flush=True)
            if found["recall"] < 1:
                out["missed"].append(f"recall {found['recall']} at {size} vectors")
    return out
