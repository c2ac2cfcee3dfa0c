"""Suite and systems -> rows: every case is asked at every budget, and what stands in the rendered text is noted.

Rows are kept in a file whose name tells suite, system and a digest of all that they depend on: a run that was stopped goes
on where it was, a finished one is read, and a change of the data or of the system begins a new file.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from time import process_time
from typing import Any

from foveate import __version__, tokens
from foveate.errors import InputError
from foveate.eval.model import Asked, Case, Evidence, Rendered, Suite, System, World
from foveate.eval.reading import digest, shaped

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Pack:
    """A case at one budget: what of its evidence stands in the text, by `what`; CPU milliseconds."""

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
    """All rows of a system on a suite."""

    suite: str
    system: str
    rows: tuple[Row, ...]
    about: Mapping[str, Any]
    path: Path


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
    unknown = [name for name in options if name not in suite.options]
    if unknown:
        raise InputError(
            f"The suite {suite.name!r} has no option {unknown[0]!r}; it has {', '.join(suite.options) or 'none'}."
        )
    if not data.exists():
        raise InputError(f"{str(data)!r} does not exist; name the file or the folder with the data of {suite.name!r}.")
    about: dict[str, Any] = {
        "format": FORMAT,
        "suite": suite.name,
        "system": system.name,
        "budgets": sorted(budgets or suite.budgets),
        "data": digest(suite.files(data)),
        "options": options,
        "fingerprint": system.fingerprint,
        "scoring": digest(_scoring(suite)),
        "version": __version__,
        **({"types": sorted(types)} if types else {}),
    }
    path = folder / f"{suite.name}.{_file_name(system.name)}.{_short(about)}.jsonl"
    known = _begun(path, about)
    done: list[Row] = []
    with path.open("a", encoding="utf-8") as out:
        for n, world in enumerate(worlds(suite, data, options, limit), 1):
            if world.id not in known:
                rows = []
                for asked in _rows(suite, system, data, world, about["budgets"], types):
                    rows.append(asked)
                    if progress:
                        progress(system.name, n - 1, len(done) + len(rows))
                known[world.id] = rows
                out.write(json.dumps({"world": world.id, "rows": [asdict(one) for one in rows]}) + "\n")
                out.flush()
            done += known[world.id]
            if progress:
                progress(system.name, n, len(done))
    path.touch()  # the latest is the one that was asked for last
    return Run(suite.name, system.name, tuple(done), about, path)


def worlds(suite: Suite, data: Path, options: Mapping[str, str], limit: int | None = None) -> Iterator[World]:
    """The first worlds of a data set, or all."""
    with shaped(data, suite.name, suite.about):
        yield from islice(suite.worlds(data, options), limit)


def _rows(
    suite: Suite, system: System, data: Path, world: World, budgets: Sequence[int], types: Sequence[str]
) -> Iterator[Row]:
    with shaped(data, suite.name, suite.about):
        scene = world.load()
    cases = [case for case in scene.cases if not types or case.type in types]
    if not cases:
        return
    asked = system.open(scene, suite)
    try:
        for case in cases:
            yield ask(asked, case, world.id, budgets)
    finally:
        asked.close()


def _scoring(suite: Suite) -> list[Path]:
    """The files that decide what is asked and what counts."""
    adapter = sys.modules[suite.worlds.__module__].__file__
    here = Path(__file__)
    return [here, here.with_name("model.py"), here.with_name("evidence.py"), *([Path(adapter)] if adapter else [])]


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


# --- files ---------------------------------------------------------------------------------------------------------


def _begun(path: Path, about: Mapping[str, Any]) -> dict[str, list[Row]]:
    """The rows that a file holds already, by world; a new file with its head, or what an earlier run left of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.write_text(json.dumps(about) + "\n", "utf-8")
        return {}
    known, whole = {}, 0
    for n, line in enumerate(path.read_bytes().splitlines(keepends=True)):
        if not line.endswith(b"\n"):
            break  # half a line, where a run was killed
        whole += len(line)
        if n:
            try:
                document = json.loads(line)
                known[document["world"]] = [row(one) for one in document["rows"]]
            except (ValueError, KeyError, TypeError, AttributeError):
                raise InputError(f"{str(path)!r} is damaged at line {n + 1}; delete it to begin again.") from None
    os.truncate(path, whole)
    if not whole:  # killed before its head was written
        path.write_text(json.dumps(about) + "\n", "utf-8")
    return known


def read(path: Path) -> Run:
    """The rows of a file, for reports and comparisons."""
    try:
        head, *rest = path.read_text("utf-8").splitlines()
        about = json.loads(head)
        if about.get("format") != FORMAT:
            raise ValueError("another format")
        rows = tuple(row(one) for line in rest for one in json.loads(line)["rows"])
        return Run(about["suite"], about["system"], rows, about, path)
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be read: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{str(path)!r} is not a finished run of `foveate eval run`.") from None


def read_all(path: Path) -> list[Run]:
    """The run of a file; of a folder, the latest of each suite and system."""
    if not path.is_dir():
        return [read(path)]
    files = sorted(path.glob("*.jsonl"), key=lambda file: (file.stat().st_mtime_ns, file.name))
    latest = {(run.suite, run.system): run for run in map(read, files)}
    if not latest:
        raise InputError(f"{str(path)!r} holds no runs; `foveate eval run` writes them.")
    return [latest[key] for key in sorted(latest, key=lambda key: (key[0], not key[1].startswith("foveate"), key[1]))]


def row(document: Mapping[str, Any]) -> Row:
    packs = {int(budget): Pack(**pack) for budget, pack in document["packs"].items()}
    return Row(**{**document, "packs": packs})


def _short(about: Mapping[str, Any]) -> str:
    return blake2b(json.dumps(about, sort_keys=True).encode(), digest_size=4).hexdigest()


def _file_name(system: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in system)
