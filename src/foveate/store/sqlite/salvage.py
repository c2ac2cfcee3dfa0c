"""Copy the readable rows of a damaged SQLite file into a new one. Nothing is repaired in place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import apsw

SALVAGED_TABLES = {
    "projects": True, "kinds": True, "records": True, "links": False, "history": True, "spaces": True, "vectors": True,
    "receipts": True, "receipt_items": False,
}  # fmt: skip
"""Tables that cannot be rebuilt from others, and whether their rows have a rowid. With it, rows after a damaged page can be
found."""

MAX_UNREADABLE_ROWS = 2**20
"""Length of a gap in the rowids at which the rest of a table is given up."""


def salvage_tables(source: apsw.Connection, target: apsw.Connection) -> None:
    """Copy the readable rows of every table that cannot be rebuilt."""
    for table, has_rowid in SALVAGED_TABLES.items():
        _salvage_table(source, target, table, has_rowid)


def _salvage_table(source: apsw.Connection, target: apsw.Connection, table: str, has_rowid: bool) -> None:
    readable = _columns(source, table)
    # The file may have an earlier schema, with fewer columns.
    columns = [name for name in _columns(target, table) if name in readable]
    if not columns:
        return
    insert = f"insert or ignore into {table} ({','.join(columns)}) values ({','.join('?' * len(columns))})"
    for row in _readable_rows(source, table, ",".join(columns), has_rowid):
        # A damaged page can yield values that the schema forbids. Such a row is lost, the others are not.
        with suppress(apsw.ConstraintError, apsw.MismatchError):
            target.execute(insert, row)


def _columns(connection: apsw.Connection, table: str) -> list[str]:
    try:
        return [row[1] for row in connection.execute(f"pragma table_info({table})")]
    except apsw.Error:  # the schema itself cannot be read
        return []


def _readable_rows(source: apsw.Connection, table: str, columns: str, has_rowid: bool) -> Iterator[tuple[Any, ...]]:
    # Both forms take one parameter, so that one query serves tables with and without a rowid.
    number, order = ("rowid", "where rowid > ? order by rowid") if has_rowid else ("0", "where ? = 0")
    after: int | None = 0
    while after is not None:
        last = after
        try:
            for row in source.execute(f"select {number}, {columns} from {table} {order}", (after,)):
                last = row[0]
                yield row[1:]
            return
        except (apsw.Error, UnicodeError):
            after = _next_readable(source, table, last) if has_rowid else None


def _next_readable(source: apsw.Connection, table: str, rowid: int) -> int | None:
    """Return the rowid after which rows can be read again, past the damage that follows `rowid`.

    A damaged page hides hundreds of rows, so the distance is doubled and then halved instead of trying every rowid.
    """

    def is_readable(after: int) -> bool:
        try:
            source.execute(f"select rowid from {table} where rowid > ? limit 1", (after,)).fetchall()
        except apsw.Error:
            return False
        return True

    distance = 1
    while not is_readable(rowid + distance):
        distance *= 2
        if distance > MAX_UNREADABLE_ROWS:
            return None
    low, high = rowid + distance // 2, rowid + distance
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_readable(middle) else (middle, high)
    return high
