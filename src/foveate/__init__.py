"""foveate: a context engine for LLM agents.

    import foveate

    engine = foveate.open(".")
    engine.add("decision", "Chose Postgres over ChromaDB for unified storage", outcome="success", confidence=0.85)
    print(engine.context("Should we use Redis for caching?", budget=2000).text)

Public names are loaded when they are first used, so that `import foveate` costs next to nothing.
"""

from __future__ import annotations

__version__ = "0.1.0"

_MODULES = {
    "open": "foveate.factory",
    "count": "foveate.text.tokens",
    "compress": "foveate.text.compress",
    "Engine": "foveate.engine",
    "Context": "foveate.receipts.context",
    "Record": "foveate.types",
    "Task": "foveate.tasks.task",
    "Receipt": "foveate.receipts.receipt",
    "Scope": "foveate.types",
    "Filters": "foveate.types",
    "Kind": "foveate.records.kinds",
    "Source": "foveate.pipeline.sources.base",
    "Candidate": "foveate.types",
    "Message": "foveate.types",
    "Embedder": "foveate.text.embed",
    "LLM": "foveate.text.summarize",
    "Counter": "foveate.text.tokens",
    "FoveateError": "foveate.errors",
    "InputError": "foveate.errors",
    "NotFound": "foveate.errors",
    "Conflict": "foveate.errors",
    "BudgetError": "foveate.errors",
    "StoreError": "foveate.errors",
}

TYPE_CHECKING = False  # type checkers read it as True; importing `typing` would double the time of `import foveate`
if TYPE_CHECKING:
    from foveate.engine import Engine
    from foveate.errors import BudgetError, Conflict, FoveateError, InputError, NotFound, StoreError
    from foveate.factory import open as open
    from foveate.pipeline.sources.base import Source
    from foveate.receipts.context import Context
    from foveate.receipts.receipt import Receipt
    from foveate.records.kinds import Kind
    from foveate.tasks.task import Task
    from foveate.text.compress import compress
    from foveate.text.embed import Embedder
    from foveate.text.summarize import LLM
    from foveate.text.tokens import Counter, count
    from foveate.types import Candidate, Filters, Message, Record, Scope

__all__ = [
    "LLM",
    "BudgetError",
    "Candidate",
    "Conflict",
    "Context",
    "Counter",
    "Embedder",
    "Engine",
    "Filters",
    "FoveateError",
    "InputError",
    "Kind",
    "Message",
    "NotFound",
    "Receipt",
    "Record",
    "Scope",
    "Source",
    "StoreError",
    "Task",
    "compress",
    "count",
]
"""The names of `from foveate import *`: all but `open`, which would replace the builtin function."""


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'foveate' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_MODULES)
