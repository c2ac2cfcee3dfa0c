"""OpenAI Agents SDK: a filter that computes what each call of the model receives, and a session that stores the history.

    session = FoveateSession("s1", engine)
    config = RunConfig(call_model_input_filter=context_filter(session, budget=2000))
    await Runner.run(agent, "...", session=session, run_config=config)

Each works without the other. The SDK's input items are those of the Responses API.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, Unpack, cast

from foveate.engine import Engine
from foveate.errors import InputError, StoreError
from foveate.integrations import requires_extra
from foveate.integrations.conversation import (
    CONVERTED,
    DEFAULT_TURNS,
    Conversation,
    HistoryOptions,
    last_turns,
)
from foveate.integrations.openai_messages import FORMAT
from foveate.memory.messages import ConversationMessage
from foveate.records.render_events import role_of
from foveate.text.redact import redact_value
from foveate.types import NO_FILTERS, Record

with requires_extra("openai-agents"):
    from agents import TResponseInputItem, get_current_trace
    from agents.memory import SessionSettings
    from agents.run import CallModelData, CallModelInputFilter, ModelInputData

MAX_EVENTS_READ = 2_000
"""Latest events of a session that are searched for its last turns."""

MAX_ATTACHMENT_CHARS = 900_000
"""Limit for a message's pictures and files as JSON, below the limit of a record's data."""

log = logging.getLogger("foveate.agents")
_sequence = count()


def context_filter(source: Engine | FoveateSession, **options: Unpack[HistoryOptions]) -> CallModelInputFilter:
    """Return a filter for `RunConfig.call_model_input_filter`.

    Pass the `FoveateSession` of the run if it has one: it stores the messages, and has a user. With an engine, the filter
    stores the input of each call, in the session of the options, else in the `group_id` of the run's trace. A function in
    the option `user` receives the run's context: `user=lambda context: context.user`.
    """
    if isinstance(source, FoveateSession):
        user = source.engine.scope.user
        if options.get("user") not in (None, user):
            raise InputError("Name the user in FoveateSession(..., user=...): the session stores the messages.")
        options = {**options, "user": user, "session": source.session_id, "remember": False}
        source = source.engine
    conversation = Conversation(source, FORMAT, **options)

    async def filter_model_input(data: CallModelData[Any]) -> ModelInputData:
        trace_group = getattr(get_current_trace(), "group_id", None)
        prompt = await conversation.aprompt(data.model_data.input, session=trace_group, run=data.context)
        if prompt is None:
            return data.model_data
        instructions = "\n\n".join(filter(None, (data.model_data.instructions, prompt.stable.rstrip())))
        if prompt.volatile:
            prompt.messages.append({"role": "user", "content": prompt.volatile})
        return ModelInputData(input=prompt.messages, instructions=instructions or None)

    return filter_model_input


class FoveateSession:
    """A `Session` of the SDK whose history is in foveate's store: the messages of its last turns.

    Results of tools are stored as events, which contexts show, and are not part of the history. Pictures and files come back
    unchanged. If one cannot be stored (too large, not JSON, or an address with a secret), a text says so in its place.
    Several texts of one message come back as one.
    """

    def __init__(
        self, session_id: str, engine: Engine, *, user: str | None = None, turns: int | None = DEFAULT_TURNS
    ) -> None:
        self.session_id = session_id
        self.session_settings: SessionSettings | None = None
        self.engine = engine if user is None else engine.scoped(user=user)
        self._turns = turns
        self._conversation = Conversation(self.engine, CONVERTED, session=session_id)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the last turns, oldest first, and at most `limit` items of them."""
        items = [_item(record) for record in await asyncio.to_thread(self._messages)]
        kept = last_turns(items, self._turns, FORMAT.is_turn_start)
        return kept if limit is None else kept[-limit:] if limit > 0 else []

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Store messages. The SDK hands each over once, so a repeated text is another message."""
        await asyncio.to_thread(self._store, items)

    async def pop_item(self) -> TResponseInputItem | None:
        """Retire the last message and return it."""
        messages = await asyncio.to_thread(self._messages)
        if not messages:
            return None
        await asyncio.to_thread(self.engine.edit, messages[-1].id, status="retired")
        return _item(messages[-1])

    async def clear_session(self) -> None:
        """Retire all events of the session; they stay in the store."""
        for record in await asyncio.to_thread(self._events):
            await asyncio.to_thread(self.engine.edit, record.id, status="retired")

    def _store(self, items: list[TResponseInputItem]) -> None:
        now = self.engine.store.data.clock()
        messages = [_storable_message(message) for message in FORMAT.convert(items)]
        self._conversation.remember([_with_position(message, now) for message in messages], is_new=True)

    def _messages(self) -> list[Record]:
        """Return the messages of people and models, oldest first."""
        messages = [record for record in self._events() if role_of(record) in ("user", "assistant")]
        return sorted(messages, key=lambda record: str(record.data.get("order") or f"{record.created:014d}"))

    def _events(self) -> list[Record]:
        """Return the session's events; none if the store fails, so that the run can go on."""
        try:
            session = self.engine.store.data.clean_name(self.session_id)
            with self.engine.store.data.reader() as reader:
                return reader.recent(["event"], MAX_EVENTS_READ, NO_FILTERS, session=session)
        except StoreError as error:
            log.warning("no history: %s", error)
            return []


def _with_position(message: ConversationMessage, now: int) -> ConversationMessage:
    """Store with a message its position in the history, and what it holds besides its text."""
    data: dict[str, Any] = {"order": f"{now:014d}.{next(_sequence):09d}"}
    if message.attachments:
        data["parts"] = [list(pair) for pair in message.attachments]
    return replace(message, data=data)


def _storable_message(message: ConversationMessage) -> ConversationMessage:
    """Give a message without text a text, and replace attachments that cannot be stored by a text."""
    names = _attachment_types(message.attachments)
    if reason := _unstorable_reason([attachment for _, attachment in message.attachments]):
        log.warning("%s: %s", names, reason)
        return replace(message, text=f"{message.text}\n{names}: {reason}".strip(), attachments=())
    return message if message.text.strip() else replace(message, text=names)


def _unstorable_reason(attachments: list[Mapping[str, Any]]) -> str:
    """Return why attachments cannot be stored; empty if they can. Redacting a secret in an address would break it."""
    try:
        size = len(json.dumps(attachments))
    except (TypeError, ValueError):
        return "not stored, because it is not JSON"
    if size > MAX_ATTACHMENT_CHARS:
        return f"not stored, because it has more than {MAX_ATTACHMENT_CHARS:,} characters"
    return "not stored, because it contains a secret" if redact_value(attachments) != attachments else ""


def _attachment_types(attachments: Sequence[tuple[int, Mapping[str, Any]]]) -> str:
    """Return the text of a message that has only attachments: `[input_image]`."""
    return " ".join(f"[{attachment.get('type', 'part')}]" for _, attachment in attachments)


def _item(record: Record) -> TResponseInputItem:
    role, attachments = role_of(record), record.data.get("parts", ())
    if not attachments:
        return cast(TResponseInputItem, {"role": role, "content": record.text})
    text_type = "input_text" if role == "user" else "output_text"
    is_placeholder = record.text == _attachment_types(attachments)
    content = [] if is_placeholder else [{"type": text_type, "text": record.text}]
    for index, attachment in attachments:
        content.insert(index, attachment)
    return cast(TResponseInputItem, {"role": role, "content": content})
