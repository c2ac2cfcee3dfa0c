"""`foveate.open`: from a path or a database's URL to an engine, with the project's settings filled in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from foveate.clock import Clock, Ids, new_id, now
from foveate.engine import Engine
from foveate.errors import InputError
from foveate.pipeline import profiles
from foveate.pipeline.scoring import Reranker
from foveate.pipeline.sources import Source
from foveate.project import project
from foveate.records.lifecycle import Thresholds
from foveate.records.make import Rules
from foveate.store.address import is_url
from foveate.store.open import open_store
from foveate.store.retention import Retention
from foveate.store.sqlite.store import SQLiteStore
from foveate.text.redact import Allow, load_allow
from foveate.types import Scope

if TYPE_CHECKING:
    from foveate.code.snapshot import Workspace
    from foveate.text.embed import Embedder
    from foveate.text.summarize import Summarizer


def open_engine(
    path: str | Path = ".",
    *,
    user: str | None = None,
    agent: str | None = None,
    session: str | None = None,
    task: str | None = None,
    project_name: str | None = None,
    store: str | None = None,
    embedder: str | Embedder | None = None,
    sources: Iterable[Source] = (),
    reranker: Reranker | None = None,
    profile: str | None = None,
    budget: int | None = None,
    counter: str | None = None,
    own: bool | None = None,
    summarizer: Summarizer | None = None,
    cache_seconds: float | None = None,
    code: bool | None = None,
    create: bool = True,
    clock: Clock = now,
    ids: Ids = new_id,
    secret: str | None = None,
) -> Engine:
    """An engine on the project that a path belongs to; `:memory:` for one that leaves nothing behind.

    A URL (`postgresql://...`) instead of a path: a shared database and no folder. `store`: such a URL for a project that
    has a folder. `project_name`: which project of the store is meant; a shared one does not guess it.
    `code`: whether it looks at the project's files; unless told, it does in a repository or a folder with a manifest.
    `secret`: what the marks around untrusted text are made from, for tests; unless told, a new store draws one.
    """
    memory = str(path) == ":memory:"
    place = _place(path, store)
    bare = memory or is_url(path)  # no folder
    settings = place.settings
    if not bare:
        project.refuse_shipped(place)
    name = project.name_of(place, project_name)
    chosen = embedder if embedder is not None else settings.get("embedder")
    encoder = _encoder(chosen) if chosen else None
    if create and not bare and (place.shared is None or code or place.has_code):
        project.create(place)
    space = encoder.fingerprint if encoder else None
    state = open_store(
        place.shared or (":memory:" if memory else place.store),
        counter=counter or settings.get("counter"),
        space=space,
        multi_valued=settings.get("multi_valued", ()),
        create=create,
        secret=secret,
        retention=Retention(**settings.get("retention", {})),
    )
    allow = load_allow(place.allow) if not bare and place.allow.is_file() else None
    rules = Rules(counter=state.counter, allow=allow)
    if summarizer is not None:
        rules = replace(rules, summarizer=summarizer)
    wants_own = settings.get("own_store", True) if own is None else own
    own_path = project.own_store()
    mine = (
        SQLiteStore(own_path, counter=state.counter, space=space) if wants_own and not memory and own_path.exists() else None
    )
    return Engine(
        state,
        scope=Scope(name, user=user or settings.get("user"), agent=agent, session=session, task=task),
        rules=rules,
        clock=clock,
        ids=ids,
        own=mine,
        embedder=encoder,
        reranker=reranker,
        sources=sources,
        places=() if bare else profiles.places(place.root),
        profile=profile or settings.get("profile"),
        budget=budget if budget is not None else settings.get("budget"),
        root=None if bare else place.root,
        workspace=None if bare else _workspace(place, code, allow),
        domains=settings.get("domains"),
        thresholds=Thresholds(**settings.get("lifecycle", {})),
        explain=settings.get("debug_context", False),
        cache_seconds=cache_seconds,
    )


def _place(path: str | Path, store: str | None) -> project.Place:
    """Where a project is: a folder, with or without a shared store, or neither folder nor file."""
    if is_url(path):
        if store is not None:
            raise InputError("The path is a store's URL already. Pass a folder and `store`, or the URL alone.")
        return project.Place(Path(), shared=str(path))
    if isinstance(path, Path) and path.parts[:1] in (("postgresql:",), ("postgres:",)):
        raise InputError("A store's URL is text: pass it as a str, not as a Path, which drops a part of it.")
    if str(path) == ":memory:":
        return project.Place(Path())
    return project.find(path, store)


def _workspace(place: project.Place, wanted: bool | None, allow: Allow | None) -> Workspace | None:
    given = place.settings.get("code", {})
    enabled = given.get("enabled") if wanted is None else wanted
    if enabled is False or not (enabled or place.has_code) or not place.folder.is_dir():
        return None
    from foveate.code.snapshot import CodeSettings, Workspace
    from foveate.code.walk import MAX_FILES  # parser and index: only for those who have code

    settings = CodeSettings(
        include=tuple(given.get("include", ())),
        exclude=tuple(given.get("exclude", ())),
        max_files=given.get("max_files", MAX_FILES),
        project=place.settings.get("project", {}),
    )
    return Workspace(place.files, place.index, settings, allow)


def _encoder(chosen: str | Embedder) -> Embedder:
    from importlib.util import find_spec

    from foveate.text.embed import Cached, open_embedder  # costs as much as all the rest, and most stores have none

    if find_spec("numpy") is None:
        raise InputError("Vectors need NumPy: install it with `pip install foveate[vectors]`.")
    return open_embedder(chosen) if isinstance(chosen, str) else Cached(chosen)
