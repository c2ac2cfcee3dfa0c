"""One rule decides which project a folder belongs to, for the library, the command line and the hooks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import foveate
from foveate.cli import cli
from foveate.integrations.hooks import program
from foveate.project import project
from foveate.project.locate import find_project


def new_project(folder: Path) -> Path:
    (folder / ".foveate").mkdir(parents=True)
    with foveate.open(folder, personal=False) as engine:
        engine.add("fact", f"The tea of {folder.name} is green")
    return folder


def git(folder: Path, *args: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    subprocess.run(["git", *identity, *args], cwd=folder, check=True, capture_output=True)


def root_for_hook(folder: Path) -> str:
    return program.root_of({"cwd": str(folder)})


def test_the_library_and_the_hooks_use_the_nearest_project(tmp_path: Path) -> None:
    outer, inner = new_project(tmp_path / "outer"), new_project(tmp_path / "outer" / "inner")
    below = inner / "src" / "deep"
    below.mkdir(parents=True)
    assert project.locate_project(below).root == inner
    assert root_for_hook(below) == str(inner)
    assert root_for_hook(outer) == str(outer)


def test_a_project_without_a_store_is_not_skipped_for_the_one_above_it(tmp_path: Path) -> None:
    outer = new_project(tmp_path / "outer")
    inner = outer / "inner"
    (inner / ".foveate").mkdir(parents=True)
    assert project.locate_project(inner).root == inner
    assert root_for_hook(inner) == ""


def test_a_folder_without_a_project_is_its_own_root(tmp_path: Path) -> None:
    assert find_project(str(tmp_path)) == (str(tmp_path), str(tmp_path))
    assert root_for_hook(tmp_path) == ""


@pytest.mark.parametrize("place", ["main/.worktrees/linked", "linked"])
def test_a_linked_worktree_has_its_own_files_and_the_state_of_the_main_one(tmp_path: Path, place: str) -> None:
    main, linked = tmp_path / "main", tmp_path / place
    main.mkdir()
    git(main, "init", "-q")
    git(main, "commit", "-q", "--allow-empty", "-m", "first")
    git(main, "worktree", "add", "-q", str(linked))
    new_project(main)
    assert find_project(str(linked)) == (str(main), str(linked))
    assert root_for_hook(linked) == str(main)


@pytest.mark.slow
def test_the_command_line_and_the_hooks_use_the_folder_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, other = new_project(tmp_path / "here"), new_project(tmp_path / "other")
    monkeypatch.setenv("FOVEATE_STORE", str(other))
    assert root_for_hook(here) == str(other)
    done = subprocess.run([sys.executable, "-m", "foveate", "search", "tea"], cwd=here, capture_output=True, check=True)
    assert b"tea of other" in done.stdout


@pytest.mark.parametrize("variable", ["FOVEATE_AGENT", "CLAUDECODE", "CODEX_THREAD_ID", "CURSOR_AGENT", "GEMINI_CLI"])
def test_records_that_an_agent_adds_in_its_shell_have_the_trust_of_an_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.chdir(new_project(tmp_path / "shop"))

    def run(*args: str, code: int = 0) -> str:
        result = CliRunner().invoke(cli, args)
        assert result.exit_code == code, result.output
        return result.stdout.split()[0] if not code else result.stderr

    by_person = run("add", "fact", "Redis runs on port 6379")
    monkeypatch.setenv(variable, "claude")
    by_agent = run("add", "procedure", "Release: tag, build, upload", "--set", "name=release")
    from_tool = run("add", "fact", "The build takes a minute", "--trust", "tool")
    assert "is for people" in run("add", "fact", "Tea is red", "--trust", "user", code=2)
    assert "Only a person" in run("inbox", "accept", from_tool, "--yes", code=2)
    run("edit", by_person, "--tag", "cache")
    with foveate.open(personal=False) as engine:
        assert [engine.get(id).trust for id in (by_person, by_agent, from_tool)] == ["user", "agent", "tool"]
    run("edit", by_person, "--text", "Redis runs on port 6380")
    with foveate.open(personal=False) as engine:
        assert engine.get(by_person).trust == "agent"
