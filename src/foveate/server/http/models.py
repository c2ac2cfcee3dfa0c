"""What requests say, checked. Answers are documents (`operations/json.py`) and have no models.

Nothing unknown is accepted, so that a misspelt option is an error and not a wish that nobody hears.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from foveate.clock import parse_time
from foveate.errors import InputError
from foveate.operations.inputs import refuse_unreadable
from foveate.types import Filters

MOST = 10_000
"""Rows or names in one request."""

DEEPEST = 100
"""Levels of nesting in a request."""

LARGEST = 2**63 - 1
"""The largest number that a database keeps."""

Name = Annotated[str, Field(min_length=1, max_length=500)]
Names = Annotated[list[Name], Field(max_length=MOST)]
Share = Annotated[float, Field(ge=0, le=1)]
Budget = Annotated[int, Field(gt=0, le=10_000_000)]


class Body(BaseModel):
    """A request's body."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _sound(cls, value: Any) -> Any:
        refuse_unsound(value)
        refuse_unreadable(value)
        return value


def refuse_unsound(value: Any, depth: int = 0) -> None:
    """What JSON lets through and no store keeps: numbers without an end, and nesting without one."""
    if depth > DEEPEST:
        raise InputError(f"The body is nested more than {DEEPEST} levels deep.")
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"{value} is not a number.")
    if isinstance(value, int) and abs(value) > LARGEST:
        raise InputError("A number in the body is too large.")
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    for part in parts:
        refuse_unsound(part, depth + 1)


class Wanted(Body):
    """Filters: what may be considered at all."""

    since: Name | None = Field(default=None, description="2026-11-15, 2026-11-15T12:00Z, or how long ago: 12h, 7d.")
    until: Name | None = None
    kinds: Names = []
    tags: Names = []
    exclude: Names = []
    event_types: Names = []
    entity_types: Names = []
    min_trust: Literal["user", "agent", "repo", "tool"] = "tool"

    def filters(self) -> Filters:
        return Filters(**self.model_dump())


Given = str | dict[str, Any]


class NewContext(Body):
    """What a context is for. Without a query, a task or the goal on top of the stack is the question."""

    query: str | None = None
    budget: Budget | None = Field(default=None, description="The most that the model may receive, framing included.")
    profile: Name | None = None
    complexity: Name | None = None
    frame: Name | None = None
    agent: Name | None = None
    session: Name | None = None
    task: Name | None = None
    given: Given | list[Given] | dict[str, list[Given]] = []
    filters: Wanted = Wanted()
    overrides: dict[str, Any] = {}
    without: Names = Field(default=[], description="Slots to leave out.")
    code: bool = Field(default=True, description="Whether the project's files are looked at.")
    code_query: str | None = None
    counter: Name | None = None
    cached: bool | None = None
    messages: Literal["openai", "anthropic"] | None = Field(default=None, description="The shape of `messages`.")
    computed: bool = Field(default=False, description="Also the items by what they are for a task.")

    def options(self) -> dict[str, Any]:
        """As `engine.context` takes them; the scope is the caller's."""
        names = ("budget", "profile", "complexity", "frame", "code_query", "counter")
        removed = {slot: {"remove": True} for slot in self.without}
        slots = self.overrides.get("slots", {})
        overrides = (
            {**self.overrides, "slots": {**slots, **removed}} if removed and isinstance(slots, dict) else self.overrides
        )
        return {
            **{name: getattr(self, name) for name in names},
            "extra": self.given,
            "filters": self.filters.filters(),
            "overrides": overrides,
        }


class Replay(Body):
    given: Given | list[Given] | dict[str, list[Given]] = []


class Turn(Body):
    """What is said now, and how much room the conversation takes."""

    query: str
    decision: bool = False
    spent: int = Field(default=0, ge=0, le=LARGEST)
    window: Budget | None = None
    pressure: float = Field(default=0.9, gt=0, le=1)
    budget: Budget | None = None


class Answer(Body):
    answer: str


class Marks(Body):
    marks: dict[str, Literal["useful", "wrong", "outdated"]] = Field(min_length=1, max_length=MOST)


class Fields(Body):
    """A record's columns; `data` holds the fields of its kind."""

    summary: str | None = None
    micro: str | None = None
    tags: Names | None = None
    entities: Names | None = None
    paths: Names | None = None
    subject: str | None = None
    attribute: str | None = None
    outcome: Name | None = None
    confidence: Share | None = None
    salience: Share | None = None
    trust: Literal["user", "agent", "repo", "tool"] | None = None
    origin: str | None = None
    key: Name | None = None
    pinned: bool | None = None
    valid_from: Name | None = None
    valid_to: Name | None = None
    created: Name | None = None
    data: dict[str, Any] | None = None

    def values(self) -> dict[str, Any]:
        """What was named, as the engine takes it."""
        named = {name: getattr(self, name) for name in Fields.model_fields if getattr(self, name) is not None}
        return {
            name: parse_time(value, name) if name in ("valid_from", "valid_to", "created") else value
            for name, value in named.items()
        }


class NewRecord(Fields):
    kind: Name
    text: str
    own: bool = Field(default=False, description="Into the own store of whoever runs the service.")


class NewRecords(Body):
    records: list[NewRecord] = Field(min_length=1, max_length=MOST)


class Edit(Fields):
    text: str | None = None
    expect: int | None = Field(
        default=None, ge=1, le=LARGEST, description="Fail where somebody changed it since this version."
    )


class Outcome(Body):
    outcome: Name
    result: str = ""


class Pin(Body):
    pinned: bool = True


class Promote(Body):
    kind: Name | None = Field(default=None, description="What its words become; a record as it is without one.")


class Ids(Body):
    ids: Names = Field(min_length=1)


class Event(Body):
    """Something that happened, after which a context is computed again."""

    text: str
    data: dict[str, Any] = {}


class Search(Body):
    query: str
    kinds: Names = []
    limit: int = Field(default=10, ge=1, le=1000)
    filters: Wanted = Wanted()


class CodeSearch(Body):
    query: str
    limit: int = Field(default=10, ge=1, le=1000)


class CodeMap(Body):
    query: str | None = None
    budget: Budget | None = None


class Text(Body):
    text: str


class Check(Text):
    dry_run: bool = False


class Compress(Text):
    max_tokens: Budget | None = None
    query: str = ""


class Propose(Text):
    add: bool = False
    only: Names = []


class Relation(Body):
    source: Name
    name: Name
    target: Name
    weight: Share = 1.0
    create: bool = False


class NewLink(Body):
    src: Name
    name: Name
    dst: Name
    weight: Share = 1.0


class NewTask(Body):
    name: str = Field(min_length=1)
    objective: str = ""
    description: str | None = None
    acceptance_criteria: list[str] | None = None
    test_criteria: list[str] | None = None
    type: Name | None = None
    complexity: Name | None = None
    estimated_time: Name | float | None = None
    files: list[Given] | None = None
    steps: list[Given] | None = None
    depends_on: Names | None = None
    parent: Name | None = None
    key: Name | None = None
    tags: Names | None = None

    def values(self) -> dict[str, Any]:
        return self.model_dump(exclude={"name", "objective"}, exclude_none=True)


class Reason(Body):
    reason: str = Field(min_length=1)


class Ending(Body):
    """How a task ends well: a result and an outcome, or a handoff, which says both."""

    result: str = ""
    outcome: Name | None = None
    handoff: str | dict[str, Any] | None = None

    def values(self) -> dict[str, Any]:
        if self.handoff is None:
            return {"result": self.result, "outcome": self.outcome or "success"}
        if self.result or self.outcome:
            raise InputError("A handoff says itself what came of the task: give either that, or a result and an outcome.")
        return {"handoff": self.handoff}


class Depend(Body):
    on: Names = Field(min_length=1)


class Handoff(Body):
    task: Name
    handoff: str | dict[str, Any]
    again: bool = False


class HandoffText(Body):
    handoff: str | dict[str, Any]
    strict: bool = False


class Goal(Body):
    goal: str = Field(min_length=1)
    name: str = ""


class Popped(Body):
    result: str = ""
    outcome: Literal["success", "partial", "failure"] = "success"


class Compile(Body):
    task: Name | None = None
    session: Name | None = None
    budget: Budget | None = None


class Prepare(Body):
    task: Name
    budget: Budget | None = None
    profile: Name | None = None


class AgentEnding(Ending):
    task: Name


class AgentReason(Reason):
    task: Name


class Whose(Body):
    agent: Name | None = None
    task: Name | None = None


class Said(Body):
    """One message of a conversation, or what a tool answered."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    id: str = ""
    tool: str = ""
    input: Any = None
    failed: bool = False


class Conversation(Body):
    said: list[Said] = Field(min_length=1, max_length=MOST)


class Apply(Body):
    apply: bool = False


class Refresh(Body):
    full: bool = Field(default=False, description="Build the index anew.")
