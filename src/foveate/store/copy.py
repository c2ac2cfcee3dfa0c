"""Copy a whole store into another, between files and PostgreSQL databases.

The target is written in one transaction. Until that is complete and verified, other processes read its old content. A copy
that is killed or fails changes nothing and can be run again. `docs/decisions/033` has the reasons.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from hashlib import blake2b
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol

from foveate.errors import Conflict, StoreError
from foveate.store.protocol import NOT_EMPTY_MESSAGE
from foveate.store.sql.queries import META_RESIDUE, META_STAMPS

if TYPE_CHECKING:
    import apsw
    import psycopg

Row = tuple[Any, ...]

TABLE_KEYS: dict[str, tuple[str, ...]] = {
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
}
"""The tables that are copied, with the unique key by which each is read. Every database has an index on the key and returns
the rows in the same order, so that both sides can be hashed while they are read."""

PROJECT_TABLES = tuple(table for table, key in TABLE_KEYS.items() if key[0] == "project")
"""Tables whose rows belong to one project each, `projects` itself first."""

CONTENT_TABLES = tuple(table for table in TABLE_KEYS if table not in ("projects", "kinds", "spaces"))
"""Tables with content. A store is empty if these are, even if projects and kinds are registered."""

PAGE_ROWS = 5000
"""Rows that are read and written together. They take a few megabytes of memory."""

POSTGRES_NUMBERED = {"projects": "project", "kinds": "kind", "spaces": "space"}
"""Tables whose rows PostgreSQL numbers itself, with the column of the number."""

VECTOR_HEADER_BYTES = 4
"""Bytes before the numbers of a vector in pgvector's binary format: two for the dimension and two unused."""


class CopyableStore(Protocol):
    """A store that can be copied from or to."""

    @property
    def label(self) -> str:
        """The path or URL without a password, for messages."""
        ...

    def tables(self, *, write: bool = False) -> AbstractContextManager[Tables]:
        """Open one snapshot of every table, or one transaction during which no other process can write."""
        ...


@dataclass(frozen=True, slots=True)
class TableCopyResult:
    """The rows of one copied table, and a hash over all of them."""

    rows: int
    hash: str


Progress = Callable[[str, int, int], None]
"""Called with a description of the current step, the rows that are done, and the rows in total."""


def copy_store(
    source: CopyableStore, target: CopyableStore, *, replace: bool = False, progress: Progress | None = None
) -> dict[str, TableCopyResult]:
    """Replace the target's content by the source's and verify it. Return the number of rows and a hash for each table."""
    with source.tables() as source_tables, target.tables(write=True) as target_tables:
        if not replace and not has_no_content(target_tables):
            raise Conflict(f"{target.label!r} {NOT_EMPTY_MESSAGE}")
        return copy_tables(source_tables, target_tables, progress=progress)


def copy_tables(source: Tables, target: Tables, *, progress: Progress | None = None) -> dict[str, TableCopyResult]:
    """Copy every table. Both stores must have a transaction open already."""
    progress = progress or (lambda step, done, total: None)
    # The highest number is read before the old rows are deleted, because other processes know the store by it.
    replaced, highest_known = not has_no_content(target), target.max_change_number()
    columns = {table: _common_columns(table, source, target) for table in TABLE_KEYS}
    for table in TABLE_KEYS:
        target.clear(table)
    results = {table: _copy_table(source, target, table, columns[table], progress) for table in TABLE_KEYS}
    for table, copied in results.items():
        if _hash_table(target, table, columns[table], copied.rows, progress) != copied:
            raise StoreError(f"Table {table!r} differs after copying. Nothing was changed. Check the disk and copy again.")
    if highest_known >= 0:
        target.raise_change_numbers(highest_known)
    target.finalize(source.stamps(), replaced=replaced)
    return results


def has_no_content(tables: Tables) -> bool:
    """Return whether the store has no records, receipts or other content yet."""
    return not any(tables.page(table, TABLE_KEYS[table], None, 1) for table in CONTENT_TABLES)


def _copy_table(source: Tables, target: Tables, table: str, columns: tuple[str, ...], progress: Progress) -> TableCopyResult:
    digest, done, total = blake2b(digest_size=16), 0, source.count(table)
    for rows in _pages(source, table, columns):
        target.insert(table, columns, rows)
        _update(digest, rows)
        done += len(rows)
        progress(f"copying {table}", done, total)
    return TableCopyResult(done, digest.hexdigest())


def _hash_table(tables: Tables, table: str, columns: tuple[str, ...], total: int, progress: Progress) -> TableCopyResult:
    digest, done = blake2b(digest_size=16), 0
    for rows in _pages(tables, table, columns):
        _update(digest, rows)
        done += len(rows)
        progress(f"checking {table}", done, total)
    return TableCopyResult(done, digest.hexdigest())


def _pages(tables: Tables, table: str, columns: tuple[str, ...]) -> Iterator[list[Row]]:
    key = [columns.index(name) for name in TABLE_KEYS[table]]
    after: Row | None = None
    while rows := tables.page(table, columns, after, PAGE_ROWS):
        yield rows
        after = tuple(rows[-1][n] for n in key)


def _common_columns(table: str, source: Tables, target: Tables) -> tuple[str, ...]:
    """Return the columns to copy. Only `projects` may have others, because each database keeps counters of its own there."""
    source_columns, target_columns = source.columns(table), target.columns(table)
    if table != "projects" and set(source_columns) != set(target_columns):
        raise StoreError(f"Table {table!r} differs in its columns. Run `foveate store maintain` on both stores.")
    return tuple(name for name in source_columns if name in target_columns)


def _update(digest: Any, rows: Sequence[Row]) -> None:
    # `repr` of a value is the same regardless of the database that it came from.
    digest.update("".join(map(repr, rows)).encode("utf-8", "surrogatepass"))


class Tables:
    """Every table of a store as plain rows, of all projects, inside one transaction.

    Values have the same types on every database: numbers, text, bytes and None. This class has what is the same in both SQL
    dialects. `?` is the placeholder for a value in `_execute`.
    """

    def columns(self, table: str) -> tuple[str, ...]:
        raise NotImplementedError

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        raise NotImplementedError

    def stamps(self) -> dict[str, str]:
        """Return the values of `META_STAMPS` that are the same for all rows."""
        names = ", ".join("?" * len(META_STAMPS))
        return dict(self._execute(f"select name, value from meta where name in ({names})", META_STAMPS))

    def finalize(self, stamps: Mapping[str, str], *, replaced: bool) -> None:
        """Write the stamps and continue numbering after the new rows. `replaced`: the store was not empty before."""
        raise NotImplementedError

    def count(self, table: str) -> int:
        return int(self._execute(f"select count(*) from {quote_identifier(table)}")[0][0])

    def page(self, table: str, columns: Sequence[str], after: Row | None, limit: int) -> list[Row]:
        """Return up to `limit` rows in the order of the table's key, beginning after a key."""
        selected = ", ".join(self._select_expression(table, column) for column in columns)
        key = ", ".join(map(quote_identifier, TABLE_KEYS[table]))
        where = "" if after is None else f" where ({key}) > ({', '.join('?' * len(after))})"
        text = f"select {selected} from {quote_identifier(table)}{where} order by {key} limit {limit:d}"
        return self._execute(text, after or ())

    def clear(self, table: str) -> None:
        self._execute(f"delete from {quote_identifier(table)}")

    def max_change_number(self) -> int:
        """Return the highest change number by which another process may have cached rows of this store, or -1."""
        text = (
            "select max(n) from (select max(revision) as n from projects union all select max(latest) from segments) known"
        )
        highest = self._execute(text)[0][0]
        return -1 if highest is None else int(highest)

    def raise_change_numbers(self, highest_known: int) -> None:
        """Raise all change numbers above `highest_known`, so that no process takes new rows for those that it has cached."""
        # The step is larger than every number in use, so that no row gets a number that another one still has.
        by = highest_known + 1 + max(self.max_change_number(), 0)
        self._execute("update projects set revision = revision + ?", (by,))
        self._execute("update vectors set seq = seq + ?", (by,))
        self._execute("update segments set latest = latest + ?, removed = latest + ?", (by, by))

    def _execute(self, text: str, values: Sequence[Any] = ()) -> list[Row]:
        raise NotImplementedError

    def _select_expression(self, table: str, column: str) -> str:
        """Return the SQL that reads a column in the form that both databases have."""
        return quote_identifier(column)


class SQLiteTables(Tables):
    """The tables of a SQLite store. Its values already have the common form."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def columns(self, table: str) -> tuple[str, ...]:
        return tuple(name for (name,) in self._execute("select name from pragma_table_info(?) order by cid", (table,)))

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        names, marks = ", ".join(map(quote_identifier, columns)), ", ".join("?" * len(columns))
        self._connection.executemany(f"insert into {quote_identifier(table)} ({names}) values ({marks})", rows)

    def finalize(self, stamps: Mapping[str, str], *, replaced: bool) -> None:
        # Without stamps, the index is rebuilt when the file is next opened.
        self._connection.executemany("delete from meta where name = ?", [(name,) for name in META_STAMPS])
        self.insert("meta", ("name", "value"), list(stamps.items()))
        self._execute(
            "update projects set docs = "
            "max(docs, coalesce((select max(doc) from records r where r.project = projects.project), 0))"
        )
        if replaced:
            # Bytes of the old rows may still be in the file. The mark makes the next opening rewrite it.
            self._execute("insert or replace into meta (name, value) values (?, 'copied')", (META_RESIDUE,))

    def _execute(self, text: str, values: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(text, values).fetchall()


class PostgresTables(Tables):
    """The tables of a PostgreSQL store, for their owner. Vectors are read as bytes of half floats, as SQLite stores them."""

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self._connection = connection

    def columns(self, table: str) -> tuple[str, ...]:
        rows = self._execute(
            "select attname::text from pg_attribute where attrelid = to_regclass(?) and attnum > 0 and not attisdropped "
            "order by attnum",
            (table,),
        )
        return tuple(name for (name,) in rows)

    def page(self, table: str, columns: Sequence[str], after: Row | None, limit: int) -> list[Row]:
        rows = super().page(table, columns, after, limit)
        return _convert_vectors(rows, columns, _from_pgvector) if table == "vectors" else rows

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        names, has_vectors = ", ".join(map(quote_identifier, columns)), table == "vectors"
        text = f"copy {quote_identifier(table)} ({names}) from stdin{' (format binary)' if has_vectors else ''}"
        with self._connection.cursor().copy(text) as copy:
            if has_vectors:
                copy.set_types(["bytea" if name == "vector" else "int8" for name in columns])
                rows = _convert_vectors(rows, columns, _to_pgvector)
            for row in rows:
                copy.write_row(row)

    def stamps(self) -> dict[str, str]:
        stamps = super().stamps()
        makers = self._execute("select distinct made_by from projects")
        if len(makers) == 1 and makers[0][0].count("/") == 2:
            stamps |= zip(("analyser", "renderer", "counter"), makers[0][0].split("/"), strict=True)
        return stamps

    def finalize(self, stamps: Mapping[str, str], *, replaced: bool) -> None:
        for name in ("counter", "secret"):
            if name in stamps:
                self._execute("update meta set value = ? where name = ?", (stamps[name], name))
        makers = [stamps.get(name, "") for name in ("analyser", "renderer", "counter")]
        made_by = "/".join(makers) if all(makers) else ""  # empty: a project's index is rebuilt when it is first used
        self._execute(
            "update projects p set made_by = ?, "
            "docs = greatest(docs, (select max(r.doc) from records r where r.project = p.project))",
            (made_by,),
        )
        if replaced:
            # A project's number may belong to another project now. An old grant must not give access to it.
            self._execute("delete from members")
        for table, column in POSTGRES_NUMBERED.items():
            self._execute(
                f"select setval(pg_get_serial_sequence('{table}', '{column}'), greatest(max({column}), 1), "
                f"max({column}) is not null) from {table}"
            )

    def _select_expression(self, table: str, column: str) -> str:
        return "halfvec_send(vector)" if (table, column) == ("vectors", "vector") else quote_identifier(column)

    def _execute(self, text: str, values: Sequence[Any] = ()) -> list[Row]:
        numbers, parts = count(1), text.split("?")
        numbered = parts[0] + "".join(f"${next(numbers)}{part}" for part in parts[1:])
        cursor = self._connection.execute(numbered, values, binary=True)
        return cursor.fetchall() if cursor.description else []


def quote_identifier(name: str) -> str:
    """Quote a name for SQL, because `user` is a reserved word."""
    return f'"{name}"'


def _convert_vectors(rows: Sequence[Row], columns: Sequence[str], convert: Callable[[bytes], bytes]) -> list[Row]:
    if "vector" not in columns:
        return list(rows)
    at = list(columns).index("vector")
    return [(*row[:at], convert(row[at]), *row[at + 1 :]) for row in rows]


def _from_pgvector(data: bytes) -> bytes:
    """Return a vector as SQLite stores it. pgvector sends the most significant byte first."""
    return _swap_bytes(data[VECTOR_HEADER_BYTES:])


def _to_pgvector(half_floats: bytes) -> bytes:
    return (len(half_floats) // 2).to_bytes(2) + bytes(VECTOR_HEADER_BYTES - 2) + _swap_bytes(half_floats)


def _swap_bytes(half_floats: bytes) -> bytes:
    numbers = array("H", half_floats)
    numbers.byteswap()
    return numbers.tobytes()
