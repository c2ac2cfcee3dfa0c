"""What a path says: which of its parts are telling, and which component a file belongs to."""

from __future__ import annotations

ROOTS = frozenset(("src", "lib", "app", "apps", "pkg", "packages", "source", "internal"))
"""Folders that say nothing about a component."""

ENTRANCES = frozenset(("__init__", "__main__", "index", "main", "mod", "lib"))
"""Files that stand for their folder."""


def component_of(path: str) -> str:
    """The component that a file belongs to, as its path tells: `src/auth/login.py` -> `auth/login`."""
    parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    if not parts:
        return path
    stem = parts[-1].split(".")[0] or parts[-1]
    folders = [part for n, part in enumerate(parts[:-1]) if n or part.lower() not in ROOTS]
    named = folders if stem.lower() in ENTRANCES and folders else [*folders, stem]
    return "/".join(named[-2:])


def telling(path: str) -> str:
    """The words of a path that say something: without the `src/` and `.py` that nearly every path has."""
    folders, _, name = path.removeprefix("./").rpartition("/")
    root, _, rest = folders.partition("/")
    return f"{rest if root.lower() in ROOTS else folders} {name.rsplit('.', 1)[0] or name}"
