"""A project: its folder, its settings, and the place of its store. This module opens no database."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from foveate.errors import InputError, StoreError, near
from foveate.project.locate import CONFIG_FILE, DIR_NAME, INDEX_FILE, SERVICE_FILE, STORE_FILE, find_project, store_source
from foveate.project.tracked_by_git import ACCEPTED_ENV_VAR, tracked_file
from foveate.project.trusted_files import is_database, refusal, setting_files
from foveate.store.database_url import expand_env

DEFAULT_PROJECT = "main"
"""Name of the project in a file, which has only one."""

CODE_MARKERS = (
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
"""Files and folders whose presence shows that a folder contains code."""

SETTING_TYPES = {
    "store": str,
    "profile": str,
    "budget": int,
    "counter": str,
    "embedder": str,
    "summarizer": str,
    "user": str,
    "multi_valued": list,
    "personal_store": bool,
    "debug_context": bool,
    "domains": dict,
    "lifecycle": dict,
    "retention": dict,
    "code": dict,
    "project": dict,
}
"""Settings in `.foveate/config.toml` and their types."""


@dataclass(frozen=True, slots=True)
class ProjectLocation:
    """The root, the settings and the files of a project."""

    root: Path
    settings: Mapping[str, Any] = field(default_factory=dict)
    worktree: Path | None = None
    """The linked git worktree with the project's files, if they are not in the root."""
    database_url: str | None = None
    """URL of the shared database, or None if the store is a file."""
    ignores_store: bool = False
    """The settings are not obeyed, and name a store."""

    @property
    def folder(self) -> Path:
        return self.root / DIR_NAME

    @property
    def store_file(self) -> Path:
        return self.folder / STORE_FILE

    @property
    def has_store(self) -> bool:
        """Return whether a store exists. For a shared database this is True; opening it reports a missing store."""
        return self.database_url is not None or self.store_file.exists()

    @property
    def allow_file(self) -> Path:
        return self.folder / "allow"

    @property
    def service_file(self) -> Path:
        """The file with the address of the running service. It exists while the service runs."""
        return self.folder / SERVICE_FILE

    @property
    def tokens_file(self) -> Path:
        """The file with the tokens of the service."""
        return self.folder / "tokens.json"

    @property
    def code_root(self) -> Path:
        """The folder with the project's code."""
        return self.worktree or self.root

    @property
    def index_file(self) -> Path:
        """The file of the code index. Linked worktrees share the store, but each has an index of its own files."""
        if self.worktree is None:
            return self.folder / INDEX_FILE
        return self.folder / f"{Path(INDEX_FILE).stem}-{blake2b(str(self.worktree).encode(), digest_size=6).hexdigest()}.db"

    @property
    def has_code(self) -> bool:
        """Return whether the files are indexed by default: in a repository, a folder with code or an indexed folder."""
        return self.index_file.exists() or any((self.code_root / name).exists() for name in CODE_MARKERS)


def locate_project(path: str | Path, store: str | None = None) -> ProjectLocation:
    """Return the project that a path belongs to, with its settings.

    `locate.find_project` has the rules. `store` is the URL of a shared database. Without it, the settings may name one.
    """
    here = Path(path).expanduser().absolute()
    if here.suffix == ".db" and here.is_file():
        raise InputError(
            f"{str(path)!r} is a file, but a project is a folder. To use a backup: "
            f"`foveate store restore {path} --store FOLDER`."
        )
    root, worktree = map(Path, find_project(str(here)))
    config = root / DIR_NAME / CONFIG_FILE
    is_obeyed = not refusal(str(config))
    settings = _settings(config) if is_obeyed else {}
    hidden = not is_obeyed and not store and store_source(str(root)) == CONFIG_FILE
    linked = worktree if worktree != root else None
    return ProjectLocation(root, settings, linked, _database_url(store, settings), ignores_store=hidden)


def _database_url(given: str | None, settings: Mapping[str, Any]) -> str | None:
    """Return the URL of the shared database from the call or the settings, or None if the store is a file.

    FOVEATE_STORE is not read here, because every folder that a program opens, also in a test, would then write to it.
    """
    named = given or settings.get("store")
    return expand_env(named) if named else None


def name_of(place: ProjectLocation, given: str | None = None) -> str:
    """Return the project's name in its store.

    A project in a shared database must be named explicitly. The name of the folder is no substitute: it differs between
    clones, so one project could get two memories, or two projects could share one.
    """
    if given is not None or place.database_url is None:
        return given or DEFAULT_PROJECT
    name: str | None = os.environ.get("FOVEATE_PROJECT") or place.settings.get("project", {}).get("name")
    if not name:
        raise InputError(
            "A shared store contains many projects, so the project needs a name. Set `name` under [project] in "
            ".foveate/config.toml, or FOVEATE_PROJECT, or pass --project (in Python: project=)."
        )
    return name


def refuse_untrusted(place: ProjectLocation) -> None:
    """Raise StoreError for a store, or settings that name one, that the user has not written and not accepted.

    Agents would follow rules of an unknown author, or send every query to a server of theirs.
    """
    if place.ignores_store:
        config = str(place.folder / CONFIG_FILE)
        raise StoreError(f"{config!r} names a store, but is not obeyed: {refusal(config)}. {how_to_accept(config)}")
    file = str(place.store_file)
    reason = refusal(file) if place.database_url is None else ""
    if reason:
        raise StoreError(
            f"{file!r} is not opened, because its author decides which rules agents follow: {reason}. {how_to_accept(file)}"
        )


def how_to_accept(file: str) -> str:
    """Return what a person can do about a file in `.foveate/` that is not obeyed."""
    root = os.path.dirname(file[: file.rindex(DIR_NAME) + len(DIR_NAME)])
    trusted_folder = f"add {root!r} to the environment variable {ACCEPTED_ENV_VAR}"
    tracked = tracked_file(file)
    if not tracked:
        return f"If it is yours, change its owner or mode, or {trusted_folder}."
    untrack = f"remove it from git (`git -C {tracked[0]} rm --cached {tracked[1]}`)"
    if is_database(file):
        return f"If it is yours, {untrack}, or {trusted_folder}. If it is not, move it away."
    return f"Read it, then accept it with `foveate doctor --accept {file}`. If it is yours alone, {untrack}."


def ignored_files(place: ProjectLocation) -> dict[str, str]:
    """Return the files in `.foveate/` that are not obeyed, each with the reason."""
    reasons = {file: refusal(file) for file in setting_files(str(place.folder))}
    return {file: reason for file, reason in reasons.items() if reason}


def create(place: ProjectLocation) -> None:
    """Create the `.foveate/` folder, with a `.gitignore` so that git does not track it."""
    if not place.root.exists() and not place.root.parent.exists():
        raise InputError(f"The folder {str(place.root.parent)!r} does not exist. Create it, or check the path.")
    try:
        place.root.mkdir(parents=True, exist_ok=True)
        place.folder.mkdir(mode=0o700, exist_ok=True)
        ignore = place.folder / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", "utf-8")
    except OSError as error:
        raise StoreError(f"{str(place.folder)!r} cannot be created: {error.strerror}. Choose another --store.") from None


def personal_store_path() -> Path:
    """Return the path of the personal store, which all projects of a user share."""
    given = os.environ.get("FOVEATE_PERSONAL_STORE")
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
    unknown = [name for name in values if name not in SETTING_TYPES]
    problems = [f"{path.name} has no setting {name!r}.{near(name, SETTING_TYPES)}" for name in unknown]
    problems += [
        # The value of `store` may contain a password.
        f"{path.name}: {name} must be {SETTING_TYPES[name].__name__}" + (f", got {value!r}." if name != "store" else ".")
        for name, value in values.items()
        if name in SETTING_TYPES and not isinstance(value, SETTING_TYPES[name])
    ]
    domains = values.get("domains")
    for name, words in domains.items() if isinstance(domains, dict) else ():
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            problems.append(f"{path.name}: domains.{name} must be a list of words, got {words!r}.")
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


CODE_SETTING_TYPES: Mapping[str, type] = {"enabled": bool, "include": list, "exclude": list, "max_files": int}
PROJECT_SETTING_TYPES: Mapping[str, type] = {"name": str, "language": str, "framework": str, "test_framework": str}
"""Keys of `[code]` and `[project]` and their types."""


def _code_problems(file: str, values: Mapping[str, Any]) -> list[str]:
    problems = []
    for table, keys in (("code", CODE_SETTING_TYPES), ("project", PROJECT_SETTING_TYPES)):
        given = values.get(table)
        for name, value in given.items() if isinstance(given, dict) else ():
            wanted = keys.get(name)
            if wanted is None:
                problems.append(f"{file}: [{table}] has no setting {name!r}.{near(name, keys)}")
            elif not isinstance(value, wanted) or (isinstance(value, int) and wanted is int and value < 1):
                problems.append(
                    f"{file}: {table}.{name} must be {_TYPE_DESCRIPTIONS.get(wanted, wanted.__name__)}, got {value!r}."
                )
            elif isinstance(value, list) and not all(isinstance(pattern, str) for pattern in value):
                problems.append(f"{file}: {table}.{name} must be a list of patterns, got {value!r}.")
    return problems


_TYPE_DESCRIPTIONS = {int: "a number above 0", list: "a list of patterns", bool: "true or false", str: "text"}
