"""Relations between entities: create them by name, walk along them, and show them as records.

A relation is stored as a `Link`. `relation_record` returns a record for it, which can be a candidate and is never stored.
The id of that record contains the link, so that `load_relation` can return it again with earlier versions of the entities.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any
from urllib.parse import quote, unquote

from foveate.errors import InputError, NotFound
from foveate.memory.entities import name_of
from foveate.memory.memory import Memory
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
"""Factor on the weight of a relation for each step from the start."""

MAX_NAME_CHARS = 80
"""Longest name of an entity in the text of a relation. An entity may have been stored with a whole paragraph as its name."""

MAX_SUGGESTION_POOL = 1000
"""Entities that are compared with an unknown name to suggest a similar one."""


# --- as records ----------------------------------------------------------------------------------------------------


def id_of(link: Link) -> str:
    """Return the id of a relation. It is made from the link alone, so it is the same in every process."""
    return PREFIX + "|".join(quote(part, safe="") for part in (link.src, link.name, link.dst))


def ends_of(id: str) -> tuple[str, ...]:
    """Return the ids of the two entities of a relation's id, or nothing if it is another kind of id."""
    parts = id.removeprefix(PREFIX).split("|")
    return (unquote(parts[0]), unquote(parts[2])) if id.startswith(PREFIX) and len(parts) == 3 else ()


def relation_record(link: Link, source: Record, target: Record) -> Record:
    """Return a relation as a record. It is as certain, trusted and valid as the weaker of its two entities."""
    ends = (source, target)
    names = [_truncate_name(name_of(end)) for end in ends]
    words = f"{names[0]} --[{_truncate_name(link.name)}]--> {names[1]}"
    return Record(
        id=id_of(link),
        kind=KIND,
        scope=Scope(source.scope.project),
        text=words,
        summary=words,
        micro=words,
        salience=_clamp(link.weight),
        confidence=min(end.confidence for end in ends),
        trust=min((end.trust for end in ends), key=TRUST.index),
        data={
            "source": names[0],
            "type": _truncate_name(link.name),
            "target": names[1],
            "versions": [end.version for end in ends],
            "types": [str(end.data.get("type", "entity")) for end in ends],
        },
        created=max(end.created for end in ends),
        updated=max(end.updated for end in ends),
        valid_from=max(end.valid_from for end in ends),
        valid_to=min((end.valid_to for end in ends if end.valid_to is not None), default=None),
        version=sum(end.version for end in ends),  # changes if either entity does
        sketch=make.sketch(words),
    )


def load_relation(reader: Reader, id: str, versions: Sequence[int] | None = None) -> Record | None:
    """Return the relation of an id with its entities at these versions, or None if the link no longer exists."""
    end_ids = ends_of(id)
    if not end_ids:
        return None
    link = next((link for link in reader.links(end_ids[:1]) if id_of(link) == id), None)
    current = reader.get(end_ids)
    ends = [current.get(end) if versions is None else reader.version(end, versions[n]) for n, end in enumerate(end_ids)]
    return relation_record(link, ends[0], ends[1]) if link is not None and ends[0] and ends[1] else None


def _clamp(weight: float) -> float:
    return min(1.0, max(0.0, weight))


def _truncate_name(name: str) -> str:
    flat = one_line(name)
    return flat if len(flat) <= MAX_NAME_CHARS else flat[: MAX_NAME_CHARS - 1].rstrip() + "…"


# --- walking -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RelationStep:
    """A relation on a walk and its distance. Relations at distance 1 begin or end at an entity where the walk starts."""

    link: Link
    depth: int

    @property
    def weight(self) -> float:
        return _clamp(self.link.weight) * DECAY ** (self.depth - 1)


def walk(
    reader: Reader, start: Sequence[str], *, max_depth: int, max_edges: int, excluded_ids: Collection[str] = ()
) -> list[RelationStep]:
    """Walk breadth-first along relations in both directions, the heaviest first. Visit each relation and entity once.

    Entities of `excluded_ids` and their relations are not visited.
    """
    steps: dict[tuple[str, str, str], RelationStep] = {}
    seen = {*start, *excluded_ids}
    frontier = [id for id in start if id not in excluded_ids]
    for depth in range(1, max_depth + 1):
        if not frontier or len(steps) >= max_edges:
            break
        reached: dict[str, None] = {}
        # Relations back to the previous level are among them; `steps` has those already.
        for link in reader.relations(frontier, max_edges):
            key = (link.src, link.name, link.dst)
            if key in steps or len(steps) >= max_edges or not {link.src, link.dst}.isdisjoint(excluded_ids):
                continue
            steps[key] = RelationStep(link, depth)
            reached |= dict.fromkeys(end for end in (link.src, link.dst) if end not in seen)
        seen.update(reached)
        frontier = list(reached)
    return list(steps.values())


def relation_records(reader: Reader, steps: Sequence[RelationStep]) -> Iterator[tuple[RelationStep, Record]]:
    """Yield each step with its relation as a record."""
    ends: Mapping[str, Record] = reader.get(list({end for step in steps for end in (step.link.src, step.link.dst)}))
    for step in steps:
        yield step, relation_record(step.link, ends[step.link.src], ends[step.link.dst])


# --- creating ---------------------------------------------------------------------------------------------------


def relate(memory: Memory, source: str, name: str, target: str, *, weight: float = 1.0, create: bool = False) -> Link:
    """Link two entities by name, alias or id. `create` adds those that do not exist yet."""
    words = _validate(name, weight, (source, target))
    with memory.data.reader() as reader:
        ends = [find_entity(reader, end) for end in (source, target)]
        missing = [end for end, record in zip((source, target), ends, strict=True) if record is None]
        # A mistyped id must not become the name of a new entity.
        missing_ids = [end for end in missing if end.startswith("entity_")]
        if missing_ids or (missing and not create):
            raise NotFound(" ".join(dict.fromkeys(_unknown_entity_message(reader, end) for end in missing)))
    personal = any(end is not None and end.scope.project == PERSONAL_PROJECT for end in ends)
    entities = [
        memory.add("entity", name_or_id, personal=personal).record if end is None else end
        for name_or_id, end in zip((source, target), ends, strict=True)
    ]
    if entities[0].scope.project != entities[1].scope.project:
        raise InputError(
            f"{source!r} and {target!r} are in different stores, the project's and your personal one. A link must stay in "
            "one store, so add the other entity to the same store first."
        )
    return memory.link(entities[0].id, words, entities[1].id, weight)


def find_entity(reader: Reader, name_or_id: str) -> Record | None:
    """Return the entity with a name, an alias or an id, or None."""
    record = reader.get([name_or_id]).get(name_or_id)
    if record is not None and record.kind == "entity":
        return record
    return next(iter(reader.entities_by_name([analysis.normalize_name(name_or_id)]).values()), None)


def _unknown_entity_message(reader: Reader, name: str) -> str:
    known = reader.most_salient(["entity"], MAX_SUGGESTION_POOL, NO_FILTERS)
    names = {name_of(record).casefold(): name_of(record) for record in known}
    close = get_close_matches(name.casefold(), sorted(names), n=1, cutoff=0.6)
    hint = f"Did you mean {names[close[0]]!r}?" if close else "`foveate search --kind entity` lists the known ones."
    return f"No entity {name!r} in this scope. {hint}"


def _validate(name: str, weight: Any, ends: Sequence[str]) -> str:
    """Return the cleaned name of a relation, or raise an error that lists every problem."""
    words = one_line(make.clean(name)) if isinstance(name, str) else ""
    problems = [
        f"The name of an entity must be a text with letters or digits, got {end!r}."
        for end in ends
        if not isinstance(end, str) or not analysis.normalize_name(end)
    ]
    if not words:
        problems.append("The link has no name. Name the relation, for example 'owns'.")
    if words in STRUCTURAL_LINKS:
        problems.append(f"{words!r} is the name of a link that foveate creates itself. Choose another, such as 'needs'.")
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= 1:
        problems.append(f"weight must be between 0 and 1, got {weight!r}.")
    if problems:
        raise InputError(problems)
    return words
