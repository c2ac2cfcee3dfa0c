"""What an adapter's import says where its framework is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Around the imports of a framework: without it, the error names the extra that brings it."""
    try:
        yield
    except ImportError as error:
        raise ImportError(f"{error}. Install what this adapter needs: `pip install foveate[{name}]`.") from error
