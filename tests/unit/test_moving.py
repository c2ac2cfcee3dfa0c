"""Copies, backups and restores of SQLite stores keep every row, also while other processes write."""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import FrameType
from typing import Any

import apsw
import pytest

import stores
from conformance.base import HERE, add, change, found, get, keep, made
from foveate.errors import Conflict, Damaged, StoreError
from foveate.store import copy as store_copy
from foveate.store.copy import TABLE_KEYS, copy_store
from foveate.store.sql import queries
from foveate.store.sqlite import connections
from foveate.store.sqlite import files as sqlite_files
from foveate.store.sqlite.files import read_schema_status, restore
from foveate.store.sqlite.store import SQLiteStore
from foveate.types import Link, Scope


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store with rows in every table. Tests must not write to it."""
    folder = tmp_path_factory.mktemp("full")
    stores.fill(folder)
    return folder / ".foveate" / "state.db"


@pytest.fixture
def source(full: Path, tmp_path: Path) -> Iterator[SQLiteStore]:
    path = tmp_path / "source.db"
    shutil.copy(full, path)
    with closing(SQLiteStore(path)) as store:
        yield store


def test_a_copy_has_every_row_and_the_same_search_results(source: SQLiteStore, tmp_path: Path) -> None:
    with closing(SQLiteStore(tmp_path / "copy.db")) as there:
        done = copy_store(source, there)
        assert min(moved.rows for moved in done.values()) > 0, "the sample has something in every table"
        assert {name: moved.rows for name, moved in done.items()} == {
            name: len(r) for name, r in stores.rows(source).items()
        }
        assert stores.rows(there) == stores.rows(source)
    with closing(SQLiteStore(tmp_path / "copy.db")) as there:
        assert there.health().ok
        assert there.counter == source.counter
        assert stores.answers(there) == stores.answers(source)
        with source.read(HERE) as here, there.read(HERE) as reader:
            assert (reader.secret, reader.revision) == (here.secret, here.revision)


def test_every_table_is_copied(source: SQLiteStore) -> None:
    with closing(apsw.Connection(source.path)) as connection:
        names = connection.execute("select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'")
        assert {name for (name,) in names} == {*TABLE_KEYS, "meta"}


@pytest.mark.parametrize("page", [1, 7, 5000])
def test_copying_again_makes_the_target_the_same(
    source: SQLiteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    monkeypatch.setattr(store_copy, "PAGE_ROWS", page)
    main = Scope("main")
    with closing(SQLiteStore(tmp_path / "copy.db")) as there:
        copy_store(source, there)
        source.forget(main, ["note_0005"])
        add(source, "It has the key of another now", scope=main, key="k3", id="note_0000")
        change(source, get(source, "note_0007", main) or made(""), "Other words")
        with there.write(main) as writer:
            strange = writer.add(made("Only in the copy", scope=main, id="zzz_1")).record
        with pytest.raises(Conflict, match="Pass --yes to replace them"):
            copy_store(source, there)
        assert get(there, strange.id, main) == strange
        copy_store(source, there, replace=True)
        assert stores.rows(there) == stores.rows(source)
        assert there.health().ok or "forgotten" in there.health().problems[0]


def test_bytes_of_replaced_rows_are_removed_when_the_target_is_next_opened(source: SQLiteStore, tmp_path: Path) -> None:
    path = tmp_path / "copy.db"
    with closing(SQLiteStore(path)) as there:
        add(there, "Quixotic marmalade")
        copy_store(source, there, replace=True)
    with closing(SQLiteStore(path)) as there:
        assert there.health().ok
    assert not any(b"marmalade" in file.read_bytes() for file in tmp_path.glob("copy.db*"))


def test_revisions_rise_above_those_that_a_process_may_have_cached(source: SQLiteStore, tmp_path: Path) -> None:
    with closing(SQLiteStore(tmp_path / "copy.db")) as there:
        for n in range(60):
            add(there, f"Busy {n}", scope=Scope("main"))
        with there.read(Scope("main")) as reader:
            known = int(reader.revision)
        copy_store(source, there, replace=True)
        with there.read(Scope("main")) as reader:
            assert int(reader.revision) > known


def test_a_write_to_the_source_during_a_copy_is_copied_completely_or_not_at_all(
    source: SQLiteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_copy, "PAGE_ROWS", 10)
    stop, n = threading.Event(), 0

    def write() -> None:
        nonlocal n
        while not stop.is_set():
            n += 1
            with source.write(HERE) as writer:
                pair = [writer.add(made(f"Pair {n} {side}")).record.id for side in ("left", "right")]
                writer.link(Link(pair[0], "beside", pair[1]))

    thread = threading.Thread(target=write)
    thread.start()
    try:
        with closing(SQLiteStore(tmp_path / "copy.db")) as there:
            for replace in (False, True):
                copy_store(source, there, replace=replace)
                with there.read(HERE) as reader:
                    assert len(list(reader.records())) == 2 * len(list(reader.all_links()))
                assert there.health().ok or replace
    finally:
        stop.set()
        thread.join()
    assert n > 1


# --- restore -------------------------------------------------------------------------------------------------------


@pytest.fixture
def backup(source: SQLiteStore, tmp_path: Path) -> Path:
    source.backup(tmp_path / "backup.db")
    return tmp_path / "backup.db"


def test_open_programs_see_a_restored_backup_at_once(source: SQLiteStore, backup: Path, tmp_path: Path) -> None:
    before = stores.rows(source)
    keep(source, *(made(f"Written since {n}", scope=Scope("main")) for n in range(5)))
    with source.read(Scope("main")) as reader:
        revision, held = int(reader.revision), len(list(reader.records()))
        kept = restore(backup, source.path, replace=True)
        assert len(list(reader.records())) == held
    assert stores.rows(source) == before
    with source.read(Scope("main")) as reader:
        assert int(reader.revision) > revision
    add(source, "Life goes on", scope=Scope("main"))
    assert found(source, "life goes on", scope=Scope("main"))
    assert source.health().ok
    assert kept is not None
    with closing(SQLiteStore(kept)) as replaced, replaced.read(Scope("main")) as reader:
        assert len(list(reader.records())) == held
    assert sorted(path.name for path in tmp_path.iterdir() if "restoring" in path.name) == []


ASKED = [1.0, *[0.0] * 49]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["restore", "copy"])
def test_cached_vectors_are_replaced_by_those_of_the_copy(tmp_path: Path, way: str) -> None:
    def filled(path: Path, number: int, turned: int) -> SQLiteStore:
        store = SQLiteStore(path, embedding_namespace="s")
        with store.write(HERE) as writer:
            for n in range(number):
                vector = [float((n + turned) % 50 == axis) for axis in range(50)]
                writer.add(made(f"Record {n}", id=f"note_{n}"), vector)
        return store

    def nearest(store: SQLiteStore) -> list[str]:
        return found(store, "nothing", limit=3, vector=ASKED)

    for number, others in ((600, 600), (600, 900), (900, 600)):
        folder = tmp_path / f"{number}-{others}"
        folder.mkdir()
        with (
            closing(filled(folder / "open.db", number, 0)) as live,
            closing(filled(folder / "other.db", others, 1)) as other,
        ):
            assert "note_0" in nearest(live)
            if way == "copy":
                copy_store(other, live, replace=True)
            else:
                other.backup(folder / "backup.db")
                restore(folder / "backup.db", live.path, replace=True)
            assert nearest(live) == nearest(other)
            with live.write(HERE) as writer:
                kept = writer.add(made("One more"), ASKED).record
            assert kept.id in found(live, "nothing", limit=99, vector=ASKED)


def test_a_store_with_records_is_restored_over_only_with_replace(source: SQLiteStore, backup: Path) -> None:
    before = stores.rows(source)
    with pytest.raises(Conflict, match="Pass --yes to replace them"):
        restore(backup, source.path)
    assert stores.rows(source) == before


def test_a_backup_can_be_restored_to_a_new_path(backup: Path, source: SQLiteStore, tmp_path: Path) -> None:
    assert restore(backup, tmp_path / "new.db") is None
    with closing(SQLiteStore(tmp_path / "new.db")) as store:
        assert stores.answers(store) == stores.answers(source)


def spoiled(sort: str, path: Path) -> tuple[type[Exception], str]:
    if sort == "damaged":
        with path.open("r+b") as file:
            file.seek(4096 * 6)
            file.write(b"\x5a" * 4096 * 20)
        return StoreError, "damaged|malformed"
    if sort == "no database":
        path.write_text("Dear diary, " * 1000)
        return StoreError, "not a foveate store"
    if sort == "missing":
        path.unlink()
        return StoreError, "No file found"
    with closing(apsw.Connection(str(path))) as connection:
        if sort == "another program's":
            connection.pragma("application_id", 1)
            return StoreError, "another program"
        connection.pragma("user_version", 99)
        return StoreError, "newer foveate"


@pytest.mark.parametrize("sort", ["damaged", "no database", "missing", "another program's", "of a newer foveate"])
def test_a_file_that_cannot_be_restored_is_refused_before_any_change(
    source: SQLiteStore, backup: Path, tmp_path: Path, sort: str
) -> None:
    before, names = stores.rows(source), sorted(tmp_path.iterdir())
    error, message = spoiled(sort, backup)
    with pytest.raises(error, match=message):
        restore(backup, source.path, replace=True)
    assert stores.rows(source) == before
    assert sorted(tmp_path.iterdir()) == [name for name in names if name.exists()]


def test_a_damaged_store_is_kept_when_a_backup_replaces_it(source: SQLiteStore, backup: Path, tmp_path: Path) -> None:
    path, rows = Path(source.path), stores.rows(source)
    source.close()
    path.write_bytes(b"\x00" * 100 + path.read_bytes()[100:])
    with pytest.raises(Damaged):
        restore(backup, path)
    kept = restore(backup, path, replace=True)
    assert kept is not None
    assert kept.exists()
    with closing(SQLiteStore(path)) as store:
        assert stores.rows(store) == rows


def test_the_kept_file_has_the_permissions_of_the_store(source: SQLiteStore, backup: Path) -> None:
    Path(source.path).chmod(0o600)
    kept = restore(backup, source.path, replace=True)
    assert kept is not None
    assert kept.stat().st_mode & 0o777 == 0o600


def test_the_target_of_a_link_to_a_damaged_store_is_replaced(source: SQLiteStore, backup: Path, tmp_path: Path) -> None:
    path, rows, link = Path(source.path), stores.rows(source), tmp_path / "elsewhere" / "state.db"
    source.close()
    path.write_bytes(b"\x00" * 100 + path.read_bytes()[100:])
    path.chmod(0o600)
    link.parent.mkdir()
    link.symlink_to(path)
    kept = restore(backup, link, replace=True)
    assert kept is not None
    assert link.is_symlink()
    assert [file.stat().st_mode & 0o777 for file in (path, kept)] == [0o600, 0o600]
    with closing(SQLiteStore(path)) as store:
        assert stores.rows(store) == rows


def test_the_wal_of_a_damaged_store_is_kept_with_it(source: SQLiteStore, backup: Path, tmp_path: Path) -> None:
    rows, path = stores.rows(source), tmp_path / "damaged.db"
    with closing(SQLiteStore(tmp_path / "killed.db")) as killed:
        add(killed, "In the file")
    with closing(SQLiteStore(tmp_path / "killed.db")) as killed:
        add(killed, "Only in the log")
        for log in ("", "-wal"):
            shutil.copy(f"{killed.path}{log}", f"{path}{log}")
    log = Path(f"{path}-wal").read_bytes()
    path.write_bytes(b"\x00" * 100 + path.read_bytes()[100:])
    kept = restore(backup, path, replace=True)
    assert kept is not None
    assert Path(f"{kept}-wal").read_bytes() == log
    with closing(SQLiteStore(path)) as store:
        assert stores.rows(store) == rows


def damage(path: Path) -> None:
    """Damage one page of a store, so that it can be opened and written to but not copied."""
    with closing(apsw.Connection(str(path))) as connection:
        (root,) = connection.execute("select rootpage from sqlite_schema where name = 'segments'").fetchall()[0]
    with path.open("r+b") as file:
        file.seek((root - 1) * 4096)
        file.write(b"\xff" * 64)


def test_writes_to_a_damaged_store_after_its_replacement_go_to_the_kept_file(source: SQLiteStore, backup: Path) -> None:
    path = Path(source.path)
    source.close()
    damage(path)
    with closing(SQLiteStore(path)) as program:
        add(program, "Written before")
        kept = restore(backup, path, replace=True)
        add(program, "Written afterwards")
    assert kept is not None
    with closing(apsw.Connection(str(kept))) as connection:
        texts = {text for (text,) in connection.execute("select text from records")}
    assert {"Written before", "Written afterwards"} <= texts


def test_a_full_disk_leaves_a_damaged_store_unchanged(
    source: SQLiteStore, backup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(apsw.Connection):
        def pragma(self, name: str, *value: object, **options: object) -> object:
            if (name, value) == ("journal_mode", ("delete",)) and self.filename.endswith(".restoring"):
                raise apsw.FullError("database or disk is full")
            return super().pragma(name, *value, **options)

    path = Path(source.path)
    source.close()
    damage(path)
    with closing(SQLiteStore(path)) as program:
        add(program, "In the log alone")
        files = {name: name.read_bytes() for name in path.parent.glob(f"{path.name}*") if not name.name.endswith("-shm")}
        with monkeypatch.context() as patched:
            patched.setattr(sqlite_files.apsw, "Connection", Full)
            with pytest.raises(StoreError, match="Nothing was changed"):
                restore(backup, path, replace=True)
        assert {name: name.read_bytes() for name in files} == files
        assert not list(path.parent.glob("*.replaced"))


def test_reading_a_schema_status_creates_no_files(backup: Path, tmp_path: Path) -> None:
    before, names = backup.read_bytes(), sorted(tmp_path.iterdir())
    assert read_schema_status(backup).is_current
    with closing(apsw.Connection(str(backup))) as connection:
        connection.pragma("user_version", 99)
    found = read_schema_status(backup)
    assert (found.is_current, found.is_too_new, found.version) == (False, True, 99)
    with closing(apsw.Connection(str(backup))) as connection:
        connection.pragma("user_version", queries.migrations("sqlite")[-1][0])
    assert backup.read_bytes()[100:] == before[100:]
    assert sorted(tmp_path.iterdir()) == names


def test_while_a_store_is_replaced_others_read_it_and_wait_to_write(
    source: SQLiteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup, path = tmp_path / "backup.db", tmp_path / "live.db"
    source.backup(backup)
    with closing(SQLiteStore(path)) as live:
        add(live, "It was here earlier")
        raise_numbers = sqlite_files._raise_change_numbers

        def late(there: SQLiteStore, staged: Path) -> None:
            assert len(found(live, "earlier")) == 1
            monkeypatch.setattr(connections, "BUSY_TIMEOUT_MS", 50)
            with pytest.raises(StoreError, match="busy"), live._connections.transaction("begin immediate", 50):
                pass
            raise_numbers(there, staged)

        monkeypatch.setattr(sqlite_files, "_raise_change_numbers", late)
        kept = restore(backup, path, replace=True)
        assert kept is not None
        assert found(live, "earlier") == []
        add(live, "It comes later")
    with closing(SQLiteStore(kept)) as before:
        assert len(found(before, "earlier")) == 1


def test_a_failed_restore_leaves_the_store_usable_and_no_kept_file(
    source: SQLiteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup, path = tmp_path / "backup.db", tmp_path / "live.db"
    source.backup(backup)
    with closing(SQLiteStore(path)) as live:
        add(live, "It was here before")
        names = sorted(tmp_path.iterdir())

        def fails(there: SQLiteStore, staged: Path) -> None:
            raise OSError("no room")

        monkeypatch.setattr(sqlite_files, "_raise_change_numbers", fails)
        with pytest.raises(OSError, match="no room"):
            restore(backup, path, replace=True)
        add(live, "And it goes on")
        assert len(found(live, "goes")) == 1
        assert sorted(tmp_path.iterdir()) == names


def test_a_restore_interrupted_while_pages_are_copied_keeps_the_old_content(source: SQLiteStore, tmp_path: Path) -> None:
    backup, path = tmp_path / "backup.db", tmp_path / "live.db"
    source.backup(backup)
    with closing(SQLiteStore(path)) as live:
        add(live, "It was here earlier")

    def interrupted(frame: FrameType, event: str, called: Any) -> None:
        """Raise KeyboardInterrupt after a function in C has returned, as Ctrl-C does."""
        if event == "c_return" and called.__name__ == "step" and frame.f_code.co_name == "_overwrite_store":
            steps.append(event)
            if len(steps) == 2:  # the first one takes the lock
                sys.setprofile(None)
                raise KeyboardInterrupt

    steps: list[str] = []
    sys.setprofile(interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            restore(backup, path, replace=True)
    finally:
        sys.setprofile(None)
    with closing(SQLiteStore(path)) as live, closing(SQLiteStore(tmp_path / "live.db.replaced")) as before:
        assert found(live, "earlier") == []
        assert len(found(before, "earlier")) == 1


def test_a_backup_with_a_trigger_is_refused(source: SQLiteStore, tmp_path: Path) -> None:
    backup = tmp_path / "backup.db"
    source.backup(backup)
    with closing(apsw.Connection(str(backup))) as connection:
        connection.execute("create trigger evil after insert on records begin delete from links; end")
    with pytest.raises(StoreError, match="'evil', a trigger or view that no foveate wrote"):
        restore(backup, tmp_path / "live.db")


@pytest.mark.slow
def test_a_backup_ends_while_others_write(tmp_path: Path) -> None:
    with closing(SQLiteStore(tmp_path / "live.db")) as live:
        with live.write(HERE) as writer:
            for n in range(3000):
                writer.add(made(f"Remark {n} on kestrels"))
        stop = threading.Event()

        def write() -> None:
            n = 0
            while not stop.is_set():
                add(live, f"Written meanwhile {(n := n + 1)}")

        thread = threading.Thread(target=write)
        thread.start()
        try:
            for n in range(3):
                live.backup(tmp_path / f"backup{n}.db")
        finally:
            stop.set()
            thread.join()
    with closing(SQLiteStore(tmp_path / "backup2.db")) as copied:
        assert copied.health().ok
    assert not list(tmp_path.glob("*.part*"))
