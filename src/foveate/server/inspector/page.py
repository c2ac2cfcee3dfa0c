"""Pages and forms of the inspector, and the values that a browser sends with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fastapi import Request

from foveate.engine import Engine
from foveate.errors import InputError, near
from foveate.operations.inputs import refuse_unreadable
from foveate.server.http.access import Caller
from foveate.server.http.responses import decode_cursor

SCOPE_PARAMS = ("user", "agent")
"""Parameters that say whose state is shown. Every link of a page carries them on."""

MAX_ROWS = 500
"""Rows on one page."""

MAX_VALUES, MAX_VALUE_CHARS, MAX_DIGITS = 1_000, 50_000, 12
"""Values of one query string or form, characters of one value, and digits of a number."""


class PageRequest:
    """A request for a page or from a form: the caller and the values of the query string or the form."""

    def __init__(self, http: Request, caller: Caller, values: Iterable[tuple[str, str]]) -> None:
        self.http = http
        self.caller = caller
        self.values = [(name, value) for name, value in values if value != ""]  # browsers send fields that were left empty
        if len(self.values) > MAX_VALUES or any(len(name) + len(value) > MAX_VALUE_CHARS for name, value in self.values):
            raise InputError(f"A page takes at most {MAX_VALUES:,} values of {MAX_VALUE_CHARS:,} characters each.")
        for name, value in self.values:  # one at a time: a name may occur several times
            refuse_unreadable({name: value})

    @cached_property
    def engine(self) -> Engine:
        return self.caller.engine

    def has_scope(self, scope: str) -> bool:
        return scope in self.caller.principal.scopes

    def text(self, name: str, default: str = "") -> str:
        return next((value for each, value in self.values if each == name), default)

    def require(self, name: str, noun: str) -> str:
        """Return a value that the page cannot do without."""
        value = self.text(name)
        if not value:
            raise InputError(f"The page needs the id of a {noun}: `?{name}=...`.")
        return value

    def flag(self, name: str) -> bool:
        return self.text(name) in ("1", "on", "true", "yes")

    def choice(self, name: str, choices: Iterable[str], default: str = "") -> str:
        """Return a value that must be one of `choices`, or empty."""
        value, allowed = self.text(name, default), tuple(choices)
        if value and value not in allowed:
            raise InputError(f"{name} must be one of {', '.join(allowed)}, got {value[:40]!r}.{near(value, allowed)}")
        return value

    def integer(self, name: str, default: int | None = None, *, maximum: int = 10_000_000) -> int | None:
        """Return a whole number of at least 1."""
        value = self.text(name)
        if not value:
            return default
        if not (value.isascii() and value.isdecimal() and len(value) <= MAX_DIGITS and 1 <= int(value) <= maximum):
            raise InputError(f"{name} must be a number from 1 to {maximum:,}, got {value[:40]!r}.")
        return int(value)

    def limit(self, default: int = 50) -> int:
        return self.integer("limit", default, maximum=MAX_ROWS) or default

    def cursor(self, *types: type) -> tuple[Any, ...] | None:
        """Return the position at which this page of a long list begins."""
        return decode_cursor(self.text("after") or None, *types)


@dataclass(frozen=True, slots=True)
class Page:
    """A page. Its name is its path below /ui and the name of its template."""

    name: str
    title: str
    document: Callable[[PageRequest], dict[str, Any]]
    required_scope: str = "memory:read"
    in_navigation: bool = True


ActionResult = tuple[str, dict[str, Any], str]
"""The page to show next, its values, and a message that says what was done."""


@dataclass(frozen=True, slots=True)
class Action:
    """A form: its path below /ui, the scope that it requires, and the function that applies it."""

    name: str
    required_scope: str
    handler: Callable[[PageRequest], ActionResult]
