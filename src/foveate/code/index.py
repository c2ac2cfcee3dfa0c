"""The derived index of a repository's code, as it is asked: files, definitions, names, posting lists.

It holds where things stand and no text of the files. `refresh` brings it up to date: it looks at size and time of every
file, reads those that differ and parses those whose content is new.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foveate import lexical
from foveate.code import postings
from foveate.code.chunk import MODULE
from foveate.code.database import Database
from foveate.code.graph import Symbol
from foveate.code.history import History, loads
from foveate.code.model import Aside, Role
from foveate.code.postings import Documents, Space
from foveate.code.taking import Progress, Refreshed, take_in
from foveate.code.texts import Text, read
from foveate.code.walk import MAX_FILES, matcher, walk
from foveate.errors import StoreError
from foveate.state.redact import Allow

NAMES = 400
"""Users of a name that are looked up: a name that more definitions use tells nothing."""

PATIENCE = 50
"""Milliseconds to wait for others where the work can be done again."""

_SYMBOL = """SELECT d.id, f.path, d.name, d.qualified, d.kind, d.line, d.last, d.signature, d.doc, d.parent, f.role, d.nth
FROM definitions d JOIN files f ON f.id = d.file"""


@dataclass(frozen=True, slots=True)
class File:
    """A file as the index knows it."""

    id: int
    path: str
    role: Role
    language: str
    lines: int
    hash: str
    size: int


@dataclass(frozen=True, slots=True)
class Table:
    """What a search needs of the whole repository, read once for each generation of the index."""

    files: Mapping[int, File]
    by_path: Mapping[str, File]
    documents: Documents
    path_terms: Mapping[int, frozenset[str]] = field(default_factory=dict)


class CodeIndex:
    """The index of one folder. Its file may be deleted at any time; `refresh` builds it again."""

    def __init__(
        self,
        root: Path,
        file: Path | str,
        *,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        max_files: int = MAX_FILES,
        allow: Allow | None = None,
    ) -> None:
        self.root = root
        self._include, self._exclude, self._max_files = tuple(include), tuple(exclude), max_files
        self._asked = matcher(include)
        self._allow = allow
        self._db = Database(root, file)
        self._table: tuple[str, Table] | None = None
        self._central: tuple[str, list[tuple[Symbol, float]]] | None = None
        self._past: tuple[str, History] | None = None

    def refresh(self, progress: Progress | None = None) -> Refreshed:
        """Take in what changed in the folder since the last time."""
        with self._db.lock:
            walked = walk(self.root, self._include, self._exclude, self._max_files)
            return take_in(self._db, walked, self.read, progress)

    def read(self, path: str) -> Text | Aside:
        """The text of a file as it is now, as it may be shown."""
        return read(self.root, path, self._allow, self._asked is not None and self._asked(path))

    def close(self) -> None:
        self._db.close()

    # --- the whole -------------------------------------------------------------------------------------------------

    @property
    def generation(self) -> str:
        """Changes whenever the index does."""
        return f"{self._db.meta('made')}.{self._db.meta('generation')}"

    def table(self) -> Table:
        """The files, and what scoring needs to know of the definitions."""
        with self._db.lock:
            generation = self.generation
            if self._table is None or self._table[0] != generation:
                self._table = (generation, self._read_table())
            return self._table[1]

    def _read_table(self) -> Table:
        rows = self._db.rows("SELECT id, path, role, language, lines, hash, size FROM files ORDER BY path")
        files = {file.id: file for file in (File(*row) for row in rows)}
        size = 1 + int(self._db.meta("definition") or 0)
        owner, half, words = [0] * size, [0.0] * size, dict.fromkeys(files, 0)
        for columns in self._db.rows("SELECT ids, files, lengths FROM segments"):
            for id, file, length in zip(*map(postings.ints, columns), strict=True):
                if file in words:
                    owner[id] = file
                    half[id] = postings.level(length)
                    words[file] += length
        documents = Documents(owner, half, words, size - owner.count(0))
        path_terms = {file.id: frozenset(lexical.terms(_spoken(file.path))) for file in files.values()}
        return Table(files, {file.path: file for file in files.values()}, documents, path_terms)

    def history(self) -> History:
        """What the latest commits say about the files."""
        head = str(self._db.meta("head"))
        if self._past is None or self._past[0] != head:
            packed = self._db.meta("history")
            self._past = (head, loads(packed) if packed else History())
        return self._past[1]

    def asides(self) -> list[Aside]:
        """What is not indexed, and why."""
        return [Aside(*row) for row in self._db.rows("SELECT path, reason FROM aside ORDER BY path")]

    def stats(self) -> dict[str, Any]:
        """Counts, for people."""
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
            "aside": dict(self._db.rows(grouped.format("reason", "aside"))),
        }

    # --- posting lists ---------------------------------------------------------------------------------------------

    def lists(self, space: Space, terms: Iterable[str]) -> dict[str, list[bytes]]:
        """The posting lists of terms."""
        found: dict[str, list[bytes]] = {}
        sql = "SELECT term, list FROM postings WHERE space = {} AND term IN ({}) ORDER BY term, segment"
        for marks, some in _batches(terms):
            for term, blob in self._db.rows(sql.format(int(space), marks), some):
                found.setdefault(term, []).append(blob)
        return found

    # --- definitions: what the graph asks (`graph.Symbols`) ----------------------------------------------------------

    def symbols(self, ids: Iterable[int]) -> dict[int, Symbol]:
        """Definitions by id."""
        return {symbol.id: symbol for symbol in self._symbols("d.id", ids)}

    def named(self, names: Iterable[str]) -> dict[str, list[Symbol]]:
        """Definitions by their bare names."""
        found: dict[str, list[Symbol]] = {}
        for symbol in self._symbols("d.name", names):
            found.setdefault(symbol.name, []).append(symbol)
        return found

    def in_file(self, path: str) -> list[Symbol]:
        """The definitions of a file, by line; what stands outside of them is the first."""
        return sorted(self._symbols("f.path", [path]), key=lambda one: (one.kind != MODULE, one.line, -one.end))

    def _symbols(self, column: str, values: Iterable[Any]) -> Iterator[Symbol]:
        for marks, some in _batches(values):
            sql = f"{_SYMBOL} WHERE {column} IN ({marks}) ORDER BY f.path, d.line, d.id"
            yield from (Symbol(*row) for row in self._db.rows(sql, some))

    def uses(self, ids: Iterable[int]) -> dict[int, Mapping[str, int]]:
        """The names that definitions refer to."""
        found: dict[int, Mapping[str, int]] = {}
        for marks, some in _batches(ids):
            for id, used in self._db.rows(f"SELECT id, uses FROM definitions WHERE id IN ({marks})", some):
                pairs = (name.partition("*") for name in used.split(" ") if name)
                found[id] = {name: int(times or 1) for name, _, times in pairs}
        return found

    def users(self, names: Iterable[str]) -> dict[str, Mapping[int, int]]:
        """The definitions that refer to names; of a name that very many use, none."""
        owner = self.table().documents.owner
        found: dict[str, Mapping[int, int]] = {}
        for name, blobs in self.lists(Space.USES, names).items():
            if sum(map(postings.length_of, blobs)) <= NAMES:
                pairs = (pair for blob in blobs for pair in zip(*postings.unpacked(blob), strict=True))
                found[name] = {id: times for id, times in pairs if owner[id]}
        return found

    def imports(self, path: str) -> tuple[str, ...]:
        rows = self._db.rows("SELECT imports FROM files WHERE path = ?", (path,))
        return tuple(json.loads(rows[0][0])) if rows else ()

    def most_used(self, limit: int) -> list[tuple[Symbol, float]]:
        """Definitions that the most other files refer to, shared among namesakes; worked out once for each generation."""
        with self._db.lock:
            generation = self.generation
            if self._central is None or self._central[0] != generation:
                self._central = (generation, self._most_used(limit))
            return self._central[1][:limit]

    def _most_used(self, limit: int) -> list[tuple[Symbol, float]]:
        rows = self._db.rows(
            "SELECT term, sum(length(list)) FROM postings WHERE space = ? GROUP BY term ORDER BY 2 DESC, 1 LIMIT ?",
            (int(Space.USES), 4 * limit),
        )
        named, lists = self.named([name for name, _ in rows]), self.lists(Space.USES, [name for name, _ in rows])
        table = self.table()
        found = []
        for name, _ in rows:
            symbols = [symbol for symbol in named.get(name, ()) if symbol.role == "source"]
            if 0 < len(symbols) <= 3:
                used = _from_other_files(lists[name], symbols, table)
                found += [(symbol, used / len(symbols)) for symbol in symbols if used]
        return sorted(found, key=lambda pair: (-pair[1], pair[0].path, pair[0].line))[:limit]

    # --- what others derive from the files --------------------------------------------------------------------------

    def kept(self, name: str) -> Any:
        """A value that somebody derived from the files and keeps here, with the key that it was made for."""
        return self._db.meta(f"kept.{name}")

    def keep(self, name: str, value: Any) -> None:
        """Keep a derived value; where the index cannot be written right now, it is worked out again next time."""
        with suppress(StoreError), self._db.writing(PATIENCE):
            self._db.set(f"kept.{name}", value)


def _spoken(path: str) -> str:
    return path.rpartition(".")[0].replace("/", " ") or path


def _batches(values: Iterable[Any], size: int = 500) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Values in groups that one statement takes, each with its question marks."""
    every = tuple(dict.fromkeys(values))
    for at in range(0, len(every), size):
        some = every[at : at + size]
        yield ",".join("?" * len(some)), some


def _from_other_files(blobs: Iterable[bytes], symbols: Sequence[Symbol], table: Table) -> int:
    """How many other files refer to a name; a source counts for four tests."""
    own = {table.by_path[symbol.path].id for symbol in symbols}
    users = {table.documents.owner[id] for blob in blobs for id in postings.unpacked(blob)[0]} - own - {0}
    return sum(4 if table.files[file].role == "source" else 1 for file in users)
