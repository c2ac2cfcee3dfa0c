"""`foveate.open`: from a path to an engine, with the project's settings filled in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from foveate import profiles, project
from foveate.engine import Engine
from foveate.errors import InputError, near
from foveate.ids import Clock, Ids, new_id, now
from foveate.scoring import Reranker
from foveate.sources import Source
from foveate.state.lifecycle import Thresholds
from foveate.state.records import Rules
from foveate.state.redact import Allow, load_allow
from foveate.state.sqlite import SQLiteStore
from foveate.types import Scope

if TYPE_CHECKING:
    from foveate.code.workspace import Workspace
    from foveate.embed import Embedder
    from foveate.summarize import Summarizer


def open_engine(
    path: str | Path = ".",
    *,
    user: str | None = None,
    agent: str | None = None,
    session: str | None = None,
    task: str | None = None,
    project_name: str = "main",
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

    `code`: whether it looks at the project's files; unless told, it does in a repository or a folder with a manifest.
    `secret`: what the marks around untrusted text are made from, for tests; unless told, a new store draws one.
    """
    memory = str(path) == ":memory:"
    place = project.Place(Path()) if memory else project.find(path)
    settings = place.settings
    chosen = embedder if embedder is not None else settings.get("embedder")
    encoder = _encoder(chosen) if chosen else None
    if not memory and create:
        project.create(place)
    space = encoder.fingerprint if encoder else None
    store = SQLiteStore(
        ":memory:" if memory else place.store,
        counter=counter or settings.get("counter"),
        space=space,
        multi_valued=settings.get("multi_valued", ()),
        create=create,
        secret=secret,
    )
    allow = load_allow(place.allow) if not memory and place.allow.is_file() else None
    rules = Rules(counter=store.counter, allow=allow)
    if summarizer is not None:
        rules = replace(rules, summarizer=summarizer)
    wants_own = settings.get("own_store", True) if own is None else own
    own_path = project.own_store()
    mine = (
        SQLiteStore(own_path, counter=store.counter, space=space) if wants_own and not memory and own_path.exists() else None
    )
    return Engine(
        store,
        scope=Scope(project_name, user=user or settings.get("user"), agent=agent, session=session, task=task),
        rules=rules,
        clock=clock,
        ids=ids,
        own=mine,
        embedder=encoder,
        reranker=reranker,
        sources=sources,
        places=() if memory else profiles.places(place.root),
        profile=profile or settings.get("profile"),
        budget=budget if budget is not None else settings.get("budget"),
        root=None if memory else place.root,
        workspace=None if memory else _workspace(place, code, allow),
        domains=settings.get("domains"),
        thresholds=Thresholds(**settings.get("lifecycle", {})),
        explain=settings.get("debug_context", False),
        cache_seconds=cache_seconds,
        variants=_variants(place),
    )


def _variants(place: project.Place) -> Mapping[str, float]:
    """Those of the settings; each must have its profile, or a share of the sessions would get no context at all."""
    found: Mapping[str, float] = place.settings.get("variants", {})
    known = profiles.names(profiles.places(place.root)) if found else ()
    problems = [
        f"config.toml, [variants]: there is no profile {name!r}.{near(name, known)} Write .foveate/profiles/{name}.toml."
        for name in found
        if name not in known
    ]
    if problems:
        raise InputError(problems)
    return found


def _workspace(place: project.Place, wanted: bool | None, allow: Allow | None) -> Workspace | None:
    given = place.settings.get("code", {})
    enabled = given.get("enabled") if wanted is None else wanted
    if enabled is False or not (enabled or place.has_code) or not place.folder.is_dir():
        return None
    from foveate.code.walk import MAX_FILES  # parser and index: only for those who have code
    from foveate.code.workspace import CodeSettings, Workspace

    settings = CodeSettings(
        include=tuple(given.get("include", ())),
        exclude=tuple(given.get("exclude", ())),
        max_files=given.get("max_files", MAX_FILES),
        project=place.settings.get("project", {}),
    )
    return Workspace(place.files, place.index, settings, allow)


def _encoder(chosen: str | Embedder) -> Embedder:
    from importlib.util import find_spec

    from foveate.embed import Cached, open_embedder  # costs as much as all the rest, and most stores have none

    if find_spec("numpy") is None:
        raise InputError("Vectors need NumPy: install it with `pip install foveate[vectors]`.")
    return open_embedder(chosen) if isinstance(chosen, str) else Cached(chosen)
