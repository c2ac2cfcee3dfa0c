"""`store backup`, `store restore`, `store maintain` and migrations as people and programs call them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import apsw
import pytest

import foveate
import stores
from cli_kit import document, ok, run
from foveate.store.sql.queries import migrations
from foveate.store.sqlite.store import SQLiteStore

LATEST = migrations("sqlite")[-1][0]


def on_a_terminal(answer: bytes, *args: str) -> int:
    """Return the exit code of a command at which a person types an answer."""
    ours, theirs = os.openpty()
    os.write(ours, answer)
    done = subprocess.run([sys.executable, "-m", "foveate", *args], stdin=theirs, capture_output=True, check=False)
    os.close(theirs)
    os.close(ours)
    return done.returncode


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
    lines = ok("store", "export", "--store", str(folder)).splitlines()
    return sorted(entry["text"] for line in lines if "text" in (entry := json.loads(line)))


def test_store_that_cannot_be_copied_leaves_no_backup(tmp_path: Path, store: Path) -> None:
    set_version(store, -LATEST)
    result = run("store", "backup", str(tmp_path / "copy.db"))
    assert (result.exit_code, "unfinished copy" in result.stderr) == (1, True)
    assert not (tmp_path / "copy.db").exists()


def test_backup_is_equal_to_the_store(tmp_path: Path, store: Path) -> None:
    assert ok("store", "backup", str(tmp_path / "copy.db")).endswith(" bytes")
    with closing(SQLiteStore(store)) as here, closing(SQLiteStore(tmp_path / "copy.db", create=False)) as there:
        assert stores.rows(there) == stores.rows(here)


def test_backup_never_overwrites_a_file(tmp_path: Path, store: Path) -> None:
    for target in (store, tmp_path):
        before = store.read_bytes()
        result = run("store", "backup", str(target), "--yes")
        assert (result.exit_code, "exists already" in result.stderr) == (1, True)
        assert store.read_bytes() == before


def test_no_verb_works_on_an_unfinished_copy_of_version_0_1(store: Path) -> None:
    set_version(store, -LATEST)
    result = run("search", "anything")
    assert result.exit_code == 1
    assert "unfinished copy" in result.stderr


def test_restore_brings_a_backup_back_and_keeps_what_it_replaces(store: Path) -> None:
    ok("store", "backup", "monday.db")
    ok("add", "note", "Kept after the backup")
    refused = run("store", "restore", "monday.db")
    assert (refused.exit_code, "--yes" in refused.stderr) == (1, True)
    found = document("store", "restore", "monday.db", "--yes")
    assert texts() == ["The first thing to keep"]
    kept = Path(found["kept"])
    assert kept.parent == store.parent
    assert document("store", "restore", str(kept), "--yes")["kept"] != found["kept"]
    assert "Kept after the backup" in texts()


def test_restore_into_a_new_project_needs_no_leave(tmp_path: Path) -> None:
    ok("store", "backup", "monday.db")
    other = tmp_path / "other"
    other.mkdir()
    found = document("store", "restore", "monday.db", "--store", str(other))
    assert found["kept"] is None
    assert texts(other) == texts()


def test_restore_refuses_what_is_no_backup(store: Path) -> None:
    Path("letter.txt").write_text("Dear diary")
    for file, said in (
        ("letter.txt", "not a foveate store"),
        ("none.db", "No file found"),
        (str(store), "the store itself"),
    ):
        result = run("store", "restore", file, "--yes")
        assert result.exit_code == 1
        assert said in result.stderr
    assert texts() == ["The first thing to keep"]


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
@pytest.mark.parametrize(("answer", "code", "left"), [(b"y\n", 0, 1), (b"n\n", 130, 2)])
def test_restore_asks_on_a_terminal(answer: bytes, code: int, left: int, store: Path) -> None:
    ok("store", "backup", "monday.db")
    ok("add", "note", "Kept after the backup")
    assert on_a_terminal(answer, "store", "restore", "monday.db") == code
    assert len(texts()) == left


# --- maintenance and migrations ------------------------------------------------------------------------------------


def test_maintenance_reports_what_is_due_and_then_does_it(store: Path) -> None:
    with foveate.open(".") as engine:
        id = engine.add("episode", "The import stopped", created="2020-01-01").record.id
    report = run("store", "maintain", "--dry-run")
    assert report.stdout == f"{id}  archive: summarized -> archived, older than 90 days\n"
    assert "nothing was changed" in report.stderr
    assert document("store", "maintain", "--check", code=1)["steps"][0]["id"] == id
    assert run("store", "maintain", "--check", "--only", "retention").exit_code == 0
    done = document("store", "maintain", "--only", "lifecycle", "--only", "retention")
    assert (done["dry_run"], [step["verb"] for step in done["steps"]]) == (False, ["archive"])
    assert "nothing is due" in run("store", "maintain", "--check").stderr


def test_jobs_that_cannot_run_say_what_they_need(store: Path) -> None:
    for job, said in (("vectors", "No embedder is set"), ("unused-vectors", "No embedder"), ("summaries", "summarizer = ")):
        result = run("store", "maintain", "--only", job)
        assert (result.exit_code, said in result.stderr) == (2, True)
    assert run("store", "maintain", "--only", "summaries", "--dry-run").exit_code == 0


def test_check_of_the_schema_changes_nothing(store: Path) -> None:
    before = store.read_bytes()
    schema = document("store", "maintain", "--check")["schema"]
    assert (schema["is_current"], schema["version"], schema["latest_version"]) == (True, LATEST, LATEST)
    assert schema["pending_migrations"] == []
    assert store.read_bytes() == before


def test_store_of_an_older_version_is_migrated_by_maintenance_and_only_told_by_a_check(store: Path) -> None:
    store.unlink()
    stores.old_file(store, 1)
    before = store.read_bytes()
    for arguments in (["--check"], ["--dry-run"]):
        found = document("store", "maintain", *arguments, code=int(arguments == ["--check"]))
        assert (found["schema"]["version"], found["steps"]) == (1, [])
        assert len(found["schema"]["pending_migrations"]) == LATEST - 1
    assert "would run migration" in run("store", "maintain", "--dry-run").stdout
    (warning,) = document("doctor")["warnings"]
    assert f"has schema 1, and this foveate {LATEST}" in warning
    assert store.read_bytes() == before
    result = run("store", "maintain")
    assert result.stdout.count("ran migration") == LATEST - 1
    assert "Restart programs" in result.stderr
    assert document("store", "maintain", "--check")["schema"]["is_current"]


def test_nothing_is_done_to_a_store_of_a_newer_version(store: Path) -> None:
    set_version(store, 99)
    before = store.read_bytes()
    for arguments in (["maintain", "--check"], ["maintain"]):
        assert "Upgrade foveate" in document("store", *arguments, code=1)["error"]["message"]
    assert store.read_bytes() == before


def test_records_that_an_older_analyser_indexed_are_indexed_again(store: Path) -> None:
    with closing(apsw.Connection(str(store))) as connection:
        connection.execute("update meta set value = '0' where name = 'analyser'")
    assert document("store", "maintain", "--check", code=1)["schema"]["needs_reindex"]
    (warning,) = document("doctor")["warnings"]
    assert "indexes all records again" in warning
    assert "indexed all records again" in ok("store", "maintain")
    assert document("store", "maintain", "--check")["schema"]["is_current"]


def test_maintenance_without_a_store_says_how_to_create_one(tmp_path: Path) -> None:
    result = run("store", "maintain", "--check", "--store", str(tmp_path / "empty"))
    assert result.exit_code == 2
    assert "foveate init" in result.stderr
