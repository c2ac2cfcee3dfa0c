"""What pruning brings in one very large scope: postings of N records, exact search against scanning only the rarer terms.

Builds the posting table alone, in the layout of the store, and asks it with `index.plan` at several scan limits. `safe` is
the share of questions for which MaxScore's bound proves the pruned top ten exact: the best that a record with none of the
scanned terms could reach lies below the tenth score.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import apsw

from bench.corpus import queries, texts
from foveate import lexical
from foveate.profiles import resolve
from foveate.state import index
from foveate.state import queries as sql

ASKED = 60
LIMITS = (10**12, 100_000, 50_000, 20_000, 5_000)


def build(path: Path, corpus: list[str]) -> tuple[apsw.Connection, int]:
    db = apsw.Connection(str(path))
    for pragma, value in (("journal_mode", "wal"), ("synchronous", "normal"), ("cache_size", -64_000), ("mmap_size", 2**31)):
        db.pragma(pragma, value)
    db.execute(sql.migrations("sqlite")[0][1])
    length = 0
    for start in range(0, len(corpus), 5000):
        rows = []
        for doc, text in enumerate(corpus[start : start + 5000], start):
            found = lexical.terms(text)
            length += len(found)
            counts: dict[str, int] = defaultdict(int)
            for term in found:
                counts[term] += 1
            rows += [(term, 0, doc, 1, tf, len(found), 1, 0) for term, tf in counts.items()]
        rows.sort()
        with db:
            db.executemany(sql.load("sqlite")["add_posting"], rows)
    return db, length


def search(db: apsw.Connection, plan: index.Plan, average: float) -> list[tuple[int, float]]:
    """(doc, score), best first: the store's own statements."""
    named = sql.load("sqlite")
    params = {"project": 1, "shelf": 0, "average": average, "plan": json.dumps(plan.scan)}
    best = named["best"].format(codes="1", limit=150)
    found = db.execute(f"with {named['plan']}, {named['scored']} {best}", params).fetchall()
    if plan.rerank:
        again = {**params, "plan": json.dumps(plan.rerank), "docs": json.dumps([doc for doc, _ in found])}
        more = dict(db.execute(f"with {named['plan']} {named['rescored']}", again).fetchall())
        found = sorted(((doc, score + more.get(doc, 0.0)) for doc, score in found), key=lambda pair: (-pair[1], pair[0]))
    return found


def run() -> dict:
    size = int(os.environ.get("FOVEATE_BENCH_SPIKE", "1000000"))
    corpus = texts(size)
    fields = resolve("base").fields
    out: dict = {"records": size}
    with tempfile.TemporaryDirectory() as root:
        began = time.process_time()
        db, length = build(Path(root, "spike.db"), corpus)
        out["build us a record"] = round((time.process_time() - began) / size * 1e6, 1)
        plans, counting = [], []
        for question in queries(corpus, ASKED):
            terms = dict.fromkeys(lexical.terms(question), 1.0)
            began = time.process_time()
            frequencies: dict[str, list[tuple[int, int]]] = defaultdict(list)
            at = {"project": 1, "shelf": 0, "terms": json.dumps(list(terms))}
            for term, number, count in db.execute(sql.load("sqlite")["frequencies"], at):
                frequencies[term].append((number, count))
            counting.append((time.process_time() - began) * 1000)
            plans.append((terms, dict(frequencies)))
        out["counting frequencies ms, median"] = round(statistics.median(counting), 2)
        exact: list[list[tuple[int, float]]] = []
        for limit in LIMITS:
            index.SCAN = limit
            times, found, safe = [], [], 0
            for terms, frequencies in plans:
                plan = index.plan(terms, fields, frequencies, size)
                began = time.process_time()
                hits = search(db, plan, length / size)
                times.append((time.process_time() - began) * 1000)
                found.append(hits)
                safe += len(hits) >= 10 and hits[9][1] >= sum(2.2 * weight for _, _, weight, _ in plan.rerank)
            exact = exact or found
            row = {
                "ms median": round(statistics.median(times), 2),
                "ms p95": round(sorted(times)[int(len(times) * 0.95)], 2),
                "top 10 kept %": round(100 * _overlap(exact, found, 10), 1),
                "top 50 kept %": round(100 * _overlap(exact, found, 50), 1),
                "safe %": round(100 * safe / len(plans), 1),
            }
            out[f"scan {limit if limit < 10**12 else 'all'}"] = row
            print(limit, row, flush=True)
    print(out)
    return out


def _overlap(exact: list, found: list, depth: int) -> float:
    shares = []
    for true, got in zip(exact, found, strict=True):
        best = {doc for doc, _ in true[:depth]}
        shares.append(len(best & {doc for doc, _ in got[:depth]}) / max(1, len(best)))
    return statistics.mean(shares)
