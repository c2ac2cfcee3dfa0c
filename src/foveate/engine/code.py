"""`engine.code`: the code of the project."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from foveate.code.records import NO_CODE_MESSAGE
from foveate.errors import InputError
from foveate.options import check_limit, check_text
from foveate.receipts.context import Context

if TYPE_CHECKING:
    from foveate.code.docs import CodebaseDocs
    from foveate.code.indexing import IndexUpdate
    from foveate.code.search import CodeHits
    from foveate.code.snapshot import Workspace

MAP_PROFILE = "map"
"""Profile of a context that shows the map of the repository alone."""

MAP_QUERY = "The map of the repository"
"""Query of a map that is drawn for no question."""


class Code:
    """Search, map, documentation and index of the project's code."""

    def __init__(self, workspace: Workspace | None, root: Path | None, context: Callable[..., Context]) -> None:
        self._workspace = workspace
        self._context = context
        self.root = root
        """The project's folder, or None for a store without one."""

    @property
    def available(self) -> bool:
        return self._workspace is not None

    @property
    def workspace(self) -> Workspace:
        """The index with its files. Raises `InputError` if the project has no code."""
        if self._workspace is None:
            raise InputError(NO_CODE_MESSAGE)
        return self._workspace

    def search(self, query: str, *, limit: int = 10) -> CodeHits:
        """Find the files and definitions that a query is about, best first."""
        check_text(query, "query")
        check_limit(limit)
        with self.workspace.snapshot() as snapshot:
            return snapshot.search(query, limit, limit)

    def map(self, query: str = "", *, budget: int | None = None) -> Context:
        """Return the map of the repository: for a query, or of the whole."""
        if not self.available:
            raise InputError(NO_CODE_MESSAGE)
        return self._context(query or MAP_QUERY, profile=MAP_PROFILE, code_query=query, budget=budget)

    def docs(self) -> CodebaseDocs:
        """Return the documentation and metadata that the repository contains."""
        with self.workspace.snapshot() as snapshot:
            return snapshot.codebase_docs

    def index(self, *, full: bool = False) -> IndexUpdate:
        """Update the index, and list the files that are not in it; `full` builds it from scratch."""
        if full:
            self.workspace.index.clear()
        update = self.workspace.refresh()
        with self.workspace.index.open_reader() as reader:
            return replace(update, skipped=tuple(reader.exclusions()))
