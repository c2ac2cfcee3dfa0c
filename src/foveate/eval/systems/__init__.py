"""The systems, by name: foveate, and what it is measured beside. A baseline is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module

from foveate.errors import NotFound, near
from foveate.eval.model import System

MODULES = {
    "foveate": "engine",
    "fts5": "fts5",
    "bm25": "bm25",
    "static": "static",
    "last": "last",
    "file-bm25": "file_bm25",
    "semble": "semble",
    "aider": "aider",
}


def system(name: str) -> System:
    if name not in MODULES:
        raise NotFound(f"There is no system {name!r}.{near(name, MODULES)}")
    found: System = import_module(f"{__name__}.{MODULES[name]}").SYSTEM
    return found
