"""The code of one engine, and how one call sees it.

The index is refreshed before a call, never in it. A `CodeSnapshot` is bound to one generation of the index, so every source
of a call sees the same code: the same hits, the same definitions, and only files whose content is the one that was indexed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING

from foveate.code import query
from foveate.code.file_text import FileText, path_spellings
from foveate.code.index import CodeIndex, CodeSettings
from foveate.code.index_reader import IndexedFile, IndexReader
from foveate.code.indexing import IndexUpdate, Progress
from foveate.code.model import Exclusion
from foveate.code.search import CodeHits, search
from foveate.text.redact import AllowList

if TYPE_CHECKING:
    from foveate.code.docs import CodebaseDocs

DOCS_VERSION = 3
"""Raise it when the codebase docs of the same files change."""

MAX_FILE_HITS, MAX_DEFINITION_HITS = 50, 100
"""Results of one search."""

MAX_WALK_AGE_S = 1.0
"""Calls within this time of the last walk look for changed files only, not for new ones: several contexts of one turn share
a walk."""

SLOW_CHECK_S, MAX_CHECK_SHARE = 0.005, 0.1
"""From some 2,000 files on, looking for changed ones takes longer than this. Then it may take this share of the time at
most: a burst of calls shares one look."""


class Workspace:
    """A folder of code and its index."""

    def __init__(
        self, root: Path, file: Path | str, settings: CodeSettings | None = None, allow: AllowList | None = None
    ) -> None:
        self.root = root
        self.settings = settings or CodeSettings()
        self._file = file
        self._allow = allow
        self._index: CodeIndex | None = None
        self._opening = Lock()
        self._refreshing = Lock()
        self._walked_at = 0.0
        self._check_after = 0.0
        self._changed: set[str] = set()
        """Files that a snapshot found changed although their size and time may say otherwise."""
        self.notes: tuple[str, ...] = ()
        """Notes of the last walk: a submodule without files, files over the limit."""
        self.cached_docs: tuple[str, CodebaseDocs] | None = None
        """The codebase docs, with the generation of the index that they were derived from."""
        self.progress: Progress | None = None
        """Called with how far a refresh is; the command line draws it."""

    @property
    def index(self) -> CodeIndex:
        with self._opening:
            if self._index is None:
                self._index = CodeIndex(self.root, self._file, self.settings, self._allow)
            return self._index

    @property
    def is_indexed(self) -> bool:
        """Whether there is an index already."""
        return self._index is not None or Path(self._file).exists()

    def refresh(self) -> IndexUpdate:
        """Bring the index up to date with the files."""
        changed, self._changed = self._changed, set()
        if changed:
            self.index.invalidate(changed)
        update = self.index.refresh(self.progress)
        self.notes, self._walked_at = update.notes, monotonic()
        return update

    def refresh_if_stale(self) -> None:
        """Refresh the index if a known file has changed, or if the last walk is too old to know of new files."""
        with self._refreshing:  # threads that wait here find the work done
            is_old = not self._walked_at or monotonic() - self._walked_at > MAX_WALK_AGE_S
            if is_old or self._changed or self._has_changed_files():
                self.refresh()

    def _has_changed_files(self) -> bool:
        start = monotonic()
        if start < self._check_after:
            return False
        has_changed = self.index.has_changed_files()
        duration = monotonic() - start
        if duration > SLOW_CHECK_S:
            self._check_after = start + duration / MAX_CHECK_SHARE
        return has_changed

    def snapshot(self) -> CodeSnapshot:
        """Return the code as it is now. Close the snapshot after use."""
        self.refresh_if_stale()
        return CodeSnapshot(self, self.index.open_reader(), self.notes)

    def report_change(self, path: str) -> None:
        """Have the next refresh read a file, even if its size and time have not changed."""
        self._changed.add(path)

    def close(self) -> None:
        if self._index is not None:
            self._index.close()
            self._index = None


class CodeSnapshot:
    """The code as one call sees it. It never changes: what happens to the files meanwhile is for the next call."""

    def __init__(self, workspace: Workspace, index: IndexReader, notes: Sequence[str] = ()) -> None:
        self._workspace = workspace
        self.index = index
        self.notes: list[str] = list(notes)
        self._hits: dict[tuple[str, int, int], CodeHits] = {}
        self._texts: dict[str, str | None] = {}
        self._changed: set[str] = set()
        self._docs: CodebaseDocs | None = None

    def __enter__(self) -> CodeSnapshot:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.index.close()

    @property
    def root(self) -> Path:
        return self._workspace.root

    @property
    def generation(self) -> str:
        """Identifies the state of the code. Snapshots of one generation give the same answers."""
        return self.index.generation

    def search(self, text: str, files: int = MAX_FILE_HITS, definitions: int = MAX_DEFINITION_HITS) -> CodeHits:
        """Return the files and definitions that answer a question. Sources of one call share the result."""
        key = (text, files, definitions)
        if key not in self._hits:
            self._hits[key] = search(self.index, query.parse_query(text), files, definitions)
        return self._hits[key]

    def file(self, path: str) -> IndexedFile | None:
        return self.index.file_table().by_path.get(path)

    def resolve_path(self, path: str) -> str | None:
        """Return the indexed file that a path means: as written, else the only one that ends with it."""
        by_path = self.index.file_table().by_path
        for bare in path_spellings(path):
            matches = [bare] if bare in by_path else [known for known in by_path if known.endswith(f"/{bare}")]
            if len(matches) == 1:
                return matches[0]
        return None

    def add_note(self, note: str) -> None:
        """Add a note for the reader of the receipt, once."""
        if note not in self.notes:
            self.notes.append(note)

    def lines(self, path: str) -> list[str] | None:
        """Return the lines of a file as it was indexed, or None if it has changed since or cannot be read."""
        text = self._text(path)
        return None if text is None else text.splitlines()

    def exclusion(self, path: str) -> Exclusion | None:
        """Return why the content of a file that is not indexed excludes it, or None if it does not."""
        text = self._workspace.index.read(path)
        return text if isinstance(text, Exclusion) else None

    def is_changed(self, path: str) -> bool:
        """Return whether `lines` found another content than was indexed: then the index is all there is to show."""
        return path in self._changed

    def _text(self, path: str) -> str | None:
        if path not in self._texts:
            self._texts[path] = self._read(path)
        return self._texts[path]

    def _read(self, path: str) -> str | None:
        file, text = self.file(path), self._workspace.index.read(path)
        if isinstance(text, FileText) and file is not None and text.hash == file.hash:
            return text.text
        if file is None:
            self.add_note(f"{path} is not shown: it is not in the index.")
            return None
        self._workspace.report_change(path)
        if isinstance(text, Exclusion):
            self.add_note(f"{path} is not shown: {text.reason}.")
        else:
            self._changed.add(path)
            self.add_note(f"{path} changed while the context was computed; only its indexed outline is shown.")
        return None

    # --- codebase docs ---------------------------------------------------------------------------------------------

    @property
    def codebase_docs(self) -> CodebaseDocs:
        """The codebase docs, derived again only when a file that they come from has changed."""
        if self._docs is None:
            self._docs = self._cached_docs() or self._stored_docs() or self._derive_docs()
        overrides = {name: value for name, value in self._workspace.settings.project.items() if value}
        project = replace(self._docs.project, **overrides) if overrides else self._docs.project
        return replace(self._docs, project=project)

    def _cached_docs(self) -> CodebaseDocs | None:
        cached = self._workspace.cached_docs
        return cached[1] if cached is not None and cached[0] == self.generation else None

    def _stored_docs(self) -> CodebaseDocs | None:
        stored = self.index.get_derived("codebase")
        if not stored:
            return None
        from foveate.code.docs import from_json

        document = json.loads(stored)
        if document["key"] != self._docs_key(document["inputs"]):
            return None
        docs = from_json(document["codebase"])
        self._workspace.cached_docs = (self.generation, docs)
        return docs

    def _derive_docs(self) -> CodebaseDocs:
        from foveate.code.docs import describe

        docs = describe(self._all_paths(), self._text_if_indexed)
        if not docs.project.name:
            docs = replace(docs, project=replace(docs.project, name=self.root.name))
        if None not in map(self._text, filter(self.file, docs.input_paths)):  # else they lack what changed meanwhile
            self._workspace.cached_docs = (self.generation, docs)
            document = {"key": self._docs_key(docs.input_paths), "inputs": docs.input_paths, "codebase": asdict(docs)}
            self._workspace.index.set_derived("codebase", json.dumps(document, ensure_ascii=False))
        return docs

    def _all_paths(self) -> list[str]:
        """Return the paths of all files, excluded ones too: a lock file tells which package manager is used."""
        return [*self.index.file_table().by_path, *(exclusion.path for exclusion in self.index.exclusions())]

    def _text_if_indexed(self, path: str) -> str | None:
        return self._text(path) if self.file(path) is not None else None

    def _docs_key(self, inputs: Sequence[str]) -> str:
        """Return a hash of what the docs depend on: the names of all files, and the content of those that were read."""
        by_path = self.index.file_table().by_path
        digest = blake2b(f"{DOCS_VERSION}".encode(), digest_size=16)
        for path in self._all_paths():
            digest.update(path.encode("utf-8", "surrogateescape") + b"\0")
        for path in inputs:
            digest.update((by_path[path].hash if path in by_path else "-").encode())
        return digest.hexdigest()
