"""An SQLite store as a file: how its schema stands, and putting a backup in its place.

Comes in: paths. Nothing here opens a file for writing before it has been found sound.
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

from foveate.errors import Conflict, Damaged, FoveateError, StoreError
from foveate.store.copy import Changed, Movable, Moved, Overtaken, Progress, Seen, copy, is_empty, seen, seen_as
from foveate.store.sql.schema_status import Standing, standing
from foveate.store.sqlite import lock
from foveate.store.sqlite.store import APPLICATION, BUSY, SQLiteStore, _explained
from foveate.store.tables import COPYING, Span, Tables

LOGS = ("-wal", "-shm")

_BESIDE = re.compile(r"(?:\.[0-9a-f]{8}\.(?:restoring|part)|\.replaced(?:-\d+)?)$")
"""How files end that hold, or held for a while, what a store was or is to become."""

ATTEMPTS = 3
"""To keep what a store holds before it is replaced: a write now and then may come between, a writer that never rests not."""


def standing_of(path: str | Path) -> Standing:
    """How a file's schema stands; the file is not touched."""
    with _looked_at(path) as connection:
        return _standing(connection, path)


def kept_beside(path: str | Path) -> list[Path]:
    """Files beside a store that an earlier restore kept, or that one which was killed left: `forget` does not reach them."""
    path = Path(os.path.realpath(path))
    return sorted(file for file in path.parent.glob(f"{glob.escape(path.name)}.*") if _BESIDE.search(file.name))


def restore(file: str | Path, path: str | Path, *, replace: bool = False) -> Path | None:
    """Put a backup in the place of a store; where the replaced one was kept, if there was anything in it.

    Programs that have the store open see the backup from their next transaction on. The backup itself is not changed: a
    copy of it is migrated and examined first.
    """
    path = Path(os.path.realpath(path))  # where it is a link, the log and what is kept belong beside the file itself
    if os.path.realpath(file) == str(path):
        raise Conflict(f"{str(file)!r} is the store itself; name a backup.")
    staged = path.with_name(f"{path.name}.{os.urandom(4).hex()}.restoring")
    try:
        _stage(file, staged)
        try:
            return _put_over(staged, path, replace)
        except Damaged:
            if not replace:
                raise
            return _put_in_place_of(path, staged)
    finally:
        _remove(staged)


def restore_shared(file: str | Path, target: Movable, *, replace: bool = False) -> Path | None:
    """Copy a backup into a store that is no file; where the replaced one was kept: in a file beside the backup."""
    with TemporaryDirectory(prefix="foveate-") as folder:
        staged = Path(folder, "state.db")
        _stage(file, staged)
        with closing(SQLiteStore(staged)) as source:
            return _copied_over(source, target, Path(file), replace=replace)[1]


def copy_over(source: Movable, target: Movable, beside: Path, *, progress: Progress | None = None) -> dict[str, Moved]:
    """Have a store be what another is, or what it was: while it is copied, a file beside a path keeps what was there."""
    done, kept = _copied_over(source, target, beside, replace=True, progress=progress)
    if kept is not None:
        _remove(kept)
    return done


def _copied_over(
    source: Movable, target: Movable, beside: Path, *, replace: bool, progress: Progress | None = None
) -> tuple[dict[str, Moved], Path | None]:
    """What was moved, and where what was there is kept. It is kept while others go on writing, so that whoever is killed
    meanwhile has changed nothing: where they did write, it is kept anew."""
    for _ in range(ATTEMPTS):
        since, kept = _rows_aside(target, beside, replace=replace)
        name = os.urandom(8).hex()
        try:
            return copy(source, target, replace=replace, since=since, name=name, progress=progress), kept
        except Changed:
            if kept is not None:
                _remove(kept)
        except BaseException:
            if kept is not None:
                _put_back(kept, target, since, name)
            raise
    raise Conflict(f"Others go on writing to {target.label!r}. Stop them, then run this again; nothing was changed.")


def _put_back(kept: Path, target: Movable, since: Seen, name: str) -> None:
    """Have a store be what it was before the copy of this name; whatever else it is by now is somebody else's."""
    try:
        with target.tables() as tables:
            begun = seen(tables) != since
        if begun:
            with closing(SQLiteStore(kept, create=False)) as before:
                copy(before, target, replace=True, since=seen_as(name), back=True)
    except (Changed, Overtaken) as error:
        raise Overtaken(
            f"Others have changed {target.label!r} since this copy began, by another copy or by writing to it: it is left "
            f"as they made it. What was there before is kept in {str(kept)!r}: delete it when it is not wanted."
        ) from error
    except FoveateError as error:
        raise StoreError(
            f"{target.label!r} could be neither replaced nor put back ({error}). What was there is kept in {str(kept)!r}: "
            f"`foveate copy {kept} TARGET --replace` puts it back."
        ) from error
    _remove(kept)


def _rows_aside(target: Movable, beside: Path, *, replace: bool) -> tuple[Seen, Path | None]:
    """A store that is to be replaced as it was seen, and a backup of that moment, where there is anything to keep."""
    with target.tables() as tables:
        if not _is_to_be_kept(tables, target.label, replace):
            return seen(tables), None
    # A name of its own: another copy into the same store keeps its file in the same place.
    kept = beside.with_name(f"{beside.name}.{os.urandom(4).hex()}.replaced")
    return copy_to_file(target, kept), kept


def _is_to_be_kept(tables: Tables, label: str, replace: bool) -> bool:
    """Whether a store that is to be replaced holds anything: not where nobody has written into it, or only a copy that was
    cut short. Where it does, somebody must have asked for that."""
    if is_empty(tables) or COPYING in dict(tables.page(Span("meta"), ("name", "value"))):
        return False
    if not replace:
        raise Conflict(f"{label!r} holds records or receipts. Pass --replace to restore over them.")
    return True


def copy_to_file(source: Movable, target: Path) -> Seen:
    """A backup of any store as one SQLite file, which appears when it is whole; the store as that moment shows it."""
    if target.exists():
        raise StoreError(f"{str(target)!r} exists already; choose another name for the backup.")
    part = target.with_name(f"{target.name}.{os.urandom(4).hex()}.part")
    try:
        with closing(SQLiteStore(part, unfinished=True)) as store:
            copy(source, store)
            with store.tables() as tables:  # numbers are copied as they are
                moment = seen(tables)
        with _explained(str(target)), closing(apsw.Connection(str(part))) as connection:
            connection.pragma("journal_mode", "delete")
        os.replace(part, target)
        return moment
    finally:
        _remove(part)


def _stage(file: str | Path, staged: Path) -> None:
    """A sound copy of the backup, of this version's schema."""
    with _looked_at(file) as connection:
        found = _standing(connection, file)
        if found.is_too_new or found.unfinished:
            raise StoreError(f"{str(file)!r} cannot be restored. {found.advice}")
        foreign = connection.execute("select name from sqlite_schema where type in ('trigger', 'view')").fetchall()
        if foreign:
            raise StoreError(f"{str(file)!r} holds {foreign[0][0]!r}, which no foveate wrote. Choose another backup.")
        with _explained(str(file)), closing(apsw.Connection(str(staged))) as copied:
            _overwrite(copied, connection)
    with closing(SQLiteStore(staged)) as store:
        health = store.health()
        if health.damaged:
            raise Damaged(f"{str(file)!r} is damaged, and nothing was changed. Choose another backup.", path=str(file))
        if not health.ok:
            store.rebuild()


def _put_over(staged: Path, path: Path, replace: bool) -> Path | None:
    """Overwrite a store in one transaction; where what it held is kept, if it held anything.

    Others read the old one meanwhile. Whoever is killed before the end has changed nothing.
    """
    with (
        _explained(str(path)),
        closing(SQLiteStore(path, unfinished=True)) as live,
        closing(apsw.Connection(str(path))) as target,
        closing(apsw.Connection(str(staged))) as source,
        target.backup("main", source, "main") as steps,
    ):
        target.set_busy_handler(lock.Waiting(BUSY))
        with lock.in_line(str(path), BUSY):
            steps.step(0)  # copies nothing yet, but takes the lock: what is written from here on would be in neither
        kept = _keep(live, replace)
        try:
            _number_above(live, staged)
            steps.step(-1)
        except BaseException:
            if kept is not None and not steps.done:  # whoever interrupts it may come too late: then it is all that is left
                _remove(kept)
            raise
    return kept


def _keep(live: SQLiteStore, replace: bool) -> Path | None:
    """A backup of a store that is to be replaced, where there is anything to keep."""
    with live.tables() as tables:
        if not _is_to_be_kept(tables, live.path, replace):
            return None
    kept = _free_name(Path(live.path))
    live.backup(kept)
    shutil.copymode(live.path, kept)  # who must not read the one must not read the other
    return kept


def _number_above(live: SQLiteStore, staged: Path) -> None:
    """Raise the numbers of what comes above those of what is there, so that nobody takes new rows for old."""
    with live.tables() as tables:
        known = tables.highest()
    with closing(SQLiteStore(staged)) as store, store.tables(write=True) as tables:
        tables.raise_above(known)


def _put_in_place_of(path: Path, staged: Path) -> Path:
    """Put a file in the place of one that is too damaged to be copied page by page; where that one is kept, with its log.

    A log that stayed would be played into the new file. So it goes first: whoever is killed then has it in what is kept.
    Programs that have the damaged one open go on with it until they are started anew: what they write is kept with it.
    """
    with _explained(str(path)), closing(apsw.Connection(str(staged))) as connection:
        connection.pragma("journal_mode", "delete")  # all of it is in one file; takes room, so before anything is changed
    shutil.copymode(path, staged)
    kept = _free_name(path)
    for log in (*LOGS, ""):  # the file itself last: where it is, all of it is
        if os.path.exists(f"{path}{log}"):
            _keep_file(f"{path}{log}", f"{kept}{log}")
    for log in LOGS:
        Path(f"{path}{log}").unlink(missing_ok=True)
    os.replace(staged, path)
    return kept


def _keep_file(source: str, target: str) -> None:
    """A second name for a file or, where the file system has none, a copy, which appears when it is whole."""
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
def _looked_at(path: str | Path) -> Iterator[apsw.Connection]:
    """A connection that cannot write, to a file that is a store."""
    if not os.path.exists(path):
        raise StoreError(f"There is no file {str(path)!r}.")
    has_log = os.path.exists(f"{path}-wal") and os.path.getsize(f"{path}-wal")
    # Without a log nobody writes, and SQLite need not lay files of its own beside it.
    address = f"file:{quote(os.path.abspath(path))}?mode=ro{'' if has_log else '&immutable=1'}"
    with _explained(str(path)):
        connection = apsw.Connection(address, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        with closing(connection):
            connection.set_busy_timeout(BUSY)
            if connection.pragma("application_id") != APPLICATION:
                raise StoreError(f"{str(path)!r} is not a foveate store, but a file of another program or an empty one.")
            yield connection


def _standing(connection: apsw.Connection, path: str | Path) -> Standing:
    meta: dict[str, str] = dict(connection.execute("select name, value from meta").fetchall())  # type: ignore[arg-type]
    return standing("sqlite", str(path), abs(connection.pragma("user_version")), meta)


def _free_name(path: Path) -> Path:
    """`state.db.replaced`, or with a number where there is one already, or a log that would be played into it."""
    names = (path.with_name(f"{path.name}.replaced{f'-{number}' if number > 1 else ''}") for number in count(1))
    return next(name for name in names if not any(os.path.exists(f"{name}{log}") for log in ("", *LOGS)))


def _remove(path: Path) -> None:
    for log in ("", *LOGS, lock.LINE):
        Path(f"{path}{log}").unlink(missing_ok=True)
