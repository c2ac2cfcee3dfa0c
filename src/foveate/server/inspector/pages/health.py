"""Health: the store, its index and vectors, the hooks, and what needs to be done."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from foveate import __version__
from foveate.engine import Engine
from foveate.errors import FoveateError
from foveate.project.project import find
from foveate.server.doctor import Findings, around
from foveate.server.inspector.page import Action, Asked, Page
from foveate.store.open import standing_of


def examined(asked: Asked) -> dict[str, Any]:
    """What `foveate doctor` says. The store is read through only where that is asked for: it may take a while."""
    engine, thorough = asked.engine, asked.flag("thorough") and asked.may("admin")
    found = Findings()
    if asked.caller.who.is_owner:  # paths, roles and hooks are of whoever runs the service
        _examine(engine, found, thorough)
    return {
        "ok": not found.problems,
        "problems": found.problems,
        "warnings": found.warnings,
        "facts": {name: str(value) for name, value in found.facts.items() if value not in (None, "")},
        "migrations": _migrations(engine) if asked.caller.who.is_owner else None,
        "holds": engine.stats(),
        "vectors": engine.vectors() if asked.sees_all else None,
        "thorough": thorough,
        "whole": asked.caller.who.is_owner,
        "version": __version__,
    }


def _examine(engine: Engine, found: Findings, thorough: bool) -> None:
    if thorough:
        for name, store in (("", engine.store), ("Your own store: ", engine.own)):
            if store is not None:
                health = store.health()
                found.take(dict(health.facts) if not name else {}, [f"{name}{problem}" for problem in health.problems])
    if engine.root is not None:
        more = around(engine, find(engine.root), engine.root)
        found.take(more.facts, more.problems, more.warnings)


def _migrations(engine: Engine) -> dict[str, Any] | None:
    """How the schema of the store stands to the one that this foveate knows."""
    if engine.root is None:
        return None
    place = find(engine.root)
    try:
        found = standing_of(place.shared or place.store)
    except FoveateError as error:
        return {"version": None, "latest": None, "steps": [], "advice": str(error), "is_current": False}
    return {**asdict(found), "advice": found.advice, "is_current": found.is_current}


PAGES: tuple[Page, ...] = (
    Page("health", "Health", examined, "memory:read", "Store, index, vectors, hooks and migrations: is all well?"),
)
ACTIONS: tuple[Action, ...] = ()
