"""The rows of a run, and the file that keeps them: a head, a line for each world, a mark where a run came to its end.

One process at a time writes a file. What a killed one left half written is taken for not written, by readers and by the
run that goes on. The last mark says of how many worlds the run was; worlds beyond it are of a run that has not ended.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from foveate.errors import InputError
from foveate.eval.locks import lock

FORMAT = 1
ALIKE = ("suite", "data", "options", "scoring", "types")
"""Runs with the same of these asked the same cases and scored them alike: they may share a table."""
_WRONG = (ValueError, KeyError, TypeError, AttributeError)


@dataclass(frozen=True, slots=True)
class Pack:
    """A case at one budget: what of its evidence stands in the text, by `what`; CPU milliseconds of this process."""

    tokens: int
    ms: float
    hits: Mapping[str, Sequence[bool]]
    unwanted: Sequence[bool] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """A case: its packs by budget, and the rank of each piece of evidence by `what` (1 is best, None not found)."""

    world: str
    case: str
    type: str
    packs: Mapping[int, Pack]
    ranks: Mapping[str, Sequence[int | None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Run:
    """All rows of a system on a suite. `limit`: only so many worlds were asked for; `finished`: all of them are there."""

    suite: str
    system: str
    rows: tuple[Row, ...]
    about: Mapping[str, Any]
    path: Path
    limit: int | None = None
    finished: bool = True


Worlds = dict[str, list[Row]]


@dataclass(frozen=True, slots=True)
class Mark:
    """The end of a run: how many worlds it has, and the limit that it was given."""

    worlds: int
    limit: int | None


@dataclass(frozen=True, slots=True)
class Held:
    """What a file holds: its head, the rows by world, the last mark; and how many bytes of it are whole lines."""

    about: Mapping[str, Any]
    worlds: Worlds
    mark: Mark | None
    whole: int


@dataclass(slots=True)
class Book:
    """A file that is being written."""

    file: IO[bytes]
    worlds: Worlds
    mark: Mark | None

    def add(self, world: str, rows: list[Row]) -> None:
        self.worlds[world] = rows
        _write(self.file, {"world": world, "rows": [asdict(one) for one in rows]})

    def end(self, mark: Mark) -> None:
        """Note that a run has ended, unless it is known, or the file holds all worlds there are."""
        if self.mark not in (mark, Mark(len(self.worlds), None)):
            _write(self.file, asdict(mark))


@contextmanager
def opened(path: Path, about: Mapping[str, Any]) -> Iterator[Book]:
    """The file of a run, new or with what an earlier one left, for this process alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        lock(file, f"Another process is writing {str(path)!r}: let it end, or keep the rows elsewhere with --out.")
        file.seek(0)
        data = file.read()
        if b"\n" not in data:  # new, or killed before its head was written
            file.truncate(0)
            _write(file, about)
            yield Book(file, {}, None)
            return
        held = _parsed(path, data)
        file.truncate(held.whole)
        yield Book(file, held.worlds, held.mark)


def read(path: Path) -> Run:
    """The rows of a file, for reports and comparisons."""
    try:
        held = _parsed(path, path.read_bytes())
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be read: {error.strerror}.") from None
    mark = held.mark or Mark(-1, None)
    rows = tuple(row for rows in held.worlds.values() for row in rows)
    return Run(
        held.about["suite"], held.about["system"], rows, held.about, path, mark.limit, mark.worlds == len(held.worlds)
    )


def read_all(path: Path) -> list[Run]:
    """The run of a file; of a folder, for each suite the latest run and the latest of each system that is like it."""
    if not path.is_dir():
        return [read(path)]
    runs = [read(file) for file in sorted(path.glob("*.jsonl"), key=lambda file: (file.stat().st_mtime_ns, file.name))]
    if not runs:
        raise InputError(f"{str(path)!r} holds no runs; `foveate eval run` writes them.")
    latest = {run.suite: _alike(run) for run in runs}
    kept = {(run.suite, run.system): run for run in runs if _alike(run) == latest[run.suite]}
    return [kept[key] for key in sorted(kept, key=lambda key: (key[0], not key[1].startswith("foveate"), key[1]))]


def _alike(run: Run) -> list[Any]:
    return [run.about.get(name) for name in ALIKE]


def _parsed(path: Path, data: bytes) -> Held:
    lines = data.splitlines(keepends=True)
    if lines and not lines[-1].endswith(b"\n"):
        lines.pop()  # half a line, where a run was killed or is at work
    try:
        about = json.loads(lines[0])
        if about["format"] != FORMAT or not about["suite"] or not about["system"]:
            raise ValueError("another format")
    except (*_WRONG, IndexError):
        raise InputError(f"{str(path)!r} is not a run of `foveate eval run`.") from None
    worlds: Worlds = {}
    mark = None
    for n, line in enumerate(lines[1:], 2):
        try:
            document = json.loads(line)
            if "worlds" in document:
                mark = Mark(**document)
            else:
                worlds[document["world"]] = [row(one) for one in document["rows"]]
        except _WRONG:
            raise InputError(f"{str(path)!r} is damaged at line {n}; delete it to begin again.") from None
    return Held(about, worlds, mark, sum(map(len, lines)))


def row(document: Mapping[str, Any]) -> Row:
    packs = {int(budget): Pack(**pack) for budget, pack in document["packs"].items()}
    return Row(**{**document, "packs": packs})


def _write(file: IO[bytes], document: Mapping[str, Any]) -> None:
    file.write(json.dumps(document).encode() + b"\n")
    file.flush()
