"""A conversation in somebody else's loop: what is asked in it, which of its turns stay, how it becomes state.

Comes in: an engine, and what was said, as an adapter reads it from its framework's messages. Goes out: the context for the
next call, and events. Every adapter sits here; none computes or keeps anything in another way.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, takewhile
from typing import Any, Literal, TypeVar

from foveate.engine import Engine
from foveate.errors import BudgetError, SourceError, StoreError
from foveate.integrations.importers import Report, keep
from foveate.integrations.importers.rows import BEGIN, END, Call, Row, digest, message, used
from foveate.pipeline.context import Context
from foveate.pipeline.request import MAX_QUERY
from foveate.store.protocol import Reader
from foveate.text import tokens
from foveate.types import Filters

Role = Literal["system", "user", "assistant", "tool"]
Message = TypeVar("Message")

TURNS = 3
"""Turns of the conversation that stay as they are unless told otherwise; what is older is computed from state."""

NOTHING_ASKED = "What holds here"
"""The question of whoever says nothing in words, such as with a picture: rules hold all the same."""

SURE = 4
"""Messages in a row that are known, before which all others are taken to be known too."""

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
    order: str = ""
    """Its place in the conversation, for an adapter that hands the history back: kept beside the words."""
    parts: Sequence[tuple[int, Mapping[str, Any]]] = ()
    """Pictures and files among its words, each with its place: kept as they are, for such an adapter only."""


def question(said: Sequence[Said]) -> str:
    """What the conversation is about now: the words of its last user message that has any."""
    return next((part.text for part in reversed(said) if part.role == "user" and part.text.strip()), "")[:MAX_QUERY]


def latest(messages: Sequence[Message], turns: int | None, begins: Callable[[Message], bool]) -> list[Message]:
    """The last turns, whole, so that no tool's call loses its result; None keeps all. `begins`: a user's words."""
    starts = [n for n, each in enumerate(messages) if begins(each)]
    if turns is None or len(starts) <= turns:
        return list(messages)
    return list(messages[starts[-turns] :]) if turns > 0 else []


def marked(text: str) -> str:
    """A block of a context that can be told from what people say, where prompts may come back as history."""
    return f"{BEGIN}{text}{END}\n" if text else ""


def is_marked(text: object) -> bool:
    return isinstance(text, str) and text.startswith(BEGIN) and text.rstrip().endswith(END)


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
        query = question(said) or (NOTHING_ASKED if any(part.role == "user" for part in said) else "")
        if not query:
            return None
        session = session or self.session
        try:
            options = {**self.options, "filters": self._without(shown, session)}
            return self.engine.context(query, budget=self.budget, agent=self.agent, session=session, **options)
        except (StoreError, SourceError) as error:
            log.warning("no context: %s", error)
            return None

    async def acontext(
        self, said: Sequence[Said], shown: Sequence[Said] = (), *, session: str | None = None
    ) -> Context | None:
        """`context` for async callers, in a thread."""
        return await asyncio.to_thread(self.context, said, shown, session=session)

    def keep(self, said: Sequence[Said], *, session: str | None = None, new: bool = False) -> Report:
        """What was said, as events of the session; the same again adds nothing. A failing store is logged, not raised.

        `new`: all of it was said just now, also what was said before in the same words.
        """
        session = session or self.session or self.engine.scope.session or "main"
        if not self.keeps:
            return Report()
        try:
            known = self._known(said, session) if new else {}
            before = Counter({words: len(ids) for words, ids in known.items()})
            rows = list(self._rows(said, session, before))
            return keep(self.engine.store.data, iter(rows if new else self._unknown(rows)), "conversation")
        except StoreError as error:
            log.warning("nothing kept: %s", error)
            return Report(skipped=len(said))

    async def akeep(self, said: Sequence[Said], *, session: str | None = None, new: bool = False) -> Report:
        """`keep` for async callers, in a thread where there is something to do."""
        if not self.keeps:
            return Report()
        return await asyncio.to_thread(self.keep, said, session=session, new=new)

    def ready(self, said: Sequence[Said], shown: Sequence[Said], *, session: str | None = None) -> Context | None:
        """`keep`, then `context`: what the prompt no longer shows is not lost, and neither is a run that fails later."""
        self.keep(said, session=session)
        return self.context(said, shown, session=session)

    async def aready(self, said: Sequence[Said], shown: Sequence[Said], *, session: str | None = None) -> Context | None:
        """`ready` for async callers, in a thread."""
        return await asyncio.to_thread(self.ready, said, shown, session=session)

    def blocks(self, said: Sequence[Said], shown: Sequence[Said], *, session: str | None = None) -> tuple[str, str] | None:
        """The stable and the volatile part, marked; with their marks they are within the budget. None without a context."""
        marks = 2 * tokens.count(f"{BEGIN}{END}\n", self.options.get("counter") or self.engine.store.data.rules.counter)
        if self.budget is not None and self.budget <= marks:
            said_so = f"A budget of {self.budget} tokens holds nothing: the marks around a context take {marks}. Raise it."
            raise BudgetError(said_so, short=marks + 1 - self.budget)
        seat = self if self.budget is None else replace(self, budget=self.budget - marks)
        context = seat.ready(said, shown, session=session)
        if self.budget is None and context and context.tokens + marks > context.budget.ceiling:
            seat = replace(self, budget=context.budget.total - marks)  # the budget was the engine's own to know
            context = seat.context(said, shown, session=session)
        return (marked(context.stable), marked(context.volatile)) if context else None

    def latest(self, messages: Sequence[Message], begins: Callable[[Message], bool]) -> list[Message]:
        """The turns that stay; the one that is under way always does."""
        return latest(messages, self.turns if self.turns is None else max(self.turns, 1), begins)

    def _rows(self, said: Sequence[Said], session: str, before: Counter[str]) -> Iterator[Row]:
        """What was said as rows. Words without an id are numbered by how often they were said: each "go on" is another."""
        now = self.engine.store.data.clock()
        for number, part in enumerate(said, 1):
            words = _words(part)
            key = _key(words, session, 0 if part.id else before[words])
            before[words] += 1
            at = now - (len(said) - number)  # a millisecond apart: what is kept at once has an order, too
            if part.role == "tool":
                call = Call(number, part.tool or "tool", part.input, key, session, at)
                yield from used(call, part.text, "failure" if part.failed else "success")
            elif part.role != "system":  # the developer's own instructions are not news
                for row in message(part.role, part.text, key=key, session=session, at=at):
                    yield replace(row, values={**row.values, **_handed_back(part)})

    def _unknown(self, rows: list[Row]) -> list[Row]:
        """The rows behind the last few that are known: a conversation only grows, and is handed over whole at every call.

        One known row is not enough: in a list that the caller has cut, words that were said before count as known.
        """
        together = 0
        with self.engine.store.data.reader() as reader:
            for n in range(len(rows), 0, -1):
                together = together + 1 if reader.by_key(rows[n - 1].values["key"]) else 0
                if together == SURE:
                    return rows[n:]
        return rows

    def _without(self, shown: Sequence[Said], session: str | None) -> Filters:
        """The caller's filters, and without the events of what is shown anyway."""
        filters: Filters = self.options.get("filters") or Filters()
        if not shown:
            return filters
        session = session or self.engine.scope.session or "main"
        known = [id for ids in self._known(shown, session).values() for id in ids]
        return replace(filters, exclude=(*filters.exclude, *known))

    def _known(self, said: Sequence[Said], session: str) -> dict[str, list[str]]:
        """The events of the same words in the session, as often as they were said; a developer's are none."""
        kept = (part for part in said if part.role != "system")
        with self.engine.store.data.reader() as reader:
            return {words: _events(reader, words, session) for words in map(_words, kept)}


def _handed_back(part: Said) -> dict[str, Any]:
    """What is kept beside the words, where the history is handed back."""
    if not part.order:
        return {}
    return {"order": part.order, **({"parts": [list(one) for one in part.parts]} if part.parts else {})}


def _events(reader: Reader, words: str, session: str) -> list[str]:
    found = (reader.by_key(_key(words, session, number)) for number in count())
    return [record.id for record in takewhile(bool, found) if record]


def _key(words: str, session: str, number: int) -> str:
    """The same for the same words in the same session: frameworks hand the whole conversation over again and again."""
    return f"said:{digest(session, words, str(number))}"


def _words(part: Said) -> str:
    """What is the same next time. An id alone is not: some servers number the calls of each answer from 0."""
    return digest(part.id, part.role, part.tool, str(part.input or ""), " ".join(part.text.split()))
