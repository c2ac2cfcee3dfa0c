"""A full disk, damaged pages, a read-only file system: only our own errors come out, and what can be read is."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from redteam_kit import foveate as command
from redteam_kit import mounted
from starlette.testclient import TestClient

import foveate
from foveate import Engine
from foveate.errors import Damaged, FoveateError, StoreError
from foveate.server.http.app import create_app

PAGE = 4096


def opened(folder: Path) -> Engine:
    return foveate.open(folder, personal=False, code=False)


def fill(folder: Path) -> None:
    """Write until not a byte more fits on the disk."""
    for size in (65_536, 1):
        with suppress(OSError), open(folder / f"filler-{size}", "wb", buffering=0) as file:
            while file.write(b"x" * size):
                pass


# --- a full disk -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_health_reports_a_full_disk(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "size=2m"), opened(tmp_path / "disk") as engine:
        for number in range(20):
            engine.add("fact", f"Tea number {number} is green")
        fill(tmp_path / "disk")
        health = engine.store.health()
        assert not health.ok
        assert "is full" in " ".join(health.problems)
        with TestClient(create_app(engine), base_url="http://127.0.0.1") as client:
            answer = client.get("/readyz", params={"full": True})
            assert (answer.status_code, answer.json()["ok"]) == (200, False)
        doctor = command(tmp_path / "disk", "doctor")
        assert doctor.returncode == 1
        assert "is full" in doctor.stdout
        assert "Traceback" not in doctor.stderr


# --- damaged pages ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("healthy")
    with opened(folder) as engine:
        for number in range(60):
            added = engine.add("fact", f"Tea number {number} is green {'word ' * (number % 30)}", subject=f"tea {number}")
            engine.edit(added.id, tags=["hot"])
        engine.context("Which tea is green?")
    return folder


def damage(healthy: Path, folder: Path, seed: int) -> list[str]:
    """Copy the store with changed bytes on some pages, and return the ids of its records."""
    with opened(healthy) as engine:
        ids = [hit.record.id for hit in engine.search("tea", limit=40)]
    shutil.copytree(healthy, folder, dirs_exist_ok=True)
    file = folder / ".foveate" / "state.db"
    content, choice = bytearray(file.read_bytes()), random.Random(seed)
    for _ in range(choice.choice((1, 3, 8))):
        start = choice.randrange(1, len(content) // PAGE) * PAGE
        if seed % 3 == 0:
            content[start : start + PAGE] = choice.randbytes(PAGE)
        elif seed % 3 == 1:
            content[start : start + PAGE] = bytes(PAGE)
        else:  # texts only: SQLite does not notice it
            for place in choice.choices(range(start, start + PAGE), k=300):
                if 32 <= content[place] < 127:
                    content[place] = choice.choice((0xFF, 0xC3, ord('"'), ord("{"), 0))
    file.write_bytes(content)
    return ids


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(45))
def test_damaged_pages_raise_no_foreign_error(healthy: Path, tmp_path: Path, seed: int) -> None:
    ids = damage(healthy, tmp_path / "store", seed)
    try:
        engine = opened(tmp_path / "store")
    except FoveateError:
        return
    operations: tuple[Callable[[], object], ...] = (
        lambda: list(engine.store.export_lines()),
        engine.store.health,
        lambda: engine.store.stats(),
        lambda: engine.context("Which tea is green?"),
        lambda: [engine.history(id) for id in ids],
        lambda: engine.receipts.list(),
        lambda: engine.add("fact", "Coffee is black"),
        lambda: engine.edit(ids[1], tags=["cold"]),
        lambda: engine.undo(ids[1]),
        lambda: engine.forget(ids[0]),
        lambda: engine.forget(*ids[2:]),
        engine.store.maintain,
        engine.close,
    )
    for operation in operations:
        with suppress(FoveateError):
            operation()


@pytest.mark.slow
def test_export_and_forget_say_what_to_do_about_damage(healthy: Path, tmp_path: Path) -> None:
    ids = damage(healthy, tmp_path, 2)
    file = tmp_path / ".foveate" / "state.db"
    file.write_bytes(file.read_bytes().replace(b"Tea number", b"Tea \xff\xffmber"))
    with opened(tmp_path) as engine:
        with pytest.raises(Damaged, match="foveate doctor --fix"):
            list(engine.store.export_lines())
        with pytest.raises(Damaged, match="foveate doctor --fix"):
            engine.forget(*ids)
        with TestClient(create_app(engine), base_url="http://127.0.0.1") as client:
            assert client.get("/v1/export").status_code == 503
    for words in (("store", "export"), ("forget", ids[0], "--yes")):
        result = command(tmp_path, *words)
        assert result.returncode == 1, result.stderr
        assert "foveate doctor --fix" in result.stderr
        assert "Traceback" not in result.stderr


# --- a file system that cannot be written ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("has_wal", [False, True])
def test_a_store_on_a_read_only_file_system_can_be_read_and_backed_up(tmp_path: Path, has_wal: bool) -> None:
    disk = tmp_path / "disk"
    with mounted(disk, "size=20m") as remount:
        with opened(disk) as engine:
            id = engine.add("fact", "Tea is green").id
            shutil.copytree(disk / ".foveate", tmp_path / "killed")  # as a killed process leaves it, with its WAL
        if has_wal:
            shutil.rmtree(disk / ".foveate")
            shutil.copytree(tmp_path / "killed", disk / ".foveate", ignore=shutil.ignore_patterns("*-shm"))
            assert (disk / ".foveate" / "state.db-wal").stat().st_size
        remount("ro")
        with opened(disk) as engine:
            assert engine.get(id).text == "Tea is green"
            assert "Tea is green" in engine.context("tea").text
            assert engine.store.health().ok
            engine.store.backup(tmp_path / "backup.db")
            for write in (lambda: engine.add("fact", "Coffee is black"), lambda: engine.forget(id), engine.store.maintain):
                with pytest.raises(StoreError, match="read-only"):
                    write()
        assert command(disk, "search", "tea").returncode == 0
        assert command(disk, "store", "backup", str(tmp_path / "second.db")).returncode == 0
        refused = command(disk, "add", "fact", "Coffee is black")
        assert refused.returncode == 1
        assert "read-only" in refused.stderr
        assert "Traceback" not in refused.stderr
    (tmp_path / "restored" / ".foveate").mkdir(parents=True, mode=0o700)
    shutil.copy(tmp_path / "backup.db", tmp_path / "restored" / ".foveate" / "state.db")
    with opened(tmp_path / "restored") as engine:
        assert engine.get(id).text == "Tea is green"
