"""The derived index of a repository's code. It holds where definitions stand, their heads and docstrings, and no bodies.

`refresh` brings it up to date: it compares size and time of every file, reads those that differ and parses those whose
content is new. `open_reader` gives the index as it is at that moment.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Any

from foveate.code.database import Damaged, IndexDatabase
from foveate.code.file_text import FileText, read_text
from foveate.code.index_reader import IndexCache, IndexReader
from foveate.code.indexing import IndexUpdate, Progress, detect_changes, update_index
from foveate.code.model import Exclusion, FoundFile
from foveate.code.walk import MAX_FILES, WalkResult, matcher, walk
from foveate.errors import StoreError
from foveate.text.redact import AllowList, load_rules

MAX_CACHED_TEXTS = 100
"""Texts that are kept between two calls: cleaning one costs more than seeing that its bytes are the same."""

SHORT_TIMEOUT_MS = 50
"""How long to wait for other processes before work that can be repeated is not stored."""


@dataclass(frozen=True, slots=True)
class CodeSettings:
    """The sections `[code]` and `[project]` of a project's settings."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    max_files: int = MAX_FILES
    project: Mapping[str, str] = field(default_factory=dict)


class CodeIndex:
    """The index of one folder. Its file may be deleted at any time; `refresh` builds it again."""

    def __init__(
        self, root: Path, file: Path | str, settings: CodeSettings | None = None, allow: AllowList | None = None
    ) -> None:
        self.root = root
        self._settings = settings or CodeSettings()
        self._include_matcher = matcher(self._settings.include)
        self._allow = allow
        self._db = IndexDatabase(root, file, _text_settings_key(self._settings.include, allow))
        self._cache = IndexCache()
        self._cache_lock = Lock()
        self._texts: dict[str, FileText] = {}
        self._texts_lock = Lock()
        self._walked_files: Sequence[FoundFile] = ()

    def refresh(self, progress: Progress | None = None) -> IndexUpdate:
        """Bring the index up to date with the folder."""
        walks: list[WalkResult] = []

        def walk_again() -> WalkResult:
            walks.append(self._walk())
            return walks[-1]

        with self._db.lock:
            try:
                self._db.check()
                update = update_index(self._db, walk_again, self.read, progress)
            except Damaged:  # everything in it can be read from the files again
                self._db.recreate()
                update = update_index(self._db, walk_again, self.read, progress)
            self._walked_files = walks[-1].files
            return update

    def _walk(self) -> WalkResult:
        return walk(self.root, self._settings.include, self._settings.exclude, self._settings.max_files)

    def has_changed_files(self) -> bool:
        """Return whether a file was changed or removed since the last refresh. New files are found by a refresh only.

        This compares size and time of each file, which takes a third of the time of a refresh that finds nothing.
        """
        lead, lstat = os.path.join(os.path.abspath(self.root), ""), os.lstat
        for path, size, mtime in self._walked_files:
            try:
                status = lstat(lead + path)
            except OSError:
                return True
            if status.st_mtime_ns != mtime or status.st_size != size:
                return True
        return False

    def open_reader(self) -> IndexReader:
        """Return the index as it is now. Close the reader after use."""
        transaction = self._db.begin_read()
        with self._cache_lock:
            if self._cache.generation != transaction.generation:
                self._cache = IndexCache(transaction.generation)
            return IndexReader(transaction, self._cache)

    def clear(self) -> None:
        """Delete everything: the next refresh reads every file."""
        with self._db.write_transaction():
            self._db.clear_tables()

    def count_pending(self) -> int:
        """Return how many files the next refresh would look at."""
        with self._db.lock:
            changes = detect_changes(self._db, self._walk(), frozenset())
            return len(changes.changed) + len(changes.removed)

    def read(self, path: str) -> FileText | Exclusion:
        """Return the text of a file as it is now and as it may be shown, or why it may not."""
        is_included = self._include_matcher is not None and self._include_matcher(path)
        table = self._cache.table
        known = table.by_path.get(path) if table is not None else None
        with self._texts_lock:
            previous = self._texts.pop(path, None)
        clean = known.hash if known is not None and known.is_unmodified else ""
        text = read_text(self.root, path, self._allow, is_included, previous, clean)
        if isinstance(text, FileText):
            with self._texts_lock:
                self._texts[path] = text  # the latest last
                if len(self._texts) > MAX_CACHED_TEXTS:
                    del self._texts[next(iter(self._texts))]
        return text

    def invalidate(self, paths: Iterable[str]) -> None:
        """Have the next refresh read these files, even if their size and time have not changed."""
        with self._db.write_transaction():
            self._db.executemany("UPDATE files SET checked = 0 WHERE path = ?", ((path,) for path in paths))

    def set_derived(self, name: str, value: Any) -> None:
        """Store a value derived from the files. If another process is writing, it is not stored and is derived again."""
        with suppress(StoreError), self._db.write_transaction(SHORT_TIMEOUT_MS):
            self._db.set_meta(f"kept.{name}", value)

    def close(self) -> None:
        self._db.close()


def _text_settings_key(include: Sequence[str], allow: AllowList | None) -> str:
    """Return a hash of what the text of a file depends on besides the file: patterns of inclusion, and rules for secrets."""
    settings = json.dumps([list(include), sorted(allow or ()), [(rule.kind, rule.source) for rule in load_rules().rules]])
    return blake2b(settings.encode("utf-8", "replace"), digest_size=8).hexdigest()
