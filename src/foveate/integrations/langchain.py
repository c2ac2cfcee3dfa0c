"""LangChain and LangGraph: a middleware for `create_agent`.

It changes each call of the model: the system message and the last turns, with the computed context around them. The
messages in the graph's state stay as they are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Unpack

from foveate.engine import Engine
from foveate.integrations import requires_extra
from foveate.integrations.conversation import Conversation, ConversationMessage, HistoryOptions, Role
from foveate.receipts.context import Context

with requires_extra("langchain"):
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
    from langchain.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage


class ComputedContext(AgentMiddleware[Any, Any, Any]):
    """Adds a computed context to each call: `create_agent(model, middleware=[ComputedContext(engine, budget=2000)])`."""

    def __init__(self, engine: Engine, **options: Unpack[HistoryOptions]) -> None:
        super().__init__()
        self._conversation = Conversation(engine, **options)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        kept = self._kept_messages(request.messages)
        context = self._conversation.remember_and_compute(
            _convert_messages(request.messages), _convert_messages(kept), session=self._session_name(request.runtime)
        )
        return handler(_rewrite_request(request, kept, context))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        kept = self._kept_messages(request.messages)
        context = await self._conversation.aremember_and_compute(
            _convert_messages(request.messages), _convert_messages(kept), session=self._session_name(request.runtime)
        )
        return await handler(_rewrite_request(request, kept, context))

    def after_agent(self, state: Any, runtime: Any) -> None:
        self._conversation.remember(_convert_messages(state["messages"]), session=self._session_name(runtime))

    async def aafter_agent(self, state: Any, runtime: Any) -> None:
        await self._conversation.aremember(_convert_messages(state["messages"]), session=self._session_name(runtime))

    def _kept_messages(self, messages: Sequence[AnyMessage]) -> list[AnyMessage]:
        return self._conversation.kept_messages(messages, lambda message: _role(message) == "user", _is_system)

    def _session_name(self, runtime: Any) -> str | None:
        """Return the session of the options, else the graph's thread."""
        thread = getattr(getattr(runtime, "execution_info", None), "thread_id", None)
        return self._conversation.session or (None if thread is None else str(thread))


def _rewrite_request(request: ModelRequest[Any], kept: list[AnyMessage], context: Context | None) -> ModelRequest[Any]:
    """Append the stable part to the system message and the volatile part to the messages, so that prompt caches hold."""
    if context is None:
        return request
    system = _append_system_text(request.system_message, context.stable) if context.stable else request.system_message
    volatile = [HumanMessage(context.volatile)] if context.volatile else []
    return request.override(system_message=system, messages=[*kept, *volatile])


def _append_system_text(system: SystemMessage | None, stable_text: str) -> SystemMessage:
    if system is None:
        return SystemMessage(stable_text)
    if isinstance(system.content, str):
        return system.model_copy(update={"content": f"{system.content}\n\n{stable_text}"})
    return system.model_copy(update={"content": [*system.content, {"type": "text", "text": stable_text}]})


def _is_system(message: Any) -> bool:
    return isinstance(message, SystemMessage)


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
                tool=message.name or call.get("name", "") if is_tool else "",
                tool_input=call.get("args"),
                failed=is_tool and message.status == "error",
            )
        )
    return converted
