"""Every table of a store as plain rows, of all projects, inside one transaction: what copying needs of a database.

Comes in: a span of a table's keys. Goes out: its rows in the order of the key, with the same values on every database
(numbers, text, bytes, None). No rule of state is known here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Row = tuple[Any, ...]

KEYS: dict[str, tuple[str, ...]] = {
    "projects": ("project",),
    "kinds": ("kind",),
    "spaces": ("space",),
    "records": ("project", "id"),
    "history": ("project", "id", "version"),
    "links": ("project", "src", "name", "dst"),
    "names": ("project", "name", "doc"),
    "postings": ("project", "term", "kind", "field", "first"),
    "volumes": ("project", "kind"),
    "vectors": ("project", "space", "doc"),
    "segments": ("project", "space"),
    "receipts": ("project", "id"),
    "receipt_items": ("project", "record", "receipt"),
    "meta": ("name",),
}
"""The tables and the unique key by which each is read: the same order on every database, and an index behind it."""

OF_PROJECTS = tuple(table for table, key in KEYS.items() if key[0] == "project")
"""The tables whose rows belong to one project each, `projects` itself first."""

COPYING = "copying"
"""The mark in `meta` that the store holds a copy that is not finished, and of what."""

SECRET = "secret"
"""The name in `meta` of what is drawn once for a store and never changes."""

STAMPS = ("analyser", "renderer", "counter", SECRET)
"""What a store says of its rows: by what they were indexed and counted, and what their marks are made from."""

RESIDUE = "residue"
"""The mark in `meta` that something was forgotten and its bytes may still be in the file."""


@dataclass(frozen=True, slots=True)
class Span:
    """The rows of a table whose keys come after one and reach up to another; None is open."""

    table: str
    after: Row | None = None
    last: Row | None = None

    @property
    def key(self) -> tuple[str, ...]:
        return KEYS[self.table]


class Tables(Protocol):
    """The tables of a store inside one transaction."""

    def columns(self, table: str) -> tuple[str, ...]: ...
    def count(self, table: str) -> int: ...
    def page(self, span: Span, columns: Sequence[str], limit: int | None = None) -> list[Row]: ...
    def delete(self, span: Span) -> None: ...
    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None: ...
    def highest(self) -> int:
        """The highest number by which anybody may know what he holds of this store in memory; -1 where it has none."""
        ...

    def raise_above(self, known: int) -> None:
        """Have all such numbers be higher than `known`, so that nobody takes rows that were replaced for what he holds."""
        ...

    def refuse_others(self, refuse: bool) -> None:
        """Wait for writers and have every other transaction refused while a copy is unfinished; or let them in again."""
        ...

    def stamps(self) -> dict[str, str]:
        """What made the rows: the names of `STAMPS`, as far as one value holds for all of them."""
        ...

    def settle(self, stamps: Mapping[str, str], *, deleted: bool, back: bool = False) -> None:
        """At the end: say what made the rows, go on counting where they end, see to the bytes of deleted ones. `back`: the
        projects are again those that they were."""
        ...


class SQLTables:
    """What is the same in any SQL. A dialect brings `_execute`, where `?` stands for a value, and the rest of `Tables`."""

    def _execute(self, text: str, values: Sequence[Any] = ()) -> list[Row]:
        raise NotImplementedError

    def _shown(self, table: str, column: str) -> str:
        """A column as it is read, where the database's own form is not the common one."""
        return quoted(column)

    def count(self, table: str) -> int:
        return int(self._execute(f"select count(*) from {quoted(table)}")[0][0])

    def highest(self) -> int:
        text = (
            "select max(n) from (select max(revision) as n from projects union all select max(latest) from segments) known"
        )
        found = self._execute(text)[0][0]
        return -1 if found is None else int(found)

    def raise_above(self, known: int) -> None:
        by = known + 1 + max(self.highest(), 0)  # more than any has, so that none meets another on its way up
        self._execute("update projects set revision = revision + ?", (by,))
        self._execute("update vectors set seq = seq + ?", (by,))
        self._execute("update segments set latest = latest + ?, removed = latest + ?", (by, by))

    def page(self, span: Span, columns: Sequence[str], limit: int | None = None) -> list[Row]:
        where, values = self._where(span)
        shown = ", ".join(self._shown(span.table, column) for column in columns)
        text = f"select {shown} from {quoted(span.table)}{where} order by {', '.join(map(quoted, span.key))}"
        return self._execute(text if limit is None else f"{text} limit {limit:d}", values)

    def delete(self, span: Span) -> None:
        where, values = self._where(span)
        self._execute(f"delete from {quoted(span.table)}{where}", values)

    def _where(self, span: Span) -> tuple[str, Row]:
        key = f"({', '.join(map(quoted, span.key))})"
        marks = f"({', '.join('?' * len(span.key))})"
        parts = [f"{key} > {marks}"] * (span.after is not None) + [f"{key} <= {marks}"] * (span.last is not None)
        return f" where {' and '.join(parts)}" if parts else "", (*(span.after or ()), *(span.last or ()))


def quoted(name: str) -> str:
    """A name that may be a word of SQL: `user` is one."""
    return f'"{name}"'
