"""A conversation in somebody else's loop: what is asked in it, which of its turns stay, how it becomes state.

Comes in: an engine, and what was said, as an adapter reads it from its framework's messages. Goes out: the context for the
next call, and events. Every adapter sits here; none computes or keeps anything in another way.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

from foveate.assembly import Context
from foveate.engine import MAX_QUERY, Engine
from foveate.errors import SourceError, StoreError
from foveate.importing import Report, keep
from foveate.importing.rows import Call, Row, digest, message, used
from foveate.types import Filters

Role = Literal["system", "user", "assistant", "tool"]
Message = TypeVar("Message")

TURNS = 3
"""Turns of the conversation that stay as they are unless told otherwise; what is older is computed from state."""

log = logging.getLogger("foveate.agents")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One message of a conversation, or what a tool answered, whatever framework it comes from."""

    role: Role
    text: str
    id: str = ""
    """The framework's own id, where it is the same next time."""
    tool: str = ""
    """Which tool answered, for role `tool`."""
    input: Any = None
    """What that tool was called with."""
    failed: bool = False


def question(said: Sequence[Said]) -> str:
    """What the conversation is about now: the words of its last user message that has any."""
    return next((part.text for part in reversed(said) if part.role == "user" and part.text.strip()), "")[:MAX_QUERY]


def latest(messages: Sequence[Message], turns: int | None, begins: Callable[[Message], bool]) -> list[Message]:
    """The last turns, whole, so that no tool's call loses its result; None keeps all. `begins`: a user's words."""
    starts = [n for n, each in enumerate(messages) if begins(each)]
    if turns is None or len(starts) <= turns:
        return list(messages)
    return list(messages[starts[-turns] :]) if turns > 0 else []


@dataclass(slots=True, kw_only=True)
class Seat:
    """foveate's seat in a loop: computes what goes in, keeps what came of it. The options are those of `compute`."""

    engine: Engine
    budget: int | None = None
    turns: int | None = TURNS
    session: str | None = None
    agent: str | None = None
    keeps: bool = True
    """Whether what is said becomes state."""
    options: dict[str, Any] = field(default_factory=dict)

    def context(self, said: Sequence[Said], shown: Sequence[Said] = (), *, session: str | None = None) -> Context | None:
        """The context for the next call; None where nothing is asked, or where the store cannot answer.

        `shown` is what the prompt holds anyway: it is not shown twice. A prompt is never lost to a store that is down: that
        is logged, and the call goes on without. What is wrong with the request itself is raised.
        """
        query = question(said)
        if not query.strip():
            return None
        session = session or self.session
        try:
            options = {**self.options, "filters": self._without(shown, session)}
            return self.engine.compute(query, budget=self.budget, agent=self.agent, session=session, **options)
        except (StoreError, SourceError) as error:
            log.warning("no context: %s", error)
            return None

    async def acontext(
        self, said: Sequence[Said], shown: Sequence[Said] = (), *, session: str | None = None
    ) -> Context | None:
        """`context` for async callers, in a thread."""
        return await asyncio.to_thread(self.context, said, shown, session=session)

    def keep(self, said: Sequence[Said], *, session: str | None = None) -> Report:
        """What was said, as events of the session; the same again adds nothing. A failing store is logged, not raised."""
        session = session or self.session or self.engine.scope.session or "main"
        if not self.keeps:
            return Report()
        try:
            return keep(self.engine, self._rows(said, session), "conversation")
        except StoreError as error:
            log.warning("nothing kept: %s", error)
            return Report(skipped=len(said))

    async def akeep(self, said: Sequence[Said], *, session: str | None = None) -> Report:
        """`keep` for async callers, in a thread."""
        return await asyncio.to_thread(self.keep, said, session=session)

    def _rows(self, said: Sequence[Said], session: str) -> Iterator[Row]:
        for number, part in enumerate(said, 1):
            if part.role == "tool":
                call = Call(number, part.tool or "tool", part.input, _key(part, session), session, None)
                yield from used(call, part.text, "failure" if part.failed else "success")
            elif part.role != "system":  # the developer's own instructions are not news
                yield from message(part.role, part.text, key=_key(part, session), session=session, at=None)

    def _without(self, shown: Sequence[Said], session: str | None) -> Filters:
        """The caller's filters, and without the events of what is shown anyway."""
        filters: Filters = self.options.get("filters") or Filters()
        if not shown:
            return filters
        session = session or self.engine.scope.session or "main"
        with self.engine.reader() as reader:
            known = [reader.by_key(_key(part, session)) for part in shown]
        return replace(filters, exclude=(*filters.exclude, *(record.id for record in known if record)))


def _key(part: Said, session: str) -> str:
    """The same for the same words in the same session: frameworks hand the whole conversation over again and again."""
    return f"said:{session}:{part.id or digest(part.role, part.tool, str(part.input or ''), part.text)}"
