"""CoSQA: short web queries, and the Python function that answers each.

`code_idx_map.txt` has the functions with their numbers, `cosqa-retrieval-*.json` the queries: `doc`, and the number of the
function that answers it, `retrieval_idx`. Each function becomes a file of a temporary repository.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from bench.datasets.files import cache_dir
from bench.datasets.python_files import EvidenceFile, EvidenceLines
from foveate.errors import InputError
from foveate.eval.model import Case, Dataset, Subset, Suite
from foveate.eval.reading import digest, find_data_file, load_json

QUERIES_PER_SUBSET = 50
"""A stopped run loses at most this many queries."""
_NAME = re.compile(r"\bdef\s+(\w+)")


def files(path: Path) -> list[Path]:
    folder = path.parent if path.is_file() else path
    return [find_data_file(folder, "cosqa", name) for name in ("code_idx_map.txt", "cosqa-retrieval-*.json")]


def subsets(path: Path, options: Mapping[str, str]) -> Iterator[Subset]:
    functions_file, queries_file = files(path)
    sources = _sources(functions_file)
    queries = enumerate(_load_list(queries_file), 1)
    cases = [_case(query, sources, f"{str(queries_file)!r}, query {n}") for n, query in queries]
    root = (Path(options["folder"]) if "folder" in options else cache_dir("cosqa")) / digest([functions_file])
    write_files = cache(partial(_write_functions, sources, root))
    for first in range(0, len(cases), QUERIES_PER_SUBSET):
        yield Subset(f"from {first + 1}", partial(_dataset, cases[first : first + QUERIES_PER_SUBSET], write_files))


def _dataset(cases: Sequence[Case], write_files: Callable[[], tuple[Path, list[str]]]) -> Dataset:
    root, paths = write_files()
    return Dataset(cases, root=root, answer_files=paths)


def _write_functions(sources: Mapping[int, str], root: Path) -> tuple[Path, list[str]]:
    """Write the functions as files. Unchanged files are not touched, so that the code index stays valid."""
    for number, source in sources.items():
        file = root / _path(number)
        if not file.is_file() or file.read_text("utf-8") != source:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(source, "utf-8", newline="\n")
    return root, [_path(number) for number in sources]


def _sources(path: Path) -> dict[int, str]:
    document = load_json(path)
    if not isinstance(document, dict) or not all(isinstance(number, int) for number in document.values()):
        raise InputError(f"{str(path)!r} must map each function to a number.")
    return {number: source for source, number in document.items()}


def _load_list(path: Path) -> list[Any]:
    document = load_json(path)
    if not isinstance(document, list):
        raise InputError(f"{str(path)!r} must be a list of queries.")
    return document


def _case(query: Any, sources: Mapping[int, str], location: str) -> Case:
    try:
        id, text, number = str(query["idx"]), query["doc"], query["retrieval_idx"]
        source = sources[number]
    except (KeyError, TypeError, IndexError):
        raise InputError(f"{location}: idx, doc or the retrieval_idx of a known function is missing.") from None
    path = _path(number)
    name = _NAME.search(source)
    function = EvidenceLines(f"{path}::{name[1] if name else ''}", path, (source,))
    return Case(id, text, (EvidenceFile(path), function))


def _path(number: int) -> str:
    return f"{number // 100:03}/{number:05}.py"


COSQA = Suite(
    name="cosqa",
    description="CoSQA: short queries; evidence is the one Python function of several thousand that answers",
    subsets=subsets,
    files=files,
    data_format="code_idx_map.txt (functions with their numbers) and cosqa-retrieval-*.json (idx, doc, retrieval_idx)",
    profile="coding",
    budgets=(500, 2000),
    options={"folder": "where the functions are written as files, with foveate's index; by default a cache folder"},
    path_options=("folder",),
    rank_cutoffs={"function": (1, 5, 10), "file": (1, 5, 10)},
    is_code=True,
)
