"""Turns: how the writers of one file wait for each other, so that none of them starves.

Comes in: the file's path and how long somebody is ready to wait. Goes out: short waits, and a place in line, held while it
waits for SQLite's lock. SQLite's own waits grow long, so that its lock mostly goes to the one that has just let go of it.
Here everybody tries again soon, and the next in line holds a second lock, of its own file, until it has the first.

It is manners, not safety. Where there is no line to stand in (a folder that cannot be written, a system without `flock`, a
process that was stopped at its head), a writer goes on to SQLite's lock, which decides alone.
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

LINE = "-line"
"""What the file of the line is called, after that of the store. It is empty; when it was touched, it tells of `due`."""

SOONEST, LATEST = 0.001, 0.02
"""Seconds between two tries. SQLite's own waits grow to a tenth of a second, in which others write a dozen times."""

LONGEST = 2000
"""Milliseconds in line. Who stands at its head may have been stopped there, and SQLite's lock be free."""


class Waiting:
    """Asked after each try whether to try again; waits a little first, and no longer than the limit in all."""

    __slots__ = ("_limit", "_until")

    def __init__(self, milliseconds: int) -> None:
        self._limit = milliseconds / 1000
        self._until = 0.0

    def __call__(self, tries: int) -> bool:
        now = monotonic()
        if not tries:
            self._until = now + self._limit
        if now >= self._until:
            return False
        sleep(min(SOONEST * (1 + tries / 2), LATEST) * (0.5 + random()))  # apart from the others, who began together
        return True


@contextmanager
def in_line(path: str, milliseconds: int) -> Iterator[None]:
    """A place at the head of the line for a file, or none where it cannot be had in time."""
    try:
        line = (
            os.open(path + LINE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644) if flock is not None else -1
        )
    except OSError:
        line = -1
    try:
        if line >= 0:
            _stand(line, Waiting(min(milliseconds, LONGEST)))
        yield
    finally:
        if line >= 0:
            os.close(line)  # the lock goes with it


def _stand(line: int, waiting: Waiting) -> None:
    tries = 0
    with suppress(OSError):  # a file system without locks
        while True:
            try:
                flock(line, LOCK_EX | LOCK_NB)
                break
            except BlockingIOError:
                if not waiting(tries):
                    break
                tries += 1


def due(path: str, seconds: float) -> bool:
    """Whether no process of them all has asked this for some seconds; who asks and hears yes has its turn at it."""
    line = path + LINE
    try:
        if abs(time() - os.path.getmtime(line)) < seconds:
            return False
        os.utime(line, follow_symlinks=False)
    except OSError:  # no line, no turns
        pass
    return True
