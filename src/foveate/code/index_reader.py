"""Reads the code index in one state: files, definitions, names, references, posting lists.

A reader is bound to one generation for as long as it is open, while others write. The questions of one session touch the
same parts of the index, so readers of one generation share a cache: the table of the files, and the results of lookups.
"""

from __future__ import annotations

import json
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, wraps
from itertools import chain
from threading import Lock
from typing import Any, NamedTuple, TypeVar

from foveate.code import postings
from foveate.code.database import ReadTransaction
from foveate.code.indexing import gc_disabled
from foveate.code.model import MODULE, Exclusion, Role, Symbol
from foveate.code.postings import DocumentStats, PostingKind
from foveate.text import analysis

MAX_REFERENCES_PER_NAME = 400
"""References to one name that are looked up. A name with more tells nothing."""

_SYMBOL_SQL = "SELECT id, file, name, qualified, kind, line, last, signature, doc, parent, nth FROM definitions"
_BY_SIZE_SQL = """SELECT d.id FROM definitions d JOIN files f ON f.id = d.file WHERE f.role = 'source' AND d.name != ''
ORDER BY d.last - d.line DESC, f.path, d.line LIMIT ?"""

# --- the cache -----------------------------------------------------------------------------------------------------

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


_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def cached_lookup(
    look_up: Callable[[IndexReader, Sequence[_Key]], Mapping[_Key, _Value]],
) -> Callable[[IndexReader, Iterable[_Key]], dict[_Key, _Value]]:
    """Wrap a method that looks keys up, so that it is called only for keys that are not cached.

    Results come in the order of the keys; keys without a result are left out.
    """
    name = look_up.__name__

    @wraps(look_up)
    def lookup(reader: IndexReader, keys: Iterable[_Key]) -> dict[_Key, _Value]:
        wanted = list(dict.fromkeys(keys))
        cached = reader.cache.results.get(name, {})
        missing = [key for key in wanted if key not in cached]
        found = look_up(reader, missing) if missing else {}
        results = {key: found.get(key) if key in found else cached.get(key) for key in wanted}
        if missing:
            reader.cache.put(name, missing, found)
        return {key: result for key, result in results.items() if result is not None}

    return lookup


# --- the reader ----------------------------------------------------------------------------------------------------


class IndexReader:
    """The index in one state. Close it, or let it go: an open one keeps SQLite from shortening its log."""

    def __init__(self, transaction: ReadTransaction, cache: IndexCache) -> None:
        self._db = transaction
        self.cache = cache

    def __enter__(self) -> IndexReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._db.close()

    @property
    def generation(self) -> str:
        """Identifies the state of the index. It changes whenever the content does."""
        return self._db.generation

    def file_table(self) -> FileTable:
        """Return the files, and what scoring needs to know of the definitions."""
        cache = self.cache
        if cache.table is None:
            with cache.lock:
                if cache.table is None:
                    cache.table = read_table(self._db)
        return cache.table

    def exclusions(self) -> list[Exclusion]:
        """Return the paths that are not indexed, each with the reason."""
        return [Exclusion(*row) for row in self._db.rows("SELECT path, reason FROM aside ORDER BY path")]

    def stats(self) -> dict[str, Any]:
        """Return counts to show to people."""
        files, lines, broken, redacted = self._db.rows(
            "SELECT count(*), coalesce(sum(lines), 0), coalesce(sum(broken), 0), coalesce(sum(redacted != ''), 0) FROM files"
        )[0]
        grouped = "SELECT {0}, count(*) FROM {1} GROUP BY 1 ORDER BY 2 DESC, 1"
        return {
            "files": files,
            "definitions": self._db.rows("SELECT count(*) FROM definitions WHERE kind != ?", (MODULE,))[0][0],
            "lines": lines,
            "broken": broken,
            "redacted": redacted,
            "languages": dict(self._db.rows(grouped.format("language", "files"))),
            "roles": dict(self._db.rows(grouped.format("role", "files"))),
            "aside": _count_by_reason(self.exclusions()),
        }

    def get_derived(self, name: str) -> Any:
        """Return a value that was derived from the files and stored in the index, or None."""
        return self._db.meta(f"kept.{name}")

    # --- posting lists ---------------------------------------------------------------------------------------------

    def posting_lists(self, space: PostingKind, terms: Iterable[str]) -> dict[str, list[bytes]]:
        """Return the posting lists of terms, without removed definitions: past edits must not change how rare a term is."""
        found: dict[str, list[bytes]] = {}
        sql = "SELECT term, segment, list FROM postings WHERE space = {} AND term IN ({}) ORDER BY term, segment"
        removed = self.file_table().removed_ids
        for marks, batch in _batches(terms):
            for term, segment, blob in self._db.rows(sql.format(int(space), marks), batch):
                if left := postings.remove_ids(blob, removed.get(segment, frozenset())):
                    found.setdefault(term, []).append(left)
        return found

    # --- definitions -----------------------------------------------------------------------------------------------

    @cached_lookup
    def symbols(self, ids: Sequence[int]) -> dict[int, Symbol]:
        """Return definitions by id."""
        files = self.file_table().files
        found: dict[int, Symbol] = {}
        for marks, batch in _batches(ids):
            for id, number, name, qualified, kind, line, end, head, doc, parent, nth in self._db.rows(
                f"{_SYMBOL_SQL} WHERE id IN ({marks})", batch
            ):
                file = files[number]
                found[id] = Symbol(id, file.path, name, qualified, kind, line, end, head, doc, parent, file.role, nth)
        return found

    @cached_lookup
    def symbols_by_name(self, names: Sequence[str]) -> dict[str, list[Symbol]]:
        """Return definitions by their bare names. A name that very many definitions share has none."""
        overused = self.file_table().overused_names
        return self._symbols_by("name", (name for name in names if name not in overused))

    def symbols_in_file(self, path: str) -> list[Symbol]:
        """Return the definitions of a file by line. The first stands for everything outside of them."""
        return self._symbols_in_files([path]).get(path, [])

    @cached_lookup
    def _symbols_in_files(self, paths: Sequence[str]) -> dict[str, list[Symbol]]:
        by_path = self.file_table().by_path
        numbers = {by_path[path].id: path for path in paths if path in by_path}
        found = self._symbols_by("file", numbers)
        return {
            numbers[number]: sorted(symbols, key=lambda symbol: (symbol.kind != MODULE, symbol.start_line, -symbol.end_line))
            for number, symbols in found.items()
        }

    def _symbols_by(self, column: str, values: Iterable[Any]) -> dict[Any, list[Symbol]]:
        """Return definitions by the value of a column, in order of their places."""
        ids: defaultdict[Any, list[int]] = defaultdict(list)
        for marks, batch in _batches(values):
            for value, id in self._db.rows(f"SELECT {column}, id FROM definitions WHERE {column} IN ({marks})", batch):
                ids[value].append(id)
        symbols = self.symbols(chain.from_iterable(ids.values()))
        return {
            value: sorted((symbols[id] for id in group), key=lambda symbol: (symbol.path, symbol.start_line, symbol.id))
            for value, group in ids.items()
        }

    @cached_lookup
    def references_from(self, ids: Sequence[int]) -> dict[int, Mapping[str, int]]:
        """Return the names that definitions refer to, each with how often."""
        found: dict[int, Mapping[str, int]] = {}
        for marks, batch in _batches(ids):
            for id, references in self._db.rows(f"SELECT id, uses FROM definitions WHERE id IN ({marks})", batch):
                pairs = (name.rpartition("*") for name in references.split("\n") if name)
                found[id] = {name: int(count) for name, _, count in pairs}
        return found

    @cached_lookup
    def references_to(self, names: Sequence[str]) -> dict[str, Mapping[int, int]]:
        """Return the definitions that refer to names, each with how often. A name that very many refer to has none."""
        lists = self.posting_lists(PostingKind.USES, names)
        return {
            name: dict(postings.pairs(blobs))
            for name, blobs in lists.items()
            if postings.count_postings(blobs) <= MAX_REFERENCES_PER_NAME
        }

    def imports(self, path: str) -> tuple[str, ...]:
        """Return what a file imports, as written."""
        return self._imports([path]).get(path, ())

    @cached_lookup
    def _imports(self, paths: Sequence[str]) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for marks, batch in _batches(paths):
            rows = self._db.rows(f"SELECT path, imports FROM files WHERE path IN ({marks})", batch)
            found.update((path, tuple(json.loads(imports))) for path, imports in rows)
        return found

    def most_referenced(self, limit: int) -> list[tuple[Symbol, float]]:
        """Return the definitions that the most other files refer to, shared among definitions of the same name."""
        known = self.cache.most_referenced
        if known is None or known[0] != limit:
            self.cache.most_referenced = known = (limit, self._most_referenced(limit))
        return known[1]

    def _most_referenced(self, limit: int) -> list[tuple[Symbol, float]]:
        rows = self._db.rows(
            "SELECT term, sum(length(list)) FROM postings WHERE space = ? GROUP BY term ORDER BY 2 DESC, 1 LIMIT ?",
            (int(PostingKind.USES), 4 * limit),
        )
        names = [name for name, _ in rows]
        by_name, lists, table = self.symbols_by_name(names), self.posting_lists(PostingKind.USES, names), self.file_table()
        found = []
        for name in names:
            symbols = [symbol for symbol in by_name.get(name, ()) if symbol.role == "source"]
            if 0 < len(symbols) <= 3:
                count = _count_external_references(lists.get(name, ()), symbols, table)
                found += [(symbol, count / len(symbols)) for symbol in symbols if count]
        if not found:  # in a repository of one file, its largest definitions say the most
            largest = [id for (id,) in self._db.rows(_BY_SIZE_SQL, (limit,))]
            found = [(symbol, float(symbol.end_line - symbol.start_line + 1)) for symbol in self.symbols(largest).values()]
        return sorted(found, key=lambda pair: (-pair[1], pair[0].path, pair[0].start_line))[:limit]


_SUMMARY_REASON = re.compile(r"(.*), ([\d,]+) files?")
"""The reason of a folder, which stands for all of its files: `vendored, 1,204 files`."""


def _count_by_reason(exclusions: Iterable[Exclusion]) -> dict[str, int]:
    """Return how many files are excluded for each reason, the most first."""
    counts: Counter[str] = Counter()
    for exclusion in exclusions:
        folder = _SUMMARY_REASON.fullmatch(exclusion.reason)
        counts[folder[1] if folder else exclusion.reason] += int(folder[2].replace(",", "")) if folder else 1
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


_BATCH_SIZES = (1, 8, 32, 128, 512)


def _batches(values: Iterable[Any]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield values in groups that one statement can take, each with its question marks.

    The last value is repeated up to the next of a few sizes, so that SQLite meets statements that it has prepared before.
    """
    every = tuple(dict.fromkeys(values))
    for at in range(0, len(every), _BATCH_SIZES[-1]):
        batch = every[at : at + _BATCH_SIZES[-1]]
        size = next(size for size in _BATCH_SIZES if size >= len(batch))
        yield ",".join("?" * size), batch + batch[-1:] * (size - len(batch))


def _count_external_references(blobs: Iterable[bytes], symbols: Sequence[Symbol], table: FileTable) -> int:
    """Return how many other files refer to a name. A source file counts as four tests."""
    own = {table.by_path[symbol.path].id for symbol in symbols}
    users = {table.documents.file_ids[id] for id, _ in postings.pairs(blobs)} - own - {0}
    return sum(4 if table.files[file].role == "source" else 1 for file in users)


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
