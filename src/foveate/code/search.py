"""A question -> files and definitions of the index, best first.

Two lexical rankings (definitions; files with their paths) are joined with votes: for what the question names, for the frames
of its stack traces, for the files that hold several good definitions. A definition gains from its file, and a file from its
definitions. Tests, documents and copies of others are demoted unless they are asked for. The figures were set on issues
of six repositories and commit messages of four larger ones, and lie on a plateau: few of them matter alone (decision 018).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest

from foveate.code import postings
from foveate.code.cache import FileTable, IndexedFile
from foveate.code.git_history import GitHistory
from foveate.code.graph import CLASS_KINDS
from foveate.code.index_reader import IndexReader
from foveate.code.model import MODULE, Role, Symbol
from foveate.code.postings import PostingKind
from foveate.code.query import CodeQuery, Frame
from foveate.text import analysis as lexical

MAX_QUERY_TERMS = 60
"""The most telling terms of a long report that are searched for: more bring nothing."""

FULL_TERM_SCORE = 0.6
"""The weight of a term that stands several times in a text of ordinary length: what a full answer has of each."""

PATH_TERM_WEIGHT = 0.7
"""What a word of the question is worth in a file's path, against one that the file is full of."""

LENGTH_BONUS = 0.05
"""What a long definition gains over a short one that matches as well: more can be wrong in it, and more be meant."""

NAMED_BOOST, TRACE_BOOST = 0.5, 0.5
"""Votes for a definition that the question names, or that stands in its stack trace; the best lexical match has 1."""
MEMBER_SHARE, CONSTRUCTOR_SHARE = 0.1, 0.3
"""What the members of a class have of the vote for it."""
FILE_LEXICAL_WEIGHT, FILE_NAMED_WEIGHT, FILE_MODULE_WEIGHT, FILE_TRACE_WEIGHT = 0.6, 1.2, 0.3, 0.5
"""The same for a file; the file with the best definitions has 1."""
FILE_RANK_SHARE = 0.8
"""What a definition has of the rank of its file."""
NEXT_DEFINITION_DECAY = 0.5
"""What each further definition adds to its file, against the one before it."""
MIN_RELATIVE_SCORE = 0.15
"""Of the best lexical score: a definition with less is not looked at."""
MAX_SCORED_DEFINITIONS = 400
"""Definitions that are looked at closely."""

MAX_SAME_NAME = 15
"""A name that more definitions have votes for none."""
MAX_NAMED_CLASSES = 6
"""Named classes whose members have a share in the vote."""

CHURN_BOOST, CO_CHANGE_BOOST = 0.02, 0.02
"""What the history can add: to a file that changes these days, and to one that changed together with the best."""

STUB_LENGTH_RATIO = 4
"""How many times longer a namesake in the same file must be to make a definition a stub of it."""

CALLER_FRAME_DECAY = 0.7
"""What a frame is worth against the one that it called."""

ROLE_FACTORS: Mapping[Role, float] = {
    "test": 0.4,
    "docs": 0.6,
    "example": 0.7,
    "generated": 0.5,
    "vendored": 0.4,
    "config": 0.8,
    "data": 0.6,
}
CHANGELOG_FACTOR = 0.5
"""What is left of that for a list of past changes: it speaks of everything and explains nothing."""
ROLE_QUERY_TERMS: Mapping[Role, tuple[str, ...]] = {
    "test": ("test", "fixtur", "pytest", "spec"),
    "docs": ("doc", "document", "readm", "changelog", "guid"),
    "example": ("exampl", "demo", "tutori", "sampl"),
    "generated": ("generat", "protobuf"),
    "vendored": ("vendor",),
    "config": ("config", "configur", "ci", "workflow"),
    "data": ("dataset",),
}
"""Words (as index terms) by which a question asks for such files."""

_CHANGELOG_PATH = re.compile(
    r"(?:^|/)(?:change[-_]?logs?|changes|history|news|whatsnew|releases?(?:[-_]notes)?)\b", re.IGNORECASE
)
_CONSTRUCTORS = ("__init__", "__new__", "constructor", "initialize", "init", "new")


@dataclass(frozen=True, slots=True)
class FileHit:
    """A file and how well it answers, 0..1."""

    file: IndexedFile
    relevance: float
    features: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DefinitionHit:
    """A definition and how well it answers, 0..1."""

    symbol: Symbol
    relevance: float
    features: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CodeHits:
    """What was found, best first."""

    files: tuple[FileHit, ...] = ()
    definitions: tuple[DefinitionHit, ...] = ()


def search(index: IndexReader, query: CodeQuery, files: int = 50, definitions: int = 100) -> CodeHits:
    """The files and definitions that answer a question."""
    table = index.file_table()
    if not table.files:
        return CodeHits()
    found = _Scores(index, query, table)
    # Equals by path and line: ids tell in which order files were indexed, and nothing else.
    best = sorted(_top(found.files, files), key=lambda id: (-found.files[id], table.files[id].path))
    ranks = found.definitions
    symbols = _without_stubs(list(index.symbols(_top(ranks, definitions)).values()))
    symbols = sorted(symbols, key=lambda one: (-ranks[one.id], one.path, one.start_line))
    return CodeHits(
        tuple(FileHit(table.files[id], found.relevance(found.files[id]), found.file_features(id)) for id in best),
        tuple(DefinitionHit(symbol, found.relevance(ranks[symbol.id]), found.features(symbol.id)) for symbol in symbols),
    )


class _Scores:
    """The scores of definitions and files for one question, by id; the best of each kind has 1."""

    def __init__(self, index: IndexReader, query: CodeQuery, table: FileTable) -> None:
        self.owner = table.documents.file_ids
        paths = _PathIndex(table)
        self.pointed, self.modules = _file_votes(query, paths)
        self.traced, self.traced_files = _trace_votes(index, query.frames, paths)
        self.standing = _role_factors(query, table, {*self.pointed, *self.traced_files})
        words, file_words, reach = _scores(index, _significant_terms(index, query, table), table)
        self.lexical = _relative_to_best(self._top_lexical(words, table.documents.half_saturation))
        self.file_lexical = _relative_to_best({id: score * self.standing[id] for id, score in file_words.items()})
        self.named = {id: vote * self.standing[self.owner[id]] for id, vote in _named_definitions(index, query).items()}
        self.strength = _strength(
            max(words.values(), default=0.0),
            reach,
            (*self.named.values(), *self.traced.values(), *self.pointed.values(), *self.modules.values()),
        )
        ranks = {
            id: self.lexical.get(id, 0.0) + NAMED_BOOST * self.named.get(id, 0.0) + TRACE_BOOST * self.traced.get(id, 0.0)
            for id in {*self.lexical, *self.named, *self.traced}
        }
        self.files = _relative_to_best(_boost_by_history(self._file_ranks(ranks), index.history(), table))
        self.definitions = _relative_to_best(
            {id: rank + FILE_RANK_SHARE * self.files[self.owner[id]] for id, rank in ranks.items()}
        )

    def _top_lexical(self, words: Mapping[int, float], half_saturation: Sequence[float]) -> dict[int, float]:
        """The definitions with the best words, by what they are for and how long they are."""
        owner, standing = self.owner, self.standing
        least = MIN_RELATIVE_SCORE * max(words.values(), default=0.0)
        near = {
            id: score * standing[owner[id]] * half_saturation[id] ** LENGTH_BONUS
            for id, score in words.items()
            if score >= least
        }
        return {id: near[id] for id in _top(near, MAX_SCORED_DEFINITIONS)}

    def _file_ranks(self, ranks: Mapping[int, float]) -> dict[int, float]:
        """The rank of each file: its best definitions, its own words, and who votes for it."""
        depth: dict[int, list[float]] = {}
        for id in _top(ranks, len(ranks)):
            depth.setdefault(self.owner[id], []).append(ranks[id])
        held = _relative_to_best(
            {file: sum(rank * NEXT_DEFINITION_DECAY**n for n, rank in enumerate(found[:6])) for file, found in depth.items()}
        )
        return {
            id: held.get(id, 0.0)
            + FILE_LEXICAL_WEIGHT * self.file_lexical.get(id, 0.0)
            + FILE_NAMED_WEIGHT * self.pointed.get(id, 0.0)
            + FILE_MODULE_WEIGHT * self.modules.get(id, 0.0)
            + FILE_TRACE_WEIGHT * self.traced_files.get(id, 0.0)
            for id in {*held, *self.file_lexical, *self.pointed, *self.modules, *self.traced_files}
        }

    def relevance(self, rank: float) -> float:
        return round(self.strength * rank, 4)

    def features(self, id: int) -> dict[str, float]:
        return _features(self.lexical.get(id, 0.0), self.named.get(id, 0.0), self.traced.get(id, 0.0))

    def file_features(self, id: int) -> dict[str, float]:
        voted = max(self.pointed.get(id, 0.0), self.modules.get(id, 0.0))
        return _features(self.file_lexical.get(id, 0.0), voted, self.traced_files.get(id, 0.0))


def _boost_by_history(files: dict[int, float], git_history: GitHistory, table: FileTable) -> dict[int, float]:
    """The ranks of files with what the latest commits say: which of them change these days, and which with the best one."""
    if not files or not git_history.commits:
        return files
    best = min(files, key=lambda id: (-files[id], table.files[id].path))
    together = git_history.co_changed(table.files[best].path)
    paths = {id: table.files[id].path for id in files}
    return {
        id: rank * (1 + CHURN_BOOST * git_history.churn(paths[id]))
        + CO_CHANGE_BOOST * files[best] * together.get(paths[id], 0.0)
        for id, rank in files.items()
    }


# --- words ---------------------------------------------------------------------------------------------------------


def _significant_terms(index: IndexReader, query: CodeQuery, table: FileTable) -> dict[str, float]:
    """The terms of the question that tell the most here, with their importance."""
    if len(query.terms) <= MAX_QUERY_TERMS:
        return dict(query.terms)
    lists = index.posting_lists(PostingKind.WORDS, query.terms)
    worth = {
        term: weight * postings.idf(postings.count_postings(lists[term]), table.documents.count)
        for term, weight in query.terms.items()
        if term in lists
    }
    return {term: query.terms[term] for term in _top(worth, MAX_QUERY_TERMS)}


def _scores(
    index: IndexReader, terms: Mapping[str, float], table: FileTable
) -> tuple[dict[int, float], dict[int, float], float]:
    """The lexical scores of definitions and files, and what a definition would score that answers in full."""
    lists = index.posting_lists(PostingKind.WORDS, terms)
    definitions, files = postings.scores(lists, terms, table.documents)
    for term, importance in terms.items():
        ids = table.files_by_path_term.get(term, ())
        value = PATH_TERM_WEIGHT * importance * postings.idf(len(ids), len(table.files))
        for id in ids:
            files[id] = files.get(id, 0.0) + value
    number = table.documents.count
    worth = {term: terms[term] * postings.idf(postings.count_postings(lists.get(term, ())), number) for term in terms}
    # Of a long text, first what the code speaks of at all: a report has many words of its own.
    known = sorted((value for term, value in worth.items() if term in lists), reverse=True)
    foreign = sorted((value for term, value in worth.items() if term not in lists), reverse=True)
    return definitions, files, FULL_TERM_SCORE * sum([*known, *foreign][: lexical.TELLING])


# --- votes ---------------------------------------------------------------------------------------------------------


def _named_definitions(index: IndexReader, query: CodeQuery) -> dict[int, float]:
    """Definitions that the question names. A name that several have is shared by them, a class has its members share."""
    by_name = index.symbols_by_name({name.rpartition(".")[2] for name in query.symbols})
    votes: dict[int, float] = {}
    classes: dict[int, Symbol] = {}
    for written, worth in query.symbols.items():
        meant = _without_stubs(_resolve_name(written.split("."), by_name.get(written.rpartition(".")[2], [])))
        if len(meant) <= MAX_SAME_NAME:
            for symbol in meant:
                votes[symbol.id] = max(votes.get(symbol.id, 0.0), worth / len(meant) ** 0.5)
                if symbol.kind in CLASS_KINDS:
                    classes[symbol.id] = symbol
    for id in _top({id: votes[id] for id in classes}, MAX_NAMED_CLASSES):
        for member in index.symbols_in_file(classes[id].path):
            if member.parent == id:
                share = votes[id] * (CONSTRUCTOR_SHARE if member.name in _CONSTRUCTORS else MEMBER_SHARE)
                votes[member.id] = max(votes.get(member.id, 0.0), share)
    return votes


def _resolve_name(parts: Sequence[str], symbols: Sequence[Symbol]) -> Sequence[Symbol]:
    """Which of several namesakes `Cart.add` or `cart.add` means: the one in that class, else in that module."""
    if len(parts) < 2:
        return symbols
    ending = ".".join(parts[-2:])
    inside = [
        symbol for symbol in symbols if symbol.qualified_name == ending or symbol.qualified_name.endswith(f".{ending}")
    ]
    return inside or [s for s in symbols if parts[-2] in s.path.rpartition(".")[0].split("/")] or symbols


def _without_stubs(symbols: Sequence[Symbol]) -> list[Symbol]:
    """Without the stubs of what is defined at length under the same name in the same file: overloads, declarations."""
    longest: dict[tuple[str, str], int] = {}
    for one in symbols:
        longest[one.path, one.qualified_name] = max(
            longest.get((one.path, one.qualified_name), 0), one.end_line - one.start_line
        )
    return [
        one
        for one in symbols
        if STUB_LENGTH_RATIO * (one.end_line - one.start_line) >= longest[one.path, one.qualified_name]
    ]


class _PathIndex:
    """Files by how a text may call them; made when a text does."""

    def __init__(self, table: FileTable) -> None:
        self._files = table.files.values()
        self._by_name: dict[str, list[IndexedFile]] | None = None
        self._by_module: dict[str, list[tuple[str, IndexedFile]]] | None = None

    def best_matches(self, path: str, min_parts: int = 1) -> list[IndexedFile]:
        """The files whose path ends most like the one that is written, where they are few."""
        if self._by_name is None:
            self._by_name = {}
            for file in self._files:
                self._by_name.setdefault(file.path.rpartition("/")[2], []).append(file)
        files = self._by_name.get(path.rpartition("/")[2], ())
        shared = {file.id: _common_suffix_length(path, file.path) for file in files}
        most = max(shared.values(), default=0)
        best = [file for file in files if shared[file.id] == most and most >= min(min_parts, file.path.count("/") + 1)]
        return best if len(best) <= 5 else []

    def by_module(self, stem: str) -> list[IndexedFile]:
        """Files whose path without the suffix ends so: `shop/cart` is `src/shop/cart.py`."""
        if self._by_module is None:
            self._by_module = {}
            for file in self._files:
                path = file.path.rpartition(".")[0].removesuffix("/__init__").removesuffix("/index")
                self._by_module.setdefault(path.rpartition("/")[2], []).append((path, file))
        alike = self._by_module.get(stem.rpartition("/")[2], ())
        return [file for path, file in alike if path == stem or path.endswith(f"/{stem}")]


def _common_suffix_length(one: str, other: str) -> int:
    """How many parts two paths have in common from their end."""
    number = 0
    for a, b in zip(reversed(one.strip("/").split("/")), reversed(other.split("/")), strict=False):
        if a != b:
            break
        number += 1
    return number


def _file_votes(query: CodeQuery, paths: _PathIndex) -> tuple[dict[int, float], dict[int, float]]:
    """Files that the question names by their path, and modules that it names with dots."""
    pointed: dict[int, float] = {}
    modules: dict[int, float] = {}
    for written in query.paths:
        files = paths.best_matches(written)
        pointed |= {file.id: max(pointed.get(file.id, 0.0), 1 / len(files)) for file in files}
    for written, worth in query.symbols.items():
        parts = written.split(".")
        for number in range(len(parts), 1, -1):
            if files := paths.by_module("/".join(parts[:number])):
                modules |= {file.id: max(modules.get(file.id, 0.0), worth / len(files)) for file in files}
                break
    return pointed, modules


def _trace_votes(
    index: IndexReader, frames: Sequence[Frame], paths: _PathIndex
) -> tuple[dict[int, float], dict[int, float]]:
    """Definitions and files of stack traces: the innermost frame of ours counts most."""
    definitions: dict[int, float] = {}
    files: dict[int, float] = {}
    worth = 1.0
    for frame in reversed(frames):
        found = paths.best_matches(frame.path, min_parts=2)[:2]
        for file in found:
            files[file.id] = max(files.get(file.id, 0.0), worth)
            for symbol in _symbol_at_frame(index, file, frame):
                definitions[symbol.id] = max(definitions.get(symbol.id, 0.0), worth)
        if found:
            worth *= CALLER_FRAME_DECAY
    return definitions, files


def _symbol_at_frame(index: IndexReader, file: IndexedFile, frame: Frame) -> list[Symbol]:
    """The definition that a frame names; by its line only where there is no name, because lines move."""
    symbols = [symbol for symbol in index.symbols_in_file(file.path) if symbol.kind != MODULE]
    if frame.function:
        return [symbol for symbol in symbols if symbol.name == frame.function.rpartition(".")[2]]
    around = [symbol for symbol in symbols if symbol.start_line <= frame.line <= symbol.end_line]
    return around[-1:]


# --- together ------------------------------------------------------------------------------------------------------


def _role_factors(query: CodeQuery, table: FileTable, referenced_ids: Iterable[int]) -> dict[int, float]:
    """What is left of the scores of each file by what it is for: all, where the question asks for it or for such files."""
    left = {role: 1.0 if query.topic_terms & set(ROLE_QUERY_TERMS[role]) else ROLE_FACTORS[role] for role in ROLE_FACTORS}
    found = {id: left.get(file.role, 1.0) for id, file in table.files.items()}
    if left["docs"] < 1:
        for id, file in table.files.items():
            if file.role == "docs" and _CHANGELOG_PATH.search(file.path):
                found[id] *= CHANGELOG_FACTOR
    return found | dict.fromkeys(referenced_ids, 1.0)


def _strength(best: float, max_score: float, votes: Iterable[float]) -> float:
    """How good the best answer is in itself: a question about something else finds nothing."""
    return min(1.0, max(best / max_score if max_score else 0.0, max(votes, default=0.0)))


def _features(lexical: float, named: float, traced: float) -> dict[str, float]:
    every = {"lexical": lexical, "named": named, "traced": traced}
    return {name: round(min(1.0, value), 4) for name, value in every.items() if value}


def _relative_to_best(scores: dict[int, float]) -> dict[int, float]:
    """Scores as shares of the best one."""
    best = max(scores.values(), default=0.0) or 1.0
    return {id: score / best for id, score in scores.items()}


def _top(scores: Mapping, number: int) -> list:  # type: ignore[type-arg]
    """The keys of the best, best first; equals in the order of their keys."""
    return nsmallest(number, scores, key=lambda key: (-scores[key], key))
