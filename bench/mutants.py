"""Mutation testing with a list of hand-made mutants: break the code in one place, and check that a test fails.

    python -m bench mutants                 # all of them
    python -m bench mutants 'delta*' why    # those whose names match a pattern

`mutants.toml` lists the mutants. Each one replaces a piece of code, and names the tests that must fail then. A mutant that
no test detects (*survives*) shows a behavior that can break unnoticed: write the test. Everything happens in a temporary
copy of the working tree.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import click

from foveate.errors import InputError, NotFound, near

ROOT = Path(__file__).parents[1]
MUTANTS_FILE = Path(__file__).with_name("mutants.toml")
TEST_TIMEOUT_S = 600
TESTS_PASSED, TESTS_FAILED = 0, 1
"""Exit codes of pytest. Other codes mean that the tests could not run."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A piece of code, what replaces it, and the tests that must fail then (arguments of pytest)."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def load_mutants(path: Path = MUTANTS_FILE) -> list[Mutant]:
    tables = tomllib.loads(path.read_text("utf-8"))["mutant"]
    return [Mutant(**{**table, "tests": tuple(table["tests"])}) for table in tables]


def mutate(root: Path, mutant: Mutant) -> str:
    """Return the mutated text of the file. Raises InputError if the code is not there exactly once, or does not parse."""
    path = root / mutant.file
    if not path.is_file():
        raise InputError(f"Mutant {mutant.name!r}: there is no file {mutant.file}; correct bench/mutants.toml.")
    source = path.read_text("utf-8")
    count = source.count(mutant.old)
    if count != 1:
        raise InputError(
            f"Mutant {mutant.name!r}: its code occurs {count} times in {mutant.file}, not once; correct bench/mutants.toml."
        )
    mutated = source.replace(mutant.old, mutant.new)
    if path.suffix == ".py":
        try:
            ast.parse(mutated)
        except SyntaxError as error:
            raise InputError(f"Mutant {mutant.name!r} is not valid Python: {error}.") from None
    return mutated


@contextmanager
def copied_tree(root: Path) -> Iterator[Path]:
    """Copy the tracked and new files of a repository, without ignored ones, into a temporary folder."""
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    with tempfile.TemporaryDirectory(prefix="foveate-mutants-") as folder:
        for name in filter(None, listed.split("\0")):
            if (root / name).is_file():  # a file may be deleted and not committed
                target = Path(folder, name)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, target)
        yield Path(folder)


def run_tests(root: Path, tests: Sequence[str]) -> tuple[int, str]:
    """Run tests on the copied tree, and return pytest's exit code and output. A timeout counts as a failure."""
    # No .pyc files: two versions of a module written within a second could share one.
    environment = {**os.environ, "PYTHONPATH": str(root / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=TEST_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return TESTS_FAILED, f"The tests ran for more than {TEST_TIMEOUT_S} s."
    return done.returncode, done.stdout + done.stderr


def survivors(root: Path, mutants: Iterable[Mutant]) -> Iterator[tuple[Mutant, bool]]:
    """Yield each mutant, and whether it survived. `root` is a copy that may be changed.

    Raises InputError if the tests of a mutant fail without it, or cannot run.
    """
    passed: set[tuple[str, ...]] = set()
    for mutant in mutants:
        mutated = mutate(root, mutant)
        if mutant.tests not in passed:
            code, output = run_tests(root, mutant.tests)
            if code != TESTS_PASSED:
                raise InputError(f"The tests of {mutant.name!r} do not pass without the mutant:\n{output[-2000:]}")
            passed.add(mutant.tests)
        path = root / mutant.file
        original = path.read_text("utf-8")
        path.write_text(mutated, "utf-8")
        try:
            code, output = run_tests(root, mutant.tests)
        finally:
            path.write_text(original, "utf-8")
        if code not in (TESTS_PASSED, TESTS_FAILED):
            raise InputError(f"The tests of {mutant.name!r} cannot run with the mutant:\n{output[-2000:]}")
        yield mutant, code == TESTS_PASSED


@click.command("mutants")
@click.argument("patterns", nargs=-1, metavar="[NAME...]")
def main(patterns: tuple[str, ...]) -> int:
    """Break the code on purpose in a copy of the tree, and report the mutants that no test detects.

    NAME is a mutant of bench/mutants.toml or a pattern such as 'delta*'; by default all are run. Exits with 1 if a mutant
    survives.
    """
    mutants = load_mutants()
    for pattern in patterns:
        if not any(fnmatch(mutant.name, pattern) for mutant in mutants):
            raise NotFound(f"There is no mutant {pattern!r}.{near(pattern, [mutant.name for mutant in mutants])}")
    chosen = [one for one in mutants if not patterns or any(fnmatch(one.name, pattern) for pattern in patterns)]
    survived = []
    with copied_tree(ROOT) as root:
        for mutant in chosen:  # all of them before any test runs: a run takes minutes
            mutate(root, mutant)
        for mutant, is_survivor in survivors(root, chosen):
            click.echo(f"{'SURVIVED' if is_survivor else 'detected'}  {mutant.name}")
            if is_survivor:
                survived.append(mutant)
    click.echo(f"{len(chosen) - len(survived)} of {len(chosen)} mutants are detected.")
    for mutant in survived:
        click.echo(f"  {mutant.name}: {mutant.file}; no test of {', '.join(mutant.tests)} fails")
    return 1 if survived else 0
