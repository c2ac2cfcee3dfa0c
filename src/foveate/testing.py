"""Tools for the tests of programs that use foveate: an engine in memory, a fixed clock and predictable ids.

    from foveate.testing import engine

    memory = engine()
    memory.add("fact", "Deploys happen on Tuesdays")        # fact_0001, at a known time
    coding = engine(files={"src/cart.py": "def add(): ..."})  # with code to search

Nothing is mocked: `engine()` is the real engine on a SQLite database in memory. The same test gives the same ids, times and
bytes in every process.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Unpack

from foveate import factory
from foveate.clock import Clock, Ids, millis
from foveate.engine import Engine
from foveate.factory import OpenOptions
from foveate.project.locate import DIR_NAME
from foveate.text.embed import Embedder, open_embedder

__all__ = ["START", "FixedClock", "counting_ids", "embedder", "engine"]

START = "2026-01-05T09:00:00Z"
"""The default start time of a test: a Monday morning."""

EMBEDDING_DIMENSIONS = 64
"""Enough to tell a dozen texts apart."""


class FixedClock:
    """A clock that moves only through `tick`, or by `step` milliseconds after every reading."""

    def __init__(self, start: int | str | datetime = START, *, step: int = 0) -> None:
        self.now = millis(start)
        self.step = step

    def __call__(self) -> int:
        now = self.now
        self.now += self.step
        return now

    def tick(self, by: int | timedelta = 1) -> int:
        """Move the clock forward by milliseconds or a timedelta, and return the new time."""
        self.now += by if isinstance(by, int) else round(by.total_seconds() * 1000)
        return self.now


def counting_ids() -> Ids:
    """Return an id generator that counts by kind: `fact_0001`, `fact_0002`, `note_0001`."""
    counts: Counter[str] = Counter()

    def next_id(kind: str, at: int) -> str:
        counts[kind] += 1
        return f"{kind}_{counts[kind]:04d}"

    return next_id


def embedder(dim: int = EMBEDDING_DIMENSIONS) -> Embedder:
    """Return a deterministic embedder. It hashes words and letters, needs no model and knows no meaning."""
    return open_embedder(f"hash:{dim}")


def engine(
    path: str | Path = ":memory:",
    *,
    files: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    ids: Ids | None = None,
    secret: str | None = "for tests",
    **options: Unpack[OpenOptions],
) -> Engine:
    """Return an engine for one test. It takes the options of `foveate.open`; the clock and the ids are fixed by default.

    Counted ids begin anew with each engine: a test that opens a store twice passes `ids=foveate.clock.new_id`.

    `files` maps paths to contents. They become the project that the engine reads, so `.foveate/config.toml` may be one of
    them. Without a `path`, the project lies in a temporary folder, `engine.code.root`, which is deleted with the engine.
    """
    options.setdefault("personal", False)
    environment = factory.Environment(clock or FixedClock(), ids or counting_ids(), secret)
    if files is None:
        return factory.open(path, **options, _environment=environment)
    temporary = tempfile.mkdtemp(prefix="foveate-") if str(path) == ":memory:" else None
    # The folder's name is the project's name and can appear in a context, so it must not be random.
    root = Path(temporary, "project") if temporary else Path(path)
    _write_files(files, root)
    options.setdefault("code", True)
    opened = factory.open(root, **options, _environment=environment)
    if temporary:
        weakref.finalize(opened, shutil.rmtree, temporary, ignore_errors=True)
    return opened


def _write_files(files: Mapping[str, str], root: Path) -> None:
    # With its own .foveate/ folder the project is found here, even if a parent folder is a project too.
    (root / DIR_NAME).mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
