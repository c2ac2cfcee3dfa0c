"""Suites on code: what counts as found, as shown whole and as named; checkouts; and data that is not what it should be."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from foveate.errors import FoveateError, InputError, NotFound
from foveate.eval.datasets import suite
from foveate.eval.datasets.swebench import Head, Line, checkout
from foveate.eval.evidence import Lines
from foveate.eval.model import Rendered
from foveate.eval.python_files import among, candidates, functions, is_test
from foveate.eval.run import run
from foveate.eval.systems import system

BOX = '''class Box:
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
WHOLE = '# pkg/box.py\ndef size(self):\n    """How much fits."""\n    return self.width * self.height\n'
NUMBERED = "\n".join(f"{n:4}| {line}" for n, line in enumerate(WHOLE.split("\n"))) + "\npkg/box.py"


def of(name: str) -> tuple[str, ...]:
    return tuple(function.source for function in functions(BOX) if function.name == name)


# --- Python files --------------------------------------------------------------------------------------------------


def test_functions_are_named_by_what_encloses_them_and_start_at_def():
    found = {function.name: (function.line, function.end) for function in functions(BOX)}
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


def test_what_may_not_be_an_answer_takes_no_place_and_nothing_takes_two():
    ranked = ["tests/test_box.py", "pkg/box.py", "README.md", "pkg/box.py", "pkg/other.py::size"]
    assert among(["pkg/box.py", "pkg/other.py"], ranked) == ["pkg/box.py", "pkg/other.py::size"]
    assert among([], ["a.py", "a.py", "b.py"]) == ["a.py", "b.py"]


# --- evidence ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "whole", "named"),
    [
        ("Box.size", WHOLE, True, True),
        ("Box.size", NUMBERED, True, True),
        ("Box.size", WHOLE.replace("    return self.width * self.height\n", ""), False, True),
        ("Box.size", WHOLE.replace("pkg/box.py", "lib/pkg/box.py"), False, False),
        ("Box.grow", "pkg/box.py: def grow(self, by, twice=False)", False, True),
        ("Box.grow", "pkg/box.py: def shrink(self)", False, False),
    ],
)
def test_a_function_is_whole_with_all_its_lines_and_named_with_its_head(name, text, whole, named):
    head = "".join(of(name)[0].split("\n")[0].split()).rstrip(":")
    shown = Rendered(text)
    assert Lines(name, "pkg/box.py", of(name)).stands(shown) is whole
    assert Head(name, "pkg/box.py", (head,)).stands(shown) is named


@pytest.mark.parametrize(
    ("text", "stands"),
    [
        ("pkg/box.py\nif ready:\n    return None\n", True),
        ("pkg/box.py\n  7| if ready:\n  8|\n  9|     return None\n", True),
        ("pkg/box.py\nreturn None\nfinish()\n", True),
        ("pkg/box.py\nif other:\n    return None\n", False),
        ("pkg/other.py\nif ready:\n    return None\n", False),
    ],
)
def test_a_line_is_known_by_its_neighbour(text, stands):
    line = Line("pkg/box.py:8", "pkg/box.py", (("if ready:", "return None"), ("return None", "finish()")))
    assert line.stands(Rendered(text)) is stands


# --- SWE-bench -----------------------------------------------------------------------------------------------------

FILES = (
    {"pkg/box.py": BOX, "pkg/gone.py": "x = 1\n", "pkg/same.py": "def same():\n    return 1\n", "test_box.py": "1\n"},
    {"pkg/box.py": BOX.replace("height", "depth"), "pkg/same.py": "def same():\n    return 1\n", "new/other.py": "y = 2\n"},
)


@pytest.fixture
def commits(tmp_path: Path) -> list[str]:
    """Two commits of `a/b`, in the bare repository repos/a+b/repo."""
    work = tmp_path / "work"

    def git(*command: str) -> str:
        names = ["-c", "user.name=A", "-c", "user.email=a@example.com"]
        return subprocess.run(["git", "-C", str(work), *names, *command], check=True, capture_output=True, text=True).stdout

    work.mkdir()
    git("init", "--quiet")
    made = []
    for files in FILES:
        git("rm", "-r", "--quiet", "--ignore-unmatch", ".")
        for name, text in files.items():
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            (work / name).write_text(text)
        git("add", ".")
        git("commit", "--quiet", "-m", "x")
        made.append(git("rev-parse", "HEAD").strip())
    (tmp_path / "repos" / "a+b").mkdir(parents=True)
    git("clone", "--quiet", "--bare", ".", str(tmp_path / "repos" / "a+b" / "repo"))
    return made


def issue(commit: str, **changed: object) -> dict[str, object]:
    return {
        "instance_id": "a__b-1",
        "repo": "a/b",
        "base_commit": commit,
        "created_at": "2020-01-01",
        "problem_statement": "Box.size is wrong: pkg/box.py forgets the depth",
        "gold_files_py": ["pkg/box.py"],
        "gold_functions": ["pkg/box.py::Box.size"],
        "edits": [{"path": "pkg/box.py", "deleted_lines": [6], "insert_after": [5, 8]}],
    } | changed


def write(tmp_path: Path, *issues: object) -> Path:
    path = tmp_path / "instances.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in issues))
    return path


def options(tmp_path: Path, **more: str) -> dict[str, str]:
    return {"repos": str(tmp_path / "repos"), "checkouts": str(tmp_path / "trees"), **more}


def test_a_checkout_moves_between_commits_and_leaves_equal_files_alone(tmp_path, commits):
    seen = []
    for commit in commits:
        root = checkout("a/b", commit, tmp_path / "repos", tmp_path / "trees")
        seen.append((candidates(root), (root / "pkg/same.py").stat().st_mtime_ns))
    assert [names for names, _ in seen] == [
        ["pkg/box.py", "pkg/gone.py", "pkg/same.py"],
        ["new/other.py", "pkg/box.py", "pkg/same.py"],
    ]
    assert seen[0][1] == seen[1][1]


HOLD = """
import sys
from pathlib import Path
from foveate.eval.datasets.swebench import checkout
checkout("a/b", sys.argv[1], Path("repos").resolve(), Path("trees"))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such lock")
def test_a_checkout_is_not_moved_under_another_process(tmp_path, commits):
    command = [sys.executable, "-c", HOLD, commits[0]]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as other:
        assert other.stdout.readline() == "held\n"
        live = tmp_path / "trees" / "a+b" / ".git" / "index.lock"
        live.touch()  # it is at work
        with pytest.raises(InputError, match=r"Another run is using .*-o checkouts="):
            checkout("a/b", commits[1], tmp_path / "repos", tmp_path / "trees")
        assert live.exists()
        assert (tmp_path / "trees" / "a+b" / "pkg/gone.py").is_file()
        elsewhere = checkout("a/b", commits[1], tmp_path / "repos", tmp_path / "mine")
        assert not (elsewhere / "pkg/gone.py").exists()
        other.communicate("")
    assert (checkout("a/b", commits[1], tmp_path / "repos", tmp_path / "trees") / "new/other.py").is_file()


def test_another_cache_folder_is_the_same_run(tmp_path, commits):
    data = write(tmp_path, issue(commits[0]))
    told = options(tmp_path)
    paths = {
        run(suite("swebench"), system("file-bm25"), data, tmp_path / "out", budgets=[500], options=one).path
        for one in (told, {**told, "checkouts": str(tmp_path / "others")})
    }
    assert len(paths) == 1
    assert suite("swebench").files(tmp_path) == [data]


@pytest.mark.parametrize("place", ["a/b.git", "a__b", "a__b.git"])
def test_a_bare_repository_is_known_by_several_names(tmp_path, commits, place):
    (tmp_path / "repos" / "a").mkdir()
    (tmp_path / "repos" / "a+b" / "repo").rename(tmp_path / "repos" / place)
    assert (checkout("a/b", commits[0], tmp_path / "repos", tmp_path / "trees") / "pkg/gone.py").is_file()


@pytest.mark.parametrize("name", ["foveate", "file-bm25"])
def test_an_issue_is_a_world_with_files_functions_and_lines(tmp_path, commits, name):
    several = issue(commits[1], instance_id="a__b-2", created_at="2021", gold_files_py=["pkg/box.py", "pkg/same.py"])
    data = write(tmp_path, several, issue(commits[0]), issue(commits[0], instance_id="none", gold_files_py=[]))
    rows = run(suite("swebench"), system(name), data, tmp_path / "out", budgets=[2000], options=options(tmp_path)).rows
    assert [(row.world, row.type) for row in rows] == [("a__b-1", "one file"), ("a__b-2", "several files")]
    found = rows[0].packs[2000].hits
    assert (found["file"], found["function"], found["named"]) == ([True], [True], [True])
    assert len(found["line"]) == 2  # a blank one is not asked for
    assert found["line"][0]
    assert rows[0].ranks["file"] == [1]
    assert rows[0].ranks["function"] == [1]


def test_issues_are_chosen_by_repository_and_spread_over_its_history(tmp_path, commits):
    many = [issue(commits[0], instance_id=f"a__b-{n}", created_at=f"20{n}") for n in (13, 11, 12, 10)]
    data = write(tmp_path, *many, issue(commits[0], repo="c/d", instance_id="c__d-1"))

    def names(**more: str) -> list[str]:
        return [world.id for world in suite("swebench").worlds(data, options(tmp_path, **more))]

    assert names() == ["a__b-10", "a__b-11", "a__b-12", "a__b-13", "c__d-1"]
    assert names(each="2") == ["a__b-10", "a__b-12", "c__d-1"]
    assert names(only="c/,nothing") == ["c__d-1"]


@pytest.mark.parametrize(
    ("changed", "error", "said"),
    [
        ({"repo": None}, InputError, "line 1, has no 'repo'"),
        ({"gold_files_py": "pkg/box.py"}, InputError, "'gold_files_py' is not a list of texts"),
        ({"base_commit": "0" * 40}, InputError, "does not hold the commit"),
        ({"repo": "a/other"}, NotFound, "no bare repository of 'a/other'"),
        ({"edits": [{"path": "pkg/box.py"}]}, InputError, "edits"),
    ],
)
def test_an_issue_that_cannot_be_asked_says_why(tmp_path, commits, changed, error, said):
    made = {name: value for name, value in issue(commits[0], **changed).items() if value is not None}
    with pytest.raises(error, match=said):
        run(suite("swebench"), system("file-bm25"), write(tmp_path, made), tmp_path, options=options(tmp_path))


@pytest.mark.parametrize(
    ("changed", "whats", "skipped"),
    [
        ({"gold_files_py": ["pkg/box.py", "pkg/new.py"]}, {"file": 1, "function": 1}, 0),
        ({"gold_functions": ["pkg/box.py::Box.new", "pkg/new.py::x"]}, {"file": 1}, 0),
        ({"gold_files_py": ["pkg/new.py"]}, {}, 1),
    ],
)
def test_what_a_fix_makes_anew_is_no_evidence(tmp_path, commits, changed, whats, skipped):
    data = write(tmp_path, issue(commits[0], **changed))
    done = run(suite("swebench"), system("file-bm25"), data, tmp_path / "runs", budgets=[2000], options=options(tmp_path))
    hits = done.rows[0].packs[2000].hits if done.rows else {}
    assert {what: len(found) for what, found in hits.items() if what in ("file", "function")} == whats
    assert done.skipped == skipped


@pytest.mark.parametrize(
    ("told", "error", "said"),
    [
        ({}, InputError, "-o repos=FOLDER"),
        ({"repos": "/nowhere"}, NotFound, "'/nowhere'"),
        ({"repos": ".", "each": "few"}, InputError, "'few'"),
        ({"repo": "."}, InputError, "no option 'repo'"),
    ],
)
def test_options_that_are_not_understood_are_named(tmp_path, told, error, said):
    with pytest.raises(error, match=said):
        run(suite("swebench"), system("file-bm25"), write(tmp_path, issue("0")), tmp_path, options=told)


@pytest.mark.parametrize(("text", "said"), [("[1]\n", "line 1, is no object"), ("{\n", "is not JSON")])
def test_a_file_that_holds_no_issues_is_an_error(tmp_path, text, said):
    path = write(tmp_path)
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        list(suite("swebench").worlds(path, {"repos": str(tmp_path)}))


# --- CoSQA ---------------------------------------------------------------------------------------------------------

FUNCTIONS = {
    "def parse_date(text):\n    return datetime.strptime(text, '%Y')": 0,
    "def is_prime(n):\n    # a prime number\n    return all(n % d for d in range(2, n))": 101,
    "def old():\n    print 'no python of today'": 7,
}
QUERIES = [{"idx": "q1", "doc": "check if a number is prime", "retrieval_idx": 101}]


def cosqa(folder: Path, functions: object = FUNCTIONS, queries: object = QUERIES) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "code_idx_map.txt").write_text(json.dumps(functions))
    (folder / "cosqa-retrieval-dev-500.json").write_text(json.dumps(queries))
    return folder


@pytest.mark.parametrize("name", ["foveate", "file-bm25"])
def test_a_query_finds_its_function_among_files(tmp_path, name):
    data = cosqa(tmp_path / "cosqa")
    (data / "notes.txt").write_text("mine")
    assert len(suite("cosqa").files(data)) == 2
    told = {"folder": str(tmp_path / "files")}
    (row,) = run(suite("cosqa"), system(name), data, tmp_path / "out", options=told).rows
    assert row.case == "q1"
    assert row.packs[500].hits == {"file": [True], "function": [True]}
    assert row.ranks == {"file": [1], "function": [1]}


def test_functions_that_are_laid_out_already_are_left_alone(tmp_path):
    data, told = cosqa(tmp_path / "cosqa"), {"folder": str(tmp_path / "files")}
    times = []
    for _ in range(2):
        scene = next(suite("cosqa").worlds(data, told)).load()
        times.append([(scene.root / path).stat().st_mtime_ns for path in scene.files])
    assert times[0] == times[1]
    assert sorted(scene.files) == ["000/00000.py", "000/00007.py", "001/00101.py"]


@pytest.mark.parametrize(
    ("functions", "queries", "said"),
    [
        ([], QUERIES, "number for each function"),
        ({"def f(): ...": "1"}, QUERIES, "number for each function"),
        (FUNCTIONS, {}, "not a list of queries"),
        (FUNCTIONS, [{"idx": "q", "doc": "x"}], "query 1, has no"),
        (FUNCTIONS, [{"idx": "q", "doc": "x", "retrieval_idx": 5}], "of a known function"),
        (FUNCTIONS, ["x"], "query 1, has no"),
    ],
)
def test_queries_of_another_shape_are_an_error(tmp_path, functions, queries, said):
    with pytest.raises(InputError, match=said):
        list(suite("cosqa").worlds(cosqa(tmp_path / "cosqa", functions, queries), {}))


def test_data_that_is_not_there_is_named(tmp_path):
    for name in ("swebench", "cosqa"):
        with pytest.raises(FoveateError, match="is looked for"):
            list(suite(name).worlds(tmp_path, {"repos": str(tmp_path)}))
