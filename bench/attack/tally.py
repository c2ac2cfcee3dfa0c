"""Count cases and collect the failures of a family of attacks."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

MAX_MESSAGE_CHARS = 300


class Failed(Exception):
    """A promise is broken."""


def require(condition: object, message: str) -> None:
    """Raise `Failed` unless the condition holds. Unlike `assert`, it also works with `python -O`."""
    if not condition:
        raise Failed(message)


@dataclass
class Tally:
    """The cases of one family."""

    tried: int = 0
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Lines to print besides the failures."""

    @contextmanager
    def case(self, name: str) -> Iterator[None]:
        """Count a case. Any exception that leaves the block is a failure of it."""
        self.tried += 1
        try:
            yield
        except Exception as error:
            where = ""
            if not isinstance(error, Failed):
                frame = traceback.extract_tb(error.__traceback__)[-1]
                where = f" at {frame.filename.rpartition('/')[2]}:{frame.lineno}"
            self.failures.append(ascii(f"{name}: {type(error).__name__}: {error}"[:MAX_MESSAGE_CHARS] + where)[1:-1])
