"""Everything that can go wrong, as one tree.

    FoveateError                 exit 1   HTTP 500
    ├── InputError               exit 2   HTTP 422   the caller's values; lists every problem at once
    ├── ProfileError             exit 2   HTTP 422   a profile, slot or setting that does not hold together
    ├── BudgetError              exit 5   HTTP 409   what must be kept does not fit; says by how much
    ├── SourceError              exit 1   HTTP 502   a source that a `keep` slot needs has failed
    └── StoreError               exit 1   HTTP 503   the database: unreadable, read-only, full, damaged
        ├── NotFound             exit 3   HTTP 404
        ├── Conflict             exit 1   HTTP 409   somebody else changed it first
        ├── Denied               exit 4   HTTP 403   the database server does not let us in, or do this
        ├── SchemaTooNew         exit 1   HTTP 503   written by a newer foveate
        ├── Interrupted          exit 1   HTTP 503   the database went away in the middle; nothing was written
        └── Damaged              exit 1   HTTP 503   the file is broken

A message says what, which (`!r`) and what to do. `exit_code` and `status` are the class's, so that every front end
answers an error the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class FoveateError(Exception):
    """Any error that foveate raises on purpose."""

    exit_code = 1
    status = 500


class InputError(FoveateError):
    """The caller's values are not usable; `problems` lists each one."""

    exit_code = 2
    status = 422

    def __init__(self, problems: str | Sequence[str]) -> None:
        self.problems: tuple[str, ...] = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__("; ".join(self.problems))


class ProfileError(FoveateError):
    """A profile, slot or setting is unknown or does not hold together."""

    exit_code = 2
    status = 422


class BudgetError(FoveateError):
    """What must be kept does not fit; `short` says by how many tokens."""

    exit_code = 5
    status = 409

    def __init__(self, message: str, *, short: int) -> None:
        self.short = short
        super().__init__(message)


class SourceError(FoveateError):
    """A source that a `keep` slot needs has failed."""

    status = 502


class StoreError(FoveateError):
    """The database cannot be read or written."""

    status = 503


class NotFound(StoreError):
    """There is nothing of that id in this scope."""

    exit_code = 3
    status = 404


class Conflict(StoreError):
    """The record was changed by somebody else; read it again, then write."""

    status = 409


class Denied(StoreError):
    """The database server does not let this role in, or not do this."""

    exit_code = 4
    status = 403


class SchemaTooNew(StoreError):
    """The store was written by a newer foveate; upgrade foveate to open it."""


class Busy(StoreError):
    """Others are writing, and have been for longer than this was ready to wait: nothing was changed. Try again."""


class Interrupted(StoreError):
    """The database ended the transaction, or went away in the middle of it: nothing was written. Try again."""


class Damaged(StoreError):
    """The file at `path` is broken; `foveate doctor --fix` carries what can be read into a new one."""

    def __init__(self, message: str, *, path: str = "") -> None:
        self.path = path
        super().__init__(message)


def near(word: str, known: Iterable[str]) -> str:
    """` Did you mean 'x'?`, or the known names where none is near, or nothing."""
    from difflib import get_close_matches

    names = sorted(known)
    close = get_close_matches(word, names, n=1, cutoff=0.6)
    if close:
        return f" Did you mean {close[0]!r}?"
    return f" Known: {', '.join(names)}." if names else ""
