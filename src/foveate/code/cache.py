"""Caches one generation of the index in memory: the table of its files, and the results of lookups.

The questions of one session touch the same parts of the index, so each result is read from the file only once. Readers of
the same generation share a cache; the next generation starts with an empty one.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, wraps
from threading import Lock
from typing import Any, NamedTuple, Protocol, TypeVar

from foveate.code import postings
from foveate.code.database import ReadTransaction
from foveate.code.indexing import gc_disabled
from foveate.code.model import Role, Symbol
from foveate.code.postings import DocumentStats
from foveate.text import analysis

MAX_CACHED_VALUES = 200_000
"""Results that are kept, each with what is in it: definitions, names, numbers; about 50 MB."""

MAX_SAME_NAME = 40
"""Definitions of one name beyond which the name tells nothing: `get`, `__init__`."""


class IndexedFile(NamedTuple):
    """A file as the index knows it. A tuple, because each generation makes one for every file."""

    id: int
    path: str
    role: Role
    language: str
    lines: int
    hash: str
    size: int
    is_unmodified: bool = False
    """Whether nothing of it had to be replaced, by the rules of this process."""


@dataclass(frozen=True, slots=True)
class FileTable:
    """The facts about the whole repository that a search needs, read once for each generation of the index."""

    files: Mapping[int, IndexedFile]
    by_path: Mapping[str, IndexedFile]
    documents: DocumentStats
    files_by_path_term: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Terms -> the files with such a word in their path."""
    removed_ids: Mapping[int, frozenset[int]] = field(default_factory=dict)
    """The definitions of each segment that no longer exist."""
    overused_names: frozenset[str] = frozenset()
    """Names that very many definitions share."""


@dataclass(slots=True)
class IndexCache:
    """Cached facts about one generation of the index."""

    generation: str = ""
    table: FileTable | None = None
    most_referenced: tuple[int, list[tuple[Symbol, float]]] | None = None
    """The limit that was asked for, and the definitions."""
    results: dict[str, dict[Any, Any]] = field(default_factory=dict)
    """Name of the lookup -> keys -> results; None if there is no result."""
    size: int = 0
    lock: Lock = field(default_factory=Lock)
    """Held while the table is read, so that threads do not read it twice."""

    def put(self, lookup: str, keys: Iterable[Any], found: Mapping[Any, Any]) -> None:
        """Keep results. A full cache begins anew; what is known of the whole repository does not grow, and stays."""
        results = self.results.setdefault(lookup, {})
        for key in keys:
            results[key] = result = found.get(key)
            self.size += 1 + (len(result) if isinstance(result, Collection) else 0)
        if self.size > MAX_CACHED_VALUES:
            self.results, self.size = {}, 0


class HasCache(Protocol):
    """A reader of the index that caches its lookups."""

    @property
    def cache(self) -> IndexCache: ...


_Reader = TypeVar("_Reader", bound=HasCache)
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def cached_lookup(
    look_up: Callable[[_Reader, Sequence[_Key]], Mapping[_Key, _Value]],
) -> Callable[[_Reader, Iterable[_Key]], dict[_Key, _Value]]:
    """Wrap a method that looks keys up, so that it is called only for keys that are not cached.

    Results come in the order of the keys; keys without a result are left out.
    """
    name = look_up.__name__

    @wraps(look_up)
    def lookup(reader: _Reader, keys: Iterable[_Key]) -> dict[_Key, _Value]:
        wanted = list(dict.fromkeys(keys))
        cached = reader.cache.results.get(name, {})
        missing = [key for key in wanted if key not in cached]
        found = look_up(reader, missing) if missing else {}
        results = {key: found.get(key) if key in found else cached.get(key) for key in wanted}
        if missing:
            reader.cache.put(name, missing, found)
        return {key: result for key, result in results.items() if result is not None}

    return lookup


# --- the table ---------------------------------------------------------------------------------------------------------


@gc_disabled()
def read_table(index: ReadTransaction) -> FileTable:
    """Read the table of all files."""
    clean = "redacted = ''" if index.matches_settings else "0"
    rows = index.rows(f"SELECT id, path, role, language, lines, hash, size, {clean} FROM files ORDER BY path")
    files = {row[0]: IndexedFile._make(row) for row in rows}
    by_term: defaultdict[str, array[int]] = defaultdict(lambda: array("I"))
    for file in files.values():
        for term in _path_terms(file.path):
            by_term[term].append(file.id)
    documents, removed = _documents(index, files)
    overused = index.rows("SELECT name FROM definitions GROUP BY name HAVING count(*) > ?", (MAX_SAME_NAME,))
    by_path = {file.path: file for file in files.values()}
    return FileTable(files, by_path, documents, dict(by_term), removed, frozenset(name for (name,) in overused))


def _documents(index: ReadTransaction, files: Iterable[int]) -> tuple[DocumentStats, dict[int, frozenset[int]]]:
    """Return what scoring needs of the definitions, and the definitions of each segment whose file is gone."""
    size = 1 + int(index.meta("definition") or 0)
    owner, half, words = [0] * size, [0.0] * size, dict.fromkeys(files, 0)
    removed: dict[int, frozenset[int]] = {}
    for segment, *columns in index.rows("SELECT id, ids, files, lengths FROM segments"):
        dead = []
        for id, file, length in zip(*map(postings.ints, columns), strict=True):
            if file in words:
                owner[id] = file
                half[id] = postings.half_saturation(length)
                words[file] += length
            else:
                dead.append(id)
        if dead:
            removed[segment] = frozenset(dead)
    norm = {file: postings.file_half_saturation(length) for file, length in words.items()}
    return DocumentStats(owner, half, norm, size - owner.count(0)), removed


def _path_terms(path: str) -> frozenset[str]:
    """Return the terms of a path without its suffix. Folders repeat from file to file, so they are cached."""
    folder, _, name = path.rpartition("/")
    return _part_terms(folder) | _part_terms(name.rpartition(".")[0] or name)


@lru_cache(maxsize=100_000)
def _part_terms(part: str) -> frozenset[str]:
    return frozenset(analysis.terms(part.replace("/", " "))) if part else frozenset()
