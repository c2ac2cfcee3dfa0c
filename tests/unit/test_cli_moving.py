"""`copy`, `restore`, `migrate` and `backup` as people and programs call them."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import apsw
import pytest

import stores
from cli_kit import document, ok, run
from foveate.store.sql.queries import migrations
from foveate.store.sqlite.store import SQLiteStore

LATEST = migrations("sqlite")[-1][0]


def set_version(path: Path, version: int) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        connection.pragma("user_version", version)


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a few records in the current directory."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    ok("init")
    ok("add", "note", "The first thing to keep")
    return folder / ".foveate" / "state.db"


def texts(folder: Path | str = ".") -> list[str]:
    lines = ok("export", "--store", str(folder)).splitlines()
    return sorted(entry["text"] for line in lines if "text" in (entry := json.loads(line)))


def test_copy_moves_a_project_and_says_what_it_moved(tmp_path: Path, store: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    shown = ok("copy", ".", str(other))
    assert "records" in shown
    assert texts(other) == texts()
    refused = run("copy", ".", str(other))
    assert (refused.exit_code, "--replace" in refused.stderr) == (1, True)
    ok("add", "note", "A second thing")
    found = document("copy", ".", str(other), "--replace")
    assert (found["source"], found["target"]) == (str(store), str(other / ".foveate" / "state.db"))
    assert found["tables"]["records"]["rows"] == 2
    assert texts(other) == texts()
    assert not list((other / ".foveate").glob("*.replaced*"))


def test_copy_of_what_cannot_be_copied_makes_no_target(tmp_path: Path, store: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    set_version(store, -LATEST)
    result = run("copy", ".", str(other))
    assert (result.exit_code, "unfinished copy" in result.stderr) == (1, True)
    assert list(other.iterdir()) == []


def test_copy_takes_files_as_well(tmp_path: Path, store: Path) -> None:
    ok("copy", str(store), str(tmp_path / "copy.db"))
    with closing(SQLiteStore(store)) as here, closing(SQLiteStore(tmp_path / "copy.db", create=False)) as there:
        assert stores.rows(there) == stores.rows(here)


@pytest.mark.parametrize(
    ("source", "target", "said"),
    [
        ("nowhere", "copy.db", "no store at 'nowhere'"),
        (".", "no/such/copy.db", "no folder 'no/such'"),
        (".", ".foveate/state.db", "the same store"),
    ],
)
def test_copy_that_cannot_be_done_says_why_and_does_nothing(source: str, target: str, said: str) -> None:
    before = sorted(Path().rglob("*"))
    result = run("copy", source, target)
    assert result.exit_code == 2
    assert said in result.stderr
    assert sorted(Path().rglob("*")) == before


def test_no_verb_works_on_an_unfinished_copy_of_version_0_1(store: Path) -> None:
    set_version(store, -LATEST)
    result = run("search", "anything")
    assert result.exit_code == 1
    assert "unfinished copy" in result.stderr


def test_restore_brings_a_backup_back_and_keeps_what_it_replaces(store: Path) -> None:
    ok("backup", "monday.db")
    ok("add", "note", "Kept after the backup")
    refused = run("restore", "monday.db")
    assert (refused.exit_code, "--replace" in refused.stderr) == (1, True)
    found = document("restore", "monday.db", "--replace")
    assert texts() == ["The first thing to keep"]
    kept = Path(found["kept"])
    assert kept.parent == store.parent
    assert document("restore", str(kept), "--replace")["kept"] != found["kept"]
    assert "Kept after the backup" in texts()


def test_restore_into_a_new_project_needs_no_leave(tmp_path: Path) -> None:
    ok("backup", "monday.db")
    other = tmp_path / "other"
    other.mkdir()
    found = document("restore", "monday.db", "--store", str(other))
    assert found["kept"] is None
    assert texts(other) == texts()


def test_restore_refuses_what_is_no_backup(store: Path) -> None:
    Path("letter.txt").write_text("Dear diary")
    for file, said in (
        ("letter.txt", "not a foveate store"),
        ("none.db", "No file found"),
        (str(store), "the store itself"),
    ):
        result = run("restore", file, "--replace")
        assert result.exit_code == 1
        assert said in result.stderr
    assert texts() == ["The first thing to keep"]


def test_migrate_check_says_how_the_schema_stands_and_changes_nothing(store: Path) -> None:
    assert f"schema {LATEST}" in ok("migrate", "--check")
    before = store.read_bytes()
    found = document("migrate", "--check")
    assert (found["current"], found["version"], found["latest_version"], found["pending_migrations"]) == (
        True,
        LATEST,
        LATEST,
        [],
    )
    assert store.read_bytes() == before
    beside = {file.name for file in store.parent.iterdir() if file.name.startswith("state.db")}
    assert beside == {"state.db", "state.db-line"}


def test_migrate_does_nothing_to_a_store_of_a_newer_version(store: Path) -> None:
    set_version(store, 99)
    before = store.read_bytes()
    for arguments in (["migrate", "--check"], ["migrate"]):
        found = document(*arguments, code=1)
        assert not found["current"]
        assert "upgrade" in found["advice"]
    assert store.read_bytes() == before


def test_migrate_indexes_again_what_an_older_analyser_indexed(store: Path) -> None:
    with closing(apsw.Connection(str(store))) as connection:
        connection.execute("update meta set value = '0' where name = 'analyser'")
    assert document("migrate", "--check", code=1)["needs_reindex"]
    assert document("migrate")["current"]
    assert document("migrate", "--check")["current"]


def test_migrate_where_there_is_no_store_says_how_to_make_one(tmp_path: Path) -> None:
    result = run("migrate", "--check", "--store", str(tmp_path / "empty"))
    assert result.exit_code == 2
    assert "foveate init" in result.stderr
