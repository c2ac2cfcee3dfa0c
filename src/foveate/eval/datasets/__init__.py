"""The suites, by name. Each module reads one data set and gives a `SUITE`."""

from __future__ import annotations

from importlib import import_module

from foveate.errors import NotFound, near
from foveate.eval.model import Suite

MODULES = {
    "locomo": "locomo",
    "realtalk": "realtalk",
    "longmemeval": "longmemeval",
    "beam": "beam",
    "precision": "precision",
    "facts": "facts",
    "swebench": "swebench",
    "cosqa": "cosqa",
    "own": "own",
}


def suite(name: str) -> Suite:
    if name not in MODULES:
        raise NotFound(f"There is no suite {name!r}.{near(name, MODULES)}")
    found: Suite = import_module(f"{__name__}.{MODULES[name]}").SUITE
    return found
