"""Scoring of code search: was what a patch changed found, and does it stand whole in the rendered text?

Comes in: ranked paths and functions (`path::Class.method`), a rendered text, and the gold of one issue. Goes out: fractions,
0..1. What counts as found is strict: an instance has it at k only if *all* of its gold is among the first k.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

FILE_AT = (1, 3, 5, 10)
FUNCTION_AT = (5, 10)
KEPT = 20
"""So many of the ranked names are kept in a row, to see afterwards where the gold went."""

_TEST_FOLDERS = {"test", "tests", "testing"}
_LINE_NUMBER = re.compile(r"^\s*\d+\s?[:|│]\s?")


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


def candidates(root: Path) -> dict[str, str]:
    """The Python files that may be answers, with their text: all that are not tests."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if not is_test(name) and path.is_file():
            found[name] = path.read_text("utf-8", errors="replace")
    return found


@cache
def functions(text: str) -> tuple[Function, ...]:
    """The functions of a Python file in order of their lines; none where it does not parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return ()
    lines = text.split("\n")
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


def all_in_first(gold: Sequence[str], ranked: Sequence[str], k: int) -> bool:
    return set(gold) <= set(ranked[:k])


def shown_files(gold: Sequence[str], text: str) -> float:
    """Which part of the files has its path in the text."""
    return sum(_stands(path, text) for path in gold) / len(gold)


def shown_functions(gold: Sequence[str], files: Mapping[str, str], text: str) -> tuple[float, float]:
    """Which part of the functions stands whole in the text, and which part is at least named there.

    Whole: the path, and every line from `def` to the end that is not blank; indentation, line numbers and order do not
    matter, so that a function shown in two pieces counts. Named: the path and the line with `def`; spaces do not matter.
    """
    shown = {line.strip() for line in text.split("\n")}
    shown |= {_LINE_NUMBER.sub("", line).strip() for line in text.split("\n")}
    squeezed = "".join(text.split())
    whole = named = 0
    for item in gold:
        path, name = item.split("::")
        if _stands(path, text):
            sources = [function.source.split("\n") for function in functions(files[path]) if function.name == name]
            whole += any({line.strip() for line in lines} - {""} <= shown for lines in sources)
            named += any("".join(lines[0].split()).rstrip(":") in squeezed for lines in sources)
    return whole / len(gold), named / len(gold)


def _stands(path: str, text: str) -> bool:
    return re.search(rf"(?<![\w/.-]){re.escape(path)}(?!\w)", text) is not None


def score(
    files: Mapping[str, str],
    gold_files: Sequence[str],
    gold_functions: Sequence[str],
    ranked: tuple[Sequence[str], Sequence[str]],
    packs: Mapping[int, tuple[str, int]],
) -> dict[str, float]:
    """All figures of one instance by name. `packs`: rendered text and its tokens by budget. No gold, no figure."""
    found_files = [path for path in dict.fromkeys(ranked[0]) if path in files]
    found_functions = [name for name in dict.fromkeys(ranked[1]) if name.split("::")[0] in files]
    figures: dict[str, float] = {}
    if gold_files:
        figures |= {f"file@{k}": float(all_in_first(gold_files, found_files, k)) for k in FILE_AT}
    if gold_functions:
        figures |= {f"function@{k}": float(all_in_first(gold_functions, found_functions, k)) for k in FUNCTION_AT}
    for budget, (text, tokens) in packs.items():
        figures[f"tokens {budget}"] = tokens
        if gold_files:
            figures[f"file in {budget}"] = shown_files(gold_files, text)
        if gold_functions:
            figures[f"whole in {budget}"], figures[f"named in {budget}"] = shown_functions(gold_functions, files, text)
    return figures
