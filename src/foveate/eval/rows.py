"""The results of a run and the file that stores them: a header, a line for each subset, and a marker at the end of a run.

One process at a time writes a file. A line that a killed process left incomplete is ignored by readers and by the run that
resumes. The last marker says how many subsets the run had; subsets after it belong to a run that has not ended.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from os import SEEK_END
from pathlib import Path
from typing import IO, Any

from foveate.errors import InputError, NotFound
from foveate.eval.reading import lock

FORMAT_VERSION = 2
COMPARABLE_KEYS = ("suite", "data", "options", "scoring")
"""Runs with the same values ran the same cases and scored them alike, so they may share a table."""
_PARSE_ERRORS = (ValueError, KeyError, TypeError, AttributeError)


@dataclass(frozen=True, slots=True)
class BudgetResult:
    """A case at one budget: tokens of the prompt, CPU time, and which evidence is in it, by type."""

    tokens: int
    cpu_ms: float
    hits: Mapping[str, Sequence[bool]]
    forbidden_hits: Sequence[bool] = ()


@dataclass(frozen=True, slots=True)
class CaseResult:
    """A case at every budget, and the rank of each piece of evidence by type: 1 is best, None is not found."""

    subset: str
    case: str
    question_type: str
    by_budget: Mapping[int, BudgetResult]
    ranks: Mapping[str, Sequence[int | None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Run:
    """All results of a system on a suite. `limit` is the number of subsets asked for; None is all of them."""

    suite: str
    system: str
    results: tuple[CaseResult, ...]
    header: Mapping[str, Any]
    path: Path
    limit: int | None = None
    is_finished: bool = True
    skipped_cases: int = 0


@dataclass(frozen=True, slots=True)
class SubsetResult:
    """The results of a subset, and how many of its questions were not run."""

    results: Sequence[CaseResult]
    skipped_cases: int = 0


SubsetResults = dict[str, SubsetResult]


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The end of a run: the number of its subsets, and the limit that it was given."""

    subsets: int
    limit: int | None


@dataclass(frozen=True, slots=True)
class RunFile:
    """The content of a file. `complete_bytes` are the bytes of its complete lines."""

    header: Mapping[str, Any]
    subsets: SubsetResults
    end: RunEnd | None
    complete_bytes: int


@dataclass(slots=True)
class RunWriter:
    """A file that is being written. Lines wait in `pending` until there is a result, so that no file is without one."""

    file: IO[bytes]
    subsets: SubsetResults
    end: RunEnd | None
    pending: list[Mapping[str, Any]] = field(default_factory=list)

    def add(self, subset: str, result: SubsetResult) -> None:
        self.subsets[subset] = result
        self._write({"subset": subset, **asdict(result)})

    def finish(self, end: RunEnd) -> None:
        """Write the marker, unless the file has it already or contains all subsets of the suite."""
        if self.end not in (end, RunEnd(len(self.subsets), None)):
            self._write({"subsets": end.subsets, "limit": end.limit})

    def _write(self, document: Mapping[str, Any]) -> None:
        self.pending.append(document)
        if any(result.results for result in self.subsets.values()):
            self.file.write(b"".join(json.dumps(line).encode() + b"\n" for line in self.pending))
            self.file.flush()
            self.pending.clear()


@contextmanager
def open_run_file(path: Path, header: Mapping[str, Any]) -> Iterator[RunWriter]:
    """Open a new or existing run file for this process alone. A file that gets no results is deleted."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        lock(file, f"Another process is writing {str(path)!r}: wait for it, or use another folder with --out.")
        file.seek(0)
        data = file.read()
        if b"\n" not in data:  # new, or the process was killed before it wrote the header
            content, pending = RunFile({}, {}, None, 0), [header]
        else:
            content, pending = _parse_run_file(path, data), []
        file.truncate(content.complete_bytes)
        try:
            yield RunWriter(file, content.subsets, content.end, pending)
        finally:
            if file.seek(0, SEEK_END) == 0:
                file.close()
                path.unlink()


def read_run(path: Path) -> Run:
    """Read a run file, for reports and comparisons."""
    content = _parse_run_file(path, _read_bytes(path))
    end = content.end or RunEnd(-1, None)
    is_finished = end.subsets == len(content.subsets)
    return build_run(content.header, content.subsets, path, limit=end.limit, is_finished=is_finished)


def build_run(
    header: Mapping[str, Any], subsets: SubsetResults, path: Path, *, limit: int | None, is_finished: bool = True
) -> Run:
    results = tuple(case for subset in subsets.values() for case in subset.results)
    skipped = sum(subset.skipped_cases for subset in subsets.values())
    return Run(header["suite"], header["system"], results, header, path, limit, is_finished, skipped)


def read_runs(path: Path) -> list[Run]:
    """Return the run of a file, or the latest runs of a folder.

    A folder gives the latest run of each suite, and the latest run of each other system that is comparable with it.
    """
    if not path.is_dir():
        return [read_run(path)]
    files = sorted(path.glob("*.jsonl"), key=lambda file: (file.stat().st_mtime_ns, file.name))
    runs = [run for run in (read_run(file) for file in files if _read_header(_read_bytes(file))) if run.results]
    if not runs:
        raise NotFound(f"{str(path)!r} contains no runs; `foveate eval run` writes them.")
    latest = {run.suite: _comparison_key(run) for run in runs}
    chosen = {(run.suite, run.system): run for run in runs if _comparison_key(run) == latest[run.suite]}
    return [chosen[key] for key in sorted(chosen, key=lambda key: (key[0], not key[1].startswith("foveate"), key[1]))]


def _comparison_key(run: Run) -> list[Any]:
    return [run.header.get(name) for name in COMPARABLE_KEYS]


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise NotFound(f"There is no run {str(path)!r}.") from None
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be read: {error.strerror}.") from None


def _read_header(data: bytes) -> dict[str, Any] | None:
    """Return the header of a run file, or None if it is not a run file."""
    try:
        header: dict[str, Any] = json.loads(data.partition(b"\n")[0])
        is_run = header["format"] == FORMAT_VERSION and {"suite", "system"} <= header.keys()
    except _PARSE_ERRORS:
        return None
    return header if is_run else None


def _parse_run_file(path: Path, data: bytes) -> RunFile:
    lines = data.splitlines(keepends=True)
    if lines and not lines[-1].endswith(b"\n"):
        lines.pop()  # incomplete: the process was killed or is still writing
    header = _read_header(data)
    if header is None or not lines:
        raise InputError(f"{str(path)!r} is not a run of `foveate eval run`.")
    subsets: SubsetResults = {}
    end = None
    for n, line in enumerate(lines[1:], 2):
        try:
            document = json.loads(line)
            if "subsets" in document:
                end = RunEnd(**document)
            else:
                subsets[document["subset"]] = _parse_subset(document)
        except _PARSE_ERRORS:
            raise InputError(f"{str(path)!r} is damaged at line {n}; delete the file to start again.") from None
    return RunFile(header, subsets, end, sum(map(len, lines)))


def _parse_subset(document: Mapping[str, Any]) -> SubsetResult:
    return SubsetResult([_parse_case(case) for case in document["results"]], document.get("skipped_cases", 0))


def _parse_case(document: Mapping[str, Any]) -> CaseResult:
    by_budget = {int(budget): BudgetResult(**result) for budget, result in document["by_budget"].items()}
    return CaseResult(**{**document, "by_budget": by_budget})
