"""Rows in their file: what they depend on, who may write them, what is half written, and which runs share a table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foveate.errors import InputError, NotFound
from foveate.eval import run as running
from foveate.eval.evidence import Said
from foveate.eval.model import Case, Entry, Scene, Suite, World
from foveate.eval.report import as_json, report
from foveate.eval.rows import Done, Pack, Row, opened, read, read_all
from foveate.eval.run import run
from foveate.eval.systems import system
from foveate.eval.tables import summary

ABOUT = {"format": 1, "suite": "talks", "system": "foveate", "data": "d", "options": {}, "scoring": "s"}
WORLDS = ("a", "b", "c")


def talks(**more: Any) -> Suite:
    """Three worlds, each with one case."""

    def worlds(path: Path, options: Any) -> Iterator[World]:
        for name in WORLDS:
            text = f"The cat of {name} is called Minka {name}"
            case = Case("1", "What is the cat called?", (Said("t", text),))
            yield World(name, lambda case=case, text=text: Scene([case], [Entry(id="t", text=text)]))  # type: ignore[misc]

    told = {"name": "talks", "about": "", "worlds": worlds, "files": lambda path: [path], "budgets": (100,)}
    return Suite(**{**told, **more})


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "talks.txt"
    path.write_text("the data")
    return path


def rows(world: str) -> list[Row]:
    return [Row(world, "1", "", {100: Pack(9, 1.0, {"turn": [True]})})]


def write(path: Path, about: dict[str, Any], *worlds: str, at: int = 0) -> Path:
    with opened(path, about) as book:
        for world in worlds:
            book.add(world, Done(rows(world)))
    if at:
        os.utime(path, (at, at))
    return path


# --- what rows depend on -------------------------------------------------------------------------------------------


def test_rows_depend_on_all_that_asks_and_scores_and_not_on_what_reads_them() -> None:
    found = {path.relative_to(running.HERE).as_posix() for path in running.scoring()}
    assert {"run.py", "model.py", "evidence.py", "reading.py", "overrides.py", "ablate.py", "python_files.py"} <= found
    assert {"systems/documents.py", "systems/packing.py", "suites/perturbed.py"} <= found
    assert not {"report.py", "tables.py", "plot.py", "gate.py", "compare.py", "statistics.py"} & found
    assert [path.name for path in running.SHARED] == ["lexical.py", "tokens.py", "records.py"]


@pytest.mark.parametrize("name", ["scoring", "SHARED"])
def test_other_code_begins_a_new_file(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    before = run(talks(), system("fts5"), data, tmp_path / "out")
    assert run(talks(), system("fts5"), data, tmp_path / "out").path == before.path
    monkeypatch.setattr(running, name, (lambda: [data]) if name == "scoring" else [data])
    assert run(talks(), system("fts5"), data, tmp_path / "out").path != before.path


def test_places_are_no_part_of_a_run_and_other_options_are(data: Path, tmp_path: Path) -> None:
    suite = talks(options={"cache": "", "split": ""}, places=("cache",))

    def path(**options: str) -> Path:
        return run(suite, system("last"), data, tmp_path / "out", options=options).path

    assert path(cache="here") == path(cache="there") == path()
    assert path(split="s") != path()
    assert read(path(cache="here", split="s")).about["options"] == {"split": "s"}


# --- one writer ----------------------------------------------------------------------------------------------------

HOLD = """
import sys
from pathlib import Path
from foveate.eval.rows import opened
with opened(Path(sys.argv[1]), {}):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such lock")
def test_a_second_process_is_told_and_harms_nothing(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", ABOUT, "a")
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with path.open("ab") as file:
            file.write(b'{"world": "b", "ro')  # it is writing
        before = path.read_bytes()
        with pytest.raises(InputError, match=r"Another process is writing .*--out"), opened(path, ABOUT):
            pass
        assert path.read_bytes() == before
        assert [row.world for row in read(path).rows] == ["a"]
        other.communicate("")
    assert write(path, ABOUT, "b") == path
    assert [row.world for row in read(path).rows] == ["a", "b"]


def test_a_world_that_was_written_twice_counts_once(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", ABOUT, "a", "b", "a")
    assert [row.world for row in read(path).rows] == ["a", "b"]


@pytest.mark.parametrize("left", [b"", b'{"format": 1, "su'])
def test_a_file_without_a_whole_head_begins_again(tmp_path: Path, left: bytes) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(left)
    assert [row.world for row in read(write(path, ABOUT, "a")).rows] == ["a"]


# --- finished or not -----------------------------------------------------------------------------------------------


def test_a_run_is_finished_when_it_came_to_its_end(data: Path, tmp_path: Path) -> None:
    def ended(limit: int | None) -> tuple[int, int | None, bool, str]:
        path = run(talks(), system("last"), data, tmp_path / "out", limit=limit).path
        found = read(path)
        return len(found.rows), found.limit, found.finished, summary([report(found)])

    assert ended(2) == (2, 2, True, "talks: 2 cases in 2 worlds, with --limit 2")
    assert ended(None) == (3, None, True, "talks: 3 cases in 3 worlds")
    assert ended(1) == (3, None, True, "talks: 3 cases in 3 worlds")  # all of them are there


def test_a_run_that_was_stopped_says_so(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(talks(), system("last"), data, tmp_path / "out", limit=1)
    ask = running.ask

    def stopped(asked: Any, case: Case, world: str, budgets: Any) -> Row:
        if world == "c":
            raise KeyboardInterrupt
        return ask(asked, case, world, budgets)

    monkeypatch.setattr(running, "ask", stopped)
    with pytest.raises(KeyboardInterrupt):
        run(talks(), system("last"), data, tmp_path / "out")
    (found,) = read_all(tmp_path / "out")
    assert (len(found.rows), found.finished) == (2, False)
    assert summary([report(found)]) == "talks: 2 cases in 2 worlds, not finished"
    monkeypatch.setattr(running, "ask", ask)
    whole = run(talks(), system("fts5"), data, tmp_path / "out")
    said = summary([report(whole), report(found)])
    assert said == "talks: 2 to 3 cases in 2 to 3 worlds; last not finished"


# --- a folder ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", [{"data": "d2"}, {"options": {"split": "s"}}, {"scoring": "s2"}, {"types": ["t"]}])
def test_runs_on_other_cases_do_not_share_a_table(tmp_path: Path, other: dict[str, Any]) -> None:
    write(tmp_path / "1.jsonl", {**ABOUT, "system": "fts5"}, "a", at=100)
    write(tmp_path / "2.jsonl", ABOUT, "a", at=200)
    write(tmp_path / "3.jsonl", {**ABOUT, "suite": "code"}, "a", at=300)
    write(tmp_path / "4.jsonl", {**ABOUT, **other}, "a", at=50)
    assert [run.path.name for run in read_all(tmp_path)] == ["3.jsonl", "2.jsonl", "1.jsonl"]
    os.utime(tmp_path / "4.jsonl", (400, 400))
    assert [run.path.name for run in read_all(tmp_path)] == ["3.jsonl", "4.jsonl"]


def test_other_files_of_a_folder_are_passed_over(tmp_path: Path) -> None:
    write(tmp_path / "rows.jsonl", ABOUT, "a")
    for n, text in enumerate(("", "{}\n", "[1]\n", "words\n", json.dumps(ABOUT) + "\n", '{"format": 1, "su')):
        (tmp_path / f"{n}.jsonl").write_text(text)
    (tmp_path / "bytes.jsonl").write_bytes(b"\xff\xfe\n")
    assert [run.path.name for run in read_all(tmp_path)] == ["rows.jsonl"]
    (tmp_path / "rows.jsonl").unlink()
    with pytest.raises(NotFound, match="holds no runs"):
        read_all(tmp_path)
    with pytest.raises(NotFound, match="There is no run"):
        read(tmp_path / "gone.jsonl")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"tokens": 9', '"tokens": "9"'),
        ('"ms": 1.0', '"ms": null'),
        ("[true]", "true"),
        ("[true]", '["yes"]'),
        ('"case": "1"', '"case": 1'),
        ('"unwanted": []', '"unwanted": null'),
        ('"ranks": {}', '"ranks": {"turn": ["1"]}'),
        ('"ranks": {}', '"ranks": []'),
        ('"100"', '"soon"'),
    ],
)
def test_values_of_another_type_are_damage(tmp_path: Path, old: str, new: str) -> None:
    path = write(tmp_path / "rows.jsonl", ABOUT, "a")
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(InputError, match="damaged at line 2"):
        read(path)


def test_rows_of_other_budgets_are_damage(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", ABOUT, "a", "b")
    head, first, second = path.read_text().splitlines()
    path.write_text("\n".join([head, first, second.replace('"100"', '"200"'), ""]))
    with pytest.raises(InputError, match="damaged at line 3"):
        read(path)


def test_what_was_not_asked_is_kept_and_said(data: Path, tmp_path: Path) -> None:
    def worlds(path: Path, options: Any) -> Iterator[World]:
        yield World("none", lambda: Scene([], skipped=2))
        case = Case("1", "What is the cat called?", (Said("t", "Minka"),))
        yield World("one", lambda: Scene([case], [Entry(id="t", text="Minka")], skipped=1))

    found = run(talks(worlds=worlds), system("last"), data, tmp_path / "out")
    assert (found.skipped, read(found.path).skipped, read(found.path).finished) == (3, 3, True)
    assert summary([report(read(found.path))]) == "talks: 1 case in 1 world, 3 not asked"
    assert as_json(report(found))["skipped"] == 3


def test_a_run_without_rows_leaves_no_file(data: Path, tmp_path: Path) -> None:
    run(talks(), system("last"), data, tmp_path / "out", types=["nope"])
    assert list((tmp_path / "out").iterdir()) == []

    def fails(path: Path, options: Any) -> Iterator[World]:
        raise InputError("no")

    with pytest.raises(InputError, match="no"):
        run(talks(worlds=fails), system("last"), data, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_two_worlds_of_one_name_are_an_error(data: Path, tmp_path: Path) -> None:
    suite = talks(worlds=lambda path, options: iter([World("a", lambda: Scene([]))] * 2))
    with pytest.raises(InputError, match="holds 'a' twice"):
        run(suite, system("last"), data, tmp_path / "out")


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    for text in ("", "[]\n", "{}\n", json.dumps({**ABOUT, "format": 9}) + "\n"):
        path.write_text(text)
        with pytest.raises(InputError, match="is not a run"):
            read(path)
