"""The kinds of evidence. A piece is present only if its text is in the rendered context, whatever a ranking says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from foveate.eval.model import Rendered, squeezed


@dataclass(frozen=True, slots=True)
class Said:
    """A text that must be there word for word; spaces do not matter. `slot`: only there does it count."""

    id: str
    text: str
    what: str = "turn"
    slot: str | None = None

    def stands(self, rendered: Rendered) -> bool:
        return _said(self.text, rendered.within(self.slot))


@dataclass(frozen=True, slots=True)
class OneOf:
    """Any of several texts: a session is present where something that was said in it is."""

    id: str
    texts: tuple[str, ...]
    what: str = "session"

    def stands(self, rendered: Rendered) -> bool:
        return any(_said(text, rendered.flat) for text in self.texts)


@dataclass(frozen=True, slots=True)
class File:
    """A file, by its path."""

    id: str
    what: str = "file"

    def stands(self, rendered: Rendered) -> bool:
        return named(self.id, rendered.text)


@dataclass(frozen=True, slots=True)
class Lines:
    """A piece of a file, such as a function: its path, and each of its lines that is not blank.

    Indentation, line numbers and order do not matter, so that a function shown in two pieces counts. `sources` are several
    where a name is defined several times: one of them will do.
    """

    id: str
    path: str
    sources: tuple[str, ...]
    what: str = "function"

    def stands(self, rendered: Rendered) -> bool:
        if not named(self.path, rendered.text):
            return False
        return any(_lines(source) <= rendered.lines for source in self.sources)


def _said(text: str, flat: str) -> bool:
    """Whether a text stands in another one, and not only as a part of a word of it; nothing stands nowhere."""
    wanted = squeezed(text)
    at = flat.find(wanted) if wanted else -1
    while at >= 0:
        end = at + len(wanted)
        if not (_within_word(flat, at) or _within_word(flat, end)):
            return True
        at = flat.find(wanted, at + 1)
    return False


def _within_word(text: str, at: int) -> bool:
    return 0 < at < len(text) and text[at - 1].isalnum() and text[at].isalnum()


def named(path: str, text: str) -> bool:
    """Whether a path stands in a text, and not only as a part of another one."""
    return re.search(rf"(?<![\w/.-]){re.escape(path)}(?!\w)", text) is not None


def _lines(source: str) -> set[str]:
    return {line.strip() for line in source.split("\n")} - {""}


def sessions(turns: Sequence[tuple[str, str]]) -> tuple[OneOf, ...]:
    """One piece for each session of some (session, text)."""
    texts: dict[str, list[str]] = {}
    for session, text in turns:
        texts.setdefault(session, []).append(text)
    return tuple(OneOf(session, tuple(said)) for session, said in texts.items())
