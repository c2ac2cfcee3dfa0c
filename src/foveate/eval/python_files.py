"""Python files as answers: which of a repository may be, the functions in them, and where a ranking puts those."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath

_TEST_FOLDERS = {"test", "tests", "testing"}
KNOWN = 20_000
"""Files whose functions are remembered: from commit to commit, few of a repository's change."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function or method as `ast` sees it; lines count from 1, both ends included, decorators not."""

    name: str
    line: int
    end: int
    source: str


def is_test(path: str) -> bool:
    """Whether a Python file belongs to the tests, by its folders and its name."""
    place = PurePosixPath(path)
    name = place.stem
    return bool(_TEST_FOLDERS & set(place.parts[:-1])) or name.startswith("test_") or name in ("conftest", "tests", "test")


def candidates(root: Path) -> list[str]:
    """The Python files that may be answers: all that are not tests."""
    found = (path for path in root.rglob("*.py") if path.is_file())
    return sorted(name for name in (path.relative_to(root).as_posix() for path in found) if not is_test(name))


def text(root: Path, path: str) -> str:
    return (root / path).read_text("utf-8", errors="replace")


@lru_cache(maxsize=KNOWN)
def functions(source: str) -> tuple[Function, ...]:
    """The functions of a Python file in order of their lines; none where it does not parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return ()
    lines = source.split("\n")
    found = [
        Function(name, node.lineno, node.end_lineno or node.lineno, "\n".join(lines[node.lineno - 1 : node.end_lineno]))
        for name, node in _functions(tree, "")
    ]
    return tuple(sorted(found, key=lambda function: (function.line, -function.end)))


def _functions(node: ast.AST, within: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = within + child.name
            if not isinstance(child, ast.ClassDef):
                yield name, child
            yield from _functions(child, f"{name}.")
        else:
            yield from _functions(child, within)


def among(files: Sequence[str], ranked: Sequence[str]) -> list[str]:
    """Of ranked files or functions (`path::name`) those of the files that may be answers, each once; no files: all may."""
    known = set(files)
    return [name for name in dict.fromkeys(ranked) if not known or name.partition("::")[0] in known]
