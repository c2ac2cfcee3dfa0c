"""The inspector's pages on a large store: how long the server takes for each, beside an answer that does nothing.

Every page is asked for in process through the whole service, again and again after a first time that is not counted. The
store holds 100,000 records of varied text and 500 receipts, one of them of 500 candidates, beside tasks, entities and code
(foveate's own). Target: the median of every page is at most 200 ms.

    FOVEATE_BENCH_RECORDS    records in the store (100,000)
    FOVEATE_BENCH_RECEIPTS   receipts that are kept (500)
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
from foveate.server.http.serving import settle

RECORDS = int(os.environ.get("FOVEATE_BENCH_RECORDS", 100_000))
RECEIPTS = int(os.environ.get("FOVEATE_BENCH_RECEIPTS", 500))
REQUESTS = int(os.environ.get("FOVEATE_BENCH_REQUESTS", 20))

CANDIDATES = 500
"""Of the receipt that is looked at."""

MOST_MS = 200.0
"""Asked: the median of a page is at most this."""

BARE = "/healthz"
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
"""Each page; what stands in braces is looked up in what `filled` gives."""

KINDS = ("note", "fact", "event", "decision", "gotcha", "pattern", "episode", "procedure")
ENTITIES, TASKS, SESSIONS = 200, 60, 20


def run() -> dict:
    with tempfile.TemporaryDirectory() as name:
        shutil.copytree(Path(foveate.__file__).parent, Path(name, "foveate"), ignore=shutil.ignore_patterns("__pycache__"))
        with foveate.open(name, personal=False, code=True) as engine:
            names = filled(engine)
            with TestClient(create_app(engine), base_url="http://127.0.0.1") as client:
                settle()  # as the service does
                pages = {page: timed(client, _path(template, names)) for page, template in {"bare": BARE, **PAGES}.items()}
    show(pages)
    failed = [f"{page} answers {figures['status']}" for page, figures in pages.items() if figures["status"] != 200]
    slow = [
        f"{page} takes {figures['median_ms']} ms, more than {MOST_MS:g}"
        for page, figures in pages.items()
        if figures["median_ms"] > MOST_MS
    ]
    return {"records": RECORDS, "receipts": RECEIPTS, "candidates": CANDIDATES, "pages": pages, "missed": failed + slow}


def filled(engine: Engine) -> dict[str, str]:
    """Fill the store; what the pages are about."""
    texts, asked = corpus(RECORDS)
    ids = engine.store.add_many((KINDS[n % len(KINDS)], text, {"tags": [f"t{n % 50}"]}) for n, text in enumerate(texts))
    names = [f"{text.split()[0]} {n}" for n, text in enumerate(texts[:ENTITIES])]
    entities = engine.store.add_many(("entity", name, {"type": "thing"}) for name in names)
    for n in range(1, ENTITIES):  # the first one is joined to many, and those to more
        engine.link(names[n], "near", names[0 if n < 40 else n % 40])
    tasks = [engine.tasks.add(f"Task {n} {texts[n]}", key=f"k{n}") for n in range(TASKS)]
    for n in range(1, TASKS):
        engine.tasks.depend(f"k{n}", [f"k{n // 2}"])
    for n in range(RECEIPTS - 2):
        engine.context(asked[n % len(asked)], budget=2000, profile="base", session=f"s{n % SESSIONS}")
    other, large = (_large(engine, " ".join(asked[n : n + 4])) for n in (0, 2))
    engine.receipts.flush()
    print(f"{RECORDS:,} records, {engine.store.store.stats()['receipts']} receipts", flush=True)
    about = {"query": asked[0], "record": ids[0], "entity": entities[0], "task": tasks[1].id, "session": "s1"}
    return {"other": other, "large": large, **about}


def _large(engine: Engine, query: str) -> str:
    """A context of as many candidates as is asked for, most of them left out."""
    facts = {"limit": CANDIDATES, "min_score": 0.0}
    context = engine.context(query, budget=6000, overrides={"slots": {"facts": facts}})
    found = len(engine.receipts.get(context).candidates)
    assert found >= CANDIDATES, f"only {found} candidates"
    return context.id


def _path(template: str, names: Mapping[str, str]) -> str:
    return template.format_map({name: quote(value, safe="") for name, value in names.items()})


def timed(client: TestClient, path: str) -> dict:
    """Milliseconds of one page, and what it is."""
    answer = client.get(path, follow_redirects=False)
    took, worked = [], []
    for _ in range(REQUESTS):
        began, cpu = time.perf_counter(), time.process_time()
        client.get(path, follow_redirects=False)
        took.append((time.perf_counter() - began) * 1000)
        worked.append((time.process_time() - cpu) * 1000)
    return {
        "status": answer.status_code,
        "kilobytes": round(len(answer.content) / 1000, 1),
        "median_ms": round(statistics.median(took), 1),
        "p95_ms": round(sorted(took)[int(0.95 * (len(took) - 1))], 1),
        "cpu_ms": round(statistics.median(worked), 1),
    }


def show(pages: Mapping[str, Mapping[str, float]]) -> None:
    print(f"{'page':16} {'status':>6} {'kB':>8} {'median ms':>10} {'p95 ms':>8} {'CPU ms':>8} {'beside bare':>12}")
    for page, found in pages.items():
        beside = found["median_ms"] / max(0.1, pages["bare"]["median_ms"])
        print(
            f"{page:16} {found['status']:6} {found['kilobytes']:8,.1f} {found['median_ms']:10.1f} {found['p95_ms']:8.1f} "
            f"{found['cpu_ms']:8.1f} {beside:11.1f}x"
        )
