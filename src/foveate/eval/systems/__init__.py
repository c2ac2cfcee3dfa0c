"""The systems, by name: foveate, and what it is measured beside. A baseline is imported when it is asked for.

What stands after a colon is for the system: `static:model2vec:PATH`, `foveate:embedder=hash:256`. A module gives a `SYSTEM`,
or a `make` that takes such an argument, or both; `missing`, where something must be installed first; `WANTED`, where it
cannot do without an argument.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from types import ModuleType

from foveate.errors import InputError, NotFound, near
from foveate.eval.model import System

MODULES = {
    "foveate": "engine",
    "fts5": "fts5",
    "bm25": "bm25",
    "static": "dense",
    "last": "recency",
    "file-bm25": "file_bm25",
    "semble": "semble",
    "aider": "aider",
}


ABOUT = {
    "foveate": "foveate itself; foveate:embedder=PROVIDER:MODEL with vectors",
    "fts5": "memories: SQLite's full-text search",
    "bm25": "memories: BM25 with stems, by bm25s",
    "static": "memories: embeddings alone, as static:PROVIDER:MODEL",
    "last": "memories: the newest ones that fit",
    "file-bm25": "code: plain BM25 over files and functions",
    "semble": "code: semble's search; semble:whole, semble:model=PATH",
    "aider": "code: aider's map of a repository",
}


def system(spec: str) -> System:
    name, colon, argument = spec.partition(":")
    module = _module(name)
    if colon and not hasattr(module, "make"):
        raise InputError(f"The system {name!r} takes no argument, but was given {argument!r}; write {name!r} alone.")
    found: System = module.make(argument) if colon or not hasattr(module, "SYSTEM") else module.SYSTEM
    return found


def specs(named: Iterable[str]) -> list[str]:
    """Systems as users list them, with commas between, each once. What no system begins is told to the one before it, if
    that is told anything: `semble:model=PATH,whole`."""
    found: list[str] = []
    for part in (part.strip() for value in named for part in value.split(",") if part.strip()):
        if found and ":" in found[-1] and part.partition(":")[0] not in MODULES:
            found[-1] += f",{part}"
        else:
            found.append(part)
    return list(dict.fromkeys(found))


def about(name: str) -> str:
    """What a system is, in a short line."""
    return ABOUT[name]


def needs(name: str) -> str:
    """What to install or to name before a system can run here, in a few words; nothing where it can."""
    plain, _, argument = name.partition(":")
    module = _module(plain)
    absent = str(module.missing()) if hasattr(module, "missing") else ""
    return absent or ("" if argument else getattr(module, "WANTED", ""))


def _module(name: str) -> ModuleType:
    if name not in MODULES:
        raise NotFound(f"There is no system {name!r}.{near(name, MODULES)}")
    return import_module(f"{__name__}.{MODULES[name]}")
