"""A folder that is not indexed: the files that a task names, the names in its upper folders, and its documents.

Nothing is searched, and no other file is opened: without a repository or a manifest, the folder may be anything, such as a
home directory.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from foveate.code.exclusions import exclusion_by_name
from foveate.code.file_text import FileText, path_spellings, read_text
from foveate.code.folder_scan import FolderScan
from foveate.text.redact import AllowList

if TYPE_CHECKING:
    from foveate.code.docs import CodebaseDocs

SEARCH_OFF = (
    "Code search is off, because this is neither a repository nor an indexed folder: only the files that the task names, "
    "the upper folders and the project's documents are shown. `foveate init --code` turns it on, or "
    "foveate.open(..., code=True)."
)

MAX_DEPTH, MAX_LISTED_FILES = 3, 1_000
"""Folders below each other and files that are listed."""


@dataclass(frozen=True, slots=True)
class PlainFolder:
    """A folder without an index. `allow` names the texts that are not secrets."""

    root: Path
    allow: AllowList | None = None

    def snapshot(self) -> FolderSnapshot:
        """Return the folder as one call sees it."""
        return FolderSnapshot(self)


class FolderSnapshot:
    """A plain folder as one call sees it: each file is read once."""

    def __init__(self, folder: PlainFolder) -> None:
        self._folder = folder
        self._texts: dict[str, str | None] = {}
        self.notes: list[str] = [SEARCH_OFF]

    @cached_property
    def paths(self) -> Sequence[str]:
        """The files in the upper folders, without those that are never shown."""
        scan = FolderScan(os.path.abspath(self._folder.root), {}, [], None, MAX_DEPTH, MAX_LISTED_FILES)
        kept = (path for path in scan.paths("") if path.isprintable() and not exclusion_by_name(path, 0))
        return tuple(sorted(kept))[:MAX_LISTED_FILES]

    def resolve_path(self, path: str) -> str | None:
        """Return the file that a path means: as written, else without the place in the file that it may name."""
        spellings = path_spellings(path)
        return next((bare for bare in spellings if os.path.lexists(self._folder.root / bare)), None)

    def lines(self, path: str) -> list[str] | None:
        """Return the lines of a file, or None with a note if it may not be shown."""
        text = self._text(path)
        return None if text is None else text.splitlines()

    def add_note(self, note: str) -> None:
        """Add a note for the reader of the receipt, once."""
        if note not in self.notes:
            self.notes.append(note)

    @cached_property
    def codebase_docs(self) -> CodebaseDocs:
        """What the documents and manifests in the upper folders say."""
        from foveate.code.docs import describe

        docs = describe(self.paths, self._text)
        return docs if docs.project.name else replace(docs, project=replace(docs.project, name=self._folder.root.name))

    def _text(self, path: str) -> str | None:
        if path not in self._texts:
            self._texts[path] = self._read(path)
        return self._texts[path]

    def _read(self, path: str) -> str | None:
        reason = exclusion_by_name(path, 0)
        if not reason:
            text = read_text(self._folder.root, path, self._folder.allow)
            if isinstance(text, FileText):
                return text.text
            reason = text.reason
        self.add_note(f"{path} is not shown: {reason}.")
        return None
