"""Two sets of overrides -> one that does what both do, the second over the first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foveate.errors import ProfileError
from foveate.pipeline.profiles.profile import overlay

EITHER = ("tokens", "share")
"""A slot's room is one of them."""


def together(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Unlike `overlay`, which lays a layer over a whole profile, this keeps `remove` for the profile beneath both."""
    for layer in (below, above):
        _check(layer.get("slots", {}))
    slots = dict(below.get("slots", {}))
    for name, values in above.get("slots", {}).items():
        if values.get("remove"):
            slots[name] = values
            continue
        gone = ("remove", *(EITHER if any(key in values for key in EITHER) else ()))
        slots[name] = {key: old for key, old in slots.get(name, {}).items() if key not in gone} | dict(values)
    rest = (({key: value for key, value in one.items() if key != "slots"}) for one in (below, above))
    return overlay(*rest) | ({"slots": slots} if slots else {})


def _check(slots: Any) -> None:
    if not isinstance(slots, Mapping) or not all(isinstance(values, Mapping) for values in slots.values()):
        raise ProfileError(f"slots must be a table with a table for each slot, not {slots!r}.")
