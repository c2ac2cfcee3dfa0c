"""LlamaIndex: a memory block for `Memory`.

Comes in: the messages of a chat history. Goes out: the computed context as the block's text, and what was said, as events.
The history is the memory's own: its token limit says how much of it stays. With `insert_method="user"` the block stands with
the latest user message, and a provider's cached beginning stays one.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from foveate.engine import Engine
from foveate.errors import BudgetError
from foveate.integrations import requires_extra
from foveate.integrations.conversation import Role, Said, Seat
from foveate.pipeline.context import Context
from foveate.text import tokens

with requires_extra("llama-index"):
    from llama_index.core.base.llms.types import ChatMessage, ToolCallBlock
    from llama_index.core.bridge.pydantic import PrivateAttr
    from llama_index.core.memory import BaseMemoryBlock

REMEMBERED = 16
"""Answers that can still be made shorter: LlamaIndex asks for that right after, and sessions may share a block."""

SPARE = 0.05
"""Share of the smaller room that stays free: LlamaIndex counts with a tokenizer of its own."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a context was computed for."""

    said: list[Said]
    session: str | None


class ComputedContextBlock(BaseMemoryBlock[str]):
    """`Memory.from_defaults(memory_blocks=[ComputedContextBlock(engine, budget=2000)], insert_method="user")`."""

    name: str = "computed_context"
    priority: int = 1
    _seat: Seat = PrivateAttr()
    _asked: OrderedDict[str, _Asked] = PrivateAttr(default_factory=OrderedDict)

    def __init__(
        self,
        engine: Engine,
        *,
        budget: int | None = None,
        session: str | None = None,
        agent: str | None = None,
        keeps: bool = True,
        options: dict[str, Any] | None = None,
        **fields: Any,
    ) -> None:
        """`options` are those of `compute`; `fields` are LlamaIndex's: `name`, `priority` (0: never shortened), ..."""
        super().__init__(**fields)
        self._seat = Seat(
            engine=engine, budget=budget, turns=None, session=session, agent=agent, keeps=keeps, options=options or {}
        )

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        """The context for the last question; what the history says anyway is not in it."""
        said = _said(_once(messages or []))
        asked = _Asked(said, self._seat.session or block_kwargs.get("session_id"))
        context = await asyncio.to_thread(self._answered, asked)
        if context is None:
            return ""
        self._asked[context.text] = asked
        while len(self._asked) > REMEMBERED:
            self._asked.popitem(last=False)
        return context.text

    def _answered(self, asked: _Asked) -> Context | None:
        """The context, then what was said is kept: one way into a thread for both."""
        context = self._seat.context(asked.said, asked.said, session=asked.session)
        if asked.said:
            self._seat.keep(asked.said, session=asked.session)
        return context

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Messages that leave the short-term memory: kept already, unless nothing was asked since."""
        session = next((str(each.additional_kwargs["session_id"]) for each in messages if _has_session(each)), None)
        await self._seat.akeep(_said(messages), session=self._seat.session or session)

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """The context again, computed for less room; None where nothing useful would be left."""
        asked = self._asked.get(content) if content else None
        if asked is None:
            return None
        room = int((tokens.count(content, self._seat.engine.store.data.rules.counter) - tokens_to_truncate) * (1 - SPARE))
        if room <= 0:
            return None
        try:
            context = await replace(self._seat, budget=room).acontext(asked.said, asked.said, session=asked.session)
        except BudgetError:
            return None
        return context.text or None if context else None


_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "tool": "tool", "function": "tool"}


def _once(messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    """The history without the question that LlamaIndex hands in once more at its end, where the history has it already."""
    asked = [message.content for message in messages if message.role.value == "user"]
    again = len(asked) > 1 and messages[-1].role.value == "user" and asked[-1] == asked[-2]
    return messages[:-1] if again else messages


def _has_session(message: ChatMessage) -> bool:
    return bool(message.additional_kwargs.get("session_id"))


def _said(messages: Sequence[ChatMessage]) -> list[Said]:
    blocks = [block for message in messages for block in message.blocks if isinstance(block, ToolCallBlock)]
    calls = {block.tool_call_id: block for block in blocks if block.tool_call_id}
    said = []
    for message in messages:
        role = _ROLES.get(message.role.value, "system")
        call = calls.get(str(message.additional_kwargs.get("tool_call_id"))) if role == "tool" else None
        tool, given = (call.tool_name, call.tool_kwargs) if call else ("", None)
        said.append(Said(role=role, text=message.content or "", tool=tool, input=given))
    return said
