"""What can be read of a damaged SQLite file: row by row, past the pages that cannot.

Comes in: a connection to the damaged file and one to a fresh store. It repairs nothing in place.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import apsw

CARRIED = {
    "projects": True, "kinds": True, "records": True, "links": False, "history": True, "spaces": True, "vectors": True,
    "receipts": True, "receipt_items": False,
}  # fmt: skip
"""What a salvage carries over, and whether rows have numbers, by which it gets past a damaged page."""

FAR = 2**20
"""Rows in a row that cannot be read, after which a salvage looks no further."""


def carry_all(source: apsw.Connection, target: apsw.Connection) -> None:
    """Copy every table that cannot be made anew from the others."""
    for table, has_rowid in CARRIED.items():
        _carry(source, target, table, has_rowid)


def _carry(source: apsw.Connection, target: apsw.Connection, table: str, has_rowid: bool) -> None:
    """Copy a table row by row, past the rows that cannot be read."""
    known = _columns(source, table)
    columns = [name for name in _columns(target, table) if name in known]  # the file may be of an earlier schema
    if not columns:
        return
    insert = f"insert or ignore into {table} ({','.join(columns)}) values ({','.join('?' * len(columns))})"
    for row in _readable(source, table, ",".join(columns), has_rowid):
        with suppress(apsw.ConstraintError, apsw.MismatchError):
            target.execute(insert, row)


def _columns(connection: apsw.Connection, table: str) -> list[str]:
    try:
        return [row[1] for row in connection.execute(f"pragma table_info({table})")]
    except apsw.Error:  # nothing of the file can be read
        return []


def _readable(source: apsw.Connection, table: str, columns: str, has_rowid: bool) -> Iterator[tuple[Any, ...]]:
    number, order = ("rowid", "where rowid > ? order by rowid") if has_rowid else ("0", "where ? = 0")
    at: int | None = 0
    while at is not None:
        last = at
        try:
            for row in source.execute(f"select {number}, {columns} from {table} {order}", (at,)):
                last = row[0]
                yield row[1:]
            return
        except (apsw.Error, UnicodeError):
            at = _beyond(source, table, last) if has_rowid else None


def _beyond(source: apsw.Connection, table: str, at: int) -> int | None:
    """The number after which rows can be read again, past the damage that follows `at`."""

    def readable(after: int) -> bool:
        try:
            source.execute(f"select rowid from {table} where rowid > ? limit 1", (after,)).fetchall()
        except apsw.Error:
            return False
        return True

    step = 1
    while not readable(at + step):
        step *= 2
        if step > FAR:
            return None
    low, high = at + step // 2, at + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if readable(middle) else (middle, high)
    return high
