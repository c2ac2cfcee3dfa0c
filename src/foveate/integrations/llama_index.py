"""LlamaIndex: a memory block for `Memory`.

The block holds the computed context. How much of the history stays is decided by the memory's token limit. With
`insert_method="user"` the block is inserted into the latest user message, so that a provider's prompt cache holds.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

from foveate.engine import Engine
from foveate.errors import BudgetError
from foveate.integrations import requires_extra
from foveate.integrations.conversation import AdapterOptions, Conversation, ConversationMessage, Role
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


@dataclass(frozen=True, slots=True)
class _CachedQuery:
    messages: list[ConversationMessage]
    session: str | None


class ComputedContextBlock(BaseMemoryBlock[str]):
    """Holds the context: `Memory.from_defaults(memory_blocks=[ComputedContextBlock(engine)], insert_method="user")`."""

    name: str = "computed_context"
    priority: int = 1
    _conversation: Conversation = PrivateAttr()
    _cached_queries: OrderedDict[str, _CachedQuery] = PrivateAttr(default_factory=OrderedDict)

    def __init__(
        self, engine: Engine, *, name: str = "computed_context", priority: int = 1, **options: Unpack[AdapterOptions]
    ) -> None:
        """`name` and `priority` are LlamaIndex's; a block of priority 0 is never shortened."""
        super().__init__(name=name, priority=priority)
        self._conversation = Conversation(engine, turns=None, **options)

    async def _aget(
        self, messages: list[ChatMessage] | None = None, session_id: str | None = None, **block_kwargs: object
    ) -> str:
        """Return the context for the last question, without what the history shows anyway."""
        session = self._conversation.session or session_id
        query = _CachedQuery(_convert_messages(_drop_repeated_question(messages or [])), session)
        context = await asyncio.to_thread(self._compute_and_remember, query)
        if context is None:
            return ""
        self._cached_queries[context.text] = query
        while len(self._cached_queries) > MAX_CACHED_QUERIES:
            self._cached_queries.popitem(last=False)
        return context.text

    def _compute_and_remember(self, query: _CachedQuery) -> Context | None:
        context = self._conversation.context(query.messages, query.messages, session=query.session)
        if query.messages:
            self._conversation.remember(query.messages, session=query.session)
        return context

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Store messages that leave the short-term memory. Most are stored already, when the last context was computed."""
        sessions = (message.additional_kwargs.get("session_id") for message in messages)
        session = next((str(session) for session in sessions if session), None)
        await self._conversation.aremember(_convert_messages(messages), session=self._conversation.session or session)

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Compute the context again for less room; None if nothing useful would be left."""
        query = self._cached_queries.get(content) if content else None
        if query is None:
            return None
        counter = self._conversation.engine.store.data.rules.counter
        budget = int((tokens.count(content, counter) - tokens_to_truncate) * (1 - TOKEN_MARGIN))
        if budget <= 0:
            return None
        try:
            context = await asyncio.to_thread(
                self._conversation.context, query.messages, query.messages, session=query.session, budget=budget
            )
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
        tool, tool_input = (call.tool_name, call.tool_kwargs) if call else ("", None)
        converted.append(ConversationMessage(role=role, text=message.content or "", tool=tool, tool_input=tool_input))
    return converted
