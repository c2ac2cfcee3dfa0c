"""The mutation tool: what it reports, and that every listed mutant applies to the code as it is."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from bench.mutants import ROOT, Mutant, copied_tree, load_mutants, mutate, survivors

from foveate.errors import InputError

MUTANTS = load_mutants()
MUTANT = Mutant("add", "src/sums.py", "a + b", "a - b", ("tests/test_sums.py",))


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_every_mutant_applies_and_its_tests_exist(mutant: Mutant) -> None:
    assert mutate(ROOT, mutant) != (ROOT / mutant.file).read_text("utf-8")
    files = [name.partition("::")[0] for name in mutant.tests if name.startswith("tests/")]
    assert files
    assert all((ROOT / name).exists() for name in files)


def test_mutants_have_different_names() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # loading them takes seconds
    root = tmp_path / "project"
    files = {
        "src/sums.py": "def add(a, b):\n    return a + b\n",
        "tests/test_sums.py": "from sums import add\n\n\ndef test_add():\n    assert add(2, 0) == 2\n",
        "tests/test_more.py": "from sums import add\n\n\ndef test_add():\n    assert add(2, 1) == 3\n",
        "ignored/big.bin": "x",
        ".gitignore": "ignored/\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    return root


@pytest.mark.slow
def test_a_mutant_survives_if_its_tests_pass(project: Path) -> None:
    with copied_tree(project) as copy:
        assert not (copy / "ignored").exists()
        found = list(survivors(copy, [MUTANT, replace(MUTANT, tests=("tests/test_more.py",))]))
        assert [is_survivor for _, is_survivor in found] == [True, False]
        assert (copy / "src/sums.py").read_text() == (project / "src/sums.py").read_text()
    assert not copy.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"old": "a * b"}, "occurs 0 times in src/sums.py"),
        ({"old": "a"}, "times in src/sums.py, not once"),
        ({"file": "src/gone.py"}, "there is no file src/gone.py"),
        ({"new": "a +"}, "is not valid Python"),
        ({"tests": ("tests/gone.py",)}, "do not pass without the mutant"),
        ({"old": "def add", "new": "def sum"}, "cannot run with the mutant"),
    ],
)
def test_a_mutant_that_cannot_be_run_is_an_error(project: Path, changed: dict[str, str], message: str) -> None:
    with copied_tree(project) as copy, pytest.raises(InputError, match=message):
        list(survivors(copy, [replace(MUTANT, **changed)]))
