"""Background work of the service: vectors for records that have none, and deletion of expired records and receipts."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from random import random
from threading import Event, Thread
from time import monotonic

import anyio
import anyio.to_thread

from foveate.clock import iso, now
from foveate.engine import Engine
from foveate.errors import StoreError
from foveate.memory.backfill import embed_missing
from foveate.server.http.metrics import Metrics

BATCH_SIZE = 32
"""Records that are embedded at once. A model in this process delays requests for no longer than that."""

REST_FACTOR = 4.0
"""Pause after a batch, in multiples of its duration: embedding takes a fifth of one core at most."""

IDLE_INTERVAL_S = 15.0
"""Time between two searches for records without a vector."""

RETRY_AFTER_ERROR_S = 60.0
"""Time until an embedder that failed is called again."""

SHUTDOWN_TIMEOUT_S = 5.0
"""How long the end of the service waits for a batch. A batch that takes longer is done again later."""

RETENTION_INTERVAL_S, RETENTION_PAUSE_S = 600.0, 0.25
"""Time between two deletions of expired records, and between two batches of one: requests come first."""


@contextmanager
def embedding_worker(engine: Engine, metrics: Metrics, stopping: Event) -> Iterator[None]:
    """Embed records of every project in a thread while the block runs, if an embedder is configured."""
    if engine.store.data.embedder is None:
        yield
        return
    # A daemon: a model that hangs in a batch must not keep the process alive after the shutdown.
    worker = Thread(target=_run_worker, args=(engine, metrics, stopping), name="foveate-embedding", daemon=True)
    worker.start()
    try:
        yield
    finally:
        stopping.set()
        worker.join(SHUTDOWN_TIMEOUT_S)


def _run_worker(engine: Engine, metrics: Metrics, stopping: Event) -> None:
    while not stopping.is_set():
        try:
            succeeded = _embed_round(engine, metrics, stopping)
        except Exception as error:  # a later round may succeed
            if not stopping.is_set():
                _warn(f"{type(error).__name__}: {error}")
            succeeded = False
        stopping.wait(IDLE_INTERVAL_S if succeeded else RETRY_AFTER_ERROR_S)


def _embed_round(engine: Engine, metrics: Metrics, stopping: Event) -> bool:
    """Embed what has no vector and return whether the embedder answered.

    The round begins at a random project, because other processes may do the same work.
    """
    began, counted = monotonic(), 0

    def pause(done: int, total: int) -> None:
        nonlocal began, counted
        metrics.vectors_made.inc(done - counted)
        metrics.vectors_lacking.set(total - done)
        stopping.wait(REST_FACTOR * (monotonic() - began))
        began, counted = monotonic(), done

    result = embed_missing(
        engine.store.data, batch=BATCH_SIZE, all_projects=True, start=random(), progress=pause, should_stop=stopping.is_set
    )
    metrics.vectors_lacking.set(result.remaining)
    if result.error:
        metrics.embedder_failures.inc()
        _warn(f"The embedder does not answer: {result.error}")
    return not result.error


def _warn(message: str) -> None:
    logging.getLogger("foveate.http").warning(json.dumps({"at": iso(now()), "message": message}))


async def run_retention(engine: Engine, stopping: Event, limiter: anyio.CapacityLimiter) -> None:
    """Delete expired records and receipts from time to time, until the task is cancelled."""
    while True:
        await anyio.sleep(RETENTION_INTERVAL_S)
        with suppress(StoreError):  # another process is writing; the next round deletes the same
            pause = partial(stopping.wait, RETENTION_PAUSE_S)
            await anyio.to_thread.run_sync(engine.store.drop_expired, pause, limiter=limiter)
