"""The file of the code index: tables, transactions, counters. It can be deleted at any time, and nothing is lost.

One connection, guarded by a lock: threads of a process take turns, and processes wait for one another.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import apsw

from foveate.errors import StoreError
from foveate.text import analysis

VERSION = f"3.{analysis.VERSION}"
"""Raise the first number when anything in this room changes what is stored: the index is then built again by itself."""

BUSY = 120_000
"""Milliseconds to wait for another process that is indexing."""

CACHE = 16_000
"""Kibibytes of the file that are held in memory: the words of an edit are all over it."""

OPENING = 10.0
"""Seconds to wait for another process that makes the file: SQLite does not wait by itself there."""

_SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE files (
  id INTEGER PRIMARY KEY, path TEXT UNIQUE, hash TEXT, size INTEGER, mtime INTEGER, checked INTEGER, language TEXT,
  role TEXT, lines INTEGER, imports TEXT, broken INTEGER, redacted TEXT);
CREATE INDEX files_by_hash ON files (hash);
CREATE TABLE aside (path TEXT PRIMARY KEY, reason TEXT, size INTEGER, mtime INTEGER) WITHOUT ROWID;
CREATE TABLE definitions (
  id INTEGER PRIMARY KEY, file INTEGER, name TEXT, qualified TEXT, nth INTEGER, kind TEXT, line INTEGER, last INTEGER,
  signature TEXT, doc TEXT, parent INTEGER, uses TEXT);
CREATE INDEX definitions_by_file ON definitions (file);
CREATE INDEX definitions_by_name ON definitions (name);
CREATE TABLE segments (id INTEGER PRIMARY KEY, ids BLOB, files BLOB, lengths BLOB);
CREATE TABLE postings (
  space INTEGER, term TEXT, segment INTEGER, list BLOB, PRIMARY KEY (space, term, segment)) WITHOUT ROWID;
"""


class Damaged(StoreError):
    """The file is no longer a database that can be read. What was in it is in the files."""


class Database:
    """An open index file. `reads`: how the texts were read; an index of texts that were read otherwise is built again."""

    def __init__(self, root: Path, file: Path | str, reads: str = "") -> None:
        self.root = root
        self.file = str(file)
        self.lock = threading.RLock()
        self._key = (VERSION, str(root), reads)
        self._ids: dict[str, int] = {}
        self._damage: Damaged | None = None
        self._openings = 0
        self._open: apsw.Connection | None = self._opened()

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows of a query."""
        with self.lock:
            try:
                return self._connection.execute(sql, values).fetchall()
            except apsw.Error as error:
                raise self._cannot("read", error) from None

    def do(self, sql: str, values: Sequence[Any] = ()) -> None:
        """A statement, inside `writing`."""
        self._connection.execute(sql, values)

    def do_all(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self._connection.executemany(sql, rows)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """What is read inside is of one moment, whatever others write meanwhile."""
        with self.lock:
            connection = self._connection
            if connection.in_transaction:
                yield
                return
            connection.execute("BEGIN")
            try:
                yield
            finally:
                _rolled_back(connection)

    @contextmanager
    def writing(self, patience: int = BUSY) -> Iterator[None]:
        """One transaction: all of it or nothing. Raises `StoreError` where another process does not let go."""
        with self.lock:
            connection = self._connection
            connection.set_busy_timeout(patience)
            try:
                connection.execute("BEGIN IMMEDIATE")
                self._ids = {}
                yield
                for name, last in self._ids.items():
                    self.set(name, last)
                connection.execute("COMMIT")
            except apsw.Error as error:
                raise self._cannot("written", error) from None
            finally:
                _rolled_back(connection)
                connection.set_busy_timeout(BUSY)

    @property
    def generation(self) -> str:
        """Changes whenever the index does."""
        return ".".join(str(value) for (value,) in self.rows(_GENERATION))

    @property
    def version(self) -> tuple[int, int]:
        """Changes with every write of anybody, as SQLite counts them: far cheaper to ask for than the generation."""
        with self.lock:
            connection = self._connection
            if connection.txn_state() == apsw.SQLITE_TXN_NONE:  # SQLite notices what others wrote when it reads
                self.rows("SELECT 1 FROM meta LIMIT 1")
            return self._openings, connection.data_version()

    @property
    def is_ours(self) -> bool:
        """Whether the texts in it were read by our settings; another process may have made it its own."""
        return self._made_for() == self._key

    def meta(self, name: str) -> Any:
        found = self.rows("SELECT value FROM meta WHERE name = ?", (name,))
        return found[0][0] if found else None

    def set(self, name: str, value: Any) -> None:
        self.do("REPLACE INTO meta VALUES (?, ?)", (name, value))

    def next(self, name: str, number: int = 1) -> int:
        """The first of some new ids; one is never given out twice. They are written down with the transaction."""
        last = self._ids[name] if name in self._ids else int(self.meta(name) or 0)
        self._ids[name] = last + number
        return last + 1

    def close(self) -> None:
        with self.lock:
            if self._open is not None:
                self._open.close()
                self._open = None

    # --- opening -----------------------------------------------------------------------------------------------

    @property
    def _connection(self) -> apsw.Connection:
        if self._open is None:
            raise StoreError(f"The code index {self.file!r} is closed.")
        return self._open

    def _cannot(self, verb: str, error: apsw.Error) -> StoreError:
        message = f"The code index {self.file!r} cannot be {verb}: {error}."
        if not isinstance(error, _DAMAGE):
            return StoreError(message)
        self._damage = Damaged(f"{message} It is built again at the next look.")
        return self._damage

    def _opened(self) -> apsw.Connection:
        try:
            try:
                return self._connected()
            except (Damaged, *_DAMAGE):  # everything in it is in the files
                return self._made_again()
        except (apsw.Error, OSError, UnicodeError) as error:
            raise StoreError(
                f"The code index {self.file!r} cannot be opened: {error}. Delete it, or check who may write there."
            ) from None

    def check(self) -> None:
        """Raise what a query came across before, where only some pages are damaged and others read well; take the index
        back where a process with other settings has made it its own since."""
        if self._damage is not None:
            raise self._damage
        if not self.is_ours:
            with self.writing():
                self.claim()

    def renew(self) -> None:
        """Begin again with an empty file: this one is damaged."""
        with self.lock:
            try:
                self._made_again()
            except (apsw.Error, OSError) as error:
                raise StoreError(f"The code index {self.file!r} is damaged and cannot be replaced: {error}.") from None

    def _made_again(self) -> apsw.Connection:
        self._damage = None
        if self._open is not None:
            self._open.close(True)
        for end in ("", "-wal", "-shm"):
            Path(self.file + end).unlink(missing_ok=True)
        return self._connected()

    def _connected(self) -> apsw.Connection:
        self._open = connection = apsw.Connection(self.file)
        self._openings += 1
        connection.set_busy_timeout(BUSY)
        _write_ahead(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA cache_size = -{CACHE}")
        if not self.is_ours:
            with self.writing():
                self.claim()
        return connection

    def claim(self) -> None:
        """Begin anew where the index is another one's: of other settings, or of another version. Inside `writing`."""
        if not self.is_ours:
            self.begin_anew()

    def _made_for(self) -> tuple[Any, ...]:
        try:
            return tuple(self.meta(name) for name in _KEY)
        except Damaged:
            raise
        except StoreError:  # a new file, or one that somebody else made
            return ()

    def begin_anew(self) -> None:
        """Empty tables, inside `writing`."""
        for (name,) in self.rows("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"):
            self.do(f'DROP TABLE "{name}"')
        self.do(_SCHEMA)
        for name, value in zip((*_KEY, "made"), (*self._key, secrets.token_hex(4)), strict=True):
            self.set(name, value)


_GENERATION = "SELECT value FROM meta WHERE name IN ('generation', 'made') ORDER BY name"
_KEY = ("version", "root", "reads")
_DAMAGE = (apsw.CorruptError, apsw.NotADBError)


def _rolled_back(connection: apsw.Connection) -> None:
    """Without a transaction, whatever was under way: a full disk may have ended it already."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _write_ahead(connection: apsw.Connection) -> None:
    """Readers that no writer stops. Of several processes that open a new file at once, one makes it so."""
    end = monotonic() + OPENING
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except apsw.BusyError:
            if monotonic() > end:
                raise
            sleep(0.02)
