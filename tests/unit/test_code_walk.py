"""Which files are indexed: by git and without it, what is set aside, what a file is for, and waiting for changes."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from foveate import InputError
from foveate.code.exclusions import exclusion_by_name, exclusion_by_text, is_binary
from foveate.code.roles import role_of
from foveate.code.walk import WalkResult, walk

IDENTITY = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "protocol.file.allow=always")


def git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *IDENTITY, *arguments], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def write(root: Path, *paths: str, text: str = "x = 1\n") -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


def repository(root: Path, *paths: str) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q")
    write(root, *paths)
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", "first")
    return root


def paths(walked: WalkResult) -> list[str]:
    return [found.path for found in walked.files]


def reasons(walked: WalkResult) -> dict[str, str]:
    return {entry.path: entry.reason for entry in walked.exclusions}


# --- by git ------------------------------------------------------------------------------------------------------------


def test_git_lists_tracked_and_new_files_without_ignored_and_deleted_ones(tmp_path: Path, home: Path) -> None:
    root = repository(tmp_path, "a.py", "gone.py", "pkg/b.py")
    write(root, "new.py", "pkg/scratch.tmp", "local/x.py", "mine.swp", ".foveate/store.json")
    write(root, ".gitignore", text="*.tmp\n")
    write(root, ".git/info/exclude", text="local/\n")
    write(home, ".config/git/ignore", text="*.swp\n")
    (root / "gone.py").unlink()
    walked = walk(root)
    assert paths(walked) == [".gitignore", "a.py", "new.py", "pkg/b.py"]
    assert walked.used_git
    assert walked.exclusions == walked.notes == ()
    found = walked.files[1]
    assert (found.size, found.mtime_ns) == (6, (root / "a.py").stat().st_mtime_ns)


def test_a_subfolder_and_a_linked_worktree_are_roots_of_their_own(tmp_path: Path) -> None:
    root = repository(tmp_path / "main", "a.py", "pkg/b.py")
    git(root, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    git(root, "worktree", "add", "-q", "-b", "inner", str(root / "trees/inner"))
    write(tmp_path / "side", "only_here.py")
    assert paths(walk(root / "pkg")) == ["b.py"]
    assert paths(walk(tmp_path / "side")) == ["a.py", "only_here.py", "pkg/b.py"]
    walked = walk(root)
    assert paths(walked) == ["a.py", "pkg/b.py"]
    assert reasons(walked) == {"trees/inner/": "another worktree"}


@pytest.mark.slow
def test_submodules_are_listed_and_an_empty_one_is_named(tmp_path: Path) -> None:
    deep = repository(tmp_path / "deep", "deep.py")
    lib = repository(tmp_path / "lib", "lib.py")
    git(lib, "submodule", "--quiet", "add", str(deep), "deep")
    git(lib, "commit", "-q", "-m", "deep")
    root = repository(tmp_path / "root", "a.py")
    git(root, "submodule", "--quiet", "add", str(lib), "libs/lib")
    git(root, "submodule", "--quiet", "add", str(deep), "empty")
    git(root, "submodule", "--quiet", "update", "--init", "--recursive")
    write(root, "libs/lib/new.py")
    git(root, "submodule", "--quiet", "deinit", "-f", "empty")
    walked = walk(root)
    assert paths(walked) == [
        ".gitmodules", "a.py", "libs/lib/.gitmodules", "libs/lib/deep/deep.py", "libs/lib/lib.py", "libs/lib/new.py",
    ]  # fmt: skip
    assert walked.notes == ("The submodule empty/ has no files: it is not initialised.",)


def test_git_that_cannot_answer_leaves_a_note_and_the_folders_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = repository(tmp_path, "a.py", "b.log")
    write(root, ".gitignore", text="*.log\n")
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")  # git's own switch for a repository of somebody else
    walked = walk(root)
    assert not walked.used_git
    assert paths(walked) == [".gitignore", "a.py"]
    assert "dubious ownership" in walked.notes[0]
    monkeypatch.setenv("PATH", "")
    assert "could not be run" in walk(root).notes[0]


def test_a_repository_that_a_hook_points_at_is_not_taken_for_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = repository(tmp_path / "other", "other.py")
    root = repository(tmp_path / "root", "a.py")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git/index"))
    assert paths(walk(root)) == ["a.py"]


def test_a_root_that_git_ignores_is_read_all_the_same(tmp_path: Path) -> None:
    repository(tmp_path, "a.py")
    write(tmp_path, "scratch/b.py")
    write(tmp_path, ".gitignore", text="scratch/\n")
    walked = walk(tmp_path / "scratch")
    assert (paths(walked), walked.used_git) == (["b.py"], False)


def test_a_root_that_is_not_there_gives_a_note(tmp_path: Path) -> None:
    walked = walk(tmp_path / "nowhere")
    assert walked.files == ()
    assert "nowhere" in walked.notes[0]


# --- with and without git ----------------------------------------------------------------------------------------------


@pytest.fixture(params=["git", "folders"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    if request.param == "git":
        git(folder, "init", "-q")
    return folder


def test_links_are_not_followed(root: Path, tmp_path: Path) -> None:
    write(root, "a.py", "pkg/b.py")
    write(tmp_path, "outside/secret.py")
    (root / "loop").symlink_to(root, target_is_directory=True)
    (root / "pkg/up").symlink_to("..", target_is_directory=True)
    (root / "again.py").symlink_to("a.py")
    (root / "out").symlink_to(tmp_path / "outside", target_is_directory=True)
    walked = walk(root)
    assert paths(walked) == ["a.py", "pkg/b.py"]
    assert reasons(walked) == dict.fromkeys(["loop", "pkg/up", "again.py", "out"], "symbolic link")


def test_a_folder_that_became_a_link_takes_its_tracked_files_with_it(tmp_path: Path) -> None:
    root = repository(tmp_path / "root", "a.py", "pkg/b.py")
    (root / "pkg").rename(tmp_path / "moved")
    (root / "pkg").symlink_to(tmp_path / "moved", target_is_directory=True)
    assert paths(walk(root)) == ["a.py"]


def test_pipes_sockets_and_odd_names_break_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, "a.py", "quo\"te's.py", "ünï cödé.py", "new\nline.py", "right\u202eleft.py")
    (root / os.fsdecode(b"bad\xff.py")).write_text("x", encoding="utf-8")
    os.mkfifo(root / "pipe.py")
    monkeypatch.chdir(root)  # a socket's path must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("wire.py")
        walked = walk(root)
    assert paths(walked) == ["a.py", "quo\"te's.py", "ünï cödé.py"]
    found = reasons(walked)
    assert found["new\\nline.py"] == found["right\\u202eleft.py"] == "its name has control characters"
    assert found["bad\\udcff.py"] == "its name is not UTF-8"
    if not walked.used_git:  # git does not list what it could not keep
        assert (found["pipe.py"], found["wire.py"]) == ("pipe", "socket")


def test_a_closed_folder_is_set_aside(root: Path) -> None:
    write(root, "a.py", "closed/b.py")
    (root / "closed").chmod(0)
    try:
        may_read = os.access(root / "closed", os.R_OK)
        walked = walk(root)
    finally:
        (root / "closed").chmod(0o755)
    assert paths(walked) == (["a.py", "closed/b.py"] if may_read else ["a.py"])
    assert reasons(walked) == ({} if may_read else {"closed/": "permission denied"})


def test_virtual_environments_and_vendored_folders_are_one_entry_each(root: Path) -> None:
    write(root, "a.py", "env/pyvenv.cfg", "env/lib/x.py", "node_modules/x/index.js", "node_modules/y/index.js")
    walked = walk(root)
    assert paths(walked) == ["a.py"]
    assert any(reason.startswith("vendored") for path, reason in reasons(walked).items() if path == "node_modules/")
    assert set(reasons(walked).values()) >= {"virtual environment"}


def test_include_brings_back_and_exclude_leaves_out(root: Path) -> None:
    write(
        root, "a.py", "b.py", "node_modules/x/index.js", "node_modules/y/index.js", "made/api.py", "made/other.txt", ".env"
    )
    write(root, ".gitignore", text="made/\n")
    walked = walk(root, include=["node_modules/x/", "made/*.py", ".env"], exclude=["b.*"])
    assert paths(walked) == [".gitignore", "a.py", "made/api.py", "node_modules/x/index.js"]
    assert reasons(walked)["b.py"] == "excluded"
    assert reasons(walked)[".env"] == "may hold secrets"


def test_a_pattern_that_cannot_be_read_is_the_callers_error(root: Path) -> None:
    with pytest.raises(InputError, match="pattern"):
        walk(root, exclude=["!"])


def test_over_the_limit_sources_stay_and_the_rest_is_counted(root: Path) -> None:
    write(root, *(f"data/{n:02}.json" for n in range(30)), *(f"pkg/{n}.py" for n in range(5)), "docs/guide.md")
    walked = walk(root, max_files=6)
    assert paths(walked) == ["docs/guide.md", *(f"pkg/{n}.py" for n in range(5))]
    assert reasons(walked) == {"data/": "over the limit of 6, 30 files"}
    assert walk(root, max_files=6) == walked


def test_a_long_list_of_what_is_set_aside_is_summed_up(root: Path) -> None:
    write(root, "a.py", *(f"img/{n:04}.png" for n in range(1001)))
    assert reasons(walk(root)) == {"img/": "binary, 1,001 files"}


def test_a_walk_says_the_same_again_whether_the_list_is_remembered_or_too_long_for_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(
        root, "a.py", "b.py", "node_modules/x/index.js", "node_modules/y/index.js", "logo.png", "odd\x07.py", "a\u00a0b.png"
    )
    write(root, "large.py", "node_modules/large.js", "asked/large.py", text="x = 1\n" * 200_000)
    first = walk(root, include=["asked/"], exclude=["b.*"])
    said = {
        "b.py": "excluded",
        "logo.png": "binary",
        "a\u00a0b.png": "binary",
        "odd\\x07.py": "its name has control characters",
    }
    large = dict.fromkeys(["large.py", "asked/large.py"], "larger than 1,000,000 bytes")
    assert {path: reason for path, reason in reasons(first).items() if path != "node_modules/"} == said | large
    assert walk(root, include=["asked/"], exclude=["b.*"]) == first
    monkeypatch.setattr("foveate.code.walk.MAX_CACHED_BYTES", 0)
    assert walk(root, include=["asked/"], exclude=["b.*"]) == first


# --- without git -------------------------------------------------------------------------------------------------------

IGNORED = [
    {".gitignore": "*.log\n!keep.log\n/top.py\nsub/only.py\n# a comment\n\\#odd.py\n"},
    {".gitignore": "build\n!/src\n", "src/.gitignore": "!build\n"},
    {".gitignore": "*\n!*/\n!*.py\n"},
    {".gitignore": "a/*\n!a/b/\n", "a/b/.gitignore": "*.txt\n!c.txt\n"},
    {".gitignore": "sub/\n", "sub/.gitignore": "!only.py\n"},
    {".gitignore": "a/**\n!a/b\n!a/b/c.txt\n", "src/.gitignore": "**/build\n[ab].py\n"},
    {".gitignore": "a.py \n?.txt\n*.py/\n/*/b\n", "a/.gitignore": "/b/c.txt\n!b/\n"},
]


@pytest.mark.parametrize("rules", IGNORED)
def test_the_walk_without_git_ignores_what_git_ignores(rules: dict[str, str], tmp_path: Path) -> None:
    write(
        tmp_path, "a.py", "top.py", "x.log", "keep.log", "#odd.py", "sub/only.py", "sub/top.py", "sub/x.log", "a/b/c.txt",
        "a/b/d.txt", "a/b/e.py", "a/f.py", "src/build/g.py", "src/a.py", "src/x/build/h.txt", "build/i.py", "b/j.py",
        "c.txt",
    )  # fmt: skip
    for path, text in rules.items():
        write(tmp_path, path, text=text)
    without = walk(tmp_path)
    git(tmp_path, "init", "-q")
    by_git = walk(tmp_path)
    assert (without.used_git, by_git.used_git) == (False, True)
    assert paths(without) == paths(by_git)
    listed = git(tmp_path, "ls-files", "--others")
    ignored = subprocess.run(
        ["git", "check-ignore", "--stdin"], cwd=tmp_path, input=listed, capture_output=True, text=True, check=False
    ).stdout.split()
    assert set(paths(without)) == set(listed.split()) - set(ignored)


def test_build_outputs_are_left_out_but_not_a_package_of_that_name(tmp_path: Path) -> None:
    write(tmp_path, "pyproject.toml", "build/lib/a.py", "pkg/build/b.py", "tool/setup.py", "tool/build/__init__.py")
    walked = walk(tmp_path)
    assert paths(walked) == ["pkg/build/b.py", "pyproject.toml", "tool/build/__init__.py", "tool/setup.py"]
    assert reasons(walked) == {"build/": "build output"}


# --- what names and contents tell --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("web/package-lock.json", "lock file"),
        ("Cargo.lock", "lock file"),
        ("go.sum", "lock file"),
        ("vendor/github.com/x/y.go", "vendored"),
        ("app/static/vendor/jquery.js", "vendored"),
        ("web/node_modules/a/b.ts", "vendored"),
        ("ios/Pods/A/b.m", "vendored"),
        ("static/app.min.js", "minified"),
        ("static/app.js.map", "minified"),
        ("logo.PNG", "binary"),
        ("model.safetensors", "binary"),
        ("locale/de/django.po", "translation"),
        ("deploy/.env", "may hold secrets"),
        (".env.production", "may hold secrets"),
        ("prod.env", "may hold secrets"),
        ("certs/server.key", "may hold secrets"),
        ("home/id_rsa", "may hold secrets"),
        ("id_ed25519.pub", "may hold secrets"),
        (".netrc", "may hold secrets"),
        ("credentials-prod.json", "may hold secrets"),
        ("x/.aws/credentials", "may hold secrets"),
        ("infra/terraform.tfstate.backup", "may hold secrets"),
        ("pkg/vendor.py", ""),
        ("shop/vendor/models.py", ""),
        ("lock/lock.py", ""),
        ("src/lockfile.go", ""),
        ("build/builder.py", ""),
        ("django/core/files/locks.py", ""),
        ("pkg/api/pods/list.go", ""),
        ("app/secrets.py", ""),
        (".env.example", ""),
        ("sample.env", ""),
        ("src/keys.ts", ""),
        ("src/minify.js", ""),
        ("credentials.py", ""),
    ],
)
def test_names_tell_what_is_set_aside(path: str, reason: str) -> None:
    assert exclusion_by_name(path, 100) == reason


def test_sizes_tell_what_is_set_aside() -> None:
    assert exclusion_by_name("src/big.py", 1_000_001) == "larger than 1,000,000 bytes"
    assert exclusion_by_name("rows.csv", 200_001) == "large data file"
    assert exclusion_by_name("src/long.py", 200_001) == exclusion_by_name("rows.csv", 200_000) == ""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("// Code generated by protoc-gen-go. DO NOT EDIT.\npackage x\n", "generated"),
        ("/*\n * Copyright\n *\n * @generated by tool\n */\nlet a\n", "generated"),
        ('"""This file was automatically\ngenerated by x."""\n', "generated"),
        ("<!-- This file is auto-generated -->\n<a/>\n", "generated"),
        ("# DO NOT EDIT! Generated from x.in\n", "generated"),
        ('"""Tells `@generated` files from others."""\n', ""),
        ("# Generated by Django 4.2 on 2024-01-01\nclass Migration: ...\n", ""),
        ('MARK = "Code generated by x. DO NOT EDIT."\n', ""),
        ("x = 1\n" * 30 + "# @generated\n", ""),
        ("# The SQL code is generated when a table is made.\n", ""),
        ("a=1;" * 2000, "minified"),
        ("var a = 1;\n" * 2000, ""),
    ],
)
def test_contents_tell_what_is_set_aside(text: str, reason: str) -> None:
    assert exclusion_by_text("x.js", text) == reason
    assert not is_binary(text.encode())


def test_a_paragraph_on_one_line_is_not_minified() -> None:
    assert exclusion_by_text("x.md", "word " * 2000) == ""


def test_bytes_tell_what_is_binary() -> None:
    assert is_binary(b"a\x00b\n")
    assert not is_binary("wörter".encode("utf-16"))


@pytest.mark.parametrize(
    ("path", "role"),
    [
        ("django/test/client.py", "source"),
        ("numpy/testing/utils.py", "source"),
        ("src/pytest_plugin.py", "source"),
        ("django/core/management/commands/test.py", "source"),
        ("botocore/docs/method.py", "source"),
        ("src/main/java/Latest.java", "source"),
        ("pkg/PodSpec.kt", "source"),
        ("api/job_spec.go", "source"),
        ("lib/contest.rb", "source"),
        ("numpy/core/tests/test_x.py", "test"),
        ("tests/helpers.py", "test"),
        ("test/data.json", "test"),
        ("pkg/test_x.py", "test"),
        ("pkg/conftest.py", "test"),
        ("pkg/x_test.go", "test"),
        ("web/x.spec.ts", "test"),
        ("web/__tests__/x.tsx", "test"),
        ("core/src/test/java/Helper.java", "test"),
        ("core/FooTest.java", "test"),
        ("spec/models/user.rb", "test"),
        ("lib/user_spec.rb", "test"),
        ("packages/core/test/x.js", "test"),
        ("Foo.Tests/Helper.cs", "test"),
        ("benches/speed.rs", "test"),
        ("docs/conf.py", "docs"),
        ("src/README.md", "docs"),
        ("LICENSE", "docs"),
        ("examples/hello.py", "example"),
        ("api/x_pb2.py", "generated"),
        ("lib/x.g.dart", "generated"),
        ("pip/_vendor/six.py", "vendored"),
        ("astropy/extern/ply.py", "vendored"),
        ("pyproject.toml", "config"),
        (".github/workflows/ci.yml", "config"),
        ("requirements-dev.txt", "config"),
        ("src/requirements.py", "source"),
        ("web/vite.config.ts", "config"),
        ("assets/cities.json", "data"),
        ("install", "source"),
        ("main.go", "source"),
    ],
)
def test_paths_tell_what_a_file_is_for(path: str, role: str) -> None:
    assert role_of(path) == role
