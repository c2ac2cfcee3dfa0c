"""Outlines: ranked definitions -> the parts of the repository map, one for each file, at three lengths.

Comes in: the index and the ranks of `graph.rank`. Goes out: outlines, the heaviest file first: signatures without bodies, as
a tree in the order of the lines, a class above its methods. How many of them fit, and at which length, the budget decides.
A repository that defines nothing gets its folders with counts instead.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from foveate.code.graph import CLASSES, VALUES, Symbol, Symbols, substance
from foveate.code.model import Role

MAX_FILES = 60
MAX_DEFINITIONS = 800
"""Of a ranking: the long tail of what was touched in passing fills no line."""
MAX_LINES = 25
"""Of the heaviest file, below its path. Lighter files get fewer, down to `FEW_LINES`."""
FEW_LINES = 8
SUMMARY_LINES = 5
MAX_SIGNATURE = 120
MAX_MICRO = 80
"""Characters of a micro line: about 20 tokens."""

DEPTH = 0.6
"""Each further definition of a file counts less for the file: a large file is not important because it is large."""
WORTH = 0.04
"""Of the best definition of the file, from which another one is worth a line."""
WORTH_DETAIL = 0.5
"""The same for constants, fields and functions inside functions, which are details."""
WORTH_FILLING = 0.1
"""Rank of a file from which a class that was found alone shows what it can do; further out its name is enough."""
UNDOCUMENTED = 0.7
"""Of such members, those with a docstring come first: they are what the class offers."""

PROSE: frozenset[Role] = frozenset(("docs", "config", "data"))
"""Files that define nothing to call: their headings and keys fit in a micro line."""

MAX_FOLDERS = 40
FILES_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Outline:
    """What the map says of one file (or folder): its path on top, then a line for each definition that is shown."""

    path: str
    rank: float
    """0..1, against the heaviest one."""
    full: str
    summary: str
    micro: str
    shown: tuple[int, ...] = ()
    """Ids of the definitions in `full`, by line."""


def outlines(
    symbols: Symbols, ranks: Mapping[int, float], *, files: Mapping[str, float] | None = None, max_files: int = MAX_FILES
) -> list[Outline]:
    """The heaviest files of a ranking, heaviest first.

    `files` are named ones with a weight on the scale of the ranks: they appear even if they define nothing.
    """
    ranked: defaultdict[str, dict[int, float]] = defaultdict(dict)
    best = sorted(ranks, key=lambda id: -round(ranks[id], 12))[:MAX_DEFINITIONS]
    for id, symbol in symbols.symbols(best).items():
        ranked[symbol.path][id] = ranks[id]
    weights = {path: _file_rank(own.values()) for path, own in ranked.items()}
    for path, weight in (files or {}).items():
        weights[path] = max(weights.get(path, 0.0), weight)
    top = max(weights.values(), default=0.0)
    if top <= 0:
        return []
    heaviest = sorted(weights, key=lambda path: (-round(weights[path], 12), path))[:max_files]
    return [_outline(path, weights[path] / top, symbols.symbols_in_file(path), ranked.get(path, {})) for path in heaviest]


def structure(paths: Iterable[str], *, max_folders: int = MAX_FOLDERS) -> list[Outline]:
    """For a repository without definitions: its folders with counts, those with the most files first."""
    held = _folders(sorted(set(paths)), max_folders)
    largest = sorted(held, key=lambda folder: (-len(held[folder]), folder))
    return [_folder_outline(folder, held[folder], len(held[folder]) / len(held[largest[0]])) for folder in largest]


def _file_rank(ranks: Iterable[float]) -> float:
    return sum(rank * DEPTH**place for place, rank in enumerate(sorted(ranks, reverse=True)))


def _outline(path: str, weight: float, defined: Sequence[Symbol], ranks: Mapping[int, float]) -> Outline:
    defined = [symbol for symbol in defined if symbol.name]
    own = {symbol.id: ranks[symbol.id] for symbol in defined if symbol.id in ranks}
    tree = _Tree(defined, own or {symbol.id: substance(symbol) for symbol in defined if symbol.parent is None})
    micro = _micro(path, tree.heads())
    if not tree.is_code():
        return Outline(path, weight, micro, micro, micro)
    fill = weight >= WORTH_FILLING
    chosen = tree.choose(max(FEW_LINES, round(MAX_LINES * weight**0.5)), fill)
    return Outline(
        path=path,
        rank=weight,
        full="\n".join((path, *tree.lines(chosen))),
        summary="\n".join((path, *tree.lines(tree.choose(SUMMARY_LINES, fill)))),
        micro=micro,
        shown=tuple(symbol.id for symbol in defined if symbol.id in chosen),
    )


class _Tree:
    """The definitions of one file, and what each is worth showing."""

    def __init__(self, defined: Sequence[Symbol], ranks: Mapping[int, float]) -> None:
        self.defined = defined
        self.by_id = {symbol.id: symbol for symbol in defined}
        best = max(ranks.values(), default=0.0)
        self.worth = {
            symbol.id: ranks[symbol.id]
            for symbol in defined
            if symbol.id in ranks and ranks[symbol.id] > best * (WORTH_DETAIL if self._is_detail(symbol) else WORTH)
        }
        self.best = self._by(self.worth)

    @cached_property
    def spare(self) -> list[int]:
        """Public members without a rank of their own."""
        first = {symbol.qualified: symbol for symbol in reversed(self.defined)}  # a property comes with a setter of its name
        worth = self.worth
        members = {
            symbol.id: worth[symbol.parent] * (1.0 if symbol.doc else UNDOCUMENTED)
            for symbol in first.values()
            if symbol.parent is not None
            and symbol.parent in worth
            and symbol.id not in worth
            and not self._is_detail(symbol)
            and (symbol.name == "__init__" or not symbol.name.startswith("_"))
        }
        return self._by(members)

    def _by(self, worth: Mapping[int, float]) -> list[int]:
        return sorted(worth, key=lambda id: (-round(worth[id], 12), self.by_id[id].line, id))

    def _is_detail(self, symbol: Symbol) -> bool:
        above = self.by_id.get(symbol.parent) if symbol.parent is not None else None
        return symbol.kind in VALUES or (above is not None and above.kind not in CLASSES)

    def is_code(self) -> bool:
        return any(self.by_id[id].role not in PROSE and self.by_id[id].kind not in ("section", "key") for id in self.best)

    def choose(self, room: int, fill: bool) -> set[int]:
        """The best definitions, with what encloses them, in that many lines; `fill` adds members where few were found."""
        chosen: set[int] = set()
        for ids, limit in ((self.best, room), (self.spare if fill else (), min(room, FEW_LINES))):
            for id in ids:
                missing = {id, *self._above(id)} - chosen
                if len(chosen) + len(missing) <= limit:
                    chosen |= missing
        return chosen

    def lines(self, chosen: set[int]) -> list[str]:
        return [
            "  " * (1 + len(self._above(symbol.id))) + _cut(symbol.signature or symbol.name, MAX_SIGNATURE)
            for symbol in self.defined
            if symbol.id in chosen
        ]

    def heads(self) -> list[str]:
        """Names for the micro line: what stands at the top level, best first; a method speaks for its class."""
        outer = (self._above(id)[-1:] or [id] for id in self.best)
        return list(dict.fromkeys(self.by_id[id].name for (id,) in outer))

    def _above(self, id: int) -> list[int]:
        found: list[int] = []
        parent = self.by_id[id].parent
        while parent in self.by_id and parent is not None and parent not in found:
            found.append(parent)
            parent = self.by_id[parent].parent
        return found


def _cut(signature: str, size: int) -> str:
    line = " ".join(signature.split()).rstrip(" {:")
    return line if len(line) <= size else line[: size - 1].rstrip() + "…"


def _micro(path: str, names: Iterable[str]) -> str:
    line = path
    for place, name in enumerate(names):
        longer = f"{line}{', ' if place else ': '}{_cut(name, MAX_MICRO // 2)}"
        if len(longer) > MAX_MICRO and place:
            break
        line = longer
    return line


def _folders(paths: Sequence[str], max_folders: int) -> dict[str, list[str]]:
    """Folder -> files in it, or also below it: the largest folders are split up, as far as there is room."""
    held = {"": list(paths)}
    whole = [""]
    while whole:
        folder = whole.pop(max(range(len(whole)), key=lambda place: (len(held[whole[place]]), -place)))
        parts: defaultdict[str, list[str]] = defaultdict(list)
        for path in held[folder]:
            first, below, _ = path[len(folder) + bool(folder) :].partition("/")
            parts[f"{folder}/{first}".lstrip("/") if below else folder].append(path)
        if len(held) - 1 + len(parts) <= max_folders:
            del held[folder]
            held |= parts
            whole += sorted(parts.keys() - {folder})
    return held


def _folder_outline(folder: str, paths: Sequence[str], weight: float) -> Outline:
    name = f"{folder}/" if folder else "./"
    types = Counter(path.rpartition("/")[2].rpartition(".")[2] for path in paths if "." in path.rpartition("/")[2])
    common = sorted(types, key=lambda type: (-types[type], type))[:4]
    count = f"{len(paths)} file{'s' if len(paths) > 1 else ''}"
    summary = f"{name} ({', '.join((count, *(f'{types[type]} {type}' for type in common)))})"
    shown = [f"  {_cut(path.removeprefix(f'{folder}/'), MAX_SIGNATURE)}" for path in paths[:FILES_SHOWN]]
    if len(paths) > FILES_SHOWN:
        shown.append(f"  ... {len(paths) - FILES_SHOWN} more")
    return Outline(name, weight, "\n".join((summary, *shown)), summary, f"{name}: {count}")
