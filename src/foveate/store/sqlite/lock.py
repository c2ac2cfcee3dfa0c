"""A queue of the processes that wait for the write lock of one SQLite file.

SQLite's own busy timeout waits longer and longer, so the lock mostly goes to the process that has just released it. Here
every writer tries again soon, and one waiting writer at a time is next: it holds a second lock, on a separate file, until it
has SQLite's. `docs/decisions/025` has the measurements.

The queue only improves fairness; correctness comes from SQLite's lock. If the queue cannot be used (a read-only folder, a
system without `flock`, a stopped process at its head), a writer goes on to SQLite's lock without it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from random import random
from time import monotonic, sleep, time

try:
    from fcntl import LOCK_EX, LOCK_NB, flock
except ImportError:  # Windows
    flock = None  # type: ignore[assignment]

QUEUE_FILE_SUFFIX = "-line"
"""Appended to the store's path. The file is empty; `claim_interval` uses the time at which it was last changed."""

MIN_RETRY_S, MAX_RETRY_S = 0.001, 0.02
"""Delay between two attempts. SQLite's own delays grow to a tenth of a second, in which others write a dozen times."""

MAX_QUEUE_MS = 2000
"""Longest wait in the queue. A process at its head may have been stopped, while SQLite's lock is free."""


class BusyHandler:
    """SQLite's busy handler: wait a little after each failed attempt, until the timeout has passed in all."""

    __slots__ = ("_deadline", "_timeout_s")

    def __init__(self, timeout_ms: int) -> None:
        self._timeout_s = timeout_ms / 1000
        self._deadline = 0.0

    def __call__(self, attempts: int) -> bool:
        """Return whether to try again. SQLite counts the attempts from 0 for each statement."""
        now = monotonic()
        if not attempts:
            self._deadline = now + self._timeout_s
        if now >= self._deadline:
            return False
        # At random, because writers that began together would otherwise collide at every attempt.
        sleep(min(MIN_RETRY_S * (1 + attempts / 2), MAX_RETRY_S) * (0.5 + random()))
        return True


@contextmanager
def wait_in_queue(path: str, timeout_ms: int) -> Iterator[None]:
    """Hold the head of the queue for a file while the block runs. Enter the block without it if it takes too long."""
    queue_file = -1
    if flock is not None:
        with suppress(OSError):
            # O_NOFOLLOW: in a folder that others can write to, the name may be a link to another file.
            queue_file = os.open(path + QUEUE_FILE_SUFFIX, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        if queue_file >= 0:
            _wait_for_head(queue_file, BusyHandler(min(timeout_ms, MAX_QUEUE_MS)))
        yield
    finally:
        if queue_file >= 0:
            os.close(queue_file)  # this releases the lock


def _wait_for_head(queue_file: int, busy_handler: BusyHandler) -> None:
    attempts = 0
    with suppress(OSError):  # some network file systems have no locks
        while True:
            try:
                flock(queue_file, LOCK_EX | LOCK_NB)
                break
            except BlockingIOError:
                if not busy_handler(attempts):
                    break
                attempts += 1


def claim_interval(path: str, seconds: float) -> bool:
    """Claim a periodic job on a file. Return False if any process has claimed it within the last `seconds`."""
    queue_file = path + QUEUE_FILE_SUFFIX
    try:
        if abs(time() - os.path.getmtime(queue_file)) < seconds:
            return False
        os.utime(queue_file, follow_symlinks=False)
    except OSError:
        pass  # without a queue file nothing can be coordinated, so every process does the job
    return True
