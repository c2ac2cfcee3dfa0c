"""The derived index of a repository's code, as it is asked: files, definitions, names, posting lists.

It holds where things stand, heads and docstrings, and no bodies. `refresh` brings it up to date: it looks at size and time
of every file, reads those that differ and parses those whose content is new.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any

from foveate.code import postings
from foveate.code.cache import File, Memory, Table, read_table, remembered
from foveate.code.chunk import MODULE
from foveate.code.database import Damaged, Database
from foveate.code.file_text import Text, read
from foveate.code.graph import Symbol
from foveate.code.history import History, loads
from foveate.code.indexing import Progress, Refreshed, changes_in, take_in
from foveate.code.model import Aside
from foveate.code.postings import Space
from foveate.code.walk import MAX_FILES, Walked, matcher, walk
from foveate.errors import StoreError
from foveate.text.redact import RULES, Allow

__all__ = ["CodeIndex", "File", "Table"]

NAMES = 400
"""Users of a name that are looked up: a name that more definitions use tells nothing."""

TEXTS = 100
"""Texts that are held between two questions: to clean one costs more than to see that its bytes are the same."""

PATIENCE = 50
"""Milliseconds to wait for others where the work can be done again."""

_SYMBOL = "SELECT id, file, name, qualified, kind, line, last, signature, doc, parent, nth FROM definitions"
_LARGEST = """SELECT d.id FROM definitions d JOIN files f ON f.id = d.file WHERE f.role = 'source' AND d.name != ''
ORDER BY d.last - d.line DESC, f.path, d.line LIMIT ?"""


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
        self._db = Database(root, file, _reads(self._include, allow))
        self._memory = Memory()
        self._texts: dict[str, Text] = {}
        self._texts_lock = Lock()
        self._past: tuple[str, History] | None = None

    def refresh(self, progress: Progress | None = None) -> Refreshed:
        """Take in what changed in the folder since the last time."""
        with self._db.lock:
            try:
                self._db.check()
                return take_in(self._db, self._walk, self.read, progress)
            except Damaged:  # everything in it is in the files
                self._db.renew()
                return take_in(self._db, self._walk, self.read, progress)

    def _walk(self) -> Walked:
        return walk(self.root, self._include, self._exclude, self._max_files)

    def clear(self) -> None:
        """Forget everything: the next refresh reads every file."""
        with self._db.writing():
            self._db.begin_anew()

    def behind(self) -> int:
        """How many files the next refresh would look at."""
        with self._db.lock:
            changes = changes_in(self._db, self._walk(), frozenset())
            return len(changes.changed) + len(changes.gone)

    def read(self, path: str) -> Text | Aside:
        """The text of a file as it is now, as it may be shown."""
        asked = self._asked is not None and self._asked(path)
        table = self._memory.table
        known = table.by_path.get(path) if table is not None else None
        with self._texts_lock:
            before = self._texts.pop(path, None)
        text = read(self.root, path, self._allow, asked, before, known.hash if known is not None and known.clean else "")
        if isinstance(text, Text):
            with self._texts_lock:
                self._texts[path] = text  # the latest last
                if len(self._texts) > TEXTS:
                    del self._texts[next(iter(self._texts))]
        return text

    def doubt(self, path: str) -> None:
        """Read a file at the next refresh, whatever its size and time say."""
        with self._db.writing():
            self._db.do("UPDATE files SET checked = 0 WHERE path = ?", (path,))

    def touched(self, paths: Iterable[str]) -> bool:
        """Whether one of these files was written or removed since it was indexed."""
        lead = os.path.join(self.root, "")
        for marks, some in _batches(paths):
            for path, size, mtime in self._db.rows(f"SELECT path, size, mtime FROM files WHERE path IN ({marks})", some):
                try:
                    status = os.lstat(lead + path)
                except OSError:
                    return True
                if (status.st_size, status.st_mtime_ns) != (size, mtime):
                    return True
        return False

    def moment(self) -> AbstractContextManager[None]:
        """What is asked inside is answered from one state of the index, whatever others write meanwhile."""
        return self._db.reading()

    def close(self) -> None:
        self._db.close()

    # --- the whole -------------------------------------------------------------------------------------------------

    @property
    def generation(self) -> str:
        """Changes whenever the index does."""
        return self._db.generation

    def memory(self) -> Memory:
        """What is in memory of the index as it is now."""
        memory = self._memory
        if memory.version == self._db.version and not memory.is_full:
            return memory
        with self.moment():
            memory = self._memory  # another thread may have been first
            version, generation = self._db.version, self.generation
            if memory.generation != generation:
                memory = Memory(generation)
            elif memory.is_full:
                memory = memory.emptied()
            memory.version = version
            self._memory = memory
        return memory

    def table(self) -> Table:
        """The files, and what scoring needs to know of the definitions."""
        memory = self.memory()
        if memory.table is not None:
            return memory.table
        with self.moment():
            memory = self.memory()
            if memory.table is None:
                memory.table = read_table(self._db)
            return memory.table

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
            "aside": _by_reason(self.asides()),
        }

    # --- posting lists ---------------------------------------------------------------------------------------------

    def lists(self, space: Space, terms: Iterable[str]) -> dict[str, list[bytes]]:
        """The posting lists of terms, without what is gone: how rare a term is must not depend on past edits."""
        found: dict[str, list[bytes]] = {}
        sql = "SELECT term, segment, list FROM postings WHERE space = {} AND term IN ({}) ORDER BY term, segment"
        with self.moment():
            gone = self.table().gone
            for marks, some in _batches(terms):
                for term, segment, blob in self._db.rows(sql.format(int(space), marks), some):
                    if left := postings.without(blob, gone.get(segment, frozenset())):
                        found.setdefault(term, []).append(left)
        return found

    # --- definitions: what the graph asks (`graph.Symbols`) ----------------------------------------------------------

    @remembered
    def symbols(self, ids: Sequence[int]) -> dict[int, Symbol]:
        """Definitions by id."""
        files = self.table().files
        found: dict[int, Symbol] = {}
        for marks, some in _batches(ids):
            for id, number, name, qualified, kind, line, end, head, doc, parent, nth in self._db.rows(
                f"{_SYMBOL} WHERE id IN ({marks})", some
            ):
                file = files[number]
                found[id] = Symbol(id, file.path, name, qualified, kind, line, end, head, doc, parent, file.role, nth)
        return found

    @remembered
    def named(self, names: Sequence[str]) -> dict[str, list[Symbol]]:
        """Definitions by their bare names; none of a name that very many have."""
        crowded = self.table().crowded
        return self._symbols_by("name", (name for name in names if name not in crowded))

    def in_file(self, path: str) -> list[Symbol]:
        """The definitions of a file, by line; what stands outside of them is the first."""
        return self._in_files([path]).get(path, [])

    @remembered
    def _in_files(self, paths: Sequence[str]) -> dict[str, list[Symbol]]:
        by_path = self.table().by_path
        numbers = {by_path[path].id: path for path in paths if path in by_path}
        found = self._symbols_by("file", numbers)
        return {
            numbers[number]: sorted(symbols, key=lambda one: (one.kind != MODULE, one.line, -one.end))
            for number, symbols in found.items()
        }

    def _symbols_by(self, column: str, values: Iterable[Any]) -> dict[Any, list[Symbol]]:
        """Definitions by what a column of theirs says, in order of their places."""
        ids: defaultdict[Any, list[int]] = defaultdict(list)
        for marks, some in _batches(values):
            for value, id in self._db.rows(f"SELECT {column}, id FROM definitions WHERE {column} IN ({marks})", some):
                ids[value].append(id)
        symbols = self.symbols(chain.from_iterable(ids.values()))
        return {
            value: sorted((symbols[id] for id in some), key=lambda one: (one.path, one.line, one.id))
            for value, some in ids.items()
        }

    @remembered
    def uses(self, ids: Sequence[int]) -> dict[int, Mapping[str, int]]:
        """The names that definitions refer to."""
        found: dict[int, Mapping[str, int]] = {}
        for marks, some in _batches(ids):
            for id, used in self._db.rows(f"SELECT id, uses FROM definitions WHERE id IN ({marks})", some):
                pairs = (name.rpartition("*") for name in used.split("\n") if name)
                found[id] = {name: int(times) for name, _, times in pairs}
        return found

    @remembered
    def users(self, names: Sequence[str]) -> dict[str, Mapping[int, int]]:
        """The definitions that refer to names; of a name that very many use, none."""
        lists = self.lists(Space.USES, names)
        return {name: dict(postings.pairs(blobs)) for name, blobs in lists.items() if postings.length_of(blobs) <= NAMES}

    def imports(self, path: str) -> tuple[str, ...]:
        """What a file imports."""
        return self._imports([path]).get(path, ())

    @remembered
    def _imports(self, paths: Sequence[str]) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for marks, some in _batches(paths):
            rows = self._db.rows(f"SELECT path, imports FROM files WHERE path IN ({marks})", some)
            found.update((path, tuple(json.loads(imported))) for path, imported in rows)
        return found

    def most_used(self, limit: int) -> list[tuple[Symbol, float]]:
        """Definitions that the most other files refer to, shared among namesakes; worked out once for each generation."""
        with self.moment():
            memory = self.memory()
            if memory.central is None or memory.central[0] != limit:
                memory.central = (limit, self._most_used(limit))
            return memory.central[1]

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
                used = _from_other_files(lists.get(name, ()), symbols, table)
                found += [(symbol, used / len(symbols)) for symbol in symbols if used]
        if not found:  # nothing is used from another file: then the largest say what there is
            largest = [id for (id,) in self._db.rows(_LARGEST, (limit,))]
            found = [(symbol, float(symbol.end - symbol.line + 1)) for symbol in self.symbols(largest).values()]
        return sorted(found, key=lambda pair: (-pair[1], pair[0].path, pair[0].line))[:limit]

    # --- what others derive from the files --------------------------------------------------------------------------

    def kept(self, name: str) -> Any:
        """A value that somebody derived from the files and keeps here, with the key that it was made for."""
        return self._db.meta(f"kept.{name}")

    def keep(self, name: str, value: Any) -> None:
        """Keep a derived value; where the index cannot be written right now, it is worked out again next time."""
        with suppress(StoreError), self._db.writing(PATIENCE):
            self._db.set(f"kept.{name}", value)


def _reads(include: Sequence[str], allow: Allow | None) -> str:
    """What the text of a file depends on besides the file: which are wanted all the same, and what counts as a secret."""
    said = json.dumps([list(include), sorted(allow or ()), [(rule.kind, rule.source) for rule in RULES]])
    return blake2b(said.encode("utf-8", "replace"), digest_size=8).hexdigest()


_SUMMED = re.compile(r"(.*), ([\d,]+) files?")


def _by_reason(asides: Iterable[Aside]) -> dict[str, int]:
    """How many files are set aside for each reason, most first; what was summed up by folder counts for all of its files."""
    counts: Counter[str] = Counter()
    for aside in asides:
        summed = _SUMMED.fullmatch(aside.reason)
        counts[summed[1] if summed else aside.reason] += int(summed[2].replace(",", "")) if summed else 1
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def _batches(values: Iterable[Any]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Values in groups that one statement takes, each with its question marks.

    The last value is repeated up to the next of a few sizes: SQLite then meets statements that it has prepared before.
    """
    every = tuple(dict.fromkeys(values))
    for at in range(0, len(every), _SIZES[-1]):
        some = every[at : at + _SIZES[-1]]
        size = next(size for size in _SIZES if size >= len(some))
        yield ",".join("?" * size), some + some[-1:] * (size - len(some))


_SIZES = (1, 8, 32, 128, 512)


def _from_other_files(blobs: Iterable[bytes], symbols: Sequence[Symbol], table: Table) -> int:
    """How many other files refer to a name; a source counts for four tests."""
    own = {table.by_path[symbol.path].id for symbol in symbols}
    users = {table.documents.owner[id] for id, _ in postings.pairs(blobs)} - own - {0}
    return sum(4 if table.files[file].role == "source" else 1 for file in users)
