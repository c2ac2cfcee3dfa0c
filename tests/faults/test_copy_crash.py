"""A copy or restore that is killed at any moment leaves either the old store or the new one, complete."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import stores
from conformance.base import HERE, add, made
from dying import COPY, ran, steps_of
from foveate.store.sqlite.files import restore
from foveate.store.sqlite.store import SQLiteStore

RESTORE = """
from foveate.store.sqlite.files import restore

restore(sys.argv[2], sys.argv[3], replace=True)
print(ticks - left)
"""


RESTORE_BY_LINES = """
import os, shutil, signal, sys
from foveate.store.sqlite.files import restore

backup, old, folder = sys.argv[1:]

def restore_until(line, path):
    left = line

    def traced(frame, event, argument):
        nonlocal left
        code = frame.f_code
        if not code.co_filename.endswith("sqlite/files.py") and code.co_qualname != "SQLiteStore.backup":
            return None
        if event == "line":
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return traced

    sys.settrace(traced)
    restore(backup, path, replace=True)
    os._exit(0)

restore(backup, old + ".first")  # what is imported on the way is not imported again by every child
line, status = 0, signal.SIGKILL
while status == signal.SIGKILL:
    line += 1
    path = os.path.join(folder, str(line), "state.db")
    os.mkdir(os.path.dirname(path))
    for log in ("", "-wal"):
        if os.path.exists(old + log):
            shutil.copy(old + log, path + log)
    child = os.fork()
    if child == 0:
        restore_until(line, path)
    status = os.waitpid(child, 0)[1]
sys.exit(status)
"""
"""Restores a backup over copies of a store, each in a folder of its own, and is killed at the first line of the way, then at
the second, until one restore gets to its end."""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    stores.fill(folder, notes=80)
    return folder / ".foveate" / "state.db"


def rows_of(path: Path) -> dict[str, Any]:
    """Return the rows of a store."""
    with closing(SQLiteStore(path)) as store:
        assert store.health().ok
        return stores.rows(store)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Return a store whose last writer was killed, so that some rows are in the WAL only."""
    with closing(SQLiteStore(tmp_path / "live.db")) as live:
        add(live, "Something newer than the backup")
        for log in ("", "-wal"):
            shutil.copy(f"{live.path}{log}", f"{tmp_path / 'old.db'}{log}")
    return tmp_path / "old.db"


@pytest.fixture
def backup(source: Path, tmp_path: Path) -> Path:
    with closing(SQLiteStore(source)) as store:
        store.backup(tmp_path / "backup.db")
    return tmp_path / "backup.db"


def killed_at_each_line(backup: Path, old: Path, folder: Path) -> list[Path]:
    """Return the stores that a restore should replace, one for each line at which it was killed. The last one was not."""
    folder.mkdir()
    command = [sys.executable, "-c", RESTORE_BY_LINES, str(backup), str(old), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return [folder / str(line) / "state.db" for line in range(1, len(list(folder.iterdir())) + 1)]


@pytest.mark.parametrize("held", [0, 300])
def test_a_copy_killed_at_random_moments_changes_nothing_and_can_be_run_again(
    source: Path, tmp_path: Path, held: int
) -> None:
    rng, target, wanted = random.Random(11), tmp_path / "target.db", rows_of(source)
    with closing(SQLiteStore(target)) as store, store.write(HERE) as writer:
        for n in range(held):
            writer.add(made(f"Something that was there before {n}"))
    before = rows_of(target)
    shutil.copy(target, tmp_path / "another.db")
    steps = steps_of(COPY, source, tmp_path / "another.db", "--replace")
    for part in range(8):
        done = ran(COPY, rng.randint(steps * part // 8, steps * (part + 1) // 8) + 1, source, target, "--replace")
        assert rows_of(target) == (wanted if done else before) or part == 7, f"part {part}"
    assert rows_of(target) in (before, wanted)
    steps_of(COPY, source, target, "--replace")
    assert rows_of(target) == wanted


def test_a_restore_killed_at_random_moments_leaves_the_old_store_or_the_backup(source: Path, tmp_path: Path) -> None:
    rng, target, backup = random.Random(3), tmp_path / "target.db", tmp_path / "backup.db"
    with closing(SQLiteStore(source)) as left:
        left.backup(backup)
        wanted = stores.rows(left)
    steps = steps_of(RESTORE, backup, target)
    for round in range(8):
        with closing(SQLiteStore(target)) as live:
            add(live, "Something newer than the backup")
            before = stores.rows(live)
        done = ran(RESTORE, rng.randint(steps // 4, steps * 2), backup, target)
        assert rows_of(target) in ((wanted,) if done else (before, wanted)), f"round {round}"


def test_a_restore_killed_at_any_line_leaves_the_old_store_or_the_backup(backup: Path, old: Path, tmp_path: Path) -> None:
    stores_left = killed_at_each_line(backup, old, tmp_path / "killed")
    before, wanted = rows_of(old), rows_of(backup)
    held = [rows_of(path) for path in stores_left]
    new = held.index(wanted)
    assert held == [before] * new + [wanted] * (len(held) - new)
    assert new > 20, "it can be killed at many lines before the store is replaced"
    for path in stores_left[new:]:
        assert rows_of(path.with_name("state.db.replaced")) == before


def test_a_restore_over_a_damaged_store_killed_at_any_line_loses_nothing(backup: Path, tmp_path: Path) -> None:
    old, wanted = tmp_path / "old.db", rows_of(backup)
    damaged = b"\x00" * 100 + backup.read_bytes()[100:]
    old.write_bytes(damaged)
    stores_left = killed_at_each_line(backup, old, tmp_path / "killed")
    new = next(n for n, path in enumerate(stores_left) if path.read_bytes() != damaged)
    for path in stores_left[:new]:
        restore(backup, path, replace=True)
    for path in stores_left:
        assert rows_of(path) == wanted
        assert path.with_name("state.db.replaced").read_bytes() == damaged
