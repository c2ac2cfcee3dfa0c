"""Arguments of the command line that are no text, and no name of a file, are refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from redteam_kit import foveate

import foveate as library
from cli_kit import document, refused, run


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    library.open(tmp_path, personal=False, code=False).close()


@pytest.mark.parametrize("option", ["user", "project", "agent"])
@pytest.mark.parametrize("text", ["\udcff", "a\x00b"])
def test_a_name_that_is_no_text_is_refused_and_not_stored(option: str, text: str) -> None:
    assert f"{option} " in refused(run("token", "create", "ci", f"--{option}={text}"), 2)
    assert document("token")["tokens"] == []


@pytest.mark.parametrize("words", [("doctor", "--accept={}"), ("store", "export", "{}"), ("store", "import", "{}")], ids=str)
@pytest.mark.parametrize("text", ["\ud800", "a\x00b"])
def test_a_path_that_no_file_can_have_is_refused(words: tuple[str, ...], text: str) -> None:
    refused(run(*(word.format(text) for word in words)), 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [("search", "\udcff"), ("add", "fact", "\udcff"), ("token", "create", "x", "--user", "\udcff")]
)
def test_bytes_that_are_no_text_leave_no_traceback(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = foveate(tmp_path, *words)
    assert done.returncode in (0, 1, 2, 3, 4, 5)
    assert "Traceback" not in done.stderr
