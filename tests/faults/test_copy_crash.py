"""A copy that is killed at any moment leaves no store that passes for whole, and goes on when it is run again."""

from __future__ import annotations

import random
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import stores
from dying import COPY, ran, steps_of
from foveate.errors import StoreError
from foveate.state.sqlite import SQLiteStore
from foveate.state.sqlite_files import standing_of
from foveate.testing.suite import HERE, add, made

RESTORE = """
from foveate.state.sqlite_files import restore

restore(sys.argv[2], sys.argv[3], replace=True)
print(ticks - left)
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    stores.fill(folder, notes=80)
    return folder / ".foveate" / "state.db"


def rows_of(path: Path) -> dict[str, Any] | None:
    """What a store holds; None where it is refused as unfinished."""
    if path.exists() and standing_of(path).unfinished:
        with pytest.raises(StoreError, match="not finished"):
            SQLiteStore(path)
        return None
    with closing(SQLiteStore(path)) as store:
        assert store.health().ok
        return stores.rows(store)


def test_a_copy_killed_at_random_moments_is_finished_by_running_it_again(source: Path, tmp_path: Path) -> None:
    rng, unfinished, wanted = random.Random(11), 0, rows_of(source)
    steps = steps_of(COPY, source, tmp_path / "whole.db")
    for round in range(4):
        target = tmp_path / f"{round}.db"
        most = steps
        while not (held := rows_of(target)) or not held["records"]:
            unfinished += held is None
            ran(COPY, rng.randint(steps // 10, most), source, target)
            most = 3 * steps  # to go on costs a comparison of what is there
        assert held == wanted, f"round {round}"
    assert unfinished


def test_a_store_that_is_being_replaced_is_never_seen_half_replaced(source: Path, tmp_path: Path) -> None:
    rng, target, wanted = random.Random(5), tmp_path / "target.db", rows_of(source)
    with closing(SQLiteStore(target)) as store, store.write(HERE) as writer:
        for n in range(300):
            writer.add(made(f"Something that was there before {n}"))
    shutil.copy(target, tmp_path / "another.db")
    steps, before = steps_of(COPY, source, tmp_path / "another.db", "--replace"), rows_of(target)
    refused = 0
    for most in (steps // 2, steps, steps, 9 * steps, 9 * steps):
        ran(COPY, rng.randint(most // 2, most), source, target, "--replace")
        held = rows_of(target)
        assert held in (before, wanted, None)
        refused += held is None
    assert held == wanted
    assert refused


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
