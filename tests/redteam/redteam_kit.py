"""What the tests of attacks share: a repository, and a command line as its own process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"


def git(folder: Path, *words: str) -> None:
    settings = ("user.name=A", "user.email=a@example.org", "commit.gpgsign=false")
    given = [part for setting in settings for part in ("-c", setting)]
    subprocess.run(["git", *given, *words], cwd=folder, check=True, capture_output=True)


def clone_with(folder: Path, files: dict[str, str]) -> Path:
    """Make a repository that tracks files in `.foveate/`, as a clone of a hostile one would have them."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q")
    for name, content in files.items():
        path = folder / ".foveate" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, "utf-8")
    if (folder / ".foveate").exists():
        git(folder, "add", "-f", ".foveate")
    return folder


def foveate(folder: Path, *words: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "foveate", *words],
        cwd=folder,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(SOURCE), **environment},
    )


def until(condition: Callable[[], bool], seconds: float = 120.0) -> None:
    """Wait for something that happens in another thread or process."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)
