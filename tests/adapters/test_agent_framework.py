"""Microsoft Agent Framework: what the model receives, what is kept, and what happens when the store is gone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from threading import get_ident
from typing import Any

import pytest
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

import foveate
from foveate.clock import now
from foveate.integrations.agent_framework import ComputedContext

RULE = "Never deploy on a Friday"
FACT = "The deploy of the shop takes four minutes"


class Client(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    """A chat client with the framework's own layers that answers from a list and notes what it was sent."""

    def __init__(self, *answers: Any) -> None:
        super().__init__()
        self.answers = list(answers)
        self.received: list[tuple[str, list[Message]]] = []

    def _inner_get_response(self, *, messages: Sequence[Message], stream: bool, options: Any, **more: Any) -> Any:
        self.received.append((options.get("instructions") or "", list(messages)))
        answer = self.answers[len(self.received) - 1]

        async def respond() -> ChatResponse[Any]:
            return ChatResponse(messages=[Message("assistant", [answer])])

        async def updates() -> AsyncIterator[ChatResponseUpdate]:
            yield ChatResponseUpdate(role="assistant", contents=[Content.from_text(answer)])

        return self._build_response_stream(updates()) if stream else respond()


@tool(approval_mode="never_require")
def look_up(name: str) -> str:
    """Look something up."""
    if name == "moon":
        raise ValueError("no moon today")
    return f"{name}: 3 replicas"


def call(name: str = "shop", id: str = "c1") -> Content:
    return Content.from_function_call(id, "look_up", arguments={"name": name})


@pytest.fixture
def engine() -> Iterator[foveate.Engine]:
    with foveate.open(":memory:") as engine:
        engine.add("instruction", RULE)
        engine.add("fact", FACT)
        yield engine


def events(engine: foveate.Engine) -> list[tuple[str, str, str, str | None]]:
    with engine.store.data.reader() as reader:
        kept = [each for each in reader.records() if each.kind == "event"]
    return [(each.data["type"], each.text, each.trust, each.scope.session) for each in kept]


def run(agent: Agent[Any], *questions: str, session: Any = None) -> None:
    async def main() -> None:
        for question in questions:
            await agent.run(question, session=session)

    asyncio.run(main())


def roles(messages: Sequence[Message]) -> list[str]:
    return [message.role for message in messages]


def test_the_stable_part_ends_the_instructions_and_the_volatile_part_ends_the_messages(engine: foveate.Engine) -> None:
    client = Client("Four minutes.", "Yes.")
    agent = Agent(client, instructions="You help.", context_providers=[ComputedContext(engine, budget=300)])
    run(agent, "How long does the deploy of the shop take?", "Is the deploy of the shop slow?")
    (told, first), (told_again, _) = client.received
    assert told.startswith("You help.\n\n")
    assert RULE in told
    assert told_again == told, "the instructions are the same, byte for byte"
    question, context = first
    assert question.text == "How long does the deploy of the shop take?"
    assert FACT in context.text
    assert FACT not in told
    assert foveate.count(told.removeprefix("You help.\n\n") + context.text) <= 300


def test_a_tools_call_keeps_its_result_and_both_are_kept_once(engine: foveate.Engine) -> None:
    client = Client(call(), "Three.")
    agent = Agent(client, tools=[look_up], context_providers=[ComputedContext(engine)])
    session = agent.create_session(session_id="s1")
    run(agent, "How many replicas has the shop?", session=session)
    assert roles(client.received[1][1]) == ["user", "assistant", "tool", "user"]
    assert events(engine) == [
        ("user_message", "How many replicas has the shop?", "user", "s1"),
        ("tool_call", "look_up\nshop: 3 replicas", "tool", "s1"),
        ("assistant_message", "Three.", "agent", "s1"),
    ]


def test_a_tool_that_fails_is_kept_as_a_failure(engine: foveate.Engine) -> None:
    client = Client(call("moon"), "No.")
    run(Agent(client, tools=[look_up], context_providers=[ComputedContext(engine)]), "How many replicas has the moon?")
    with engine.store.data.reader() as reader:
        outcomes = [each.outcome for each in reader.records() if each.data.get("type") == "tool_call"]
    assert outcomes == ["failure"]


def test_older_turns_are_dropped_from_the_request_and_not_from_the_session(engine: foveate.Engine) -> None:
    said = [part for n in range(3) for part in (call(f"part {n}", f"c{n}"), f"Answer {n}")]
    client = Client(*said, "Done.")
    agent = Agent(client, tools=[look_up], context_providers=[ComputedContext(engine, turns=2)])
    session = agent.create_session(session_id="s1")
    run(agent, *(f"Question {n} on the shop" for n in range(4)), session=session)
    messages = client.received[-1][1]
    assert [message.text for message in messages[:-1] if message.role == "user"] == [
        "Question 2 on the shop",
        "Question 3 on the shop",
    ]
    kinds = [content.type for message in messages for content in message.contents]
    assert kinds.count("function_call") == kinds.count("function_result") == 1
    history = session.state["in_memory"]["messages"]
    assert [message.text for message in history if message.role == "user"] == [f"Question {n} on the shop" for n in range(4)]


def test_three_runs_in_one_session_keep_each_message_once_and_show_none_twice(engine: foveate.Engine) -> None:
    client = Client("The red one.", "Because of the rain.", "The blue one.")
    agent = Agent(client, context_providers=[ComputedContext(engine, turns=1)])
    session = agent.create_session(session_id="s1")
    run(agent, "Which umbrella did we buy?", "Why that umbrella?", "Which umbrella is left?", session=session)
    kept = events(engine)
    assert len(kept) == len(set(kept)) == 6
    context = client.received[-1][1][-1].text
    assert "The red one." in context, "a turn that was dropped comes back from state"
    assert "Which umbrella is left?" not in context, "what the prompt holds anyway is not shown twice"


def test_the_block_is_not_stored_where_every_call_is(engine: foveate.Engine) -> None:
    client = Client(call(), "Three.")
    agent = Agent(
        client,
        tools=[look_up],
        context_providers=[ComputedContext(engine)],
        require_per_service_call_history_persistence=True,
    )
    session = agent.create_session(session_id="s1")
    run(agent, "How many replicas has the shop?", session=session)
    stored = session.state["in_memory"]["messages"]
    assert [message.text for message in stored if message.role == "user"] == ["How many replicas has the shop?"]


def test_streaming_works_too_and_the_engine_is_at_work_in_other_threads() -> None:
    threads: set[int] = set()

    def clock() -> int:
        threads.add(get_ident())
        return now()

    async def main(agent: Agent[Any]) -> str:
        return "".join([update.text async for update in agent.run("How long does the deploy take?", stream=True)])

    with foveate.open(":memory:", clock=clock) as engine:
        engine.add("fact", FACT)
        client = Client("Four minutes.")
        threads.clear()
        assert asyncio.run(main(Agent(client, context_providers=[ComputedContext(engine)]))) == "Four minutes."
        assert FACT in client.received[0][1][-1].text
        assert [kind for kind, *_ in events(engine)] == ["user_message", "assistant_message"]
    assert threads
    assert get_ident() not in threads


def test_a_store_that_is_gone_does_not_break_the_run(engine: foveate.Engine, caplog: pytest.LogCaptureFixture) -> None:
    client = Client("Hello.")
    agent = Agent(client, instructions="You help.", context_providers=[ComputedContext(engine)])
    engine.close()
    with caplog.at_level(logging.WARNING, "foveate.agents"):
        run(agent, "How long does the deploy take?")
    told, messages = client.received[0]
    assert (told, roles(messages)) == ("You help.", ["user"])
    assert len(caplog.records) == 3
