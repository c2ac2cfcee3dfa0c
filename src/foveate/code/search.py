"""A question -> files and definitions of the index, best first.

Two lexical rankings (definitions; files with their paths) are joined with votes: for what the question names, for the frames
of its stack traces, for the files that hold several good definitions. A definition gains from its file, and a file from its
definitions. Tests, documents and copies of others are demoted unless they are asked for; what the history says is a
weak prior. The figures were set on issues of six repositories (`bench/swebench.py`) and lie on a plateau: none of them
matters alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest

from foveate.code import postings
from foveate.code.chunk import MODULE
from foveate.code.graph import Symbol
from foveate.code.index import CodeIndex, File, Table
from foveate.code.model import Role
from foveate.code.postings import Space
from foveate.code.question import Frame, Question

TERMS = 60
"""The most telling terms of a long report that are searched for: more bring nothing."""

TELLING = 8
"""A definition that holds this many of the most telling terms answers the question."""

FULL = 0.6
"""The weight of a term that stands several times in a text of ordinary length: what a full answer has of each."""

PATH = 0.7
"""What a word of the question is worth in a file's path, against one that the file is full of."""

NAMED, TRACED = 0.5, 0.5
"""Votes for a definition that the question names, or that stands in its stack trace; the best lexical match has 1."""
FILE_LEXICAL, FILE_NAMED, FILE_MODULE, FILE_TRACED = 0.6, 0.5, 0.3, 0.5
"""The same for a file; the file with the best definitions has 1."""
FROM_FILE = 0.8
"""What a definition has of the rank of its file."""
DEEPER = 0.5
"""What each further definition adds to its file, against the one before it."""
BEST = 400
"""Definitions that are looked at closely."""

NAMESAKES = 15
"""A name that more definitions have votes for none."""

OUTWARD = 0.7
"""What a frame is worth against the one that it called."""

DEMOTED: Mapping[Role, float] = {
    "test": 0.4,
    "docs": 0.7,
    "example": 0.7,
    "generated": 0.5,
    "vendored": 0.4,
    "config": 0.8,
    "data": 0.6,
}
ASKED_FOR: Mapping[Role, tuple[str, ...]] = {
    "test": ("test", "fixtur", "pytest", "spec"),
    "docs": ("doc", "document", "readm", "changelog", "guid"),
    "example": ("exampl", "demo", "tutori", "sampl"),
    "generated": ("generat", "protobuf"),
    "vendored": ("vendor",),
    "config": ("config", "configur", "set", "ci", "workflow", "depend", "packag"),
    "data": ("data", "json", "csv"),
}
"""Words (as index terms) by which a question asks for such files."""

RECENT = 0.05
"""What the history can add: files that change often, and lately, are where the next change is."""


@dataclass(frozen=True, slots=True)
class FileHit:
    """A file and how well it answers, 0..1."""

    file: File
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


def search(index: CodeIndex, question: Question, files: int = 50, definitions: int = 100) -> Hits:
    """The files and definitions that answer a question."""
    table = index.table()
    if not table.files:
        return Hits()
    terms = _telling(index, question, table)
    lexical, file_lexical, reach = _scores(index, terms, table)
    named = _named(index, question, table)
    traced, traced_files = _traced(index, question.frames, table)
    best = max(lexical.values(), default=0.0) or 1.0
    ranks = {
        id: lexical.get(id, 0.0) / best + NAMED * named.get(id, 0.0) + TRACED * traced.get(id, 0.0)
        for id in {*_top(lexical, BEST), *named, *traced}
    }
    votes = _file_votes(question, table)
    best_file = max(file_lexical.values(), default=0.0) or 1.0
    file_lexical = {id: score / best_file for id, score in file_lexical.items()}
    by_file = _by_file(ranks, table, question, index, file_lexical, votes, traced_files)
    strength = _strength(
        best if lexical else 0.0, reach, [*named.values(), *traced.values(), *(sum(v) for v in votes.values())]
    )
    top_file = max(by_file.values(), default=0.0) or 1.0
    final = {
        id: (rank + FROM_FILE * by_file.get(table.documents.owner[id], 0.0) / top_file) * _factor(table, id, question)
        for id, rank in ranks.items()
    }
    top = max(final.values(), default=0.0) or 1.0
    chosen = _top(final, definitions)
    symbols = index.symbols(chosen)
    hits = tuple(
        Hit(
            symbols[id],
            round(strength * final[id] / top, 4),
            _features(lexical.get(id, 0.0) / best, named.get(id, 0.0), traced.get(id, 0.0)),
        )
        for id in chosen
        if id in symbols
    )
    file_hits = tuple(
        FileHit(
            table.files[id],
            round(strength * by_file[id] / top_file, 4),
            _features(file_lexical.get(id, 0.0), max(votes.get(id, (0.0, 0.0))), traced_files.get(id, 0.0)),
        )
        for id in _top(by_file, files)
    )
    return Hits(file_hits, hits)


# --- words ---------------------------------------------------------------------------------------------------------


def _telling(index: CodeIndex, question: Question, table: Table) -> dict[str, float]:
    """The terms of the question that tell the most here, with their importance."""
    if len(question.terms) <= TERMS:
        return dict(question.terms)
    lists = index.lists(Space.WORDS, question.terms)
    worth = {
        term: weight * postings.rarity(postings.length_of(lists[term]), table.documents.number)
        for term, weight in question.terms.items()
        if term in lists
    }
    return {term: question.terms[term] for term in _top(worth, TERMS)}


def _scores(index: CodeIndex, terms: Mapping[str, float], table: Table) -> tuple[dict[int, float], dict[int, float], float]:
    """The lexical scores of definitions and files, and what a definition would score that answers in full."""
    lists = index.lists(Space.WORDS, terms)
    definitions, files = postings.scores(lists, terms, table.documents)
    in_paths: dict[str, list[int]] = {}
    for id, spoken in table.path_terms.items():
        for term in spoken & terms.keys():
            in_paths.setdefault(term, []).append(id)
    for term, ids in in_paths.items():
        value = PATH * terms[term] * postings.rarity(len(ids), len(table.files))
        for id in ids:
            files[id] = files.get(id, 0.0) + value
    number = table.documents.number
    worth = [terms[term] * postings.rarity(postings.length_of(lists.get(term, ())), number) for term in terms]
    if len(terms) > TELLING:  # of a long report, only what the code speaks of at all
        worth = [value for value, term in zip(worth, terms, strict=True) if term in lists]
    return definitions, files, FULL * sum(sorted(worth, reverse=True)[:TELLING])


# --- votes ---------------------------------------------------------------------------------------------------------


def _named(index: CodeIndex, question: Question, table: Table) -> dict[int, float]:
    """Definitions that the question names; a name that several have is shared by them."""
    by_name = index.named({name.rpartition(".")[2] for name in question.symbols})
    votes: dict[int, float] = {}
    for written, worth in question.symbols.items():
        meant = _meant(written.split("."), by_name.get(written.rpartition(".")[2], []))
        if meant and len(meant) <= NAMESAKES:
            for symbol in meant:
                votes[symbol.id] = max(votes.get(symbol.id, 0.0), worth / len(meant) ** 0.5)
    return votes


def _meant(parts: Sequence[str], symbols: Sequence[Symbol]) -> Sequence[Symbol]:
    """Which of several namesakes `Cart.add` or `cart.add` means: the one in that class, else in that module."""
    if len(parts) < 2:
        return symbols
    ending = ".".join(parts[-2:])
    inside = [symbol for symbol in symbols if symbol.qualified == ending or symbol.qualified.endswith(f".{ending}")]
    return inside or [s for s in symbols if parts[-2] in s.path.rpartition(".")[0].split("/")] or symbols


def _file_votes(question: Question, table: Table) -> dict[int, tuple[float, float]]:
    """Files that the question names by their path, and modules that it names with dots."""
    votes: dict[int, tuple[float, float]] = {}
    by_name: dict[str, list[File]] = {}
    for file in table.files.values():
        by_name.setdefault(file.path.rpartition("/")[2], []).append(file)
    for written in question.paths:
        for file, share in _closest(written, by_name):
            votes[file.id] = (max(votes.get(file.id, (0.0, 0.0))[0], share), 0.0)
    for written, worth in question.symbols.items():
        parts = written.split(".")
        for number in range(len(parts), 1, -1) if len(parts) > 1 else ():
            files = _modules("/".join(parts[:number]), table)
            for file in files:
                path, module = votes.get(file.id, (0.0, 0.0))
                votes[file.id] = (path, max(module, worth / len(files)))
            if files:
                break
    return votes


def _modules(stem: str, table: Table) -> list[File]:
    """Files whose path without the suffix ends so: `shop/cart` is `src/shop/cart.py`."""
    last = stem.rpartition("/")[2]
    found = []
    for file in table.files.values():
        path = file.path.rpartition(".")[0].removesuffix("/__init__").removesuffix("/index")
        if path.endswith(last) and (path == stem or path.endswith(f"/{stem}")):
            found.append(file)
    return found


def _closest(written: str, by_name: Mapping[str, Sequence[File]], least: int = 1) -> list[tuple[File, float]]:
    """The files whose path ends most like the one that is written, where they are few, each with its share of the vote."""
    files = by_name.get(written.rpartition("/")[2], ())
    shared = {file.id: _shared_end(written, file.path) for file in files}
    most = max(shared.values(), default=0)
    best = [file for file in files if shared[file.id] == most and most >= min(least, file.path.count("/") + 1)]
    return [(file, 1 / len(best)) for file in best] if len(best) <= 5 else []


def _shared_end(one: str, other: str) -> int:
    """How many parts two paths have in common from their end."""
    number = 0
    for a, b in zip(reversed(one.strip("/").split("/")), reversed(other.split("/")), strict=False):
        if a != b:
            break
        number += 1
    return number


def _traced(index: CodeIndex, frames: Sequence[Frame], table: Table) -> tuple[dict[int, float], dict[int, float]]:
    """Definitions and files of stack traces: the innermost frame of ours counts most."""
    definitions: dict[int, float] = {}
    files: dict[int, float] = {}
    by_name: dict[str, list[File]] = {}
    for file in table.files.values() if frames else ():
        by_name.setdefault(file.path.rpartition("/")[2], []).append(file)
    worth = 1.0
    for frame in reversed(frames):
        found = _closest(frame.path, by_name, least=2)[:2]
        for file, _ in found:
            files[file.id] = max(files.get(file.id, 0.0), worth)
            for symbol in _at(index, file, frame):
                definitions[symbol.id] = max(definitions.get(symbol.id, 0.0), worth)
        if found:
            worth *= OUTWARD
    return definitions, files


def _at(index: CodeIndex, file: File, frame: Frame) -> list[Symbol]:
    """The definition that a frame names; by its line only where there is no name, because lines move."""
    symbols = [symbol for symbol in index.in_file(file.path) if symbol.kind != MODULE]
    if frame.function:
        return [symbol for symbol in symbols if symbol.name == frame.function.rpartition(".")[2]]
    around = [symbol for symbol in symbols if symbol.line <= frame.line <= symbol.end]
    return around[-1:]


# --- together ------------------------------------------------------------------------------------------------------


def _by_file(
    ranks: Mapping[int, float],
    table: Table,
    question: Question,
    index: CodeIndex,
    lexical: Mapping[int, float],
    votes: Mapping[int, tuple[float, float]],
    traced: Mapping[int, float],
) -> dict[int, float]:
    """The rank of each file: its best definitions, its own words, and who votes for it."""
    depth: dict[int, list[float]] = {}
    for id in _top(ranks, BEST):
        depth.setdefault(table.documents.owner[id], []).append(ranks[id])
    held = {file: sum(rank * DEEPER**n for n, rank in enumerate(found[:6])) for file, found in depth.items()}
    best = max(held.values(), default=0.0) or 1.0
    past = index.history()
    found = {}
    for id in {*held, *lexical, *votes, *traced}:
        path, module = votes.get(id, (0.0, 0.0))
        rank = held.get(id, 0.0) / best + FILE_LEXICAL * lexical.get(id, 0.0)
        rank += FILE_NAMED * path + FILE_MODULE * module + FILE_TRACED * traced.get(id, 0.0)
        file = table.files[id]
        asked = path > 0 or id in traced
        found[id] = rank * (1.0 if asked else demotion(file.role, question)) * (1 + RECENT * past.warmth(file.path))
    return found


def _factor(table: Table, id: int, question: Question) -> float:
    return demotion(table.files[table.documents.owner[id]].role, question)


def demotion(role: Role, question: Question) -> float:
    """What is left of the rank of a file of this role: all where the question asks for such files."""
    if role == "source" or any(word in question.terms for word in ASKED_FOR.get(role, ())):
        return 1.0
    return DEMOTED[role]


def _strength(best: float, reach: float, votes: Iterable[float]) -> float:
    """How good the best answer is in itself: a question about something else finds nothing."""
    return min(1.0, max(best / reach if reach else 0.0, max(votes, default=0.0)))


def _features(lexical: float, named: float, traced: float) -> dict[str, float]:
    every = {"lexical": lexical, "named": named, "traced": traced}
    return {name: round(min(1.0, value), 4) for name, value in every.items() if value}


def _top(scores: Mapping, number: int) -> list:  # type: ignore[type-arg]
    """The keys of the best, best first; equals in the order of their keys."""
    return nsmallest(number, scores, key=lambda key: (-scores[key], key))
