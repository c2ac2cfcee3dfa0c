"""Checks of callers' input that all front ends share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foveate.errors import InputError


def refuse_unreadable(value: Any, name: str = "") -> None:
    """Raise an error for a NUL or a lone surrogate at any depth: no store keeps them as text."""
    if isinstance(value, str):
        if "\x00" in value:
            raise InputError(f"{name} contains a NUL character at {value.index(chr(0))}; remove it.")
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"{name} is not UTF-8 text: there is a lone surrogate at {error.start}.") from None
    elif isinstance(value, Mapping):
        for key, part in value.items():
            refuse_unreadable(key, name or "a name")
            refuse_unreadable(part, name or str(key))
    elif isinstance(value, list | tuple):
        for part in value:
            refuse_unreadable(part, name)
