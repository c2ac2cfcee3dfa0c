"""Taking changes in: what differs between the files and the index is read, parsed and written, a round at a time.

Each round is one transaction: killed at any moment, the index is as it was after the last one, and goes on from there.
Another process that takes changes in at the same time waits its turn and then finds the work done.
"""

from __future__ import annotations

import gc
import json
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from time import time_ns
from typing import Any, TypeAlias

from foveate.code import postings
from foveate.code.database import IndexDatabase
from foveate.code.file_text import FileText
from foveate.code.git_files import MTIME_GRANULARITY_NS
from foveate.code.git_history import read_git_history
from foveate.code.languages import language_of
from foveate.code.model import MODULE, Definition, Exclusion, FoundFile, ParsedFile
from foveate.code.parse import parse
from foveate.code.postings import Segment
from foveate.code.roles import role_of
from foveate.code.walk import WalkResult
from foveate.text import analysis

FILES_PER_TRANSACTION = 1000
"""Files of one transaction: what a killed process loses at most."""

HEAD_CHARS = 4000
"""What tells the language where the name does not: a C++ header may begin with a page of licence."""

MIN_IDS_TO_REBUILD = 200_000
"""Ids below which nobody minds that most of them are no longer in use."""

MAX_SEGMENTS = 8
"""Segments above which the small ones are merged."""

MIN_SPLIT_LINES = 150
"""Lines from which what is inside a function stands for itself."""

MIN_KEY_LINES = 2
"""A setting of fewer lines is read with what is around it."""

_CALLABLE_KINDS = frozenset(("function", "method", "constructor", "macro"))

Progress = Callable[[int, int], None]
ReadFile = Callable[[str], FileText | Exclusion]
Columns: TypeAlias = "tuple[array[int], array[int], array[int]]"
"""Definitions, their files and their lengths."""
_Row: TypeAlias = tuple[int, str, str, str]
"""A file that is known: id, path, language, role."""


@dataclass(frozen=True, slots=True)
class IndexUpdate:
    """What a refresh did."""

    parsed_files: int = 0
    moved_files: int = 0
    removed_files: int = 0
    files: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Changes:
    """What there is to do."""

    changed: list[FoundFile]
    removed: list[str]
    removed_exclusions: list[str]
    """Files that were set aside and are no longer there."""
    indexed_paths: Set[str]
    excluded_paths: Set[str]

    def __bool__(self) -> bool:
        return bool(self.changed or self.removed or self.removed_exclusions)


@contextmanager
def gc_disabled() -> Iterator[None]:
    """For work that makes many thousands of small lists and no cycles: to search them for some is a tenth of its time."""
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
    """Bring the index to what a walk finds."""
    if _is_fragmented(db):
        with db.write_transaction():
            db.clear_tables()
    generation = db.generation
    walked = walk()
    done = IndexUpdate(files=len(walked.files), notes=walked.notes)
    looked_at: set[str] = set()
    changes = detect_changes(db, walked, looked_at)
    while changes:
        with db.write_transaction():
            db.take_over()
            if db.generation != generation:  # another process was at it meanwhile: what it saw is newer
                walked = walk()
                changes = detect_changes(db, walked, looked_at)
            told = _progress_callback(progress, len(walked.files), len(changes.changed))
            with gc_disabled():  # the whole process goes without: not for longer than the round itself
                done = _Batch(db, read, changes).run(done, told)
        if len(changes.changed) <= FILES_PER_TRANSACTION:
            break
        looked_at.update(found.path for found in changes.changed[:FILES_PER_TRANSACTION])
        generation = db.generation
        changes = detect_changes(db, walked, looked_at)
    asides = dict(db.fetch_all("SELECT path, reason FROM aside WHERE mtime IS NULL"))
    if db.meta("head") != walked.head_commit or asides != {one.path: one.reason for one in reversed(walked.exclusions)}:
        with db.write_transaction():
            _save_walk(db, walked)
    return done


def _is_fragmented(db: IndexDatabase) -> bool:
    """Whether far more ids were given out than are in use, as a search counts up to the last of them, or nearly all."""
    last = int(db.meta("definition") or 0)
    if last > postings.MAX_ID // 2:
        return True
    return last > MIN_IDS_TO_REBUILD and last > 4 * int(db.fetch_all("SELECT count(*) FROM definitions")[0][0])


def detect_changes(db: IndexDatabase, walked: WalkResult, checked_paths: Set[str]) -> Changes:
    """What differs, by size and time; content decides later."""
    sure = f"mtime < checked - {MTIME_GRANULARITY_NS}"  # a time that was long past when it was looked at
    settled = db.fetch_all(f"SELECT path, size, mtime FROM files WHERE {sure}")
    unsure = db.fetch_all(f"SELECT path FROM files WHERE NOT {sure}")
    set_aside = db.fetch_all("SELECT path, size, mtime FROM aside WHERE mtime NOT NULL")
    as_before = {*settled, *set_aside}
    changed = [found for found in walked.files if found not in as_before and found.path not in checked_paths]
    known, aside = dict.fromkeys(row[0] for row in settled + unsure), dict.fromkeys(row[0] for row in set_aside)
    here = {found.path for found in walked.files}
    gone, left = ([path for path in paths if path not in here] for paths in (known, aside))
    return Changes(changed, gone, left, known.keys(), aside.keys())


def _progress_callback(progress: Progress | None, total: int, remaining: int) -> Callable[[int], None]:
    """How far the whole is, after so many files of a round."""
    return (lambda done: progress(total - remaining + done, total)) if progress is not None else (lambda done: None)


class _Batch:
    """Up to `FILES_PER_TRANSACTION` changed files, in one transaction."""

    def __init__(self, db: IndexDatabase, read: ReadFile, changes: Changes) -> None:
        self._db = db
        self._read = read
        self._changes = changes
        self._waiting = set(changes.removed)
        """Files that are gone, until one turns up under another name."""
        self._segment = Segment()
        self._columns: Columns = (array("I"), array("I"), array("I"))

    def run(self, result: IndexUpdate, on_progress: Callable[[int], None]) -> IndexUpdate:
        self._db.executemany("DELETE FROM aside WHERE path = ?", ((path,) for path in self._changes.removed_exclusions))
        fates: Counter[str] = Counter()
        for n, found in enumerate(self._changes.changed[:FILES_PER_TRANSACTION]):
            if n % 20 == 0:
                on_progress(n)
            fates[self._index_file(found)] += 1
        is_last = len(self._changes.changed) <= FILES_PER_TRANSACTION
        removed = sorted(self._waiting) if is_last else []  # later rounds may find that they were moved
        for path in removed:
            self._remove(path)
        if self._columns[0]:
            _write(self._db, self._segment, self._columns)
            _merge(self._db)
        if removed or self._changes.removed_exclusions or fates.total() > fates["kept"]:
            self._db.allocate_ids("generation")
        on_progress(min(FILES_PER_TRANSACTION, len(self._changes.changed)))
        parsed, moved = result.parsed_files + fates["parsed"], result.moved_files + fates["moved"]
        return IndexUpdate(parsed, moved, result.removed_files + len(removed), result.files, result.notes)

    def _index_file(self, file: FoundFile) -> str:
        """Take one file in: set aside, kept as it was, moved, or parsed."""
        checked = time_ns()
        text = self._read(file.path)
        known = file.path in self._changes.indexed_paths
        if isinstance(text, Exclusion):
            return self._exclude(file, text.reason, checked)
        if file.path in self._changes.excluded_paths:
            self._db.execute("DELETE FROM aside WHERE path = ?", (file.path,))
        same, moved = self._previous_versions(file, text, known)
        if known and not same:
            self._remove(file.path)
        old = same or moved
        if old is None:
            self._parse(file, text, checked)
            return "parsed"
        self._waiting.discard(old[1])
        self._db.execute(
            "UPDATE files SET path = ?, size = ?, mtime = ?, checked = ?, role = ? WHERE id = ?",
            (file.path, file.size, file.mtime_ns, checked, role_of(file.path), old[0]),
        )
        return "kept" if same else "moved"

    def _exclude(self, file: FoundFile, reason: str, checked: int) -> str:
        if file.path in self._changes.indexed_paths:
            self._remove(file.path)
        before = self._db.fetch_all("SELECT reason FROM aside WHERE path = ?", (file.path,))
        mtime = (
            file.mtime_ns if file.mtime_ns < checked - MTIME_GRANULARITY_NS else -1
        )  # looked at again until its time can be trusted
        self._db.execute("REPLACE INTO aside VALUES (?, ?, ?, ?)", (file.path, reason, file.size, mtime))
        return "kept" if before == [(reason,)] else "aside"

    def _previous_versions(self, file: FoundFile, text: FileText, is_indexed: bool) -> tuple[_Row | None, _Row | None]:
        """The file itself with this content, and one that is gone and would be parsed to the same under this name."""
        if not is_indexed and not self._waiting:
            return None, None
        rows: list[_Row] = self._db.fetch_all("SELECT id, path, language, role FROM files WHERE hash = ?", (text.hash,))
        same = next((row for row in rows if row[1] == file.path), None)
        language, is_test = language_of(file.path, text.text[:HEAD_CHARS]), role_of(file.path) == "test"
        moved = (row for row in rows if row[1] in self._waiting and row[2] == language and (row[3] == "test") == is_test)
        return same, next(moved, None)

    def _parse(self, found: FoundFile, text: FileText, checked: int) -> None:
        role, language = role_of(found.path), language_of(found.path, text.text[:HEAD_CHARS])
        parsed = parse(text.text, language)
        parts = chunks(parsed, text.text, by_name=role == "test")
        file, first = self._db.allocate_ids("file"), self._db.allocate_ids("definition", len(parts))
        rows, lengths = [], []
        nth: dict[str, int] = {}
        for id, part in enumerate(parts, first):
            name = part.definition.qualified_name
            lengths.append(self._segment.add(id, analysis.term_frequencies(part.text), _name_terms(name)))
            self._segment.add_references(id, part.references)
            nth[name] = nth.get(name, 0) + 1
            rows.append(_row(id, file, part, nth[name], first))
        values = (range(first, first + len(parts)), [file] * len(parts), lengths)
        for column, more in zip(self._columns, values, strict=True):
            column.extend(more)
        self._db.executemany(f"INSERT INTO definitions VALUES ({','.join('?' * 12)})", rows)
        lines = parts[0].definition.end_line if text.text else 0
        stored = (text.hash, found.size, found.mtime_ns, checked, language, role, lines)
        said = (json.dumps(parsed.imports), parsed.has_syntax_error, " ".join(text.redacted_kinds))
        self._db.execute(f"INSERT INTO files VALUES ({','.join('?' * 12)})", (file, found.path, *stored, *said))

    def _remove(self, path: str) -> None:
        """Its postings stay until their segment is merged: nobody owns them any more."""
        for (id,) in self._db.fetch_all("SELECT id FROM files WHERE path = ?", (path,)):
            self._db.execute("DELETE FROM definitions WHERE file = ?", (id,))
            self._db.execute("DELETE FROM files WHERE id = ?", (id,))


def _name_terms(qualified: str) -> frozenset[str]:
    """The words of a definition's name. What encloses it is the same for all of its members."""
    outer, _, name = qualified.rpartition(".")
    return _terms(outer) | _terms(name) if outer else _terms(name)


@lru_cache(maxsize=10_000)
def _terms(name: str) -> frozenset[str]:
    return frozenset(analysis.terms(name))


def _row(id: int, file: int, part: Chunk, nth: int, first: int) -> tuple[Any, ...]:
    one = part.definition
    parent = None if part.parent is None else first + part.parent
    used = "\n".join(f"{name}*{times}" for name, times in part.references.items())
    return (
        id,
        file,
        one.name,
        one.qualified_name,
        nth,
        one.kind,
        one.start_line,
        one.end_line,
        one.signature,
        one.doc[:1000],
        parent,
        used,
    )


# --- chunks -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chunk:
    """One document of the index."""

    definition: Definition
    text: str
    """The words that it is found by: those of its own lines."""
    references: Mapping[str, int]
    """Names that its own lines refer to."""
    parent: int | None
    """The place of the enclosing chunk."""


def chunks(parsed: ParsedFile, text: str, by_name: bool = False) -> list[Chunk]:
    """The documents of a file, the file's own rest first.

    `by_name`: definitions are found by their names, their documents and what they use, and not by every word of their
    bodies. Tests are often most of a repository and answer few questions.
    """
    lines = text.splitlines() or [""]
    definitions, places = _chunk_definitions(parsed.definitions)
    whole = Definition("", "", MODULE, 1, len(lines), "", parsed.doc)
    owner = _owners(definitions, len(lines))
    own: list[list[str]] = [[] for _ in range(len(definitions) + 1)]
    for line, mine in zip(lines, owner, strict=True) if not by_name else ():
        own[mine].append(line)
    uses: list[dict[str, int]] = [{} for _ in own]
    for name, number in parsed.references:
        if 0 < number <= len(lines):
            used = uses[owner[number - 1]]
            used[name] = used.get(name, 0) + 1
    out = []
    types = {one.qualified_name: place for place, one in enumerate(definitions, 1) if one.kind not in _CALLABLE_KINDS}
    for place, definition in enumerate((whole, *definitions)):
        # A method that stands apart from its type (Go, Rust, C++) belongs to it all the same.
        apart = types.get(definition.qualified_name.rpartition(".")[0])
        parent = apart if definition.parent is None else places[definition.parent]
        words = f"{definition.doc} {' '.join(uses[place])}" if by_name else "\n".join(own[place])
        out.append(Chunk(definition, words, uses[place], parent))
    return out


def _chunk_definitions(definitions: Sequence[Definition]) -> tuple[list[Definition], dict[int, int]]:
    """Definitions that are documents of their own, and the place of each among them; the file's rest has place 0."""
    place: dict[int, int] = {}
    kept: list[Definition] = []
    for n, definition in enumerate(definitions):
        parent = definition.parent
        if parent is not None and parent not in place:
            continue  # inside of one that was left to its function
        if definition.kind == "key" and definition.end_line - definition.start_line < MIN_KEY_LINES:
            continue
        if parent is not None:
            outer = definitions[parent]
            if outer.kind in _CALLABLE_KINDS and outer.end_line - outer.start_line < MIN_SPLIT_LINES:
                continue
        kept.append(definition)
        place[n] = len(kept)
    return kept, place


def _owners(definitions: Sequence[Definition], number: int) -> list[int]:
    """For each line, whose it is: 0 is the file's rest. Inner definitions come after outer ones and take theirs."""
    owner = [0] * number
    for place, definition in enumerate(definitions, 1):
        first, last = max(1, definition.start_line), min(definition.end_line, number)
        owner[first - 1 : last] = [place] * max(0, last - first + 1)
    return owner


# --- segments ------------------------------------------------------------------------------------------------------


def _write(db: IndexDatabase, segment: Segment, columns: Columns) -> None:
    number = db.allocate_ids("segment")
    db.execute("INSERT INTO segments VALUES (?, ?, ?, ?)", (number, *(column.tobytes() for column in columns)))
    rows = ((space, term, number, blob) for space, term, blob in segment.rows())
    db.executemany("INSERT INTO postings VALUES (?, ?, ?, ?)", rows)


def _merge(db: IndexDatabase) -> None:
    """Many small segments become one; the large ones, which cost the most to copy, stay."""
    sizes = db.fetch_all("SELECT id, length(ids) FROM segments")
    if len(sizes) <= MAX_SEGMENTS:
        return
    largest = max(size for _, size in sizes)
    small = [id for id, size in sizes if size * 2 < largest] or [id for id, _ in sizes]
    marks = ",".join(map(str, small))
    alive = {id for (id,) in db.fetch_all("SELECT id FROM files")}
    columns: Columns = (array("I"), array("I"), array("I"))
    for packed in db.fetch_all(f"SELECT ids, files, lengths FROM segments WHERE id IN ({marks})"):
        for row in zip(*map(postings.ints, packed), strict=True):
            if row[1] in alive:
                for column, value in zip(columns, row, strict=True):
                    column.append(value)
    kept = frozenset(columns[0])
    lists: dict[tuple[int, str], list[bytes]] = {}
    for space, term, blob in db.fetch_all(
        f"SELECT space, term, list FROM postings WHERE segment IN ({marks}) ORDER BY 1, 2, segment"
    ):
        lists.setdefault((space, term), []).append(blob)
    number = db.allocate_ids("segment")
    joined = ((space, term, number, postings.merge_lists(blobs, kept)) for (space, term), blobs in lists.items())
    db.execute(f"DELETE FROM postings WHERE segment IN ({marks})")
    db.executemany("INSERT INTO postings VALUES (?, ?, ?, ?)", (row for row in joined if row[3]))
    db.execute(f"DELETE FROM segments WHERE id IN ({marks})")
    db.execute("INSERT INTO segments VALUES (?, ?, ?, ?)", (number, *(column.tobytes() for column in columns)))


def _save_walk(db: IndexDatabase, walked: WalkResult) -> None:
    """What the walk itself set aside, and where the history stands."""
    db.execute("DELETE FROM aside WHERE mtime IS NULL")
    rows = ((one.path, one.reason) for one in walked.exclusions)
    db.executemany("INSERT OR IGNORE INTO aside VALUES (?, ?, NULL, NULL)", rows)
    if db.meta("head") != walked.head_commit:
        db.set_meta("history", read_git_history(db.root, walked.head_commit).dumps() if walked.used_git else None)
        db.set_meta("head", walked.head_commit)
    db.allocate_ids("generation")
