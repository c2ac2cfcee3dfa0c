"""The table of record kinds. Adding a kind means adding a row.

A row names the heading of the kind, the fields that `data` may have, the function that renders a record at each level
(`render.py`), its partition of the search index, and the rules that apply to its records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from foveate.errors import InputError, near
from foveate.records import render, render_events, triggers
from foveate.records.fence import is_quoted
from foveate.text.format import passage_text
from foveate.text.markdown import escape_headings_after_tag
from foveate.text.sanitize import sanitize
from foveate.types import Level, Link, Passage, Record, Trust

RENDERER_VERSION = 7
"""Increase it when the rendering of any kind changes. Stores then count tokens again automatically."""

Renderer = Callable[[Record, Level], str]
OUTCOMES = ("success", "partial", "failure", "pending")
TASK_STATES = ("open", "active", "blocked", "completed", "failed")
COMPLEXITIES = ("easy", "normal", "complex")
SEVERITIES = {"low": 0.3, "medium": 0.5, "high": 0.7, "critical": 0.9}
"""The salience of a gotcha by its severity, unless the caller sets one."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a kind's `data`."""

    type: type | tuple[type, ...]
    required: bool = False
    choices: tuple[str, ...] = ()
    problem: Callable[[Any], str] | None = None
    """Returns the problem of a value of the right type as the end of a sentence, or an empty text."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A sort of record."""

    name: str
    heading: str
    renderer: Renderer
    fields: Mapping[str, Field] = field(default_factory=dict)
    description: str = ""
    """Describes its records in lists of kinds."""
    partition: Literal["knowledge", "events"] = "knowledge"
    is_private: bool = False
    """Its records are visible only in their own session and task: working notes and raw tool output."""
    is_rule: bool = False
    """Its records are selected by scope, never by similarity, and shown in full: every slot and profile obeys."""
    instructs_model: bool = False
    """Its records tell the model what to do, as rules do."""
    allow_extra: bool = False
    """`data` may have any further fields."""
    is_keyed: bool = False
    """(subject, attribute) names one value, and a new value supersedes the old one."""
    is_append_only: bool = False
    allow_duplicates: bool = False
    """Records with the same content are stored separately instead of confirming each other."""
    is_derived: bool = False
    """Its records are made from other state or from files when needed, and never stored."""
    is_internal: bool = False
    """foveate stores it for its own use. Lists, counts and messages omit it unless it is named; searches find it."""
    sort_by_path: bool = False
    """Items of a section are ordered by path instead of rank, so that a map reads as a tree."""

    def render(self, record: Record, level: Level, passage: Passage = ()) -> str:
        """Return a record as the model reads it. Its words cannot imitate another author or a heading.

        `passage` are the parts of its text that the level `passage` shows; without them, it shows the whole text.
        """
        if level == "passage":
            record, level = replace(record, text=passage_text(record.text, passage)), "full"
        text = sanitize(self.renderer(record, level), record.trust)
        return escape_headings_after_tag(text) if is_quoted(record) else text

    @property
    def min_trust(self) -> Trust:
        """The lowest trust that a record of this kind can have. Only the inbox makes an exception."""
        return "agent" if self.is_rule or self.instructs_model else "web"

    @property
    def required_fields(self) -> tuple[str, ...]:
        return tuple(name for name, rule in self.fields.items() if rule.required)


RULE_KINDS = ("identity", "censor", "instruction", "procedure")
"""Kinds that tell every later prompt what to do."""

REJECTION = "rejection"
"""Field of `data` that says why a person rejected a record."""

COMMON_FIELDS = {"confirmations": Field(int), REJECTION: Field(str)}
"""Fields in the data of any kind: what memory counts, and what the inbox writes."""

_TITLE_FIELDS = {"name": Field(str), "title": Field(str)}
_CONDITION_FIELDS = {"intents": Field(list), "entity_types": Field(list), "review": Field(bool)}
"""When a procedure applies. A lifecycle rule sets `review` if it mostly fails."""

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("identity", "Identity", render.prose, is_rule=True, description="who the assistant is"),
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
            description="what not to do: a warning, or a block with action=block",
        ),
        Kind(
            "instruction",
            "Standing Instructions",
            render.plain_text,
            is_rule=True,
            description="what always holds, in every prompt",
        ),
        Kind(
            "decision",
            "Relevant Past Decisions",
            render.decision,
            {"rationale": Field(str), "alternatives": Field(list), "result": Field(str)},
            description="a choice between alternatives, with its reason",
        ),
        Kind(
            "fact",
            "Known Information",
            render.plain_text,
            {"core": Field(bool)},
            is_keyed=True,
            description="something true; with a subject and an attribute, the newest value holds",
        ),
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
            description="what happened, and how it ended",
        ),
        Kind(
            "procedure",
            "Procedures",
            render.procedure,
            {"name": Field(str), "steps": Field(list), "core": Field(list), **_CONDITION_FIELDS},
            instructs_model=True,
            description="the steps of a recurring job",
        ),
        Kind(
            "pattern",
            "Patterns to Follow",
            render.pattern,
            {"location": Field(str), "applies_to": Field(list), **_CONDITION_FIELDS},
            description="how something is done here",
        ),
        Kind(
            "gotcha",
            "Warnings",
            render.gotcha,
            {"severity": Field(str, choices=tuple(SEVERITIES)), "workaround": Field(str)},
            description="a problem that others will run into",
        ),
        Kind(
            "entity",
            "Known Entities",
            render.entity,
            {"name": Field(str), "type": Field(str), "aliases": Field(list), "properties": Field(dict)},
            description="a person or thing that questions name",
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
            "Earlier Activity",
            render_events.event,
            {"type": Field(str)},
            partition="events",
            allow_extra=True,
            is_append_only=True,
            description="what was said or done in a conversation; never changed",
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
            description="something to do, and its result",
        ),
        Kind(
            "handoff",
            "Handoffs",
            render.plain_text,
            partition="events",
            allow_extra=True,
            allow_duplicates=True,
            description="what an agent wrote at the end of a task",
        ),
        Kind(
            "question",
            "Open Questions",
            render.question,
            {"context": Field(str), "recommendation": Field(str), "blocking": Field(bool)},
            description="an open question for a person",
        ),
        Kind(
            "stack",
            "Task Stack",
            render.plain_text,
            {"current": Field((str, type(None)))},
            partition="events",
            is_private=True,
            allow_duplicates=True,
            is_internal=True,
        ),
        Kind(
            "lease",
            "Active Contexts",
            render.plain_text,
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
        # Ids of the records that hooks put into an agent's window. It has no words, so no search finds it.
        Kind(
            "delivery",
            "Deliveries",
            render.plain_text,
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
            description="a part of the code, and where it is",
        ),
        Kind("issue", "Issue", render.with_title, _TITLE_FIELDS, description="what the architect works on"),
        Kind("design", "Design", render.with_title, _TITLE_FIELDS, description="what the developer works on"),
        Kind("change", "Change", render.with_title, _TITLE_FIELDS, description="what the reviewer works on: a diff"),
        Kind("frame", "Current Approach", render.prose, is_internal=True),
        Kind("section", "Section", render.prose, is_derived=True, allow_duplicates=True),
        Kind("code", "Relevant Code", render.code, is_derived=True, allow_duplicates=True),
        Kind("file", "Relevant Files", render.code, is_derived=True, allow_duplicates=True),
        Kind("outline", "Repository Map", render.prose, is_derived=True, allow_duplicates=True, sort_by_path=True),
        Kind("docs", "Codebase", render.prose, is_derived=True, allow_duplicates=True),
        Kind("note", "Notes", render.with_title, allow_extra=True, description="anything else"),
        Kind("scratch", "Working Notes", render.plain_text, is_private=True, allow_extra=True, is_internal=True),
    )
}


def kind_of(name: str) -> Kind:
    """Return the kind of a name, or raise an error that suggests a similar one."""
    try:
        return KINDS[name]
    except KeyError:
        choices = [kind.name for kind in KINDS.values() if not (kind.is_derived or kind.is_internal)]
        raise InputError(f"Unknown kind {name!r}.{near(name, choices)}") from None


def internal_kinds() -> frozenset[str]:
    """Return the names of the kinds that foveate stores for its own use."""
    return frozenset(kind.name for kind in KINDS.values() if kind.is_internal)


def register(kind: Kind) -> None:
    """Add a kind to the table. Built-in kinds cannot be replaced."""
    if kind.name in KINDS and KINDS[kind.name] != kind:
        raise InputError(f"Kind {kind.name!r} exists already. Choose another name.")
    KINDS[kind.name] = kind


def data_problems(kind: Kind, data: Mapping[str, Any]) -> list[str]:
    """Return the problems of a record's `data`, as sentences."""
    problems = []
    for name, value in data.items():
        rule = kind.fields.get(name) or COMMON_FIELDS.get(name)
        if rule is None:
            if not kind.allow_extra:
                problems.append(f"Kind {kind.name!r} has no field {name!r}.{near(name, kind.fields)}")
        elif not isinstance(value, rule.type):
            expected = rule.type.__name__ if isinstance(rule.type, type) else "/".join(t.__name__ for t in rule.type)
            problems.append(f"{kind.name}.{name} must be {expected}, got {value!r}.")
        elif rule.choices and value not in rule.choices:
            problems.append(f"{value!r} is not a value of {kind.name}.{name}.{near(str(value), rule.choices)}")
        elif rule.problem and (problem := rule.problem(value)):
            problems.append(f"{kind.name}.{name} {problem}")
    problems += [
        f"Kind {kind.name!r} needs the field {name!r}."
        for name, rule in kind.fields.items()
        if rule.required and name not in data
    ]
    return problems


# --- links -----------------------------------------------------------------------------------------------------------

DEPENDS_ON = "depends_on"  # task -> task
PART_OF = "part_of"  # task -> its parent
LEARNED_FROM = "learned_from"  # record -> the task that it was learned from
HANDOFF_OF = "handoff_of"  # handoff -> its task
CONFLICTS_WITH = "conflicts_with"  # fact -> an earlier one that it seems to contradict
PROMOTED_FROM = "promoted_from"  # record -> the one that a person accepted
SUPERSEDED_BY = "superseded_by"
DISPUTED_BY = "disputed_by"

STRUCTURAL_LINKS = frozenset(
    (DEPENDS_ON, PART_OF, LEARNED_FROM, HANDOFF_OF, CONFLICTS_WITH, PROMOTED_FROM, SUPERSEDED_BY, DISPUTED_BY)
)
"""Names of links that foveate creates itself. They relate records, not the things that the records are about."""

ACYCLIC_LINKS = frozenset((DEPENDS_ON, PART_OF))
"""A task cannot wait for itself or be a part of itself, directly or through others."""

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
