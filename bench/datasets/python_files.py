"""Python files as answers: the files of a repository that can be answers, the functions in them, and evidence of both."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath

from foveate.eval.model import RenderedPrompt

TEST_FOLDERS = {"test", "tests", "testing"}
MAX_CACHED_FILES = 20_000
"""From commit to commit few files of a repository change, so their functions are cached."""


# --- files and functions -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Function:
    """A function or method. Lines count from 1 and include both ends, but not the decorators."""

    name: str
    line: int
    end: int
    source: str


def is_test(path: str) -> bool:
    """Return whether a Python file belongs to the tests, by its folders and its name."""
    parts = PurePosixPath(path)
    name = parts.stem
    return bool(TEST_FOLDERS & set(parts.parts[:-1])) or name.startswith("test_") or name in ("conftest", "tests", "test")


def answer_files(root: Path) -> list[str]:
    """Return the Python files that can be answers: all that are not tests."""
    paths = (path.relative_to(root).as_posix() for path in root.rglob("*.py") if path.is_file())
    return sorted(path for path in paths if not is_test(path))


def read_source(root: Path, path: str) -> str:
    return (root / path).read_text("utf-8", errors="replace")


@lru_cache(maxsize=MAX_CACHED_FILES)
def functions(source: str) -> tuple[Function, ...]:
    """Return the functions of a Python file in the order of their lines; none if it does not parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return ()
    lines = source.split("\n")
    nodes = [(name, node, node.end_lineno or node.lineno) for name, node in _function_nodes(tree, "")]
    of_file = [Function(name, node.lineno, end, "\n".join(lines[node.lineno - 1 : end])) for name, node, end in nodes]
    return tuple(sorted(of_file, key=lambda function: (function.line, -function.end)))


def _function_nodes(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = prefix + child.name
            if not isinstance(child, ast.ClassDef):
                yield name, child
            yield from _function_nodes(child, f"{name}.")
        else:
            yield from _function_nodes(child, prefix)


def restrict_to_files(files: Sequence[str], names: Sequence[str]) -> list[str]:
    """Keep the names of files and functions (`path::name`) that are in some files, each once. Without files, keep all."""
    allowed = set(files)
    return [name for name in dict.fromkeys(names) if not allowed or name.partition("::")[0] in allowed]


# --- evidence ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EvidenceFile:
    """A file, which is present if its path is."""

    id: str
    evidence_type: str = "file"

    def is_present_in(self, prompt: RenderedPrompt) -> bool:
        return contains_path(prompt.text, self.id)


@dataclass(frozen=True, slots=True)
class EvidenceLines:
    """A piece of a file, such as a function: its path and all of its lines that are not blank.

    Indentation, line numbers and order do not matter, so a function that is shown in two pieces counts. If a name is defined
    several times, `sources` has several texts, and one of them is enough.
    """

    id: str
    path: str
    sources: tuple[str, ...]
    evidence_type: str = "function"

    def is_present_in(self, prompt: RenderedPrompt) -> bool:
        if not contains_path(prompt.text, self.path):
            return False
        lines = _line_set(prompt.text)
        return any({line.strip() for line in source.split("\n")} - {""} <= lines for source in self.sources)


def contains_path(text: str, path: str) -> bool:
    """Return whether a path is in a text, and not only as a part of another path."""
    return re.search(rf"(?<![\w/.-]){re.escape(path)}(?!\w)", text) is not None


@lru_cache(maxsize=4)  # all pieces of a case are looked up in the same prompt
def _line_set(text: str) -> frozenset[str]:
    """Return the lines without indentation, with and without their line numbers."""
    lines = {line.strip() for line in text.split("\n")}
    numbered = (line.partition("|")[::2] for line in lines)
    return frozenset(lines | {rest.strip() for number, rest in numbered if number.strip().isdigit()})
