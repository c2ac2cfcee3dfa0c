"""Suite and systems -> rows: every case is asked at every budget, and what stands in the rendered text is noted.

Rows are kept in a file whose name tells suite, system and a digest of all that they depend on: a run that was stopped goes
on where it was, a finished one is read, and a change of the data or of the system begins a new file.
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
from foveate.eval.model import Asked, Case, Evidence, Rendered, Scene, Suite, System, World
from foveate.eval.reading import digest, shaped
from foveate.eval.rows import FORMAT, Done, Mark, Pack, Row, Run, Worlds, joined, opened
from foveate.records import make
from foveate.text import analysis, tokens

HERE = Path(__file__).parent
READERS = ("report", "tables", "plot", "gate", "compare", "statistics", "measures", "record")
"""Modules that only read rows, or make data: rows do not depend on them."""
SHARED = tuple(Path(module.__file__ or "") for module in (analysis, tokens, make))
"""What evidence and baselines take from the engine."""

Progress = Callable[[str, int, int], None]
"""Is told after every case: which system, how many worlds are done, and how many cases."""


def run(
    suite: Suite,
    system: System,
    data: Path,
    folder: Path,
    *,
    budgets: Sequence[int] | None = None,
    limit: int | None = None,
    types: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Run:
    """Ask every case of a suite; what `folder` holds already is not asked again.

    `limit`: so many worlds, the first ones. `types`: only the cases of these types.
    """
    options = dict(options or {})
    check(suite, system, data, options)
    about = _about(suite, system, data, options, budgets or suite.budgets, types)
    path = folder / f"{suite.name}.{_file_name(system.name)}.{_short(about)}.jsonl"
    done: Worlds = {}
    with opened(path, about) as book:
        cases = 0
        for world in worlds(suite, data, options, limit):
            if world.id not in book.worlds:
                scene = _scene(suite, data, world)
                asked = []
                for one in _rows(suite, system, data, world.id, scene, about["budgets"], types):
                    asked.append(one)
                    if progress:
                        progress(system.name, len(done), cases + len(asked))
                book.add(world.id, Done(asked, scene.skipped))
            done[world.id] = book.worlds[world.id]
            cases += len(done[world.id].rows)
            if progress:
                progress(system.name, len(done), cases)
        book.end(Mark(len(done), limit))
    if cases:
        path.touch()  # the latest is the one that was asked for last
    return joined(about, done, path, limit=limit)


def check(suite: Suite, system: System, data: Path, options: Mapping[str, str]) -> None:
    """What can be known before anything is asked."""
    unknown = [name for name in options if name not in suite.options]
    if unknown:
        raise InputError(
            f"The suite {suite.name!r} has no option {unknown[0]!r}; it has {', '.join(suite.options) or 'none'}."
        )
    if not data.exists():
        raise NotFound(f"{str(data)!r} does not exist; name the file or the folder with the data of {suite.name!r}.")
    if system.on_code not in (None, suite.on_code):
        kinds = ("code", "memories") if system.on_code else ("memories", "code")
        raise InputError(
            f"The system {system.name!r} is for {kinds[0]}, and {suite.name!r} is about {kinds[1]}; see `foveate eval list`."
        )


def _about(
    suite: Suite, system: System, data: Path, options: Mapping[str, str], budgets: Sequence[int], types: Sequence[str]
) -> dict[str, Any]:
    """All that rows depend on. `scoring` must be the same in runs that are compared; `shared` may differ, because the
    engine has it too: a change of it is among the things to measure."""
    return {
        "format": FORMAT,
        "suite": suite.name,
        "system": system.name,
        "budgets": sorted(budgets),
        "data": digest(suite.files(data)),
        "options": {name: value for name, value in options.items() if name not in suite.places},
        "fingerprint": system.fingerprint,
        "scoring": digest(scoring()),
        "shared": digest(SHARED),
        "version": __version__,
        **({"types": sorted(types)} if types else {}),
    }


def worlds(suite: Suite, data: Path, options: Mapping[str, str], limit: int | None = None) -> Iterator[World]:
    """The first worlds of a data set, or all."""
    seen: set[str] = set()
    with shaped(f"{str(data)!r} is not data of {suite.name!r}", suite.form):
        for world in islice(suite.worlds(data, options), limit):
            if world.id in seen:
                raise InputError(f"{str(data)!r} holds {world.id!r} twice; give one of them another id.")
            seen.add(world.id)
            yield world


def _scene(suite: Suite, data: Path, world: World) -> Scene:
    with shaped(f"{str(data)!r}, {world.id}, is not data of {suite.name!r}", suite.form):
        return world.load()


def _rows(
    suite: Suite, system: System, data: Path, world: str, scene: Scene, budgets: Sequence[int], types: Sequence[str]
) -> Iterator[Row]:
    cases = [case for case in scene.cases if not types or case.type in types]
    if not cases:
        return
    with _placed(f"{str(data)!r}, {world}"):
        asked = system.open(scene, suite)
    try:
        for case in cases:
            with _placed(f"{str(data)!r}, case {case.id!r}"):
                row = ask(asked, case, world, budgets)
            yield row
    finally:
        asked.close()


@contextmanager
def _placed(place: str) -> Iterator[None]:
    """What a system refuses, with the place in the data that it is about."""
    try:
        yield
    except (InputError, ProfileError) as error:
        problems = error.problems if isinstance(error, InputError) else (str(error),)
        raise InputError([f"{place}: {problem}" for problem in problems]) from None


def scoring() -> list[Path]:
    """The files that decide what is asked, how it is answered beside foveate, and what counts."""
    return sorted(path for path in HERE.rglob("*.py") if path.stem not in READERS)


def ask(asked: Asked, case: Case, world: str, budgets: Iterable[int]) -> Row:
    packs = {}
    for budget in budgets:
        began = process_time()
        rendered = asked.render(case, budget)
        ms = round((process_time() - began) * 1000, 2)
        unwanted = [piece.stands(rendered) for piece in case.unwanted]
        packs[budget] = Pack(tokens.count(rendered.text), ms, _hits(case.wanted, rendered), unwanted)
    return Row(world, case.id, case.type, packs, _ranks(case.wanted, asked.ranked(case)))


def _hits(wanted: Sequence[Evidence], rendered: Rendered) -> dict[str, list[bool]]:
    hits: dict[str, list[bool]] = {}
    for piece in wanted:
        hits.setdefault(piece.what, []).append(piece.stands(rendered))
    return hits


def _ranks(wanted: Sequence[Evidence], ranked: Mapping[str, Sequence[str]]) -> dict[str, list[int | None]]:
    places = {what: {id: n for n, id in reversed(list(enumerate(ids, 1)))} for what, ids in ranked.items()}
    ranks: dict[str, list[int | None]] = {}
    for piece in wanted:
        if piece.what in places:
            ranks.setdefault(piece.what, []).append(places[piece.what].get(piece.id))
    return ranks


def _short(about: Mapping[str, Any]) -> str:
    return blake2b(json.dumps(about, sort_keys=True).encode(), digest_size=4).hexdigest()


def _file_name(system: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in system)
