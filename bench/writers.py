"""Benchmark of concurrent writers: many processes write to one SQLite store while others compute contexts.

Targets: no error reaches a caller, every acknowledged record is stored, the slowest writer writes at least a third of what
the fastest does, and the write-ahead log stays bounded. The environment may set:

    FOVEATE_BENCH_SECONDS    duration in seconds (120)
    FOVEATE_BENCH_WRITERS    number of writing processes (8)
    FOVEATE_BENCH_READERS    number of processes that compute contexts (2)
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import foveate

SECONDS = float(os.environ.get("FOVEATE_BENCH_SECONDS", 120))
WRITERS = int(os.environ.get("FOVEATE_BENCH_WRITERS", 8))
READERS = int(os.environ.get("FOVEATE_BENCH_READERS", 2))

MIN_FAIRNESS = 1 / 3
"""Target: the slowest writer writes at least this share of what the fastest does."""

MAX_LOG_BYTES = 128 * 2**20
"""Target: the log never grows beyond this size. It is four times the size at which a writer truncates it, because on a busy
machine a read transaction may last a second."""

INITIAL_RECORDS = 50
"""Records stored before the start, so that readers find something."""

WRITER = """
import json, sys, time, foveate
folder, name = sys.argv[1], sys.argv[2]
calls, errors, waits = 0, [], []
with foveate.open(folder, personal=False, code=False) as engine, open(f"{folder}/{name}.ids", "w") as said:
    print("ready", flush=True)
    end = float(sys.stdin.readline())
    while time.time() < end:
        words = f"writer {name} turn {calls} about caches, queues and {calls % 97} other things in store w{name}x{calls}"
        began = time.perf_counter()
        try:
            if calls % 10 == 9:
                ids = engine.store.add_many(("note", f"{words} part {part}", {}) for part in range(50))
            else:
                ids = [engine.add("note", words).record.id]
        except Exception as error:
            errors.append(repr(error))
            continue
        waits.append(time.perf_counter() - began)
        calls += 1
        said.write("\\n".join(ids) + "\\n")
p99 = sorted(waits)[len(waits) * 99 // 100]
print(json.dumps({"calls": calls, "errors": errors, "slowest": max(waits), "p99": p99, "cpu": time.process_time()}))
"""

READER = """
import json, sys, time, foveate
folder, name = sys.argv[1], sys.argv[2]
calls, errors, waits = 0, [], []
with foveate.open(folder, personal=False, code=False) as engine:
    print("ready", flush=True)
    end = float(sys.stdin.readline())
    while time.time() < end:
        began = time.perf_counter()
        try:
            engine.context(f"what about caches and queues in turn {calls}", budget=1000)
        except Exception as error:
            errors.append(repr(error))
        waits.append(time.perf_counter() - began)
        calls += 1
p99 = sorted(waits)[len(waits) * 99 // 100]
print(json.dumps({"calls": calls, "errors": errors, "slowest": max(waits), "p99": p99, "cpu": time.process_time()}))
"""


def run() -> dict:
    with tempfile.TemporaryDirectory() as name:
        figures = measure(Path(name), SECONDS, WRITERS, READERS)
    for title, value in figures.items():
        print(f"{title.replace('_', ' '):24} {value}")
    return figures


def measure(folder: Path, seconds: float, writers: int, readers: int) -> dict:
    """Run all processes in an empty folder, and return the metrics with the missed targets."""
    with foveate.open(folder, personal=False, code=False) as engine:
        engine.store.add_many(
            ("note", f"note {n} about caches, queues and {n % 97} other things", {}) for n in range(INITIAL_RECORDS)
        )
    started = [_start(WRITER, folder, f"w{n}") for n in range(writers)]
    started += [_start(READER, folder, f"r{n}") for n in range(readers)]
    for process in started:
        process.stdout.readline()  # wait until it is ready
    end = time.time() + seconds
    for process in started:
        process.stdin.write(f"{end}\n")
        process.stdin.flush()
    logs = [_size(folder)]
    while any(process.poll() is None for process in started):
        logs.append(_size(folder))
        time.sleep(0.05)
    done = [json.loads(process.communicate()[0]) for process in started]
    return _metrics(done[:writers], done[writers:], max(logs), _stored(folder), seconds)


def _start(code: str, folder: Path, name: str) -> subprocess.Popen:
    here = {**os.environ, "PYTHONPATH": str(Path(foveate.__file__).parents[1])}
    command = [sys.executable, "-c", code, str(folder), name]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder, env=here)


def _size(folder: Path) -> int:
    log = folder / ".foveate" / "state.db-wal"
    return log.stat().st_size if log.exists() else 0


def _stored(folder: Path) -> tuple[int, int, tuple[str, ...]]:
    """Return the numbers of acknowledged and of lost records, and the problems of the store."""
    acknowledged = {line for file in folder.glob("*.ids") for line in file.read_text().split()}
    with foveate.open(folder, personal=False, code=False) as engine:
        stored = {record.id for record in engine.records(status=None)}
        return len(acknowledged), len(acknowledged - stored), engine.store.health().problems


def _metrics(writers: list[dict], readers: list[dict], log: int, stored: tuple, seconds: float) -> dict:
    calls = sorted(one["calls"] for one in writers)
    errors = [error for one in (*writers, *readers) for error in one["errors"]]
    acknowledged, lost, problems = stored
    fair = calls[0] / max(calls[-1], 1)
    missed = [f"{len(errors)} errors reached a caller, such as {errors[0]}"] if errors else []
    missed += [f"{lost} of {acknowledged} acknowledged records are lost"] if lost else []
    missed += (
        [f"the slowest writer did {fair:.2f} of the fastest, less than {MIN_FAIRNESS:.2f}"] if fair < MIN_FAIRNESS else []
    )
    missed += [f"the log grew to {log / 2**20:.0f} MB"] if log > MAX_LOG_BYTES else []
    missed += list(problems)
    return {
        "seconds": seconds,
        "calls_of_each_writer": calls,
        "slowest_to_fastest": round(fair, 3),
        "records": acknowledged,
        "lost": lost,
        "errors": len(errors),
        "writes_a_second": round(sum(calls) / seconds, 1),
        "p99_write_s": round(max(one["p99"] for one in writers), 3),
        "slowest_write_s": round(max(one["slowest"] for one in writers), 2),
        "cpu_s_of_writers": round(sum(one["cpu"] for one in writers), 1),
        "contexts": sum(one["calls"] for one in readers),
        "slowest_context_s": round(max((one["slowest"] for one in readers), default=0.0), 2),
        "highest_log_mb": round(log / 2**20, 1),
        "missed": missed,
    }
