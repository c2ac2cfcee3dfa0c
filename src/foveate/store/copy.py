"""A whole store copied into another, whatever databases they are: table by table, page by page, proved equal at the end.

Comes in: two open stores. Goes out: the target with the source's rows as one snapshot had them: ids, versions, history,
links, receipts, vectors, the secret. A copy makes the target the same: a page that is equal already is left alone. So one
that was cut short goes on where it was when it is run again, and has nothing to remember.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Protocol

from foveate.errors import Conflict, StoreError
from foveate.store.sql.queries import AGAIN
from foveate.store.tables import COPYING, KEYS, Row, Span, Tables

PAGE = 5000
"""Rows that are compared and written together: a few megabytes, and a commit that is worth its cost."""

COPIED = tuple(table for table in KEYS if table != "meta")
HELD = tuple(table for table in COPIED if table not in ("projects", "kinds", "spaces"))
"""Tables that hold what somebody has written."""


Seen = list[Row]
"""What tells whether a store is still the one that was looked at (`seen`)."""


class Changed(Conflict):
    """The target is not what it was when it was looked at: nothing was copied into it."""


class Overtaken(Conflict):
    """Another copy into the target has begun since this one did: what it holds is not this one's to change."""


class Movable(Protocol):
    """What a store offers to be copied, from or to."""

    @property
    def label(self) -> str:
        """Where it is, fit to be shown: no password."""
        ...

    def tables(self, *, write: bool = False) -> AbstractContextManager[Tables]:
        """One snapshot to read, or one transaction to write, also where a copy is unfinished."""
        ...


@dataclass(frozen=True, slots=True)
class Moved:
    """One table of a copy: its rows, how many had to be written, and a hash over all of them."""

    rows: int
    written: int
    hash: str


Progress = Callable[[str, int, int], None]
"""Told what is being done, how many rows are done and how many there are."""


def copy(
    source: Movable,
    target: Movable,
    *,
    replace: bool = False,
    since: Seen | None = None,
    name: str = "",
    back: bool = False,
    progress: Progress | None = None,
) -> dict[str, Moved]:
    """Make the target hold what the source holds, and prove it; what was moved, by table.

    `since`: only if the target is still what was seen then. `name`: what the copy is known by while it is unfinished.
    `back`: the source is what the target was, so that whoever may see a project of it goes on to.
    """
    with source.tables() as left:
        journey = _Journey(left, target, progress or (lambda doing, done, total: None))
        known, journey.mark = _claim(left, target, replace, since, name or os.urandom(8).hex())
        stamps = left.stamps()
        done = {table: journey.move(table) for table in COPIED}
        journey.prove(done)
        with journey.writing() as right:
            _finish(right, stamps, known, deleted=journey.deleted, back=back)
    return done


def is_empty(tables: Tables) -> bool:
    """Whether nobody has written anything yet."""
    return not any(tables.page(Span(table), KEYS[table], 1) for table in HELD)


def seen(tables: Tables) -> Seen:
    """An unfinished copy by its name; else whether nobody has written yet, and how often each project was written to. A
    receipt does not count in a store that holds something: agents write them all the time."""
    if (mark := _meta(tables).get(COPYING)) is not None:
        return seen_as(mark.rpartition(" ")[2])
    return [(is_empty(tables),), *tables.page(Span("projects"), ("project", "revision"))]


def seen_as(name: str) -> Seen:
    """A store that holds the unfinished copy of this name."""
    return [(name,)]


@dataclass(slots=True)
class _Journey:
    """The rows of one snapshot on their way to another store."""

    left: Tables
    target: Movable
    progress: Progress
    deleted: bool = False
    mark: str = ""
    """What this copy wrote into the target: another that begins writes its own."""
    _columns: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        with self.target.tables() as right:
            self._columns = {table: _common(table, self.left, right) for table in COPIED}

    @contextmanager
    def writing(self) -> Iterator[Tables]:
        """The target, as long as this copy is the one that fills it."""
        with self.target.tables(write=True) as right:
            if _meta(right).get(COPYING) != self.mark:
                raise Overtaken(f"Another copy into {self.target.label!r} has begun since, or is done. This one stops.")
            yield right

    def move(self, table: str) -> Moved:
        """Have the target's rows of a table be the source's."""
        digest, rows, written, total = blake2b(digest_size=16), 0, 0, self.left.count(table)
        with self.target.tables() as right:
            empty = not right.page(Span(table), KEYS[table], 1)
        stale = []
        for span, here in self._pages(table):
            rows += len(here)
            _hash(digest, here)
            if empty:
                written += self._write(table, here)
            elif self._cleared(span, here):
                stale.append(span)
            self.progress(f"{'copying' if empty else 'comparing'} {table}", rows, total)
        # Only now that whatever differs is gone from the target: no old row is in the way of a new one.
        for span in stale:
            written += self._write(table, self._read(span))
            self.progress(f"copying {table}", written, total)
        return Moved(rows, written, digest.hexdigest())

    def prove(self, done: Mapping[str, Moved]) -> None:
        """Read the target once more, in one snapshot, and compare counts and hashes."""
        with self.target.tables() as right:
            for table, moved in done.items():
                digest, rows, after = blake2b(digest_size=16), 0, None
                while page := right.page(Span(table, after), self._columns[table], PAGE):
                    _hash(digest, page)
                    rows += len(page)
                    after = self._key(table, page[-1])
                    self.progress(f"checking {table}", rows, moved.rows)
                if (rows, digest.hexdigest()) != (moved.rows, moved.hash):
                    raise Conflict(f"Table {table!r} of {self.target.label!r} is not what was copied into it. {AGAIN}")

    def _pages(self, table: str) -> Iterator[tuple[Span, list[Row]]]:
        """The source's rows, page by page; the last one is empty and open at its end."""
        after: Row | None = None
        while True:
            rows = self.left.page(Span(table, after), self._columns[table], PAGE)
            last = self._key(table, rows[-1]) if rows else None
            yield Span(table, after, last), rows
            if last is None:
                return
            after = last

    def _read(self, span: Span) -> list[Row]:
        return self.left.page(span, self._columns[span.table]) if span.last is not None else []

    def _cleared(self, span: Span, here: list[Row]) -> bool:
        """Whether the target lacks these rows; whatever it has in their place is deleted."""
        with self.target.tables() as right:
            held = right.page(span, self._columns[span.table], None if span.last else 1)
        if held and held != here:
            self.deleted = True
            with self.writing() as right:
                right.delete(span)
        return held != here

    def _write(self, table: str, rows: list[Row]) -> int:
        if rows:
            with self.writing() as right:
                right.insert(table, self._columns[table], rows)
        return len(rows)

    def _key(self, table: str, row: Row) -> Row:
        columns = self._columns[table]
        return tuple(row[columns.index(name)] for name in KEYS[table])


def _common(table: str, left: Tables, right: Tables) -> tuple[str, ...]:
    """The columns that are copied. `projects` may hold counts of a database's own besides; other tables are the same."""
    here, there = left.columns(table), right.columns(table)
    if table != "projects" and set(here) != set(there):
        raise StoreError(f"The stores keep table {table!r} in different shapes; run `foveate migrate` on both, then copy.")
    return tuple(name for name in here if name in there)


def _hash(digest: Any, rows: Sequence[Row]) -> None:
    """Python writes a value in one way only, whichever database it came from."""
    digest.update("".join(map(repr, rows)).encode("utf-8", "surrogatepass"))


def _claim(left: Tables, target: Movable, replace: bool, since: Seen | None, name: str) -> tuple[int, str]:
    """Mark the target as one that is being copied to; the highest number by which anybody knows what it held before, and
    the mark."""
    source = blake2b(_meta(left)["secret"].encode(), digest_size=8).hexdigest()
    with target.tables(write=True) as right:
        right.refuse_others(True)  # first, so that no writer is under way when it is looked at
        if since is not None and seen(right) != since:
            raise Changed(f"{target.label!r} was written to since it was looked at; nothing was changed.")
        meta = _meta(right)
        begun, before, _ = (*meta.get(COPYING, "").split(" "), "", "")[:3]
        if begun != source and not replace and (begun or not is_empty(right)):
            what = "an unfinished copy of another store" if begun else "records or receipts already"
            raise Conflict(f"{target.label!r} holds {what}. Pass --replace to have them replaced; nothing was changed.")
        known = int(before) if begun == source else max(right.highest(), int(before or -1))
        mark = f"{source} {known} {name}"
        _set_meta(right, {**meta, COPYING: mark})
    return known, mark


def _finish(right: Tables, stamps: Mapping[str, str], known: int, *, deleted: bool, back: bool) -> None:
    """The target is a store of its own from now on."""
    _set_meta(right, {name: value for name, value in _meta(right).items() if name != COPYING})
    if known >= 0:
        right.raise_above(known)
    right.settle(stamps, deleted=deleted, back=back)
    right.refuse_others(False)


def _meta(tables: Tables) -> dict[str, str]:
    return dict(tables.page(Span("meta"), ("name", "value")))


def _set_meta(tables: Tables, values: Mapping[str, str]) -> None:
    tables.delete(Span("meta"))
    tables.insert("meta", ("name", "value"), list(values.items()))
