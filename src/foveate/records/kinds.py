"""Kinds: one row for each sort of record. Adding a sort is adding a row.

A row says under which heading records of the kind stand, which fields `data` may hold, how a record reads at each level
(`lines.py`), on which shelf of the index it lies and how it lives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from foveate.errors import InputError, near
from foveate.records import render, render_events, triggers
from foveate.text.sanitize import sanitize
from foveate.types import Level, Link, Record, Trust

RENDERER_VERSION = 5
"""Raise it when any line changes: stores then count their lines again by themselves."""

Renderer = Callable[[Record, Level], str]
OUTCOMES = ("success", "partial", "failure", "pending")
TASK_STATES = ("open", "active", "blocked", "completed", "failed")
COMPLEXITIES = ("easy", "normal", "complex")
SEVERITIES = {"low": 0.3, "medium": 0.5, "high": 0.7, "critical": 0.9}
"""How much a gotcha of each severity matters: its salience, unless the caller gives one."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a kind's `data`."""

    type: type | tuple[type, ...]
    required: bool = False
    choices: tuple[str, ...] = ()
    problem: Callable[[Any], str] | None = None
    """What is wrong with a value of the right type, as the end of a sentence; empty where nothing is."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A row of the table below."""

    name: str
    heading: str
    renderer: Renderer
    fields: Mapping[str, Field] = field(default_factory=dict)
    partition: Literal["knowledge", "events"] = "knowledge"
    is_private: bool = False
    """Session and task are walls for it: working notes and raw tool output stay where they were made."""
    is_rule: bool = False
    """Chosen by scope, never by similarity."""
    instructs_model: bool = False
    """It tells the model what to do, as rules do."""
    allow_extra: bool = False
    """`data` may hold any further fields."""
    is_keyed: bool = False
    """(subject, attribute) names one value; a new one supersedes the old."""
    is_append_only: bool = False
    allow_duplicates: bool = False
    """Two that say the same are two, each with a fate of its own."""
    is_derived: bool = False
    """Made from other state, or from files, when it is asked for, and never kept."""
    is_internal: bool = False
    """foveate stores it for its own use: lists, counts and messages leave it out unless it is named. Searches find it."""
    sort_by_path: bool = False
    """Items of a section stand in the order of their paths and not of their rank: a map reads as a tree."""

    def render(self, record: Record, level: Level) -> str:
        """A record as the model reads it; its words cannot pass for anybody else's."""
        return sanitize(self.renderer(record, level), record.trust)

    @property
    def min_trust(self) -> Trust:
        """Whose words may become one: what guides the model is a person's or an agent's, unless a person promotes it."""
        return "agent" if self.is_rule or self.instructs_model else "web"

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(name for name, rule in self.fields.items() if rule.required)


COUNTED = {"confirmations": Field(int)}
"""What memory counts by itself, in the data of any kind."""

_TITLED = {"name": Field(str), "title": Field(str)}
_APPLIES = {"intents": Field(list), "entity_types": Field(list), "review": Field(bool)}
"""When a way of doing things applies; `review` is set by rule where it mostly fails."""

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("identity", "Identity", render.prose, is_rule=True),
        Kind(
            "censor",
            "Active Constraints",
            render.censor,
            {
                "action": Field(str, choices=("warn", "block")),
                "reason": Field(str),
                "pattern": Field(str, problem=triggers.pattern_problem),
                "domain": Field(str),
                "false_alarms": Field(int),
            },
            is_rule=True,
        ),
        Kind("instruction", "Standing Instructions", render.plain, is_rule=True),
        Kind(
            "decision",
            "Relevant Past Decisions",
            render.decision,
            {"rationale": Field(str), "alternatives": Field(list), "result": Field(str)},
        ),
        Kind("fact", "Known Information", render.plain, {"core": Field(bool)}, is_keyed=True),
        Kind(
            "episode",
            "Past Experience",
            render.episode,
            {
                "title": Field(str),
                "participants": Field(list),
                "duration": Field(str),
                "result": Field(str),
                "archived": Field(bool),
            },
        ),
        Kind(
            "procedure",
            "Procedures",
            render.procedure,
            {"name": Field(str), "steps": Field(list), "core": Field(list), **_APPLIES},
            instructs_model=True,
        ),
        Kind(
            "pattern",
            "Patterns to Follow",
            render.pattern,
            {"location": Field(str), "applies_to": Field(list), **_APPLIES},
        ),
        Kind(
            "gotcha",
            "Warnings",
            render.gotcha,
            {"severity": Field(str, choices=tuple(SEVERITIES)), "workaround": Field(str)},
        ),
        Kind(
            "entity",
            "Known Entities",
            render.entity,
            {"name": Field(str), "type": Field(str), "aliases": Field(list), "properties": Field(dict)},
        ),
        Kind(
            "relation",
            "Relationships",
            render.relation,
            {
                "source": Field(str, required=True),
                "type": Field(str, required=True),
                "target": Field(str, required=True),
                "versions": Field(list),
                "types": Field(list),
            },
            is_derived=True,
        ),
        Kind(
            "event",
            "Recent Activity",
            render_events.event,
            {"type": Field(str)},
            partition="events",
            allow_extra=True,
            is_append_only=True,
        ),
        Kind(
            "task",
            "Tasks",
            render.task,
            {
                "name": Field(str),
                "description": Field(str),
                "acceptance_criteria": Field(list),
                "test_criteria": Field(list),
                "type": Field(str),
                "complexity": Field(str, choices=COMPLEXITIES),
                "estimated_time": Field((str, int, float)),
                "files": Field(list),
                "steps": Field(list),
                "reads": Field(list),
                "state": Field(str, choices=TASK_STATES),
                "result": Field(str),
                "reason": Field(str),
                "files_to_read": Field(list),
                "handoff": Field(str),
            },
            allow_extra=True,
            allow_duplicates=True,
        ),
        Kind("handoff", "Handoffs", render.plain, partition="events", allow_extra=True, allow_duplicates=True),
        Kind(
            "question",
            "Open Questions",
            render.question,
            {"context": Field(str), "recommendation": Field(str), "blocking": Field(bool)},
        ),
        Kind(
            "stack",
            "Task Stack",
            render.plain,
            {"current": Field((str, type(None)))},
            partition="events",
            is_private=True,
            allow_duplicates=True,
            is_internal=True,
        ),
        Kind(
            "lease",
            "Active Contexts",
            render.plain,
            {
                "agent": Field(str, required=True),
                "task": Field(str, required=True),
                "context": Field(str, required=True),
                "tokens": Field(int, required=True),
                "since": Field(int, required=True),
                "expires": Field(int, required=True),
                "state": Field(str, required=True),
                "exclusive": Field(bool),
            },
            partition="events",
            allow_duplicates=True,
            is_internal=True,
        ),
        # What hooks have put into an agent's window, by id. Without words: no search finds it.
        Kind(
            "delivery",
            "Deliveries",
            render.plain,
            {"number": Field(int, required=True), "shown": Field(dict), "gone": Field(list)},
            partition="events",
            allow_duplicates=True,
            is_internal=True,
        ),
        Kind(
            "component",
            "Code References",
            render.component,
            {"component": Field(str, required=True), "location": Field(str, required=True)},
        ),
        Kind("issue", "Issue", render.titled, _TITLED),
        Kind("design", "Design", render.titled, _TITLED),
        Kind("change", "Change", render.titled, _TITLED),
        Kind("frame", "Current Approach", render.prose, is_internal=True),
        Kind("section", "Section", render.prose, is_derived=True, allow_duplicates=True),
        Kind("code", "Relevant Code", render.code, is_derived=True, allow_duplicates=True),
        Kind("file", "Relevant Files", render.code, is_derived=True, allow_duplicates=True),
        Kind("outline", "Repository Map", render.prose, is_derived=True, allow_duplicates=True, sort_by_path=True),
        Kind("docs", "Codebase", render.prose, is_derived=True, allow_duplicates=True),
        Kind("note", "Notes", render.titled, allow_extra=True),
        Kind("scratch", "Working Notes", render.plain, is_private=True, allow_extra=True, is_internal=True),
    )
}


def kind_of(name: str) -> Kind:
    """The row of that name, or an error that names the nearest one."""
    try:
        return KINDS[name]
    except KeyError:
        choices = [kind.name for kind in KINDS.values() if not (kind.is_derived or kind.is_internal)]
        raise InputError(f"There is no kind {name!r}.{near(name, choices)}") from None


def internal_kinds() -> frozenset[str]:
    """Return the kinds that foveate stores for its own use. A program can register kinds at any time."""
    return frozenset(kind.name for kind in KINDS.values() if kind.is_internal)


def register(kind: Kind) -> None:
    """Add a kind of the user's own; the shipped ones cannot be replaced."""
    if kind.name in KINDS and KINDS[kind.name] != kind:
        raise InputError(f"Kind {kind.name!r} exists already; choose another name.")
    KINDS[kind.name] = kind


def problems_in(kind: Kind, data: Mapping[str, Any]) -> list[str]:
    """Everything that is wrong with a record's `data`, as sentences."""
    found = []
    for name, value in data.items():
        rule = kind.fields.get(name) or COUNTED.get(name)
        if rule is None:
            if not kind.allow_extra:
                found.append(f"Kind {kind.name!r} has no field {name!r}.{near(name, kind.fields)}")
        elif not isinstance(value, rule.type):
            wanted = rule.type.__name__ if isinstance(rule.type, type) else "/".join(t.__name__ for t in rule.type)
            found.append(f"{kind.name}.{name} must be {wanted}, not {value!r}.")
        elif rule.choices and value not in rule.choices:
            found.append(f"There is no {kind.name}.{name} {value!r}.{near(str(value), rule.choices)}")
        elif rule.problem and (problem := rule.problem(value)):
            found.append(f"{kind.name}.{name} {problem}")
    found += [
        f"Kind {kind.name!r} needs {name!r}." for name, rule in kind.fields.items() if rule.required and name not in data
    ]
    return found


# --- links -----------------------------------------------------------------------------------------------------------

DEPENDS_ON = "depends_on"  # task -> task
PART_OF = "part_of"  # task -> its parent
LEARNED_FROM = "learned_from"  # record -> the task that taught it
HANDOFF_OF = "handoff_of"  # handoff -> its task
CONFLICTS_WITH = "conflicts_with"  # fact -> an earlier one that seems to say otherwise
PROMOTED_FROM = "promoted_from"  # record -> the one that a user made it from
SUPERSEDED_BY = "superseded_by"
DISPUTED_BY = "disputed_by"

STRUCTURAL_LINKS = frozenset(
    (DEPENDS_ON, PART_OF, LEARNED_FROM, HANDOFF_OF, CONFLICTS_WITH, PROMOTED_FROM, SUPERSEDED_BY, DISPUTED_BY)
)
"""The names of links that foveate makes itself. They relate records, and not the things that the records are about."""

ACYCLIC_LINKS = frozenset((DEPENDS_ON, PART_OF))
"""No task waits for itself, and none is a part of itself."""

OutgoingLinks = Callable[[Sequence[str]], Sequence[Link]]
"""Returns the links that begin at some records."""


def find_cycle(link: Link, outgoing: OutgoingLinks) -> list[str]:
    """Return the cycle that a new link would close, from its source back to it, or an empty list."""
    came_from: dict[str, str] = {link.dst: link.src}
    frontier = [link.dst]
    while frontier and link.src not in frontier:
        steps = [step for step in outgoing(frontier) if step.dst not in came_from]
        came_from |= {step.dst: step.src for step in reversed(steps)}
        frontier = list(dict.fromkeys(step.dst for step in steps))
    if link.src not in frontier:
        return []
    path = [link.src, came_from[link.src]]
    while path[-1] != link.src:
        path.append(came_from[path[-1]])
    return path[::-1]
