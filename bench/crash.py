"""kill -9 during ingest at 50 random points: is every acknowledged record still there, and the file sound?"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import foveate

ROUNDS = 50
WRITER = """
import sys, foveate
engine = foveate.open(sys.argv[1], own=False)
for n in range(100_000):
    added = engine.add("note", f"round {sys.argv[2]} record {n} about caches, queues and {n % 97} other things")
    print(added.record.id, flush=True)
"""


def run() -> dict:
    chance = random.Random(3)
    acknowledged: set[str] = set()
    with tempfile.TemporaryDirectory() as folder:
        for n in range(ROUNDS):
            writer = subprocess.Popen(
                [sys.executable, "-c", WRITER, folder, str(n)], stdout=subprocess.PIPE, text=True, cwd=Path(folder)
            )
            assert writer.stdout is not None
            acknowledged.add(writer.stdout.readline().strip())
            time.sleep(chance.random() * 0.3)
            writer.send_signal(signal.SIGKILL)
            rest, _ = writer.communicate()
            lines = rest.split("\n")
            acknowledged |= {line for line in lines[:-1] if line}  # the last one may be cut
        engine = foveate.open(folder, own=False)
        with engine.reader() as reader:
            here = {record.id for record in reader.records()}
        health = engine.health()
        engine.close()
    out = {
        "rounds": ROUNDS,
        "acknowledged": len(acknowledged),
        "lost": len(acknowledged - here),
        "sound": health.ok,
        "problems": list(health.problems),
    }
    print(out)
    return out
