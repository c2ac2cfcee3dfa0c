"""A context strategy for each agent (spec 002).

A strategy uses a profile, which has the system prompt and the slots: `engine.context(profile="developer")` returns the same
context. A strategy adds code only for what a profile cannot express: computed sections, a question, or its own messages. All
of it goes through `engine.context`, so that budget, receipts, `why` and replay apply.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar, Unpack

from foveate.engine import Engine
from foveate.errors import BudgetError, InputError
from foveate.options import ContextOptions
from foveate.pipeline.assembly import join_sections
from foveate.pipeline.sources import parts
from foveate.pipeline.sources.tasks import newest_record
from foveate.receipts.context import Context
from foveate.records.render import title_of
from foveate.tasks.task import current, lookup
from foveate.text import tokens
from foveate.types import Message, Record, Scope, Section

Answer = TypeVar("Answer", covariant=True)

PART_KIND = "section"
"""Kind of the parts of tasks and records, and of a strategy's sections."""

log = logging.getLogger("foveate.agents")


@dataclass(frozen=True, slots=True)
class State:
    """The store as an agent sees it in a session and a task. Strategies read it."""

    engine: Engine
    scope: Scope

    @property
    def task(self) -> Record | None:
        """The task that the scope names, else the top of the agent's own stack, else of the session's."""
        with self.engine.store.data.reader(self.scope) as reader:
            if self.scope.task is not None:
                named = lookup(reader, self.scope.task)
                return named if named is not None and named.kind == "task" else None
            task = current(reader)
        if task is not None:
            return task
        with self.engine.store.data.reader(replace(self.scope, agent=None)) as reader:
            return current(reader)

    def newest(self, kind: str) -> Record | None:
        """Return the newest active record of a kind."""
        with self.engine.store.data.reader(self.scope) as reader:
            return newest_record(reader, kind)


@dataclass(frozen=True, slots=True)
class CompiledContext:
    """A context as a strategy compiled it, and the messages that replace it if the strategy writes its own."""

    context: Context
    messages: tuple[Message, ...] = ()

    @property
    def system_prompt(self) -> str:
        """The system message: the agent's prompt, then identity and rules."""
        return join_sections(section for section in self.context.sections if section.role == "system")

    @property
    def sections(self) -> tuple[Section, ...]:
        """The sections of the user message; `source` says where each comes from."""
        return tuple(section for section in self.context.sections if section.role == "user")

    @property
    def warnings(self) -> tuple[str, ...]:
        """The context's warnings, and the sections that the budget shortened."""
        short = {item.section for item in self.context.items if item.kind == PART_KIND and item.level != "full"}
        short |= {lost.section for lost in self.context.left_out if lost.kind == PART_KIND}
        found = (f"Section {name!r} is not shown in full; raise the budget to see all of it." for name in sorted(short))
        return (*self.context.warnings, *found)


class ContextStrategy:
    """Compile the context of an agent from its profile.

    `ContextStrategy("writer")` uses the profile `writer` as it is. Override `sections` to add computed text, and `messages`
    for an agent that writes every message itself.
    """

    agent: ClassVar[str] = ""
    profile: ClassVar[str] = ""
    """Name of the profile if it is not the agent's."""

    def __init__(self, agent: str = "") -> None:
        self.name = agent or self.agent
        if not self.name:
            raise InputError(f"{type(self).__name__} has no agent. Set its class attribute `agent`.")

    # --- to override -------------------------------------------------------------------------------------------

    def sections(self, state: State) -> Iterable[Section]:
        """Return more sections, each for the slot of its name; several of one name are its items, in order.

        Raise an `InputError` if the agent cannot work without something, and say how to add it.
        """
        return ()

    def question(self, state: State) -> str | None:
        """Return what the context is for if there is no task: the title of the latest issue."""
        return None if state.task is not None else _title_of_issue(state)

    def messages(self, context: Context) -> Sequence[Message]:
        """Return messages that replace those of the context; none by default. The same budget applies to them."""
        return ()

    # --- compiling ---------------------------------------------------------------------------------------------

    def compile(self, engine: Engine, **options: Unpack[ContextOptions]) -> CompiledContext:
        """Return the context, computed from the engine's state alone."""
        session, named = options.get("session"), options.get("task")
        task = named if named is None or isinstance(named, str) else named.id
        state = self.state(engine, session=session, task=task)
        subject = state.task
        options["agent"], options["profile"] = self.name, self.profile or self.name
        options["task"] = subject.id if subject else task
        options["extra"] = self.extra_texts(engine, session=session, task=task)
        context = engine.context(self.question(state), **options)
        compiled = CompiledContext(context, self._own_messages(context))
        self._log(compiled)
        return compiled

    def to_messages(self, compiled: CompiledContext) -> list[Message]:
        """Return the strategy's own messages, else those of the context."""
        return list(compiled.messages) or compiled.context.messages()

    def state(self, engine: Engine, *, session: str | None = None, task: str | None = None) -> State:
        """Return the engine's state as this agent sees it."""
        mine = engine.scope
        scope = replace(mine, agent=self.name, session=session or mine.session, task=task or mine.task)
        return State(engine, scope)

    def extra_texts(
        self, engine: Engine, *, session: str | None = None, task: str | None = None
    ) -> dict[str, list[dict[str, str]]]:
        """Return the sections as extra texts by slot. A replay of a context with such sections needs them again."""
        found: dict[str, list[dict[str, str]]] = {}
        for section in self.sections(self.state(engine, session=session, task=task)):
            if section.content.strip():
                part = {"kind": PART_KIND, "text": section.content, "origin": section.source}
                found.setdefault(section.name, []).append(part)
        return found

    # --- helpers -----------------------------------------------------------------------------------------------

    def current_task(self, state: State) -> Record | None:
        """Return the current task, or None."""
        return state.task

    def issue_summary(self, state: State) -> str | None:
        """Return the title of the issue, a blank line and its description, or None without an issue."""
        issue = state.newest("issue")
        return None if issue is None else parts.titled_text(issue)

    def _own_messages(self, context: Context) -> tuple[Message, ...]:
        own = tuple(self.messages(context))
        used, ceiling = tokens.count_messages(own, context.counter), context.budget.ceiling
        if own and used > ceiling:
            raise BudgetError(
                f"The messages of {self.name!r} have {used} tokens, more than the {ceiling} of the budget. Shorten them, or "
                "raise the budget.",
                short=used - ceiling,
            )
        return own

    def _log(self, compiled: CompiledContext) -> None:
        """Log one line with names and figures, never the content."""
        facts = {
            "agent": self.name,
            "sections": [section.name for section in compiled.sections],
            "system_prompt_length": len(compiled.system_prompt),
            "tokens": compiled.context.tokens,
            "context": compiled.context.id,
        }
        pairs = (f"{name}={','.join(value) if isinstance(value, list) else value}" for name, value in facts.items())
        log.debug("compiled %s", " ".join(pairs), extra=facts)


def _title_of_issue(state: State) -> str | None:
    issue = state.newest("issue")
    return None if issue is None else title_of(issue) or issue.text


class Driver(Protocol[Answer]):
    """Calls a model with messages and, if the answer has a form, its schema."""

    def __call__(self, messages: list[Message], schema: Any = None, /) -> Answer: ...


@dataclass(slots=True)
class Agent(Generic[Answer]):
    """An agent owns its strategy, compiles a new context for each call, and passes the messages to its driver."""

    context_strategy: ClassVar[type[ContextStrategy]]

    driver: Driver[Answer]
    strategy: ContextStrategy = field(init=False)

    def __post_init__(self) -> None:
        self.strategy = self.context_strategy()

    def run(self, engine: Engine, schema: Any = None, **options: Unpack[ContextOptions]) -> Answer:
        """Compile, convert and call the driver. Await the answer of an async driver."""
        compiled = self.strategy.compile(engine, **options)
        return self.driver(self.strategy.to_messages(compiled), schema)


# --- built-in agents -----------------------------------------------------------------------------------------------


class ArchitectContextStrategy(ContextStrategy):
    """Strategy of spec 002: the issue's title and description, and the design if there is one."""

    agent = "architect"

    def question(self, state: State) -> str | None:
        """Return the title of the issue, also if there is a current task."""
        return _title_of_issue(state) or "the issue"


class _TaskStrategy(ContextStrategy):
    """A strategy that needs a task. Its profile has the error for a missing one."""

    def question(self, state: State) -> str | None:
        return None if state.task is not None else "the current task"


class DeveloperContextStrategy(_TaskStrategy):
    """Strategy of spec 002: the current task, its file operations and its steps."""

    agent = "developer"


class ReviewerContextStrategy(_TaskStrategy):
    """Strategy of spec 002: the latest change file by file, the task's description and its acceptance criteria."""

    agent = "reviewer"


class Architect(Agent[Answer]):
    context_strategy = ArchitectContextStrategy


class Developer(Agent[Answer]):
    context_strategy = DeveloperContextStrategy


class Reviewer(Agent[Answer]):
    context_strategy = ReviewerContextStrategy


BUILTIN_STRATEGIES: tuple[type[ContextStrategy], ...] = (
    ArchitectContextStrategy,
    DeveloperContextStrategy,
    ReviewerContextStrategy,
)


def strategy_of(agent: str) -> ContextStrategy:
    """Return the built-in strategy of an agent, else one that uses the profile of that name."""
    return next((strategy() for strategy in BUILTIN_STRATEGIES if strategy.agent == agent), None) or ContextStrategy(agent)
