"""PydanticAI: `Agent(model, capabilities=[ComputedContext(engine)])`.

Comes in: the messages of a run. Goes out: the same run, whose every request holds a computed context: the stable part behind
the agent's literal instructions, the volatile part as the last words of the last request. Requests are changed, the history
is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

from foveate.engine import Engine
from foveate.integrations import requires_extra
from foveate.integrations.conversation import TURNS, Said, Seat
from foveate.integrations.importers.rows import digest
from foveate.pipeline.context import Context

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


@dataclass
class ComputedContext(AbstractCapability[Any]):
    """Computes a context for each request, and keeps what was said. `session` is the conversation's id unless given."""

    engine: Engine
    budget: int | None = None
    _: KW_ONLY
    turns: int | None = TURNS
    session: str | None = None
    agent: str | None = None
    keeps: bool = True
    options: dict[str, Any] = field(default_factory=dict)
    """Further options of `engine.context`."""

    async def prepare_model_request(self, ctx: RunContext[Any], request_context: ModelRequestContext) -> ModelRequestContext:
        seat, messages = self._seat(ctx), request_context.messages
        stay = seat.latest(messages, begins)
        context = await seat.aready(said(messages), said(stay))
        if context is None:  # what could not be kept is not dropped either
            return request_context
        projected = projection(messages, stay, context)
        parameters = request_context.model_request_parameters
        if context.stable:
            parts = InstructionPart.sorted(
                [*(parameters.instruction_parts or ()), InstructionPart(content=context.stable.rstrip())]
            )
            parameters = replace(parameters, instruction_parts=parts)
        return replace(request_context, messages=projected, model_request_parameters=parameters)

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        await self._seat(ctx).akeep(said(result.all_messages()))
        return result

    def _seat(self, ctx: RunContext[Any]) -> Seat:
        return Seat(
            engine=self.engine,
            budget=self.budget,
            turns=self.turns,
            session=self.session or ctx.conversation_id,
            agent=self.agent,
            keeps=self.keeps,
            options=self.options,
        )

    @classmethod
    def get_serialization_name(cls) -> str | None:
        return None  # an engine cannot be written into a file


def projection(messages: Sequence[ModelMessage], stay: list[ModelMessage], context: Context) -> list[ModelMessage]:
    """The messages to send: what stays, what must stand above it, and the volatile part at the end."""
    dropped = [message for message in messages[: len(messages) - len(stay)] if isinstance(message, ModelRequest)]
    standing = [part for message in dropped for part in message.parts if not isinstance(part, _OF_A_TURN)]
    first, *rest = stay
    if standing and isinstance(first, ModelRequest):
        first = replace(first, parts=[*standing, *first.parts])
    *rest, last = first, *rest
    if context.volatile and isinstance(last, ModelRequest):
        last = replace(last, parts=[*last.parts, UserPromptPart(context.volatile)])
    return [*rest, last]


_OF_A_TURN = (UserPromptPart, ToolReturnPart, RetryPromptPart)


def begins(message: ModelMessage) -> bool:
    """Whether a turn begins here: a user's words, and no tool's answer."""
    return (
        isinstance(message, ModelRequest)
        and any(isinstance(part, UserPromptPart) for part in message.parts)
        and not any(isinstance(part, ToolReturnPart | RetryPromptPart) for part in message.parts)
    )


def said(messages: Sequence[ModelMessage]) -> list[Said]:
    """What people, models and tools said."""
    called = {
        part.tool_call_id: part.args_as_dict()
        for message in messages
        if isinstance(message, ModelResponse)
        for part in message.parts
        if isinstance(part, ToolCallPart)
    }
    return [part for message in messages for part in _said(message, called)]


def _said(message: ModelMessage, called: dict[str, Any]) -> Iterator[Said]:
    if isinstance(message, ModelResponse):
        for part in message.parts:
            if isinstance(part, TextPart):
                yield Said(role="assistant", text=part.content, id=digest("assistant", str(message.timestamp), part.content))
        return
    for each in message.parts:
        yield from _asked(each, called)


def _asked(part: ModelRequestPart, called: dict[str, Any]) -> Iterator[Said]:
    if isinstance(part, UserPromptPart):
        parts = [part.content] if isinstance(part.content, str) else part.content
        words = "\n".join(
            each if isinstance(each, str) else each.content for each in parts if isinstance(each, str | TextContent)
        )
        yield Said(role="user", text=words, id=digest("user", str(part.timestamp), words))
    elif isinstance(part, ToolReturnPart):
        text = part.model_response_str(wrap_if_error=False)
        given, failed = called.get(part.tool_call_id), part.outcome != "success"
        yield Said(role="tool", text=text, id=part.tool_call_id, tool=part.tool_name, input=given, failed=failed)
    elif isinstance(part, RetryPromptPart) and part.tool_name:
        text = part.model_response()
        yield Said(role="tool", text=text, id=part.tool_call_id, tool=part.tool_name, failed=True)
    elif isinstance(part, SystemPromptPart):
        yield Said(role="system", text=part.content)
