"""LlamaIndex: a memory block for `Memory`.

The block holds the computed context. How much of the history stays is decided by the memory's token limit. With
`insert_method="user"` the block is inserted into the latest user message, so that a provider's prompt cache holds.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Unpack

from foveate.engine import Engine
from foveate.errors import BudgetError
from foveate.integrations import requires_extra
from foveate.integrations.conversation import AdapterOptions, Conversation, MessageFormat, message_time
from foveate.memory.messages import ConversationMessage, Role
from foveate.receipts.context import Context
from foveate.text import tokens

with requires_extra("llama-index"):
    from llama_index.core.base.llms.types import ChatMessage, ToolCallBlock
    from llama_index.core.bridge.pydantic import PrivateAttr
    from llama_index.core.memory import BaseMemoryBlock

MAX_CACHED_QUERIES = 16
"""Queries kept to compute their context again for less room. LlamaIndex asks for that at once; sessions share a block."""

TOKEN_MARGIN = 0.05
"""Share of the smaller room that stays free, because LlamaIndex counts with a tokenizer of its own."""

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "tool": "tool", "function": "tool"}


class ComputedContextBlock(BaseMemoryBlock[str]):
    """Holds the context: `Memory.from_defaults(memory_blocks=[ComputedContextBlock(engine)], insert_method="user")`."""

    name: str = "computed_context"
    priority: int = 1
    _conversation: Conversation[ChatMessage] = PrivateAttr()
    _computations: OrderedDict[str, Callable[..., Context | None]] = PrivateAttr(default_factory=OrderedDict)
    """By text: how to compute a context again."""

    def __init__(
        self, engine: Engine, *, name: str = "computed_context", priority: int = 1, **options: Unpack[AdapterOptions]
    ) -> None:
        """`name` and `priority` are LlamaIndex's; a block of priority 0 is never shortened."""
        super().__init__(name=name, priority=priority)
        self._conversation = Conversation(engine, _FORMAT, turns=None, **options)

    async def _aget(
        self, messages: list[ChatMessage] | None = None, session_id: str | None = None, **block_kwargs: object
    ) -> str:
        """Return the context for the last question, without what the history shows anyway."""
        history = _drop_repeated_question(messages or [])
        compute = partial(self._conversation.context, history, history, session=session_id)
        context = await asyncio.to_thread(compute)
        await self._conversation.aremember(history, session=session_id)
        if context is None:
            return ""
        self._computations[context.text] = compute
        while len(self._computations) > MAX_CACHED_QUERIES:
            self._computations.popitem(last=False)
        return context.text

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Store messages that leave the short-term memory. Most are stored already, when the last context was computed."""
        sessions = (message.additional_kwargs.get("session_id") for message in messages)
        session = next((str(session) for session in sessions if session), None)
        await self._conversation.aremember(messages, session=session)

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Compute the context again for less room; None if nothing useful would be left."""
        compute = self._computations.get(content) if content else None
        if compute is None:
            return None
        counter = self._conversation.engine.store.data.rules.counter
        budget = int((tokens.count(content, counter) - tokens_to_truncate) * (1 - TOKEN_MARGIN))
        if budget <= 0:
            return None
        try:
            context = await asyncio.to_thread(compute, budget=budget)
        except BudgetError:
            return None
        return context.text or None if context else None


def _drop_repeated_question(messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    """Drop the question that LlamaIndex appends to a history that contains it already."""
    questions = [message.content for message in messages if message.role.value == "user"]
    is_repeated = len(questions) > 1 and messages[-1].role.value == "user" and questions[-1] == questions[-2]
    return messages[:-1] if is_repeated else messages


def _convert_messages(messages: Sequence[ChatMessage]) -> list[ConversationMessage]:
    blocks = [block for message in messages for block in message.blocks if isinstance(block, ToolCallBlock)]
    calls = {block.tool_call_id: block for block in blocks if block.tool_call_id}
    converted = []
    for message in messages:
        role = _ROLES.get(message.role.value, "system")
        call = calls.get(str(message.additional_kwargs.get("tool_call_id"))) if role == "tool" else None
        own_name = str(message.additional_kwargs.get("name") or "")
        name, tool_input = (call.tool_name, call.tool_kwargs) if call else (own_name, None)
        at = message_time(message.additional_kwargs)
        converted.append(ConversationMessage(role=role, text=message.content or "", name=name, tool_input=tool_input, at=at))
    return converted


# How much of the history stays is the memory's decision, so no message starts a turn.
_FORMAT: MessageFormat[ChatMessage] = MessageFormat(_convert_messages, is_turn_start=lambda _: False)
