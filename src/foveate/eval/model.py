"""The values of an evaluation: what is told, what is asked, which evidence must stand in the answer.

A suite yields `World`s. A world is loaded when its turn comes, as a `Scene`: entries for a memory, or the folder of a
repository, and the cases to ask there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from foveate.text.sanitize import strip_invisible

BUDGETS = (250, 500, 1000, 2000, 4000, 8000, 16000, 32000)
"""Where the curve is drawn, in tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One thing that a store is told. `when` is ISO 8601; `values` are those of `engine.add`; `session` a talk it is of."""

    id: str
    text: str
    kind: str = "note"
    session: str | None = None
    when: str | None = None
    user: str | None = None
    agent: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    retired: bool = False
    links: tuple[tuple[str, str], ...] = ()
    """Name of the link and id of another entry."""


@dataclass(frozen=True)
class Rendered:
    """What a system would send to a model, with the parts of it by slot where it has such."""

    text: str
    slots: Mapping[str, str] | None = None

    @cached_property
    def flat(self) -> str:
        return squeezed(self.text)

    @cached_property
    def lines(self) -> frozenset[str]:
        """The lines without indentation, as they stand and without their numbers."""
        found = {line.strip() for line in self.text.split("\n")}
        numbered = (line.partition("|")[::2] for line in found)
        return frozenset(found | {rest.strip() for number, rest in numbered if number.strip().isdigit()})

    def within(self, slot: str | None) -> str:
        """The text of a slot without needless spaces; all of it for a system without slots."""
        if slot is None or self.slots is None:
            return self.flat
        return squeezed(self.slots.get(slot, ""))


_ESCAPE = re.compile(r"\\(?=#{1,6}(?:\s|$)|={2}|-{3})")


def squeezed(text: str) -> str:
    """The words of a text, however they are set: spaces, characters that hide, and the escapes that keep a heading within
    a quoted text from being one do not matter."""
    return " ".join(_ESCAPE.sub("", strip_invisible(text)).split())


class Evidence(Protocol):
    """A piece that an answer needs. `what` groups the pieces of a case: turns, sessions, files."""

    @property
    def what(self) -> str: ...

    @property
    def id(self) -> str:
        """Its name in a ranking of such pieces."""
        ...

    def stands(self, rendered: Rendered) -> bool: ...


@dataclass(frozen=True, slots=True)
class Case:
    """A question, and what must and must not stand in its answer."""

    id: str
    query: str
    wanted: tuple[Evidence, ...]
    unwanted: tuple[Evidence, ...] = ()
    type: str = ""
    now: str | None = None
    user: str | None = None
    agents: tuple[str | None, ...] = (None,)
    """Who asks. Several are asked one after the other, each with the whole budget, and their answers joined."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What `compute` is told besides, such as a profile or overrides; baselines have no use for it."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A world as it is asked: what a memory is told or the repository that is searched, and the cases."""

    cases: Sequence[Case]
    entries: Sequence[Entry] = ()
    root: Path | None = None
    store: Path | None = None
    """A store of foveate that is there already and is asked as it is; `entries` say what it holds, for the others."""
    files: Sequence[str] = ()
    """Of the repository, those that may be answers: others take no place in a ranking."""
    skipped: int = 0
    """Questions that are not asked, because the data name no evidence that is there."""


@dataclass(frozen=True, slots=True)
class World:
    """A store's worth of data. Its rows are written together, so that a run goes on with the next world."""

    id: str
    load: Callable[[], Scene]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A data set: `worlds(path, options)` reads it from where the user has it."""

    name: str
    about: str
    worlds: Callable[[Path, Mapping[str, str]], Iterator[World]]
    files: Callable[[Path], Sequence[Path]]
    """What it reads, and so what rows depend on: a run goes on only where these hold the same."""
    form: str = "data of this suite"
    """How its data look, for whoever brings others."""
    profile: str | None = None
    """Foveate's profile for such data; its default where there is none."""
    budgets: tuple[int, ...] = BUDGETS
    options: Mapping[str, str] = field(default_factory=dict)
    """What `-o NAME=VALUE` may say, each with a line of explanation."""
    places: tuple[str, ...] = ()
    """Options that only say where something lies: rows do not depend on them."""
    top: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Which ranks are reported, by `what`."""
    on_code: bool = False
    """Whether its scenes are repositories: baselines are for memories or for code."""


class Asked(Protocol):
    """A system that was told a scene."""

    def render(self, case: Case, budget: int) -> Rendered:
        """What it would send to a model, in at most so many tokens."""
        ...

    def ranked(self, case: Case) -> Mapping[str, Sequence[str]]:
        """What it found, best first, by `what`: ids as in the evidence. Empty where it cannot tell."""
        ...

    def close(self) -> None: ...


class System(Protocol):
    """Something that is evaluated."""

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str:
        """What its rows depend on: a run goes on only where this is the same."""
        ...

    @property
    def on_code(self) -> bool | None:
        """Whether it is for repositories or for memories; None where it is for both."""
        ...

    def open(self, scene: Scene, suite: Suite) -> Asked: ...
