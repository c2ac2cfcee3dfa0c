"""Symbol graph: which definitions matter for a question, and what stands beside one of them.

Comes in: the index behind the `SymbolIndex` protocol, and definitions to start from with a weight (search hits, named files
and symbols). Goes out: a rank for each definition in their neighbourhood, or the neighbours of a single one.

The rank is personalised PageRank by local forward push: weight flows from the seeds along the edges and stops where little
is left. The graph is resolved as it is walked, a frontier at a time, so that the cost depends on the neighbourhood and not
on the repository. Edges come from names alone, so they are guesses: a name that many things bear passes on little.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, Protocol

from foveate.code.model import Role, Symbol

MAX_EXPANDED = 120
"""Definitions whose edges are resolved for one ranking. Five times as many change one of the sixty that a map begins with in
two hundred, and none of the first twenty (ten questions about Django)."""
MAX_FRONTIER = 100
"""Definitions resolved in one go: a handful of questions to the index instead of a hundred times as many."""
MAX_ROUNDS = 12
MIN_FLOW = 2e-4
"""Of the weight of all seeds: what waits at a definition is not passed on when it is less."""
MAX_SEEDS = 400
"""Without a question: how many of the most used definitions the walk starts from."""

RESTART_PROBABILITY = 0.3
"""Of what reaches a definition stays there. More than the usual 0.15: a map should stay near what was asked."""
MAX_SAME_NAME = 12
"""A name that is defined more often (`get`, `save`, `__init__`) does not say which one is meant."""
MAX_CALLERS = 24
"""What more than these refer to is a tool of the whole repository: who uses it says nothing about it."""
MAX_LISTED_CALLERS = 200
"""The same for `neighbors`, which shows a few of them and passes nothing on."""
MAX_FILES = 32
"""Files whose members are looked up for one ranking."""

# Weights of edges, against a name that is used once.
BASE_EDGE_WEIGHT = 2.5
CALLER_EDGE_WEIGHT = 0.5
PARENT_EDGE_WEIGHT = 1.5
MEMBER_EDGE_WEIGHT = 1.0
OUTFLOW_PRIOR = 2.0
"""Added to the weights that leave a definition: one with a single weak edge does not send everything along it."""
UNKNOWN_TYPE_FACTOR = 0.5
"""For a member of something elsewhere: the name is called on a value whose type is not known."""

SAME_FILE_WEIGHT, IMPORTED_WEIGHT, SAME_DIR_WEIGHT, OTHER_FILE_WEIGHT = 12.0, 6.0, 2.0, 1.0
"""How likely each of several namesakes is meant, by where it is defined."""

ROLE_WEIGHTS: Mapping[Role, float] = {
    "source": 1.0, "test": 0.12, "example": 0.2, "docs": 0.2, "config": 0.3, "generated": 0.1, "data": 0.1, "vendored": 0.03,
}  # fmt: skip
"""What a file is for decides how much its definitions receive. The rest is lost, so that a seed used by tests alone does not
send everything there."""

CLASS_KINDS = frozenset(
    """class enum extension impl interface mixin module namespace object package protocol record struct trait type
    union""".split()  # noqa: SIM905
)
"""Kinds that have members and that others inherit from."""
VALUE_KINDS = frozenset(("constant", "field", "property", "variable", "key"))
"""Kinds that are details of something else."""

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
"""Names that built-in types and half of all classes have too: elsewhere they mean only what is imported by that name."""

Relation = Literal["base", "subclass", "caller", "callee", "test"]
RELATIONS: tuple[Relation, ...] = ("base", "caller", "callee", "subclass", "test")
"""In the order in which they are shown."""

_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_SEPARATORS = re.compile(r"[./\\:]+")
_EXTENSION = re.compile(r"\.[a-z]{1,5}$")


class SymbolIndex(Protocol):
    """What the graph asks of the index. Ids and names that it does not know are left out of the answers."""

    def symbols(self, ids: Iterable[int]) -> dict[int, Symbol]: ...
    def symbols_by_name(self, names: Iterable[str]) -> dict[str, list[Symbol]]:
        """Definitions by their bare name, spelled exactly so."""
        ...

    def references_from(self, ids: Iterable[int]) -> dict[int, Mapping[str, int]]:
        """The names that each definition's own body refers to, with counts; not those of definitions inside it."""
        ...

    def references_to(self, names: Iterable[str]) -> dict[str, Mapping[int, int]]:
        """The definitions that refer to a name, with counts; cut at some hundred."""
        ...

    def imports(self, path: str) -> tuple[str, ...]: ...
    def most_referenced(self, limit: int) -> list[tuple[Symbol, float]]:
        """The definitions that the most other files refer to, sources before tests, shared among namesakes; most first."""
        ...

    def symbols_in_file(self, path: str) -> list[Symbol]:
        """All definitions of a file, by line."""
        ...


@dataclass(frozen=True, slots=True)
class Neighbor:
    """A definition beside another one, and what it is to it."""

    symbol: Symbol
    relation: Relation


def rank(
    symbols: SymbolIndex, seeds: Mapping[int, float], *, max_expanded: int = MAX_EXPANDED, max_rounds: int = MAX_ROUNDS
) -> dict[int, float]:
    """Definitions around the seeds by weight, heaviest first, the heaviest 1; without seeds, around the most used ones."""
    graph = _Graph(symbols)
    waiting = graph.normalized_seeds(seeds) or graph.normalized_seeds(_default_seeds(symbols))
    settled: dict[int, float] = {}
    for _ in range(max_rounds):
        frontier = graph.next_nodes(waiting, max_expanded)
        if not frontier:
            break
        graph.expand(frontier)
        for node in frontier:
            weight = waiting.pop(node)
            settled[node] = settled.get(node, 0.0) + RESTART_PROBABILITY * weight
            for target, share in graph.edges[node].items():
                waiting[target] = waiting.get(target, 0.0) + (1 - RESTART_PROBABILITY) * weight * share
    for node, weight in waiting.items():
        settled[node] = settled.get(node, 0.0) + RESTART_PROBABILITY * weight
    return graph.sort_ranks(settled)


def neighbors(symbols: SymbolIndex, id: int, limit: int = 6) -> list[Neighbor]:
    """Who calls it, what it calls, what it inherits from, who inherits from it, which tests use it; in turns."""
    graph = _Graph(symbols, max_callers=MAX_LISTED_CALLERS)
    if not graph.normalized_seeds({id: 1.0}):
        return []
    graph.expand([id])
    me, weights, used = graph.symbols_by_id[id], graph.edges[id], symbols.references_from([id]).get(id, {})
    near: dict[Relation, list[Symbol]] = {relation: [] for relation in RELATIONS}
    for other in sorted(
        (graph.symbols_by_id[other] for other in weights), key=lambda other: (-weights[other.id], _location(other))
    ):
        if other.name and other.id != me.parent and other.parent != me.id:
            near[_relation(me, other, used)].append(other)
    turns = [
        (turn, place, Neighbor(symbol, relation))
        for place, relation in enumerate(RELATIONS)
        for turn, symbol in enumerate(near[relation])
    ]
    return [neighbour for _, _, neighbour in sorted(turns, key=lambda each: each[:2])[:limit]]


@dataclass(slots=True)
class _Graph:
    """What is known of the graph so far: definitions that were met, and the edges of those that were expanded."""

    index: SymbolIndex
    max_callers: int = MAX_CALLERS
    symbols_by_id: dict[int, Symbol] = field(default_factory=dict)
    edges: dict[int, dict[int, float]] = field(default_factory=dict)
    """Shares of what leaves a definition; less than 1 together."""
    files: dict[str, list[Symbol]] = field(default_factory=dict)
    modules: dict[str, frozenset[str]] = field(default_factory=dict)
    likelihoods: dict[tuple[str, str], float] = field(default_factory=dict)
    """How likely a name in one file means what another one defines."""

    def normalized_seeds(self, seeds: Mapping[int, float]) -> dict[int, float]:
        """The seeds that exist, their weights together 1."""
        self.symbols_by_id |= self.index.symbols(sorted(seeds))
        real = {id: seeds[id] for id in sorted(seeds) if id in self.symbols_by_id and seeds[id] > 0}
        total = sum(real.values())
        return {id: weight / total for id, weight in real.items()}

    def next_nodes(self, pending: Mapping[int, float], max_expanded: int) -> list[int]:
        """Whose turn it is: those with the most to pass on, new ones only while there is room for them."""
        room = min(MAX_FRONTIER, max_expanded - len(self.edges))
        frontier: list[int] = []
        ready = [node for node, weight in pending.items() if weight >= MIN_FLOW]
        for node in sorted(ready, key=lambda node: self._turn(node, pending)):
            new = node not in self.edges
            if new and room == 0:
                continue
            room -= new
            frontier.append(node)
        return frontier

    def _turn(self, node: int, weights: Mapping[int, float]) -> tuple[float, str, int]:
        return (-round(weights[node], 12), *_location(self.symbols_by_id[node]))

    def expand(self, nodes: Sequence[int]) -> None:
        """Resolve the edges of these definitions, all in one go."""
        new = [self.symbols_by_id[node] for node in nodes if node not in self.edges]
        if not new:
            return
        own = sorted({symbol.name for symbol in new if symbol.name})
        uses = self.index.references_from([symbol.id for symbol in new])
        named = self.index.symbols_by_name(sorted(set(own).union(*uses.values())))
        untested = {name: [other for other in found if other.role != "test"] for name, found in named.items()}
        users = {name: found for name, found in self.index.references_to(own).items() if len(found) <= self.max_callers}
        wanted = {user for found in users.values() for user in found}
        wanted |= {symbol.parent for symbol in new if symbol.parent is not None}
        self.symbols_by_id |= self.index.symbols(sorted(wanted - self.symbols_by_id.keys()))
        for symbol in new:
            meant = named if symbol.role == "test" else untested  # only a test means what tests define
            links = [*self._used(symbol, uses.get(symbol.id, {}), meant)]
            links += self._callers(symbol, users.get(symbol.name, {}), len(meant.get(symbol.name, ())))
            links += self._relatives(symbol)
            self.symbols_by_id.update((other.id, other) for other, _ in links)
            self.edges[symbol.id] = _shares(symbol, links)

    def _used(
        self, symbol: Symbol, uses: Mapping[str, int], targets: Mapping[str, Sequence[Symbol]]
    ) -> Iterator[tuple[Symbol, float]]:
        """`targets`: the definitions that a name may mean here."""
        bases = _bases(symbol)
        for name in sorted(uses):
            namesakes = targets.get(name, ())
            if not 0 < len(namesakes) <= MAX_SAME_NAME:
                continue
            weight = name_specificity(name) * math.log1p(uses[name]) * (BASE_EDGE_WEIGHT if name in bases else 1.0)
            if len(namesakes) == 1 and name not in COMMON_NAMES:
                yield namesakes[0], weight * _certainty(symbol, namesakes[0])
                continue
            likely = [(other, self._likely(symbol, other)) for other in namesakes]
            if name in COMMON_NAMES:
                likely = [(other, likelihood) for other, likelihood in likely if _is_unambiguous(other, likelihood)]
            total = sum(likelihood for _, likelihood in likely)
            for other, likelihood in likely:
                yield other, weight * _certainty(symbol, other) * likelihood / total

    def _callers(self, symbol: Symbol, users: Mapping[int, int], namesakes: int) -> Iterator[tuple[Symbol, float]]:
        if namesakes > MAX_SAME_NAME:
            return
        # The sum grows with the root of their number: many callers matter more than one, each of them less.
        weight = CALLER_EDGE_WEIGHT * name_specificity(symbol.name) / math.sqrt(len(users) or 1)
        for user in sorted(users):
            other = self.symbols_by_id.get(user)
            if other is not None and (
                symbol.name not in COMMON_NAMES or _is_unambiguous(symbol, self._likely(other, symbol))
            ):
                certain = 1.0 if other.path == symbol.path else _certainty(other, symbol) / max(namesakes, 1)
                yield other, weight * certain * math.log1p(users[user])

    def _relatives(self, symbol: Symbol) -> Iterator[tuple[Symbol, float]]:
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

    def _likely(self, symbol: Symbol, other: Symbol) -> float:
        pair = (symbol.path, other.path)
        if pair not in self.likelihoods:
            self.likelihoods[pair] = self._likely_from(*pair)
        return self.likelihoods[pair]

    def _likely_from(self, path: str, other: str) -> float:
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
        top = max(ranks.values())
        scaled = {node: ranks[node] / top for node in ranks}
        return {node: scaled[node] for node in sorted(scaled, key=lambda node: self._turn(node, scaled))}


@lru_cache(maxsize=100_000)
def name_specificity(name: str) -> float:
    """How much a name says about what it names: little for `_x`, `__init__` and `get`, much for `SessionMiddleware`."""
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
    """How much a member belongs to what its class offers: a public one fully, one for internal use less."""
    return 1.0 if not name.startswith("_") else 0.5 if name == "__init__" else 0.1 if name.startswith("__") else 0.3


def size_weight(symbol: Symbol) -> float:
    """A definition of a few lines, such as an exception or a wrapper, says less than one of fifteen and more."""
    return min(1.0, math.log2(2 + symbol.end_line - symbol.start_line) / 4)


def _default_seeds(symbols: SymbolIndex) -> dict[int, float]:
    """Where to start without a question: what most files refer to, the larger the better. A member counts for its class."""
    weights: dict[int, float] = {}
    for symbol, score in symbols.most_referenced(MAX_SEEDS):
        if symbol.name in COMMON_NAMES:
            continue
        size = math.log2(2 + symbol.end_line - symbol.start_line)
        weight = math.sqrt(score) * size**2 * min(1.0, name_specificity(symbol.name)) * ROLE_WEIGHTS[symbol.role]
        centre, sure = (symbol.id, 1.0) if symbol.parent is None else (symbol.parent, UNKNOWN_TYPE_FACTOR)
        weights[centre] = weights.get(centre, 0.0) + weight * sure
    return weights


def _shares(symbol: Symbol, links: Iterable[tuple[Symbol, float]]) -> dict[int, float]:
    total, weights = OUTFLOW_PRIOR, dict[int, float]()
    for other, weight in links:
        if other.id != symbol.id:
            total += weight
            weights[other.id] = weights.get(other.id, 0.0) + weight * ROLE_WEIGHTS[other.role] * size_weight(other)
    return {id: weight / total for id, weight in weights.items()}


def _is_unambiguous(symbol: Symbol, likelihood: float) -> bool:
    """Whether a common name means this one: it is in the same file, or can be imported and is."""
    return likelihood >= (IMPORTED_WEIGHT if symbol.parent is None else SAME_FILE_WEIGHT)


def _certainty(symbol: Symbol, other: Symbol) -> float:
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
    """The names in the head of a class besides its own: what it inherits from, in whatever syntax."""
    if symbol.kind not in CLASS_KINDS:
        return frozenset()
    return frozenset(_IDENTIFIER.findall(symbol.signature)) - {symbol.name}


def _location(symbol: Symbol) -> tuple[str, int]:
    return symbol.path, symbol.start_line


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


@lru_cache(maxsize=20_000)
def _module_names(path: str) -> tuple[str, ...]:
    """How others may import a file: as itself or through its folder, by the last two parts; or by its bare name."""
    parts = _EXTENSION.sub("", path).split("/")
    if parts[-1] in ("__init__", "index", "mod", "lib") and len(parts) > 1:
        parts.pop()
    return "/".join(parts[-2:]), "/".join(parts[:-1][-2:]), parts[-1]


@lru_cache(maxsize=5_000)
def _modules(path: str, imports: tuple[str, ...]) -> frozenset[str]:
    """The last two parts of what a file imports, with and without the final part, which may be a name inside the module."""
    found: set[str] = set()
    for written in imports:
        bare = _EXTENSION.sub("", written) if "/" in written else written
        parts = [part for part in _SEPARATORS.split(bare) if part not in ("", "crate", "self", "super")]
        if written.startswith("."):
            parts = _relative_import_base(path, written) + parts
        found.update(("/".join(parts[-2:]), "/".join(parts[:-1][-2:])))
    return frozenset(found - {""})


def _relative_import_base(path: str, import_path: str) -> list[str]:
    """The folder that a relative import starts from: `..x` and `../x` both mean one above."""
    up = import_path.count("../") if "/" in import_path else len(import_path) - len(import_path.lstrip(".")) - 1
    folders = path.split("/")[:-1]
    return folders[: max(len(folders) - up, 0)]
