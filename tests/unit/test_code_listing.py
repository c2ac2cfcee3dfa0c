"""Git's list of files is kept only as long as git would say the same."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from foveate.code import git_files


def run(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e", *arguments], cwd=root, check=True, capture_output=True)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository inside of which a subfolder is listed: rules may stand above it."""
    monkeypatch.setattr(git_files, "MTIME_GRANULARITY_NS", 0)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    (tmp_path / "settings" / "git").mkdir(parents=True)
    top = tmp_path / "top"
    root = top / "sub"
    for name in ("a.py", "one/b.py", "one/two/c.py", "empty/deep/", "only/x.log", "out/o.o"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir()
        else:
            path.write_text("x")
    (top / ".gitignore").write_text("*.log\nout/\n")
    run(top, "init", "--quiet")
    run(top, "add", "sub/a.py", "sub/one")
    return root


def names(root: Path) -> list[str]:
    answer = git_files.list_files(str(root))
    assert answer.code == 0
    return sorted(os.fsdecode(answer.stdout).split("\0")[:-1])


def tick() -> None:
    """File systems count time in steps of some milliseconds."""
    time.sleep(0.012)


def settle(root: Path) -> list[str]:
    tick()
    names(root)
    return names(root)


def without_git(root: Path, monkeypatch: pytest.MonkeyPatch) -> int | None:
    with monkeypatch.context() as patch:
        patch.setenv("PATH", "")
        return git_files.list_files(str(root)).code


def test_a_list_that_came_twice_is_kept(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tick()
    assert names(root) == ["a.py", "one/b.py", "one/two/c.py"]
    assert without_git(root, monkeypatch) is None
    settle(root)
    assert without_git(root, monkeypatch) == 0


def test_a_list_is_not_kept_for_long(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(root)
    monkeypatch.setattr(git_files, "MAX_CACHE_AGE_S", -1.0)
    assert without_git(root, monkeypatch) is None


def test_what_was_just_changed_is_looked_at_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_files, "MTIME_GRANULARITY_NS", 60_000_000_000)
    settle(root)
    assert without_git(root, monkeypatch) is None


def timeless(folder: Path, name: str) -> None:
    """As `touch -r` and unpackers do."""
    before = folder.stat()
    (folder / name).write_text("x")
    os.utime(folder, ns=(before.st_atime_ns, before.st_mtime_ns))


CHANGES: dict[str, tuple[Callable[[Path], object], str, bool]] = {
    "a file at the top": (lambda root: (root / "new.py").write_text("x"), "new.py", True),
    "a file in a folder": (lambda root: (root / "one/two/new.py").write_text("x"), "one/two/new.py", True),
    "a file in an empty folder": (lambda root: (root / "empty/deep/new.py").write_text("x"), "empty/deep/new.py", True),
    "a file beside ignored ones": (lambda root: (root / "only/new.py").write_text("x"), "only/new.py", True),
    "a rule, in place": (lambda root: (root.parent / ".gitignore").write_text("out/\n"), "only/x.log", True),
    "a rule of the repository": (
        lambda root: (root.parent / ".git/info/exclude").write_text("untracked.py"),
        "untracked.py",
        False,
    ),
    "a rule of the user": (
        lambda root: (root.parents[1] / "settings/git/ignore").write_text("untracked.py"),
        "untracked.py",
        False,
    ),
    "a rule in a file that the settings name": (
        lambda root: (root.parents[1] / "more").write_text("untracked.py"),
        "untracked.py",
        False,
    ),
    "a file, and the old time given back": (lambda root: timeless(root / "one", "new.py"), "one/new.py", True),
    "a file taken out of git": (lambda root: run(root, "rm", "-f", "--quiet", "one/two/c.py"), "one/two/c.py", False),
    "an ignored file added by force": (lambda root: run(root, "add", "-f", "out/o.o"), "out/o.o", True),
    "a folder that is removed": (lambda root: shutil.rmtree(root / "loose"), "loose/l.py", False),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_seen(root: Path, change: str) -> None:
    (root / "untracked.py").write_text("x")
    (root / "loose").mkdir()
    (root / "loose/l.py").write_text("x")
    if "settings name" in change:
        run(root, "config", "core.excludesFile", str(root.parents[1] / "more"))
    act, path, there = CHANGES[change]
    before = settle(root)
    assert (path in before) is not there
    tick()
    act(root)
    assert (path in names(root)) is there


def test_what_is_ignored_below_an_untracked_folder_is_not_looked_at(root: Path) -> None:
    (root / "loose" / "out" / "deep").mkdir(parents=True)
    (root / "loose" / "l.py").write_text("x")
    settle(root)
    (kept,) = [kept for (folder, _), kept in git_files._listing_cache.items() if folder == str(root)]
    assert f"{root}/loose" in kept.stamps
    assert f"{root}/loose/out" not in kept.stamps


def test_rules_above_a_root_that_is_a_link_are_looked_at(root: Path) -> None:
    (root / "z.log").write_text("x")
    link = root.parents[1] / "link"
    link.symlink_to(root)
    assert "z.log" not in settle(link)
    tick()
    (root.parent / ".gitignore").write_text("out/\n")
    assert "z.log" in names(link)


@pytest.mark.parametrize("seed", range(5))
def test_it_is_what_git_says_after_anything(root: Path, seed: int) -> None:
    rng = random.Random(seed)
    folders = ["", "one/", "one/two/", "empty/", "empty/deep/", "only/", "out/", "fresh/", "fresh/er/"]
    for n in range(25):
        tick()
        folder, file = root / rng.choice(folders), f"{rng.choice('abc')}.{rng.choice(('py', 'log'))}"
        act = rng.randrange(6)
        if act == 0:
            folder.mkdir(parents=True, exist_ok=True)
        elif act == 1 and folder.is_dir():
            (folder / file).write_text(str(n))
        elif act == 2:
            (folder / file).unlink(missing_ok=True)
        elif act == 3 and folder.is_dir():
            (folder / ".gitignore").write_text(rng.choice(["*.log\n", "!*.log\n", "b.*\n"]))
        elif act == 4:
            run(root, "add", "--all")
        elif act == 5 and folder not in (root, root / "one"):
            shutil.rmtree(folder, ignore_errors=True)
        for _ in range(rng.randrange(4)):
            assert names(root) == sorted(os.fsdecode(git_files._run_ls_files(str(root), "").stdout).split("\0")[:-1])
