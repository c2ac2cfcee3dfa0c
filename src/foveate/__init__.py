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
    "open": ("foveate.factory", "open_engine"),
    "Engine": ("foveate.engine", "Engine"),
    "Context": ("foveate.pipeline.assembly", "Context"),
    "Delta": ("foveate.pipeline.assembly", "Delta"),
    "Receipt": ("foveate.receipts.receipt", "Receipt"),
    "Record": ("foveate.types", "Record"),
    "Link": ("foveate.types", "Link"),
    "Scope": ("foveate.types", "Scope"),
    "Filters": ("foveate.types", "Filters"),
    "Request": ("foveate.types", "Request"),
    "Signals": ("foveate.types", "Signals"),
    "Profile": ("foveate.types", "Profile"),
    "Slot": ("foveate.types", "Slot"),
    "Candidate": ("foveate.types", "Candidate"),
    "Kind": ("foveate.records.kinds", "Kind"),
    "Source": ("foveate.pipeline.sources.gather", "Source"),
    "Store": ("foveate.store.protocol", "Store"),
    "Task": ("foveate.tasks.task", "Task"),
    "Agents": ("foveate.agents", "Agents"),
    "Embedder": ("foveate.text.embed", "Embedder"),
    "Counter": ("foveate.text.tokens", "Counter"),
    "Summarizer": ("foveate.text.summarize", "Summarizer"),
    "count": ("foveate.text.tokens", "count"),
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
    from foveate.factory import open_engine as open
    from foveate.pipeline.assembly import Context, Delta
    from foveate.pipeline.sources.gather import Source
    from foveate.receipts.receipt import Receipt
    from foveate.records.kinds import Kind
    from foveate.store.protocol import Store
    from foveate.tasks.task import Task
    from foveate.text.embed import Embedder
    from foveate.text.summarize import Summarizer
    from foveate.text.tokens import Counter, count
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
