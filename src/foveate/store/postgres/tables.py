"""The tables of a PostgreSQL store as plain rows, with SQLite's values: a vector is the bytes of its half floats."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from foveate.store.postgres.connections import MIGRATING, Connection
from foveate.store.tables import STAMPS, Row, Span, SQLTables, quoted

HEAD = 4
"""Bytes before the numbers of a vector as pgvector sends it: how many there are, and nothing."""

COUNTED = {"projects": "project", "kinds": "kind", "spaces": "space"}
"""Tables whose rows the database numbers itself."""


class PostgresTables(SQLTables):
    """Inside one transaction of a connection, for the owner of the tables: who sees only some projects cannot copy."""

    def __init__(self, connection: Connection, version: int) -> None:
        self._connection = connection
        self._version = version

    def columns(self, table: str) -> tuple[str, ...]:
        found = self._execute(
            "select attname::text from pg_attribute where attrelid = to_regclass(?) and attnum > 0 and not attisdropped "
            "order by attnum",
            (table,),
        )
        return tuple(name for (name,) in found)

    def page(self, span: Span, columns: Sequence[str], limit: int | None = None) -> list[Row]:
        rows = super().page(span, columns, limit)
        return _converted(rows, columns, _stored) if span.table == "vectors" else rows

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        names = ", ".join(map(quoted, columns))
        vectors = table == "vectors"
        text = f"copy {quoted(table)} ({names}) from stdin{' (format binary)' if vectors else ''}"
        with self._connection.cursor().copy(text) as copy:
            if vectors:
                copy.set_types(["bytea" if name == "vector" else "int8" for name in columns])
                rows = _converted(rows, columns, _sent)
            for row in rows:
                copy.write_row(row)

    def refuse_others(self, refuse: bool) -> None:
        self._execute("select pg_advisory_xact_lock(?)", (MIGRATING,))  # writers share it
        version = -self._version if refuse else self._version
        self._execute("update meta set value = ? where name = 'schema'", (str(version),))

    def stamps(self) -> dict[str, str]:
        names = ", ".join("?" * len(STAMPS))
        found: dict[str, str] = dict(self._execute(f"select name, value from meta where name in ({names})", STAMPS))
        makers = self._execute("select distinct made_by from projects")
        if len(makers) == 1 and makers[0][0].count("/") == 2:
            found |= zip(("analyser", "renderer", "counter"), makers[0][0].split("/"), strict=True)
        return found

    def settle(self, stamps: Mapping[str, str], *, deleted: bool, back: bool = False) -> None:
        for name in ("counter", "secret"):
            if name in stamps:
                self._execute("update meta set value = ? where name = ?", (stamps[name], name))
        makers = [stamps.get(name, "") for name in ("analyser", "renderer", "counter")]
        made_by = "/".join(makers) if all(makers) else ""  # then each project is indexed anew when it is first used
        self._execute(
            "update projects p set made_by = ?, "
            "docs = greatest(docs, (select max(r.doc) from records r where r.project = p.project))",
            (made_by,),
        )
        if deleted and not back:  # numbers of projects may mean others now: nobody sees by an old grant what is not his
            self._execute("delete from members")
        for table, column in COUNTED.items():
            self._execute(
                f"select setval(pg_get_serial_sequence('{table}', '{column}'), greatest(max({column}), 1), "
                f"max({column}) is not null) from {table}"
            )

    def _shown(self, table: str, column: str) -> str:
        return "halfvec_send(vector)" if (table, column) == ("vectors", "vector") else quoted(column)

    def _execute(self, text: str, values: Sequence[Any] = ()) -> list[Row]:
        numbers, parts = count(1), text.split("?")
        numbered = parts[0] + "".join(f"${next(numbers)}{part}" for part in parts[1:])
        cursor = self._connection.execute(numbered, values, binary=True)
        return cursor.fetchall() if cursor.description else []


def _converted(rows: Sequence[Row], columns: Sequence[str], convert: Any) -> list[Row]:
    at = list(columns).index("vector") if "vector" in columns else -1
    return [(*row[:at], convert(row[at]), *row[at + 1 :]) for row in rows] if at >= 0 else list(rows)


def _stored(sent: bytes) -> bytes:
    """A vector as SQLite keeps it, from what pgvector sends: the least byte first, not last."""
    return _swapped(sent[HEAD:])


def _sent(stored: bytes) -> bytes:
    return (len(stored) // 2).to_bytes(2) + bytes(HEAD - 2) + _swapped(stored)


def _swapped(halves: bytes) -> bytes:
    numbers = array("H", halves)
    numbers.byteswap()
    return numbers.tobytes()
