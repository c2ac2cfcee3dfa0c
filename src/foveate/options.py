"""Options that several calls share, each declared once.

The library reads these classes as types (`**options: Unpack[ContextOptions]`). The command line, the HTTP service and the
reference read the same declarations, with the help text in `Arg`, so that an option has one name and one meaning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Protocol, TypedDict

from foveate.clock import When
from foveate.errors import InputError, near
from foveate.types import Filters, Scope, Trust

Text = str | Mapping[str, Any]
"""A text for one call: itself, or a mapping with `text` and other fields of a record, such as `origin`."""

Extra = Text | Sequence[Text] | Mapping[str, Text | Sequence[Text]]
"""Texts that only this call knows: one, several, or several for each slot."""

Outcome = Literal["success", "partial", "failure", "pending"]
Complexity = Literal["easy", "normal", "complex"]
TaskStatus = Literal["open", "active", "blocked", "completed", "failed"]


@dataclass(frozen=True, slots=True)
class Arg:
    """The presentation of an option in the front ends."""

    help: str
    metavar: str = ""
    minimum: int | None = None
    complete: str = ""
    """Which names the shell completes: `profiles`, `kinds` or `tasks`."""


class HasId(Protocol):
    """A value that stands for its id, such as a `Task`."""

    @property
    def id(self) -> str: ...


class Who(TypedDict, total=False):
    """User, agent, session and task of a call. The engine's own are used for those that are not named."""

    user: Annotated[str | None, Arg("User whose records are visible.", "NAME")]
    agent: Annotated[str | None, Arg("Agent whose records and profile are used.", "NAME")]
    session: Annotated[str | None, Arg("Session, one conversation.", "NAME")]
    task: Annotated[str | HasId | None, Arg("Task by id or key; without a query, it is the question.", "TASK")]


class RequestOptions(TypedDict, total=False):
    """Options of a context, without the names of `Who`."""

    budget: Annotated[int | None, Arg("Maximum tokens the model may receive, framing included.", "TOKENS", minimum=1)]
    profile: Annotated[str | None, Arg("Profile with slots and weights.", "NAME", complete="profiles")]
    complexity: Annotated[Complexity | None, Arg("Complexity of the task; adds a layer to the profile.")]
    frame: Annotated[str | None, Arg("Approach to the question: decision, debug, ...; `none` for no frame.", "NAME")]
    extra: Annotated[Extra | None, Arg("Text that only this call knows, or a file with it; `-` reads stdin. Repeatable.")]
    filters: Filters | None
    without: Annotated[Sequence[str] | None, Arg("Slot to leave out: repo_map, codebase, ... Repeatable.", "SLOT")]
    code_query: Annotated[str | None, Arg("Search the code for this text instead of the query.", "TEXT")]
    overrides: Mapping[str, Any] | None
    counter: Annotated[str | None, Arg("Token counter: o200k, cl100k, anthropic, chars4, bytes.", "NAME")]
    now: When | None


class ContextOptions(Who, RequestOptions, total=False):
    """Options of `Engine.context`."""


class FilterFields(TypedDict, total=False):
    """Arguments of `Filters` that the command line takes."""

    kinds: Annotated[Sequence[str], Arg("Only this kind. Repeatable.", "KIND", complete="kinds")]
    tags: Annotated[Sequence[str], Arg("Only records with one of these tags. Repeatable.", "TAG")]
    since: Annotated[When, Arg("Only records written since then: 2026-11-15, 12h, 7d.", "TIME")]
    until: Annotated[When, Arg("Only records written before then.", "TIME")]
    exclude: Annotated[Sequence[str], Arg("Record to leave out. Repeatable.", "ID")]
    event_types: Annotated[Sequence[str], Arg("Only events of this type. Repeatable.", "TYPE")]
    entity_types: Annotated[Sequence[str], Arg("Only entities of this type. Repeatable.", "TYPE")]


class RecordFields(TypedDict, total=False):
    """Fields of a record that a caller can set."""

    summary: str
    micro: str
    tags: Annotated[Sequence[str], Arg("Word to find it by. Repeatable.", "TAG")]
    subject: Annotated[str | None, Arg("Person or thing that it is about.", "NAME")]
    attribute: Annotated[str | None, Arg("Attribute of the subject: a newer value supersedes it.", "NAME")]
    outcome: Annotated[str | None, Arg("How it turned out: success, partial, failure or pending.", "OUTCOME")]
    confidence: Annotated[float, Arg("How sure its author is.", "0..1")]
    salience: Annotated[float, Arg("How much it matters.", "0..1")]
    trust: Annotated[Trust, Arg("Whose words it is: user, agent, repo, tool or web.", "TRUST")]
    key: Annotated[str | None, Arg("Name of your own, unique in the project; adding it again changes nothing.", "NAME")]
    origin: Annotated[str | None, Arg("Where it comes from: a file, a URL, a tool.", "TEXT")]
    entities: Annotated[Sequence[str], Arg("Name that it is about. Repeatable.", "NAME")]
    paths: Annotated[Sequence[str], Arg("File that it is about. Repeatable.", "PATH")]
    pinned: bool
    valid_from: When | None
    valid_to: When | None
    data: Mapping[str, Any]
    """Fields of the record's kind, such as a decision's `rationale`. An edit keeps the fields that it does not name."""


class RecordColumns(RecordFields, total=False):
    """Fields of a new record, with those that a record from another store may bring along."""

    created: When
    status: str
    uses: int
    wins: int


class NewRecordFields(RecordColumns, Who, total=False):
    """Options of `Engine.add`."""


class TaskFile(TypedDict, total=False):
    """A file that a task touches. `path:operation` says the same as a text."""

    path: str
    operation: Literal["create", "modify", "delete", "read"]


class TaskStep(TypedDict, total=False):
    """One step of a task: a text, with code or a command if there is one."""

    text: str
    code: str
    command: str


class TaskFields(TypedDict, total=False):
    """Fields of a task."""

    objective: Annotated[str, Arg("What the task should achieve; defaults to its name.", "TEXT")]
    description: Annotated[str, Arg("Anything else that is useful to know.", "TEXT")]
    depends_on: Annotated[
        Sequence[str], Arg("Task that must be completed first, or file to read first. Repeatable.", "TASK", complete="tasks")
    ]
    parent: Annotated[str | HasId | None, Arg("Task that this one is a part of.", "TASK", complete="tasks")]
    files: Annotated[Sequence[str | TaskFile], Arg("File that the task touches, as PATH[:OPERATION]. Repeatable.", "PATH")]
    steps: Annotated[Sequence[str | TaskStep], Arg("Step of the task. Repeatable, in order.", "TEXT")]
    acceptance_criteria: Annotated[Sequence[str], Arg("Condition under which the task is done. Repeatable.", "TEXT")]
    test_criteria: Annotated[Sequence[str], Arg("How the result is tested. Repeatable.", "TEXT")]
    type: Annotated[str, Arg("Type of work: feature, bugfix, refactor, ...", "TYPE")]
    complexity: Annotated[Complexity, Arg("How much context the task gets.")]
    estimated_time: Annotated[str | float, Arg("How long the task should take, such as 30m or 2h.", "TIME")]
    tags: Annotated[Sequence[str], Arg("Tag. Repeatable.", "TAG")]


CONTEXT_OPTIONS = frozenset(ContextOptions.__annotations__)
WHO = frozenset(Who.__annotations__)
RECORD_FIELDS = frozenset(RecordFields.__annotations__)
RECORD_COLUMNS = frozenset(RecordColumns.__annotations__)
NEW_RECORD_FIELDS = frozenset(NewRecordFields.__annotations__)
TASK_FIELDS = frozenset(TaskFields.__annotations__)


def refuse_unknown(given: Mapping[str, Any], known: frozenset[str], call: str) -> None:
    """Raise an error that names each unknown option and the nearest known one."""
    problems = [f"{call} has no option {name!r}.{near(name, known)}" for name in given if name not in known]
    if problems:
        raise InputError(problems)


def refuse_text(value: object, name: str) -> None:
    """Raise an error if a list of texts was passed as one text, which would be read letter by letter."""
    if isinstance(value, str):
        raise InputError(f"{name} must be a list of texts, got the text {value!r}. Write [{value!r}].")


def check_text(value: object, name: str) -> None:
    """Raise an error if a value is not a text."""
    if not isinstance(value, str):
        raise InputError(f"{name} must be a text, got {value!r:.80}.")


def check_limit(limit: object) -> None:
    """Raise an error if a limit is not a whole number of at least 1."""
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise InputError(f"limit must be a whole number of at least 1, got {limit!r:.80}.")


def refuse_lists(ids: Sequence[object], call: str) -> None:
    """Raise an error if a call that takes one argument for each id got a list."""
    for id in ids:
        if not isinstance(id, str):
            raise InputError(f"{call} takes ids, one argument each, got {id!r}. Unpack a list: {call}(*ids).")


def scope_of(scope: Scope, who: Mapping[str, Any]) -> Scope:
    """Return the scope with the user, agent, session and task that a call names. A task may be a `Task`."""
    named = {name: getattr(who[name], "id", who[name]) for name in WHO if who.get(name) is not None}
    return replace(scope, **named) if named else scope
