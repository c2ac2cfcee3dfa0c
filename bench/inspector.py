"""Measures the server time of every inspector page on a large store, compared with a response that does nothing.

Every page is requested in process through the whole service, several times after a first request that is not counted. The
store has 100,000 records of varied text and 500 receipts, one of them with 500 candidates, and tasks, entities and code
(foveate's own). Target: the median of every page is at most 200 ms.

    FOVEATE_BENCH_RECORDS    records in the store (100,000)
    FOVEATE_BENCH_RECEIPTS   receipts in the store (500)
    FOVEATE_BENCH_REQUESTS   requests of each page (20)
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from starlette.testclient import TestClient

import foveate
from bench.service import corpus
from foveate.engine import Engine
from foveate.server.http import create_app
from foveate.server.http.serving import freeze_gc

RECORDS = int(os.environ.get("FOVEATE_BENCH_RECORDS", 100_000))
RECEIPTS = int(os.environ.get("FOVEATE_BENCH_RECEIPTS", 500))
REQUESTS = int(os.environ.get("FOVEATE_BENCH_REQUESTS", 20))

CANDIDATE_COUNT = 500
"""Candidates of the receipt on the pages of a context."""

MAX_MEDIAN_MS = 200.0

BARE_PATH = "/healthz"
PAGES = {
    "contexts": "/ui/contexts",
    "context": "/ui/context?id={large}",
    "left out": "/ui/left-out?id={large}",
    "compare": "/ui/compare?id={other}&from={large}",
    "try": "/ui/try?id={large}&budget=4000",
    "session": "/ui/session?name={session}",
    "memory": "/ui/memory",
    "search": "/ui/memory?q={query}",
    "record": "/ui/record?id={record}",
    "record history": "/ui/record?id={record}&tab=history",
    "record links": "/ui/record?id={entity}&tab=links",
    "record used": "/ui/record?id={record}&tab=used",
    "forget": "/ui/forget?id={record}",
    "inbox": "/ui/inbox",
    "tasks": "/ui/tasks",
    "task": "/ui/task?id={task}",
    "code": "/ui/code?q={query}",
    "health": "/ui/health",
}
"""The pages. Names in braces are keys of the result of `fill_store`."""

KINDS = ("note", "fact", "event", "decision", "gotcha", "pattern", "episode", "procedure")
ENTITY_COUNT, TASK_COUNT, SESSION_COUNT = 200, 60, 20


def run() -> dict:
    with tempfile.TemporaryDirectory() as name:
        shutil.copytree(Path(foveate.__file__).parent, Path(name, "foveate"), ignore=shutil.ignore_patterns("__pycache__"))
        with foveate.open(name, personal=False, code=True) as engine:
            names = fill_store(engine)
            with TestClient(create_app(engine), base_url="http://127.0.0.1") as client:
                freeze_gc()  # as the service does
                pages = {
                    page: measure_page(client, _path(template, names))
                    for page, template in {"bare": BARE_PATH, **PAGES}.items()
                }
    show(pages)
    failed = [f"{page} responds {figures['status']}" for page, figures in pages.items() if figures["status"] != 200]
    slow = [
        f"{page} takes {figures['median_ms']} ms, more than {MAX_MEDIAN_MS:g}"
        for page, figures in pages.items()
        if figures["median_ms"] > MAX_MEDIAN_MS
    ]
    return {"records": RECORDS, "receipts": RECEIPTS, "candidates": CANDIDATE_COUNT, "pages": pages, "missed": failed + slow}


def fill_store(engine: Engine) -> dict[str, str]:
    """Fill the store, and return the ids and queries of the pages."""
    texts, questions = corpus(RECORDS)
    ids = engine.store.add_many((KINDS[n % len(KINDS)], text, {"tags": [f"t{n % 50}"]}) for n, text in enumerate(texts))
    names = [f"{text.split()[0]} {n}" for n, text in enumerate(texts[:ENTITY_COUNT])]
    entities = engine.store.add_many(("entity", name, {"type": "thing"}) for name in names)
    for n in range(1, ENTITY_COUNT):  # the first one has many neighbors, which have more
        engine.link(names[n], "near", names[0 if n < 40 else n % 40])
    tasks = [engine.tasks.add(f"Task {n} {texts[n]}", key=f"k{n}") for n in range(TASK_COUNT)]
    for n in range(1, TASK_COUNT):
        engine.tasks.edit(f"k{n}", depends_on=[f"k{n // 2}"])
    for n in range(RECEIPTS - 2):
        engine.context(questions[n % len(questions)], budget=2000, profile="default", session=f"s{n % SESSION_COUNT}")
    other, large = (_large(engine, " ".join(questions[n : n + 4])) for n in (0, 2))
    engine.receipts.flush()
    print(f"{RECORDS:,} records, {engine.store.stats().receipts} receipts", flush=True)
    ids_of_pages = {"query": questions[0], "record": ids[0], "entity": entities[0], "task": tasks[1].id, "session": "s1"}
    return {"other": other, "large": large, **ids_of_pages}


def _large(engine: Engine, query: str) -> str:
    """Compute a context with at least CANDIDATE_COUNT candidates, most of them left out."""
    facts = {"max_candidates": CANDIDATE_COUNT, "min_relevance": 0.0}
    context = engine.context(query, budget=6000, overrides={"slots": {"facts": facts}})
    count = len(engine.receipts.get(context).candidates)
    assert count >= CANDIDATE_COUNT, f"only {count} candidates"
    return context.id


def _path(template: str, names: Mapping[str, str]) -> str:
    return template.format_map({name: quote(value, safe="") for name, value in names.items()})


def measure_page(client: TestClient, path: str) -> dict:
    response = client.get(path, follow_redirects=False)
    times, cpu_times = [], []
    for _ in range(REQUESTS):
        started, cpu = time.perf_counter(), time.process_time()
        client.get(path, follow_redirects=False)
        times.append((time.perf_counter() - started) * 1000)
        cpu_times.append((time.process_time() - cpu) * 1000)
    return {
        "status": response.status_code,
        "kilobytes": round(len(response.content) / 1000, 1),
        "median_ms": round(statistics.median(times), 1),
        "p95_ms": round(sorted(times)[int(0.95 * (len(times) - 1))], 1),
        "cpu_ms": round(statistics.median(cpu_times), 1),
    }


def show(pages: Mapping[str, Mapping[str, float]]) -> None:
    print(f"{'page':16} {'status':>6} {'kB':>8} {'median ms':>10} {'p95 ms':>8} {'CPU ms':>8} {'to bare':>12}")
    for page, result in pages.items():
        ratio = result["median_ms"] / max(0.1, pages["bare"]["median_ms"])
        print(
            f"{page:16} {result['status']:6} {result['kilobytes']:8,.1f} {result['median_ms']:10.1f} "
            f"{result['p95_ms']:8.1f} {result['cpu_ms']:8.1f} {ratio:11.1f}x"
        )
