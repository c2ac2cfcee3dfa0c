"""The errors of foveate, as one tree.

    FoveateError                 exit 1   HTTP 500
    ├── InputError               exit 2   HTTP 422   wrong values of the caller; lists every problem at once
    ├── ProfileError             exit 2   HTTP 422   a profile, slot or setting that is unknown or inconsistent
    ├── BudgetError              exit 5   HTTP 409   the items that must be kept exceed the budget; `short` tells by how much
    ├── SourceError              exit 1   HTTP 502   a source that a `keep` slot needs has failed
    └── StoreError               exit 1   HTTP 503   the database: unreadable, read-only, full, damaged
        ├── NotFound             exit 3   HTTP 404
        ├── Conflict             exit 1   HTTP 409   another process changed the record first
        ├── Denied               exit 4   HTTP 403   the database role may not log in, or may not do this
        ├── SchemaTooNew         exit 1   HTTP 503   written by a newer foveate
        ├── Busy                 exit 1   HTTP 503   other processes kept the store locked; nothing was changed
        ├── Interrupted          exit 1   HTTP 503   the database ended the transaction; nothing was written
        └── Damaged              exit 1   HTTP 503   the file is damaged

A message names the value (`!r`), the rule and the way out. `exit_code` and `status` belong to the class, so that every
front end answers an error in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class FoveateError(Exception):
    """Any error that foveate raises on purpose."""

    exit_code = 1
    status = 500


class InputError(FoveateError):
    """Values of the caller are wrong; `problems` lists each one."""

    exit_code = 2
    status = 422

    def __init__(self, problems: str | Sequence[str]) -> None:
        self.problems: tuple[str, ...] = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__("; ".join(self.problems))


class ProfileError(FoveateError):
    """A profile, slot or setting is unknown or inconsistent."""

    exit_code = 2
    status = 422


class BudgetError(FoveateError):
    """The items that must be kept exceed the budget by `short` tokens."""

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
    """The scope has no record, task or receipt with that id."""

    exit_code = 3
    status = 404


class Conflict(StoreError):
    """Another process changed the record; read it again, then write."""

    status = 409


class Denied(StoreError):
    """The database role may not log in, or may not do this."""

    exit_code = 4
    status = 403


class SchemaTooNew(StoreError):
    """The store was written by a newer foveate; upgrade foveate to open it."""


class Busy(StoreError):
    """Other processes kept the store locked for longer than the time limit. Nothing was changed; try again."""


class Interrupted(StoreError):
    """The database ended the transaction or the connection. Nothing was written; try again."""


class Damaged(StoreError):
    """The file at `path` is damaged; `foveate doctor --fix` copies everything readable into a new one."""

    def __init__(self, message: str, *, path: str = "") -> None:
        self.path = path
        super().__init__(message)


def near(word: str, known: Iterable[str]) -> str:
    """Return ` Did you mean 'x'?`, or the known names if no name is similar, or an empty string."""
    from difflib import get_close_matches

    names = sorted(known)
    close = get_close_matches(word, names, n=1, cutoff=0.6)
    if close:
        return f" Did you mean {close[0]!r}?"
    return f" Known: {', '.join(names)}." if names else ""
