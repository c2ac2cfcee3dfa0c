"""The core types: immutable values that every folder uses.

Times are integer milliseconds since 1970, UTC. Scores and features are between 0 and 1; higher is better. Token counts are
those of the rendered text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict

from foveate.clock import When, parse_time
from foveate.errors import InputError, near

Level = Literal["full", "passage", "summary", "micro"]
LEVELS: tuple[Level, ...] = ("full", "passage", "summary", "micro")
"""Longest first. A passage is cut from the full text for one request; the others are stored."""

STORED_LEVELS: tuple[Level, ...] = ("full", "summary", "micro")

Passage = tuple[tuple[int, int], ...]
"""Positions in a text: the parts that a passage consists of, in order."""

Fill = Literal["none", "related", "all"]
FILL_MODES: tuple[Fill, ...] = ("none", "related", "all")

Trust = Literal["user", "agent", "repo", "tool", "web"]
TRUST: tuple[Trust, ...] = ("web", "tool", "repo", "agent", "user")
"""Least trusted first."""

Intent = Literal["question", "action", "fix", "explain", "other"]
Reason = Literal[
    "budget", "max_items", "min_relevance", "duplicate", "superseded", "disputed", "not valid", "excluded", "untrusted"
]


# --- state ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scope:
    """The owner of records. A level that is not set is shared. Projects, users and agents are isolated from each other."""

    project: str
    user: str | None = None
    agent: str | None = None
    session: str | None = None
    task: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Something known, done or to be respected, in three lengths: text, summary and micro."""

    id: str
    kind: str
    scope: Scope
    text: str
    summary: str
    micro: str
    tags: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    subject: str | None = None
    attribute: str | None = None
    status: str = "active"
    outcome: str | None = None
    salience: float = 0.5
    confidence: float = 1.0
    uses: int = 0
    wins: int = 0
    trust: Trust = "user"
    pinned: bool = False
    origin: str | None = None
    key: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    created: int = 0
    updated: int = 0
    valid_from: int = 0
    valid_to: int | None = None
    hash: str = ""
    version: int = 1
    sketch: bytes = b""
    tokens: Mapping[Level, int] | None = None
    """Tokens of the rendered line at each level, by the store's counter; None where they must be counted."""
    stage: str = field(default="", compare=False)
    """Lifecycle stage, such as `core` or `archived`. It depends on the time, so only what the engine returns has one."""


@dataclass(frozen=True, slots=True)
class Link:
    """A named, weighted edge between two records."""

    src: str
    name: str
    dst: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Change:
    """One step in the history of a record: what the record was before, or None if the step created it."""

    id: str
    version: int
    change: str
    at: int
    verb: str
    before: Record | None


# --- request and signals -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Conditions on the records of a context or a search. Rules are not filtered, so that none is lost.

    Values are checked and converted when filters are made, because a wrong one would silently find nothing.
    """

    since: int | None = None
    until: int | None = None
    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    min_trust: Trust = "web"
    event_types: tuple[str, ...] = ()
    """Only events of these types; records of other kinds are not touched."""
    entity_types: tuple[str, ...] = ()
    """Only entities of these types; records of other kinds are not touched."""

    def __init__(
        self,
        *,
        since: When | None = None,
        until: When | None = None,
        kinds: Sequence[str] = (),
        tags: Sequence[str] = (),
        exclude: Sequence[str] = (),
        min_trust: Trust = "web",
        event_types: Sequence[str] = (),
        entity_types: Sequence[str] = (),
    ) -> None:
        names = {"kinds": kinds, "tags": tags, "exclude": exclude, "event_types": event_types, "entity_types": entity_types}
        for name, values in names.items():
            object.__setattr__(self, name, _name_tuple(name, values))
        for name, time in (("since", since), ("until", until)):
            object.__setattr__(self, name, None if time is None else parse_time(time, name))
        if min_trust not in TRUST:
            raise InputError(f"min_trust must be one of {', '.join(TRUST)}, got {min_trust!r}.{near(str(min_trust), TRUST)}")
        object.__setattr__(self, "min_trust", min_trust)


def _name_tuple(name: str, values: Sequence[str]) -> tuple[str, ...]:
    if not isinstance(values, tuple | list) or not all(isinstance(value, str) and value for value in values):
        advice = f" Write [{values!r}]." if isinstance(values, str) else ""
        raise InputError(f"{name} must be a list of names, got {values!r}.{advice}")
    return tuple(values)


NO_FILTERS = Filters()

CONTEXT_PREFIX = "ctx_"
"""Ids of contexts begin with it."""

LAST = "last"
"""Names the latest context wherever the id of a context is expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The checked options of one call."""

    query: str
    scope: Scope
    now: int
    budget: int | None = None
    profile: str = "default"
    agent: str | None = None
    complexity: str | None = None
    frame: str | None = None
    """The frame that the call names; `none` switches frames off, and None leaves the choice to the profile."""
    code_query: str | None = None
    """Text for the code search, if it differs from the query."""
    task: Record | None = None
    """The task of the call, with its dependencies and its place in the tree."""
    counter: str = "o200k"
    filters: Filters = NO_FILTERS
    extra: Mapping[str, tuple[Record, ...]] = field(default_factory=dict)
    """Texts that the caller passed, as records, by the slot that shows them."""
    overrides: Mapping[str, Any] = field(default_factory=dict)


class ExpansionTerm(NamedTuple):
    """A term that a query does not contain, the query term that it stands for, and its weight relative to that term."""

    query_term: str
    weight: float = 1.0
    is_association: bool = False
    """Whether it is an association or a hyponym of the query term. If not, it is a synonym."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """The subject of a request, extracted from its text."""

    keywords: tuple[str, ...] = ()
    terms: Mapping[str, float] = field(default_factory=dict)
    """Analysed search terms with their weight in the query."""
    expansions: Mapping[str, ExpansionTerm] = field(default_factory=dict)
    """Synonyms, associations and hyponyms of query terms, by term."""
    paths: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    entities: Mapping[str, str] = field(default_factory=dict)
    """Entities that the request names: id -> name."""
    entity_types: tuple[str, ...] = ()
    """Types of those entities, in lower case."""
    follows: tuple[str, ...] = ()
    """Ids of earlier messages whose terms a follow-up such as "ok, do it" takes; of the previous receipt in a refresh."""
    intent: Intent = "other"
    event_types: tuple[str, ...] = ()
    """Types of events that matter for this intent, most important first."""
    domains: tuple[str, ...] = ()
    task_type: str = ""
    complexity: str = ""
    """Complexity of the task, as the task says or as estimated."""
    complexity_reason: str = ""
    """Reason for the complexity."""
    frame: str = ""
    frame_reason: str = ""
    """Reason for the frame."""
    input: str = ""
    input_reason: str = ""
    """Reason why the question counts as `short` or `complex`."""
    embedding: tuple[float, ...] | None = None


MAX_FILE_CHARS = 100_000
"""Limit of 001: of a larger file only the relevant definitions are shown."""


TASK_FIELDS = ("objective", "files", "steps", "acceptance_criteria", "test_criteria", "reads")
"""Fields of a task that a slot can show by themselves."""


# --- profile -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A part of the prompt as a profile defines it: sources, size and appearance."""

    name: str
    source: str
    extra_sources: tuple[tuple[str, int], ...] = ()
    """Further sources, each with its maximum number of candidates."""
    kinds: tuple[str, ...] = ()
    heading: str = ""
    """Heading of level two. A heading with its own `#` marks is shown as it is."""
    intro: str = ""
    """Text between the heading and the items; not shown without items."""
    empty_text: str = ""
    """Text that is shown if there are no items. Without it, an empty slot is not rendered."""
    tokens: int | None = None
    share: float | None = None
    max_items: int | None = None
    min_relevance: float = 0.0
    """Records with a lower relevance are not shown, unless `fill` says so."""
    fill: Fill = "none"
    """What the room is filled with below `min_relevance`: nothing; the next best records, if the store probably answers the
    request (`related`); or everything, newest first (`all`)."""
    max_candidates: int | None = None
    """Maximum number of candidates from the source; None for as many as the budget could hold."""
    level: Level = "summary"
    """Level of an item: full, passage, summary or micro. An item that does not fit is shown at a shorter one."""
    max_level: Level = "full"
    """Longest level of an item, used if tokens are left."""
    keep: bool = False
    stable: bool = False
    role: Literal["system", "user"] = "user"
    order: int = 100
    priority: float = 0.5
    """The `type` feature of the candidates of this slot (004: frame priorities)."""
    pinned_only: bool = False
    """Show only pinned records."""
    text: str = ""
    """Text of the source `text`, such as an agent's system prompt."""
    min_trust: Trust = "web"
    """Records with less trust are not shown in this slot."""
    field: str = ""
    """Part of a task or record to show, for the sources `task` and `latest`: `objective`, `files`, `steps`, ..."""
    required: str = ""
    """Error to raise if the slot has nothing to show: what is missing and how to add it."""

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of all sources of this slot."""
        return (self.source, *(name for name, _ in self.extra_sources))


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A way to approach a question: its text in the prompt, and the triggers that select it."""

    title: str = ""
    description: str = ""
    questions: tuple[str, ...] = ()
    """Questions to consider, one line each."""
    domains: tuple[str, ...] = ()
    """Domains that count as mentioned while the frame is selected (004: the agencies that a frame activates)."""
    triggers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Triggers: `forms` (beginnings of a question), `words` (in a question) and `intents`."""
    order: int = 100
    """If two frames are triggered equally, the lower order wins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Slots, weights and token totals of a context, as data."""

    name: str
    total: int
    written_for: int
    """The total for which the profile was written. With a smaller budget, fixed sizes shrink in proportion."""
    reserve: int = 0
    slots: tuple[Slot, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    half_life_hours: float = 720.0
    """Hours after which the recency feature is 0.5."""
    fields: Mapping[str, float] = field(default_factory=dict)
    """Weights of the lexical fields."""
    vector_weight: float = 0.2
    """Share of the vector in the relevance of a hit, if there is an embedder."""
    expansion_weight: float = 0.4
    """Weight of an expansion term relative to the query term that it stands for; 0 switches expansion off."""
    flexible_share: float = 1.0
    """Share of the tokens between slots with a `share` that is used; the rest stays free."""
    max_file_chars: int = MAX_FILE_CHARS
    choose_frame: bool = False
    """Choose a frame for each question, and size the slots by the length of the question."""
    frame: Frame | None = None
    """The frame that was chosen for the question."""
    layers: Mapping[str, str] = field(default_factory=dict)
    """The layer that set each value: `slots.facts.tokens` -> `chat`."""


# --- candidates ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A record that could be shown in one slot, with features between 0 and 1."""

    record: Record
    slot: str
    """Name of the slot."""
    source: str
    """Name of the source that found it."""
    overruled_by: str | None = None
    """The record that superseded or disputes it."""
    inherited_from: Record | None = None
    """The completed task that passed it on. Its line names the task, and `max_items` does not count it."""
    stale: bool = False
    """It refers to a file that no longer exists. Its line says so, and it ranks last."""
    conflict: Record | None = None
    """A record that seems to contradict it. Both are shown, each with its date."""
    features: Mapping[str, float] = field(default_factory=dict)
    score: float = 0.0
    passage: Passage = ()
    """The parts of its text that answer the request; empty if no passage was cut."""
    token_counts: Mapping[Level, int] | None = None
    """Tokens by the counter of the request, if they differ from those that the store has."""

    @property
    def tokens(self) -> Mapping[Level, int]:
        """Tokens of the rendered line at each level."""
        return self.token_counts or self.record.tokens or {}


class _OfCandidate:
    """Properties that items and left-out candidates share."""

    __slots__ = ()
    candidate: Candidate

    @property
    def id(self) -> str:
        return self.candidate.record.id

    @property
    def kind(self) -> str:
        return self.candidate.record.kind

    @property
    def section(self) -> str:
        """Name of the section, or slot, that it is for."""
        return self.candidate.slot

    @property
    def score(self) -> float:
        return self.candidate.score

    @property
    def relevance(self) -> float:
        """The part of the score that comes from words and meaning, 0..1."""
        return self.candidate.features.get("relevance", 0.0)

    @property
    def record(self) -> Record:
        return self.candidate.record


@dataclass(frozen=True, slots=True)
class Item(_OfCandidate):
    """A candidate that is in the context, at a level."""

    candidate: Candidate = field(repr=False)
    """The candidate, with its source and the features of its score."""
    level: Level
    tokens: int
    rank: int
    text: str = ""
    """The lines that the model reads."""


@dataclass(frozen=True, slots=True)
class LeftOut(_OfCandidate):
    """A candidate that is not in the context, the reason, and what it would have needed."""

    candidate: Candidate = field(repr=False)
    reason: Reason
    detail: str = ""
    """Id of the record that it repeats or that replaced it, its rank, ..."""
    needs_tokens: int = 0
    needs_relevance: float = 0.0


# --- budget and result ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotBudget:
    """The tokens of one slot. `base` is its size by the profile; unused tokens of other slots can be granted on top."""

    name: str
    base: int
    granted: int
    used: int = 0
    items: int = 0
    """Number of items that the slot shows."""

    @property
    def borrowed(self) -> int:
        """Tokens taken from other slots."""
        return max(0, self.granted - self.base)

    @property
    def lent(self) -> int:
        """Tokens given to other slots."""
        return max(0, self.base - self.granted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The token budget of a context and of its slots. `used` counts the rendered messages, framing included."""

    total: int
    reserve: int
    used: int = 0
    framing: int = 0
    slots: tuple[SlotBudget, ...] = ()

    @property
    def ceiling(self) -> int:
        """The largest number of tokens that the messages may have."""
        return self.total - self.reserve

    @property
    def free(self) -> int:
        """Tokens that nothing used."""
        return self.ceiling - self.used


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A filled slot: the text that the model reads under one heading."""

    name: str
    content: str
    source: str
    role: Literal["system", "user"] = "user"
    stable: bool = False
    items: tuple[Item, ...] = ()


@dataclass(frozen=True, slots=True)
class Prefix:
    """The stable beginning of a prompt, which a provider's cache can keep: its hash and its size."""

    hash: str
    chars: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Delta:
    """The changes from an earlier context to a later one. False if there are none."""

    added: tuple[Item, ...]
    changed: tuple[Item, ...]
    withdrawn: tuple[Item, ...]
    text: str = ""
    """The changes as a block to append to a conversation that holds the earlier context."""

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.withdrawn)


# --- messages ------------------------------------------------------------------------------------------------------


class Message(TypedDict):
    """One message of a conversation, in the shape that OpenAI and most frameworks share."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    name: NotRequired[str]
    id: NotRequired[str]
    at: NotRequired[When]


class AnthropicBlock(TypedDict):
    """A block of a system prompt. `cache_control` marks the end of the part that a cache can keep."""

    type: Literal["text"]
    text: str
    cache_control: NotRequired[dict[str, str]]


class AnthropicPrompt(TypedDict):
    """Arguments for Anthropic's `messages.create`."""

    system: list[AnthropicBlock]
    messages: list[Message]
