"""Ranks definitions around a set of seeds, and lists the neighbors of a single definition.

The seeds are definitions with weights: search hits, named files and symbols. The rank is personalised PageRank by local
forward push: weight flows from the seeds along the edges and stops where little is left. Edges are resolved while the graph
is walked, one frontier at a time, so that the cost depends on the neighborhood and not on the size of the repository.

Edges are guesses, because they come from names alone. A name that many definitions share passes on little weight.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from foveate.code.index_reader import IndexReader
from foveate.code.model import Role, Symbol

MAX_EXPANDED = 120
"""Definitions whose edges are resolved for one ranking. With 600 instead of 120, 0.5 % of the first 60 definitions of a map
change, and none of the first 20 (ten questions about Django)."""
MAX_FRONTIER = 100
"""Definitions resolved together, so that the index is queried a few times and not once for each."""
MAX_ROUNDS = 12
MIN_FLOW = 2e-4
"""Share of the total seed weight. Smaller amounts are not propagated."""
MAX_SEEDS = 400
"""Without seeds the walk starts from this many of the most referenced definitions."""

RESTART_PROBABILITY = 0.3
"""Share of incoming weight that stays at a definition. Higher than the usual 0.15, which keeps the map close to the
query."""
MAX_SAME_NAME = 12
"""A name with more definitions (`get`, `save`, `__init__`) has no edges: it does not say which one is meant."""
MAX_CALLERS = 24
"""A definition with more callers is a tool of the whole repository. Its callers say nothing about it."""
MAX_LISTED_CALLERS = 200
"""The same for `neighbors`, which shows some callers and propagates no weight."""
MAX_FILES = 32
"""Files whose members are looked up for one ranking."""

# Weights of edges, relative to a reference that occurs once.
BASE_EDGE_WEIGHT = 2.5
CALLER_EDGE_WEIGHT = 0.5
PARENT_EDGE_WEIGHT = 1.5
MEMBER_EDGE_WEIGHT = 1.0
OUTFLOW_PRIOR = 2.0
"""Added to the outgoing weights, so that a definition with a single weak edge does not send everything along it."""
UNKNOWN_TYPE_FACTOR = 0.5
"""Factor for a member of a class in another file: the type of the value that it is called on is not known."""

SAME_FILE_WEIGHT, IMPORTED_WEIGHT, SAME_DIR_WEIGHT, OTHER_FILE_WEIGHT = 12.0, 6.0, 2.0, 1.0
"""How likely each of several definitions of a name is meant, by where it is defined."""

ROLE_WEIGHTS: Mapping[Role, float] = {
    "source": 1.0, "test": 0.12, "example": 0.2, "docs": 0.2, "config": 0.3, "generated": 0.1, "data": 0.1, "vendored": 0.03,
}  # fmt: skip
"""Share of the weight that definitions receive by the role of their file. The rest is lost, so that a seed that only tests
use does not send everything there."""

CLASS_KINDS = frozenset(
    """class enum extension impl interface mixin module namespace object package protocol record struct trait type
    union""".split()  # noqa: SIM905
)
"""Kinds of definitions that have members and can be inherited from."""
VALUE_KINDS = frozenset(("constant", "field", "property", "variable", "key"))
"""Kinds of definitions that are details of another one."""

COMMON_NAMES = frozenset(
    """abs add all any append apply Array assert bool build call catch check clean clear clone close concat copy
    count create data Date date decode default delete dict difference discard dumps encode endswith equals err
    Error error eval Exception exec exists extend filter find first float flush forEach format from fromkeys get
    group handle hash hashCode includes index info init insert int intersection into items iter join keys last
    len length List list load loads lock log lower main Map map match max min name new next now Object object ok
    open parse pop print process Promise property push put query raise read release remove render replace repr
    reset resolve reverse round run save search seek self send Set set setdefault setup shift size slice sort
    sorted split start startswith state stop str String strip sub sum super tell test text then throw time title
    toString tuple type union unwrap update upper url validate value values view warn warning write zip""".split()  # noqa: SIM905
)
"""Names that built-in types and many classes have. In other files they only mean a definition that is imported."""

Relation = Literal["base", "subclass", "caller", "callee", "test"]
RELATIONS: tuple[Relation, ...] = ("base", "caller", "callee", "subclass", "test")
"""Relations in the order in which neighbors are shown."""

_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_SEPARATORS = re.compile(r"[./\\:]+")
_EXTENSION = re.compile(r"\.[a-z]{1,5}$")


@dataclass(frozen=True, slots=True)
class Neighbor:
    """A definition and its relation to another one."""

    symbol: Symbol
    relation: Relation


def rank(index: IndexReader, seeds: Mapping[int, float]) -> dict[int, float]:
    """Return the definitions around the seeds by rank, the highest first. The highest rank is 1.

    Without seeds it ranks the definitions around the most referenced ones.
    """
    graph = _Graph(index)
    pending = graph.normalized_seeds(seeds) or graph.normalized_seeds(_default_seeds(index))
    ranks: dict[int, float] = {}
    for _ in range(MAX_ROUNDS):
        frontier = graph.next_nodes(pending)
        if not frontier:
            break
        graph.expand(frontier)
        for node in frontier:
            weight = pending.pop(node)
            ranks[node] = ranks.get(node, 0.0) + RESTART_PROBABILITY * weight
            for target, share in graph.edges[node].items():
                pending[target] = pending.get(target, 0.0) + (1 - RESTART_PROBABILITY) * weight * share
    for node, weight in pending.items():
        ranks[node] = ranks.get(node, 0.0) + RESTART_PROBABILITY * weight
    return graph.sort_ranks(ranks)


def neighbors(index: IndexReader, id: int, limit: int = 6) -> list[Neighbor]:
    """Return callers, callees, base classes, subclasses and tests of a definition, one of each relation in turn."""
    graph = _Graph(index, max_callers=MAX_LISTED_CALLERS)
    if not graph.normalized_seeds({id: 1.0}):
        return []
    graph.expand([id])
    symbol, weights, references = graph.symbols_by_id[id], graph.edges[id], index.references_from([id]).get(id, {})
    by_relation: dict[Relation, list[Symbol]] = {relation: [] for relation in RELATIONS}
    for other in sorted(
        (graph.symbols_by_id[other] for other in weights), key=lambda other: (-weights[other.id], _location(other))
    ):
        if other.name and other.id != symbol.parent and other.parent != symbol.id:
            by_relation[_relation(symbol, other, references)].append(other)
    candidates = [
        (turn, order, Neighbor(other_symbol, relation))
        for order, relation in enumerate(RELATIONS)
        for turn, other_symbol in enumerate(by_relation[relation])
    ]
    return [neighbor for _, _, neighbor in sorted(candidates, key=lambda candidate: candidate[:2])[:limit]]


@dataclass(slots=True)
class _Graph:
    """The part of the graph that is resolved so far."""

    index: IndexReader
    max_callers: int = MAX_CALLERS
    symbols_by_id: dict[int, Symbol] = field(default_factory=dict)
    """The definitions that were met."""
    edges: dict[int, dict[int, float]] = field(default_factory=dict)
    """Share of a definition's weight that flows to each other one. The sum is below 1."""
    files: dict[str, list[Symbol]] = field(default_factory=dict)
    modules: dict[str, frozenset[str]] = field(default_factory=dict)
    proximity_by_files: dict[tuple[str, str], float] = field(default_factory=dict)
    """How likely a name in the first file means a definition in the second, by how close the files are."""

    def normalized_seeds(self, seeds: Mapping[int, float]) -> dict[int, float]:
        """Return the seeds that exist, with weights that add up to 1."""
        self.symbols_by_id |= self.index.symbols(sorted(seeds))
        existing = {id: seeds[id] for id in sorted(seeds) if id in self.symbols_by_id and seeds[id] > 0}
        total = sum(existing.values())
        return {id: weight / total for id, weight in existing.items()}

    def next_nodes(self, pending: Mapping[int, float]) -> list[int]:
        """Return the nodes to expand next: those with the most pending weight.

        New nodes are added only up to `MAX_EXPANDED`.
        """
        room = min(MAX_FRONTIER, MAX_EXPANDED - len(self.edges))
        frontier: list[int] = []
        ready = [node for node, weight in pending.items() if weight >= MIN_FLOW]
        for node in sorted(ready, key=lambda node: self._priority(node, pending)):
            is_new = node not in self.edges
            if is_new and room == 0:
                continue
            room -= is_new
            frontier.append(node)
        return frontier

    def _priority(self, node: int, weights: Mapping[int, float]) -> tuple[float, str, int]:
        return (-round(weights[node], 12), *_location(self.symbols_by_id[node]))

    def expand(self, nodes: Sequence[int]) -> None:
        """Resolve the edges of these definitions with a few queries to the index."""
        new = [self.symbols_by_id[node] for node in nodes if node not in self.edges]
        if not new:
            return
        names = sorted({symbol.name for symbol in new if symbol.name})
        references = self.index.references_from([symbol.id for symbol in new])
        definitions = self.index.symbols_by_name(sorted(set(names).union(*references.values())))
        non_test_definitions = {
            name: [other for other in matches if other.role != "test"] for name, matches in definitions.items()
        }
        callers = {
            name: matches for name, matches in self.index.references_to(names).items() if len(matches) <= self.max_callers
        }
        missing_ids = {caller for matches in callers.values() for caller in matches}
        missing_ids |= {symbol.parent for symbol in new if symbol.parent is not None}
        self.symbols_by_id |= self.index.symbols(sorted(missing_ids - self.symbols_by_id.keys()))
        for symbol in new:
            # Only tests refer to definitions in tests.
            targets = definitions if symbol.role == "test" else non_test_definitions
            edges = [*self._reference_edges(symbol, references.get(symbol.id, {}), targets)]
            edges += self._caller_edges(symbol, callers.get(symbol.name, {}), len(targets.get(symbol.name, ())))
            edges += self._member_edges(symbol)
            self.symbols_by_id.update((other.id, other) for other, _ in edges)
            self.edges[symbol.id] = _shares(symbol, edges)

    def _reference_edges(
        self, symbol: Symbol, references: Mapping[str, int], targets: Mapping[str, Sequence[Symbol]]
    ) -> Iterator[tuple[Symbol, float]]:
        """Yield the edges to definitions that a symbol refers to. `targets` has the candidates for each name."""
        bases = _bases(symbol)
        for name in sorted(references):
            candidates = targets.get(name, ())
            if not 0 < len(candidates) <= MAX_SAME_NAME:
                continue
            weight = name_specificity(name) * math.log1p(references[name]) * (BASE_EDGE_WEIGHT if name in bases else 1.0)
            if len(candidates) == 1 and name not in COMMON_NAMES:
                yield candidates[0], weight * _type_factor(symbol, candidates[0])
                continue
            proximities = [(other, self._proximity(symbol, other)) for other in candidates]
            if name in COMMON_NAMES:
                proximities = [(other, proximity) for other, proximity in proximities if _is_in_scope(other, proximity)]
            total = sum(proximity for _, proximity in proximities)
            for other, proximity in proximities:
                yield other, weight * _type_factor(symbol, other) * proximity / total

    def _caller_edges(
        self, symbol: Symbol, callers: Mapping[int, int], same_name_count: int
    ) -> Iterator[tuple[Symbol, float]]:
        if same_name_count > MAX_SAME_NAME:
            return
        # The total grows with the square root of the number of callers: many matter more than one, but each matters less.
        weight = CALLER_EDGE_WEIGHT * name_specificity(symbol.name) / math.sqrt(len(callers) or 1)
        for caller in sorted(callers):
            other = self.symbols_by_id.get(caller)
            if other is not None and (
                symbol.name not in COMMON_NAMES or _is_in_scope(symbol, self._proximity(other, symbol))
            ):
                factor = 1.0 if other.path == symbol.path else _type_factor(other, symbol) / max(same_name_count, 1)
                yield other, weight * factor * math.log1p(callers[caller])

    def _member_edges(self, symbol: Symbol) -> Iterator[tuple[Symbol, float]]:
        if symbol.parent in self.symbols_by_id and symbol.parent is not None:
            yield self.symbols_by_id[symbol.parent], PARENT_EDGE_WEIGHT
        if (
            not symbol.name
            or symbol.kind not in CLASS_KINDS
            or (symbol.path not in self.files and len(self.files) == MAX_FILES)
        ):
            return
        if symbol.path not in self.files:
            self.files[symbol.path] = self.index.symbols_in_file(symbol.path)
        members = [other for other in self.files[symbol.path] if other.parent == symbol.id and other.kind not in VALUE_KINDS]
        for other in members:
            yield other, MEMBER_EDGE_WEIGHT * _visibility_weight(other.name) / math.sqrt(len(members))

    def _proximity(self, symbol: Symbol, other: Symbol) -> float:
        """Return how likely a name in the file of `symbol` means the definition `other`, by how close their files are."""
        pair = (symbol.path, other.path)
        if pair not in self.proximity_by_files:
            self.proximity_by_files[pair] = self._file_proximity(*pair)
        return self.proximity_by_files[pair]

    def _file_proximity(self, path: str, other: str) -> float:
        """Return the weight of a definition in the file `other` for a reference from `path`."""
        if other == path:
            return SAME_FILE_WEIGHT
        if path not in self.modules:
            self.modules[path] = _modules(path, self.index.imports(path))
        if not self.modules[path].isdisjoint(_module_names(other)):
            return IMPORTED_WEIGHT
        return SAME_DIR_WEIGHT if _folder(other) == _folder(path) else OTHER_FILE_WEIGHT

    def sort_ranks(self, ranks: Mapping[int, float]) -> dict[int, float]:
        if not ranks:
            return {}
        highest = max(ranks.values())
        scaled = {node: ranks[node] / highest for node in ranks}
        return {node: scaled[node] for node in sorted(scaled, key=lambda node: self._priority(node, scaled))}


@lru_cache(maxsize=100_000)
def name_specificity(name: str) -> float:
    """Return how specific a name is: `_x`, `__init__` and `get` say little, `SessionMiddleware` says much."""
    if name.startswith("__"):
        return 0.1
    bare = name.lstrip("_")
    if len(bare) < 3:
        return 0.1
    weight = 0.25 if bare in COMMON_NAMES else 0.6 if len(bare) < 5 else 1.0
    if len(bare) >= 8 and ("_" in bare or not (bare.islower() or bare.isupper())):
        weight = 2.0
    return weight * (0.4 if bare != name else 1.0)


def _visibility_weight(name: str) -> float:
    """Return how much a member belongs to the interface of its class: 1 if it is public, less if it is private."""
    return 1.0 if not name.startswith("_") else 0.5 if name == "__init__" else 0.1 if name.startswith("__") else 0.3


def size_weight(symbol: Symbol) -> float:
    """Return a size factor in 0..1. Definitions shorter than 15 lines, such as exceptions and wrappers, count less."""
    return min(1.0, math.log2(2 + symbol.end_line - symbol.start_line) / 4)


def _default_seeds(index: IndexReader) -> dict[int, float]:
    """Return seeds for a map of the whole: the most referenced definitions by size. Members count for their class."""
    weights: dict[int, float] = {}
    for symbol, score in index.most_referenced(MAX_SEEDS):
        if symbol.name in COMMON_NAMES:
            continue
        size = math.log2(2 + symbol.end_line - symbol.start_line)
        weight = math.sqrt(score) * size**2 * min(1.0, name_specificity(symbol.name)) * ROLE_WEIGHTS[symbol.role]
        seed, factor = (symbol.id, 1.0) if symbol.parent is None else (symbol.parent, UNKNOWN_TYPE_FACTOR)
        weights[seed] = weights.get(seed, 0.0) + weight * factor
    return weights


def _shares(symbol: Symbol, edges: Iterable[tuple[Symbol, float]]) -> dict[int, float]:
    total, weights = OUTFLOW_PRIOR, dict[int, float]()
    for other, weight in edges:
        if other.id != symbol.id:
            total += weight
            weights[other.id] = weights.get(other.id, 0.0) + weight * ROLE_WEIGHTS[other.role] * size_weight(other)
    return {id: weight / total for id, weight in weights.items()}


def _is_in_scope(symbol: Symbol, proximity: float) -> bool:
    """Return whether a common name can mean this definition: it is in the same file, or imported and not a member."""
    return proximity >= (IMPORTED_WEIGHT if symbol.parent is None else SAME_FILE_WEIGHT)


def _type_factor(symbol: Symbol, other: Symbol) -> float:
    """Return `UNKNOWN_TYPE_FACTOR` for a reference to a member in another file, else 1."""
    return UNKNOWN_TYPE_FACTOR if other.parent is not None and other.path != symbol.path else 1.0


def _relation(symbol: Symbol, other: Symbol, references: Mapping[str, int]) -> Relation:
    if other.role == "test" and symbol.role != "test":
        return "test"
    if other.kind in CLASS_KINDS and other.name in _bases(symbol):
        return "base"
    if symbol.kind in CLASS_KINDS and symbol.name in _bases(other):
        return "subclass"
    return "callee" if other.name in references else "caller"


def _bases(symbol: Symbol) -> frozenset[str]:
    """Return the names in the head of a class except its own. They are its base classes in the syntax of any language."""
    if symbol.kind not in CLASS_KINDS:
        return frozenset()
    return frozenset(_IDENTIFIER.findall(symbol.signature)) - {symbol.name}


def _location(symbol: Symbol) -> tuple[str, int]:
    return symbol.path, symbol.start_line


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


@lru_cache(maxsize=20_000)
def _module_names(path: str) -> tuple[str, ...]:
    """Return the names under which a file can be imported: its last two parts, those of its folder, and its bare name."""
    parts = _EXTENSION.sub("", path).split("/")
    if parts[-1] in ("__init__", "index", "mod", "lib") and len(parts) > 1:
        parts.pop()
    return "/".join(parts[-2:]), "/".join(parts[:-1][-2:]), parts[-1]


@lru_cache(maxsize=5_000)
def _modules(path: str, imports: tuple[str, ...]) -> frozenset[str]:
    """Return the last two parts of each import, with and without the final part, which may be a name inside the module."""
    names: set[str] = set()
    for import_path in imports:
        without_suffix = _EXTENSION.sub("", import_path) if "/" in import_path else import_path
        parts = [part for part in _SEPARATORS.split(without_suffix) if part not in ("", "crate", "self", "super")]
        if import_path.startswith("."):
            parts = _relative_import_base(path, import_path) + parts
        names.update(("/".join(parts[-2:]), "/".join(parts[:-1][-2:])))
    return frozenset(names - {""})


def _relative_import_base(path: str, import_path: str) -> list[str]:
    """Return the folder that a relative import starts from. `..x` and `../x` both start one folder above."""
    up = import_path.count("../") if "/" in import_path else len(import_path) - len(import_path.lstrip(".")) - 1
    folders = path.split("/")[:-1]
    return folders[: max(len(folders) - up, 0)]
