"""Relations: links between entities, how they are drawn by name, walked, and read as records.

A relation is a `Link`, and a candidate holds a `Record`: `of_link` makes one of the kind `relation`, which is never kept.
Its id says which link it is, so that `recalled` finds it again, at the versions that its two entities had.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any
from urllib.parse import quote, unquote

from foveate.errors import InputError, NotFound
from foveate.memory.memory import Memory
from foveate.memory.mentions import name_of
from foveate.records import make
from foveate.records.kinds import STRUCTURAL_LINKS
from foveate.store.protocol import Reader
from foveate.store.scoped import PERSONAL_PROJECT
from foveate.text import analysis
from foveate.text.format import one_line
from foveate.types import NO_FILTERS, TRUST, Link, Record, Scope

KIND = "relation"
PREFIX = "rel_"

DECAY = 0.5
"""What a relation is worth one step further away."""

LONGEST_NAME = 80
"""Characters of an entity's name in a relation's line: an entity may have been kept under a whole paragraph."""

MAX_NEAR = 1000
"""Entities among which a near match is looked for."""


# --- as records ----------------------------------------------------------------------------------------------------


def id_of(link: Link) -> str:
    """The same link has the same id, in any process; its parts can be read from it."""
    return PREFIX + "|".join(quote(part, safe="") for part in (link.src, link.name, link.dst))


def ends_of(id: str) -> tuple[str, ...]:
    """The two entities of a relation's id; nothing where it is the id of something else."""
    parts = id.removeprefix(PREFIX).split("|")
    return (unquote(parts[0]), unquote(parts[2])) if id.startswith(PREFIX) and len(parts) == 3 else ()


def of_link(link: Link, source: Record, target: Record) -> Record:
    """A relation as a record: as new, as sure and as lasting as its two entities allow."""
    ends = (source, target)
    names = [_short(name_of(end)) for end in ends]
    words = f"{names[0]} --[{_short(link.name)}]--> {names[1]}"
    return Record(
        id=id_of(link),
        kind=KIND,
        scope=Scope(source.scope.project),
        text=words,
        summary=words,
        micro=words,
        salience=unit(link.weight),
        confidence=min(end.confidence for end in ends),
        trust=min((end.trust for end in ends), key=TRUST.index),
        data={
            "source": names[0],
            "type": _short(link.name),
            "target": names[1],
            "versions": [end.version for end in ends],
            "types": [str(end.data.get("type", "entity")) for end in ends],
        },
        created=max(end.created for end in ends),
        updated=max(end.updated for end in ends),
        valid_from=max(end.valid_from for end in ends),
        valid_to=min((end.valid_to for end in ends if end.valid_to is not None), default=None),
        version=sum(end.version for end in ends),  # grows with either
        sketch=make.sketch(words),
    )


def recalled(reader: Reader, id: str, versions: Sequence[int] | None = None) -> Record | None:
    """The relation of an id, with its entities as they were at these versions; None where the link is gone."""
    found = ends_of(id)
    if not found:
        return None
    link = next((link for link in reader.links(found[:1]) if id_of(link) == id), None)
    now = reader.get(found)
    ends = [now.get(end) if versions is None else reader.version(end, versions[n]) for n, end in enumerate(found)]
    return of_link(link, ends[0], ends[1]) if link is not None and ends[0] and ends[1] else None


def unit(weight: float) -> float:
    return min(1.0, max(0.0, weight))


def _short(name: str) -> str:
    flat = one_line(name)
    return flat if len(flat) <= LONGEST_NAME else flat[: LONGEST_NAME - 1].rstrip() + "…"


# --- walking -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Step:
    """A relation that was met, and how many steps away: 1 is at an entity that the walk starts from."""

    link: Link
    depth: int

    @property
    def weight(self) -> float:
        return unit(self.link.weight) * DECAY ** (self.depth - 1)


def walk(reader: Reader, start: Sequence[str], *, depth: int, edges: int, without: Collection[str] = ()) -> list[Step]:
    """Breadth-first over relations, from either end, each relation once and no entity twice; heavier ones first.

    `without` are entities that are not set foot on, nor are the relations that end at them.
    """
    met: dict[tuple[str, str, str], Step] = {}
    seen = {*start, *without}
    frontier = [id for id in start if id not in without]
    for steps in range(1, depth + 1):
        if not frontier or len(met) >= edges:
            break
        reached: dict[str, None] = {}
        for link in reader.relations(frontier, edges):  # some are met already; the rest of `edges` is left for new ones
            key = (link.src, link.name, link.dst)
            if key in met or len(met) >= edges or not {link.src, link.dst}.isdisjoint(without):
                continue
            met[key] = Step(link, steps)
            reached |= dict.fromkeys(end for end in (link.src, link.dst) if end not in seen)
        seen.update(reached)
        frontier = list(reached)
    return list(met.values())


def read(reader: Reader, steps: Sequence[Step]) -> Iterator[tuple[Step, Record]]:
    """Each step with the record that it reads as."""
    ends: Mapping[str, Record] = reader.get(list({end for step in steps for end in (step.link.src, step.link.dst)}))
    for step in steps:
        yield step, of_link(step.link, ends[step.link.src], ends[step.link.dst])


# --- drawing -------------------------------------------------------------------------------------------------------


def relate(memory: Memory, source: str, name: str, target: str, *, weight: float = 1.0, create: bool = False) -> Link:
    """Join two entities, each by its name, an alias or its id. `create` keeps those that are not known yet."""
    words = _checked(name, weight, (source, target))
    with memory.data.reader() as reader:
        ends = [find(reader, end) for end in (source, target)]
        missing = [end for end, record in zip((source, target), ends, strict=True) if record is None]
        missing_ids = [end for end in missing if end.startswith("entity_")]  # an id is no name to create one under
        if missing_ids or (missing and not create):
            raise NotFound(" ".join(dict.fromkeys(_unknown(reader, end) for end in missing)))
    personal = any(end is not None and end.scope.project == PERSONAL_PROJECT for end in ends)
    joined = [
        memory.add("entity", said, personal=personal).record if end is None else end
        for said, end in zip((source, target), ends, strict=True)
    ]
    if joined[0].scope.project != joined[1].scope.project:
        raise InputError(
            f"{source!r} and {target!r} are kept in two stores, the project's and your own, and a relation lies within one. "
            "Add the other entity to the same store first."
        )
    return memory.link(joined[0].id, words, joined[1].id, weight)


def find(reader: Reader, said: str) -> Record | None:
    """The entity of a name, an alias or an id."""
    record = reader.get([said]).get(said)
    if record is not None and record.kind == "entity":
        return record
    return next(iter(reader.entities_by_name([analysis.normalize_name(said)]).values()), None)


def _unknown(reader: Reader, said: str) -> str:
    names = {name_of(record).casefold(): name_of(record) for record in reader.most_salient(["entity"], MAX_NEAR, NO_FILTERS)}
    close = get_close_matches(said.casefold(), sorted(names), n=1, cutoff=0.6)
    hint = f"Did you mean {names[close[0]]!r}?" if close else "`foveate entities list` shows those that are known."
    return f"There is no entity {said!r} in this scope. {hint}"


def _checked(name: str, weight: Any, ends: Sequence[str]) -> str:
    """The name of a relation as it is kept, or an error that lists what is wrong."""
    words = one_line(make.clean(name)) if isinstance(name, str) else ""
    problems = [
        f"An entity's name is a text with letters or digits, not {end!r}."
        for end in ends
        if not isinstance(end, str) or not analysis.normalize_name(end)
    ]
    if not words:
        problems.append("The relation has no name; say how the two hang together, such as 'owns'.")
    if words in STRUCTURAL_LINKS:
        problems.append(f"{words!r} is a link that foveate draws itself; choose another name, such as 'needs'.")
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= 1:
        problems.append(f"weight must be between 0 and 1, not {weight!r}.")
    if problems:
        raise InputError(problems)
    return words
