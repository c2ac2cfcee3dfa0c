"""Microsoft Agent Framework: histories that are stored at every call, and streams. See also `test_every_adapter`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    tool,
)

from foveate import Engine, Record
from foveate.integrations.agent_framework import ComputedContext


class Client(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    """A chat client with the framework's own layers that answers from a list and records what it was sent."""

    def __init__(self, *answers: Any) -> None:
        super().__init__()
        self.answers = list(answers)
        self.received: list[list[Message]] = []

    def _inner_get_response(self, *, messages: Sequence[Message], stream: bool, options: Any, **more: Any) -> Any:
        self.received.append(list(messages))
        answer = self.answers[len(self.received) - 1]

        async def respond() -> ChatResponse[Any]:
            return ChatResponse(messages=[Message("assistant", [answer])])

        async def updates() -> AsyncIterator[ChatResponseUpdate]:
            yield ChatResponseUpdate(role="assistant", contents=[Content.from_text(answer)])

        return self._build_response_stream(updates()) if stream else respond()


@tool(approval_mode="never_require")
def look_up(name: str) -> str:
    """Look something up."""
    return f"{name}: 3 replicas"


def test_the_context_is_not_stored_where_every_call_is(memory: Engine) -> None:
    call = Content.from_function_call("c1", "look_up", arguments={"name": "shop"})
    agent = Agent(
        Client(call, "Three."),
        tools=[look_up],
        context_providers=[ComputedContext(memory)],
        require_per_service_call_history_persistence=True,
    )
    session = agent.create_session(session_id="s1")
    asyncio.run(agent.run("How many replicas has the shop?", session=session))
    history = session.state["in_memory"]["messages"]
    assert [message.text for message in history if message.role == "user"] == ["How many replicas has the shop?"]


def test_a_stream_receives_and_stores_the_same(memory: Engine, stored: Callable[..., list[Record]]) -> None:
    client = Client("Five minutes.")

    async def main(agent: Agent[Any]) -> str:
        return "".join([update.text async for update in agent.run("How long took deploy number 5?", stream=True)])

    assert asyncio.run(main(Agent(client, context_providers=[ComputedContext(memory)]))) == "Five minutes."
    assert "Deploy number 5" in client.received[0][-1].text
    assert [event.data["type"] for event in stored()] == ["user_message", "assistant_message"]
