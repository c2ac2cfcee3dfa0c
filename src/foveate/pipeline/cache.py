"""A cache of computed contexts. A hit has the bytes of a recompute at the rounded clock."""

from __future__ import annotations

import threading
from collections import OrderedDict
from hashlib import blake2b
from typing import Generic, TypeVar

from foveate.errors import InputError
from foveate.pipeline.run import Plan

Computed = TypeVar("Computed")

MAX_CACHED_CONTEXTS = 128


class Cache(Generic[Computed]):
    """The contexts of the last seconds, shared by all threads of an engine. With 0 seconds nothing is cached."""

    def __init__(self, seconds: float = 0.0, size: int = MAX_CACHED_CONTEXTS) -> None:
        if seconds < 0:
            raise InputError(f"cache_seconds must be 0 or more, got {seconds!r}.")
        self.enabled = seconds > 0
        self._ttl = max(1, round(seconds * 1000))
        self._size = size
        self._entries: OrderedDict[str, tuple[int, Computed]] = OrderedDict()
        self._lock = threading.Lock()

    def round_up(self, now: int) -> int:
        """Return the clock that all requests of one period share. Rounded up, so that a record just written is valid."""
        return -(-now // self._ttl) * self._ttl

    def get(self, key: str) -> Computed | None:
        with self._lock:
            entry = self._entries.get(key)
        return entry[1] if entry else None

    def put(self, key: str, now: int, context: Computed) -> None:
        """Cache a context until the end of its period; those of earlier periods are dropped."""
        with self._lock:
            for old in [name for name, (at, _) in self._entries.items() if at < now]:
                del self._entries[old]
            self._entries[key] = (now, context)
            while len(self._entries) > self._size:
                self._entries.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()

    def __len__(self) -> int:
        return len(self._entries)


def cache_key(plan: Plan, revision: str, generation: str = "") -> str:
    """Return the key of everything that a context depends on: request, profile, state of the store and of the code index."""
    parts = "\x1f".join((repr(plan.request), repr(plan.profile), revision, generation))
    return blake2b(parts.encode("utf-8", "replace"), digest_size=16).hexdigest()
