"""Add records with fields of their kind beside their columns, and for a whole scope: what many tests write."""

from __future__ import annotations

from typing import Any

from foveate import Engine, Scope
from foveate.engine.engine import view_of
from foveate.options import NEW_RECORD_FIELDS
from foveate.store.protocol import AddResult


def fields_of(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values with those that are no columns in `data`."""
    columns = {name: value for name, value in values.items() if name in NEW_RECORD_FIELDS or name == "personal"}
    data = {name: value for name, value in values.items() if name not in columns}
    return {**columns, **({"data": {**columns.get("data", {}), **data}} if data else {})}


def add_record(engine: Engine, kind: str, text: str, *, scope: Scope | None = None, **values: Any) -> AddResult:
    """Add a record to exactly this scope."""
    target = engine if scope is None else view_of(engine, scope)
    if kind == "task":  # `add` refuses tasks, but a world needs them with ids and fields of its own
        return target._memory.add(kind, text, **fields_of(values))
    return target.add(kind, text, **fields_of(values))
