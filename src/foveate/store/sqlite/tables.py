"""The tables of an SQLite store as plain rows: SQLite's values are the common form, and a row is a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import apsw

from foveate.store.tables import RESIDUE, STAMPS, Row, SQLTables, quoted


class SQLiteTables(SQLTables):
    """Inside one transaction of a connection."""

    def __init__(self, connection: apsw.Connection, version: int) -> None:
        self._connection = connection
        self._version = version

    def columns(self, table: str) -> tuple[str, ...]:
        return tuple(name for (name,) in self._execute("select name from pragma_table_info(?) order by cid", (table,)))

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        names, marks = ", ".join(map(quoted, columns)), ", ".join("?" * len(columns))
        self._connection.executemany(f"insert into {quoted(table)} ({names}) values ({marks})", rows)

    def refuse_others(self, refuse: bool) -> None:
        # Every transaction looks at this number anyway: below 0, no version of foveate knows the schema.
        self._connection.pragma("user_version", -self._version if refuse else self._version)

    def stamps(self) -> dict[str, str]:
        names = ", ".join("?" * len(STAMPS))
        return dict(self._execute(f"select name, value from meta where name in ({names})", STAMPS))

    def settle(self, stamps: Mapping[str, str], *, deleted: bool, back: bool = False) -> None:
        # What is not known by a stamp is indexed anew when the file is next opened, and a residue is then seen to.
        self._connection.executemany("delete from meta where name = ?", [(name,) for name in STAMPS])
        self.insert("meta", ("name", "value"), list(stamps.items()))
        self._execute(
            "update projects set docs = "
            "max(docs, coalesce((select max(doc) from records r where r.project = projects.project), 0))"
        )
        if deleted:
            self._execute("insert or replace into meta (name, value) values (?, 'copied')", (RESIDUE,))

    def _execute(self, text: str, values: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(text, values).fetchall()
