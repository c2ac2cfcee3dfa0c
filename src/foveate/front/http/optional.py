"""Parts that a service uses where they are installed."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def optional(module: str) -> ModuleType | None:
    """A module, or None where it or a package that it needs is not installed."""
    try:
        return import_module(module)
    except ModuleNotFoundError:
        return None
