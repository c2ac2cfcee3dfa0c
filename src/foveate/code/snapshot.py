"""The code that an engine looks at: its index, brought up to date when it is looked at, and one look for each call.

A `Look` is one moment: every source of a call shares its search, its texts and what it found out of date. A text whose file
changed since it was indexed is indexed again before a line of it is shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING

from foveate.code import question
from foveate.code.file_text import Text
from foveate.code.index import CodeIndex, File
from foveate.code.indexing import Progress, Refreshed
from foveate.code.model import Aside
from foveate.code.search import Hits, search
from foveate.code.walk import MAX_FILES
from foveate.text.redact import Allow

if TYPE_CHECKING:
    from foveate.code.docs import Codebase

DESCRIBED = 1
"""Raise it when the codebase docs say something else for the same files."""

FILES, DEFINITIONS = 50, 100
"""What one search brings at most."""

_LINE = re.compile(r"(?::\d+){1,2}$")
"""`cart.py:40:3`: a place in a file."""

FRESH_SECONDS = 1.0
"""A look within this time of the last one does not walk the tree again: several contexts of one turn share it."""

TRIES = 3
"""How often a file that changes while it is read is indexed again before it is left out."""


@dataclass(frozen=True, slots=True)
class CodeSettings:
    """What `[code]` and `[project]` in a project's settings say."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    max_files: int = MAX_FILES
    project: Mapping[str, str] = field(default_factory=dict)


class Workspace:
    """A folder of code and its index."""

    def __init__(
        self, root: Path, file: Path | str, settings: CodeSettings | None = None, allow: Allow | None = None
    ) -> None:
        self.root = root
        self.settings = settings or CodeSettings()
        self._file = file
        self._allow = allow
        self._index: CodeIndex | None = None
        self._opening = Lock()
        self._looked = 0.0
        self.described: tuple[str, Sequence[str], Codebase] | None = None
        """What the repository says of itself, with the generation of the index and the files that it was read from."""
        self.progress: Progress | None = None
        """Told how far a refresh is; the command line draws it."""

    @property
    def index(self) -> CodeIndex:
        with self._opening:
            if self._index is None:
                chosen = self.settings
                self._index = CodeIndex(
                    self.root,
                    self._file,
                    include=chosen.include,
                    exclude=chosen.exclude,
                    max_files=chosen.max_files,
                    allow=self._allow,
                )
            return self._index

    @property
    def is_indexed(self) -> bool:
        """Whether there is an index already."""
        return self._index is not None or Path(self._file).exists()

    def refresh(self) -> Refreshed:
        """Take in what changed."""
        done = self.index.refresh(self.progress)
        self._looked = monotonic()
        return done

    def look(self) -> Look:
        """One look at the code as it is now."""
        notes: tuple[str, ...] = ()
        if not self._looked or monotonic() - self._looked > FRESH_SECONDS:
            notes = self.refresh().notes
        return Look(self, notes)

    def close(self) -> None:
        if self._index is not None:
            self._index.close()
            self._index = None


class Look:
    """What the sources of one call see of the code."""

    def __init__(self, workspace: Workspace, notes: Sequence[str] = ()) -> None:
        self._workspace = workspace
        self.index = workspace.index
        self.notes: list[str] = list(notes)
        self._hits: dict[tuple[str, int, int], Hits] = {}
        self._lines: dict[str, tuple[str, list[str] | None]] = {}
        self._as_indexed: dict[str, bool] = {}
        self._described: Codebase | None = None

    def hits(self, text: str, files: int = FILES, definitions: int = DEFINITIONS) -> Hits:
        """What a question finds."""
        asked = (text, files, definitions)
        if asked not in self._hits:
            found = self._search(*asked)
            if self.renewed(hit.file.path for hit in found.files):
                found = self._search(*asked)
            self._hits[asked] = found
        return self._hits[asked]

    def _search(self, text: str, files: int, definitions: int) -> Hits:
        with self.index.moment():
            return search(self.index, question.read(text), files, definitions)

    def file(self, path: str) -> File | None:
        return self.index.table().by_path.get(path)

    def known(self, path: str) -> str | None:
        """The file that a path means: as written, else the only one that ends so."""
        table = self.index.table().by_path
        for plain in (path.removeprefix("./"), _LINE.sub("", path.removeprefix("./"))):
            ends = [plain] if plain in table else [known for known in table if known.endswith(f"/{plain}")]
            if len(ends) == 1:
                return ends[0]
        return None

    def note(self, said: str) -> None:
        """Something that the reader of the receipt should know; once."""
        if said not in self.notes:
            self.notes.append(said)

    def lines(self, path: str) -> list[str] | None:
        """The lines of a file as they are now and as the index knows them; None where that cannot be had."""
        held = self._lines.get(path)
        if held is None or held[0] != self._hash(path):  # another process may have indexed it since
            lines = self._read(path)
            held = self._lines[path] = (self._hash(path), lines)
        return held[1]

    def _hash(self, path: str) -> str:
        known = self.file(path)
        return known.hash if known is not None else ""

    def _read(self, path: str) -> list[str] | None:
        """The lines of a file; one that changed since it was indexed is indexed again first."""
        for attempt in range(TRIES):
            text = self.index.read(path)
            if isinstance(text, Aside):
                self._renew()  # what comes after, such as the map, does not speak of it any more
                self.note(f"{path} is not shown: {text.reason}.")
                return None
            if self._hash(path) == text.hash:
                return text.text.splitlines()
            if attempt:
                self.index.doubt(path)
            self._renew()
            self.note(f"{path} changed while the context was computed; it was indexed again.")
        self.note(f"{path} is not shown: it {'keeps changing' if self._hash(path) else 'is no longer in the index'}.")
        return None

    def is_as_indexed(self, path: str) -> bool:
        """Whether a file is in the index and was not written since."""
        if path not in self._as_indexed:
            self._as_indexed[path] = self.file(path) is not None and not self.index.touched([path])
        return self._as_indexed[path]

    def renewed(self, paths: Iterable[str]) -> bool:
        """Whether one of the files was written since it was indexed; then all that changed is taken in."""
        touched = self.index.touched(paths)
        if touched:
            self._renew()
        return touched

    def _renew(self) -> None:
        self._as_indexed.clear()
        self._workspace.refresh()
        self._hits.clear()

    # --- what the repository says of itself --------------------------------------------------------------------

    @property
    def codebase(self) -> Codebase:
        """The documents of the repository, worked out again only where a file that they come from changed."""
        if self._described is None:
            self._described = self._as_described() or self._kept() or self._describe()
        overrides = {name: value for name, value in self._workspace.settings.project.items() if value}
        project = replace(self._described.project, **overrides) if overrides else self._described.project
        return replace(self._described, project=project)

    def _describe(self) -> Codebase:
        from foveate.code.docs import describe

        paths = [*self.index.table().by_path, *(aside.path for aside in self.index.asides())]  # a lock file tells the tool
        described = describe(paths, self._text)
        if not described.project.name:
            described = replace(described, project=replace(described.project, name=self._workspace.root.name))
        kept = {"key": self._key(described.inputs), "inputs": described.inputs, "codebase": asdict(described)}
        self.index.keep("codebase", json.dumps(kept, ensure_ascii=False))
        return described

    def _as_described(self) -> Codebase | None:
        """What the last look found, where neither the index nor one of the files changed since."""
        held = self._workspace.described
        if held is None or self.renewed(held[1]) or held[0] != self.index.generation:
            return None
        return held[2]

    def _kept(self) -> Codebase | None:
        held = self.index.kept("codebase")
        if not held:
            return None
        from foveate.code.docs import from_json

        document = json.loads(held)
        self.renewed(document["inputs"])
        with self.index.moment():
            generation, key = self.index.generation, self._key(document["inputs"])
        if document["key"] != key:
            return None
        described = from_json(document["codebase"])
        self._workspace.described = (generation, document["inputs"], described)
        return described

    def _key(self, inputs: Sequence[str]) -> str:
        """What a description depends on: the names of all files, and the content of those that it was read from."""
        table = self.index.table().by_path
        digest = blake2b(f"{DESCRIBED}".encode(), digest_size=16)
        for path in (*table, *(aside.path for aside in self.index.asides())):
            digest.update(path.encode("utf-8", "surrogateescape") + b"\0")
        for path in inputs:
            digest.update((table[path].hash if path in table else "-").encode())
        return digest.hexdigest()

    def _text(self, path: str) -> str | None:
        text = self.index.read(path) if self.file(path) is not None else None
        return text.text if isinstance(text, Text) else None
