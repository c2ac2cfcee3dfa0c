"""Checks of callers' input that all front ends share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foveate.errors import InputError


def refuse_unreadable(value: Any, name: str = "") -> None:
    """Raise InputError for a NUL or a lone surrogate at any depth of a value. No store can hold them in a text."""
    if isinstance(value, str):
        if "\x00" in value:
            raise InputError(f"{name} contains a NUL character at position {value.index(chr(0))}. Remove it.")
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InputError(
                f"{name} is not valid UTF-8: it has a lone surrogate at position {error.start}. Remove it."
            ) from None
    elif isinstance(value, Mapping):
        for key, part in value.items():
            refuse_unreadable(key, name or "a name")
            refuse_unreadable(part, name or str(key))
    elif isinstance(value, list | tuple):
        for part in value:
            refuse_unreadable(part, name)
