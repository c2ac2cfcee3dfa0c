"""One process at a time: the lock of an open file, held until it is closed. A system without such locks goes without."""

from __future__ import annotations

import sys
from typing import IO

from foveate.errors import InputError

if sys.platform != "win32":
    import fcntl

    def lock(file: int | IO[bytes], busy: str) -> None:
        """Take the lock of a file; where somebody holds it, an error that says `busy`."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(busy) from None
        except OSError:
            return  # a file system without locks

else:

    def lock(file: int | IO[bytes], busy: str) -> None:
        """There is no such lock here."""
