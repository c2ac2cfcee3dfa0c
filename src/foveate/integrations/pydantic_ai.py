"""PydanticAI: a capability for `Agent(model, capabilities=[ComputedContext(engine)])`.

Every request gets a computed context: the stable part follows the agent's literal instructions, the volatile part ends the
last request. The history of the run stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

from foveate.engine import Engine
from foveate.integrations import requires_extra
from foveate.integrations.conversation import Conversation, HistoryOptions, MessageFormat, Prompt
from foveate.integrations.importers.rows import parse_millis
from foveate.memory.messages import ConversationMessage, digest

with requires_extra("pydantic-ai"):
    from pydantic_ai import RunContext
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import (
        InstructionPart,
        ModelMessage,
        ModelRequest,
        ModelRequestPart,
        ModelResponse,
        RetryPromptPart,
        SystemPromptPart,
        TextContent,
        TextPart,
        ToolCallPart,
        ToolReturnPart,
        UserPromptPart,
    )
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.run import AgentRunResult

_USER_SIDE_PARTS = (UserPromptPart, ToolReturnPart, RetryPromptPart)


class ComputedContext(AbstractCapability[Any]):
    """Adds a computed context to each request. The session is the run's `conversation_id` unless the options name one.

    A function in the option `user` receives the run's `RunContext`: `user=lambda run: run.deps.user`.
    """

    def __init__(self, engine: Engine, **options: Unpack[HistoryOptions]) -> None:
        self._conversation = Conversation(engine, MessageFormat(convert_messages, is_turn_start), **options)

    async def prepare_model_request(self, ctx: RunContext[Any], request_context: ModelRequestContext) -> ModelRequestContext:
        prompt = await self._conversation.aprompt(request_context.messages, session=ctx.conversation_id, run=ctx)
        if prompt is None:
            return request_context
        parameters = request_context.model_request_parameters
        if prompt.stable:
            stable = InstructionPart(content=prompt.stable.rstrip())
            parts = InstructionPart.sorted([*(parameters.instruction_parts or ()), stable])
            parameters = replace(parameters, instruction_parts=parts)
        messages = _request_messages(request_context.messages, prompt)
        return replace(request_context, messages=messages, model_request_parameters=parameters)

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        await self._conversation.aremember(result.all_messages(), session=ctx.conversation_id, run=ctx)
        return result

    @classmethod
    def get_serialization_name(cls) -> str | None:
        return None  # an engine cannot be written into a file


def _request_messages(messages: Sequence[ModelMessage], prompt: Prompt[ModelMessage]) -> list[ModelMessage]:
    """Return the messages to send: system prompts of dropped turns, the turns that stay, and the volatile part."""
    kept = prompt.messages
    dropped = [message for message in messages[: len(messages) - len(kept)] if isinstance(message, ModelRequest)]
    system_parts = [part for message in dropped for part in message.parts if not isinstance(part, _USER_SIDE_PARTS)]
    first, *rest = kept
    if system_parts and isinstance(first, ModelRequest):
        first = replace(first, parts=[*system_parts, *first.parts])
    *rest, last = first, *rest
    if prompt.volatile and isinstance(last, ModelRequest):
        last = replace(last, parts=[*last.parts, UserPromptPart(prompt.volatile)])
    return [*rest, last]


def is_turn_start(message: ModelMessage) -> bool:
    """Return whether a request contains the user's words and no result of a tool."""
    return (
        isinstance(message, ModelRequest)
        and any(isinstance(part, UserPromptPart) for part in message.parts)
        and not any(isinstance(part, ToolReturnPart | RetryPromptPart) for part in message.parts)
    )


def convert_messages(messages: Sequence[ModelMessage]) -> list[ConversationMessage]:
    responses = [message for message in messages if isinstance(message, ModelResponse)]
    calls = [part for response in responses for part in response.parts if isinstance(part, ToolCallPart)]
    tool_inputs = {part.tool_call_id: part.args_as_dict() for part in calls}
    return [part for message in messages for part in _convert_message(message, tool_inputs)]


def _convert_message(message: ModelMessage, tool_inputs: Mapping[str, Any]) -> Iterator[ConversationMessage]:
    if isinstance(message, ModelRequest):
        for each in message.parts:
            yield from _convert_request_part(each, tool_inputs)
        return
    for part in message.parts:
        if isinstance(part, TextPart):
            id = digest("assistant", str(message.timestamp), part.content)
            yield ConversationMessage(role="assistant", text=part.content, id=id, at=parse_millis(message.timestamp))


def _convert_request_part(part: ModelRequestPart, tool_inputs: Mapping[str, Any]) -> Iterator[ConversationMessage]:
    if isinstance(part, UserPromptPart):
        content = [part.content] if isinstance(part.content, str) else part.content
        texts = [each if isinstance(each, str) else each.content for each in content if isinstance(each, str | TextContent)]
        text = "\n".join(texts)
        id = digest("user", str(part.timestamp), text)
        yield ConversationMessage(role="user", text=text, id=id, at=parse_millis(part.timestamp))
    elif isinstance(part, ToolReturnPart):
        yield ConversationMessage(
            role="tool",
            text=part.model_response_str(wrap_if_error=False),
            id=part.tool_call_id,
            name=part.tool_name,
            tool_input=tool_inputs.get(part.tool_call_id),
            outcome="success" if part.outcome == "success" else "failure",
            at=parse_millis(part.timestamp),
        )
    elif isinstance(part, RetryPromptPart) and part.tool_name:
        yield ConversationMessage(
            role="tool",
            text=part.model_response(),
            name=part.tool_name,
            id=part.tool_call_id,
            outcome="failure",
            at=parse_millis(part.timestamp),
        )
    elif isinstance(part, SystemPromptPart):
        yield ConversationMessage(role="system", text=part.content)
