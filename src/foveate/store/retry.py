"""Retry: an operation that a database interrupted is run once more from its beginning, by itself.

Only for functions that write in at most one transaction, as their last act: where that is interrupted, nothing of what
they did is kept, and whatever they computed on the way is thrown away with it. The outermost such function runs again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from threading import local
from typing import ParamSpec, TypeVar

from foveate.errors import Interrupted

PAUSES = (0.05, 0.5, 2.0)
"""Seconds before each further try: a deadlock is over at once, another server takes over within a few seconds. The store
waits by itself for a server that cannot be reached at all."""

P = ParamSpec("P")
T = TypeVar("T")

_here = local()


def retried(operation: Callable[P, T]) -> Callable[P, T]:
    """Run a function again where the store says that it was interrupted and nothing was written."""

    @wraps(operation)
    def run(*args: P.args, **values: P.kwargs) -> T:
        if getattr(_here, "running", False):
            return operation(*args, **values)
        _here.running = True
        try:
            for pause in PAUSES:
                try:
                    return operation(*args, **values)
                except Interrupted:
                    time.sleep(pause)
            return operation(*args, **values)
        finally:
            _here.running = False

    return run
