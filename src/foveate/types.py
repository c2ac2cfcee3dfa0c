"""The values that flow through the pipeline: frozen, slotted, and free of behaviour that another room owns.

Comes in: nothing of ours. Goes out: the nouns of the design. Times are integer milliseconds since 1970, UTC; scores and
features are 0..1, higher is better; token counts are of rendered text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict

from foveate.clock import When, parse_time
from foveate.errors import InputError, near

Level = Literal["full", "summary", "micro"]
LEVELS: tuple[Level, ...] = ("full", "summary", "micro")
"""The ladder, deepest first."""

Trust = Literal["user", "agent", "repo", "tool", "web"]
TRUST: tuple[Trust, ...] = ("web", "tool", "repo", "agent", "user")
"""Least trusted first."""

Intent = Literal["question", "action", "fix", "explain", "other"]
Reason = Literal[
    "budget", "max_items", "min_score", "duplicate", "superseded", "disputed", "not valid", "excluded", "untrusted"
]


# --- state ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose state this is. An unset level is shared; project, user and agent are walls."""

    project: str
    user: str | None = None
    agent: str | None = None
    session: str | None = None
    task: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One durable thing known, done or to be respected, at three lengths."""

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
    """Which records may be considered at all. Rules are not filtered: they are never lost.

    The values are checked and converted when filters are made: a wrong one must not silently find nothing.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What this call is about. `given` maps a slot's name to texts that the caller supplies."""

    query: str
    scope: Scope
    now: int
    budget: int | None = None
    profile: str = "default"
    agent: str | None = None
    complexity: str | None = None
    frame: str | None = None
    """The frame that the call names; `none` wants none, and None leaves it to the profile."""
    code_query: str | None = None
    """What the code is searched for, where that is not the question itself."""
    task: Record | None = None
    """The task that the call is for: its dependencies, its place in the tree and its words count."""
    counter: str = "o200k"
    filters: Filters = NO_FILTERS
    given: Mapping[str, tuple[Record, ...]] = field(default_factory=dict)
    overrides: Mapping[str, Any] = field(default_factory=dict)


class Meant(NamedTuple):
    """Why another word is looked for: the asked term that it stands for, and what it counts beside other such words."""

    asked: str
    share: float = 1.0
    loose: bool = False
    """It comes along with the asked one or is of its kind, and does not say the same: for talks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """What the request is really about."""

    keywords: tuple[str, ...] = ()
    terms: Mapping[str, float] = field(default_factory=dict)
    """Analysed search terms with their weight in the query."""
    related: Mapping[str, Meant] = field(default_factory=dict)
    """Terms that say the same in other words, or are of the kind that is asked for."""
    paths: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    entities: Mapping[str, str] = field(default_factory=dict)
    """Entities that the request names: id -> name."""
    entity_types: tuple[str, ...] = ()
    """What sorts of things those are, in lower case."""
    intent: Intent = "other"
    event_types: tuple[str, ...] = ()
    """Types of events that matter to someone with this intent, the most telling first."""
    domains: tuple[str, ...] = ()
    task_type: str = ""
    complexity: str = ""
    """How complex the task is, where it says so or can be estimated."""
    because: str = ""
    """Why it is taken to be so complex."""
    frame: str = ""
    frame_because: str = ""
    """How the question is approached, and why so."""
    input: str = ""
    input_because: str = ""
    """`short` or `complex`, where the question itself is so, and why."""
    embedding: tuple[float, ...] | None = None


MAX_FILE_CHARS = 100_000
"""001's limit: a larger file is never shown whole, only its definitions that matter."""


# --- profile -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One part of the prompt: whom to ask, how much room, how it reads."""

    name: str
    source: str
    also: tuple[tuple[str, int], ...] = ()
    """Further sources that may fill it, each with how many candidates it may bring."""
    kinds: tuple[str, ...] = ()
    heading: str = ""
    """Stands as a section of level two; one that brings its own `#` marks stands as it is written."""
    intro: str = ""
    """Text under the heading, above the items; not shown where there are none."""
    empty: str = ""
    """Shown instead of items where there are none; an empty slot without it is not rendered."""
    tokens: int | None = None
    share: float | None = None
    max_items: int | None = None
    min_score: float = 0.0
    limit: int | None = None
    """How many candidates the source may bring; None: as many as the room could hold."""
    level: Level = "summary"
    deepest: Level = "full"
    keep: bool = False
    stable: bool = False
    role: Literal["system", "user"] = "user"
    order: int = 100
    priority: float = 0.5
    """The `type` feature of what this slot holds (004: frame priorities)."""
    pinned: bool = False
    """Ask only for pinned records."""
    text: str = ""
    """What the slot says by itself, for the source `text`: an agent's system prompt."""
    min_trust: Trust = "web"
    """Whose words may stand here: nobody's who is trusted less."""

    @property
    def sources(self) -> tuple[str, ...]:
        """Everyone who may fill it."""
        return (self.source, *(name for name, _ in self.also))


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A way to approach a question: what the model reads about it, and what in a question calls for it."""

    title: str = ""
    description: str = ""
    questions: tuple[str, ...] = ()
    """What to consider, a line each."""
    domains: tuple[str, ...] = ()
    """Domains that count as spoken of while it is chosen (004: the agencies that a frame activates)."""
    triggers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What calls for it: `forms` (how the question begins), `words` (that it holds) and `intents`."""
    order: int = 100
    """Of two that are called for equally, the one with the lower order is chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Slots, weights and totals, as data."""

    name: str
    total: int
    written_for: int
    """The total that its fixed figures belong to: below it, they shrink in proportion."""
    reserve: int = 0
    slots: tuple[Slot, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    half_life: float = 720.0
    """Hours after which the recency feature is one half."""
    fields: Mapping[str, float] = field(default_factory=dict)
    """Weights of the lexical fields."""
    vector_weight: float = 0.2
    related_weight: float = 0.4
    flexible: float = 1.0
    """How much of the room that the shares divide is used; the rest stays free."""
    max_file_chars: int = MAX_FILE_CHARS
    frames: bool = False
    """Whether a frame is chosen for each question, and the room follows the question's length."""
    frame: Frame | None = None
    """The frame that was chosen for the question."""
    layers: Mapping[str, str] = field(default_factory=dict)
    """Which layer set each value: `slots.facts.tokens` -> `chat`."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What one slot wants of a source."""

    slot: Slot
    limit: int


# --- candidates ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Something that could be in the prompt, for one slot, with named features in 0..1."""

    record: Record
    slot: str
    source: str
    overruled_by: str | None = None
    """The record that superseded or disputes it."""
    via: Record | None = None
    """The task that handed it on: the line says so, and `max_items` does not count it."""
    stale: bool = False
    """It points to a file that is gone: the line says so, and it ranks last."""
    conflict: Record | None = None
    """Another that seems to say otherwise: both are shown, each with its date."""
    features: Mapping[str, float] = field(default_factory=dict)
    score: float = 0.0
    counted: Mapping[Level, int] | None = None
    """Tokens by the request's counter, where that is not the store's."""

    @property
    def tokens(self) -> Mapping[Level, int]:
        """Tokens of the rendered line at each level."""
        return self.counted or self.record.tokens or {}


class _OfCandidate:
    """Reads the fields of a candidate that a user of a context asks for."""

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
        """How well it answers the question, 0..1: the part of the score that comes from its words and meaning."""
        return self.candidate.features.get("relevance", 0.0)

    @property
    def record(self) -> Record:
        return self.candidate.record


@dataclass(frozen=True, slots=True)
class Item(_OfCandidate):
    """A candidate that is in the context, at a level."""

    candidate: Candidate = field(repr=False)
    """What it was chosen from, with its source and every feature of its score."""
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
    needs_score: float = 0.0


# --- budget and result ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What one slot may spend. `own` is its room by the profile; the difference was lent to others, or borrowed."""

    slot: str
    own: int
    granted: int
    used: int = 0

    @property
    def borrowed(self) -> int:
        return max(0, self.granted - self.own)

    @property
    def lent(self) -> int:
        return max(0, self.own - self.granted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What each slot was granted and what it used. `used` counts the rendered messages, framing included."""

    total: int
    reserve: int
    used: int = 0
    framing: int = 0
    grants: tuple[Grant, ...] = ()

    @property
    def ceiling(self) -> int:
        return self.total - self.reserve


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A slot filled: what the model reads under one heading."""

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
