"""A repository as the readers of its documents see it: all of its paths and, of a few of them, the text.

Every text that is asked for is remembered as an input: with the paths, the inputs are all that a description depends on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from foveate.code.roles import role_of
from foveate.text.markdown import remove_generated_block

MAX_CHARS = 200_000
"""What is read of one file. No manifest is larger, and of a longer text the beginning says enough."""

BESIDE = frozenset({"test", "docs", "example", "vendored", "generated"})
"""Roles of directories whose manifests are about something else than the project itself."""


class Repository:
    """Paths by name and by place, texts on demand. Notes say what could not be read."""

    def __init__(self, paths: Sequence[str], read: Callable[[str], str | None]) -> None:
        self.paths = tuple(sorted(set(paths)))
        self.notes: list[str] = []
        self._read = read
        self._texts: dict[str, str] = {}
        self._known = frozenset(self.paths)
        self._root = {path.lower(): path for path in self.paths if "/" not in path}
        self._named: dict[str, list[str]] = {}
        for path in self.paths:
            self._named.setdefault(path.rpartition("/")[2].lower(), []).append(path)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The paths that were read so far."""
        return tuple(sorted(self._texts))

    def __contains__(self, path: str) -> bool:
        return path in self._known

    def text(self, path: str) -> str:
        """The text of a file, without a byte order mark; empty where there is none."""
        if path not in self._known:
            return ""
        if path not in self._texts:
            self._texts[path] = remove_generated_block((self._read(path) or "")[:MAX_CHARS].lstrip("\ufeff"))
        return self._texts[path]

    def root(self, *names: str) -> str | None:
        """The first of these files that is at the root, whatever its case."""
        return next((self._root[name.lower()] for name in names if name.lower() in self._root), None)

    def first(self, *paths: str) -> str | None:
        """The first of these paths that exists."""
        return next((path for path in paths if path in self._known), None)

    def named(self, *names: str, depth: int = 4) -> list[str]:
        """The files of these names, the ones nearest to the root first, without those of examples, tests and documents."""
        found = {path for name in names for path in self._named.get(name.lower(), ())}
        return _nearest(path for path in found if path.count("/") < depth and not is_beside(path))

    def ending(self, *ends: str, depth: int = 4) -> list[str]:
        """The files whose path ends so, as `named`."""
        found = (path for path in self.paths if path.endswith(ends))
        return _nearest(path for path in found if path.count("/") < depth and not is_beside(path))

    def under(self, folder: str) -> list[str]:
        """The files right inside a directory."""
        start = folder + "/"
        return [path for path in self.paths if path.startswith(start) and "/" not in path[len(start) :]]


def is_beside(path: str) -> bool:
    """Whether a path lies in a directory of tests, documents, examples or other people's code."""
    return role_of(path[: path.rfind("/") + 1]) in BESIDE


def _nearest(paths: Iterable[str]) -> list[str]:
    return sorted(paths, key=lambda path: (path.count("/"), path))
