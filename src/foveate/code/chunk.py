"""A parsed file -> documents of the index: each definition with its own lines, and what stands outside of all of them.

A method's lines are the method's and not its class's. A function inside a function belongs to the outer one, unless that is
so long that pointing at it would not help.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from foveate.code.model import Definition, Parsed

LONG = 150
"""Lines from which what is inside a function stands for itself."""

KEY_LINES = 2
"""A setting of fewer lines is read with what is around it."""

_CALLABLE = frozenset(("function", "method", "constructor", "macro"))

MODULE = "top level"
"""The kind (no language has such a one) of what stands outside of all definitions: imports, constants, top-level code."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """One document of the index."""

    definition: Definition
    text: str
    """The words that it is found by: those of its own lines."""
    uses: Mapping[str, int]
    """Names that its own lines refer to."""
    parent: int | None
    """The place of the enclosing chunk."""


def chunks(parsed: Parsed, text: str, by_name: bool = False) -> list[Chunk]:
    """The documents of a file, the file's own rest first.

    `by_name`: definitions are found by their names, their documents and what they use, and not by every word of their
    bodies. Tests are often most of a repository and answer few questions.
    """
    lines = text.splitlines() or [""]
    definitions, places = _documents(parsed.definitions)
    whole = Definition("", "", MODULE, 1, len(lines), "", parsed.doc)
    owner = _owners(definitions, len(lines))
    own: list[list[str]] = [[] for _ in range(len(definitions) + 1)]
    for line, mine in zip(lines, owner, strict=True) if not by_name else ():
        own[mine].append(line)
    uses: list[dict[str, int]] = [{} for _ in own]
    for name, number in parsed.references:
        if 0 < number <= len(lines):
            used = uses[owner[number - 1]]
            used[name] = used.get(name, 0) + 1
    out = []
    types = {one.qualified: place for place, one in enumerate(definitions, 1) if one.kind not in _CALLABLE}
    for place, definition in enumerate((whole, *definitions)):
        # A method that stands apart from its type (Go, Rust, C++) belongs to it all the same.
        apart = types.get(definition.qualified.rpartition(".")[0])
        parent = apart if definition.parent is None else places[definition.parent]
        words = f"{definition.doc} {' '.join(uses[place])}" if by_name else "\n".join(own[place])
        out.append(Chunk(definition, words, uses[place], parent))
    return out


def _documents(definitions: Sequence[Definition]) -> tuple[list[Definition], dict[int, int]]:
    """Definitions that are documents of their own, and the place of each among them; the file's rest has place 0."""
    place: dict[int, int] = {}
    kept: list[Definition] = []
    for n, definition in enumerate(definitions):
        parent = definition.parent
        if parent is not None and parent not in place:
            continue  # inside of one that was left to its function
        if definition.kind == "key" and definition.end - definition.line < KEY_LINES:
            continue
        if parent is not None:
            outer = definitions[parent]
            if outer.kind in _CALLABLE and outer.end - outer.line < LONG:
                continue
        kept.append(definition)
        place[n] = len(kept)
    return kept, place


def _owners(definitions: Sequence[Definition], number: int) -> list[int]:
    """For each line, whose it is: 0 is the file's rest. Inner definitions come after outer ones and take theirs."""
    owner = [0] * number
    for place, definition in enumerate(definitions, 1):
        first, last = max(1, definition.line), min(definition.end, number)
        owner[first - 1 : last] = [place] * max(0, last - first + 1)
    return owner
