"""The service under load: 64 clients that compute at once in a real server process, and its memory over many requests.

Closed loop: each client asks again when it has its answer, over one connection. Reported are latencies as a client sees
them, so the line in front of the workers is part of them. Targets: p99 at most 5 times p50, no error, no slope in memory:
neither in what the process has in use (`bench.watched`), which is what it keeps of its requests, nor much in its size, which
grows in steps until malloc's gaps are enough.

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

RATIO = 5.0
"""Asked: p99 at most this many times p50."""

SLOPE = 1.0
"""Kilobytes by which the process may grow with a request, over the second half of the run."""

GROWTH = 0.01
"""The share by which what is in use may differ between the second quarter and the last: it goes up and down with what is
being written."""

WARM = 0.1
"""The share of the requests that fill caches and connections, and are not counted."""

WORDS = 20_000
"""Different words of the corpus: as many as people use."""


def corpus(count: int, seed: int = 1) -> tuple[list[str], list[str]]:
    """Notes of some twelve words, common words common as in a language, and questions of four to eight of those words."""
    chance = random.Random(seed)
    syllables = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
    words = list(dict.fromkeys("".join(chance.choices(syllables, k=chance.randint(2, 4))) for _ in range(WORDS)))
    weights = [1 / (rank + 10) for rank in range(len(words))]
    notes = [" ".join(chance.choices(words, weights, k=chance.randint(8, 16))) for _ in range(count)]
    asked = [" ".join(chance.choices(words, weights, k=chance.randint(4, 8))) for _ in range(500)]
    return notes, asked


def run() -> dict:
    notes, asked = corpus(RECORDS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with foveate.open(folder, personal=False) as engine:
            engine.store.add_many(("note", text, {}) for text in notes)
        print(f"{RECORDS:,} records", flush=True)
        figures = served(folder, asked)
    missed = []
    if figures["errors"]:
        missed.append(f"{figures['errors']} requests failed")
    if figures["p99_ms"] > RATIO * figures["p50_ms"]:
        missed.append(f"p99 is {figures['p99_ms'] / figures['p50_ms']:.1f} times p50, more than {RATIO:g}")
    if figures["kilobytes_a_request"] > SLOPE:
        missed.append(f"the process grows by {figures['kilobytes_a_request']:.2f} kB a request, more than {SLOPE:g}")
    for title in ("in_use", "blocks"):
        before, after = figures[f"{title}_second_quarter"], figures[f"{title}_last_quarter"]
        if after > before * (1 + GROWTH):
            missed.append(f"{title.replace('_', ' ')} grew from {before:,} to {after:,}, by more than {GROWTH:.0%}")
    for title, value in figures.items():
        print(f"{title.replace('_', ' '):24} {value:,}")
    return {**figures, "missed": missed}


def served(folder: Path, asked: list[str]) -> dict:
    """The figures of one server process."""
    used = folder / "used"
    command = [sys.executable, "-m", "bench.watched", str(used), "serve", "--port", "0"]
    paths = (Path(foveate.__file__).parents[1], Path(__file__).parents[1])
    here = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    with open(folder / "log", "w+") as log, subprocess.Popen(command, cwd=folder, stderr=log, env=here) as server:
        try:
            port = _port(folder / ".foveate" / "service.json", server)
            began = time.perf_counter()
            latencies, sizes, errors = asyncio.run(_load(port, asked, server.pid, used))
            seconds = time.perf_counter() - began
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(60)
    counted = sorted(latencies[int(len(latencies) * WARM) :])
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


async def _load(port: int, asked: list[str], pid: int, used: Path) -> tuple[list[float], list[tuple[int, ...]], int]:
    """Latencies in the order of the answers, (requests, kilobytes, in use, blocks) now and then, and how many failed."""
    latencies: list[float] = []
    sizes: list[tuple[int, ...]] = []
    errors = 0
    numbers = iter(range(REQUESTS))

    async def client() -> None:
        nonlocal errors
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number in numbers:
            began = time.perf_counter()
            errors += not await _compute(reader, writer, asked[number % len(asked)], number)
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
    """Memory of a process that is its own."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0])


def _in_use(sizes: list[tuple[int, ...]]) -> dict[str, int]:
    """Medians of a quarter: kilobytes that malloc has given out, and Python's blocks."""
    quarters = {"second_quarter": sizes[len(sizes) // 4 : len(sizes) // 2], "last_quarter": sizes[len(sizes) * 3 // 4 :]}
    return {
        f"{title}_{name}": round(statistics.median(size[column] for size in some))
        for name, some in quarters.items()
        for title, column in (("in_use", 2), ("blocks", 3))
    }


def _slope(points: list[tuple[int, ...]]) -> float:
    """Kilobytes a request, by least squares."""
    return statistics.linear_regression(*zip(*points, strict=True)).slope if len(points) > 1 else 0.0
