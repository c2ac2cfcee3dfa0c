"""LangChain and LangGraph: a middleware for `create_agent`.

Comes in: the messages of a model call. Goes out: the same call with the computed context around its last turns, and what was
said in a run, as events. The messages in the graph's state stay as they are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from foveate.engine import Engine
from foveate.integrations import requires_extra
from foveate.integrations.conversation import TURNS, Said, Seat
from foveate.pipeline.context import Context

with requires_extra("langchain"):
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
    from langchain.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage


class ComputedContext(AgentMiddleware[Any, Any, Any]):
    """`create_agent(model, middleware=[ComputedContext(engine, budget=2000)])`. Further options are those of `compute`."""

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
        super().__init__()
        self._seat = Seat(
            engine=engine, budget=budget, turns=turns, session=session, agent=agent, keeps=keeps, options=options
        )

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        stay = self._stay(request.messages)
        context = self._seat.ready(_said(request.messages), _said(stay), session=self._session(request.runtime))
        return handler(_projected(request, stay, context))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        stay = self._stay(request.messages)
        session = self._session(request.runtime)
        context = await self._seat.aready(_said(request.messages), _said(stay), session=session)
        return await handler(_projected(request, stay, context))

    def after_agent(self, state: Any, runtime: Any) -> None:
        self._seat.keep(_said(state["messages"]), session=self._session(runtime))

    async def aafter_agent(self, state: Any, runtime: Any) -> None:
        await self._seat.akeep(_said(state["messages"]), session=self._session(runtime))

    def _stay(self, messages: Sequence[AnyMessage]) -> list[AnyMessage]:
        """The last turns, and what the developer said before them."""
        turns = self._seat.latest(messages, lambda message: _role(message) == "user")
        before = messages[: len(messages) - len(turns)]
        return [*(message for message in before if isinstance(message, SystemMessage)), *turns]

    def _session(self, runtime: Any) -> str | None:
        """The caller's session, else the thread."""
        thread = getattr(getattr(runtime, "execution_info", None), "thread_id", None)
        return self._seat.session or (None if thread is None else str(thread))


def _projected(request: ModelRequest[Any], stay: list[AnyMessage], context: Context | None) -> ModelRequest[Any]:
    """The stable part ends the instructions, the volatile part ends the messages: a cached beginning stays one."""
    if context is None:
        return request
    system = _with(request.system_message, context.stable) if context.stable else request.system_message
    last = [HumanMessage(context.volatile)] if context.volatile else []
    return request.override(system_message=system, messages=[*stay, *last])


def _with(system: SystemMessage | None, stable: str) -> SystemMessage:
    if system is None:
        return SystemMessage(stable)
    if isinstance(system.content, str):
        return system.model_copy(update={"content": f"{system.content}\n\n{stable}"})
    return system.model_copy(update={"content": [*system.content, {"type": "text", "text": stable}]})


def _role(message: Any) -> Any:
    """Who speaks. A summary that another middleware wrote is in nobody's words, whatever message it came as."""
    if isinstance(message, HumanMessage):
        return "system" if message.additional_kwargs.get("lc_source") else "user"
    return "tool" if isinstance(message, ToolMessage) else "assistant" if isinstance(message, AIMessage) else "system"


def _said(messages: Sequence[Any]) -> list[Said]:
    """The messages as foveate reads them. Their ids are made anew whenever a history is handed in, and are of no use."""
    calls = {call["id"]: call for each in messages if isinstance(each, AIMessage) for call in each.tool_calls}
    said = []
    for message in messages:
        call: Any = calls.get(getattr(message, "tool_call_id", None), {})
        tool = getattr(message, "name", None) or call.get("name", "") if isinstance(message, ToolMessage) else ""
        failed = getattr(message, "status", "") == "error"
        said.append(Said(role=_role(message), text=str(message.text), tool=tool, input=call.get("args"), failed=failed))
    return said
