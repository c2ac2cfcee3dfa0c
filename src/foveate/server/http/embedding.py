"""Vectors for records that have none, made while the service runs: a few at a time, beside the requests.

It looks at every project of the store. Where another process does the same, each begins at another place.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from random import random
from threading import Event, Thread
from time import monotonic

from foveate.clock import iso, now
from foveate.engine import Engine
from foveate.memory.backfill import embed_missing
from foveate.server.http.metrics import Metrics

BATCH = 32
"""Records at once: a model in this process keeps requests waiting no longer than that."""

REST = 4.0
"""Rest after a batch, in times of what it took: a fifth of one core at most."""

IDLE = 15.0
"""Seconds until it looks again for records that were written without a vector."""

AFTER_TROUBLE = 60.0
"""Seconds until an embedder that did not answer is asked again."""

PATIENCE = 5.0
"""Seconds to wait for its end. A batch that takes longer is lost, and made again later."""


@contextmanager
def embedding(engine: Engine, metrics: Metrics, stopping: Event) -> Iterator[None]:
    """Have it done in the background, where an embedder is set."""
    worker = Thread(target=_work, args=(engine, metrics, stopping), name="foveate-embedding", daemon=True)
    if engine.store.data.embedder is not None:
        worker.start()
    try:
        yield
    finally:
        stopping.set()
        if engine.store.data.embedder is not None:
            worker.join(PATIENCE)


def _work(engine: Engine, metrics: Metrics, stopping: Event) -> None:
    while not stopping.is_set():
        try:
            whole = _round(engine, metrics, stopping)
        except Exception as error:  # whatever happens to one round, the next may succeed
            if not stopping.is_set():
                _log(f"{type(error).__name__}: {error}")
            whole = False
        stopping.wait(IDLE if whole else AFTER_TROUBLE)


def _round(engine: Engine, metrics: Metrics, stopping: Event) -> bool:
    """Once through all projects; whether the embedder answered."""
    began, counted = monotonic(), 0

    def rest(done: int, total: int) -> None:
        nonlocal began, counted
        metrics.vectors_made.inc(done - counted)
        metrics.vectors_lacking.set(total - done)
        stopping.wait(REST * (monotonic() - began))
        began, counted = monotonic(), done

    found = embed_missing(
        engine.store.data, batch=BATCH, all_projects=True, start=random(), progress=rest, should_stop=stopping.is_set
    )
    metrics.vectors_lacking.set(found.remaining)
    if found.error:
        metrics.embedder_failures.inc()
        _log(f"The embedder does not answer: {found.error}")
    return not found.error


def _log(message: str) -> None:
    logging.getLogger("foveate.http").warning(json.dumps({"at": iso(now()), "message": message}))
