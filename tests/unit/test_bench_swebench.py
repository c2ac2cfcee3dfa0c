"""The scorer of the code benches: what counts as found, as shown whole, as named, and as over its budget."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from bench.baselines import bm25, greedy
from bench.localisation import functions, is_test, score, shown_functions
from bench.swebench import changes, checkout, summary

from foveate import tokens

SOURCE = '''class Box:
    @property
    def size(self):
        """How much fits."""

        return self.width * self.height

    def grow(self, by,
             twice=False):
        def inner():
            return by
        return inner()
'''
FILES = {"pkg/box.py": SOURCE, "pkg/other.py": "def size(self):\n    pass\n"}
WHOLE = '# pkg/box.py\ndef size(self):\n    """How much fits."""\n    return self.width * self.height\n'


def test_functions_are_named_by_what_encloses_them_and_start_at_def():
    found = {function.name: (function.line, function.end) for function in functions(SOURCE)}
    assert found == {"Box.size": (3, 6), "Box.grow": (8, 12), "Box.grow.inner": (10, 11)}
    assert functions("def broken(:") == ()


@pytest.mark.parametrize(
    ("path", "test"),
    [
        ("pkg/tests/x.py", True),
        ("pkg/test_x.py", True),
        ("conftest.py", True),
        ("pkg/testimony.py", False),
        ("pkg/x.py", False),
    ],
)
def test_tests_are_known_by_folder_and_name(path, test):
    assert is_test(path) is test


@pytest.mark.parametrize(
    ("gold", "text", "whole", "named"),
    [
        ("pkg/box.py::Box.size", WHOLE, 1, 1),
        (
            "pkg/box.py::Box.size",
            "\n".join(f"{n:4}| {line}" for n, line in enumerate(WHOLE.split("\n"))) + "\npkg/box.py",
            1,
            1,
        ),
        ("pkg/box.py::Box.size", WHOLE.replace("    return self.width * self.height\n", ""), 0, 1),
        ("pkg/box.py::Box.size", WHOLE.replace("pkg/box.py", "lib/pkg/box.py"), 0, 0),
        ("pkg/box.py::Box.grow", "pkg/box.py: def grow(self, by, twice=False)", 0, 1),
        ("pkg/box.py::Box.grow", "pkg/box.py: def shrink(self)", 0, 0),
    ],
)
def test_a_function_is_whole_with_all_its_lines_and_named_with_its_head(gold, text, whole, named):
    assert shown_functions([gold], FILES, text) == (whole, named)


def test_all_gold_must_be_among_the_first_k_and_tests_do_not_take_places():
    ranked = (["tests/test_box.py", "pkg/box.py", "pkg/other.py"], ["tests/test_box.py::test", "pkg/box.py::Box.size"])
    figures = score(FILES, ["pkg/box.py", "pkg/other.py"], ["pkg/box.py::Box.size"], ranked, {100: (WHOLE, 30)})
    assert (figures["file@1"], figures["file@3"], figures["function@5"]) == (0, 1, 1)
    assert (figures["file in 100"], figures["whole in 100"]) == (0.5, 1)
    assert not any(name.startswith("function") for name in score(FILES, ["pkg/box.py"], [], ranked, {}))


def test_a_summary_counts_only_issues_that_have_such_gold():
    rows = [{"figures": {"file@1": 1.0, "whole in 100": 0.5}}, {"figures": {"file@1": 0.0}}]
    assert summary(rows) == {"issues": 2, "file@1": 50.0, "whole in 100": 0.0, "whole in 100, part": 50.0}


def test_changes_name_what_was_won_and_lost():
    old = {"a": {"id": "a", "figures": {"file@1": 0.0}}, "b": {"id": "b", "figures": {"file@1": 1.0}}}
    new = [{"id": "a", "figures": {"file@1": 1.0}}, {"id": "b", "figures": {"file@1": 0.0}}]
    assert changes(old, new) == {"file@1": {"won": ["a"], "lost": ["b"]}}


def test_bm25_prefers_rare_words_and_leaves_out_what_shares_none():
    texts = {"a": "the walrus and the sea", "b": "the sea the sea", "c": "mountain"}
    assert bm25(texts, "the walrus") == ["a", "b"]


def test_a_greedy_pack_skips_what_does_not_fit_and_stays_within_its_budget():
    text = greedy([("long.py", "word " * 500), ("short.py", "x = 1")], 50)
    assert "short.py" in text
    assert "long.py" not in text
    assert tokens.count(text) <= 50


def test_a_checkout_moves_between_commits_and_leaves_equal_files_alone(tmp_path: Path):
    work, repos = tmp_path / "work", tmp_path / "repos"

    def git(*command: str) -> str:
        names = ["-c", "user.name=A", "-c", "user.email=a@example.com"]
        return subprocess.run(["git", "-C", str(work), *names, *command], check=True, capture_output=True, text=True).stdout

    work.mkdir()
    git("init", "--quiet")
    commits = []
    for files in ({"same.py": "1", "gone.py": "2"}, {"same.py": "1", "new/other.py": "3"}):
        git("rm", "-r", "--quiet", "--ignore-unmatch", ".")
        for name, text in files.items():
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            (work / name).write_text(text)
        git("add", ".")
        git("commit", "--quiet", "-m", "x")
        commits.append(git("rev-parse", "HEAD").strip())
    (repos / "a+b").mkdir(parents=True)
    git("clone", "--quiet", "--bare", ".", str(repos / "a+b" / "repo"))

    seen = []
    for commit in commits:
        root = checkout({"repo": "a/b", "base_commit": commit}, repos, tmp_path / "trees")
        names = sorted(path.relative_to(root).as_posix() for path in root.rglob("*.py"))
        seen.append((names, (root / "same.py").stat().st_mtime_ns))
    assert [names for names, _ in seen] == [["gone.py", "same.py"], ["new/other.py", "same.py"]]
    assert seen[0][1] == seen[1][1]
