"""What a page is, and what it is asked: a name, a document, and the query string that says what it is about. And what a form
does: one verb of the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fastapi import Request

from foveate.engine import Engine
from foveate.errors import InputError, near
from foveate.operations.inputs import refuse_unreadable
from foveate.server.http.access import Caller
from foveate.server.http.responses import position

SCOPE = ("user", "agent")
"""Whose state is looked at; every link of a page carries them on."""

MOST = 500
"""Rows on one page."""

MANY, LONG, DIGITS = 1_000, 50_000, 12
"""Values that a page may be asked with, or a form may send, characters of one, and digits of a number."""


class Asked:
    """One request for a page: who asks, and what the query string says."""

    def __init__(self, caller: Caller, values: Iterable[tuple[str, str]]) -> None:
        self.caller = caller
        self.values = [(name, value) for name, value in values if value != ""]  # a field that was left empty says nothing
        if len(self.values) > MANY or any(len(name) + len(value) > LONG for name, value in self.values):
            raise InputError(f"That is too much for one page: at most {MANY} values, of {LONG:,} characters each.")
        for name, value in self.values:  # one by one: a name may stand several times
            refuse_unreadable({name: value})

    @cached_property
    def engine(self) -> Engine:
        return self.caller.engine

    @property
    def sees_all(self) -> bool:
        """Whether whoever asks may speak for every user and agent: figures of the whole project are theirs."""
        who = self.caller.who
        return who.is_owner or (who.scope.user is None and who.scope.agent is None)

    def may(self, scope: str) -> bool:
        """Whether whoever asks may do this."""
        return scope in self.caller.who.allows

    def text(self, name: str, default: str = "") -> str:
        return next((value for each, value in self.values if each == name), default)

    def needed(self, name: str, what: str) -> str:
        """A value that the page is about."""
        found = self.text(name)
        if not found:
            raise InputError(f"Say which {what}: `?{name}=...`.")
        return found

    def several(self, name: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(value for each, value in self.values if each == name))

    def flag(self, name: str) -> bool:
        return self.text(name) in ("1", "on", "true", "yes")

    def choice(self, name: str, known: Iterable[str], default: str = "") -> str:
        """One of several words."""
        found, allowed = self.text(name, default), tuple(known)
        if found and found not in allowed:
            raise InputError(f"{name} is one of {', '.join(allowed)}, not {found[:40]!r}.{near(found, allowed)}")
        return found

    def number(self, name: str, default: int | None = None, *, least: int = 1, most: int = 10_000_000) -> int | None:
        found = self.text(name)
        if not found:
            return default
        if not (found.isascii() and found.isdecimal() and len(found) <= DIGITS and least <= int(found) <= most):
            raise InputError(f"{name} is a number from {least:,} to {most:,}, not {found[:40]!r}.")
        return int(found)

    def share(self, name: str, most: float = 1.0) -> float | None:
        """A number with a fraction, from 0 on."""
        found = self.text(name)
        if not found:
            return None
        try:
            value = float(found)
        except ValueError:
            value = -1.0
        if not 0 <= value <= most:
            raise InputError(f"{name} is a number from 0 to {most:g}, not {found[:40]!r}.")
        return value

    def limit(self, default: int = 50) -> int:
        return self.number("limit", default, most=MOST) or default

    def after(self, *types: type) -> tuple[Any, ...] | None:
        """Where a page of a long list goes on."""
        return position(self.text("after") or None, *types)


@dataclass(frozen=True, slots=True)
class Page:
    """`name` is its path below /ui, its template and its word in the palette."""

    name: str
    title: str
    document: Callable[[Asked], dict[str, Any]]
    needs: str = "memory:read"
    """The scope that a token must allow; nothing where any token will do."""
    hint: str = ""
    """What it is for, in the palette and on the page of help; nothing where it is reached through another page only."""
    told: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict
    """What of the document is worth reading as Markdown; all of it, unless told."""


Went = tuple[str, dict[str, Any], str]
"""The page to go on with, its values, and what was done, in a few words."""


@dataclass(frozen=True, slots=True)
class Action:
    """A form: its address below /ui, the scopes that it needs, and what it does with its fields."""

    name: str
    needs: tuple[str, ...]
    change: Callable[[Asked, Request], Went]


def picked(rows: Iterable[Mapping[str, Any]], *names: str) -> list[dict[str, Any]]:
    """Of each row what these names say, in their order."""
    return [{name: row.get(name) for name in names} for row in rows]


def subject(document: Mapping[str, Any], page: Page) -> str:
    """What a page is about, for the title of its window."""
    return str(document.get("subject") or page.title)
