"""Translate apsw's errors into foveate's, which name the file and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from foveate.errors import Damaged, FoveateError, StoreError

ADVICE_BY_ERROR: tuple[tuple[type[Exception], str], ...] = (
    (apsw.BusyError, "{path!r} is busy: another process has been writing for over 30 seconds. Try again."),
    (apsw.ReadOnlyError, "{path!r} cannot be written: the file or its directory is read-only. Nothing was changed."),
    (apsw.FullError, "The disk of {path!r} is full. Nothing was changed. Free some space and try again."),
    (apsw.NotADBError, "{path!r} is not a foveate store, or its header is damaged. Restore a backup, or move it away."),
    (apsw.CorruptError, "{path!r} is damaged ({error}). Run `foveate doctor --fix`, or restore a backup."),
    (apsw.CantOpenError, "{path!r} cannot be opened. Check that its directory exists and that you may write there."),
    (apsw.IOError, "{path!r} cannot be read or written ({error}). Nothing was changed."),
)


@contextmanager
def translate_errors(path: str) -> Iterator[None]:
    """Raise `StoreError` or `Damaged` for an error of apsw in the block."""
    try:
        yield
    except FoveateError:
        raise
    except UnicodeEncodeError:
        raise StoreError(f"{path!r} cannot be opened: SQLite needs a path in UTF-8. Choose another --store.") from None
    except apsw.Error as error:
        for error_type, advice in ADVICE_BY_ERROR:
            if isinstance(error, error_type):
                message = advice.format(path=path, error=error)
                if issubclass(error_type, apsw.NotADBError | apsw.CorruptError):
                    raise Damaged(message, path=path) from error
                raise StoreError(message) from error
        raise StoreError(f"{path!r}: {error}") from error
