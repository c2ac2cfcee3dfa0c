"""Microsoft Agent Framework: a context provider.

A middleware changes each call of the model: instructions and the last turns, with the computed context around them. The
history that the framework stores stays as it is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Unpack

from foveate.engine import Engine
from foveate.integrations import requires_extra
from foveate.integrations.conversation import Conversation, ConversationMessage, HistoryOptions, Role

with requires_extra("agent-framework"):
    from agent_framework import ChatContext, ChatMiddleware, ContextProvider, Message

SOURCE_ID = "foveate"
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "tool": "tool"}


class ComputedContext(ContextProvider):
    """Adds a computed context to each call: `Agent(client, context_providers=[ComputedContext(engine, budget=2000)])`."""

    def __init__(self, engine: Engine, **options: Unpack[HistoryOptions]) -> None:
        super().__init__(SOURCE_ID)
        self._conversation = Conversation(engine, **options)

    async def before_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        """Add the middleware. Only it sees all messages of a call, also those of a tool loop."""
        middleware = _ContextMiddleware(self._conversation, self._session_name(context))
        context.extend_middleware(self.source_id, middleware)

    async def after_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        answer = context.response.messages if context.response else []
        messages = _convert_messages([*context.input_messages, *answer])
        await self._conversation.aremember(messages, session=self._session_name(context))

    def _session_name(self, context: Any) -> str | None:
        return self._conversation.session or context.session_id


class _ContextMiddleware(ChatMiddleware):
    """Changes the calls of one run."""

    def __init__(self, conversation: Conversation, session: str | None) -> None:
        self._conversation, self._session = conversation, session

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        kept = self._conversation.kept_messages(context.messages, _is_turn_start, _is_system)
        computed = await self._conversation.aremember_and_compute(
            _convert_messages(context.messages), _convert_messages(kept), session=self._session
        )
        if computed is not None:
            options: Mapping[str, Any] = context.options or {}
            if computed.stable:
                instructions = _append_instructions(options.get("instructions"), computed.stable)
                context.options = {**options, "instructions": instructions}
            if computed.volatile:
                attribution = {"_attribution": {"source_id": SOURCE_ID}}  # not a message of the user, if it is stored
                kept.append(Message("user", [computed.volatile], additional_properties=attribution))
            context.messages = kept
        await call_next()


def _is_turn_start(message: Message) -> bool:
    return message.role == "user"


def _is_system(message: Message) -> bool:
    return message.role == "system"


def _append_instructions(instructions: Any, stable_text: str) -> Any:
    if not instructions:
        return stable_text
    if isinstance(instructions, str):
        return f"{instructions}\n\n{stable_text}"
    return [*([instructions] if isinstance(instructions, Mapping) else instructions), stable_text]


def _convert_messages(messages: Sequence[Message]) -> list[ConversationMessage]:
    contents = [content for message in messages for content in message.contents]
    calls = {content.call_id: content for content in contents if content.type == "function_call"}
    converted = []
    for message in messages:
        if message.text.strip():
            converted.append(ConversationMessage(role=_ROLES.get(message.role, "system"), text=message.text))
        for result in (content for content in message.contents if content.type == "function_result"):
            call = calls.get(result.call_id)
            converted.append(
                ConversationMessage(
                    role="tool",
                    text="" if result.result is None else str(result.result),
                    tool=call.name or "" if call else "",
                    tool_input=call.parse_arguments() if call else None,
                    failed=bool(result.exception),
                )
            )
    return converted
