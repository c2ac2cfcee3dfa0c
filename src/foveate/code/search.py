"""Ranks the files and definitions of the code index for a query.

Two lexical rankings, one of definitions and one of files with their paths, are combined with boosts: for names in the
query, for frames of its stack traces, for files with several good definitions. A definition gains from its file, and a file
from its definitions. Tests, documents and vendored code rank lower unless the query asks for them.

The weights were tuned on issues of six repositories and commit messages of four larger ones. They lie on a plateau: few of
them matter alone (decision 018).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest

from foveate.code import postings
from foveate.code.graph import CLASS_KINDS
from foveate.code.index_reader import FileTable, IndexedFile, IndexReader
from foveate.code.model import MODULE, Role, Symbol
from foveate.code.postings import PostingKind
from foveate.code.query import CodeQuery, Frame
from foveate.text import analysis as lexical

MAX_QUERY_TERMS = 60
"""A long report is searched by its rarest terms; more of them do not improve the result."""

FULL_TERM_SCORE = 0.6
"""Share of a term's maximum score that a definition of ordinary length reaches if it contains the term several times. A
definition with this score for every term has relevance 1."""

PATH_TERM_WEIGHT = 0.7
"""Weight of a query term in a file's path, relative to a term that occurs everywhere in the file."""

LENGTH_BONUS = 0.05
"""Exponent of a definition's length. If two match equally well, the longer one is more often meant."""

NAMED_BOOST, TRACE_BOOST = 0.5, 0.5
"""Boosts of a definition that the query names or that is in its stack trace. The best lexical match has 1."""
MEMBER_SHARE, CONSTRUCTOR_SHARE = 0.1, 0.3
"""Shares of the boost of a named class that its members and its constructor receive."""
FILE_LEXICAL_WEIGHT, FILE_NAMED_WEIGHT, FILE_MODULE_WEIGHT, FILE_TRACE_WEIGHT = 0.6, 1.2, 0.3, 0.5
"""Weights of the parts of a file's rank: its words, its path in the query, its module in the query, its frames in a trace.
The file with the best definitions has 1."""
FILE_RANK_SHARE = 0.8
"""Share of its file's rank that is added to the rank of a definition."""
NEXT_DEFINITION_DECAY = 0.5
"""Each further definition of a file adds this share of what the one before it adds."""
MIN_RELATIVE_SCORE = 0.15
"""Share of the best lexical score. Definitions with a lower score are not ranked."""
MAX_SCORED_DEFINITIONS = 400
"""Definitions with the best lexical scores that are ranked."""

MAX_SAME_NAME = 15
"""A name that more definitions share boosts none of them."""
MAX_NAMED_CLASSES = 6
"""Named classes whose members receive a share of the boost."""

STUB_LENGTH_RATIO = 4
"""A definition is a stub (an overload, a declaration) if one of the same name in its file is this many times longer."""

CALLER_FRAME_DECAY = 0.7
"""Each frame of a stack trace counts this share of the frame that it called."""

ROLE_FACTORS: Mapping[Role, float] = {  # the other roles keep their rank
    "test": 0.4,
    "docs": 0.6,
    "example": 0.7,
    "generated": 0.5,
    "vendored": 0.4,
    "config": 0.8,
    "data": 0.6,
}
CHANGELOG_FACTOR = 0.5
"""Additional factor for changelogs: they mention everything and explain nothing."""
ROLE_QUERY_TERMS: Mapping[Role, tuple[str, ...]] = {
    "test": ("test", "fixtur", "pytest", "spec"),
    "docs": ("doc", "document", "readm", "changelog", "guid"),
    "example": ("exampl", "demo", "tutori", "sampl"),
    "generated": ("generat", "protobuf"),
    "vendored": ("vendor",),
    "config": ("config", "configur", "ci", "workflow"),
    "data": ("dataset",),
}
"""Index terms in a query that ask for files of a role, so that they are not ranked lower."""

_CHANGELOG_PATH = re.compile(
    r"(?:^|/)(?:change[-_]?logs?|changes|history|news|whatsnew|releases?(?:[-_]notes)?)\b", re.IGNORECASE
)
_CONSTRUCTORS = ("__init__", "__new__", "constructor", "initialize", "init", "new")


@dataclass(frozen=True, slots=True)
class FileHit:
    """A file with its relevance, 0..1."""

    file: IndexedFile
    relevance: float
    features: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DefinitionHit:
    """A definition with its relevance, 0..1."""

    symbol: Symbol
    relevance: float
    features: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CodeHits:
    """The results of a search, best first."""

    files: tuple[FileHit, ...] = ()
    definitions: tuple[DefinitionHit, ...] = ()


def search(index: IndexReader, query: CodeQuery, files: int = 50, definitions: int = 100) -> CodeHits:
    """Return the most relevant files and definitions."""
    table = index.file_table()
    if not table.files:
        return CodeHits()
    scores = _Scores(index, query, table)
    # Ties are broken by path and line. Ids depend on the order in which files were indexed.
    best = sorted(_top(scores.files, files), key=lambda id: (-scores.files[id], table.files[id].path))
    ranks = scores.definitions
    symbols = _without_stubs(list(index.symbols(_top(ranks, definitions)).values()))
    symbols = sorted(symbols, key=lambda symbol: (-ranks[symbol.id], symbol.path, symbol.start_line))
    return CodeHits(
        tuple(FileHit(table.files[id], scores.relevance(scores.files[id]), scores.file_features(id)) for id in best),
        tuple(DefinitionHit(symbol, scores.relevance(ranks[symbol.id]), scores.features(symbol.id)) for symbol in symbols),
    )


class _Scores:
    """The scores of definitions and files for one query, by id. The best of each kind has 1."""

    def __init__(self, index: IndexReader, query: CodeQuery, table: FileTable) -> None:
        self.file_ids = table.documents.file_ids
        paths = _PathIndex(table)
        self.named_files, self.named_modules = _file_votes(query, paths)
        self.trace, self.trace_files = _trace_votes(index, query.frames, paths)
        self.role_factors = _role_factors(query, table, {*self.named_files, *self.trace_files})
        words, file_words, reach = _scores(index, _significant_terms(index, query, table), table)
        self.lexical = _relative_to_best(self._top_lexical(words, table.documents.half_saturation))
        self.file_lexical = _relative_to_best({id: score * self.role_factors[id] for id, score in file_words.items()})
        self.named = {
            id: vote * self.role_factors[self.file_ids[id]] for id, vote in _named_definitions(index, query).items()
        }
        self.strength = _strength(
            max(words.values(), default=0.0),
            reach,
            (*self.named.values(), *self.trace.values(), *self.named_files.values(), *self.named_modules.values()),
        )
        ranks = {
            id: self.lexical.get(id, 0.0) + NAMED_BOOST * self.named.get(id, 0.0) + TRACE_BOOST * self.trace.get(id, 0.0)
            for id in {*self.lexical, *self.named, *self.trace}
        }
        self.files = _relative_to_best(self._file_ranks(ranks))
        self.definitions = _relative_to_best(
            {id: rank + FILE_RANK_SHARE * self.files[self.file_ids[id]] for id, rank in ranks.items()}
        )

    def _top_lexical(self, scores: Mapping[int, float], half_saturation: Sequence[float]) -> dict[int, float]:
        """Return the definitions with the best lexical scores, weighted by the role of their file and by their length."""
        file_ids, role_factors = self.file_ids, self.role_factors
        min_score = MIN_RELATIVE_SCORE * max(scores.values(), default=0.0)
        weighted = {
            id: score * role_factors[file_ids[id]] * half_saturation[id] ** LENGTH_BONUS
            for id, score in scores.items()
            if score >= min_score
        }
        return {id: weighted[id] for id in _top(weighted, MAX_SCORED_DEFINITIONS)}

    def _file_ranks(self, ranks: Mapping[int, float]) -> dict[int, float]:
        """Return the rank of each file: its best definitions, its words, and the boosts for its path, module and frames."""
        ranks_by_file: dict[int, list[float]] = {}
        for id in _top(ranks, len(ranks)):
            ranks_by_file.setdefault(self.file_ids[id], []).append(ranks[id])
        best_definitions = _relative_to_best(
            {
                file: sum(rank * NEXT_DEFINITION_DECAY**n for n, rank in enumerate(file_ranks[:6]))
                for file, file_ranks in ranks_by_file.items()
            }
        )
        return {
            id: best_definitions.get(id, 0.0)
            + FILE_LEXICAL_WEIGHT * self.file_lexical.get(id, 0.0)
            + FILE_NAMED_WEIGHT * self.named_files.get(id, 0.0)
            + FILE_MODULE_WEIGHT * self.named_modules.get(id, 0.0)
            + FILE_TRACE_WEIGHT * self.trace_files.get(id, 0.0)
            for id in {*best_definitions, *self.file_lexical, *self.named_files, *self.named_modules, *self.trace_files}
        }

    def relevance(self, rank: float) -> float:
        return round(self.strength * rank, 4)

    def features(self, id: int) -> dict[str, float]:
        return _features(self.lexical.get(id, 0.0), self.named.get(id, 0.0), self.trace.get(id, 0.0))

    def file_features(self, id: int) -> dict[str, float]:
        named = max(self.named_files.get(id, 0.0), self.named_modules.get(id, 0.0))
        return _features(self.file_lexical.get(id, 0.0), named, self.trace_files.get(id, 0.0))


# --- words ---------------------------------------------------------------------------------------------------------


def _significant_terms(index: IndexReader, query: CodeQuery, table: FileTable) -> dict[str, float]:
    """Return the terms with the highest weight times inverse document frequency. A short query keeps all of its terms."""
    if len(query.terms) <= MAX_QUERY_TERMS:
        return dict(query.terms)
    lists = index.posting_lists(PostingKind.WORDS, query.terms)
    weights = {
        term: weight * postings.idf(postings.count_postings(lists[term]), table.documents.count)
        for term, weight in query.terms.items()
        if term in lists
    }
    return {term: query.terms[term] for term in _top(weights, MAX_QUERY_TERMS)}


def _scores(
    index: IndexReader, terms: Mapping[str, float], table: FileTable
) -> tuple[dict[int, float], dict[int, float], float]:
    """Return the lexical scores of definitions and of files, and the score of a definition that answers the whole query."""
    lists = index.posting_lists(PostingKind.WORDS, terms)
    definitions, files = postings.scores(lists, terms, table.documents)
    for term, weight in terms.items():
        ids = table.files_by_path_term.get(term, ())
        value = PATH_TERM_WEIGHT * weight * postings.idf(len(ids), len(table.files))
        for id in ids:
            files[id] = files.get(id, 0.0) + value
    count = table.documents.count
    weights = {term: terms[term] * postings.idf(postings.count_postings(lists.get(term, ())), count) for term in terms}
    # Long reports contain many words that never occur in the code. Count the terms that the index knows first.
    indexed = sorted((value for term, value in weights.items() if term in lists), reverse=True)
    unindexed = sorted((value for term, value in weights.items() if term not in lists), reverse=True)
    return definitions, files, FULL_TERM_SCORE * sum([*indexed, *unindexed][: lexical.MAX_SIGNIFICANT_TERMS])


# --- names and frames ------------------------------------------------------------------------------------------------


def _named_definitions(index: IndexReader, query: CodeQuery) -> dict[int, float]:
    """Return the weights of definitions that the query names. Several of one name share it; members share their class's."""
    by_name = index.symbols_by_name({name.rpartition(".")[2] for name in query.symbols})
    weights: dict[int, float] = {}
    classes: dict[int, Symbol] = {}
    for name, weight in query.symbols.items():
        matches = _without_stubs(_resolve_name(name.split("."), by_name.get(name.rpartition(".")[2], [])))
        if len(matches) <= MAX_SAME_NAME:
            for symbol in matches:
                weights[symbol.id] = max(weights.get(symbol.id, 0.0), weight / len(matches) ** 0.5)
                if symbol.kind in CLASS_KINDS:
                    classes[symbol.id] = symbol
    for id in _top({id: weights[id] for id in classes}, MAX_NAMED_CLASSES):
        for member in index.symbols_in_file(classes[id].path):
            if member.parent == id:
                share = weights[id] * (CONSTRUCTOR_SHARE if member.name in _CONSTRUCTORS else MEMBER_SHARE)
                weights[member.id] = max(weights.get(member.id, 0.0), share)
    return weights


def _resolve_name(parts: Sequence[str], symbols: Sequence[Symbol]) -> Sequence[Symbol]:
    """Return the definitions that `Cart.add` means: `add` in the class `Cart`, else in a module `Cart`, else any `add`."""
    if len(parts) < 2:
        return symbols
    ending = ".".join(parts[-2:])
    in_class = [
        symbol for symbol in symbols if symbol.qualified_name == ending or symbol.qualified_name.endswith(f".{ending}")
    ]
    return in_class or [s for s in symbols if parts[-2] in s.path.rpartition(".")[0].split("/")] or symbols


def _without_stubs(symbols: Sequence[Symbol]) -> list[Symbol]:
    """Remove stubs: overloads and declarations of a definition that is much longer and in the same file."""
    longest: dict[tuple[str, str], int] = {}
    for symbol in symbols:
        longest[symbol.path, symbol.qualified_name] = max(
            longest.get((symbol.path, symbol.qualified_name), 0), symbol.end_line - symbol.start_line
        )
    return [
        symbol
        for symbol in symbols
        if STUB_LENGTH_RATIO * (symbol.end_line - symbol.start_line) >= longest[symbol.path, symbol.qualified_name]
    ]


class _PathIndex:
    """Files by name and by module. Each index is built when a query first needs it."""

    def __init__(self, table: FileTable) -> None:
        self._files = table.files.values()
        self._by_name: dict[str, list[IndexedFile]] | None = None
        self._by_module: dict[str, list[tuple[str, IndexedFile]]] | None = None

    def best_matches(self, path: str, min_parts: int = 1) -> list[IndexedFile]:
        """Return the files that share the most trailing parts with a path; none if there are many."""
        if self._by_name is None:
            self._by_name = {}
            for file in self._files:
                self._by_name.setdefault(file.path.rpartition("/")[2], []).append(file)
        files = self._by_name.get(path.rpartition("/")[2], ())
        shared_parts = {file.id: _common_suffix_length(path, file.path) for file in files}
        max_shared = max(shared_parts.values(), default=0)
        best = [
            file
            for file in files
            if shared_parts[file.id] == max_shared and max_shared >= min(min_parts, file.path.count("/") + 1)
        ]
        return best if len(best) <= 5 else []

    def by_module(self, stem: str) -> list[IndexedFile]:
        """Return the files whose path without suffix ends with this: `shop/cart` matches `src/shop/cart.py`."""
        if self._by_module is None:
            self._by_module = {}
            for file in self._files:
                path = file.path.rpartition(".")[0].removesuffix("/__init__").removesuffix("/index")
                self._by_module.setdefault(path.rpartition("/")[2], []).append((path, file))
        candidates = self._by_module.get(stem.rpartition("/")[2], ())
        return [file for path, file in candidates if path == stem or path.endswith(f"/{stem}")]


def _common_suffix_length(first: str, second: str) -> int:
    """Return the number of trailing parts that two paths have in common."""
    length = 0
    for a, b in zip(reversed(first.strip("/").split("/")), reversed(second.split("/")), strict=False):
        if a != b:
            break
        length += 1
    return length


def _file_votes(query: CodeQuery, paths: _PathIndex) -> tuple[dict[int, float], dict[int, float]]:
    """Return the weights of files named by their path, and of files named as dotted modules."""
    by_path: dict[int, float] = {}
    modules: dict[int, float] = {}
    for name in query.paths:
        files = paths.best_matches(name)
        by_path |= {file.id: max(by_path.get(file.id, 0.0), 1 / len(files)) for file in files}
    for name, weight in query.symbols.items():
        parts = name.split(".")
        for number in range(len(parts), 1, -1):
            if files := paths.by_module("/".join(parts[:number])):
                modules |= {file.id: max(modules.get(file.id, 0.0), weight / len(files)) for file in files}
                break
    return by_path, modules


def _trace_votes(
    index: IndexReader, frames: Sequence[Frame], paths: _PathIndex
) -> tuple[dict[int, float], dict[int, float]]:
    """Return the weights of definitions and files in stack traces. The innermost frame inside the repository counts most."""
    definitions: dict[int, float] = {}
    files: dict[int, float] = {}
    weight = 1.0
    for frame in reversed(frames):
        matches = paths.best_matches(frame.path, min_parts=2)[:2]
        for file in matches:
            files[file.id] = max(files.get(file.id, 0.0), weight)
            for symbol in _symbol_at_frame(index, file, frame):
                definitions[symbol.id] = max(definitions.get(symbol.id, 0.0), weight)
        if matches:
            weight *= CALLER_FRAME_DECAY
    return definitions, files


def _symbol_at_frame(index: IndexReader, file: IndexedFile, frame: Frame) -> list[Symbol]:
    """Return the definition that a frame names. Without a name it is the one at the frame's line, which may have moved."""
    symbols = [symbol for symbol in index.symbols_in_file(file.path) if symbol.kind != MODULE]
    if frame.function:
        return [symbol for symbol in symbols if symbol.name == frame.function.rpartition(".")[2]]
    enclosing = [symbol for symbol in symbols if symbol.start_line <= frame.line <= symbol.end_line]
    return enclosing[-1:]


# --- combining scores ------------------------------------------------------------------------------------------------


def _role_factors(query: CodeQuery, table: FileTable, referenced_ids: Iterable[int]) -> dict[int, float]:
    """Return the factor of each file by its role. It is 1 if the query asks for the file or for files of its role."""
    factors = {role: 1.0 if query.topic_terms & set(ROLE_QUERY_TERMS[role]) else ROLE_FACTORS[role] for role in ROLE_FACTORS}
    by_file = {id: factors.get(file.role, 1.0) for id, file in table.files.items()}
    if factors["docs"] < 1:
        for id, file in table.files.items():
            if file.role == "docs" and _CHANGELOG_PATH.search(file.path):
                by_file[id] *= CHANGELOG_FACTOR
    return by_file | dict.fromkeys(referenced_ids, 1.0)


def _strength(best: float, max_score: float, votes: Iterable[float]) -> float:
    """Return the relevance of the best result. It is low if the code has nothing to do with the query."""
    return min(1.0, max(best / max_score if max_score else 0.0, max(votes, default=0.0)))


def _features(lexical: float, named: float, traced: float) -> dict[str, float]:
    features = {"lexical": lexical, "named": named, "traced": traced}
    return {name: round(min(1.0, value), 4) for name, value in features.items() if value}


def _relative_to_best(scores: dict[int, float]) -> dict[int, float]:
    """Divide scores by the best one."""
    best = max(scores.values(), default=0.0) or 1.0
    return {id: score / best for id, score in scores.items()}


def _top(scores: Mapping, number: int) -> list:  # type: ignore[type-arg]
    """Return the keys with the highest scores, best first. Ties are broken by key."""
    return nsmallest(number, scores, key=lambda key: (-scores[key], key))
