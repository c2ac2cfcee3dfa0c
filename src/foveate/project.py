"""Where a project's state lives: `.foveate/` at its root, its settings, and the user's own store.

Comes in: a path. Goes out: a `Place` (files and settings). Worktrees of one repository share the main worktree's state.
It opens no database.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foveate.errors import InputError, StoreError, near

FOLDER = ".foveate"
STORE = "state.db"
SETTINGS = {
    "profile": str,
    "budget": int,
    "counter": str,
    "embedder": str,
    "summarizer": str,
    "user": str,
    "multi_valued": list,
    "own_store": bool,
    "debug_context": bool,
    "domains": dict,
    "lifecycle": dict,
}
"""Keys of `.foveate/config.toml` and their types."""


@dataclass(frozen=True, slots=True)
class Place:
    """A project's root and what its settings say."""

    root: Path
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.root / FOLDER

    @property
    def store(self) -> Path:
        return self.folder / STORE

    @property
    def allow(self) -> Path:
        return self.folder / "allow"


def find(path: str | Path) -> Place:
    """The project that a path belongs to: the nearest `.foveate/`, else the repository's root, else the path itself."""
    here = Path(path).expanduser().absolute()
    for folder in (here, *here.parents):
        if (folder / FOLDER).is_dir():
            return Place(folder, _settings(folder / FOLDER / "config.toml"))
    root = _repository(here) or here
    return Place(root, _settings(root / FOLDER / "config.toml"))


def create(place: Place) -> None:
    """Make the folder, and keep git away from it by its own `.gitignore`."""
    try:
        place.folder.mkdir(parents=True, exist_ok=True)
        ignore = place.folder / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", "utf-8")
    except OSError as error:
        raise StoreError(f"{str(place.folder)!r} cannot be created: {error.strerror}. Choose another --store.") from None


def own_store() -> Path:
    """The user's own store, which follows a person across projects."""
    given = os.environ.get("FOVEATE_OWN_STORE")
    if given:
        return Path(given)
    from platformdirs import user_data_path

    return user_data_path("foveate") / STORE


def _repository(here: Path) -> Path | None:
    for folder in (here, *here.parents):
        marker = folder / ".git"
        if marker.is_dir():
            return folder
        if marker.is_file():
            return _main_worktree(marker) or folder
    return None


def _main_worktree(marker: Path) -> Path | None:
    """`.git` of a linked worktree names `<main>/.git/worktrees/<name>`; that of a submodule does not."""
    first = marker.read_text("utf-8", "replace").splitlines()[:1]
    if not first or not first[0].startswith("gitdir:"):
        return None
    target = (marker.parent / first[0].removeprefix("gitdir:").strip()).resolve()
    if target.parent.name == "worktrees" and target.parent.parent.name == ".git":
        return target.parent.parent.parent
    return None


def _settings(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    import tomllib

    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{str(path)!r} is not valid TOML: {error}.") from None
    problems = [f"{path.name} has no setting {name!r}.{near(name, SETTINGS)}" for name in values if name not in SETTINGS]
    problems += [
        f"{path.name}: {name} must be {SETTINGS[name].__name__}, not {value!r}."
        for name, value in values.items()
        if name in SETTINGS and not isinstance(value, SETTINGS[name])
    ]
    domains = values.get("domains")
    for name, words in domains.items() if isinstance(domains, dict) else ():
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            problems.append(f"{path.name}: domains.{name} must be a list of words, not {words!r}.")
    if isinstance(values.get("lifecycle"), dict):
        from foveate.state.lifecycle import problems_in

        problems += [f"{path.name}, [lifecycle]: {problem}" for problem in problems_in(values["lifecycle"])]
    if problems:
        raise InputError(problems)
    return values
