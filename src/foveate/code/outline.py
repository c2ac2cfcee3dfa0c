"""Renders the parts of the repository map: one outline for each file, at three levels of detail.

The outlines follow the ranks of `graph.rank`, the highest file first. An outline is a tree of signatures in the order of the
lines, with methods below their class. The budget decides how many outlines are shown, and at which level. A repository
without definitions has outlines of its folders instead.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from foveate.code.graph import CLASS_KINDS, VALUE_KINDS, size_weight
from foveate.code.index_reader import IndexReader
from foveate.code.model import Role, Symbol
from foveate.text.format import pluralize

MAX_FILES = 60
MAX_DEFINITIONS = 800
"""Definitions with a lower rank are not shown: the long tail was only reached in passing."""
MAX_LINES = 25
"""Lines of the highest file below its path. Other files have fewer, down to `MIN_LINES`."""
MIN_LINES = 8
SUMMARY_LINES = 5
MAX_SIGNATURE_CHARS = 120
MAX_MICRO_CHARS = 80
"""About 20 tokens."""

RANK_DECAY = 0.6
"""Each further definition of a file adds this share of the one before: a large file is not important because it is large."""
MIN_DEFINITION_RANK = 0.04
"""Share of the best rank in a file. Definitions with a lower rank have no line."""
MIN_DETAIL_RANK = 0.5
"""The same for details: constants, fields and functions inside functions."""
MIN_FILL_RANK = 0.1
"""From this rank of a file, a class shows members that have no rank themselves. Below it the name of the class is enough."""
UNDOCUMENTED_FACTOR = 0.7
"""Factor for members without a docstring: those with one are the interface of the class."""

PROSE_ROLES: frozenset[Role] = frozenset(("docs", "config", "data"))
"""Roles of files without callable definitions. Their headings and keys fit in a micro line."""

MAX_FOLDERS = 40
MAX_FILES_PER_DIR = 8


@dataclass(frozen=True, slots=True)
class Outline:
    """The outline of a file or folder: its path, then a line for each definition that is shown."""

    path: str
    rank: float
    """Rank relative to the highest file, 0..1."""
    full: str
    summary: str
    micro: str
    shown_ids: tuple[int, ...] = ()
    """Ids of the definitions in `full`, by line."""


def outlines(
    index: IndexReader, ranks: Mapping[int, float], *, files: Mapping[str, float] | None = None, max_files: int = MAX_FILES
) -> list[Outline]:
    """Return the outlines of the files with the highest ranks, the highest first.

    `files` are further files with a weight on the scale of the ranks. They appear even if they define nothing.
    """
    ranked: defaultdict[str, dict[int, float]] = defaultdict(dict)
    best = sorted(ranks, key=lambda id: -round(ranks[id], 12))[:MAX_DEFINITIONS]
    for id, symbol in index.symbols(best).items():
        ranked[symbol.path][id] = ranks[id]
    weights = {path: _file_rank(own.values()) for path, own in ranked.items()}
    for path, weight in (files or {}).items():
        weights[path] = max(weights.get(path, 0.0), weight)
    top = max(weights.values(), default=0.0)
    if top <= 0:
        return []
    heaviest = sorted(weights, key=lambda path: (-round(weights[path], 12), path))[:max_files]
    return [_outline(path, weights[path] / top, index.symbols_in_file(path), ranked.get(path, {})) for path in heaviest]


def directory_outlines(paths: Iterable[str], *, max_folders: int = MAX_FOLDERS) -> list[Outline]:
    """Return the outlines of folders, those with the most files first, for a repository without definitions."""
    held = _folders(sorted(set(paths)), max_folders)
    largest = sorted(held, key=lambda folder: (-len(held[folder]), folder))
    return [_folder_outline(folder, held[folder], len(held[folder]) / len(held[largest[0]])) for folder in largest]


def _file_rank(ranks: Iterable[float]) -> float:
    return sum(rank * RANK_DECAY**place for place, rank in enumerate(sorted(ranks, reverse=True)))


def _outline(path: str, weight: float, symbols: Sequence[Symbol], ranks: Mapping[int, float]) -> Outline:
    symbols = [symbol for symbol in symbols if symbol.name]
    own = {symbol.id: ranks[symbol.id] for symbol in symbols if symbol.id in ranks}
    tree = _Tree(symbols, own or {symbol.id: size_weight(symbol) for symbol in symbols if symbol.parent is None})
    micro = _micro(path, tree.top_level_names())
    if not tree.is_code():
        return Outline(path, weight, micro, micro, micro)
    fill = weight >= MIN_FILL_RANK
    chosen = tree.choose(max(MIN_LINES, round(MAX_LINES * weight**0.5)), fill)
    return Outline(
        path=path,
        rank=weight,
        full="\n".join((path, *tree.lines(chosen))),
        summary="\n".join((path, *tree.lines(tree.choose(SUMMARY_LINES, fill)))),
        micro=micro,
        shown_ids=tuple(symbol.id for symbol in symbols if symbol.id in chosen),
    )


class _Tree:
    """The definitions of one file with their ranks."""

    def __init__(self, symbols: Sequence[Symbol], ranks: Mapping[int, float]) -> None:
        self.defined = symbols
        self.by_id = {symbol.id: symbol for symbol in symbols}
        best = max(ranks.values(), default=0.0)
        self.worth = {
            symbol.id: ranks[symbol.id]
            for symbol in symbols
            if symbol.id in ranks
            and ranks[symbol.id] > best * (MIN_DETAIL_RANK if self._is_detail(symbol) else MIN_DEFINITION_RANK)
        }
        self.best = self._sorted_by(self.worth)

    @cached_property
    def unranked_members(self) -> list[int]:
        """Public members that have no rank themselves, the best first."""
        first = {
            symbol.qualified_name: symbol for symbol in reversed(self.defined)
        }  # a property and its setter share a name
        worth = self.worth
        members = {
            symbol.id: worth[symbol.parent] * (1.0 if symbol.doc else UNDOCUMENTED_FACTOR)
            for symbol in first.values()
            if symbol.parent is not None
            and symbol.parent in worth
            and symbol.id not in worth
            and not self._is_detail(symbol)
            and (symbol.name == "__init__" or not symbol.name.startswith("_"))
        }
        return self._sorted_by(members)

    def _sorted_by(self, values: Mapping[int, float]) -> list[int]:
        return sorted(values, key=lambda id: (-round(values[id], 12), self.by_id[id].start_line, id))

    def _is_detail(self, symbol: Symbol) -> bool:
        above = self.by_id.get(symbol.parent) if symbol.parent is not None else None
        return symbol.kind in VALUE_KINDS or (above is not None and above.kind not in CLASS_KINDS)

    def is_code(self) -> bool:
        return any(
            self.by_id[id].role not in PROSE_ROLES and self.by_id[id].kind not in ("section", "key") for id in self.best
        )

    def choose(self, max_lines: int, fill: bool) -> set[int]:
        """Return the best definitions with those that enclose them, within `room` lines. `fill` adds members of classes."""
        chosen: set[int] = set()
        for ids, limit in ((self.best, max_lines), (self.unranked_members if fill else (), min(max_lines, MIN_LINES))):
            for id in ids:
                missing = {id, *self._ancestors(id)} - chosen
                if len(chosen) + len(missing) <= limit:
                    chosen |= missing
        return chosen

    def lines(self, chosen: set[int]) -> list[str]:
        return [
            "  " * (1 + len(self._ancestors(symbol.id))) + _truncate(symbol.signature or symbol.name, MAX_SIGNATURE_CHARS)
            for symbol in self.defined
            if symbol.id in chosen
        ]

    def top_level_names(self) -> list[str]:
        """Return the names for the micro line: top-level definitions, the best first. A method counts for its class."""
        outer = (self._ancestors(id)[-1:] or [id] for id in self.best)
        return list(dict.fromkeys(self.by_id[id].name for (id,) in outer))

    def _ancestors(self, id: int) -> list[int]:
        found: list[int] = []
        parent = self.by_id[id].parent
        while parent in self.by_id and parent is not None and parent not in found:
            found.append(parent)
            parent = self.by_id[parent].parent
        return found


def _truncate(signature: str, size: int) -> str:
    line = " ".join(signature.split()).rstrip(" {:")
    return line if len(line) <= size else line[: size - 1].rstrip() + "…"


def _micro(path: str, names: Iterable[str]) -> str:
    line = path
    for place, name in enumerate(names):
        longer = f"{line}{', ' if place else ': '}{_truncate(name, MAX_MICRO_CHARS // 2)}"
        if len(longer) > MAX_MICRO_CHARS and place:
            break
        line = longer
    return line


def _folders(paths: Sequence[str], max_folders: int) -> dict[str, list[str]]:
    """Group files by folder. The largest folders are split up to `max_folders`."""
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
    count = pluralize(len(paths), "file")
    summary = f"{name} ({', '.join((count, *(f'{types[type]} {type}' for type in common)))})"
    shown = [f"  {_truncate(path.removeprefix(f'{folder}/'), MAX_SIGNATURE_CHARS)}" for path in paths[:MAX_FILES_PER_DIR]]
    if len(paths) > MAX_FILES_PER_DIR:
        shown.append(f"  ... {len(paths) - MAX_FILES_PER_DIR} more")
    return Outline(name, weight, "\n".join((summary, *shown)), summary, f"{name}: {count}")
