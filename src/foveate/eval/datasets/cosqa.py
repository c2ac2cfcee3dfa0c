"""CoSQA: from a short web query to the Python function that answers it.

`code_idx_map.txt` holds functions and their numbers, `cosqa-retrieval-*.json` the queries: `doc`, and the number of what
answers it, `retrieval_idx`. Each function is a file of a scratch repository.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from foveate.errors import InputError
from foveate.eval.evidence import File, Lines
from foveate.eval.model import Case, Scene, Suite, World
from foveate.eval.reading import cache_folder, digest, find, parsed

TOGETHER = 50
"""Queries of a world: so many are lost where a run is stopped."""
_NAME = re.compile(r"\bdef\s+(\w+)")


def files(path: Path) -> list[Path]:
    """The functions and the queries."""
    folder = path.parent if path.is_file() else path
    return [find(folder, "cosqa", "code_idx_map.txt"), find(folder, "cosqa", "cosqa-retrieval-*.json")]


def worlds(path: Path, options: Mapping[str, str]) -> Iterator[World]:
    functions, queries = files(path)
    sources = _sources(functions)
    asked = [_case(query, sources, f"{str(queries)!r}, query {n}") for n, query in enumerate(_list(queries), 1)]
    root = (Path(options["folder"]) if "folder" in options else cache_folder("cosqa")) / digest([functions])
    lay_out = cache(partial(_laid_out, sources, root))
    for first in range(0, len(asked), TOGETHER):
        yield World(f"{first + 1} and on", partial(_scene, asked[first : first + TOGETHER], lay_out))


def _scene(cases: Sequence[Case], lay_out: Any) -> Scene:
    root, files = lay_out()
    return Scene(cases, root=root, files=files)


def _laid_out(sources: Mapping[int, str], root: Path) -> tuple[Path, list[str]]:
    """The functions as files; what is there already is left alone, and so is the index that was made of it."""
    for number, source in sources.items():
        file = root / _path(number)
        if not file.is_file() or file.read_text("utf-8") != source:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(source, "utf-8", newline="\n")
    return root, [_path(number) for number in sources]


def _sources(path: Path) -> dict[int, str]:
    document = parsed(path)
    if not isinstance(document, dict) or not all(isinstance(number, int) for number in document.values()):
        raise InputError(f"{str(path)!r} does not give a number for each function.")
    return {number: source for source, number in document.items()}


def _list(path: Path) -> list[Any]:
    document = parsed(path)
    if not isinstance(document, list):
        raise InputError(f"{str(path)!r} is not a list of queries.")
    return document


def _case(query: Any, sources: Mapping[int, str], where: str) -> Case:
    try:
        id, asked, number = str(query["idx"]), query["doc"], query["retrieval_idx"]
        source = sources[number]
    except (KeyError, TypeError, IndexError):
        raise InputError(f"{where}, has no idx, no doc, or no retrieval_idx of a known function.") from None
    path = _path(number)
    named = _NAME.search(source)
    function = Lines(f"{path}::{named[1] if named else ''}", path, (source,))
    return Case(id, asked, (File(path), function))


def _path(number: int) -> str:
    return f"{number // 100:03}/{number:05}.py"


SUITE = Suite(
    name="cosqa",
    about="CoSQA: short queries; evidence is the one Python function of some thousands that answers",
    worlds=worlds,
    files=files,
    form="code_idx_map.txt (functions with their numbers) and cosqa-retrieval-*.json (idx, doc, retrieval_idx)",
    profile="coding",
    budgets=(500, 2000),
    options={"folder": "where the functions are laid out as files, with foveate's index; a cache folder unless told"},
    places=("folder",),
    top={"function": (1, 5, 10), "file": (1, 5, 10)},
    on_code=True,
)
