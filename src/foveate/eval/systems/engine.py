"""foveate as a system, through its public functions, with profiles and overrides as options of an evaluation."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from shutil import copyfile, copytree
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import foveate
from foveate.errors import BudgetError, FoveateError, InputError, NotFound, ProfileError
from foveate.eval.model import Case, Dataset, Document, RenderedPrompt, Suite, SystemType
from foveate.eval.reading import digest
from foveate.pipeline import profiles
from foveate.pipeline.assembly import join_sections
from foveate.pipeline.profiles.files import BUILTIN_DIR, DEFAULT, chain
from foveate.pipeline.profiles.profile import overlay
from foveate.project import project
from foveate.project.locate import DIR_NAME, STORE_FILE
from foveate.receipts.context import Context
from foveate.text.embed import Embedder, open_embedder
from foveate.types import Candidate, Message

PACKAGE = Path(foveate.__file__).parent
UNRELATED_PARTS = ("eval", "cli", "integrations", "operations", "server", "testing.py", "__pycache__")
"""Parts of the package on which no context depends."""
RANKING_BUDGET = 8000
"""The budget of a context whose ranking is read. The ranking does not depend on it."""
MAX_RANKED_DEFINITIONS = 1000
FUNCTION_KINDS = ("function", "method")


@dataclass(frozen=True, slots=True)
class FoveateSystem:
    """foveate with a profile and with overrides that are laid over the profile."""

    name: str = "foveate"
    profile: str | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)
    embedder: Embedder | None = field(default=None, repr=False)
    is_code: ClassVar[None] = None

    @property
    def fingerprint(self) -> str:
        vectors = f" {self.embedder.fingerprint}" if self.embedder else ""
        return f"{digest(_engine_files())} {self.profile} {dict(self.overrides)}{vectors}"

    def open(self, dataset: Dataset, suite: Suite) -> MemorySystem | RepositorySystem:
        options = {"profile": self.profile or suite.profile, "embedder": self.embedder, "sources": suite.sources}
        if dataset.root is not None:
            return RepositorySystem(dataset, self.overrides, options)
        if dataset.store is not None:
            return ExistingStoreSystem(dataset.store, dataset.documents, self.overrides, options)
        return MemorySystem(dataset.documents, self.overrides, options)


class MemorySystem:
    """A store in a temporary folder, with an engine for each user and agent."""

    def __init__(self, documents: Sequence[Document], overrides: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        self.overrides = overrides
        self.options = options
        self.folder = TemporaryDirectory(prefix="foveate-eval-")
        _make_project(Path(self.folder.name))
        self.engines: dict[tuple[str | None, str | None], foveate.Engine] = {}
        self.stored: dict[str, list[Document]] = {}
        """The documents of each record: the store keeps equal ones as one record."""
        try:
            for document, id in self._add_documents(documents):
                self.stored.setdefault(id, []).append(document)
            self._link_and_retire(documents)
        except FoveateError:
            self.close()
            raise

    def render(self, case: Case, budget: int) -> RenderedPrompt:
        contexts = self._contexts(case, budget)
        slots: dict[str, str] = {}
        for context in contexts:
            for section in context.sections:
                slots[section.name] = f"{slots.get(section.name, '')}\n{join_sections([section])}"
        return RenderedPrompt("\n\n".join(context.text for context in contexts), slots)

    def ranking(self, case: Case) -> Mapping[str, Sequence[str]]:
        candidates = [one for context in self._contexts(case, RANKING_BUDGET) for one in all_candidates(context)]
        documents = [document for id in best_first(candidates) for document in self.stored.get(id, ())]
        ids = [document.id for document in documents]
        sessions = dict.fromkeys(document.session for document in documents if document.session)
        scores = self._session_scores(candidates)
        # The sort is stable: sessions without a score of their own stay in the order of their best records.
        return {"turn": ids, "record": ids, "session": sorted(sessions, key=scores.__getitem__, reverse=True)}

    def _session_scores(self, candidates: Sequence[Candidate]) -> dict[str | None, float]:
        """Return the score of each session as a whole."""
        scores: dict[str | None, float] = defaultdict(float)
        for candidate in candidates:
            for document in self.stored.get(candidate.record.id, ()):
                scores[document.session] = max(scores[document.session], candidate.features.get("session", 0.0))
        return scores

    def close(self) -> None:
        for engine in self.engines.values():
            engine.close()
        self.folder.cleanup()

    def _add_documents(self, documents: Sequence[Document]) -> Iterator[tuple[Document, str]]:
        for (user, agent, session), group in groupby(documents, key=lambda one: (one.user, one.agent, one.session)):
            batch, engine = list(group), self._engine(user, agent)
            messages = [document for document in batch if document.role]
            others = [document for document in batch if not document.role]
            for document in messages:
                ids = engine.remember(_message(document), session=session).ids
                yield from ((document, id) for id in ids)
            rows = [(document.kind, document.text, _record_values(document)) for document in others]
            yield from zip(others, engine.store.add_many(rows, session=session), strict=True)

    def _link_and_retire(self, documents: Sequence[Document]) -> None:
        # Only after all documents are stored: a link may point to a later one.
        ids = {document.id: id for id, group in self.stored.items() for document in group}
        for document in documents:
            engine = self._engine(document.user, document.agent)
            for name, target in document.links:
                engine.link(ids[document.id], name, ids[target])
            if document.is_retired:
                engine.edit(ids[document.id], status="retired")

    def _contexts(self, case: Case, budget: int) -> list[Context]:
        options = {**case.options, "overrides": merge_overrides(case.options.get("overrides", {}), self.overrides)}
        contexts = []
        for agent in case.agents:
            engine = self._engine(case.user, agent)
            try:
                contexts.append(engine.context(case.query, budget=budget, now=case.now, **options))
            except BudgetError:
                continue  # the always-on part alone exceeds this budget, so nothing would be sent
        return contexts

    def _engine(self, user: str | None, agent: str | None) -> foveate.Engine:
        if (user, agent) not in self.engines:
            self.engines[user, agent] = foveate.open(
                self.folder.name, user=user, agent=agent, personal=False, code=False, **self.options
            )
        return self.engines[user, agent]


class ExistingStoreSystem(MemorySystem):
    """A copy of an existing store with its settings, so that no receipt of the evaluation is stored in the original."""

    def __init__(
        self, store: Path, documents: Sequence[Document], overrides: Mapping[str, Any], options: Mapping[str, Any]
    ) -> None:
        super().__init__((), overrides, options)
        copy = Path(self.folder.name, DIR_NAME)
        original = project.locate_project(store).folder
        with foveate.open(store, personal=False, code=False, create=False) as engine:
            engine.store.backup(copy / STORE_FILE)
        for name in ("config.toml", "allow", "profiles"):
            path = original / name
            if path.is_dir():
                copytree(path, copy / name)
            elif path.exists():
                copyfile(path, copy / name)
        self.stored = {document.id: [document] for document in documents}


class RepositorySystem:
    """An engine on the folder of a repository."""

    def __init__(self, dataset: Dataset, overrides: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        assert dataset.root is not None
        _make_project(dataset.root)
        self.engine = foveate.open(dataset.root, personal=False, code=True, **options)
        self.overrides = overrides
        self.answer_files = frozenset(dataset.answer_files)
        self.engine.code.workspace.refresh()  # index now: its time is not part of the time of a prompt

    def render(self, case: Case, budget: int) -> RenderedPrompt:
        try:
            context = self.engine.context(case.query, budget=budget, overrides=self.overrides, **case.options)
        except BudgetError:
            return RenderedPrompt("")
        return RenderedPrompt(context.text)

    def ranking(self, case: Case) -> Mapping[str, Sequence[str]]:
        with self.engine.code.workspace.snapshot() as snapshot:
            hits = snapshot.search(case.query, definitions=MAX_RANKED_DEFINITIONS)
        symbols = [hit.symbol for hit in hits.definitions if hit.symbol.kind in FUNCTION_KINDS]
        return {
            "file": self._only_answers([hit.file.path for hit in hits.files]),
            "function": self._only_answers([f"{symbol.path}::{symbol.qualified_name}" for symbol in symbols]),
        }

    def close(self) -> None:
        self.engine.close()

    def _only_answers(self, names: Sequence[str]) -> list[str]:
        """Keep files and functions (`path::name`) of the files that can be answers, each once."""
        allowed = self.answer_files
        return [name for name in dict.fromkeys(names) if not allowed or name.partition("::")[0] in allowed]


def _make_project(folder: Path) -> None:
    # With its own .foveate/ folder the project is found here, even if a parent folder is a project too.
    (folder / DIR_NAME).mkdir(exist_ok=True)


def _engine_files() -> list[Path]:
    """Return the files that decide what a context contains, including the user's own profiles."""
    user_profiles = [folder for folder in profiles.profile_dirs(PACKAGE)[1:] if folder.is_dir()]
    return [*sorted(path for path in PACKAGE.iterdir() if path.name not in UNRELATED_PARTS), *user_profiles]


def all_candidates(context: Context) -> list[Candidate]:
    """Return every candidate of a context, shown or not."""
    return [*(item.candidate for item in context.items), *(omission.candidate for omission in context.left_out)]


def best_first(candidates: Sequence[Candidate]) -> list[str]:
    """Return the ids of records by score. A record that was a candidate in several slots counts by its best score."""
    ranked = sorted(candidates, key=lambda candidate: (-candidate.score, candidate.record.id))
    return list(dict.fromkeys(candidate.record.id for candidate in ranked))


def _message(document: Document) -> Message:
    at = {"at": document.timestamp} if document.timestamp else {}
    return {"role": document.role, "content": document.text, "id": document.id, **at}  # type: ignore[typeddict-item]


def _record_values(document: Document) -> dict[str, Any]:
    dates = {"created": document.timestamp, "valid_from": document.timestamp} if document.timestamp else {}
    return {"key": document.id, **dates, **document.values}


# --- profiles and overrides ----------------------------------------------------------------------------------------

PROFILE_METADATA = ("name", "description", "extends")
SIZE_KEYS = ("tokens", "share")
"""A slot has one of them, so a new one replaces the other."""


def configured_system(
    suite: Suite, profile: str | None, overrides: Path | None, profile_dirs: Sequence[Path] = ()
) -> FoveateSystem:
    """Return foveate with a profile (by default the suite's) and a TOML file of overrides. Both are checked here.

    Evaluations run in folders of their own, in which a project's profiles are not found. The project's layers therefore
    become overrides, on which the results depend.
    """
    table = _load_overrides(overrides) if overrides else {}
    profiles.resolve(profile or suite.profile or DEFAULT, profile_dirs if profile else (), call=table)
    builtin, settings = _split_layers(profile, profile_dirs) if profile else (None, {})
    parts = [f"profile={profile}"] if profile else []
    parts += [f"overrides={overrides.stem}"] if overrides else []
    name = f"foveate:{','.join(parts)}" if parts else "foveate"
    return FoveateSystem(name, builtin, merge_overrides(settings, table))


def _split_layers(profile: str, profile_dirs: Sequence[Path]) -> tuple[str, dict[str, Any]]:
    """Return the built-in profile that a profile extends, and all settings that are laid over it."""
    builtin = DEFAULT
    settings: dict[str, Any] = {}
    for layer in chain(profile, profile_dirs, on_default=True):
        if layer.path.parent == BUILTIN_DIR:
            builtin, settings = layer.name, {}
        else:
            settings = merge_overrides(settings, _without_metadata(layer.table))
    return builtin, settings


def _without_metadata(table: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in table.items() if name not in PROFILE_METADATA}


def _load_overrides(path: Path) -> dict[str, Any]:
    try:
        return _without_metadata(tomllib.loads(path.read_text("utf-8-sig")))
    except FileNotFoundError:
        raise NotFound(f"There is no file {str(path)!r} with overrides.") from None
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise InputError(f"{str(path)!r} is not valid TOML: {error}.") from None


def merge_overrides(base: Mapping[str, Any], override: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two sets of overrides into one that does what both do, the second over the first.

    Unlike `overlay`, which lays a layer over a whole profile, this keeps `remove` for the profile beneath both.
    """
    for layer in (base, override):
        _check_slots(layer.get("slots", {}))
    slots = dict(base.get("slots", {}))
    for name, values in override.get("slots", {}).items():
        if values.get("remove"):
            slots[name] = values
            continue
        replaced = ("remove", *(SIZE_KEYS if any(key in values for key in SIZE_KEYS) else ()))
        slots[name] = {key: old for key, old in slots.get(name, {}).items() if key not in replaced} | dict(values)
    rest = ({key: value for key, value in layer.items() if key != "slots"} for layer in (base, override))
    return overlay(*rest) | ({"slots": slots} if slots else {})


def _check_slots(slots: Any) -> None:
    if not isinstance(slots, Mapping) or not all(isinstance(values, Mapping) for values in slots.values()):
        raise ProfileError(f"slots must be a table with a table for each slot, got {slots!r}.")


# --- the system by name --------------------------------------------------------------------------------------------


def _make_foveate(argument: str) -> FoveateSystem:
    if not argument:
        return FoveateSystem()
    name, _, embedder = argument.partition("=")
    if name != "embedder" or not embedder:
        raise InputError(f"Unknown argument in 'foveate:{argument}'; write `foveate` or `foveate:{FOVEATE.argument}`.")
    return FoveateSystem(f"foveate:{argument}", embedder=open_embedder(embedder))


FOVEATE = SystemType(
    make=_make_foveate,
    description="foveate itself; foveate:embedder=PROVIDER:MODEL with vectors",
    argument="embedder=PROVIDER:MODEL",
)
