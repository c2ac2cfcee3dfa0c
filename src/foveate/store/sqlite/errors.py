"""The driver's errors as ours: what happened, to which file, what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from foveate.errors import Damaged, FoveateError, StoreError

ADVICE: tuple[tuple[type[Exception], str], ...] = (
    (apsw.BusyError, "{path!r} is busy: another process has been writing for over 30 seconds. Try again."),
    (apsw.ReadOnlyError, "{path!r} cannot be written: the file or its directory is read-only. Nothing was changed."),
    (apsw.FullError, "The disk of {path!r} is full. Nothing was changed; make room and try again."),
    (apsw.NotADBError, "{path!r} is not a foveate store, or its header is damaged. Restore a backup, or move it away."),
    (apsw.CorruptError, "{path!r} is damaged ({error}). Run `foveate doctor --fix`, or restore a backup."),
    (apsw.CantOpenError, "{path!r} cannot be opened: does its directory exist, and may you write there?"),
    (apsw.IOError, "{path!r} cannot be read or written ({error}). Nothing was changed."),
)


@contextmanager
def explained(path: str) -> Iterator[None]:
    """The driver's errors as ours: what happened, to which file, what to do."""
    try:
        yield
    except FoveateError:
        raise
    except UnicodeEncodeError:
        raise StoreError(f"{path!r} cannot be opened: SQLite wants a path in UTF-8. Choose another --store.") from None
    except apsw.Error as error:
        for sort, advice in ADVICE:
            if isinstance(error, sort):
                message = advice.format(path=path, error=error)
                if issubclass(sort, apsw.NotADBError | apsw.CorruptError):
                    raise Damaged(message, path=path) from error
                raise StoreError(message) from error
        raise StoreError(f"{path!r}: {error}") from error
