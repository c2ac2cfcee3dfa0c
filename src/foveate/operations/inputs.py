"""What callers write, read the same way by every front end: texts that no store keeps, and which context is meant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foveate.errors import InputError

LAST = "last"
"""What stands for the latest context, wherever one is named."""


def context_named(named: str) -> str | None:
    """The id of the context that is named; none for the latest."""
    return None if named == LAST else named


def refuse_unreadable(value: Any, name: str = "") -> None:
    """No NUL and no bytes that are not UTF-8, at any depth: no store keeps them as text."""
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
