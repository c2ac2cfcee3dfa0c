"""LangChain and LangGraph: a middleware for `create_agent`.

It changes each call of the model: the system message and the last turns, with the computed context around them. The
messages in the graph's state stay as they are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Unpack

from foveate.engine import Engine
from foveate.integrations import requires_extra
from foveate.integrations.conversation import Conversation, HistoryOptions, MessageFormat, Prompt, message_time
from foveate.memory.messages import ConversationMessage, Role

with requires_extra("langchain"):
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
    from langchain.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage


_OUTCOMES = {"success": "success", "error": "failure"}


class ComputedContext(AgentMiddleware[Any, Any, Any]):
    """Adds a computed context to each call: `create_agent(model, middleware=[ComputedContext(engine, budget=2000)])`.

    A function in the option `user` receives LangGraph's runtime: `user=lambda runtime: runtime.context.user`.
    """

    def __init__(self, engine: Engine, **options: Unpack[HistoryOptions]) -> None:
        super().__init__()
        self._conversation = Conversation(engine, _FORMAT, **options)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        prompt = self._conversation.prompt(request.messages, session=_thread_id(request.runtime), run=request.runtime)
        return handler(_rewrite_request(request, prompt))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        prompt = await self._conversation.aprompt(request.messages, session=_thread_id(request.runtime), run=request.runtime)
        return await handler(_rewrite_request(request, prompt))

    def after_agent(self, state: Any, runtime: Any) -> None:
        self._conversation.remember(state["messages"], session=_thread_id(runtime), run=runtime)

    async def aafter_agent(self, state: Any, runtime: Any) -> None:
        await self._conversation.aremember(state["messages"], session=_thread_id(runtime), run=runtime)


def _thread_id(runtime: Any) -> str | None:
    """Return the graph's thread, which is the session."""
    thread = getattr(getattr(runtime, "execution_info", None), "thread_id", None)
    return None if thread is None else str(thread)


def _rewrite_request(request: ModelRequest[Any], prompt: Prompt[AnyMessage] | None) -> ModelRequest[Any]:
    """Append the stable part to the system message and the volatile part to the messages, so that prompt caches hold."""
    if prompt is None:
        return request
    system = _append_system_text(request.system_message, prompt.stable) if prompt.stable else request.system_message
    volatile = [HumanMessage(prompt.volatile)] if prompt.volatile else []
    return request.override(system_message=system, messages=[*prompt.messages, *volatile])


def _append_system_text(system: SystemMessage | None, stable_text: str) -> SystemMessage:
    if system is None:
        return SystemMessage(stable_text)
    if isinstance(system.content, str):
        return system.model_copy(update={"content": f"{system.content}\n\n{stable_text}"})
    return system.model_copy(update={"content": [*system.content, {"type": "text", "text": stable_text}]})


def _role(message: Any) -> Role:
    """Return who wrote a message. The summary of another middleware comes as a `HumanMessage`, but no person wrote it."""
    if isinstance(message, HumanMessage):
        return "system" if message.additional_kwargs.get("lc_source") else "user"
    return "tool" if isinstance(message, ToolMessage) else "assistant" if isinstance(message, AIMessage) else "system"


def _convert_messages(messages: Sequence[Any]) -> list[ConversationMessage]:
    """Convert messages, without their ids: LangChain makes new ones whenever a history is handed in."""
    calls = {call["id"]: call for each in messages if isinstance(each, AIMessage) for call in each.tool_calls}
    converted = []
    for message in messages:
        call: Any = calls.get(getattr(message, "tool_call_id", None), {})
        is_tool = isinstance(message, ToolMessage)
        converted.append(
            ConversationMessage(
                role=_role(message),
                text=str(message.text),
                name=message.name or call.get("name", ""),
                at=message_time(message.additional_kwargs, message.response_metadata),
                tool_input=call.get("args"),
                outcome=_OUTCOMES.get(message.status) if is_tool else None,
            )
        )
    return converted


_FORMAT: MessageFormat[AnyMessage] = MessageFormat(
    _convert_messages,
    is_turn_start=lambda message: _role(message) == "user",
    is_system=lambda message: isinstance(message, SystemMessage),
)
