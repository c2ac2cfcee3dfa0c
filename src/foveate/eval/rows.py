"""The rows of a run, and the file that keeps them: a head, a line for each world, a mark where a run came to its end.

One process at a time writes a file. What a killed one left half written is taken for not written, by readers and by the
run that goes on. The last mark says of how many worlds the run was; worlds beyond it are of a run that has not ended.
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
    """All rows of a system on a suite. `limit`: only so many worlds were asked for; `finished`: all of them are there;
    `skipped`: so many questions of them were not asked."""

    suite: str
    system: str
    rows: tuple[Row, ...]
    about: Mapping[str, Any]
    path: Path
    limit: int | None = None
    finished: bool = True
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class Done:
    """A world that was asked, and how many of its questions were not."""

    rows: Sequence[Row]
    skipped: int = 0


Worlds = dict[str, Done]


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
    """A file that is being written. `waiting`: what is written with the first row, so that no file is without one."""

    file: IO[bytes]
    worlds: Worlds
    mark: Mark | None
    waiting: list[Mapping[str, Any]] = field(default_factory=list)

    def add(self, world: str, done: Done) -> None:
        self.worlds[world] = done
        self._write({"world": world, **asdict(done)})

    def end(self, mark: Mark) -> None:
        """Note that a run has ended, unless it is known, or the file holds all worlds there are."""
        if self.mark not in (mark, Mark(len(self.worlds), None)):
            self._write(asdict(mark))

    def _write(self, document: Mapping[str, Any]) -> None:
        self.waiting.append(document)
        if any(done.rows for done in self.worlds.values()):
            self.file.write(b"".join(json.dumps(one).encode() + b"\n" for one in self.waiting))
            self.file.flush()
            self.waiting.clear()


@contextmanager
def opened(path: Path, about: Mapping[str, Any]) -> Iterator[Book]:
    """The file of a run, new or with what an earlier one left, for this process alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        lock(file, f"Another process is writing {str(path)!r}: let it end, or keep the rows elsewhere with --out.")
        file.seek(0)
        data = file.read()
        if b"\n" not in data:  # new, or killed before its head was written
            held, waiting = Held({}, {}, None, 0), [about]
        else:
            held, waiting = _parsed(path, data), []
        file.truncate(held.whole)
        try:
            yield Book(file, held.worlds, held.mark, waiting)
        finally:
            if file.seek(0, SEEK_END) == 0:
                file.close()
                path.unlink()


def read(path: Path) -> Run:
    """The rows of a file, for reports and comparisons."""
    held = _parsed(path, _bytes(path))
    mark = held.mark or Mark(-1, None)
    return joined(held.about, held.worlds, path, limit=mark.limit, finished=mark.worlds == len(held.worlds))


def joined(about: Mapping[str, Any], worlds: Worlds, path: Path, *, limit: int | None, finished: bool = True) -> Run:
    """A run of the worlds that were asked."""
    rows = tuple(row for done in worlds.values() for row in done.rows)
    skipped = sum(done.skipped for done in worlds.values())
    return Run(about["suite"], about["system"], rows, about, path, limit, finished, skipped)


def read_all(path: Path) -> list[Run]:
    """The run of a file; of a folder, for each suite the latest run and the latest of each system that is like it."""
    if not path.is_dir():
        return [read(path)]
    files = sorted(path.glob("*.jsonl"), key=lambda file: (file.stat().st_mtime_ns, file.name))
    runs = [run for run in (read(file) for file in files if _head(_bytes(file))) if run.rows]
    if not runs:
        raise NotFound(f"{str(path)!r} holds no runs; `foveate eval run` writes them.")
    latest = {run.suite: _alike(run) for run in runs}
    kept = {(run.suite, run.system): run for run in runs if _alike(run) == latest[run.suite]}
    return [kept[key] for key in sorted(kept, key=lambda key: (key[0], not key[1].startswith("foveate"), key[1]))]


def _alike(run: Run) -> list[Any]:
    return [run.about.get(name) for name in ALIKE]


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise NotFound(f"There is no run {str(path)!r}.") from None
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be read: {error.strerror}.") from None


def _head(data: bytes) -> dict[str, Any] | None:
    """What a file says of itself in its first line; nothing where it holds no rows."""
    try:
        about: dict[str, Any] = json.loads(data.partition(b"\n")[0])
        is_ours = about["format"] == FORMAT and _texts(about["suite"], about["system"])
    except _WRONG:
        return None
    return about if is_ours else None


def _parsed(path: Path, data: bytes) -> Held:
    lines = data.splitlines(keepends=True)
    if lines and not lines[-1].endswith(b"\n"):
        lines.pop()  # half a line, where a run was killed or is at work
    about = _head(data)
    if about is None or not lines:
        raise InputError(f"{str(path)!r} is not a run of `foveate eval run`.")
    worlds: Worlds = {}
    mark = None
    budgets: set[frozenset[int]] = set()
    for n, line in enumerate(lines[1:], 2):
        try:
            document = json.loads(line)
            if "worlds" in document:
                mark = Mark(**document)
            else:
                rows = [row(one) for one in document["rows"]]
                worlds[document["world"]] = Done(rows, int(document.get("skipped", 0)))
                budgets |= {frozenset(one.packs) for one in rows}
            _sound(len(budgets) <= 1)
        except _WRONG:
            raise InputError(f"{str(path)!r} is damaged at line {n}; delete it to begin again.") from None
    return Held(about, worlds, mark, sum(map(len, lines)))


def row(document: Mapping[str, Any]) -> Row:
    """A row as it was written; an error where a value is of another type."""
    found = Row(**{**document, "packs": {int(budget): _pack(pack) for budget, pack in document["packs"].items()}})
    ranks = [rank for ranks in found.ranks.values() for rank in ranks]
    _sound(_texts(found.world, found.case), isinstance(found.type, str))
    _sound(all(rank is None or (isinstance(rank, int) and rank > 0) for rank in ranks))
    return found


def _pack(document: Mapping[str, Any]) -> Pack:
    found = Pack(**document)
    flags = [flag for flags in (*found.hits.values(), found.unwanted) for flag in flags]
    _sound(isinstance(found.tokens, int), isinstance(found.ms, int | float))
    _sound(all(isinstance(flag, bool) for flag in flags))
    return found


def _texts(*values: Any) -> bool:
    return all(isinstance(value, str) and value for value in values)


def _sound(*conditions: bool) -> None:
    if not all(conditions):
        raise ValueError("another type")
