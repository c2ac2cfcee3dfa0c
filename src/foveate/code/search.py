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
from foveate.code.graph import CLASSES, Symbol
from foveate.code.history import History
from foveate.code.index_reader import IndexReader
from foveate.code.model import MODULE, Role
from foveate.code.postings import Space
from foveate.code.question import Frame, Question
from foveate.text import analysis as lexical

TERMS = 60
"""The most telling terms of a long report that are searched for: more bring nothing."""

FULL = 0.6
"""The weight of a term that stands several times in a text of ordinary length: what a full answer has of each."""

PATH = 0.7
"""What a word of the question is worth in a file's path, against one that the file is full of."""

LONGER = 0.05
"""What a long definition gains over a short one that matches as well: more can be wrong in it, and more be meant."""

NAMED, TRACED = 0.5, 0.5
"""Votes for a definition that the question names, or that stands in its stack trace; the best lexical match has 1."""
MEMBER, CONSTRUCTOR = 0.1, 0.3
"""What the members of a class have of the vote for it."""
FILE_LEXICAL, FILE_NAMED, FILE_MODULE, FILE_TRACED = 0.6, 1.2, 0.3, 0.5
"""The same for a file; the file with the best definitions has 1."""
FROM_FILE = 0.8
"""What a definition has of the rank of its file."""
DEEPER = 0.5
"""What each further definition adds to its file, against the one before it."""
LEAST = 0.15
"""Of the best lexical score: a definition with less is not looked at."""
BEST = 400
"""Definitions that are looked at closely."""

NAMESAKES = 15
"""A name that more definitions have votes for none."""
CLASSES_NAMED = 6
"""Named classes whose members have a share in the vote."""

WARM, TOGETHER = 0.02, 0.02
"""What the history can add: to a file that changes these days, and to one that changed together with the best."""

STUB = 4
"""How many times longer a namesake in the same file must be to make a definition a stub of it."""

OUTWARD = 0.7
"""What a frame is worth against the one that it called."""

DEMOTED: Mapping[Role, float] = {
    "test": 0.4,
    "docs": 0.6,
    "example": 0.7,
    "generated": 0.5,
    "vendored": 0.4,
    "config": 0.8,
    "data": 0.6,
}
NEWS = 0.5
"""What is left of that for a list of past changes: it speaks of everything and explains nothing."""
ASKED_FOR: Mapping[Role, tuple[str, ...]] = {
    "test": ("test", "fixtur", "pytest", "spec"),
    "docs": ("doc", "document", "readm", "changelog", "guid"),
    "example": ("exampl", "demo", "tutori", "sampl"),
    "generated": ("generat", "protobuf"),
    "vendored": ("vendor",),
    "config": ("config", "configur", "ci", "workflow"),
    "data": ("dataset",),
}
"""Words (as index terms) by which a question asks for such files."""

_NEWS = re.compile(r"(?:^|/)(?:change[-_]?logs?|changes|history|news|whatsnew|releases?(?:[-_]notes)?)\b", re.IGNORECASE)
_CONSTRUCTORS = ("__init__", "__new__", "constructor", "initialize", "init", "new")


@dataclass(frozen=True, slots=True)
class FileHit:
    """A file and how well it answers, 0..1."""

    file: IndexedFile
    relevance: float
    features: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hit:
    """A definition and how well it answers, 0..1."""

    symbol: Symbol
    relevance: float
    features: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hits:
    """What was found, best first."""

    files: tuple[FileHit, ...] = ()
    definitions: tuple[Hit, ...] = ()


def search(index: IndexReader, question: Question, files: int = 50, definitions: int = 100) -> Hits:
    """The files and definitions that answer a question."""
    table = index.file_table()
    if not table.files:
        return Hits()
    found = _Found(index, question, table)
    # Equals by path and line: ids tell in which order files were indexed, and nothing else.
    best = sorted(_top(found.files, files), key=lambda id: (-found.files[id], table.files[id].path))
    ranks = found.definitions
    symbols = _whole(list(index.symbols(_top(ranks, definitions)).values()))
    symbols = sorted(symbols, key=lambda one: (-ranks[one.id], one.path, one.line))
    return Hits(
        tuple(FileHit(table.files[id], found.worth(found.files[id]), found.why_file(id)) for id in best),
        tuple(Hit(symbol, found.worth(ranks[symbol.id]), found.why(symbol.id)) for symbol in symbols),
    )


class _Found:
    """The scores of definitions and files for one question, by id; the best of each kind has 1."""

    def __init__(self, index: IndexReader, question: Question, table: FileTable) -> None:
        self.owner = table.documents.owner
        paths = _Paths(table)
        self.pointed, self.modules = _file_votes(question, paths)
        self.traced, self.traced_files = _traced(index, question.frames, paths)
        self.standing = _standing(question, table, {*self.pointed, *self.traced_files})
        words, file_words, reach = _scores(index, _telling(index, question, table), table)
        self.lexical = _scaled(self._close(words, table.documents.half))
        self.file_lexical = _scaled({id: score * self.standing[id] for id, score in file_words.items()})
        self.named = {id: vote * self.standing[self.owner[id]] for id, vote in _named(index, question).items()}
        self.strength = _strength(
            max(words.values(), default=0.0),
            reach,
            (*self.named.values(), *self.traced.values(), *self.pointed.values(), *self.modules.values()),
        )
        ranks = {
            id: self.lexical.get(id, 0.0) + NAMED * self.named.get(id, 0.0) + TRACED * self.traced.get(id, 0.0)
            for id in {*self.lexical, *self.named, *self.traced}
        }
        self.files = _scaled(_with_past(self._by_file(ranks), index.history(), table))
        self.definitions = _scaled({id: rank + FROM_FILE * self.files[self.owner[id]] for id, rank in ranks.items()})

    def _close(self, words: Mapping[int, float], half: Sequence[float]) -> dict[int, float]:
        """The definitions with the best words, by what they are for and how long they are."""
        owner, standing = self.owner, self.standing
        least = LEAST * max(words.values(), default=0.0)
        near = {id: score * standing[owner[id]] * half[id] ** LONGER for id, score in words.items() if score >= least}
        return {id: near[id] for id in _top(near, BEST)}

    def _by_file(self, ranks: Mapping[int, float]) -> dict[int, float]:
        """The rank of each file: its best definitions, its own words, and who votes for it."""
        depth: dict[int, list[float]] = {}
        for id in _top(ranks, len(ranks)):
            depth.setdefault(self.owner[id], []).append(ranks[id])
        held = _scaled({file: sum(rank * DEEPER**n for n, rank in enumerate(found[:6])) for file, found in depth.items()})
        return {
            id: held.get(id, 0.0)
            + FILE_LEXICAL * self.file_lexical.get(id, 0.0)
            + FILE_NAMED * self.pointed.get(id, 0.0)
            + FILE_MODULE * self.modules.get(id, 0.0)
            + FILE_TRACED * self.traced_files.get(id, 0.0)
            for id in {*held, *self.file_lexical, *self.pointed, *self.modules, *self.traced_files}
        }

    def worth(self, rank: float) -> float:
        return round(self.strength * rank, 4)

    def why(self, id: int) -> dict[str, float]:
        return _features(self.lexical.get(id, 0.0), self.named.get(id, 0.0), self.traced.get(id, 0.0))

    def why_file(self, id: int) -> dict[str, float]:
        voted = max(self.pointed.get(id, 0.0), self.modules.get(id, 0.0))
        return _features(self.file_lexical.get(id, 0.0), voted, self.traced_files.get(id, 0.0))


def _with_past(files: dict[int, float], past: History, table: FileTable) -> dict[int, float]:
    """The ranks of files with what the latest commits say: which of them change these days, and which with the best one."""
    if not files or not past.commits:
        return files
    best = min(files, key=lambda id: (-files[id], table.files[id].path))
    together = past.together(table.files[best].path)
    paths = {id: table.files[id].path for id in files}
    return {
        id: rank * (1 + WARM * past.warmth(paths[id])) + TOGETHER * files[best] * together.get(paths[id], 0.0)
        for id, rank in files.items()
    }


# --- words ---------------------------------------------------------------------------------------------------------


def _telling(index: IndexReader, question: Question, table: FileTable) -> dict[str, float]:
    """The terms of the question that tell the most here, with their importance."""
    if len(question.terms) <= TERMS:
        return dict(question.terms)
    lists = index.posting_lists(Space.WORDS, question.terms)
    worth = {
        term: weight * postings.rarity(postings.length_of(lists[term]), table.documents.number)
        for term, weight in question.terms.items()
        if term in lists
    }
    return {term: question.terms[term] for term in _top(worth, TERMS)}


def _scores(
    index: IndexReader, terms: Mapping[str, float], table: FileTable
) -> tuple[dict[int, float], dict[int, float], float]:
    """The lexical scores of definitions and files, and what a definition would score that answers in full."""
    lists = index.posting_lists(Space.WORDS, terms)
    definitions, files = postings.scores(lists, terms, table.documents)
    for term, importance in terms.items():
        ids = table.files_by_path_term.get(term, ())
        value = PATH * importance * postings.rarity(len(ids), len(table.files))
        for id in ids:
            files[id] = files.get(id, 0.0) + value
    number = table.documents.number
    worth = {term: terms[term] * postings.rarity(postings.length_of(lists.get(term, ())), number) for term in terms}
    # Of a long text, first what the code speaks of at all: a report has many words of its own.
    known = sorted((value for term, value in worth.items() if term in lists), reverse=True)
    foreign = sorted((value for term, value in worth.items() if term not in lists), reverse=True)
    return definitions, files, FULL * sum([*known, *foreign][: lexical.TELLING])


# --- votes ---------------------------------------------------------------------------------------------------------


def _named(index: IndexReader, question: Question) -> dict[int, float]:
    """Definitions that the question names. A name that several have is shared by them, a class has its members share."""
    by_name = index.symbols_by_name({name.rpartition(".")[2] for name in question.symbols})
    votes: dict[int, float] = {}
    classes: dict[int, Symbol] = {}
    for written, worth in question.symbols.items():
        meant = _whole(_meant(written.split("."), by_name.get(written.rpartition(".")[2], [])))
        if len(meant) <= NAMESAKES:
            for symbol in meant:
                votes[symbol.id] = max(votes.get(symbol.id, 0.0), worth / len(meant) ** 0.5)
                if symbol.kind in CLASSES:
                    classes[symbol.id] = symbol
    for id in _top({id: votes[id] for id in classes}, CLASSES_NAMED):
        for member in index.symbols_in_file(classes[id].path):
            if member.parent == id:
                share = votes[id] * (CONSTRUCTOR if member.name in _CONSTRUCTORS else MEMBER)
                votes[member.id] = max(votes.get(member.id, 0.0), share)
    return votes


def _meant(parts: Sequence[str], symbols: Sequence[Symbol]) -> Sequence[Symbol]:
    """Which of several namesakes `Cart.add` or `cart.add` means: the one in that class, else in that module."""
    if len(parts) < 2:
        return symbols
    ending = ".".join(parts[-2:])
    inside = [symbol for symbol in symbols if symbol.qualified == ending or symbol.qualified.endswith(f".{ending}")]
    return inside or [s for s in symbols if parts[-2] in s.path.rpartition(".")[0].split("/")] or symbols


def _whole(symbols: Sequence[Symbol]) -> list[Symbol]:
    """Without the stubs of what is defined at length under the same name in the same file: overloads, declarations."""
    longest: dict[tuple[str, str], int] = {}
    for one in symbols:
        longest[one.path, one.qualified] = max(longest.get((one.path, one.qualified), 0), one.end - one.line)
    return [one for one in symbols if STUB * (one.end - one.line) >= longest[one.path, one.qualified]]


class _Paths:
    """Files by how a text may call them; made when a text does."""

    def __init__(self, table: FileTable) -> None:
        self._files = table.files.values()
        self._by_name: dict[str, list[IndexedFile]] | None = None
        self._by_module: dict[str, list[tuple[str, IndexedFile]]] | None = None

    def closest(self, written: str, least: int = 1) -> list[IndexedFile]:
        """The files whose path ends most like the one that is written, where they are few."""
        if self._by_name is None:
            self._by_name = {}
            for file in self._files:
                self._by_name.setdefault(file.path.rpartition("/")[2], []).append(file)
        files = self._by_name.get(written.rpartition("/")[2], ())
        shared = {file.id: _shared_end(written, file.path) for file in files}
        most = max(shared.values(), default=0)
        best = [file for file in files if shared[file.id] == most and most >= min(least, file.path.count("/") + 1)]
        return best if len(best) <= 5 else []

    def modules(self, stem: str) -> list[IndexedFile]:
        """Files whose path without the suffix ends so: `shop/cart` is `src/shop/cart.py`."""
        if self._by_module is None:
            self._by_module = {}
            for file in self._files:
                path = file.path.rpartition(".")[0].removesuffix("/__init__").removesuffix("/index")
                self._by_module.setdefault(path.rpartition("/")[2], []).append((path, file))
        alike = self._by_module.get(stem.rpartition("/")[2], ())
        return [file for path, file in alike if path == stem or path.endswith(f"/{stem}")]


def _shared_end(one: str, other: str) -> int:
    """How many parts two paths have in common from their end."""
    number = 0
    for a, b in zip(reversed(one.strip("/").split("/")), reversed(other.split("/")), strict=False):
        if a != b:
            break
        number += 1
    return number


def _file_votes(question: Question, paths: _Paths) -> tuple[dict[int, float], dict[int, float]]:
    """Files that the question names by their path, and modules that it names with dots."""
    pointed: dict[int, float] = {}
    modules: dict[int, float] = {}
    for written in question.paths:
        files = paths.closest(written)
        pointed |= {file.id: max(pointed.get(file.id, 0.0), 1 / len(files)) for file in files}
    for written, worth in question.symbols.items():
        parts = written.split(".")
        for number in range(len(parts), 1, -1):
            if files := paths.modules("/".join(parts[:number])):
                modules |= {file.id: max(modules.get(file.id, 0.0), worth / len(files)) for file in files}
                break
    return pointed, modules


def _traced(index: IndexReader, frames: Sequence[Frame], paths: _Paths) -> tuple[dict[int, float], dict[int, float]]:
    """Definitions and files of stack traces: the innermost frame of ours counts most."""
    definitions: dict[int, float] = {}
    files: dict[int, float] = {}
    worth = 1.0
    for frame in reversed(frames):
        found = paths.closest(frame.path, least=2)[:2]
        for file in found:
            files[file.id] = max(files.get(file.id, 0.0), worth)
            for symbol in _at(index, file, frame):
                definitions[symbol.id] = max(definitions.get(symbol.id, 0.0), worth)
        if found:
            worth *= OUTWARD
    return definitions, files


def _at(index: IndexReader, file: IndexedFile, frame: Frame) -> list[Symbol]:
    """The definition that a frame names; by its line only where there is no name, because lines move."""
    symbols = [symbol for symbol in index.symbols_in_file(file.path) if symbol.kind != MODULE]
    if frame.function:
        return [symbol for symbol in symbols if symbol.name == frame.function.rpartition(".")[2]]
    around = [symbol for symbol in symbols if symbol.line <= frame.line <= symbol.end]
    return around[-1:]


# --- together ------------------------------------------------------------------------------------------------------


def _standing(question: Question, table: FileTable, pointed_to: Iterable[int]) -> dict[int, float]:
    """What is left of the scores of each file by what it is for: all, where the question asks for it or for such files."""
    left = {role: 1.0 if question.topic & set(ASKED_FOR[role]) else DEMOTED[role] for role in DEMOTED}
    found = {id: left.get(file.role, 1.0) for id, file in table.files.items()}
    if left["docs"] < 1:
        for id, file in table.files.items():
            if file.role == "docs" and _NEWS.search(file.path):
                found[id] *= NEWS
    return found | dict.fromkeys(pointed_to, 1.0)


def _strength(best: float, reach: float, votes: Iterable[float]) -> float:
    """How good the best answer is in itself: a question about something else finds nothing."""
    return min(1.0, max(best / reach if reach else 0.0, max(votes, default=0.0)))


def _features(lexical: float, named: float, traced: float) -> dict[str, float]:
    every = {"lexical": lexical, "named": named, "traced": traced}
    return {name: round(min(1.0, value), 4) for name, value in every.items() if value}


def _scaled(scores: dict[int, float]) -> dict[int, float]:
    """Scores as shares of the best one."""
    best = max(scores.values(), default=0.0) or 1.0
    return {id: score / best for id, score in scores.items()}


def _top(scores: Mapping, number: int) -> list:  # type: ignore[type-arg]
    """The keys of the best, best first; equals in the order of their keys."""
    return nsmallest(number, scores, key=lambda key: (-scores[key], key))
