"""SQLite stores as files: schema status, backups of other stores, and restoring.

No file is opened for writing before its replacement has been found sound.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import apsw

from foveate.errors import Conflict, Damaged, StoreError
from foveate.store.copy import CopyableStore, Tables, copy_tables, has_no_content
from foveate.store.sql.queries import SchemaStatus, compute_schema_status
from foveate.store.sqlite import lock
from foveate.store.sqlite.errors import explained
from foveate.store.sqlite.store import APPLICATION, BUSY, SQLiteStore

WAL_SUFFIXES = ("-wal", "-shm")

_SIDE_FILE_SUFFIX = re.compile(r"(?:\.[0-9a-f]{8}\.(?:restoring|part|replaced)|\.replaced(?:-\d+)?)$")
"""How the names of files end that hold, or held for a while, what a store was or is to become."""


def read_schema_status(path: str | Path) -> SchemaStatus:
    """Return the schema status of a file without touching it."""
    with _read_only_connection(path) as connection:
        return _schema_status(connection, path)


def side_files(path: str | Path) -> list[Path]:
    """Return the files beside a store that restores kept or left when they were killed. `forget` does not reach them."""
    path = Path(os.path.realpath(path))
    return sorted(file for file in path.parent.glob(f"{glob.escape(path.name)}.*") if _SIDE_FILE_SUFFIX.search(file.name))


def restore(file: str | Path, path: str | Path, *, replace: bool = False) -> Path | None:
    """Put a backup in the place of a store. Return where the replaced store was kept, if it held anything.

    Programs that have the store open see the backup from their next transaction on. The backup itself is not changed: a
    copy of it is migrated and examined first.
    """
    path = Path(os.path.realpath(path))  # of a symbolic link, the log and what is kept belong beside the file itself
    if os.path.realpath(file) == str(path):
        raise Conflict(f"{str(file)!r} is the store itself; name a backup.")
    staged = path.with_name(f"{path.name}.{os.urandom(4).hex()}.restoring")
    try:
        _stage(file, staged)
        try:
            return _overwrite_store(staged, path, replace)
        except Damaged:
            if not replace:
                raise
            return _replace_file(path, staged)
    finally:
        _remove(staged)


def restore_into_database(file: str | Path, target: CopyableStore, *, replace: bool = False) -> Path | None:
    """Copy a backup into a store that is no file. Return the file beside the backup that keeps what was replaced."""
    kept: Path | None = None
    copied = False
    with TemporaryDirectory(prefix="foveate-") as folder:
        staged = Path(folder, "state.db")
        _stage(file, staged)
        try:
            with (
                closing(SQLiteStore(staged)) as source,
                source.tables() as source_tables,
                target.tables(write=True) as target_tables,  # nobody else writes from here on
            ):
                if _needs_backup(target_tables, target.label, replace):
                    kept = Path(f"{file}.{os.urandom(4).hex()}.replaced")
                    _write_file(target_tables, kept)
                copy_tables(source_tables, target_tables)
                copied = True
        except BaseException:
            if kept is not None and not copied:  # once it is copied, a failing commit may have succeeded after all
                _remove(kept)
            raise
    return kept


def back_up_to_file(source: CopyableStore, target: Path) -> None:
    """Write a backup of any store as one SQLite file, which appears when it is complete."""
    if target.exists():
        raise StoreError(f"{str(target)!r} exists already; choose another name for the backup.")
    with source.tables() as tables:
        _write_file(tables, target)


def _write_file(tables: Tables, target: Path) -> None:
    part = target.with_name(f"{target.name}.{os.urandom(4).hex()}.part")
    try:
        with closing(SQLiteStore(part)) as store, store.tables(write=True) as copied:
            copy_tables(tables, copied)
        with explained(str(target)), closing(apsw.Connection(str(part))) as connection:
            connection.pragma("journal_mode", "delete")
        os.replace(part, target)
    finally:
        _remove(part)


def _needs_backup(tables: Tables, label: str, replace: bool) -> bool:
    """Return whether a store holds anything that must be kept, or raise if nobody has agreed to replace it."""
    if has_no_content(tables):
        return False
    if not replace:
        raise Conflict(f"{label!r} holds records or receipts. Pass --replace to restore over them.")
    return True


def _stage(file: str | Path, staged: Path) -> None:
    """Make a sound copy of a backup with this version's schema."""
    with _read_only_connection(file) as connection:
        status = _schema_status(connection, file)
        if status.is_too_new:
            raise StoreError(f"{str(file)!r} cannot be restored. {status.advice}")
        foreign = connection.execute("select name from sqlite_schema where type in ('trigger', 'view')").fetchall()
        if foreign:
            raise StoreError(f"{str(file)!r} holds {foreign[0][0]!r}, which no foveate wrote. Choose another backup.")
        with explained(str(file)), closing(apsw.Connection(str(staged))) as copied:
            _overwrite(copied, connection)
    with closing(SQLiteStore(staged)) as store:
        health = store.health()
        if health.is_damaged:
            raise Damaged(f"{str(file)!r} is damaged, and nothing was changed. Choose another backup.", path=str(file))
        if not health.ok:
            store.rebuild()


def _overwrite_store(staged: Path, path: Path, replace: bool) -> Path | None:
    """Overwrite a store in one transaction. Return where its content was kept, if it held anything.

    Others read the old content meanwhile. A restore that is killed before the end changes nothing.
    """
    with (
        explained(str(path)),
        closing(SQLiteStore(path)) as live,
        closing(apsw.Connection(str(path))) as target,
        closing(apsw.Connection(str(staged))) as source,
        target.backup("main", source, "main") as steps,
    ):
        target.set_busy_handler(lock.Waiting(BUSY))
        with lock.in_line(str(path), BUSY):
            steps.step(0)  # copies nothing yet, but takes the lock: what is written from here on would be in neither
        kept = _back_up_store(live, replace)
        try:
            _raise_change_numbers(live, staged)
            steps.step(-1)
        except BaseException:
            if kept is not None and not steps.done:  # an interrupt may come too late: then this is all that is left
                _remove(kept)
            raise
    return kept


def _back_up_store(live: SQLiteStore, replace: bool) -> Path | None:
    """Back up a store that is to be replaced, if it holds anything."""
    with live.tables() as tables:
        if not _needs_backup(tables, live.path, replace):
            return None
    kept = _unused_name(Path(live.path))
    live.backup(kept)
    shutil.copymode(live.path, kept)  # who must not read the store must not read its backup
    return kept


def _raise_change_numbers(live: SQLiteStore, staged: Path) -> None:
    """Raise the change numbers of the new rows above those of the old ones, so that nobody takes new rows for old."""
    with live.tables() as tables:
        highest_known = tables.max_change_number()
    with closing(SQLiteStore(staged)) as store, store.tables(write=True) as tables:
        tables.raise_change_numbers(highest_known)


def _replace_file(path: Path, staged: Path) -> Path:
    """Put a file in the place of one that is too damaged to be copied page by page. Return where that one is kept.

    A log that stayed would be played into the new file. So it is removed first; if the process is killed then, what is kept
    has it. Programs that have the damaged file open continue with it until they restart: what they write is kept with it.
    """
    with explained(str(path)), closing(apsw.Connection(str(staged))) as connection:
        connection.pragma("journal_mode", "delete")  # all of it is in one file; takes space, so before anything is changed
    shutil.copymode(path, staged)
    kept = _unused_name(path)
    for suffix in (*WAL_SUFFIXES, ""):  # the file itself last: where it is, all of it is
        if os.path.exists(f"{path}{suffix}"):
            _link_or_copy(f"{path}{suffix}", f"{kept}{suffix}")
    for suffix in WAL_SUFFIXES:
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    os.replace(staged, path)
    return kept


def _link_or_copy(source: str, target: str) -> None:
    """Give a file a second name or, if the file system has none, copy it; the copy appears when it is complete."""
    with suppress(OSError):
        os.link(source, target)
        return
    part = Path(f"{target}.{os.urandom(4).hex()}.part")
    try:
        shutil.copy(source, part)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def _overwrite(target: apsw.Connection, source: apsw.Connection) -> None:
    with target.backup("main", source, "main") as steps:
        steps.step(-1)


@contextmanager
def _read_only_connection(path: str | Path) -> Iterator[apsw.Connection]:
    """Open a connection that cannot write, to a file that is a store."""
    if not os.path.exists(path):
        raise StoreError(f"There is no file {str(path)!r}.")
    has_log = os.path.exists(f"{path}-wal") and os.path.getsize(f"{path}-wal")
    # Without a log nobody writes, and SQLite need not create files of its own beside it.
    address = f"file:{quote(os.path.abspath(path))}?mode=ro{'' if has_log else '&immutable=1'}"
    with explained(str(path)):
        connection = apsw.Connection(address, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        with closing(connection):
            connection.set_busy_timeout(BUSY)
            if connection.pragma("application_id") != APPLICATION:
                raise StoreError(f"{str(path)!r} is not a foveate store, but a file of another program or an empty one.")
            yield connection


def _schema_status(connection: apsw.Connection, path: str | Path) -> SchemaStatus:
    meta: dict[str, str] = dict(connection.execute("select name, value from meta").fetchall())  # type: ignore[arg-type]
    return compute_schema_status("sqlite", str(path), connection.pragma("user_version"), meta)


def _unused_name(path: Path) -> Path:
    """Return `state.db.replaced`, or with a number if that exists or a log that would be played into it does."""
    names = (path.with_name(f"{path.name}.replaced{f'-{number}' if number > 1 else ''}") for number in count(1))
    return next(name for name in names if not any(os.path.exists(f"{name}{suffix}") for suffix in ("", *WAL_SUFFIXES)))


def _remove(path: Path) -> None:
    for suffix in ("", *WAL_SUFFIXES, lock.LINE):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
