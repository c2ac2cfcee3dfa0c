"""`foveate.open`: open the engine of a project, by path or by the URL of a database, with the project's settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from foveate.clock import Clock, Ids, new_id, now
from foveate.engine import Engine
from foveate.errors import InputError
from foveate.pipeline import profiles
from foveate.pipeline.sources import Source
from foveate.project import project as locations
from foveate.project.trusted_files import refusal
from foveate.records.kinds import Kind
from foveate.records.kinds import register as register_kind
from foveate.records.lifecycle import Thresholds
from foveate.records.make import Rules
from foveate.store.database_url import is_url
from foveate.store.open import open_store
from foveate.store.retention import Retention
from foveate.store.sqlite.store import SQLiteStore
from foveate.text.redact import AllowList, load_allow_list
from foveate.text.tokens import Counter
from foveate.text.tokens import register as register_counter
from foveate.types import Scope, Trust

SWITCHED_OFF = "none"
"""Setting that switches an embedder or a language model off."""

if TYPE_CHECKING:
    from foveate.code.plain_folder import PlainFolder
    from foveate.code.snapshot import Workspace
    from foveate.text.embed import Embedder
    from foveate.text.summarize import LLM


@dataclass(frozen=True, slots=True)
class Environment:
    """Sources of times, ids and the secret of fences. `foveate.testing` replaces them."""

    clock: Clock = now
    ids: Ids = new_id
    secret: str | None = None
    author: Trust = "user"
    """Trust of what is added without one."""


class OpenOptions(TypedDict, total=False):
    """The options of `open`, for functions that pass them on."""

    project: str | None
    user: str | None
    agent: str | None
    session: str | None
    task: str | None
    store: str | None
    create: bool
    personal: bool | None
    code: bool | None
    profile: str | None
    budget: int | None
    counter: str | Counter | None
    embedder: str | Embedder | None
    llm: str | LLM | None
    sources: Iterable[Source]
    kinds: Iterable[Kind]
    cache_seconds: float


def open(
    path: str | Path = ".",
    *,
    project: str | None = None,
    user: str | None = None,
    agent: str | None = None,
    session: str | None = None,
    task: str | None = None,
    store: str | None = None,
    create: bool = True,
    personal: bool | None = None,
    code: bool | None = None,
    profile: str | None = None,
    budget: int | None = None,
    counter: str | Counter | None = None,
    embedder: str | Embedder | None = None,
    llm: str | LLM | None = None,
    sources: Iterable[Source] = (),
    kinds: Iterable[Kind] = (),
    cache_seconds: float = 0,
    _environment: Environment = Environment(),
) -> Engine:
    """Open the engine of the project that a path belongs to; `:memory:` opens one that leaves nothing behind.

    A URL (`postgresql://...`) as the path opens a shared database without a folder; `store` is such a URL for a project that
    has a folder. `project` names the project in its store; a shared store does not guess it. `code` decides whether the
    project's files are read; by default they are in a repository or a folder with a manifest. `embedder` and `llm` default
    to the project's settings; `"none"` switches one off. `sources` and `kinds` are your own; a kind is known in the whole
    process.
    """
    if not isinstance(path, str | Path):
        raise InputError(
            f"path must be a folder, the URL of a database or ':memory:', got {path!r}. Leave it out for the current folder."
        )
    for kind in kinds:
        register_kind(kind)
    if counter is not None and not isinstance(counter, str):
        register_counter(counter)
        counter = counter.name
    in_memory = str(path) == ":memory:"
    place = _place(path, store)
    without_folder = in_memory or is_url(path)
    settings = place.settings
    if not without_folder:
        locations.refuse_untrusted(place)
        _log_ignored_files(place)
    encoder = _embedder(embedder if embedder is not None else settings.get("embedder"))
    if create and not without_folder and (place.database_url is None or code or place.has_code):
        locations.create(place)
    namespace = encoder.fingerprint if encoder else None
    opened = open_store(
        place.database_url or (":memory:" if in_memory else place.store_file),
        counter=counter or settings.get("counter"),
        embedding_namespace=namespace,
        multi_valued=settings.get("multi_valued", ()),
        create=create,
        secret=_environment.secret,
        retention=Retention(**settings.get("retention", {})),
    )
    has_allow_list = not without_folder and place.allow_file.is_file() and not refusal(str(place.allow_file))
    allow = load_allow_list(place.allow_file) if has_allow_list else None
    return Engine(
        opened,
        scope=Scope(
            locations.name_of(place, project), user=user or settings.get("user"), agent=agent, session=session, task=task
        ),
        rules=Rules(counter=opened.counter, allow=allow, author=_environment.author),
        clock=_environment.clock,
        ids=_environment.ids,
        personal=None if in_memory else _personal_store(settings, personal, opened.counter, namespace),
        embedder=encoder,
        llm=_llm(llm if llm is not None else settings.get("summarizer"), place.folder),
        sources=sources,
        profile_dirs=() if without_folder else profiles.profile_dirs(place.root),
        profile=profile or settings.get("profile"),
        budget=budget if budget is not None else settings.get("budget"),
        root=None if without_folder else place.root,
        workspace=None if without_folder else _workspace(place, code, allow),
        folder=None if without_folder else _plain_folder(place, code, allow),
        domains=settings.get("domains"),
        thresholds=Thresholds(**settings.get("lifecycle", {})),
        debug=settings.get("debug_context", False),
        cache_seconds=cache_seconds,
    )


def _log_ignored_files(place: locations.ProjectLocation) -> None:
    ignored = locations.ignored_files(place)
    if ignored:
        import logging  # not needed where every file is the user's own

        for file, reason in ignored.items():
            logging.getLogger("foveate").warning("%s is ignored: %s. `foveate doctor` says more.", file, reason)


def _personal_store(
    settings: Mapping[str, Any], chosen: bool | None, counter: str, namespace: str | None
) -> SQLiteStore | None:
    """Open the user's personal store if it exists and the settings do not switch it off."""
    wanted = settings.get("personal_store", True) if chosen is None else chosen
    path = locations.personal_store_path()
    return SQLiteStore(path, counter=counter, embedding_namespace=namespace) if wanted and path.exists() else None


def _place(path: str | Path, store: str | None) -> locations.ProjectLocation:
    """Return the place of a project: a folder, a shared store, both, or neither for `:memory:`."""
    if is_url(path):
        if store is not None:
            raise InputError("The path is a store's URL already. Pass a folder and `store`, or the URL alone.")
        return locations.ProjectLocation(Path(), database_url=str(path))
    if isinstance(path, Path) and path.parts[:1] in (("postgresql:",), ("postgres:",)):
        raise InputError("A store's URL is text: pass it as a str, not as a Path, which drops a part of it.")
    if str(path) == ":memory:":
        return locations.ProjectLocation(Path())
    return locations.locate_project(path, store)


def _workspace(place: locations.ProjectLocation, wanted: bool | None, allow: AllowList | None) -> Workspace | None:
    if not (_code_enabled(place, wanted) and place.folder.is_dir()) or refusal(str(place.index_file)):
        return None
    code_settings = place.settings.get("code", {})
    from foveate.code.index import CodeSettings
    from foveate.code.snapshot import Workspace
    from foveate.code.walk import MAX_FILES  # parser and index: only for those who have code

    settings = CodeSettings(
        include=tuple(code_settings.get("include", ())),
        exclude=tuple(code_settings.get("exclude", ())),
        max_files=code_settings.get("max_files", MAX_FILES),
        project=place.settings.get("project", {}),
    )
    return Workspace(place.code_root, place.index_file, settings, allow)


def _plain_folder(place: locations.ProjectLocation, wanted: bool | None, allow: AllowList | None) -> PlainFolder | None:
    """Return the folder of a project that nobody has decided to index or not to read; None if its code is read or off."""
    if _code_enabled(place, wanted) is not None:
        return None
    from foveate.code.plain_folder import PlainFolder

    return PlainFolder(place.code_root, allow)


def _code_enabled(place: locations.ProjectLocation, wanted: bool | None) -> bool | None:
    """Return whether the project's files are indexed: by the call, its settings or its files; None if nothing says so."""
    enabled: bool | None = place.settings.get("code", {}).get("enabled") if wanted is None else wanted
    return True if enabled is None and place.has_code else enabled


def _embedder(chosen: str | Embedder | None) -> Embedder | None:
    if not chosen or chosen == SWITCHED_OFF:
        return None
    from importlib.util import find_spec

    from foveate.text.embed import CachedEmbedder, open_embedder  # costs as much as all the rest, and most stores have none

    if find_spec("numpy") is None:
        raise InputError("Vectors need NumPy: install it with `pip install foveate[vectors]`.")
    return open_embedder(chosen) if isinstance(chosen, str) else CachedEmbedder(chosen)


def _llm(chosen: str | LLM | None, folder: Path) -> LLM | None:
    if not chosen or chosen == SWITCHED_OFF:
        return None
    if not isinstance(chosen, str):
        return chosen
    from foveate.text.llm_summarize import open_summarizer  # loads an HTTP client

    return open_summarizer(chosen, folder / "costs.jsonl")
