"""Run a suite with a system: render the prompt of every case at every budget, and record which evidence is in it.

Results are stored in a file whose name contains the suite, the system and a digest of everything that the results depend
on. A stopped run resumes, a finished one is read from its file, and a change of the data or of the system starts a new file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from time import process_time
from typing import Any

from foveate import __version__
from foveate.errors import InputError, NotFound, ProfileError
from foveate.eval.model import Case, Dataset, Evidence, OpenSystem, RenderedPrompt, Subset, Suite, System
from foveate.eval.reading import data_errors_at, digest
from foveate.eval.rows import (
    FORMAT_VERSION,
    BudgetResult,
    CaseResult,
    Run,
    RunEnd,
    SubsetResult,
    SubsetResults,
    build_run,
    open_run_file,
)
from foveate.records import make
from foveate.text import analysis, tokens

EVAL_DIR = Path(__file__).parent
READ_ONLY_MODULES = ("report", "tables", "compare", "statistics", "record")
"""Modules that only read results or write cases. Results do not depend on them."""
SHARED_FILES = tuple(Path(module.__file__ or "") for module in (analysis, tokens, make))
"""The parts of the engine that evidence and baselines use."""

Progress = Callable[[str, int, int], None]
"""Called after every case with the system, the number of finished subsets and the number of finished cases."""


def run(
    suite: Suite,
    system: System,
    data: Path,
    folder: Path,
    *,
    budgets: Sequence[int] | None = None,
    limit: int | None = None,
    options: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Run:
    """Run every case of a suite, except those whose results are in `folder` already.

    `limit` is the number of subsets to run, starting with the first.
    """
    options = dict(options or {})
    check(suite, system, data, options)
    header = _run_header(suite, system, data, options, budgets or suite.budgets)
    path = folder / f"{suite.name}.{_file_name(system.name)}.{_header_digest(header)}.jsonl"
    finished: SubsetResults = {}
    with open_run_file(path, header) as writer:
        case_count = 0
        for subset in load_subsets(suite, data, options, limit):
            if subset.id not in writer.subsets:
                dataset = _load_dataset(suite, data, subset)
                results = []
                for result in _run_cases(suite, system, data, subset.id, dataset, header["budgets"]):
                    results.append(result)
                    if progress:
                        progress(system.name, len(finished), case_count + len(results))
                writer.add(subset.id, SubsetResult(results, dataset.skipped_cases))
            finished[subset.id] = writer.subsets[subset.id]
            case_count += len(finished[subset.id].results)
            if progress:
                progress(system.name, len(finished), case_count)
        writer.finish(RunEnd(len(finished), limit))
    if case_count:
        path.touch()  # reports take the run that was used last, also if it was only read
    return build_run(header, finished, path, limit=limit)


def check(suite: Suite, system: System, data: Path, options: Mapping[str, str]) -> None:
    """Raise an error for options, paths and systems that cannot work, before anything is run."""
    unknown = [name for name in options if name not in suite.options]
    if unknown:
        known = ", ".join(suite.options) or "none"
        raise InputError(f"The suite {suite.name!r} has no option {unknown[0]!r}. Options: {known}.")
    if not data.exists():
        raise NotFound(f"{str(data)!r} does not exist; name the file or the folder with the data of {suite.name!r}.")
    if system.is_code not in (None, suite.is_code):
        kinds = ("code", "memories") if system.is_code else ("memories", "code")
        raise InputError(
            f"The system {system.name!r} works on {kinds[0]}, and the suite {suite.name!r} is about {kinds[1]}. "
            "`foveate eval run` lists the systems."
        )


def _run_header(
    suite: Suite, system: System, data: Path, options: Mapping[str, str], budgets: Sequence[int]
) -> dict[str, Any]:
    """Return everything that results depend on.

    Runs can be compared only if `scoring` is the same. `shared` may differ: these files are part of the engine, too, so a
    change of them is one of the things to measure.
    """
    return {
        "format": FORMAT_VERSION,
        "suite": suite.name,
        "system": system.name,
        "budgets": sorted(budgets),
        "data": digest(suite.files(data)),
        "options": {name: value for name, value in options.items() if name not in suite.path_options},
        "fingerprint": system.fingerprint,
        "scoring": digest([*scoring_files(), *_files_of(suite.subsets)]),
        "shared": digest([*SHARED_FILES, *_files_of(type(system).open)]),
        "rank_cutoffs": {name: list(cutoffs) for name, cutoffs in suite.rank_cutoffs.items()},
        "version": __version__,
    }


def load_subsets(suite: Suite, data: Path, options: Mapping[str, str], limit: int | None = None) -> Iterator[Subset]:
    """Yield the subsets of a data set, or the first `limit` of them."""
    seen: set[str] = set()
    with data_errors_at(f"{str(data)!r} is not data of {suite.name!r}", suite.data_format):
        for subset in islice(suite.subsets(data, options), limit):
            if subset.id in seen:
                raise InputError(f"{str(data)!r} contains {subset.id!r} twice; give one of them another id.")
            seen.add(subset.id)
            yield subset


def _load_dataset(suite: Suite, data: Path, subset: Subset) -> Dataset:
    with data_errors_at(f"{str(data)!r}, {subset.id}, is not data of {suite.name!r}", suite.data_format):
        return subset.load()


def _run_cases(
    suite: Suite, system: System, data: Path, subset: str, dataset: Dataset, budgets: Sequence[int]
) -> Iterator[CaseResult]:
    if not dataset.cases:
        return
    with _errors_at(f"{str(data)!r}, {subset}"):
        opened = system.open(dataset, suite)
    try:
        for case in dataset.cases:
            with _errors_at(f"{str(data)!r}, case {case.id!r}"):
                result = run_case(opened, case, subset, budgets)
            yield result
    finally:
        opened.close()


@contextmanager
def _errors_at(location: str) -> Iterator[None]:
    """Add the place in the data to errors of a system."""
    try:
        yield
    except (InputError, ProfileError) as error:
        problems = error.problems if isinstance(error, InputError) else (str(error),)
        raise InputError([f"{location}: {problem}" for problem in problems]) from None


def scoring_files() -> list[Path]:
    """Return the files that decide which cases are run, how baselines answer them, and what counts as present."""
    return sorted(path for path in EVAL_DIR.rglob("*.py") if path.stem not in READ_ONLY_MODULES)


def _files_of(function: Callable[..., object]) -> list[Path]:
    """Return the Python files in the folder of a function, or nothing if `scoring_files` has them."""
    code = getattr(function, "__code__", None)
    file = Path(code.co_filename) if code else EVAL_DIR
    if EVAL_DIR in (file, *file.parents):
        return []
    return sorted(file.parent.glob("*.py")) if (file.parent / "__init__.py").is_file() else [file]


def run_case(system: OpenSystem, case: Case, subset: str, budgets: Iterable[int]) -> CaseResult:
    by_budget = {}
    for budget in budgets:
        started = process_time()
        prompt = system.render(case, budget)
        cpu_ms = round((process_time() - started) * 1000, 2)
        forbidden_hits = [piece.is_present_in(prompt) for piece in case.forbidden]
        by_budget[budget] = BudgetResult(tokens.count(prompt.text), cpu_ms, _hits(case.expected, prompt), forbidden_hits)
    return CaseResult(subset, case.id, case.question_type, by_budget, _ranks(case.expected, system.ranking(case)))


def _hits(expected: Sequence[Evidence], prompt: RenderedPrompt) -> dict[str, list[bool]]:
    hits: dict[str, list[bool]] = {}
    for piece in expected:
        hits.setdefault(piece.evidence_type, []).append(piece.is_present_in(prompt))
    return hits


def _ranks(expected: Sequence[Evidence], ranking: Mapping[str, Sequence[str]]) -> dict[str, list[int | None]]:
    # Reversed, so that the best rank counts if an id is ranked twice.
    positions = {name: {id: n for n, id in reversed(list(enumerate(ids, 1)))} for name, ids in ranking.items()}
    ranks: dict[str, list[int | None]] = {}
    for piece in expected:
        if piece.evidence_type in positions:
            ranks.setdefault(piece.evidence_type, []).append(positions[piece.evidence_type].get(piece.id))
    return ranks


def _header_digest(header: Mapping[str, Any]) -> str:
    return blake2b(json.dumps(header, sort_keys=True).encode(), digest_size=4).hexdigest()


def _file_name(system: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in system)
