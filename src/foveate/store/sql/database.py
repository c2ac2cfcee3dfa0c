"""The calls that the SQL stores make to a database driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Database(Protocol):
    """A database driver, inside one open transaction. It knows each query of its dialect by name."""

    def fetch_all(self, query: str, params: Mapping[str, Any] | Sequence[Any] = ...) -> list[tuple[Any, ...]]: ...
    def execute(self, query: str, params: Mapping[str, Any] | Sequence[Any] = ...) -> int:
        """Run a query that returns no rows, and return how many rows it changed."""
        ...

    def execute_many(self, query: str, rows: Sequence[Sequence[Any]]) -> None: ...
