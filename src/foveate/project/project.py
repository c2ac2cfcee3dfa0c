"""A project: its files, its settings, and where its state is. No database is opened here."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from foveate.errors import InputError, StoreError, near
from foveate.project.locate import CONFIG_FILE, DIR_NAME, INDEX_FILE, SERVICE_FILE, STORE_FILE, find_project
from foveate.project.tracked_by_git import ACCEPTED, shipped
from foveate.store.database_url import expand_env

MAIN = "main"
"""The name of the only project in a project's own file."""

MARKS = (
    ".git",
    "pyproject.toml",
    "setup.py",
    "package.json",
    "Cargo.toml",
    "go.mod",
    "pom.xml",
    "build.gradle",
    "Gemfile",
    "composer.json",
)
"""Files and folders that mark a project of code."""

SETTINGS = {
    "store": str,
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
    "retention": dict,
    "code": dict,
    "project": dict,
}
"""Keys of `.foveate/config.toml` and their types."""


@dataclass(frozen=True, slots=True)
class Place:
    """The root and the settings of a project."""

    root: Path
    settings: Mapping[str, Any] = field(default_factory=dict)
    tree: Path | None = None
    """The folder with the project's files, if it is not the root: a linked worktree."""
    shared: str | None = None
    """URL of the shared database, if the store is not a file of the project."""
    named_by_settings: bool = False
    """True if the settings name the shared database, and not the call or an environment variable."""

    @property
    def folder(self) -> Path:
        return self.root / DIR_NAME

    @property
    def store(self) -> Path:
        return self.folder / STORE_FILE

    @property
    def trusted(self) -> Path | None:
        """The file that must be the user's: the store, or the settings that name a database. None if a call named it."""
        if self.shared is None:
            return self.store
        return self.folder / CONFIG_FILE if self.named_by_settings else None

    @property
    def has_store(self) -> bool:
        """Return whether there is a store to open. A shared database reports a missing one itself."""
        return self.shared is not None or self.store.exists()

    @property
    def allow(self) -> Path:
        return self.folder / "allow"

    @property
    def service(self) -> Path:
        """Names the running service, while there is one."""
        return self.folder / SERVICE_FILE

    @property
    def tokens(self) -> Path:
        """Tokens of the service."""
        return self.folder / "tokens.json"

    @property
    def files(self) -> Path:
        """The folder whose files are meant."""
        return self.tree or self.root

    @property
    def index(self) -> Path:
        """The index of those files: worktrees share the state, but each has files of its own."""
        if self.tree is None:
            return self.folder / INDEX_FILE
        return self.folder / f"{Path(INDEX_FILE).stem}-{blake2b(str(self.tree).encode(), digest_size=6).hexdigest()}.db"

    @property
    def has_code(self) -> bool:
        """Return whether its files are indexed by default: in a repository, a project of code or an indexed folder."""
        return self.index.exists() or any((self.files / name).exists() for name in MARKS)


def find(path: str | Path, store: str | None = None) -> Place:
    """Return the project that a path belongs to (see `locate.find_project`), with its settings.

    `store` is the URL of a shared database. Without it, the project's settings may name one.
    """
    here = Path(path).expanduser().absolute()
    if here.suffix == ".db" and here.is_file():
        raise InputError(
            f"{str(path)!r} is a file, and a project is a folder. To use a backup: `foveate restore {path} --store FOLDER`."
        )
    root, worktree = map(Path, find_project(str(here)))
    settings = _settings(root / DIR_NAME / CONFIG_FILE)
    named = not store and not _VARIABLE.fullmatch(settings.get("store", "$"))
    tree = worktree if worktree != root else None
    return Place(root, settings, tree, _shared(store, settings), named_by_settings=named)


_VARIABLE = re.compile(r"\$\{?\w*\}?")


def _shared(given: str | None, settings: Mapping[str, Any]) -> str | None:
    """Return the URL of the shared database that the call or the settings name, or None.

    No environment variable names it, because every folder that a program opens, also in a test, would write to it.
    """
    named = given or settings.get("store")
    return expand_env(named) if named else None


def name_of(place: Place, given: str | None = None) -> str:
    """Return the project's name in its store.

    A shared database needs a name. Clones have folders with any name, so a guess could split the memory of a project or mix
    two of them.
    """
    if given is not None or place.shared is None:
        return given or MAIN
    name: str | None = os.environ.get("FOVEATE_PROJECT") or place.settings.get("project", {}).get("name")
    if not name:
        raise InputError(
            "A shared store holds many projects, so the project needs a name. Set `name` under [project] in "
            ".foveate/config.toml, or FOVEATE_PROJECT, or pass --project (in Python: project=)."
        )
    return name


def refuse_shipped(place: Place) -> None:
    """Raise StoreError for a store that came with a repository, because agents would obey rules of an unknown author.

    The same holds for settings that name a database: every query would be sent to it.
    """
    file = place.trusted
    found = shipped(str(file)) if file is not None else ()
    if not found:
        return
    top, name = found
    what = "which rules agents obey" if place.shared is None else "where your queries are sent"
    raise StoreError(
        f"{str(file)!r} is tracked by git: it came with the repository, and its author decides {what}. "
        f"If it is yours, take it out of git (`git -C {top} rm --cached {name}`), or name {str(place.root)!r} in "
        f"{ACCEPTED}. If it is not, move it away."
    )


def create(place: Place) -> None:
    """Create the folder with a `.gitignore`, so that git does not track it."""
    if not place.root.exists() and not place.root.parent.exists():
        raise InputError(f"The folder {str(place.root.parent)!r} does not exist. Create it, or check the path.")
    try:
        place.folder.mkdir(parents=True, exist_ok=True)
        ignore = place.folder / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", "utf-8")
    except OSError as error:
        raise StoreError(f"{str(place.folder)!r} cannot be created: {error.strerror}. Choose another --store.") from None


def own_store() -> Path:
    """Return the path of the personal store, which all projects of a user share."""
    given = os.environ.get("FOVEATE_OWN_STORE")
    if given:
        return Path(given)
    from platformdirs import user_data_path

    return user_data_path("foveate") / STORE_FILE


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
        f"{path.name}: {name} must be {SETTINGS[name].__name__}" + (f", not {value!r}." if name != "store" else ".")
        for name, value in values.items()
        if name in SETTINGS and not isinstance(value, SETTINGS[name])
    ]
    domains = values.get("domains")
    for name, words in domains.items() if isinstance(domains, dict) else ():
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            problems.append(f"{path.name}: domains.{name} must be a list of words, not {words!r}.")
    problems += _code_problems(path.name, values)
    if isinstance(values.get("lifecycle"), dict):
        from foveate.records.lifecycle import threshold_problems

        problems += [f"{path.name}, [lifecycle]: {problem}" for problem in threshold_problems(values["lifecycle"])]
    if isinstance(values.get("retention"), dict):
        from foveate.store.retention import retention_problems

        problems += [f"{path.name}, [retention]: {problem}" for problem in retention_problems(values["retention"])]
    if problems:
        raise InputError(problems)
    return values


CODE: Mapping[str, type] = {"enabled": bool, "include": list, "exclude": list, "max_files": int}
PROJECT: Mapping[str, type] = {"name": str, "language": str, "framework": str, "test_framework": str}
"""Keys of `[code]` and `[project]` and their types."""


def _code_problems(file: str, values: Mapping[str, Any]) -> list[str]:
    problems = []
    for table, keys in (("code", CODE), ("project", PROJECT)):
        given = values.get(table)
        for name, value in given.items() if isinstance(given, dict) else ():
            wanted = keys.get(name)
            if wanted is None:
                problems.append(f"{file}: [{table}] has no setting {name!r}.{near(name, keys)}")
            elif not isinstance(value, wanted) or (isinstance(value, int) and wanted is int and value < 1):
                problems.append(f"{file}: {table}.{name} must be {_WANTED.get(wanted, wanted.__name__)}, not {value!r}.")
            elif isinstance(value, list) and not all(isinstance(pattern, str) for pattern in value):
                problems.append(f"{file}: {table}.{name} must be a list of patterns, not {value!r}.")
    return problems


_WANTED = {int: "a number above 0", list: "a list of patterns", bool: "true or false", str: "text"}
