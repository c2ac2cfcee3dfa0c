"""Microsoft Agent Framework: a context provider.

Comes in: a run's messages. Goes out: each of its model calls with the computed context around the last turns, and what was
said in the run, as events. The history that the framework keeps stays as it is: only the call is changed, by a middleware.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from foveate.engine import Engine
from foveate.integrations import requires_extra
from foveate.integrations.conversation import TURNS, Role, Said, Seat

with requires_extra("agent-framework"):
    from agent_framework import ChatContext, ChatMiddleware, ContextProvider, Message

SOURCE = "foveate"
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "tool": "tool"}


class ComputedContext(ContextProvider):
    """`Agent(client, context_providers=[ComputedContext(engine, budget=2000)])`. Further options are those of `compute`."""

    def __init__(
        self,
        engine: Engine,
        *,
        budget: int | None = None,
        turns: int | None = TURNS,
        session: str | None = None,
        agent: str | None = None,
        keeps: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(SOURCE)
        self._seat = Seat(
            engine=engine, budget=budget, turns=turns, session=session, agent=agent, keeps=keeps, options=options
        )

    async def before_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        """The context is computed where all messages are known: right before each call of the model."""
        context.extend_middleware(self.source_id, _Calls(self._seat, self._session(context)))

    async def after_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        answered = context.response.messages if context.response else []
        await self._seat.akeep(_said([*context.input_messages, *answered]), session=self._session(context))

    def _session(self, context: Any) -> str | None:
        return self._seat.session or context.session_id


class _Calls(ChatMiddleware):
    """The calls of one run."""

    def __init__(self, seat: Seat, session: str | None) -> None:
        self._seat, self._session = seat, session

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        messages = context.messages
        turns = self._seat.latest(messages, lambda message: message.role == "user")
        before = messages[: len(messages) - len(turns)]
        stay = [*(message for message in before if message.role == "system"), *turns]
        computed = await self._seat.aready(_said(messages), _said(stay), session=self._session)
        if computed is not None:
            options: Mapping[str, Any] = context.options or {}
            told = _with(options.get("instructions"), computed.stable) if computed.stable else options.get("instructions")
            context.options = {**options, "instructions": told} if told else options
            mark = {"_attribution": {"source_id": SOURCE}}  # whoever stores messages can tell it from a person's
            last = [Message("user", [computed.volatile], additional_properties=mark)] if computed.volatile else []
            context.messages = [*stay, *last]
        await call_next()


def _with(instructions: Any, stable: str) -> Any:
    if not instructions:
        return stable
    if isinstance(instructions, str):
        return f"{instructions}\n\n{stable}"
    return [*([instructions] if isinstance(instructions, Mapping) else instructions), stable]


def _said(messages: Sequence[Message]) -> list[Said]:
    contents = [content for message in messages for content in message.contents]
    calls = {content.call_id: content for content in contents if content.type == "function_call"}
    said = []
    for message in messages:
        if message.text.strip():
            said.append(Said(role=_ROLES.get(message.role, "system"), text=message.text))
        for result in (content for content in message.contents if content.type == "function_result"):
            call = calls.get(result.call_id)
            tool, given = (call.name or "", call.parse_arguments()) if call else ("", None)
            text = "" if result.result is None else str(result.result)
            said.append(Said(role="tool", text=text, tool=tool, input=given, failed=bool(result.exception)))
    return said
