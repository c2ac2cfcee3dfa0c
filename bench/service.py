"""Measures the service under load: 64 clients compute at once in a real server process, over many requests.

It is a closed loop: each client sends its next request after the response, over one connection. Latencies are those of the
clients, with the time in the queue. Targets: p99 at most 5 times p50, no error, and no growth of memory: the memory in use
(`bench.memory_probe`) must not grow, and the size of the process hardly, which grows in steps until malloc reuses its gaps.

    FOVEATE_BENCH_RECORDS    records in the store (100,000)
    FOVEATE_BENCH_CLIENTS    clients at once (64)
    FOVEATE_BENCH_REQUESTS   requests of the whole run (10,000)
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import foveate

RECORDS = int(os.environ.get("FOVEATE_BENCH_RECORDS", 100_000))
CLIENTS = int(os.environ.get("FOVEATE_BENCH_CLIENTS", 64))
REQUESTS = int(os.environ.get("FOVEATE_BENCH_REQUESTS", 10_000))

MAX_P99_RATIO = 5.0
"""p99 may be this many times p50."""

MAX_GROWTH_KB = 1.0
"""The process may grow by this much per request, over the second half of the run."""

MAX_USE_GROWTH = 0.01
"""Memory in use may grow by this share from the second quarter to the last: it varies with the writes in progress."""

WARMUP_SHARE = 0.1
"""The first requests fill caches and connections, and are not counted."""

VOCABULARY_SIZE = 20_000


def corpus(count: int, seed: int = 1) -> tuple[list[str], list[str]]:
    """Return notes of about twelve words with a natural distribution, and queries of four to eight of those words."""
    chance = random.Random(seed)
    syllables = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
    words = list(dict.fromkeys("".join(chance.choices(syllables, k=chance.randint(2, 4))) for _ in range(VOCABULARY_SIZE)))
    weights = [1 / (rank + 10) for rank in range(len(words))]
    notes = [" ".join(chance.choices(words, weights, k=chance.randint(8, 16))) for _ in range(count)]
    questions = [" ".join(chance.choices(words, weights, k=chance.randint(4, 8))) for _ in range(500)]
    return notes, questions


def run() -> dict:
    notes, questions = corpus(RECORDS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with foveate.open(folder, personal=False) as engine:
            engine.store.add_many(("note", text, {}) for text in notes)
        print(f"{RECORDS:,} records", flush=True)
        figures = measure(folder, questions)
    missed = []
    if figures["errors"]:
        missed.append(f"{figures['errors']} requests failed")
    if figures["p99_ms"] > MAX_P99_RATIO * figures["p50_ms"]:
        missed.append(f"p99 is {figures['p99_ms'] / figures['p50_ms']:.1f} times p50, more than {MAX_P99_RATIO:g}")
    if figures["kilobytes_a_request"] > MAX_GROWTH_KB:
        missed.append(f"the process grows by {figures['kilobytes_a_request']:.2f} kB a request, more than {MAX_GROWTH_KB:g}")
    for title in ("in_use", "blocks"):
        before, after = figures[f"{title}_second_quarter"], figures[f"{title}_last_quarter"]
        if after > before * (1 + MAX_USE_GROWTH):
            missed.append(f"{title.replace('_', ' ')} grew from {before:,} to {after:,}, by more than {MAX_USE_GROWTH:.0%}")
    for title, value in figures.items():
        print(f"{title.replace('_', ' '):24} {value:,}")
    return {**figures, "missed": missed}


def measure(folder: Path, questions: list[str]) -> dict:
    """Run the load on one server process, and return latencies and memory."""
    used = folder / "used"
    command = [sys.executable, "-m", "bench.memory_probe", str(used), "serve", "--port", "0"]
    paths = (Path(foveate.__file__).parents[1], Path(__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    with open(folder / "log", "w+") as log, subprocess.Popen(command, cwd=folder, stderr=log, env=environment) as server:
        try:
            port = _port(folder / ".foveate" / "service.json", server)
            began = time.perf_counter()
            latencies, sizes, errors = asyncio.run(_load(port, questions, server.pid, used))
            seconds = time.perf_counter() - began
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(60)
    counted = sorted(latencies[int(len(latencies) * WARMUP_SHARE) :])
    return {
        "records": RECORDS,
        "clients": CLIENTS,
        "requests": len(latencies),
        "errors": errors,
        "a_second": round(len(latencies) / seconds, 1),
        "p50_ms": round(statistics.median(counted) * 1000, 1),
        "p99_ms": round(counted[int(len(counted) * 0.99)] * 1000, 1),
        "max_ms": round(counted[-1] * 1000, 1),
        "memory_mb": round(sizes[-1][1] / 1024, 1),
        "kilobytes_a_request": round(_slope([size[:2] for size in sizes[len(sizes) // 2 :]]), 3),
        **_in_use(sizes),
    }


async def _load(port: int, questions: list[str], pid: int, used: Path) -> tuple[list[float], list[tuple[int, ...]], int]:
    """Return the latencies, samples of (requests, kilobytes, in use, blocks), and the number of failed requests."""
    latencies: list[float] = []
    sizes: list[tuple[int, ...]] = []
    errors = 0
    numbers = iter(range(REQUESTS))

    async def client() -> None:
        nonlocal errors
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number in numbers:
            began = time.perf_counter()
            errors += not await _compute(reader, writer, questions[number % len(questions)], number)
            latencies.append(time.perf_counter() - began)
            if len(latencies) % max(1, REQUESTS // 100) == 0:
                sizes.append((len(latencies), _kilobytes(pid), *map(int, used.read_text().split())))
        writer.close()

    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return latencies, sizes, errors


async def _compute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, query: str, number: int) -> bool:
    body = json.dumps({"query": query, "budget": 2000, "session": f"s{number % 50}"}).encode()
    head = f"POST /v1/contexts HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n"
    writer.write(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)
    await writer.drain()
    answer = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = int(answer.partition("content-length:")[2].partition("\r\n")[0])
    await reader.readexactly(length)
    return answer.startswith("http/1.1 200")


def _port(file: Path, server: subprocess.Popen) -> int:
    while not file.exists():
        assert server.poll() is None, "the service did not start"
        time.sleep(0.05)
    return int(json.loads(file.read_text())["url"].rpartition(":")[2])


def _kilobytes(pid: int) -> int:
    """Return the private memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0])


def _in_use(sizes: list[tuple[int, ...]]) -> dict[str, int]:
    """Return the medians of two quarters: kilobytes allocated by malloc, and blocks of Python's allocator."""
    quarters = {"second_quarter": sizes[len(sizes) // 4 : len(sizes) // 2], "last_quarter": sizes[len(sizes) * 3 // 4 :]}
    return {
        f"{title}_{name}": round(statistics.median(size[column] for size in of_quarter))
        for name, of_quarter in quarters.items()
        for title, column in (("in_use", 2), ("blocks", 3))
    }


def _slope(points: list[tuple[int, ...]]) -> float:
    """Return kilobytes per request, by least squares."""
    return statistics.linear_regression(*zip(*points, strict=True)).slope if len(points) > 1 else 0.0
