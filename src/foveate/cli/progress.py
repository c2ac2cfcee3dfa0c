"""How far some work is, for somebody who watches: a bar with rich, else a line that counts. On stderr, a terminal only."""

from __future__ import annotations

import os
import sys
from time import monotonic
from typing import Any

DRAW_AFTER_S = 0.3
"""Seconds of work before anything is drawn: what takes less is nobody's concern."""

DRAW_INTERVAL_S = 0.1
"""Seconds between two drawings."""


class Bar:
    """Told `(done, total)`, it draws; at the end it leaves the line empty. `doing` and `unit` may change on the way."""

    def __init__(self, doing: str = "indexing", unit: str = "files") -> None:
        self.doing, self.unit = doing, unit
        self._began = self._drawn = 0.0
        self._rich: Any = None
        self._shown = False

    def __call__(self, done: int, total: int) -> None:
        now = monotonic()
        self._began = self._began or now
        if done >= total:
            self.close()
        elif now - self._began > DRAW_AFTER_S and now - self._drawn > DRAW_INTERVAL_S and os.environ.get("TERM") != "dumb":
            self._drawn = now
            self._draw(done, total)

    def close(self) -> None:
        """Take it off the screen."""
        if self._rich is not None:
            self._rich.stop()
        elif self._shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
        self._began, self._rich, self._shown = 0.0, None, False

    def _draw(self, done: int, total: int) -> None:
        if not self._shown:
            self._shown = True
            self._rich = _started(total)
        if self._rich is not None:
            words = {"doing": self.doing, "unit": self.unit}
            self._rich.update(self._rich.task_ids[0], completed=done, total=total, **words)
        else:
            line = f"foveate: {self.doing} {done:,} of {total:,} {self.unit}"
            print(f"\r{line}\033[K", end="", file=sys.stderr, flush=True)


def _started(total: int) -> Any:
    """rich's bar, or None where the extra is not installed."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    except ImportError:
        return None
    doing, unit = TextColumn("foveate: {task.fields[doing]}"), TextColumn("{task.fields[unit]}")
    progress = Progress(doing, BarColumn(), MofNCompleteColumn(), unit, console=Console(stderr=True), transient=True)
    progress.add_task("", total=total, doing="", unit="")
    progress.start()
    return progress
