"""The SQLite store passes the conformance suite, in a file and in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from conformance import StoreConformance
from foveate.store.protocol import Store
from foveate.store.sqlite.store import SQLiteStore


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
