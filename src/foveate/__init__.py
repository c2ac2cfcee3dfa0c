"""foveate: a context engine for LLM agents.

    import foveate

    engine = foveate.open(".")
    engine.add("decision", "Chose Postgres over ChromaDB for unified storage", outcome="success", confidence=0.85)
    print(engine.compute("Should we use Redis for caching?", budget=2000).text)

Public names are loaded when they are first used, so that `import foveate` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_PUBLIC = {
    "open": ("foveate.opening", "open_engine"),
    "Engine": ("foveate.engine", "Engine"),
    "Context": ("foveate.assembly", "Context"),
    "Delta": ("foveate.assembly", "Delta"),
    "Receipt": ("foveate.receipts", "Receipt"),
    "Record": ("foveate.types", "Record"),
    "Link": ("foveate.types", "Link"),
    "Scope": ("foveate.types", "Scope"),
    "Filters": ("foveate.types", "Filters"),
    "Request": ("foveate.types", "Request"),
    "Signals": ("foveate.types", "Signals"),
    "Profile": ("foveate.types", "Profile"),
    "Slot": ("foveate.types", "Slot"),
    "Candidate": ("foveate.types", "Candidate"),
    "Kind": ("foveate.state.kinds", "Kind"),
    "Source": ("foveate.sources.gather", "Source"),
    "Store": ("foveate.state.store", "Store"),
    "Task": ("foveate.state.task", "Task"),
    "Agents": ("foveate.agents", "Agents"),
    "Embedder": ("foveate.embed", "Embedder"),
    "Counter": ("foveate.tokens", "Counter"),
    "Summarizer": ("foveate.summarize", "Summarizer"),
    "count": ("foveate.tokens", "count"),
    "FoveateError": ("foveate.errors", "FoveateError"),
    "InputError": ("foveate.errors", "InputError"),
    "ProfileError": ("foveate.errors", "ProfileError"),
    "BudgetError": ("foveate.errors", "BudgetError"),
    "SourceError": ("foveate.errors", "SourceError"),
    "StoreError": ("foveate.errors", "StoreError"),
    "NotFound": ("foveate.errors", "NotFound"),
    "Conflict": ("foveate.errors", "Conflict"),
    "SchemaTooNew": ("foveate.errors", "SchemaTooNew"),
    "Damaged": ("foveate.errors", "Damaged"),
}

if TYPE_CHECKING:
    from foveate.agents import Agents
    from foveate.assembly import Context, Delta
    from foveate.embed import Embedder
    from foveate.engine import Engine
    from foveate.errors import (
        BudgetError,
        Conflict,
        Damaged,
        FoveateError,
        InputError,
        NotFound,
        ProfileError,
        SchemaTooNew,
        SourceError,
        StoreError,
    )
    from foveate.opening import open_engine as open
    from foveate.receipts import Receipt
    from foveate.sources.gather import Source
    from foveate.state.kinds import Kind
    from foveate.state.store import Store
    from foveate.state.task import Task
    from foveate.summarize import Summarizer
    from foveate.tokens import Counter, count
    from foveate.types import Candidate, Filters, Link, Profile, Record, Request, Scope, Signals, Slot

__all__ = [
    "Agents",
    "BudgetError",
    "Candidate",
    "Conflict",
    "Context",
    "Counter",
    "Damaged",
    "Delta",
    "Embedder",
    "Engine",
    "Filters",
    "FoveateError",
    "InputError",
    "Kind",
    "Link",
    "NotFound",
    "Profile",
    "ProfileError",
    "Receipt",
    "Record",
    "Request",
    "SchemaTooNew",
    "Scope",
    "Signals",
    "Slot",
    "Source",
    "SourceError",
    "Store",
    "StoreError",
    "Summarizer",
    "Task",
    "count",
    "open",
]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'foveate' has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _PUBLIC[name]
    value = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
