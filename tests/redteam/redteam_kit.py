"""What the tests of attacks share: a repository, and a command line as its own process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

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


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[Callable[[str], None]]:
    """Mount a file system of its own at a folder, and yield a function that mounts it anew with other options."""

    def mount(options: str) -> None:
        result = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, text=True, check=False
        )
        if result.returncode:
            pytest.skip(f"may not mount a file system: {result.stderr.strip()}")

    folder.mkdir()
    if shutil.which("mount") is None or sys.platform != "linux":
        pytest.skip("mounts a file system, as Linux does")
    mount(options)
    try:
        yield lambda options: mount(f"remount,{options}")
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
