"""The engine and its namespaces: `engine.code`, `engine.inbox`, `engine.store`."""

from foveate.engine.engine import Engine

__all__ = ["Engine"]
