"""What git remembers: when files changed, how often, and which of them together."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from foveate.code.git_history import HALF_LIFE_S, MAX_FILES_CO_CHANGED, GitHistory, loads, read_git_history

START = 1_700_000_000


def git(root: Path, *arguments: str, at: int = START) -> str:
    dates = {"GIT_AUTHOR_DATE": f"{at} +0000", "GIT_COMMITTER_DATE": f"{at} +0000"}
    command = ["git", "-c", "user.name=Ann", "-c", "user.email=ann@example.org", *arguments]
    return subprocess.run(
        command, cwd=root, check=True, capture_output=True, text=True, env=os.environ | dates
    ).stdout.strip()


def commit(root: Path, *paths: str, at: int) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        with (root / path).open("a") as file:
            file.write("line\n")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "change", at=at)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    commit(folder, "a.py", "b.py", "pkg/c.py", "old.py", at=START)
    commit(folder, "a.py", "b.py", at=START + 10)
    commit(folder, "a.py", "pkg/c.py", at=START + 10 + HALF_LIFE_S)
    commit(folder, *(f"many/{n}.py" for n in range(MAX_FILES_CO_CHANGED)), "a.py", at=START + 20 + HALF_LIFE_S)
    return folder


def head(root: Path) -> str:
    return git(root, "rev-parse", "HEAD")


def test_files_have_a_last_change_and_a_number_of_changes_that_fades(root: Path) -> None:
    known = read_git_history(root, head(root))
    assert (known.last_commit_time["a.py"], known.last_commit_time["b.py"]) == (START + 20 + HALF_LIFE_S, START + 10)
    assert known.weighted_changes["a.py"] == pytest.approx(2.5, abs=0.001)
    assert known.weighted_changes["b.py"] == pytest.approx(0.5, abs=0.001)
    assert "old.py" not in known.last_commit_time  # only in the first commit, which imports everything


def test_files_that_change_together_are_found_and_recent_changes_count_more(root: Path) -> None:
    together = read_git_history(root, head(root)).co_changed("a.py")
    assert list(together) == ["pkg/c.py", "b.py"]  # the commit over many files does not count
    assert 1 >= together["pkg/c.py"] > together["b.py"] > 0
    assert read_git_history(root, head(root)).co_changed("nowhere.py") == {}


def test_names_are_kept_as_they_are_and_merges_do_not_count(root: Path) -> None:
    git(root, "checkout", "-q", "-b", "side")
    commit(root, "ünï cödé.py", 'quo"te.py', at=START + 30 + HALF_LIFE_S)
    git(root, "checkout", "-q", "main")
    commit(root, "d.py", at=START + 40 + HALF_LIFE_S)
    git(root, "merge", "-q", "--no-ff", "-m", "merge", "side", at=START + 50 + HALF_LIFE_S)
    known = read_git_history(root, head(root))
    assert list(known.co_changed('quo"te.py')) == ["ünï cödé.py"]
    assert max(known.last_commit_time.values()) == START + 40 + HALF_LIFE_S


def test_a_subfolder_has_paths_of_its_own(root: Path) -> None:
    assert set(read_git_history(root / "pkg", head(root)).last_commit_time) == {"c.py"}


def test_the_number_of_commits_is_bounded(root: Path) -> None:
    assert len(read_git_history(root, head(root), limit=2).commits) == 2


def test_a_history_is_packed_and_unpacked(root: Path) -> None:
    known = read_git_history(root, head(root))
    again = loads(known.dumps())
    assert again == known
    assert (again.last_commit_time, again.weighted_changes, again.co_changed("a.py")) == (
        known.last_commit_time,
        known.weighted_changes,
        known.co_changed("a.py"),
    )


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[]", b"\xff", b'{"paths": [], "commits": [[1, 5]]}', b'{"paths": 1, "commits": [1]}']
)
def test_what_is_no_history_is_an_empty_one(data: bytes) -> None:
    assert loads(data) == GitHistory()


def test_a_shallow_clone_knows_nothing_of_its_oldest_commit(root: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{root}", "shallow")
    assert read_git_history(tmp_path / "shallow", head(tmp_path / "shallow")) == GitHistory()


@pytest.mark.parametrize("commit_id", ["", "--output=x", "0" * 40, "HEAD~1"])
def test_what_is_no_commit_gives_nothing(commit_id: str, root: Path) -> None:
    assert read_git_history(root, commit_id) == GitHistory()
    assert not (root / "x").exists()


def test_without_a_repository_there_is_no_history(tmp_path: Path) -> None:
    assert read_git_history(tmp_path, "0" * 40) == read_git_history(tmp_path / "nowhere", "0" * 40) == GitHistory()
