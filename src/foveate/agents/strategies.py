"""A strategy for each agent: what its context is compiled from (002).

Comes in: an engine, whose store is the state. Goes out: a `CompiledContext`, and messages for whatever calls the model. A
strategy is a profile, which holds the system prompt and the slots, and, where data cannot say it, a function from state to
sections. Those are handed to `engine.context` as given texts of the slots of their names: the hard budget, receipts, `why`
and replay hold for them as for everything else. Nothing here selects, renders or counts by itself.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from foveate.engine import Engine
from foveate.errors import BudgetError, InputError
from foveate.pipeline.assembly import joined
from foveate.pipeline.context import Context
from foveate.records.render import title_of
from foveate.tasks.task import current, lookup
from foveate.text import tokens
from foveate.types import NO_FILTERS, Message, Record, Scope, Section

Answer = TypeVar("Answer", covariant=True)

KIND = "section"
MOMENT = 20
"""More records of a kind than somebody adds in one millisecond."""

log = logging.getLogger("foveate.agents")


@dataclass(frozen=True, slots=True)
class State:
    """What a strategy reads: the store, as one agent sees it in one session and task."""

    engine: Engine
    scope: Scope

    @property
    def task(self) -> Record | None:
        """The task that the scope names, else the top of the agent's own stack, else of the session's."""
        with self.engine.store.data.reader(self.scope) as reader:
            named = lookup(reader, self.scope.task)
            if self.scope.task is not None:
                return named if named is not None and named.kind == "task" else None
            found = current(reader)
        if found is not None:
            return found
        with self.engine.store.data.reader(replace(self.scope, agent=None)) as reader:
            return current(reader)

    def latest(self, kind: str) -> Record | None:
        """The newest record of a kind that is not retired."""
        with self.engine.store.data.reader(self.scope) as reader:
            found = reader.recent([kind], MOMENT, NO_FILTERS)
        return max(found, key=lambda record: (record.created, record.id), default=None)  # ids rise within a millisecond


@dataclass(frozen=True, slots=True)
class CompiledContext:
    """What a strategy gives: a context, and the messages that replace it where a strategy writes its own."""

    context: Context
    made: tuple[Section, ...] = ()
    """The sections as the strategy's function gave them, before the budget."""
    messages: tuple[Message, ...] = ()

    @property
    def system_prompt(self) -> str:
        """What goes into the system message: the agent's prompt, then identity and rules. Empty where there is none."""
        return joined(section for section in self.context.sections if section.role == "system")

    @property
    def sections(self) -> tuple[Section, ...]:
        """What goes into the user message; `source` says where each came from."""
        sources = {section.name: section.source for section in self.made}
        shown = (section for section in self.context.sections if section.role == "user")
        return tuple(replace(section, source=sources.get(section.name, section.source)) for section in shown)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The context's, and which of the strategy's sections the budget shortened or left out."""
        short = {item.section for item in self.context.items if item.candidate.source == "given" and item.level != "full"}
        short |= {lost.section for lost in self.context.left_out if lost.candidate.source == "given"}
        found = tuple(f"Section {name!r} is not shown in full; raise the budget to see all of it." for name in sorted(short))
        return self.context.warnings + found


class ContextStrategy:
    """How the context of one agent is compiled. Name the agent; a profile of that name holds the rest.

    `ContextStrategy("writer")` is a whole strategy where the profile says everything. Override `sections` for what it cannot
    say, and `messages` for an agent that needs every message to be its own.
    """

    agent: ClassVar[str] = ""
    profile: ClassVar[str] = ""
    """Where that is not the agent's name."""

    def __init__(self, agent: str = "") -> None:
        self.name = agent or self.agent
        if not self.name:
            raise InputError(f"{type(self).__name__} names no agent; set its class attribute `agent`.")

    # --- what a strategy may say -------------------------------------------------------------------------------

    def sections(self, state: State) -> Iterable[Section]:
        """Sections from state, each for the slot of its name; several of one name are its items, in order.

        Raise an `InputError` that says what is missing and how to add it, where the agent cannot work without.
        """
        return ()

    def question(self, state: State) -> str | None:
        """What the context is for, where there is no task to say it: the title of the issue."""
        issue = state.latest("issue") if state.task is None else None
        return None if issue is None else title_of(issue) or issue.text

    def messages(self, context: Context) -> Sequence[Message]:
        """Messages that replace those of the context; none by default. They are held to the same budget."""
        return ()

    # --- compiling ---------------------------------------------------------------------------------------------

    def compile(
        self, engine: Engine, *, session: str | None = None, task: str | None = None, **options: Any
    ) -> CompiledContext:
        """The context, from the engine's state alone. Options are those of `engine.context`: `budget`, `now`, ..."""
        state = self.state(engine, session=session, task=task)
        made = tuple(section for section in self.sections(state) if section.content.strip())
        subject = state.task
        context = engine.context(
            self.question(state),
            agent=self.name,
            session=session,
            task=subject.id if subject else task,
            profile=self.profile or self.name,
            extra=given(made),
            **options,
        )
        compiled = CompiledContext(context, made, self._own_messages(context))
        self._log(compiled)
        return compiled

    def to_messages(self, compiled: CompiledContext) -> list[Message]:
        """The strategy's own messages as they are; else a system message, where there is a system prompt, and one user
        message of all sections, each under its heading, a blank line between."""
        return list(compiled.messages) or compiled.context.messages()

    def state(self, engine: Engine, *, session: str | None = None, task: str | None = None) -> State:
        """The engine's state, as this agent sees it."""
        mine = engine.scope
        scope = replace(mine, agent=self.name, session=session or mine.session, task=task or mine.task)
        return State(engine, scope)

    def given(self, engine: Engine, *, session: str | None = None, task: str | None = None) -> Given:
        """What it would hand in now: a replay of one of its contexts needs it again."""
        return given(self.sections(self.state(engine, session=session, task=task)))

    # --- helpers -----------------------------------------------------------------------------------------------

    def current_task(self, state: State) -> Record | None:
        """The current task; None where there is none."""
        return state.task

    def issue_summary(self, state: State) -> str | None:
        """The title of the issue, a blank line, its description; None where there is no issue."""
        issue = state.latest("issue")
        return None if issue is None else titled(issue)

    # --- steps -------------------------------------------------------------------------------------------------

    def _own_messages(self, context: Context) -> tuple[Message, ...]:
        own = tuple(self.messages(context))
        used, ceiling = tokens.count_messages(own, context.counter), context.budget.ceiling
        if own and used > ceiling:
            raise BudgetError(
                f"The messages of {self.name!r} take {used} tokens, and {ceiling} may be used. Shorten them, or raise the "
                "budget.",
                short=used - ceiling,
            )
        return own

    def _log(self, compiled: CompiledContext) -> None:
        """One line for each compilation: figures and names, never the content."""
        facts = {
            "agent": self.name,
            "sections": [section.name for section in compiled.sections],
            "system_prompt_length": len(compiled.system_prompt),
            "tokens": compiled.context.tokens,
            "context": compiled.context.id,
        }
        said = " ".join(f"{name}={','.join(value) if isinstance(value, list) else value}" for name, value in facts.items())
        log.debug("compiled %s", said, extra=facts)


Given = dict[str, list[dict[str, str]]]


def given(sections: Iterable[Section]) -> Given:
    """Sections as texts that are handed in, by slot."""
    out: Given = {}
    for section in sections:
        if section.content.strip():
            part = {"kind": KIND, "text": section.content, "origin": section.source}
            out.setdefault(section.name, []).append(part)
    return out


def titled(record: Record) -> str:
    """A record's title, a blank line, its text."""
    return "\n\n".join(part for part in dict.fromkeys((title_of(record), record.text.strip())) if part)


class Driver(Protocol[Answer]):
    """Whatever calls a model: it gets the messages and, where an answer has a form, the schema of it."""

    def __call__(self, messages: list[Message], schema: Any = None, /) -> Answer: ...


@dataclass(slots=True)
class Agent(Generic[Answer]):
    """An agent: it owns its strategy, compiles its context afresh for each call, and hands the messages to its driver."""

    context_strategy: ClassVar[type[ContextStrategy]]

    driver: Driver[Answer]
    strategy: ContextStrategy = field(init=False)

    def __post_init__(self) -> None:
        self.strategy = self.context_strategy()

    def run(self, engine: Engine, schema: Any = None, **options: Any) -> Answer:
        """Compile, convert, call. Of an async driver, await the answer. Options are those of `compile`."""
        compiled = self.strategy.compile(engine, **options)
        return self.driver(self.strategy.to_messages(compiled), schema)
