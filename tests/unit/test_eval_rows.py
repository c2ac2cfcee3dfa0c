"""Run files: what results depend on, who may write a file, incomplete lines, and which runs share a table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from foveate.errors import InputError, NotFound
from foveate.eval import run as running
from foveate.eval.evidence import EvidenceText
from foveate.eval.model import Case, Dataset, Document, Subset, Suite
from foveate.eval.report import as_json, report
from foveate.eval.rows import BudgetResult, CaseResult, SubsetResult, open_run_file, read_run, read_runs
from foveate.eval.run import run
from foveate.eval.systems import open_system
from foveate.eval.tables import summary

HEADER = {"format": 2, "suite": "talks", "system": "foveate", "data": "d", "options": {}, "scoring": "s"}
SUBSETS = ("a", "b", "c")


def talks(**more: Any) -> Suite:
    """Return a suite of three subsets, each with one case."""

    def subsets(path: Path, options: Any) -> Iterator[Subset]:
        for name in SUBSETS:
            text = f"The cat of {name} is called Minka {name}"
            case = Case("1", "What is the cat called?", (EvidenceText("t", text),))
            yield Subset(name, lambda case=case, text=text: Dataset([case], [Document(id="t", text=text)]))  # type: ignore[misc]

    values = {
        "name": "talks",
        "description": "",
        "subsets": subsets,
        "files": lambda path: [path],
        "budgets": (100,),
    }
    return Suite(**{**values, **more})


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "talks.txt"
    path.write_text("the data")
    return path


def results(subset: str) -> list[CaseResult]:
    return [CaseResult(subset, "1", "", {100: BudgetResult(9, 1.0, {"turn": [True]})})]


def write(path: Path, header: dict[str, Any], *subsets: str, at: int = 0) -> Path:
    with open_run_file(path, header) as writer:
        for subset in subsets:
            writer.add(subset, SubsetResult(results(subset)))
    if at:
        os.utime(path, (at, at))
    return path


# --- what results depend on ----------------------------------------------------------------------------------------


def test_results_depend_on_the_code_that_scores_and_not_on_code_that_reads_them() -> None:
    found = {path.relative_to(running.EVAL_DIR).as_posix() for path in running.scoring_files()}
    assert {"run.py", "model.py", "evidence.py", "reading.py", "datasets/own.py", "systems/baselines.py"} <= found
    assert not {"report.py", "tables.py", "compare.py", "statistics.py"} & found
    assert [path.name for path in running.SHARED_FILES] == ["analysis.py", "tokens.py", "make.py"]


def test_results_depend_on_the_files_of_a_suite_and_of_a_system_outside_the_package(data: Path, tmp_path: Path) -> None:
    from bench.systems.file_bm25 import SYSTEM

    header = run(talks(), open_system("fts5"), data, tmp_path / "out").header
    suite = replace(talks(), subsets=lambda path, options: iter(()))
    assert run(suite, open_system("fts5"), data, tmp_path / "out").header["scoring"] == header["scoring"]  # the same file
    assert [path.name for path in running._files_of(type(SYSTEM.make("")).open)] == sorted(
        path.name for path in Path("bench/systems").glob("*.py")
    )
    assert running._files_of(run) == []


@pytest.mark.parametrize("name", ["scoring_files", "SHARED_FILES"])
def test_other_code_starts_a_new_file(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    before = run(talks(), open_system("fts5"), data, tmp_path / "out")
    assert run(talks(), open_system("fts5"), data, tmp_path / "out").path == before.path
    monkeypatch.setattr(running, name, (lambda: [data]) if name == "scoring_files" else [data])
    assert run(talks(), open_system("fts5"), data, tmp_path / "out").path != before.path


def test_path_options_are_not_part_of_a_run_and_other_options_are(data: Path, tmp_path: Path) -> None:
    suite = talks(options={"cache": "", "split": ""}, path_options=("cache",))

    def path(**options: str) -> Path:
        return run(suite, open_system("recency"), data, tmp_path / "out", options=options).path

    assert path(cache="here") == path(cache="there") == path()
    assert path(split="s") != path()
    assert read_run(path(cache="here", split="s")).header["options"] == {"split": "s"}


# --- one writer ----------------------------------------------------------------------------------------------------

HOLD = """
import sys
from pathlib import Path
from foveate.eval.rows import open_run_file
with open_run_file(Path(sys.argv[1]), {}):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such lock")
def test_a_second_process_gets_an_error_and_changes_nothing(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", HEADER, "a")
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with path.open("ab") as file:
            file.write(b'{"subset": "b", "re')  # the other process is writing
        before = path.read_bytes()
        with pytest.raises(InputError, match=r"Another process is writing .*--out"), open_run_file(path, HEADER):
            pass
        assert path.read_bytes() == before
        assert [result.subset for result in read_run(path).results] == ["a"]
        other.communicate("")
    assert write(path, HEADER, "b") == path
    assert [result.subset for result in read_run(path).results] == ["a", "b"]


def test_a_subset_that_was_written_twice_counts_once(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", HEADER, "a", "b", "a")
    assert [result.subset for result in read_run(path).results] == ["a", "b"]


@pytest.mark.parametrize("left", [b"", b'{"format": 2, "su'])
def test_a_file_with_an_incomplete_header_starts_again(tmp_path: Path, left: bytes) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(left)
    assert [result.subset for result in read_run(write(path, HEADER, "a")).results] == ["a"]


# --- finished or not -----------------------------------------------------------------------------------------------


def test_a_run_is_finished_when_it_reached_its_end(data: Path, tmp_path: Path) -> None:
    def ended(limit: int | None) -> tuple[int, int | None, bool, str]:
        path = run(talks(), open_system("recency"), data, tmp_path / "out", limit=limit).path
        found = read_run(path)
        return len(found.results), found.limit, found.is_finished, summary([report(found)])

    assert ended(2) == (2, 2, True, "talks: 2 cases in 2 subsets, with --limit 2")
    assert ended(None) == (3, None, True, "talks: 3 cases in 3 subsets")
    assert ended(1) == (3, None, True, "talks: 3 cases in 3 subsets")  # all of them are there


def test_a_run_that_was_stopped_says_so(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(talks(), open_system("recency"), data, tmp_path / "out", limit=1)
    run_case = running.run_case

    def stopped(system: Any, case: Case, subset: str, budgets: Any) -> CaseResult:
        if subset == "c":
            raise KeyboardInterrupt
        return run_case(system, case, subset, budgets)

    monkeypatch.setattr(running, "run_case", stopped)
    with pytest.raises(KeyboardInterrupt):
        run(talks(), open_system("recency"), data, tmp_path / "out")
    (found,) = read_runs(tmp_path / "out")
    assert (len(found.results), found.is_finished) == (2, False)
    assert summary([report(found)]) == "talks: 2 cases in 2 subsets, not finished"
    monkeypatch.setattr(running, "run_case", run_case)
    whole = run(talks(), open_system("fts5"), data, tmp_path / "out")
    said = summary([report(whole), report(found)])
    assert said == "talks: 2 to 3 cases in 2 to 3 subsets; recency not finished"


# --- a folder ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", [{"data": "d2"}, {"options": {"split": "s"}}, {"scoring": "s2"}])
def test_runs_on_other_cases_do_not_share_a_table(tmp_path: Path, other: dict[str, Any]) -> None:
    write(tmp_path / "1.jsonl", {**HEADER, "system": "fts5"}, "a", at=100)
    write(tmp_path / "2.jsonl", HEADER, "a", at=200)
    write(tmp_path / "3.jsonl", {**HEADER, "suite": "code"}, "a", at=300)
    write(tmp_path / "4.jsonl", {**HEADER, **other}, "a", at=50)
    assert [run.path.name for run in read_runs(tmp_path)] == ["3.jsonl", "2.jsonl", "1.jsonl"]
    os.utime(tmp_path / "4.jsonl", (400, 400))
    assert [run.path.name for run in read_runs(tmp_path)] == ["3.jsonl", "4.jsonl"]


def test_other_files_of_a_folder_are_ignored(tmp_path: Path) -> None:
    write(tmp_path / "rows.jsonl", HEADER, "a")
    for n, text in enumerate(("", "{}\n", "[1]\n", "words\n", json.dumps(HEADER) + "\n", '{"format": 1, "su')):
        (tmp_path / f"{n}.jsonl").write_text(text)
    (tmp_path / "bytes.jsonl").write_bytes(b"\xff\xfe\n")
    assert [run.path.name for run in read_runs(tmp_path)] == ["rows.jsonl"]
    (tmp_path / "rows.jsonl").unlink()
    with pytest.raises(NotFound, match="contains no runs"):
        read_runs(tmp_path)
    with pytest.raises(NotFound, match="There is no run"):
        read_run(tmp_path / "gone.jsonl")


@pytest.mark.parametrize(
    ("old", "new"),
    [('"100"', '"soon"'), ('"by_budget"', '"by_price"'), ('"tokens": 9', '"token": 9'), ('{"subset"', '"subset"')],
)
def test_a_line_that_cannot_be_read_is_damage(tmp_path: Path, old: str, new: str) -> None:
    path = write(tmp_path / "rows.jsonl", HEADER, "a")
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(InputError, match="damaged at line 2"):
        read_run(path)


def test_skipped_cases_are_stored_and_reported(data: Path, tmp_path: Path) -> None:
    def subsets(path: Path, options: Any) -> Iterator[Subset]:
        yield Subset("none", lambda: Dataset([], skipped_cases=2))
        case = Case("1", "What is the cat called?", (EvidenceText("t", "Minka"),))
        yield Subset("one", lambda: Dataset([case], [Document(id="t", text="Minka")], skipped_cases=1))

    found = run(talks(subsets=subsets), open_system("recency"), data, tmp_path / "out")
    assert (found.skipped_cases, read_run(found.path).skipped_cases, read_run(found.path).is_finished) == (3, 3, True)
    assert summary([report(read_run(found.path))]) == "talks: 1 case in 1 subset, 3 skipped"
    assert as_json(report(found))["skipped_cases"] == 3


def test_a_run_without_results_leaves_no_file(data: Path, tmp_path: Path) -> None:
    run(talks(subsets=lambda path, options: iter(())), open_system("recency"), data, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []

    def fails(path: Path, options: Any) -> Iterator[Subset]:
        raise InputError("no")

    with pytest.raises(InputError, match="no"):
        run(talks(subsets=fails), open_system("recency"), data, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_two_subsets_with_one_name_are_an_error(data: Path, tmp_path: Path) -> None:
    suite = talks(subsets=lambda path, options: iter([Subset("a", lambda: Dataset([]))] * 2))
    with pytest.raises(InputError, match="contains 'a' twice"):
        run(suite, open_system("recency"), data, tmp_path / "out")


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    for text in ("", "[]\n", "{}\n", json.dumps({**HEADER, "format": 9}) + "\n"):
        path.write_text(text)
        with pytest.raises(InputError, match="is not a run"):
            read_run(path)
