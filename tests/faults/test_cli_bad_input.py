"""Bad input on the command line: one clear line, the right exit code, nothing half-written, never a traceback."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli_kit import refused, run

TEN_MEGABYTES = "word " * 2_000_000


def child(*args: str | bytes) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "foveate", *args],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def records(folder: Path) -> int:
    found = run("stats", "--store", str(folder), "--json")
    return sum(number for kinds in json.loads(found.stdout)["records"].values() for number in kinds.values())


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert run("init").exit_code == 0
    return folder


@pytest.fixture
def store(project: Path) -> Path:
    return project / ".foveate" / "state.db"


# --- texts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_empty_text_is_refused(text: str, project: Path) -> None:
    assert "empty" in refused(run("add", "note", text), 2)
    assert "empty" in refused(run("add", "note", "-", stdin=text), 2)
    assert "empty" in refused(run("context", text), 2)
    assert records(project) == 0


def test_text_of_ten_megabytes_is_refused_with_its_size(project: Path) -> None:
    assert "10,000,000 characters" in refused(run("add", "note", "-", stdin=TEN_MEGABYTES), 2)
    assert records(project) == 0


def test_nul_is_refused_wherever_it_stands(project: Path) -> None:
    assert "NUL" in refused(run("add", "note", "-", stdin="a\x00b"), 2)
    assert "NUL" in refused(run("add", "note", "x", "--set", 'field="a\\u0000b"'), 2)
    assert "NUL" in refused(run("add", "note", "x", "--set", 'field={"deep": ["a\\u0000b"]}'), 2)
    assert "NUL" in refused(run("add", "note", "x", "--tag", "a\x00b"), 2)
    assert records(project) == 0


@pytest.mark.parametrize(
    "args",
    [
        (b"add", b"note", b"caf\xe9"),
        (b"add", b"note", b"x", b"--tag", b"caf\xe9"),
        (b"add", b"note", b"x", b"--set", b"field=caf\xe9"),
        (b"add", b"caf\xe9", b"x"),
    ],
)
def test_bytes_that_are_not_utf8_are_refused(args: tuple[bytes, ...], project: Path) -> None:
    done = child(*args)
    assert done.returncode == 2, done.stderr
    assert "lone surrogate" in done.stderr
    assert done.stderr.count("\n") == 1
    assert records(project) == 0


def test_question_that_is_not_utf8_is_answered(project: Path) -> None:
    run("add", "fact", "The cafe opens at nine")
    for verb in (b"context", b"search"):
        done = child(verb, b"when does the cafe open? \xe9")
        assert done.returncode == 0, done.stderr
        assert "nine" in done.stdout


def test_stdin_that_is_not_utf8_names_the_byte(project: Path) -> None:
    assert "byte 3" in refused(run("add", "note", "-", stdin=b"caf\xe9"), 2)
    assert "byte 3" in refused(run("remember", "-", stdin=b"caf\xe9\n"), 2)
    assert "line 1 is not UTF-8" in refused(run("store", "import", "-", stdin=b"caf\xe9\n"), 2)


# --- names and numbers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("add", "decison", "x"), "Did you mean 'decision'?"),
        (("search", "x", "--kind", "fcat"), "Did you mean 'fact'?"),
        (("context", "x", "--kind", "fcat"), "Did you mean 'fact'?"),
        (("context", "x", "--profile", "codng"), "Did you mean 'coding'?"),
        (("context", "x", "--complexity", "eazy"), "Did you mean 'easy'?"),
        (("context", "x", "--counter", "o200"), "Did you mean 'o200k'?"),
        (("add", "decision", "x", "--set", "rationle=y"), "Did you mean 'rationale'?"),
        (("add", "decision", "x", "--set", "rationale"), "field=value"),
        (("add", "decision", "x", "--set", "alternatives=y"), "must be list"),
        (("add", "note", "x", "--set", "id=y"), "no field 'id'"),
        (("add", "note", "x", "--set", "created=never"), "must be a time"),
        (("add", "gotcha", "x", "--set", "severity=huge"), "critical, high, low, medium"),
        (("add", "note", "x", "--outcome", "succes"), "Did you mean 'success'?"),
        (("add", "note", "x", "--trust", "usr"), "Did you mean 'user'?"),
        (("add", "note", "x", "--confidence", "1.5"), "between 0 and 1"),
        (("add", "note", "x", "--confidence", "nan"), "between 0 and 1"),
        (("add", "note", "x", "--confidence", "high"), "not a valid float"),
        (("add", "fact", "x", "--attribute", "port"), "needs a subject"),
        (("add", "component", "x"), "needs the field 'component'"),
        (("context", "x", "--budget", "0"), "positive"),
        (("context", "x", "--budget", "-5"), "positive"),
        (("context", "x", "--budget", "many"), "not a valid int"),
        (("context", "x", "--since", "yesterday"), "must be a time"),
        (("context", "x", "--since", "99999999999999d"), "years 1 to 9999"),
        (("context", "x", "--since", "9" * 5000 + "d"), "must be a time"),
        (("context", "x", "--until", "9999-12-31T23:59:59-23:00"), "years 1 to 9999"),
        (("show", "x", "--as-of", "99999999999999w"), "years 1 to 9999"),
        (("add", "note", "x", "--set", "created=99999999999999d"), "years 1 to 9999"),
        (("search", "x", "--limit", "0"), "not in the range"),
        (("remember", "nowhere.jsonl"), "There is no file"),
        (("edit",), "Missing argument"),
        (("add", "stack", "x"), "Unknown kind 'stack'"),
        (("add", "task", "x"), "foveate task add"),
        (("remember", "some words"), "foveate add note"),
        (("remember",), "standard input is empty"),
        (("add", "note", "two", "words"), "Put a text of several words in quotes"),
        (("inbox", "accept", "x", "--as", "task"), "foveate task add"),
        (("feedback",), "--useful, --wrong, --outdated or --confirmed"),
        (("feedback", "last"), "--useful, --wrong, --outdated or --confirmed"),
        (("feedback", "nowhere.txt"), "neither a context nor a file"),
        (("feedback", "--wrong", "x", "--useful", "x"), "marked as useful and as wrong"),
        (("store", "import", "nowhere.jsonl"), "does not exist"),
    ],
)
def test_wrong_value_is_named_with_what_to_do(args: tuple[str, ...], expected: str, project: Path) -> None:
    assert expected in refused(run(*args), 2)
    assert records(project) == 0


def test_input_that_is_nested_too_deeply_is_refused(project: Path) -> None:
    deep = "[" * 100_000
    said = refused(run("add", "note", "x", "--set", f"field={deep}"), 2)
    assert said == "foveate: the input is nested too deeply.\n"
    refused(run("remember", "-", "--format", "messages", stdin=deep + "\n"), 2)
    refused(run("store", "import", "-", stdin=deep + "\n"), 2)
    assert records(project) == 0


def test_every_problem_is_listed_at_once() -> None:
    said = refused(run("add", "note", "", "--confidence", "7", "--trust", "nobody"), 2)
    for part in ("empty", "confidence", "trust"):
        assert part in said


@pytest.mark.parametrize(
    "args",
    [
        ("show",),
        ("edit", "--text", "y"),
        ("edit", "--pin"),
        ("edit", "--retire"),
        ("edit", "--outcome", "failure"),
        ("feedback", "--confirmed"),
        ("undo",),
        ("forget", "--yes"),
        ("why",),
        ("inbox accept", "--yes"),
        ("inbox reject",),
    ],
)
def test_unknown_id_is_not_found(args: tuple[str, ...]) -> None:
    run("context", "anything")
    assert "fact_nobody" in refused(run(*args[0].split(), *args[1:], "fact_nobody"), 3)


def test_budget_below_what_must_be_kept_says_by_how_much() -> None:
    for n in range(5):
        run("add", "censor", f"Never touch the production database number {n} without asking")
    result = run("context", "Deploy?", "--budget", "30", "--json")
    assert result.exit_code == 5
    error = json.loads(result.stdout)["error"]
    assert error["type"] == "BudgetError"
    assert error["short"] > 0
    assert f"{error['short']}" in result.stderr
    assert result.stderr.count("\n") == 1


# --- files and directories -----------------------------------------------------------------------------------------


def test_store_below_a_regular_file_cannot_be_created(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("I am a file", "utf-8")
    assert "cannot be created" in refused(run("init", "--store", str(file / "below")), 1)
    for path in (file / "below", file):
        assert f"there is no store at {str(path)!r}" in refused(run("stats", "--store", str(path)), 2)
    assert file.read_text("utf-8") == "I am a file"


def test_folder_name_that_a_file_has_taken_cannot_be_created(tmp_path: Path) -> None:
    taken = tmp_path / "other"
    taken.mkdir()
    (taken / ".foveate").write_text("not a folder", "utf-8")
    assert "cannot be created" in refused(run("init", "--store", str(taken)), 1)


def test_export_to_a_place_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    run("add", "note", "something")
    target = tmp_path / "no" / "such" / "file"
    assert refused(run("store", "export", str(target)), 1) == f"foveate: {str(target)!r}: No such file or directory.\n"
    assert not (tmp_path / "no").exists()


def test_export_that_fails_midway_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*args: object) -> Iterator[str]:
        yield '{"id":"note_1"}'
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    folder = tmp_path / "out"
    folder.mkdir()
    target = folder / "file"
    target.write_text("mine", "utf-8")
    monkeypatch.setattr("foveate.engine.store_tools.StoreTools.export_lines", failing)
    assert repr(str(target)) in refused(run("store", "export", str(target), "--yes"), 1)
    assert target.read_text("utf-8") == "mine"
    assert list(folder.iterdir()) == [target]


@pytest.mark.parametrize("yes", [(), ("--yes",)])
def test_export_never_overwrites_a_database(
    yes: tuple[str, ...], project: Path, store: Path, tmp_path: Path, home: Path
) -> None:
    run("add", "note", "something")
    assert run("init", "--personal").exit_code == 0
    own = next(home.rglob("state.db"))
    linked = tmp_path / "linked"
    linked.symlink_to(store)
    for path in (store, Path(f"{store}-wal"), Path(f"{store}-shm"), own, linked):
        assert "belongs to a store" in refused(run("store", "export", str(path), *yes), 2)
    other = tmp_path / "other.db"
    assert run("store", "backup", str(other)).exit_code == 0
    before = other.read_bytes()
    assert "is an SQLite database" in refused(run("store", "export", str(other), *yes), 2)
    assert other.read_bytes() == before
    assert records(project) == 1


def test_backup_to_a_place_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    assert "cannot be opened" in refused(run("store", "backup", str(tmp_path / "no" / "copy.db")), 1)
    assert not (tmp_path / "no").exists()


def test_settings_that_do_not_hold_are_all_named(project: Path) -> None:
    (project / ".foveate" / "config.toml").write_text("budgt = 3\ncounter = 4\n", "utf-8")
    said = refused(run("stats"), 2)
    assert "Did you mean 'budget'?" in said
    assert "counter must be str" in said


# --- damaged and foreign stores ------------------------------------------------------------------------------------


def filled(project: Path, number: int = 400) -> None:
    import foveate

    with foveate.open(project) as engine:
        engine.store.add_many(("note", f"Record {n} on topic{n % 7} " + "filler words " * 40, {}) for n in range(number))


def test_file_with_a_broken_header_is_refused_and_left_alone(project: Path, store: Path) -> None:
    filled(project)
    raw = bytearray(store.read_bytes())
    raw[:64] = os.urandom(64)
    store.write_bytes(raw)
    for args in (("stats",), ("add", "note", "x"), ("context", "topic1"), ("doctor",)):
        assert "not a foveate store, or its header is damaged" in refused(run(*args), 1)
    assert store.read_bytes() == raw


def test_file_with_broken_pages_is_found_and_salvaged(project: Path, store: Path) -> None:
    filled(project)
    raw = bytearray(store.read_bytes())
    middle = len(raw) // 2 // 4096 * 4096
    raw[middle : middle + 4 * 4096] = b"\xff" * (4 * 4096)
    store.write_bytes(raw)
    found = run("doctor")
    assert found.exit_code == 1
    assert "doctor --fix" in found.output
    assert "Traceback" not in found.output
    fixed = run("doctor", "--fix")
    assert fixed.exit_code == 0, fixed.output
    assert (store.parent / "state.db.damaged").read_bytes() == raw
    assert records(project) > 0
    assert run("doctor").exit_code == 0
    assert run("add", "note", "written after the salvage").exit_code == 0


def test_salvage_that_carries_nothing_is_a_problem(project: Path, store: Path) -> None:
    filled(project, 20)
    store.write_bytes(os.urandom(64) + store.read_bytes()[64:])
    result = run("doctor", "--fix")
    assert result.exit_code == 1, result.output
    assert "0 records of" in result.stderr
    assert "Nothing of" in result.stdout
    assert not result.stdout.rstrip().endswith("ok")


def test_salvage_of_a_damaged_personal_store_leaves_the_projects_alone(project: Path, store: Path, home: Path) -> None:
    filled(project, 20)
    assert run("init", "--personal").exit_code == 0
    own = next(home.rglob("state.db"))
    own.write_bytes(os.urandom(64) + own.read_bytes()[64:])
    result = run("doctor", "--fix")
    assert result.exit_code == 1, "its records are lost"
    assert repr(str(own)) in result.stderr
    assert list(own.parent.glob("*.damaged*"))
    assert not list(store.parent.glob("*.damaged*"))
    assert records(project) == 20
    assert run("doctor").exit_code == 0


@pytest.mark.parametrize("verb", [("stats",), ("add", "note", "x"), ("context", "x"), ("store", "export"), ("doctor",)])
def test_store_from_the_future_asks_for_an_upgrade(verb: tuple[str, ...], store: Path) -> None:
    with sqlite3.connect(store) as database:
        database.execute("pragma user_version = 99")
    database.close()
    said = refused(run(*verb), 1)
    assert "schema 99" in said
    assert "Upgrade foveate" in said


def test_another_programs_file_is_left_alone(store: Path) -> None:
    store.unlink()
    with sqlite3.connect(store) as database:
        database.execute("create table songs (title text)")
    database.close()
    before = store.read_bytes()
    for args in (("stats",), ("add", "note", "x"), ("init",), ("doctor", "--fix")):
        assert "another program" in refused(run(*args), 1)
    with sqlite3.connect(store) as database:
        assert database.execute("select name from sqlite_schema").fetchall() == [("songs",)]
    database.close()
    assert len(store.read_bytes()) == len(before)


def test_file_that_is_no_database_is_left_alone(store: Path) -> None:
    store.write_text("These are my notes, not a database. " * 40, "utf-8")
    before = store.read_bytes()
    assert "not a foveate store" in refused(run("stats"), 1)
    assert store.read_bytes() == before
