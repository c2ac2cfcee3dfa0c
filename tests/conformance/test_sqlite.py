"""The SQLite store keeps the contract, in a file and in memory."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

for part in ("suite", "suite_writing", "suite_scope", "suite_search", "suite_whole"):
    if f"foveate.testing.{part}" not in sys.modules:  # another test file may have been quicker
        pytest.register_assert_rewrite(f"foveate.testing.{part}")

from foveate.store.protocol import Store  # noqa: E402
from foveate.store.sqlite.store import SQLiteStore  # noqa: E402
from foveate.testing.conformance import StoreConformance  # noqa: E402


class TestFile(StoreConformance):
    def open_store(self, tmp_path: Path, **options: Any) -> Store:
        return SQLiteStore(tmp_path / "state.db", **options)

    def open_backup(self, path: Path) -> Store:
        return SQLiteStore(path, create=False)


class TestMemory(StoreConformance):
    several_handles = False

    def open_store(self, tmp_path: Path, **options: Any) -> Store:
        return SQLiteStore(":memory:", **options)

    def open_backup(self, path: Path) -> Store:
        return SQLiteStore(path, create=False)
