"""foveate through its public names: `open`, `add_many`, `retire`, `link` and `compute`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from shutil import copyfile, copytree
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import foveate
from foveate.errors import BudgetError, FoveateError, InputError
from foveate.eval.model import Case, Entry, Rendered, Scene, Suite
from foveate.eval.overrides import together
from foveate.eval.python_files import among
from foveate.eval.reading import digest
from foveate.pipeline import profiles
from foveate.pipeline.assembly import Context, joined
from foveate.project import project
from foveate.text.embed import Embedder, open_embedder
from foveate.types import Candidate

PACKAGE = Path(foveate.__file__).parent
AMPLE = 8000
"""The budget with which a ranking is asked for: it does not depend on it."""
DEPTH = 1000
"""Definitions that a ranking holds."""
FUNCTIONS = ("function", "method")
BESIDE = ("eval", "cli", "integrations", "operations", "server", "testing.py", "__pycache__")
"""Of the package, what no context depends on."""


@dataclass(frozen=True, slots=True)
class Foveate:
    """`overrides` are laid over the profile of a suite: a variant, or an ablation."""

    name: str = "foveate"
    profile: str | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)
    embedder: Embedder | None = field(default=None, repr=False)
    on_code: ClassVar[None] = None

    @property
    def fingerprint(self) -> str:
        vectors = f" {self.embedder.fingerprint}" if self.embedder else ""
        return f"{digest(_engine())} {self.profile} {dict(self.overrides)}{vectors}"

    def open(self, scene: Scene, suite: Suite) -> Memory | Repository:
        profile = self.profile or suite.profile
        if scene.root is not None:
            (scene.root / project.FOLDER).mkdir(exist_ok=True)  # its own, whatever stands above it
            engine = foveate.open(scene.root, own=False, profile=profile, code=True, embedder=self.embedder)
            return Repository(engine, self.overrides, scene.files)
        if scene.store is not None:
            return Kept(scene.store, scene.entries, profile, self.overrides, self.embedder)
        return Memory(scene.entries, profile, self.overrides, self.embedder)


class Memory:
    """A store in a folder of its own that was told the entries of a scene; an engine for each who tells or asks."""

    def __init__(
        self,
        entries: Sequence[Entry],
        profile: str | None,
        overrides: Mapping[str, Any],
        embedder: Embedder | None = None,
    ) -> None:
        self.profile = profile
        self.overrides = overrides
        self.embedder = embedder
        self.folder = TemporaryDirectory(prefix="foveate-eval-")
        Path(self.folder.name, project.FOLDER).mkdir()  # its own, whatever stands above it
        self.engines: dict[tuple[str | None, str | None], foveate.Engine] = {}
        self.told: dict[str, list[Entry]] = {}
        try:
            for entry, id in self._tell(entries):
                self.told.setdefault(id, []).append(entry)
            self._finish(entries)
        except FoveateError:
            self.close()
            raise

    def render(self, case: Case, budget: int) -> Rendered:
        contexts = self._contexts(case, budget)
        slots: dict[str, str] = {}
        for context in contexts:
            for section in context.sections:
                slots[section.name] = f"{slots.get(section.name, '')}\n{joined([section])}"
        return Rendered("\n\n".join(context.text for context in contexts), slots)

    def ranked(self, case: Case) -> Mapping[str, Sequence[str]]:
        found = [candidate for context in self._contexts(case, AMPLE) for candidate in considered(context)]
        entries = [entry for id in best_first(found) for entry in self.told.get(id, ())]
        ids = [entry.id for entry in entries]
        sessions = dict.fromkeys(entry.session for entry in entries if entry.session)
        return {"turn": ids, "record": ids, "session": sorted(sessions, key=self._worth(found).__getitem__, reverse=True)}

    def _worth(self, found: Sequence[Candidate]) -> dict[str | None, float]:
        """What the engine makes of each session as a whole; where it makes nothing of them, the best record decides."""
        worth: dict[str | None, float] = defaultdict(float)
        for candidate in found:
            for entry in self.told.get(candidate.record.id, ()):
                worth[entry.session] = max(worth[entry.session], candidate.features.get("session", 0.0))
        return worth

    def close(self) -> None:
        for engine in self.engines.values():
            engine.close()
        self.folder.cleanup()

    def _tell(self, entries: Sequence[Entry]) -> Iterator[tuple[Entry, str]]:
        for (user, agent, session), told in groupby(entries, key=lambda entry: (entry.user, entry.agent, entry.session)):
            batch, engine = list(told), self._engine(user, agent)
            scope = replace(engine.scope, session=session)
            rows = [(entry.kind, entry.text, _values(entry)) for entry in batch]
            yield from zip(batch, engine.add_many(rows, scope=scope), strict=True)

    def _finish(self, entries: Sequence[Entry]) -> None:
        """What refers to others, or takes back: once all of it is there."""
        ids = {entry.id: id for id, told in self.told.items() for entry in told}
        for entry in entries:
            engine = self._engine(entry.user, entry.agent)
            for name, other in entry.links:
                engine.link(ids[entry.id], name, ids[other])
            if entry.retired:
                engine.retire(ids[entry.id])

    def _contexts(self, case: Case, budget: int) -> list[Context]:
        options = {**case.options, "overrides": together(case.options.get("overrides", {}), self.overrides)}
        out = []
        for agent in case.agents:
            engine = self._engine(case.user, agent)
            try:
                out.append(engine.compute(case.query, budget=budget, now=case.now, **options))
            except BudgetError:
                continue  # what must be kept is more than this budget: nothing is sent
        return out

    def _engine(self, user: str | None, agent: str | None) -> foveate.Engine:
        if (user, agent) not in self.engines:
            self.engines[user, agent] = foveate.open(
                self.folder.name,
                user=user,
                agent=agent,
                own=False,
                profile=self.profile,
                code=False,
                embedder=self.embedder,
            )
        return self.engines[user, agent]


class Kept(Memory):
    """A store that was there already. A copy of it is asked, with its settings: no receipt of ours is left in it."""

    def __init__(
        self,
        store: Path,
        entries: Sequence[Entry],
        profile: str | None,
        overrides: Mapping[str, Any],
        embedder: Embedder | None = None,
    ) -> None:
        super().__init__((), profile, overrides, embedder)
        copy = Path(self.folder.name, project.FOLDER)
        place = project.find(store)
        with foveate.open(store, own=False, code=False, create=False) as engine:
            engine.backup(copy / project.STORE)
        for name in ("config.toml", "allow", "profiles"):
            held = place.folder / name
            if held.is_dir():
                copytree(held, copy / name)
            elif held.exists():
                copyfile(held, copy / name)
        self.told = {entry.id: [entry] for entry in entries}


class Repository:
    """An engine on the folder of a repository."""

    def __init__(self, engine: foveate.Engine, overrides: Mapping[str, Any], files: Sequence[str] = ()) -> None:
        self.engine = engine
        self.overrides = overrides
        self.files = files
        engine.code.refresh()  # what it costs to know the code is not a part of what an answer costs

    def render(self, case: Case, budget: int) -> Rendered:
        try:
            return Rendered(self.engine.compute(case.query, budget=budget, overrides=self.overrides, **case.options).text)
        except BudgetError:
            return Rendered("")

    def ranked(self, case: Case) -> Mapping[str, Sequence[str]]:
        with self.engine.code.snapshot() as snapshot:
            found = snapshot.search(case.query, definitions=DEPTH)
        symbols = [hit.symbol for hit in found.definitions if hit.symbol.kind in FUNCTIONS]
        return {
            "file": among(self.files, [hit.file.path for hit in found.files]),
            "function": among(self.files, [f"{symbol.path}::{symbol.qualified}" for symbol in symbols]),
        }

    def close(self) -> None:
        self.engine.close()


def _engine() -> list[Path]:
    """The files that decide what a context holds, a user's own profiles among them."""
    own = [folder for folder in profiles.places(PACKAGE)[1:] if folder.is_dir()]
    return [*sorted(path for path in PACKAGE.iterdir() if path.name not in BESIDE), *own]


def considered(context: Context) -> list[Candidate]:
    """Everything that was a candidate for the question, shown or not."""
    return [*(item.candidate for item in context.items), *(omission.candidate for omission in context.left_out)]


def best_first(candidates: Sequence[Candidate]) -> list[str]:
    """The ids of records by score; the best place counts where one was a candidate in several."""
    ranked = sorted(candidates, key=lambda candidate: (-candidate.score, candidate.record.id))
    return list(dict.fromkeys(candidate.record.id for candidate in ranked))


def _values(entry: Entry) -> dict[str, Any]:
    dated = {"created": entry.when, "valid_from": entry.when} if entry.when else {}
    return {"key": entry.id, **dated, **entry.values}


def make(argument: str) -> Foveate:
    """`embedder=SPEC`: with vectors."""
    name, _, spec = argument.partition("=")
    if name != "embedder" or not spec:
        raise InputError(f"'foveate:{argument}' is not understood; write `foveate`, or `foveate:embedder=PROVIDER:MODEL`.")
    return Foveate(f"foveate:{argument}", embedder=open_embedder(spec))


SYSTEM = Foveate()
