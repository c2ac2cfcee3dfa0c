"""Waiting for changes: a root in, sets of changed paths out, for as long as somebody listens.

By looking again every now and then: no service of the system is needed, and it works on every file system. What is saved in
one burst (a checkout, a formatter) comes as one set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event
from time import monotonic

from foveate.code.walk import Walked, walk

SHARE = 10
"""A look may take a tenth of the time at most: in a huge repository the pauses grow."""

MAX_LOOKS = 10
"""After so many looks in a row that all found something new, what there is goes out: some tools never stop writing."""


def changes(
    root: Path,
    stop: Event,
    interval: float = 1.0,
    since: Walked | None = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
) -> Iterator[frozenset[str]]:
    """Paths that were added, changed or removed since the walk `since`, again and again, until `stop` is set or Ctrl-C."""
    try:
        known = _state(since or walk(root, include, exclude))
        changed: set[str] = set()
        looks = 0
        pause = interval
        while not stop.wait(pause):
            began = monotonic()
            now = _state(walk(root, include, exclude))
            pause = max(interval, SHARE * (monotonic() - began))
            new = _differing(known, now)
            known = now
            changed |= new
            looks = looks + 1 if new else 0
            if changed and (not new or looks >= MAX_LOOKS):
                yield frozenset(changed)
                changed.clear()
                looks = 0
    except KeyboardInterrupt:
        return


def _state(walked: Walked) -> dict[str, tuple[int, int]]:
    return {found.path: (found.mtime, found.size) for found in walked.files}


def _differing(before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]]) -> set[str]:
    return {path for path, _ in before.items() ^ after.items()}
