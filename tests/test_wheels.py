"""Every dependency of the core has a wheel for each Python and platform that the package index is asked about.

pip resolves the dependencies for a Python and a platform that are not the running ones. Nothing is downloaded or installed:
`pip install --dry-run` takes the options of `pip download` and reads the metadata only. Without an index, all are skipped.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest
from packaging.requirements import Requirement

pytestmark = pytest.mark.slow

PYTHONS = ["3.11", "3.12", "3.13", "3.14", "3.15"]
PLATFORMS = {
    "glibc-x86-64": ["manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64", "manylinux_2_5_x86_64"],
    "glibc-arm64": ["manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"],
    "musl-x86-64": ["musllinux_1_2_x86_64", "musllinux_1_1_x86_64"],
    "musl-arm64": ["musllinux_1_2_aarch64", "musllinux_1_1_aarch64"],
    "macos-x86-64": ["macosx_13_0_x86_64"],
    "macos-arm64": ["macosx_13_0_arm64"],
    "windows-x86-64": ["win_amd64"],
}
NO_WHEEL = {"musl-arm64": ["tree-sitter", "tree-sitter-json", "tree-sitter-kotlin", "tree-sitter-toml"]}
"""Dependencies that pip builds from source, because a marker cannot tell musl from glibc. Decision 060 has the table."""

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def dependencies(python: str) -> list[Requirement]:
    """Return the dependencies of the core for a version of Python. pip would decide by the running one."""
    found = map(Requirement, tomllib.loads(PROJECT.read_text("utf-8"))["project"]["dependencies"])
    return [row for row in found if row.marker is None or row.marker.evaluate({"python_version": python})]


def resolve(python: str, tags: Iterable[str], requirements: Iterable[Requirement], folder: Path) -> str:
    """Return "" if pip finds a wheel for every requirement and what that requires, else its error."""
    platforms = [option for tag in tags for option in ("--platform", tag)]
    wanted = [f"{row.name}{row.specifier}" for row in requirements]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--no-input",
         "--target", str(folder / "target"), "--only-binary=:all:", "--python-version", python, *platforms, *wanted],
        capture_output=True, text=True,
    )  # fmt: skip
    return done.stderr if done.returncode else ""


@pytest.fixture(scope="module", autouse=True)
def package_index() -> None:
    """Skip without an index. Only a process of pip is asked, because tests themselves reach no network."""
    command = [sys.executable, "-m", "pip", "--retries", "0", "--timeout", "20", "index", "versions", "pip"]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("no package index can be reached")


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("python", PYTHONS)
def test_every_dependency_has_a_wheel(python: str, platform: str, tmp_path: Path) -> None:
    requirements = [row for row in dependencies(python) if row.name not in NO_WHEEL.get(platform, ())]
    assert not resolve(python, PLATFORMS[platform], requirements, tmp_path)


@pytest.mark.parametrize(("platform", "name"), [(platform, name) for platform in NO_WHEEL for name in NO_WHEEL[platform]])
def test_a_known_gap_is_still_one(platform: str, name: str, tmp_path: Path) -> None:
    requirements = [row for row in dependencies("3.13") if row.name == name]
    error = resolve("3.13", PLATFORMS[platform], requirements, tmp_path)
    assert "No matching distribution" in error, "remove it from NO_WHEEL"
