"""Is everything that foveate relies on sound? What `doctor` prints and the inspector's page of health shows.

Comes in: an engine and where its project is. Goes out: facts, problems (something is wrong) and warnings (something could be
better), each with what to do. Nothing is changed, and the files of the store itself are not read through: `store.health()`
does that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foveate.errors import FoveateError, InputError
from foveate.project.tracked_by_git import ACCEPTED, shipped, tracked
from foveate.store.address import masked

if TYPE_CHECKING:
    from foveate.engine import Engine
    from foveate.project.project import Place


@dataclass(slots=True)
class Findings:
    """What was found, in the order in which it was looked at."""

    facts: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def take(self, facts: dict[str, Any], problems: Iterable[str] = (), warnings: Iterable[str] = ()) -> None:
        self.facts |= facts
        self.problems += problems
        self.warnings += warnings


def around(engine: Engine, place: Place, here: Path, *, readable: bool = True) -> Findings:
    """Everything around the store: settings, vectors, server, code, hooks, profiles. `readable`: whether records are."""
    found = Findings()
    found.take(_settings(place, engine))
    if readable:
        found.take(vectors(engine), (), engine.store.oversized_rules())
    found.take(*_server(place, engine))
    found.take({}, (), [*_accepted(place), *_kept(place)])
    found.take(*code(engine))
    found.take(*hooks(engine, place.root, here))
    found.take({}, _profiles(place))
    return found


def _settings(place: Place, engine: Engine) -> dict[str, Any]:
    from foveate.project.project import own_store
    from foveate.text import tokens

    store: Any = engine.store.data.store
    counter = tokens.counter(store.counter)
    facts: dict[str, Any] = {
        "counter": f"{counter.name} ({'exact' if counter.is_exact else 'an estimate'})",
        "embedder": place.settings.get("embedder") or "none: search is by words",
        "profile": place.settings.get("profile") or ("coding, as there is code" if engine.code.available else "default"),
    }
    if engine.store.data.personal is None:
        facts["own store"] = f"none ({own_store()}); `foveate init --own` creates it"
    return facts


def vectors(engine: Engine) -> dict[str, Any]:
    """How far the records have vectors, and what those of other embedders take; nothing where there are none."""
    found = engine.store.vectors()
    facts = {}
    if found["embedder"]:
        left = f"; {found['lacking']:,} records have none yet: `foveate embed`" if found["lacking"] else ", of every record"
        facts["vectors"] = f"{found['held']:,}{left}"
    if found["unused"]:
        each = [f"{one['vectors']:,} of {one['embedder']} ({one['bytes'] / 2**20:,.1f} MB)" for one in found["unused"]]
        facts["unused vectors"] = f"{', '.join(each)}; `foveate embed --prune` drops them"
    return facts


def _server(place: Place, engine: Engine) -> tuple[dict[str, Any], list[str], list[str]]:
    """Of a shared store: who we are there, what we see, how far away it is."""
    if place.shared is None:
        return {}, [], []
    from foveate.store.postgres.server import facts

    found, warnings = facts(place.shared, engine.scope.project)
    if place.store.exists():
        warnings.append(f"{str(place.store)!r} is not used: the state is in the shared store. Move the file away.")
    return {"project": engine.scope.project, **found}, [], warnings


def _accepted(place: Place) -> list[str]:
    """What git tracks is believed only because a person said so: others can change it all the same."""
    file = str(place.trusted or "")
    if not file or not tracked(file) or shipped(file):
        return []
    power = "sets rules for you"
    if place.shared is not None:
        power += f", and says where what you ask is sent: now to {masked(place.shared)}"
    return [
        f"{file!r} is tracked by git and accepted by {ACCEPTED}: whoever commits to it {power}. To take that "
        f"back, take {str(place.root)!r} out of {ACCEPTED}."
    ]


def _kept(place: Place) -> list[str]:
    """What restoring left beside the store, whole or half."""
    if place.shared is not None:
        return []
    from foveate.store.sqlite.files import side_files

    return [
        f"{str(file)!r} holds what was in the store, or was to be, when a backup was restored, and `foveate forget` does "
        "not reach it. Delete it when you do not want it."
        for file in side_files(place.store)
    ]


def code(engine: Engine) -> tuple[dict[str, Any], list[str], list[str]]:
    """How the code index stands, without bringing it up to date, and what keeps it from seeing more."""
    if not engine.code.available:
        return {"code": "not looked at: no repository, no manifest, no index; `foveate index` makes one"}, [], []
    from foveate.code.languages import unavailable_grammars

    warnings = [
        f"No grammar for {name}, so its files are read as lines: {reason}" for name, reason in unavailable_grammars().items()
    ]
    facts = {"code": _index(engine), "git": _git()}
    if not facts["git"]:
        warnings.append("There is no git: files are listed by the rules of .gitignore, and history counts for nothing.")
    return facts, [], warnings


def _index(engine: Engine) -> str:
    if not engine.code.workspace.is_indexed:
        return "not indexed yet: the first context or `foveate index` does it"
    index = engine.code.workspace.index
    with index.open_reader() as reader:
        found, behind = reader.stats(), index.count_pending()
    state = f"{behind:,} files to look at again, which the next context does" if behind else "up to date"
    return f"{found['files']:,} files, {found['definitions']:,} definitions, {state}"


def _git() -> str:
    import subprocess

    try:
        done = subprocess.run(["git", "--version"], capture_output=True, text=True, check=False, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip().removeprefix("git version ") if not done.returncode else ""


def hooks(engine: Engine, root: Path, here: Path) -> tuple[dict[str, Any], list[str], list[str]]:
    """Whether the hooks of coding agents are alive."""
    from foveate.integrations.install.check import findings
    from foveate.integrations.install.hosts import install_paths

    try:
        return findings(engine, install_paths(root), here)
    except InputError as error:
        return {"hooks": str(error)}, [], []


def _profiles(place: Place) -> list[str]:
    """What keeps a profile from being resolved. Layers that need others below them are judged on base."""
    from foveate.pipeline import profiles

    found = profiles.places(place.root)
    return [problem for name in profiles.names(found) for problem in _checked(name, found)]


def _checked(name: str, places: Any) -> list[str]:
    from foveate.pipeline import profiles

    try:
        return profiles.check(name, places)
    except FoveateError as error:
        return [str(error)]
