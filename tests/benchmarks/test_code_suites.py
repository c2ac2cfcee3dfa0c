"""The code suites of bench: evidence of files, functions and lines; checkouts; and errors in the data."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bench.datasets.python_files import (
    EvidenceFile,
    EvidenceLines,
    answer_files,
    functions,
    is_test,
    restrict_to_files,
)
from bench.datasets.swebench import EditedLineEvidence, SignatureEvidence, checkout
from bench.kit import load_suite

from foveate.errors import FoveateError, InputError, NotFound
from foveate.eval.model import Case, Dataset, RenderedPrompt
from foveate.eval.run import run
from foveate.eval.systems import open_system
from foveate.eval.systems.engine import FoveateSystem

FILE_BM25 = "bench.systems.file_bm25"
ROOT = Path(__file__).parents[2]

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


def test_functions_have_qualified_names_and_start_at_def():
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
def test_tests_are_recognized_by_folder_and_name(path, test):
    assert is_test(path) is test


def test_names_are_restricted_to_answer_files_and_unique():
    ranked = ["tests/test_box.py", "pkg/box.py", "README.md", "pkg/box.py", "pkg/other.py::size"]
    assert restrict_to_files(["pkg/box.py", "pkg/other.py"], ranked) == ["pkg/box.py", "pkg/other.py::size"]
    assert restrict_to_files([], ["a.py", "a.py", "b.py"]) == ["a.py", "b.py"]


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
def test_a_function_is_whole_with_all_its_lines_and_named_with_its_signature(name, text, whole, named):
    head = "".join(of(name)[0].split("\n")[0].split()).rstrip(":")
    prompt = RenderedPrompt(text)
    assert EvidenceLines(name, "pkg/box.py", of(name)).is_present_in(prompt) is whole
    assert SignatureEvidence(name, "pkg/box.py", (head,)).is_present_in(prompt) is named


@pytest.mark.parametrize(
    ("text", "is_present"),
    [
        ("pkg/box.py\nif ready:\n    return None\n", True),
        ("pkg/box.py\n  7| if ready:\n  8|\n  9|     return None\n", True),
        ("pkg/box.py\nreturn None\nfinish()\n", True),
        ("pkg/box.py\nif other:\n    return None\n", False),
        ("pkg/other.py\nif ready:\n    return None\n", False),
    ],
)
def test_a_line_is_recognized_by_its_neighbor(text, is_present):
    line = EditedLineEvidence("pkg/box.py:8", "pkg/box.py", (("if ready:", "return None"), ("return None", "finish()")))
    assert line.is_present_in(RenderedPrompt(text)) is is_present


@pytest.mark.parametrize(("path", "is_present"), [("a/b.py", True), ("b.py", False), ("a/b.p", False), ("x/a/b.py", False)])
def test_a_file_is_present_by_its_whole_path(path: str, is_present: bool) -> None:
    assert EvidenceFile(path).is_present_in(RenderedPrompt("see a/b.py:12")) is is_present


def test_lines_are_present_in_any_order_and_with_numbers_but_all_of_them() -> None:
    piece = EvidenceLines("a.py::f", "a.py", ("def f():\n    x = 1\n\n    return x",))
    assert piece.is_present_in(RenderedPrompt("a.py\n 12 | def f():\n 13 |     x = 1\n 15 |     return x"))
    assert not piece.is_present_in(RenderedPrompt("a.py\ndef f():\n    return x"))
    assert not piece.is_present_in(RenderedPrompt("b.py\ndef f():\n    x = 1\n    return x"))


def test_code_that_quotes_the_question_is_found(tmp_path: Path) -> None:
    source = 'def words(text):\n    """Count the words of a text."""\n    return len(text.split())\n'
    (tmp_path / "count.py").write_text(source, "utf-8")
    case = Case("c", "Count the words of a text.", (EvidenceLines("count.py::words", "count.py", (source,)),))
    opened = FoveateSystem().open(Dataset([case], root=tmp_path), load_suite("cosqa"))
    assert case.expected[0].is_present_in(opened.render(case, 2000))
    opened.close()


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
        seen.append((answer_files(root), (root / "pkg/same.py").stat().st_mtime_ns))
    assert [names for names, _ in seen] == [
        ["pkg/box.py", "pkg/gone.py", "pkg/same.py"],
        ["new/other.py", "pkg/box.py", "pkg/same.py"],
    ]
    assert seen[0][1] == seen[1][1]


HOLD = """
import sys
from pathlib import Path
from bench.datasets.swebench import checkout
checkout("a/b", sys.argv[1], Path("repos").resolve(), Path("trees"))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such lock")
def test_a_checkout_is_not_moved_under_another_process(tmp_path, commits):
    command = [sys.executable, "-c", HOLD, commits[0]]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src")))}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=environment
    ) as other:
        assert other.stdout.readline() == "held\n"
        live = tmp_path / "trees" / "a+b" / ".git" / "index.lock"
        live.touch()  # git in the other process is working
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
    values = options(tmp_path)
    paths = {
        run(load_suite("swebench"), open_system(FILE_BM25), data, tmp_path / "out", budgets=[500], options=one).path
        for one in (values, {**values, "checkouts": str(tmp_path / "others")})
    }
    assert len(paths) == 1
    assert load_suite("swebench").files(tmp_path) == [data]


@pytest.mark.parametrize("place", ["a/b.git", "a__b", "a__b.git"])
def test_a_bare_repository_is_known_by_several_names(tmp_path, commits, place):
    (tmp_path / "repos" / "a").mkdir()
    (tmp_path / "repos" / "a+b" / "repo").rename(tmp_path / "repos" / place)
    assert (checkout("a/b", commits[0], tmp_path / "repos", tmp_path / "trees") / "pkg/gone.py").is_file()


@pytest.mark.parametrize("name", ["foveate", FILE_BM25])
def test_an_issue_is_a_subset_with_files_functions_and_lines(tmp_path, commits, name):
    several = issue(commits[1], instance_id="a__b-2", created_at="2021", gold_files_py=["pkg/box.py", "pkg/same.py"])
    data = write(tmp_path, several, issue(commits[0]), issue(commits[0], instance_id="none", gold_files_py=[]))
    results = run(
        load_suite("swebench"), open_system(name), data, tmp_path / "out", budgets=[2000], options=options(tmp_path)
    ).results
    assert [(case.subset, case.question_type) for case in results] == [("a__b-1", "one file"), ("a__b-2", "several files")]
    found = results[0].by_budget[2000].hits
    assert (found["file"], found["function"], found["named"]) == ([True], [True], [True])
    assert len(found["line"]) == 2  # without the blank one
    assert found["line"][0]
    assert results[0].ranks["file"] == [1]
    assert results[0].ranks["function"] == [1]


def test_issues_are_chosen_by_repository_and_spread_over_its_history(tmp_path, commits):
    many = [issue(commits[0], instance_id=f"a__b-{n}", created_at=f"20{n}") for n in (13, 11, 12, 10)]
    data = write(tmp_path, *many, issue(commits[0], repo="c/d", instance_id="c__d-1"))

    def names(**more: str) -> list[str]:
        return [subset.id for subset in load_suite("swebench").subsets(data, options(tmp_path, **more))]

    assert names() == ["a__b-10", "a__b-11", "a__b-12", "a__b-13", "c__d-1"]
    assert names(each="2") == ["a__b-10", "a__b-12", "c__d-1"]
    assert names(only="c/,nothing") == ["c__d-1"]


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"repo": None}, InputError, "line 1, has no 'repo'"),
        ({"gold_files_py": "pkg/box.py"}, InputError, "'gold_files_py' must be a list of texts"),
        ({"base_commit": "0" * 40}, InputError, "does not contain the commit"),
        ({"repo": "a/other"}, NotFound, "no bare repository of 'a/other'"),
        ({"edits": [{"path": "pkg/box.py"}]}, InputError, "each edit must have"),
    ],
)
def test_errors_of_an_issue_are_explained(tmp_path, commits, changed, error, message):
    made = {name: value for name, value in issue(commits[0], **changed).items() if value is not None}
    with pytest.raises(error, match=message):
        run(load_suite("swebench"), open_system(FILE_BM25), write(tmp_path, made), tmp_path, options=options(tmp_path))


@pytest.mark.parametrize(
    ("changed", "counts", "skipped"),
    [
        ({"gold_files_py": ["pkg/box.py", "pkg/new.py"]}, {"file": 1, "function": 1}, 0),
        ({"gold_functions": ["pkg/box.py::Box.new", "pkg/new.py::x"]}, {"file": 1}, 0),
        ({"gold_files_py": ["pkg/new.py"]}, {}, 1),
    ],
)
def test_code_that_a_fix_adds_is_no_evidence(tmp_path, commits, changed, counts, skipped):
    data = write(tmp_path, issue(commits[0], **changed))
    done = run(
        load_suite("swebench"), open_system(FILE_BM25), data, tmp_path / "runs", budgets=[2000], options=options(tmp_path)
    )
    hits = done.results[0].by_budget[2000].hits if done.results else {}
    assert {name: len(flags) for name, flags in hits.items() if name in ("file", "function")} == counts
    assert done.skipped_cases == skipped


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({}, InputError, "-o repos=FOLDER"),
        ({"repos": "/nowhere"}, NotFound, "'/nowhere'"),
        ({"repos": ".", "each": "few"}, InputError, "'few'"),
        ({"repo": "."}, InputError, "no option 'repo'"),
    ],
)
def test_wrong_options_are_named(tmp_path, values, error, message):
    with pytest.raises(error, match=message):
        run(load_suite("swebench"), open_system(FILE_BM25), write(tmp_path, issue("0")), tmp_path, options=values)


@pytest.mark.parametrize(("text", "message"), [("[1]\n", "line 1, is not an object"), ("{\n", "is not JSON")])
def test_a_file_without_issues_is_an_error(tmp_path, text, message):
    path = write(tmp_path)
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        list(load_suite("swebench").subsets(path, {"repos": str(tmp_path)}))


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


@pytest.mark.parametrize("name", ["foveate", FILE_BM25])
def test_a_query_finds_its_function_among_files(tmp_path, name):
    data = cosqa(tmp_path / "cosqa")
    (data / "notes.txt").write_text("mine")
    assert len(load_suite("cosqa").files(data)) == 2
    values = {"folder": str(tmp_path / "files")}
    (case,) = run(load_suite("cosqa"), open_system(name), data, tmp_path / "out", options=values).results
    assert case.case == "q1"
    assert case.by_budget[500].hits == {"file": [True], "function": [True]}
    assert case.ranks == {"file": [1], "function": [1]}


def test_unchanged_function_files_are_not_written_again(tmp_path):
    data, values = cosqa(tmp_path / "cosqa"), {"folder": str(tmp_path / "files")}
    times = []
    for _ in range(2):
        dataset = next(load_suite("cosqa").subsets(data, values)).load()
        times.append([(dataset.root / path).stat().st_mtime_ns for path in dataset.answer_files])
    assert times[0] == times[1]
    assert sorted(dataset.answer_files) == ["000/00000.py", "000/00007.py", "001/00101.py"]


@pytest.mark.parametrize(
    ("functions", "queries", "message"),
    [
        ([], QUERIES, "map each function to a number"),
        ({"def f(): ...": "1"}, QUERIES, "map each function to a number"),
        (FUNCTIONS, {}, "must be a list of queries"),
        (FUNCTIONS, [{"idx": "q", "doc": "x"}], "query 1: idx, doc or the retrieval_idx"),
        (FUNCTIONS, [{"idx": "q", "doc": "x", "retrieval_idx": 5}], "of a known function"),
        (FUNCTIONS, ["x"], "query 1: idx, doc or the retrieval_idx"),
    ],
)
def test_malformed_queries_are_an_error(tmp_path, functions, queries, message):
    with pytest.raises(InputError, match=message):
        list(load_suite("cosqa").subsets(cosqa(tmp_path / "cosqa", functions, queries), {}))


def test_missing_data_is_named(tmp_path):
    for name in ("swebench", "cosqa"):
        with pytest.raises(FoveateError, match="no file matches"):
            list(load_suite(name).subsets(tmp_path, {"repos": str(tmp_path)}))
