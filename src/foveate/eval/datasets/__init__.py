"""The suites by name, and suites of your own as `MODULE:NAME`."""

from __future__ import annotations

import sys
from importlib import import_module

from foveate.errors import InputError, NotFound, near
from foveate.eval.model import Suite

SUITES = {
    "locomo": ("conversations", "LOCOMO"),
    "realtalk": ("conversations", "REALTALK"),
    "longmemeval": ("conversations", "LONGMEMEVAL"),
    "longmemeval-turns": ("conversations", "LONGMEMEVAL_TURNS"),
    "beam": ("conversations", "BEAM"),
    "own": ("own", "OWN"),
}
"""Module and variable of each suite. Modules are imported on demand."""


def load_suite(name: str) -> Suite:
    """Return the suite with this name, or the one that `MODULE:NAME` refers to."""
    if ":" in name:
        return _import_suite(name)
    if name not in SUITES:
        raise NotFound(f"There is no suite {name!r}.{near(name, SUITES)}")
    module, variable = SUITES[name]
    suite: Suite = getattr(import_module(f"{__name__}.{module}"), variable)
    return suite


def _import_suite(spec: str) -> Suite:
    module, _, variable = spec.partition(":")
    suite = getattr(import_from_here(module, spec), variable, None)
    if not isinstance(suite, Suite):
        raise InputError(f"{spec!r} does not refer to a foveate.eval.model.Suite.")
    return suite


def import_from_here(module: str, spec: str) -> object:
    """Import a module that may lie in the current folder, which an installed command does not search."""
    if "" not in sys.path:
        sys.path.append("")
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(f"{spec!r} cannot be imported: {error}.") from None
