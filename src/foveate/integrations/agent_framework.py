"""Microsoft Agent Framework: a context provider.

A middleware changes each call of the model: instructions and the last turns, with the computed context around them. The
history that the framework stores stays as it is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Unpack

from foveate.engine import Engine
from foveate.integrations import requires_extra
from foveate.integrations.conversation import Conversation, HistoryOptions, MessageFormat, message_time
from foveate.memory.messages import ConversationMessage, Role

with requires_extra("agent-framework"):
    from agent_framework import ChatContext, ChatMiddleware, ContextProvider, Message

SOURCE_ID = "foveate"
UNNAMED = "UnnamedAgent"
"""The name that the framework gives to the messages of an agent without one."""

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "tool": "tool"}


class ComputedContext(ContextProvider):
    """Adds a computed context to each call: `Agent(client, context_providers=[ComputedContext(engine, budget=2000)])`.

    A function in the option `user` receives the run's `AgentSession`: `user=lambda session: session.state["user"]`.
    """

    def __init__(self, engine: Engine, **options: Unpack[HistoryOptions]) -> None:
        super().__init__(SOURCE_ID)
        self._conversation = Conversation(engine, _FORMAT, **options)

    async def before_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        """Add the middleware. Only it sees all messages of a call, also those of a tool loop."""
        context.extend_middleware(self.source_id, _ContextMiddleware(self._conversation, context.session_id, session))

    async def after_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        answer = context.response.messages if context.response else []
        await self._conversation.aremember([*context.input_messages, *answer], session=context.session_id, run=session)


class _ContextMiddleware(ChatMiddleware):
    """Changes the calls of one run."""

    def __init__(self, conversation: Conversation[Message], session: str | None, run: object) -> None:
        self._conversation, self._session, self._run = conversation, session, run

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        prompt = await self._conversation.aprompt(context.messages, session=self._session, run=self._run)
        if prompt is not None:
            options: Mapping[str, Any] = context.options or {}
            if prompt.stable:
                instructions = _append_instructions(options.get("instructions"), prompt.stable)
                context.options = {**options, "instructions": instructions}
            attribution = {"_attribution": {"source_id": SOURCE_ID}}  # not a message of the user, if it is stored
            volatile = Message("user", [prompt.volatile], additional_properties=attribution)
            context.messages = [*prompt.messages, *([volatile] if prompt.volatile else [])]
        await call_next()


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
        role = _ROLES.get(message.role, "system")
        name = message.author_name if message.author_name and message.author_name != UNNAMED else ""
        at = message_time(message.additional_properties)
        if message.text.strip():
            converted.append(ConversationMessage(role=role, text=message.text, name=name, at=at))
        for result in (content for content in message.contents if content.type == "function_result"):
            call = calls.get(result.call_id)
            converted.append(
                ConversationMessage(
                    role="tool",
                    text="" if result.result is None else str(result.result),
                    name=call.name or "" if call else "",
                    tool_input=call.parse_arguments() if call else None,
                    outcome="failure" if result.exception else "success",
                    at=at,
                )
            )
    return converted


_FORMAT: MessageFormat[Message] = MessageFormat(
    _convert_messages,
    is_turn_start=lambda message: message.role == "user",
    is_system=lambda message: message.role == "system",
)
