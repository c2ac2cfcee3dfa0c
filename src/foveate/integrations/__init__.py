"""Adapters for agent frameworks and coding agents, and importers of their transcripts.

The adapter of a framework is imported by its name, such as `foveate.integrations.langchain`, and needs that framework.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def requires_extra(name: str) -> Iterator[None]:
    """Name the missing extra in the ImportError of the imports in the block."""
    try:
        yield
    except ImportError as error:
        raise ImportError(f"{error}. Install what this adapter needs: `pip install foveate[{name}]`.") from error
