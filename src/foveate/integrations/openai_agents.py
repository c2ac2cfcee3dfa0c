"""OpenAI Agents SDK: a filter that computes what each model call receives, and a session whose history is state.

    session = FoveateSession("s1", engine)
    config = RunConfig(call_model_input_filter=context_filter(engine, session=session))
    await Runner.run(agent, "...", session=session, run_config=config)

Comes in: the SDK's input items, which are those of the Responses API. Goes out: instructions with the stable part behind
them, and items with the volatile part last. Either works without the other.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, cast

from foveate.engine import Engine
from foveate.errors import StoreError
from foveate.integrations import requires_extra
from foveate.integrations.conversation import TURNS, Said, Seat, latest
from foveate.integrations.openai_messages import SYSTEM, begins, said
from foveate.records.render_events import role_of
from foveate.text.redact import redact_value
from foveate.types import NO_FILTERS, Record

with requires_extra("openai-agents"):
    from agents import TResponseInputItem, get_current_trace
    from agents.memory import SessionSettings
    from agents.run import CallModelData, CallModelInputFilter, ModelInputData

EVENTS = 2_000
"""The latest events of a session among which its last turns are looked for."""

MAX_PARTS = 900_000
"""Characters of a message's pictures and files as JSON: what a record holds beside its text, with room for the rest."""

log = logging.getLogger("foveate.agents")
_order = count()


def context_filter(
    engine: Engine,
    *,
    budget: int | None = None,
    turns: int | None = TURNS,
    session: str | FoveateSession | None = None,
    keeps: bool = True,
    **options: Any,
) -> CallModelInputFilter:
    """For `RunConfig.call_model_input_filter`. Further options are those of `engine.context`.

    What is in the input is kept, too, unless a `FoveateSession` does that already. A `session` that is not given is the
    `group_id` of the run's trace, where that is set.
    """
    keeps = keeps and not isinstance(session, FoveateSession)
    name = session.session_id if isinstance(session, FoveateSession) else session
    seat = Seat(engine=engine, budget=budget, turns=turns, session=name, keeps=keeps, options=options)

    async def computed(data: CallModelData[Any]) -> ModelInputData:
        items, above = data.model_data.input, data.model_data.instructions
        stay = seat.latest(items, begins)
        standing = [item for item in items[: len(items) - len(stay)] if item.get("role") in SYSTEM]
        context = await seat.aready(said(items), said(stay), session=name or _group())
        if context is None:  # what could not be kept is not dropped either
            return data.model_data
        if context.stable:
            above = "\n\n".join(filter(None, (above, context.stable.rstrip())))
        last = [cast(TResponseInputItem, {"role": "user", "content": context.volatile})] if context.volatile else []
        return ModelInputData(input=[*standing, *stay, *last], instructions=above)

    return computed


class FoveateSession:
    """The SDK's `Session`: the messages of its last turns are its history; what tools did is state, for contexts to show.

    Pictures and files of a message come back as they were given, and count as no text; words in their place say so where
    they cannot be kept: too large, no JSON, or with a secret in an address. Several texts of one message come back as one.
    """

    def __init__(self, session_id: str, engine: Engine, *, turns: int | None = TURNS) -> None:
        self.session_id = session_id
        self.session_settings: SessionSettings | None = None
        self._turns = turns
        self._seat = Seat(engine=engine, session=session_id)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The last turns, oldest first; with a limit, no more items than that."""
        items = [_item(record) for record in await asyncio.to_thread(self._messages)]
        stay = latest(items, self._turns, begins)
        return stay if limit is None else stay[-limit:] if limit > 0 else []

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Keep what was said. The SDK hands each item over once, so that the same words again are other words."""
        now = self._seat.engine.store.data.clock()
        parts = [replace(_fitting(part), order=f"{now:014d}.{next(_order):09d}") for part in said(items)]
        await self._seat.akeep(parts, new=True)

    async def pop_item(self) -> TResponseInputItem | None:
        """Take the last message out of use and return it."""
        messages = await asyncio.to_thread(self._messages)
        if not messages:
            return None
        await asyncio.to_thread(self._seat.engine.edit, messages[-1].id, status="retired")
        return _item(messages[-1])

    async def clear_session(self) -> None:
        """Take everything that happened in the session out of use; it stays on record."""
        for record in await asyncio.to_thread(self._events):
            await asyncio.to_thread(self._seat.engine.edit, record.id, status="retired")

    def _messages(self) -> list[Record]:
        """What was said in it, oldest first."""
        messages = [record for record in self._events() if role_of(record) in ("user", "assistant")]
        return sorted(messages, key=lambda record: str(record.data.get("order") or f"{record.created:014d}"))

    def _events(self) -> list[Record]:
        """What happened in the session; nothing where the store cannot say."""
        try:
            with self._seat.engine.store.data.reader() as reader:
                return reader.recent(["event"], EVENTS, NO_FILTERS, session=self.session_id)
        except StoreError as error:
            log.warning("no history: %s", error)
            return []


def _fitting(part: Said) -> Said:
    """A message that a record can hold: with words where it has none, and where it has what cannot be kept."""
    if why := _unkept([one for _, one in part.parts]):
        dropped = f"{_names(part.parts)}: {why}"
        log.warning("%s", dropped)
        return replace(part, text=f"{part.text}\n{dropped}".strip(), parts=())
    return part if part.text.strip() else replace(part, text=_names(part.parts))


def _unkept(parts: list[Mapping[str, Any]]) -> str:
    """Why pictures and files of a message are not kept; a secret would be taken out of an address, and break it."""
    try:
        size = len(json.dumps(parts))
    except (TypeError, ValueError):
        return "not kept, as it is no JSON"
    if size > MAX_PARTS:
        return "too large to be kept"
    return "not kept, as it holds a secret" if redact_value(parts) != parts else ""


def _names(parts: Sequence[tuple[int, Mapping[str, Any]]]) -> str:
    """The words of a message that has only these: `[input_image]`."""
    return " ".join(f"[{one.get('type', 'part')}]" for _, one in parts)


def _item(record: Record) -> TResponseInputItem:
    role, parts = role_of(record), record.data.get("parts", ())
    if not parts:
        return cast(TResponseInputItem, {"role": role, "content": record.text})
    kind = "input_text" if role == "user" else "output_text"
    content = [] if record.text == _names(parts) else [{"type": kind, "text": record.text}]
    for place, part in parts:
        content.insert(place, part)
    return cast(TResponseInputItem, {"role": role, "content": content})


def _group() -> str | None:
    return getattr(get_current_trace(), "group_id", None)
