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
from foveate.code.database import Database
from foveate.code.file_text import Text
from foveate.code.git_files import SETTLED
from foveate.code.history import history
from foveate.code.languages import language_of
from foveate.code.model import MODULE, Aside, Definition, Found, Parsed
from foveate.code.parse import parse
from foveate.code.postings import Segment
from foveate.code.roles import role_of
from foveate.code.walk import Walked
from foveate.text import analysis

ROUND = 1000
"""Files of one transaction: what a killed process loses at most."""

HEAD_CHARS = 4000
"""What tells the language where the name does not: a C++ header may begin with a page of licence."""

WORN = 200_000
"""Ids below which nobody minds that most of them are no longer in use."""

SEGMENTS = 8
"""Segments above which the small ones are merged."""

LONG = 150
"""Lines from which what is inside a function stands for itself."""

KEY_LINES = 2
"""A setting of fewer lines is read with what is around it."""

_CALLABLE = frozenset(("function", "method", "constructor", "macro"))

Progress = Callable[[int, int], None]
Read = Callable[[str], Text | Aside]
Columns: TypeAlias = "tuple[array[int], array[int], array[int]]"
"""Definitions, their files and their lengths."""
_Row: TypeAlias = tuple[int, str, str, str]
"""A file that is known: id, path, language, role."""


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What a refresh did."""

    parsed: int = 0
    moved: int = 0
    removed: int = 0
    files: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Changes:
    """What there is to do."""

    changed: list[Found]
    gone: list[str]
    left: list[str]
    """Files that were set aside and are no longer there."""
    known: Set[str]
    aside: Set[str]

    def __bool__(self) -> bool:
        return bool(self.changed or self.gone or self.left)


@contextmanager
def collector_off() -> Iterator[None]:
    """For work that makes many thousands of small lists and no cycles: to search them for some is a tenth of its time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def take_in(db: Database, walk: Callable[[], Walked], read: Read, progress: Progress | None = None) -> Refreshed:
    """Bring the index to what a walk finds."""
    if _worn(db):
        with db.writing():
            db.begin_anew()
    generation = db.generation
    walked = walk()
    done = Refreshed(files=len(walked.files), notes=walked.notes)
    looked_at: set[str] = set()
    changes = changes_in(db, walked, looked_at)
    while changes:
        with db.writing():
            db.claim()
            if db.generation != generation:  # another process was at it meanwhile: what it saw is newer
                walked = walk()
                changes = changes_in(db, walked, looked_at)
            told = _told(progress, len(walked.files), len(changes.changed))
            with collector_off():  # the whole process goes without: not for longer than the round itself
                done = _Round(db, read, changes).run(done, told)
        if len(changes.changed) <= ROUND:
            break
        looked_at.update(found.path for found in changes.changed[:ROUND])
        generation = db.generation
        changes = changes_in(db, walked, looked_at)
    asides = dict(db.rows("SELECT path, reason FROM aside WHERE mtime IS NULL"))
    if db.meta("head") != walked.head or asides != {one.path: one.reason for one in reversed(walked.aside)}:
        with db.writing():
            _note_walk(db, walked)
    return done


def _worn(db: Database) -> bool:
    """Whether far more ids were given out than are in use, as a search counts up to the last of them, or nearly all."""
    last = int(db.meta("definition") or 0)
    if last > postings.MAX_ID // 2:
        return True
    return last > WORN and last > 4 * int(db.rows("SELECT count(*) FROM definitions")[0][0])


def changes_in(db: Database, walked: Walked, looked_at: Set[str]) -> Changes:
    """What differs, by size and time; content decides later."""
    sure = f"mtime < checked - {SETTLED}"  # a time that was long past when it was looked at
    settled = db.rows(f"SELECT path, size, mtime FROM files WHERE {sure}")
    unsure = db.rows(f"SELECT path FROM files WHERE NOT {sure}")
    set_aside = db.rows("SELECT path, size, mtime FROM aside WHERE mtime NOT NULL")
    as_before = {*settled, *set_aside}
    changed = [found for found in walked.files if found not in as_before and found.path not in looked_at]
    known, aside = dict.fromkeys(row[0] for row in settled + unsure), dict.fromkeys(row[0] for row in set_aside)
    here = {found.path for found in walked.files}
    gone, left = ([path for path in paths if path not in here] for paths in (known, aside))
    return Changes(changed, gone, left, known.keys(), aside.keys())


def _told(progress: Progress | None, total: int, left: int) -> Callable[[int], None]:
    """How far the whole is, after so many files of a round."""
    return (lambda done: progress(total - left + done, total)) if progress is not None else (lambda done: None)


class _Round:
    """Up to `ROUND` changed files, in one transaction."""

    def __init__(self, db: Database, read: Read, changes: Changes) -> None:
        self._db = db
        self._read = read
        self._changes = changes
        self._waiting = set(changes.gone)
        """Files that are gone, until one turns up under another name."""
        self._segment = Segment()
        self._columns: Columns = (array("I"), array("I"), array("I"))

    def run(self, done: Refreshed, told: Callable[[int], None]) -> Refreshed:
        self._db.do_all("DELETE FROM aside WHERE path = ?", ((path,) for path in self._changes.left))
        fates: Counter[str] = Counter()
        for n, found in enumerate(self._changes.changed[:ROUND]):
            if n % 20 == 0:
                told(n)
            fates[self._take(found)] += 1
        is_last = len(self._changes.changed) <= ROUND
        removed = sorted(self._waiting) if is_last else []  # later rounds may find that they were moved
        for path in removed:
            self._remove(path)
        if self._columns[0]:
            _write(self._db, self._segment, self._columns)
            _merge(self._db)
        if removed or self._changes.left or fates.total() > fates["kept"]:
            self._db.next("generation")
        told(min(ROUND, len(self._changes.changed)))
        parsed, moved = done.parsed + fates["parsed"], done.moved + fates["moved"]
        return Refreshed(parsed, moved, done.removed + len(removed), done.files, done.notes)

    def _take(self, found: Found) -> str:
        """Take one file in: set aside, kept as it was, moved, or parsed."""
        checked = time_ns()
        text = self._read(found.path)
        known = found.path in self._changes.known
        if isinstance(text, Aside):
            return self._set_aside(found, text.reason, checked)
        if found.path in self._changes.aside:
            self._db.do("DELETE FROM aside WHERE path = ?", (found.path,))
        same, moved = self._before(found, text, known)
        if known and not same:
            self._remove(found.path)
        old = same or moved
        if old is None:
            self._parse(found, text, checked)
            return "parsed"
        self._waiting.discard(old[1])
        self._db.do(
            "UPDATE files SET path = ?, size = ?, mtime = ?, checked = ?, role = ? WHERE id = ?",
            (found.path, found.size, found.mtime, checked, role_of(found.path), old[0]),
        )
        return "kept" if same else "moved"

    def _set_aside(self, found: Found, reason: str, checked: int) -> str:
        if found.path in self._changes.known:
            self._remove(found.path)
        before = self._db.rows("SELECT reason FROM aside WHERE path = ?", (found.path,))
        mtime = found.mtime if found.mtime < checked - SETTLED else -1  # looked at again until its time can be trusted
        self._db.do("REPLACE INTO aside VALUES (?, ?, ?, ?)", (found.path, reason, found.size, mtime))
        return "kept" if before == [(reason,)] else "aside"

    def _before(self, found: Found, text: Text, known: bool) -> tuple[_Row | None, _Row | None]:
        """The file itself with this content, and one that is gone and would be parsed to the same under this name."""
        if not known and not self._waiting:
            return None, None
        rows: list[_Row] = self._db.rows("SELECT id, path, language, role FROM files WHERE hash = ?", (text.hash,))
        same = next((row for row in rows if row[1] == found.path), None)
        language, is_test = language_of(found.path, text.text[:HEAD_CHARS]), role_of(found.path) == "test"
        moved = (row for row in rows if row[1] in self._waiting and row[2] == language and (row[3] == "test") == is_test)
        return same, next(moved, None)

    def _parse(self, found: Found, text: Text, checked: int) -> None:
        role, language = role_of(found.path), language_of(found.path, text.text[:HEAD_CHARS])
        parsed = parse(text.text, language)
        parts = chunks(parsed, text.text, by_name=role == "test")
        file, first = self._db.next("file"), self._db.next("definition", len(parts))
        rows, lengths = [], []
        nth: dict[str, int] = {}
        for id, part in enumerate(parts, first):
            name = part.definition.qualified
            lengths.append(self._segment.add(id, analysis.counted(part.text), _name_terms(name)))
            self._segment.add_uses(id, part.uses)
            nth[name] = nth.get(name, 0) + 1
            rows.append(_row(id, file, part, nth[name], first))
        values = (range(first, first + len(parts)), [file] * len(parts), lengths)
        for column, more in zip(self._columns, values, strict=True):
            column.extend(more)
        self._db.do_all(f"INSERT INTO definitions VALUES ({','.join('?' * 12)})", rows)
        lines = parts[0].definition.end if text.text else 0
        stored = (text.hash, found.size, found.mtime, checked, language, role, lines)
        said = (json.dumps(parsed.imports), parsed.broken, " ".join(text.redacted))
        self._db.do(f"INSERT INTO files VALUES ({','.join('?' * 12)})", (file, found.path, *stored, *said))

    def _remove(self, path: str) -> None:
        """Its postings stay until their segment is merged: nobody owns them any more."""
        for (id,) in self._db.rows("SELECT id FROM files WHERE path = ?", (path,)):
            self._db.do("DELETE FROM definitions WHERE file = ?", (id,))
            self._db.do("DELETE FROM files WHERE id = ?", (id,))


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
    used = "\n".join(f"{name}*{times}" for name, times in part.uses.items())
    return (id, file, one.name, one.qualified, nth, one.kind, one.line, one.end, one.signature, one.doc[:1000], parent, used)


# --- chunks -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chunk:
    """One document of the index."""

    definition: Definition
    text: str
    """The words that it is found by: those of its own lines."""
    uses: Mapping[str, int]
    """Names that its own lines refer to."""
    parent: int | None
    """The place of the enclosing chunk."""


def chunks(parsed: Parsed, text: str, by_name: bool = False) -> list[Chunk]:
    """The documents of a file, the file's own rest first.

    `by_name`: definitions are found by their names, their documents and what they use, and not by every word of their
    bodies. Tests are often most of a repository and answer few questions.
    """
    lines = text.splitlines() or [""]
    definitions, places = _documents(parsed.definitions)
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
    types = {one.qualified: place for place, one in enumerate(definitions, 1) if one.kind not in _CALLABLE}
    for place, definition in enumerate((whole, *definitions)):
        # A method that stands apart from its type (Go, Rust, C++) belongs to it all the same.
        apart = types.get(definition.qualified.rpartition(".")[0])
        parent = apart if definition.parent is None else places[definition.parent]
        words = f"{definition.doc} {' '.join(uses[place])}" if by_name else "\n".join(own[place])
        out.append(Chunk(definition, words, uses[place], parent))
    return out


def _documents(definitions: Sequence[Definition]) -> tuple[list[Definition], dict[int, int]]:
    """Definitions that are documents of their own, and the place of each among them; the file's rest has place 0."""
    place: dict[int, int] = {}
    kept: list[Definition] = []
    for n, definition in enumerate(definitions):
        parent = definition.parent
        if parent is not None and parent not in place:
            continue  # inside of one that was left to its function
        if definition.kind == "key" and definition.end - definition.line < KEY_LINES:
            continue
        if parent is not None:
            outer = definitions[parent]
            if outer.kind in _CALLABLE and outer.end - outer.line < LONG:
                continue
        kept.append(definition)
        place[n] = len(kept)
    return kept, place


def _owners(definitions: Sequence[Definition], number: int) -> list[int]:
    """For each line, whose it is: 0 is the file's rest. Inner definitions come after outer ones and take theirs."""
    owner = [0] * number
    for place, definition in enumerate(definitions, 1):
        first, last = max(1, definition.line), min(definition.end, number)
        owner[first - 1 : last] = [place] * max(0, last - first + 1)
    return owner


# --- segments ------------------------------------------------------------------------------------------------------


def _write(db: Database, segment: Segment, columns: Columns) -> None:
    number = db.next("segment")
    db.do("INSERT INTO segments VALUES (?, ?, ?, ?)", (number, *(column.tobytes() for column in columns)))
    rows = ((space, term, number, blob) for space, term, blob in segment.rows())
    db.do_all("INSERT INTO postings VALUES (?, ?, ?, ?)", rows)


def _merge(db: Database) -> None:
    """Many small segments become one; the large ones, which cost the most to copy, stay."""
    sizes = db.rows("SELECT id, length(ids) FROM segments")
    if len(sizes) <= SEGMENTS:
        return
    largest = max(size for _, size in sizes)
    small = [id for id, size in sizes if size * 2 < largest] or [id for id, _ in sizes]
    marks = ",".join(map(str, small))
    alive = {id for (id,) in db.rows("SELECT id FROM files")}
    columns: Columns = (array("I"), array("I"), array("I"))
    for packed in db.rows(f"SELECT ids, files, lengths FROM segments WHERE id IN ({marks})"):
        for row in zip(*map(postings.ints, packed), strict=True):
            if row[1] in alive:
                for column, value in zip(columns, row, strict=True):
                    column.append(value)
    kept = frozenset(columns[0])
    lists: dict[tuple[int, str], list[bytes]] = {}
    for space, term, blob in db.rows(
        f"SELECT space, term, list FROM postings WHERE segment IN ({marks}) ORDER BY 1, 2, segment"
    ):
        lists.setdefault((space, term), []).append(blob)
    number = db.next("segment")
    joined = ((space, term, number, postings.merged(blobs, kept)) for (space, term), blobs in lists.items())
    db.do(f"DELETE FROM postings WHERE segment IN ({marks})")
    db.do_all("INSERT INTO postings VALUES (?, ?, ?, ?)", (row for row in joined if row[3]))
    db.do(f"DELETE FROM segments WHERE id IN ({marks})")
    db.do("INSERT INTO segments VALUES (?, ?, ?, ?)", (number, *(column.tobytes() for column in columns)))


def _note_walk(db: Database, walked: Walked) -> None:
    """What the walk itself set aside, and where the history stands."""
    db.do("DELETE FROM aside WHERE mtime IS NULL")
    rows = ((one.path, one.reason) for one in walked.aside)
    db.do_all("INSERT OR IGNORE INTO aside VALUES (?, ?, NULL, NULL)", rows)
    if db.meta("head") != walked.head:
        db.set("history", history(db.root, walked.head).dumps() if walked.git else None)
        db.set("head", walked.head)
    db.next("generation")
