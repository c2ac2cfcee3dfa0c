"""Checks of everything around the store, for `foveate doctor` and the inspector's health page.

They give facts, problems (something is wrong) and warnings (something could be better), and each says what to do. Nothing is
changed. The store itself is checked by `engine.store.health()`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foveate.errors import FoveateError, InputError
from foveate.project.locate import CONFIG_FILE
from foveate.project.project import how_to_accept, ignored_files
from foveate.project.tracked_by_git import ACCEPTED_ENV_VAR, tracked_file
from foveate.project.trusted_files import accepted_file, is_database, setting_files
from foveate.store.database_url import mask_passwords

if TYPE_CHECKING:
    from foveate.engine import Engine
    from foveate.project.project import ProjectLocation


@dataclass(slots=True)
class Findings:
    """Results of the checks, in the order of the checks."""

    facts: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def add(self, facts: dict[str, Any], problems: Iterable[str] = (), warnings: Iterable[str] = ()) -> None:
        self.facts |= facts
        self.problems += problems
        self.warnings += warnings


def check_environment(engine: Engine, place: ProjectLocation, cwd: Path, *, readable: bool = True) -> Findings:
    """Check settings, vectors, database server, code, hooks and profiles. Without `readable`, no records are read."""
    found = Findings()
    found.add(_settings(place, engine))
    if readable:
        found.add(vectors(engine), (), engine.store.oversized_rules())
    found.add(*_server(place, engine))
    found.add({}, (), [*_trusted_file_warnings(place), *_leftover_file_warnings(place)])
    found.add(*code(engine))
    found.add(*hooks(engine, place.root, cwd))
    found.add({}, _profile_problems(place))
    return found


def _settings(place: ProjectLocation, engine: Engine) -> dict[str, Any]:
    from foveate.project.project import personal_store_path
    from foveate.text import tokens

    store: Any = engine.store.data.store
    counter = tokens.counter(store.counter)
    facts: dict[str, Any] = {
        "counter": f"{counter.name} ({'exact' if counter.is_exact else 'an estimate'})",
        "embedder": place.settings.get("embedder") or "none: search is by words",
        "profile": place.settings.get("profile") or ("coding, as there is code" if engine.code.available else "default"),
    }
    if engine.store.data.personal is None:
        facts["personal store"] = f"none ({personal_store_path()}); `foveate init --personal` creates it"
    return facts


def vectors(engine: Engine) -> dict[str, Any]:
    """Return how many records have vectors, and the vectors of other embedders."""
    found = engine.store.vectors()
    facts = {}
    if found.embedder:
        missing = f"; {found.missing:,} records have none yet: `foveate store maintain`"
        facts["vectors"] = f"{found.stored:,}{missing if found.missing else ', of every record'}"
    if found.unused:
        each = [f"{one.vector_count:,} of {one.fingerprint} ({one.size_bytes / 2**20:,.1f} MB)" for one in found.unused]
        facts["unused vectors"] = f"{', '.join(each)}; `foveate store maintain --only unused-vectors` drops them"
    return facts


def _server(place: ProjectLocation, engine: Engine) -> tuple[dict[str, Any], list[str], list[str]]:
    """Return the role, the rights and the latency of a shared store."""
    if place.database_url is None:
        return {}, [], []
    from foveate.store.postgres.server import facts, members

    found, warnings = facts(place.database_url, engine.scope.project)
    if roles := _projects_by_role(members(place.database_url)):
        found["roles"] = roles
    if place.store_file.exists():
        warnings.append(f"{str(place.store_file)!r} is not used: the state is in the shared store. Move the file away.")
    return {"project": engine.scope.project, **found}, [], warnings


def _projects_by_role(members: Iterable[tuple[str, str]]) -> str:
    """Return `ada: books, shop; ben: shop`."""
    by_role: dict[str, list[str]] = {}
    for role, project in members:
        by_role.setdefault(role, []).append(project)
    return "; ".join(f"{role}: {', '.join(projects)}" for role, projects in by_role.items())


def _trusted_file_warnings(place: ProjectLocation) -> list[str]:
    """Warn about files in `.foveate/` that are not obeyed, and about those that git tracks and the user accepted."""
    ignored = ignored_files(place)
    warnings = [f"{file!r} is ignored: {reason}. {how_to_accept(file)}" for file, reason in ignored.items()]
    for file in setting_files(str(place.folder)):
        if file in ignored or not tracked_file(file):
            continue
        if is_database(file):
            warnings.append(
                f"{file!r} is tracked by git and trusted by {ACCEPTED_ENV_VAR}: everyone who commits to it can set rules "
                f"for you. To withdraw the trust, remove {str(place.root)!r} from {ACCEPTED_ENV_VAR}."
            )
        else:
            server = (
                f" It names the store {mask_passwords(place.database_url or '')}." if _names_database(file, place) else ""
            )
            warnings.append(
                f"{file!r} is tracked by git, and you accepted it as it is now.{server} To withdraw that, delete its "
                f"line in {accepted_file()!r}."
            )
    return warnings


def _names_database(file: str, place: ProjectLocation) -> bool:
    return bool(place.database_url) and file.endswith(CONFIG_FILE) and "store" in place.settings


def _leftover_file_warnings(place: ProjectLocation) -> list[str]:
    """Warn about files that a repair or restoring a backup left next to the store."""
    if place.database_url is not None:
        return []
    from foveate.store.sqlite.files import side_files

    return [
        f"{str(file)!r} is left from a repair or a restored backup. It holds records that `foveate forget` does not reach, "
        "also some that were forgotten before. "
        "Delete it if you do not need it."
        for file in side_files(place.store_file)
    ]


def code(engine: Engine) -> tuple[dict[str, Any], list[str], list[str]]:
    """Return the state of the code index, without updating it, and warnings about what it cannot read."""
    if not engine.code.available:
        return {"code": "not used: no repository, manifest or index; `foveate init --code` builds one"}, [], []
    from foveate.code.languages import OUTLINES_OFF, has_parser, unavailable_grammars

    warnings = [
        f"No grammar for {name}; its files are read as lines: {reason}" for name, reason in unavailable_grammars().items()
    ]
    if not has_parser():
        warnings = [OUTLINES_OFF]
    facts = {"code": _index(engine), "git": _git()}
    if not facts["git"]:
        warnings.append("git was not found: files are listed by the rules of .gitignore, and history is not used.")
    return facts, [], warnings


def _index(engine: Engine) -> str:
    if not engine.code.workspace.is_indexed:
        return "not indexed yet; the first context does it"
    index = engine.code.workspace.index
    with index.open_reader() as reader:
        found, behind = reader.stats(), index.count_pending()
    state = f"{behind:,} files have changed, which the next context reads" if behind else "up to date"
    return f"{found['files']:,} files, {found['definitions']:,} definitions, {state}"


def _git() -> str:
    import subprocess

    try:
        # Run, not only looked up: on macOS the command exists and fails until the developer tools are installed.
        done = subprocess.run(["git", "--version"], capture_output=True, text=True, check=False, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip().removeprefix("git version ") if not done.returncode else ""


def hooks(engine: Engine, root: Path, cwd: Path) -> tuple[dict[str, Any], list[str], list[str]]:
    """Check the hooks of coding agents."""
    from foveate.integrations.install.check import findings
    from foveate.integrations.install.hosts import install_paths

    try:
        return findings(engine, install_paths(root), cwd)
    except InputError as error:
        return {"hooks": str(error)}, [], []


def _profile_problems(place: ProjectLocation) -> list[str]:
    """Return the problems of all profiles."""
    from foveate.pipeline import profiles

    dirs, problems = profiles.profile_dirs(place.root), []
    for name in profiles.names(dirs):
        try:
            problems += profiles.check(name, dirs)
        except FoveateError as error:
            problems.append(str(error))
    return problems
