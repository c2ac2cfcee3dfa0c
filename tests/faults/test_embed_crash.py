"""Changing the embedder under kill -9 loses nothing that was written, and the next process continues."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

from conformance.base import HERE, made
from foveate.store.protocol import Query, SearchGroup
from foveate.store.sqlite.store import SQLiteStore
from foveate.testing import embedder

NUMBER = 400

WORKER = """
import sys
from foveate.clock import new_id, now
from foveate.memory.backfill import embed_missing
from foveate.records.make import Rules
from foveate.store.scoped import ScopedStore
from foveate.store.sqlite.store import SQLiteStore
from foveate.testing import embedder
from foveate.types import Scope

model = embedder(32)
store = SQLiteStore(sys.argv[1], embedding_namespace=model.fingerprint)
told = lambda done, total: print(done, total, flush=True)
data = ScopedStore(store=store, scope=Scope("alpha"), rules=Rules(), clock=now, ids=new_id, embedder=model)
embed_missing(data, batch=4, start=float(sys.argv[2]), progress=told)
"""


def test_kill_9_while_the_embedder_changes_loses_at_most_a_page(tmp_path: Path) -> None:
    path, chance, model = tmp_path / "state.db", random.Random(3), embedder(32)
    store = SQLiteStore(path, embedding_namespace=model.fingerprint)
    with store.write(HERE) as writer:
        for n in range(NUMBER):
            writer.add(made(f"Host {n} restarts at {n % 24}"))
    for _ in range(5):
        before = lacking(store)
        arguments = [sys.executable, "-c", WORKER, str(path), str(chance.random())]
        worker = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
        assert worker.stdout is not None
        lines = [worker.stdout.readline() for _ in range(chance.randint(1, 12))]
        worker.send_signal(signal.SIGKILL)
        lines += worker.stdout.read().splitlines()
        worker.communicate()
        assert before - lacking(store) >= max(int(line.split()[0]) for line in lines if line.count(" ") == 1)
    done = subprocess.run([sys.executable, "-c", WORKER, str(path), "0.5"], check=True, stdout=subprocess.PIPE)
    assert done.stdout
    assert lacking(store) == 0
    with store.read(HERE) as reader:
        (found,) = reader.search(Query({}, {}, model.query("host restarts")), [SearchGroup((), 2 * NUMBER)])
    assert len(found) == NUMBER
    assert store.health().ok
    store.close()


def lacking(store: SQLiteStore) -> int:
    with store.read(HERE) as reader:
        return reader.count_missing_vectors()
