"""For the tests of whoever uses foveate: an engine in memory, a clock that stands still, ids that count.

    from foveate.testing import engine

    memory = engine()
    memory.add("fact", "Deploys happen on Tuesdays")        # fact_0001, at a known time
    coding = engine(files={"src/cart.py": "def add(): ..."})  # with code to look at

Nothing is mocked: it is the real engine on a real SQLite, which leaves nothing behind. The same test gives the same ids,
times and bytes in every process. `foveate.testing.conformance` proves a store of one's own; it is the one part that
belongs to pytest, and is imported by name only.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from foveate.clock import Ids, millis
from foveate.engine import Engine
from foveate.factory import open_engine
from foveate.project.project import FOLDER
from foveate.text.embed import Embedder, open_embedder

__all__ = ["START", "FixedClock", "counting_ids", "embedder", "engine"]

START = "2026-01-05T09:00:00Z"
"""When a test begins unless it says otherwise: a Monday morning."""

DIM = 64
"""Dimensions of the test embedder: enough to tell a dozen texts apart."""


class FixedClock:
    """A clock that moves only when it is told to, or by `step` milliseconds after every look at it."""

    def __init__(self, start: int | str | datetime = START, *, step: int = 0) -> None:
        self.now = millis(start)
        self.step = step

    def __call__(self) -> int:
        now = self.now
        self.now += self.step
        return now

    def tick(self, by: int | timedelta = 1) -> int:
        """Move on, by milliseconds or a timedelta; the new time."""
        self.now += by if isinstance(by, int) else round(by.total_seconds() * 1000)
        return self.now


def counting_ids() -> Ids:
    """Ids that count by kind: `fact_0001`, `fact_0002`, `note_0001`."""
    seen: Counter[str] = Counter()

    def next_id(kind: str, at: int) -> str:
        seen[kind] += 1
        return f"{kind}_{seen[kind]:04d}"

    return next_id


def embedder(dim: int = DIM) -> Embedder:
    """The deterministic embedder: it hashes words and letters, needs no model and knows no meaning."""
    return open_embedder(f"hash:{dim}")


def engine(path: str | Path = ":memory:", *, files: Mapping[str, str] | None = None, **options: Any) -> Engine:
    """An engine for one test. Options are those of `foveate.open`; clock and ids are fixed unless they are given.

    `files`: a small tree of files by path, which becomes the project that the engine looks at. Without a path of your
    own it stands in a temporary folder, `engine.code.root`, which goes with the engine. `.foveate/config.toml` may be
    one of them.
    """
    options.setdefault("clock", FixedClock())
    options.setdefault("ids", counting_ids())
    options.setdefault("own", False)
    options.setdefault("secret", "for tests")
    if files is None:
        return open_engine(path, **options)
    temporary = tempfile.mkdtemp(prefix="foveate-") if str(path) == ":memory:" else None
    root = Path(temporary, "project") if temporary else Path(path)  # its name may be in a context
    _written(files, root)
    made = open_engine(root, **{"code": True, **options})
    if temporary:
        weakref.finalize(made, shutil.rmtree, temporary, ignore_errors=True)
    return made


def _written(files: Mapping[str, str], root: Path) -> None:
    (root / FOLDER).mkdir(parents=True, exist_ok=True)  # the project is here, whatever stands above
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
