"""SQLite stores as files: their schema status, restoring a backup, and backups of other stores as one file.

No store is opened for writing before its replacement has been checked.
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
from foveate.store.protocol import NOT_EMPTY_MESSAGE
from foveate.store.sql.queries import SchemaStatus, compute_schema_status
from foveate.store.sqlite import lock
from foveate.store.sqlite.connections import (
    APPLICATION_ID,
    BUSY_TIMEOUT_MS,
    copy_database,
    create_private_file,
    translate_errors,
)
from foveate.store.sqlite.store import SQLiteStore

WAL_SUFFIXES = ("-wal", "-shm")

_SIDE_FILE_SUFFIX = re.compile(r"(?:\.[0-9a-f]{8}\.(?:restoring|part|replaced)|\.replaced(?:-\d+)?|\.damaged)$")
"""Endings of the files that a restore or a repair keeps, and of those that a restore leaves if it is killed."""


def read_schema_status(path: str | Path) -> SchemaStatus:
    """Return the schema status of a file without changing it."""
    with _read_only_connection(path) as connection:
        return _schema_status(connection, path)


def side_files(path: str | Path) -> list[Path]:
    """Return the files next to a store that restores and repairs kept, or left. `forget` does not change them."""
    path = Path(os.path.realpath(path))
    return sorted(file for file in path.parent.glob(f"{glob.escape(path.name)}.*") if _SIDE_FILE_SUFFIX.search(file.name))


def restore(file: str | Path, path: str | Path, *, replace: bool = False) -> Path | None:
    """Replace a store by a backup. Return the file in which the replaced store was kept, if it was not empty.

    Programs that have the store open see the backup from their next transaction on. The backup itself is not changed: a copy
    of it is migrated and checked first.
    """
    # If the path is a symbolic link, SQLite keeps the WAL next to the file itself. The other files belong there, too.
    path = Path(os.path.realpath(path))
    if os.path.realpath(file) == str(path):
        raise Conflict(f"{str(file)!r} is the store itself. Name a backup.")
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


def restore_into_database(
    file: str | Path, target: CopyableStore, *, replace: bool = False, keep_in: Path | None = None
) -> Path | None:
    """Copy a backup into a store that is not a file. Return the file with the replaced content, if there was any.

    That file is in `keep_in`, by default in the folder of the backup.
    """
    kept: Path | None = None
    is_copied = False
    with TemporaryDirectory(prefix="foveate-") as folder:
        staged = Path(folder, "state.db")
        _stage(file, staged)
        try:
            with (
                closing(SQLiteStore(staged)) as source,
                source.tables() as source_tables,
                # From here on no other process can write to the target, so that nothing is missing in what is kept.
                target.tables(write=True) as target_tables,
            ):
                if _needs_backup(target_tables, target.label, replace):
                    kept = Path(keep_in or Path(file).parent, f"{Path(file).name}.{os.urandom(4).hex()}.replaced")
                    _write_file(target_tables, kept)
                copy_tables(source_tables, target_tables)
                is_copied = True
        except BaseException:
            # If the commit itself fails, it may have succeeded on the server. Then the kept file is the only copy.
            if kept is not None and not is_copied:
                _remove(kept)
            raise
    return kept


def back_up_to_file(source: CopyableStore, target: Path) -> None:
    """Write a backup of any store as one SQLite file. The file appears when it is complete."""
    if target.exists():
        raise StoreError(f"{str(target)!r} exists already. Choose another name for the backup.")
    with source.tables() as tables:
        _write_file(tables, target)


def _write_file(tables: Tables, target: Path) -> None:
    part = target.with_name(f"{target.name}.{os.urandom(4).hex()}.part")
    try:
        with closing(SQLiteStore(part)) as store, store.tables(write=True) as part_tables:
            copy_tables(tables, part_tables)
        with translate_errors(str(target)), closing(apsw.Connection(str(part))) as connection:
            connection.pragma("journal_mode", "delete")
        os.replace(part, target)
    finally:
        _remove(part)


def _needs_backup(tables: Tables, label: str, replace: bool) -> bool:
    """Return whether a store holds anything that must be kept. Raise if it does and `replace` was not passed."""
    if has_no_content(tables):
        return False
    if not replace:
        raise Conflict(f"{label!r} {NOT_EMPTY_MESSAGE}")
    return True


def _stage(file: str | Path, staged: Path) -> None:
    """Make a checked copy of a backup with this version's schema."""
    with _read_only_connection(file) as connection:
        status = _schema_status(connection, file)
        if status.is_too_new:
            raise StoreError(f"{str(file)!r} cannot be restored. {status.advice}")
        # Triggers and views run SQL of the file's author. No foveate creates any, so such a file was tampered with.
        foreign = connection.execute("select name from sqlite_schema where type in ('trigger', 'view')").fetchall()
        if foreign:
            raise StoreError(
                f"{str(file)!r} contains {foreign[0][0]!r}, a trigger or view that no foveate wrote. Choose another backup."
            )
        create_private_file(str(staged))
        with translate_errors(str(file)), closing(apsw.Connection(str(staged))) as copied:
            copy_database(connection, copied)
    with closing(SQLiteStore(staged)) as store:
        health = store.health()
        if health.is_damaged:
            raise Damaged(f"{str(file)!r} is damaged. Nothing was changed. Choose another backup.", path=str(file))
        if not health.ok:
            store.rebuild()


def _overwrite_store(staged: Path, path: Path, replace: bool) -> Path | None:
    """Overwrite a store in one transaction. Return the file in which its content was kept, if it had any.

    Other processes read the old content meanwhile. A restore that is killed before the end changes nothing.
    """
    with (
        translate_errors(str(path)),
        closing(SQLiteStore(path)) as live,
        closing(apsw.Connection(str(path))) as target,
        closing(apsw.Connection(str(staged))) as source,
        target.backup("main", source, "main") as steps,
    ):
        target.set_busy_handler(lock.BusyHandler(BUSY_TIMEOUT_MS))
        with lock.wait_in_queue(str(path), BUSY_TIMEOUT_MS):
            # A step of 0 pages copies nothing but takes the write lock. A record that another process wrote after the backup
            # of the old content and before the lock would be in neither file.
            steps.step(0)
        kept = _back_up_store(live, replace)
        try:
            _raise_change_numbers(live, staged)
            steps.step(-1)
        except BaseException:
            # An interrupt can arrive after the last page: the old content is then in the kept file only.
            if kept is not None and not steps.done:
                _remove(kept)
            raise
    return kept


def _back_up_store(live: SQLiteStore, replace: bool) -> Path | None:
    """Back up a store before it is replaced, unless it is empty."""
    with live.tables() as tables:
        if not _needs_backup(tables, live.path, replace):
            return None
    kept = _unused_name(Path(live.path))
    live.backup(kept)
    shutil.copymode(live.path, kept)  # a user who cannot read the store must not be able to read its backup
    return kept


def _raise_change_numbers(live: SQLiteStore, staged: Path) -> None:
    """Raise the change numbers of the new rows above those of the old ones.

    Other processes cache rows by these numbers. With the same numbers they would take new rows for those that they cached.
    """
    with live.tables() as tables:
        highest_known = tables.max_change_number()
    with closing(SQLiteStore(staged)) as store, store.tables(write=True) as tables:
        tables.raise_change_numbers(highest_known)


def _replace_file(path: Path, staged: Path) -> Path:
    """Replace a file that is too damaged to be overwritten page by page. Return the name under which it is kept.

    Programs that have the damaged file open continue with it until they restart, so their writes go to the kept file.
    """
    with translate_errors(str(path)), closing(apsw.Connection(str(staged))) as connection:
        # This moves the WAL into the file. It needs disk space, so it comes before the store is changed.
        connection.pragma("journal_mode", "delete")
    shutil.copymode(path, staged)
    kept = _unused_name(path)
    # The file comes last: if it exists under the new name, everything does.
    for suffix in (*WAL_SUFFIXES, ""):
        if os.path.exists(f"{path}{suffix}"):
            _link_or_copy(f"{path}{suffix}", f"{kept}{suffix}")
    # SQLite would play a WAL that stays into the new file. If the process is killed here, the kept file still has it.
    for suffix in WAL_SUFFIXES:
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    os.replace(staged, path)
    return kept


def _link_or_copy(source: str, target: str) -> None:
    """Give a file a second name, or copy it if the file system has no links. The copy appears when it is complete."""
    with suppress(OSError):
        os.link(source, target)
        return
    part = Path(f"{target}.{os.urandom(4).hex()}.part")
    try:
        shutil.copy(source, part)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _read_only_connection(path: str | Path) -> Iterator[apsw.Connection]:
    """Open a store's file for reading only."""
    if not os.path.exists(path):
        raise StoreError(f"No file found at {str(path)!r}. Check the path.")
    has_wal = os.path.exists(f"{path}-wal") and os.path.getsize(f"{path}-wal")
    # Without a WAL nothing is writing. `immutable` then keeps SQLite from creating files of its own next to this one.
    address = f"file:{quote(os.path.abspath(path))}?mode=ro{'' if has_wal else '&immutable=1'}"
    with translate_errors(str(path)):
        connection = apsw.Connection(address, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        with closing(connection):
            connection.set_busy_timeout(BUSY_TIMEOUT_MS)
            if connection.pragma("application_id") != APPLICATION_ID:
                raise StoreError(f"{str(path)!r} is not a foveate store. It is empty or a file of another program.")
            yield connection


def _schema_status(connection: apsw.Connection, path: str | Path) -> SchemaStatus:
    meta: dict[str, str] = dict(connection.execute("select name, value from meta").fetchall())  # type: ignore[arg-type]
    return compute_schema_status("sqlite", str(path), connection.pragma("user_version"), meta)


def _unused_name(path: Path) -> Path:
    """Return `state.db.replaced`, with a number if that file exists, or a WAL that SQLite would play into it."""
    names = (path.with_name(f"{path.name}.replaced{f'-{number}' if number > 1 else ''}") for number in count(1))
    return next(name for name in names if not any(os.path.exists(f"{name}{suffix}") for suffix in ("", *WAL_SUFFIXES)))


def _remove(path: Path) -> None:
    for suffix in ("", *WAL_SUFFIXES, lock.QUEUE_FILE_SUFFIX):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
