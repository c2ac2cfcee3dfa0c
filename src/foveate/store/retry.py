"""Repeat an operation that the database interrupted, for example by a deadlock or a failover."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from threading import local
from typing import ParamSpec, TypeVar

from foveate.errors import Interrupted

RETRY_DELAYS_S = (0.05, 0.5, 2.0)
"""Seconds before each further attempt. A deadlock is over at once; another server takes over within a few seconds. The store
itself waits for a server that cannot be reached at all, so these delays need not."""

P = ParamSpec("P")
T = TypeVar("T")

_thread = local()


def retry_interrupted(operation: Callable[P, T]) -> Callable[P, T]:
    """Run an operation again if it raises `Interrupted`, which a store raises only if nothing was written.

    Decorate only functions that write in at most one transaction, as their last action: then an interrupted attempt leaves
    nothing behind. If decorated functions call each other, only the outermost one repeats, because an inner one cannot undo
    what its caller has computed from an earlier read.
    """

    @wraps(operation)
    def run(*args: P.args, **values: P.kwargs) -> T:
        if getattr(_thread, "is_retrying", False):
            return operation(*args, **values)
        _thread.is_retrying = True
        try:
            for delay in RETRY_DELAYS_S:
                try:
                    return operation(*args, **values)
                except Interrupted:
                    time.sleep(delay)
            return operation(*args, **values)
        finally:
            _thread.is_retrying = False

    return run
