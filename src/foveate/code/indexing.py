"""Updates the index: changed files are read, cut into chunks and written, one batch at a time.

A batch is one transaction. If the process is killed, the next update continues after the last complete batch. A second
process that updates the index at the same time waits and then finds the work done.
"""

from __future__ import annotations

import gc
import json
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from time import time_ns
from typing import Any, TypeAlias

from foveate.code import postings
from foveate.code.database import IndexDatabase
from foveate.code.file_text import FileText
from foveate.code.git_files import MTIME_GRANULARITY_NS
from foveate.code.languages import OUTLINES_OFF, has_parser, language_of
from foveate.code.model import MODULE, Definition, Exclusion, FoundFile, ParsedFile
from foveate.code.parse import parse
from foveate.code.postings import Segment
from foveate.code.roles import role_of
from foveate.code.walk import WalkResult
from foveate.text import analysis

FILES_PER_TRANSACTION = 1000
"""Files of one batch. A killed process loses the work on one batch at most."""

HEAD_CHARS = 4000
"""Beginning of a file that is used to detect its language. A C++ header may start with a page of licence."""

MIN_IDS_TO_REBUILD = 200_000
"""Below this number of allocated ids an index is never rebuilt because most of them are unused."""

MAX_SEGMENTS = 8
"""With more segments the small ones are merged."""

MIN_SPLIT_LINES = 150
"""Definitions inside a function of at least this length are separate chunks."""

MIN_KEY_LINES = 2
"""A key of a data file with fewer lines is part of the chunk around it."""

_CALLABLE_KINDS = frozenset(("function", "method", "constructor", "macro"))

Progress = Callable[[int, int], None]
ReadFile = Callable[[str], FileText | Exclusion]
Columns: TypeAlias = "tuple[array[int], array[int], array[int]]"
"""Definitions, their files and their lengths."""


@dataclass(frozen=True, slots=True)
class IndexUpdate:
    """The result of an update."""

    parsed_files: int = 0
    removed_files: int = 0
    files: int = 0
    notes: tuple[str, ...] = ()
    skipped: tuple[Exclusion, ...] = ()
    """Paths that are not indexed, with the reasons. Only `engine.code.index()` lists them."""


@dataclass(frozen=True, slots=True)
class Changes:
    """The differences between the files and the index."""

    changed: list[FoundFile]
    removed: list[str]
    removed_exclusions: list[str]
    """Excluded files that no longer exist."""
    indexed_paths: Set[str]
    excluded_paths: Set[str]

    def __bool__(self) -> bool:
        return bool(self.changed or self.removed or self.removed_exclusions)


@contextmanager
def gc_disabled() -> Iterator[None]:
    """Disable the garbage collector, which takes a tenth of the time of work that creates many lists and no cycles."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def update_index(
    db: IndexDatabase, walk: Callable[[], WalkResult], read: ReadFile, progress: Progress | None = None
) -> IndexUpdate:
    """Bring the index up to date with the files that a walk finds."""
    if _is_fragmented(db):
        with db.write_transaction():
            db.clear_tables()
    generation = db.generation
    walked = walk()
    result = IndexUpdate(files=len(walked.files), notes=walked.notes if has_parser() else (*walked.notes, OUTLINES_OFF))
    checked_paths: set[str] = set()
    changes = detect_changes(db, walked, checked_paths)
    while changes:
        with db.write_transaction():
            db.take_over()
            if (
                db.generation != generation
            ):  # another process has updated the index since: walk again, or its changes are undone
                walked = walk()
                changes = detect_changes(db, walked, checked_paths)
            on_progress = _progress_callback(progress, len(walked.files), len(changes.changed))
            with gc_disabled():  # it is off for the whole process, so only for the batch itself
                result = _Batch(db, read, changes).run(result, on_progress)
        if len(changes.changed) <= FILES_PER_TRANSACTION:
            break
        checked_paths.update(file.path for file in changes.changed[:FILES_PER_TRANSACTION])
        generation = db.generation
        changes = detect_changes(db, walked, checked_paths)
    exclusions = dict(db.fetch_all("SELECT path, reason FROM aside WHERE mtime IS NULL"))
    if exclusions != {exclusion.path: exclusion.reason for exclusion in reversed(walked.exclusions)}:
        with db.write_transaction():
            _save_exclusions(db, walked.exclusions)
    return result


def _is_fragmented(db: IndexDatabase) -> bool:
    """Return whether most allocated ids are unused: a search takes time in proportion to the highest id."""
    last = int(db.meta("definition") or 0)
    if last > postings.MAX_ID // 2:
        return True
    return last > MIN_IDS_TO_REBUILD and last > 4 * int(db.fetch_all("SELECT count(*) FROM definitions")[0][0])


def detect_changes(db: IndexDatabase, walked: WalkResult, checked_paths: Set[str]) -> Changes:
    """Compare files with the index by size and time. Their content decides later."""
    reliable = f"mtime < checked - {MTIME_GRANULARITY_NS}"  # older than the clock's granularity when it was checked
    indexed = db.fetch_all(f"SELECT path, size, mtime FROM files WHERE {reliable}")
    unreliable = db.fetch_all(f"SELECT path FROM files WHERE NOT {reliable}")
    excluded = db.fetch_all("SELECT path, size, mtime FROM aside WHERE mtime NOT NULL")
    unchanged = {*indexed, *excluded}
    changed = [file for file in walked.files if file not in unchanged and file.path not in checked_paths]
    indexed_paths, excluded_paths = (
        dict.fromkeys(row[0] for row in indexed + unreliable),
        dict.fromkeys(row[0] for row in excluded),
    )
    paths_found = {file.path for file in walked.files}
    removed, removed_exclusions = (
        [path for path in paths if path not in paths_found] for paths in (indexed_paths, excluded_paths)
    )
    return Changes(changed, removed, removed_exclusions, indexed_paths.keys(), excluded_paths.keys())


def _progress_callback(progress: Progress | None, total: int, remaining: int) -> Callable[[int], None]:
    """Return a function that reports the progress of all batches, given the files done of this one."""
    return (lambda done: progress(total - remaining + done, total)) if progress is not None else (lambda done: None)


class _Batch:
    """A batch of changed files, written in one transaction."""

    def __init__(self, db: IndexDatabase, read: ReadFile, changes: Changes) -> None:
        self._db = db
        self._read = read
        self._changes = changes
        self._segment = Segment()
        self._columns: Columns = (array("I"), array("I"), array("I"))

    def run(self, result: IndexUpdate, on_progress: Callable[[int], None]) -> IndexUpdate:
        self._db.executemany("DELETE FROM aside WHERE path = ?", ((path,) for path in self._changes.removed_exclusions))
        outcomes: Counter[str] = Counter()
        for n, file in enumerate(self._changes.changed[:FILES_PER_TRANSACTION]):
            if n % 20 == 0:
                on_progress(n)
            outcomes[self._index_file(file)] += 1
        removed = self._changes.removed
        for path in removed:
            self._remove(path)
        if self._columns[0]:
            _write(self._db, self._segment, self._columns)
            _merge(self._db)
        if removed or self._changes.removed_exclusions or outcomes.total() > outcomes["kept"]:
            self._db.allocate_ids("generation")
        on_progress(min(FILES_PER_TRANSACTION, len(self._changes.changed)))
        parsed = result.parsed_files + outcomes["parsed"]
        return IndexUpdate(parsed, result.removed_files + len(removed), result.files, result.notes)

    def _index_file(self, file: FoundFile) -> str:
        """Index one file. Returns `aside`, `kept` or `parsed`."""
        checked = time_ns()
        text = self._read(file.path)
        if isinstance(text, Exclusion):
            return self._exclude(file, text.reason, checked)
        if file.path in self._changes.excluded_paths:
            self._db.execute("DELETE FROM aside WHERE path = ?", (file.path,))
        if file.path in self._changes.indexed_paths:
            same = self._db.fetch_all("SELECT id FROM files WHERE path = ? AND hash = ?", (file.path, text.hash))
            if same:
                state = (file.size, file.mtime_ns, checked, same[0][0])
                self._db.execute("UPDATE files SET size = ?, mtime = ?, checked = ? WHERE id = ?", state)
                return "kept"
            self._remove(file.path)
        self._parse(file, text, checked)
        return "parsed"

    def _exclude(self, file: FoundFile, reason: str, checked: int) -> str:
        if file.path in self._changes.indexed_paths:
            self._remove(file.path)
        before = self._db.fetch_all("SELECT reason FROM aside WHERE path = ?", (file.path,))
        # A recent time is unreliable, so the file is checked again at the next update.
        mtime = file.mtime_ns if file.mtime_ns < checked - MTIME_GRANULARITY_NS else -1
        self._db.execute("REPLACE INTO aside VALUES (?, ?, ?, ?)", (file.path, reason, file.size, mtime))
        return "kept" if before == [(reason,)] else "aside"

    def _parse(self, file: FoundFile, text: FileText, checked: int) -> None:
        role, language = role_of(file.path), language_of(file.path, text.text[:HEAD_CHARS])
        parsed = parse(text.text, language)
        parsed_chunks = chunks(parsed, text.text, by_name=role == "test")
        file_id, first = self._db.allocate_ids("file"), self._db.allocate_ids("definition", len(parsed_chunks))
        rows, lengths = [], []
        occurrences: dict[str, int] = {}
        for id, chunk in enumerate(parsed_chunks, first):
            name = chunk.definition.qualified_name
            lengths.append(self._segment.add(id, analysis.term_frequencies(chunk.text), _name_terms(name)))
            self._segment.add_references(id, chunk.references)
            occurrences[name] = occurrences.get(name, 0) + 1
            rows.append(_row(id, file_id, chunk, occurrences[name], first))
        values = (range(first, first + len(parsed_chunks)), [file_id] * len(parsed_chunks), lengths)
        for column, items in zip(self._columns, values, strict=True):
            column.extend(items)
        self._db.executemany(f"INSERT INTO definitions VALUES ({','.join('?' * 12)})", rows)
        lines = parsed_chunks[0].definition.end_line if text.text else 0
        state = (text.hash, file.size, file.mtime_ns, checked, language, role, lines)
        content = (json.dumps(parsed.imports), parsed.has_syntax_error, " ".join(text.redacted_kinds))
        self._db.execute(f"INSERT INTO files VALUES ({','.join('?' * 12)})", (file_id, file.path, *state, *content))

    def _remove(self, path: str) -> None:
        """Remove a file and its definitions. Its postings stay, without an owner, until their segment is merged."""
        for (id,) in self._db.fetch_all("SELECT id FROM files WHERE path = ?", (path,)):
            self._db.execute("DELETE FROM definitions WHERE file = ?", (id,))
            self._db.execute("DELETE FROM files WHERE id = ?", (id,))


def _name_terms(qualified: str) -> frozenset[str]:
    """Return the terms of a qualified name. Those of the enclosing name are cached: all members share it."""
    outer, _, name = qualified.rpartition(".")
    return _terms(outer) | _terms(name) if outer else _terms(name)


@lru_cache(maxsize=10_000)
def _terms(name: str) -> frozenset[str]:
    return frozenset(analysis.terms(name))


def _row(id: int, file: int, chunk: Chunk, occurrence: int, first: int) -> tuple[Any, ...]:
    definition = chunk.definition
    parent = None if chunk.parent is None else first + chunk.parent
    references = "\n".join(f"{name}*{times}" for name, times in chunk.references.items())
    return (
        id,
        file,
        definition.name,
        definition.qualified_name,
        occurrence,
        definition.kind,
        definition.start_line,
        definition.end_line,
        definition.signature,
        definition.doc[:1000],
        parent,
        references,
    )


# --- chunks -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chunk:
    """A unit that is found as a whole: a definition with its own lines, or everything outside of all definitions."""

    definition: Definition
    text: str
    """The text that it is found by: its own lines."""
    references: Mapping[str, int]
    """Names that its own lines refer to, with counts."""
    parent: int | None
    """Index of the enclosing chunk."""


def chunks(parsed: ParsedFile, text: str, by_name: bool = False) -> list[Chunk]:
    """Cut a file into chunks. The first one is everything outside of its definitions.

    The lines of a method belong to the method and not to its class. With `by_name`, definitions are found by their names,
    docstrings and references, not by their bodies: tests are often most of a repository and answer few questions.
    """
    lines = text.splitlines() or [""]
    definitions, indexes = _chunk_definitions(parsed.definitions)
    rest = Definition("", "", MODULE, 1, len(lines), "", parsed.doc)
    owners = _owners(definitions, len(lines))
    lines_by_chunk: list[list[str]] = [[] for _ in range(len(definitions) + 1)]
    for line, index in zip(lines, owners, strict=True) if not by_name else ():
        lines_by_chunk[index].append(line)
    references: list[dict[str, int]] = [{} for _ in lines_by_chunk]
    for name, number in parsed.references:
        if 0 < number <= len(lines):
            names = references[owners[number - 1]]
            names[name] = names.get(name, 0) + 1
    result = []
    types = {
        definition.qualified_name: index
        for index, definition in enumerate(definitions, 1)
        if definition.kind not in _CALLABLE_KINDS
    }
    for index, definition in enumerate((rest, *definitions)):
        # In Go, Rust and C++ a method may be outside of its type. It belongs to it nevertheless.
        owner_type = types.get(definition.qualified_name.rpartition(".")[0])
        parent = owner_type if definition.parent is None else indexes[definition.parent]
        words = f"{definition.doc} {' '.join(references[index])}" if by_name else "\n".join(lines_by_chunk[index])
        result.append(Chunk(definition, words, references[index], parent))
    return result


def _chunk_definitions(definitions: Sequence[Definition]) -> tuple[list[Definition], dict[int, int]]:
    """Return the definitions that are separate chunks, and the index of each chunk. Index 0 is the rest of the file."""
    index: dict[int, int] = {}
    separate: list[Definition] = []
    for number, definition in enumerate(definitions):
        parent = definition.parent
        if parent is not None and parent not in index:
            continue  # inside a definition that is part of its function's chunk
        if definition.kind == "key" and definition.end_line - definition.start_line < MIN_KEY_LINES:
            continue
        if parent is not None:
            outer = definitions[parent]
            if outer.kind in _CALLABLE_KINDS and outer.end_line - outer.start_line < MIN_SPLIT_LINES:
                continue
        separate.append(definition)
        index[number] = len(separate)
    return separate, index


def _owners(definitions: Sequence[Definition], number: int) -> list[int]:
    """Return the index of the chunk that each line belongs to. Inner definitions come later and overwrite outer ones."""
    owners = [0] * number
    for index, definition in enumerate(definitions, 1):
        first, last = max(1, definition.start_line), min(definition.end_line, number)
        owners[first - 1 : last] = [index] * max(0, last - first + 1)
    return owners


# --- segments ------------------------------------------------------------------------------------------------------


def _write(db: IndexDatabase, segment: Segment, columns: Columns) -> None:
    number = db.allocate_ids("segment")
    db.execute("INSERT INTO segments VALUES (?, ?, ?, ?)", (number, *(column.tobytes() for column in columns)))
    rows = ((space, term, number, blob) for space, term, blob in segment.rows())
    db.executemany("INSERT INTO postings VALUES (?, ?, ?, ?)", rows)


def _merge(db: IndexDatabase) -> None:
    """Merge small segments into one. Large segments are not copied."""
    sizes = db.fetch_all("SELECT id, length(ids) FROM segments")
    if len(sizes) <= MAX_SEGMENTS:
        return
    largest = max(size for _, size in sizes)
    small = [id for id, size in sizes if size * 2 < largest] or [id for id, _ in sizes]
    marks = ",".join(map(str, small))
    live_files = {id for (id,) in db.fetch_all("SELECT id FROM files")}
    columns: Columns = (array("I"), array("I"), array("I"))
    for packed in db.fetch_all(f"SELECT ids, files, lengths FROM segments WHERE id IN ({marks})"):
        for row in zip(*map(postings.ints, packed), strict=True):
            if row[1] in live_files:
                for column, value in zip(columns, row, strict=True):
                    column.append(value)
    live_ids = frozenset(columns[0])
    lists: dict[tuple[int, str], list[bytes]] = {}
    for space, term, blob in db.fetch_all(
        f"SELECT space, term, list FROM postings WHERE segment IN ({marks}) ORDER BY 1, 2, segment"
    ):
        lists.setdefault((space, term), []).append(blob)
    number = db.allocate_ids("segment")
    merged = ((space, term, number, postings.merge_lists(blobs, live_ids)) for (space, term), blobs in lists.items())
    db.execute(f"DELETE FROM postings WHERE segment IN ({marks})")
    db.executemany("INSERT INTO postings VALUES (?, ?, ?, ?)", (row for row in merged if row[3]))
    db.execute(f"DELETE FROM segments WHERE id IN ({marks})")
    db.execute("INSERT INTO segments VALUES (?, ?, ?, ?)", (number, *(column.tobytes() for column in columns)))


def _save_exclusions(db: IndexDatabase, exclusions: Iterable[Exclusion]) -> None:
    """Store the exclusions of a walk."""
    db.execute("DELETE FROM aside WHERE mtime IS NULL")
    rows = ((exclusion.path, exclusion.reason) for exclusion in exclusions)
    db.executemany("INSERT OR IGNORE INTO aside VALUES (?, ?, NULL, NULL)", rows)
    db.allocate_ids("generation")
