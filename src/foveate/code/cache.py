"""What is held in memory of the index: the table of its files, and what was looked up.

Questions of one session ask for the same neighbourhoods, so each answer is read from the file of the index only once. All
of it is of one generation: with the next one it is forgotten.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import lru_cache, wraps
from typing import Any, NamedTuple, Protocol, TypeVar

from foveate.code import postings
from foveate.code.database import Database
from foveate.code.graph import Symbol
from foveate.code.indexing import collector_off
from foveate.code.model import Role
from foveate.code.postings import Documents
from foveate.text import analysis

REMEMBERED = 200_000
"""Answers that are held between two questions, each with what is in it: definitions, names, numbers; about 50 MB."""

NAMESAKES = 40
"""Definitions of one name beyond which the name tells nothing: `get`, `__init__`."""


class File(NamedTuple):
    """A file as the index knows it. A tuple, because each generation makes one of every file."""

    id: int
    path: str
    role: Role
    language: str
    lines: int
    hash: str
    size: int
    clean: bool = False
    """Whether nothing of it had to be replaced, by our own rules."""


@dataclass(frozen=True, slots=True)
class Table:
    """What a search needs of the whole repository, read once for each generation of the index."""

    files: Mapping[int, File]
    by_path: Mapping[str, File]
    documents: Documents
    in_paths: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Terms -> the files with such a word in their path."""
    gone: Mapping[int, frozenset[int]] = field(default_factory=dict)
    """Of each segment, the definitions that are no longer there."""
    crowded: frozenset[str] = frozenset()
    """Names that very many definitions have."""


@dataclass(slots=True)
class Memory:
    """What is known of one generation of the index."""

    generation: str = ""
    version: tuple[int, int] = (0, 0)
    """Of the file, when it was last seen to hold this generation."""
    table: Table | None = None
    central: tuple[int, list[tuple[Symbol, float]]] | None = None
    """The most used definitions, and how many of them were asked for."""
    answers: dict[str, dict[Any, Any]] = field(default_factory=dict)
    """Questions -> keys -> what was found; None where there is no such thing."""
    held: int = 0

    @property
    def is_full(self) -> bool:
        return self.held > REMEMBERED

    def emptied(self) -> Memory:
        """One without the answers. What is known of the whole repository does not grow, and stays."""
        return replace(self, answers={}, held=0)

    def answers_to(self, question: str) -> dict[Any, Any]:
        return self.answers.setdefault(question, {})

    def keep(self, question: str, keys: Iterable[Any], found: Mapping[Any, Any]) -> None:
        answers = self.answers_to(question)
        for key in keys:
            answers[key] = answer = found.get(key)
            self.held += 1 + (len(answer) if isinstance(answer, Collection) else 0)


class Remembering(Protocol):
    """An index that has a memory."""

    def memory(self) -> Memory:
        """Of the index as it is now."""
        ...

    def moment(self) -> AbstractContextManager[None]:
        """What is asked inside is of one generation, and no other thread asks meanwhile."""
        ...


_Index = TypeVar("_Index", bound=Remembering)
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def remembered(
    look_up: Callable[[_Index, Sequence[_Key]], Mapping[_Key, _Value]],
) -> Callable[[_Index, Iterable[_Key]], dict[_Key, _Value]]:
    """Make a question of a method that looks keys up: it is called only for those that are not in memory.

    The answers are of one generation, in order of the keys; what there is not is left out.
    """
    question = look_up.__name__

    @wraps(look_up)
    def ask(index: _Index, keys: Iterable[_Key]) -> dict[_Key, _Value]:
        wanted = list(dict.fromkeys(keys))
        answers = index.memory().answers_to(question)
        if [key for key in wanted if key not in answers]:
            with index.moment():
                memory = index.memory()
                answers = memory.answers_to(question)
                new = [key for key in wanted if key not in answers]
                memory.keep(question, new, look_up(index, new))
        return {key: found for key in wanted if (found := answers[key]) is not None}

    return ask


# --- the table ---------------------------------------------------------------------------------------------------------


@collector_off()
def read_table(db: Database) -> Table:
    """The table of the index as it is now."""
    clean = "redacted = ''" if db.is_ours else "0"
    rows = db.rows(f"SELECT id, path, role, language, lines, hash, size, {clean} FROM files ORDER BY path")
    files = {row[0]: File._make(row) for row in rows}
    in_paths: defaultdict[str, array[int]] = defaultdict(lambda: array("I"))
    for file in files.values():
        for term in _path_terms(file.path):
            in_paths[term].append(file.id)
    documents, gone = _documents(db, files)
    crowded = db.rows("SELECT name FROM definitions GROUP BY name HAVING count(*) > ?", (NAMESAKES,))
    by_path = {file.path: file for file in files.values()}
    return Table(files, by_path, documents, dict(in_paths), gone, frozenset(name for (name,) in crowded))


def _documents(db: Database, files: Iterable[int]) -> tuple[Documents, dict[int, frozenset[int]]]:
    """What scoring needs to know of the definitions, and those of each segment that belong to no file any more."""
    size = 1 + int(db.meta("definition") or 0)
    owner, half, words = [0] * size, [0.0] * size, dict.fromkeys(files, 0)
    gone: dict[int, frozenset[int]] = {}
    for segment, *columns in db.rows("SELECT id, ids, files, lengths FROM segments"):
        dead = []
        for id, file, length in zip(*map(postings.ints, columns), strict=True):
            if file in words:
                owner[id] = file
                half[id] = postings.level(length)
                words[file] += length
            else:
                dead.append(id)
        if dead:
            gone[segment] = frozenset(dead)
    norm = {file: postings.file_level(length) for file, length in words.items()}
    return Documents(owner, half, norm, size - owner.count(0)), gone


def _path_terms(path: str) -> frozenset[str]:
    """The words of a path without its suffix. Folders repeat from file to file."""
    folder, _, name = path.rpartition("/")
    return _part_terms(folder) | _part_terms(name.rpartition(".")[0] or name)


@lru_cache(maxsize=100_000)
def _part_terms(part: str) -> frozenset[str]:
    return frozenset(analysis.terms(part.replace("/", " "))) if part else frozenset()
