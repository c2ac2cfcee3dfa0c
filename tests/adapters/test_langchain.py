"""LangChain: what the model receives, what is kept, and what happens when the store is gone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from threading import get_ident
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain.tools import tool
from langchain_core.language_models import FakeMessagesListChatModel
from langgraph.checkpoint.memory import InMemorySaver

import foveate
from foveate.clock import now
from foveate.errors import ProfileError
from foveate.integrations.langchain import ComputedContext

RULE = "Never deploy on a Friday"
FACT = "The deploy of the shop takes four minutes"


class Model(FakeMessagesListChatModel):
    """LangChain's fake model, which also notes what it was sent."""

    received: list[list[Any]]

    def bind_tools(self, tools: Any, **options: Any) -> Model:
        return self

    def _generate(self, messages: list[Any], *args: Any, **options: Any) -> Any:
        self.received.append(messages)
        return super()._generate(messages, *args, **options)


@tool
def look_up(name: str) -> str:
    """Look something up."""
    return f"{name}: 3 replicas"


def model(*answers: str | AIMessage) -> Model:
    said = [answer if isinstance(answer, AIMessage) else AIMessage(answer) for answer in answers]
    return Model(responses=said, received=[])


def call(name: str = "shop", id: str = "call_1") -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "look_up", "args": {"name": name}, "id": id}])


@pytest.fixture
def engine() -> Iterator[foveate.Engine]:
    with foveate.open(":memory:") as engine:
        engine.add("instruction", RULE)
        engine.add("fact", FACT)
        yield engine


def events(engine: foveate.Engine) -> list[tuple[str, str, str, str | None]]:
    """(type, text, trust, session) of what was kept, oldest first."""
    with engine.store.data.reader() as reader:
        kept = [each for each in reader.records() if each.kind == "event"]
    return [(each.data["type"], each.text, each.trust, each.scope.session) for each in kept]


def ask(agent: Any, text: str, thread: str | None = None) -> Any:
    config: Any = {"configurable": {"thread_id": thread}} if thread else None
    return agent.invoke({"messages": [HumanMessage(text)]}, config)


def test_the_stable_part_ends_the_instructions_and_the_volatile_part_ends_the_messages(engine: foveate.Engine) -> None:
    fake = model("Four minutes.", "Yes.")
    agent = create_agent(fake, system_prompt="You help.", middleware=[ComputedContext(engine, budget=300)])
    ask(agent, "How long does the deploy of the shop take?")
    ask(agent, "Is the deploy of the shop slow?")
    first, second = fake.received
    system, user, context = first
    assert system.text.startswith("You help.\n\n")
    assert RULE in system.text
    assert FACT not in system.text
    assert (user.type, user.text) == ("human", "How long does the deploy of the shop take?")
    assert (context.type, FACT in context.text, RULE in context.text) == ("human", True, False)
    assert second[0].text == system.text, "the instructions are the same, byte for byte"
    assert foveate.count(system.text.removeprefix("You help.\n\n") + context.text) <= 300


def test_blocks_of_the_system_prompt_stay_as_they_are(engine: foveate.Engine) -> None:
    fake = model("Yes.", "Yes.")
    marked: Any = {"type": "text", "text": "You help.", "cache_control": {"type": "ephemeral"}}
    ask(create_agent(fake, system_prompt=SystemMessage([marked]), middleware=[ComputedContext(engine)]), "deploy the shop?")
    ask(create_agent(fake, middleware=[ComputedContext(engine)]), "deploy the shop?")
    with_blocks, without = (messages[0] for messages in fake.received)
    assert with_blocks.content[0] == marked
    assert RULE in with_blocks.content[1]["text"] == without.content


def test_a_tools_call_keeps_its_result_and_both_are_kept_once(engine: foveate.Engine) -> None:
    fake = model(call(), "Three.")
    agent = create_agent(fake, [look_up], middleware=[ComputedContext(engine)])
    done = ask(agent, "How many replicas has the shop?")
    types = [message.type for message in fake.received[1]]
    assert types == ["system", "human", "ai", "tool", "human"]
    assert [message.type for message in done["messages"]] == ["human", "ai", "tool", "ai"], "the state has no trace of it"
    assert events(engine) == [
        ("user_message", "How many replicas has the shop?", "user", "main"),
        ("tool_call", "look_up\nshop: 3 replicas", "tool", "main"),
        ("assistant_message", "Three.", "agent", "main"),
    ]


@pytest.mark.parametrize(("turns", "left"), [(1, 1), (2, 2), (None, 4)])
def test_older_turns_are_dropped_from_the_request_and_not_from_the_thread(
    engine: foveate.Engine, turns: int | None, left: int
) -> None:
    said = [part for n in range(3) for part in (call(f"part {n}", f"call_{n}"), f"Answer {n}")]
    fake = model(*said, "Done.")
    saver = InMemorySaver()
    agent = create_agent(fake, [look_up], middleware=[ComputedContext(engine, turns=turns)], checkpointer=saver)
    for n in range(3):
        ask(agent, f"Question {n} on the shop", "t1")
    whole = ask(agent, "Question 3 on the shop", "t1")["messages"]
    last = fake.received[-1]
    assert [message.text for message in last[:-1] if message.type == "human"] == [
        f"Question {n} on the shop" for n in range(4 - left, 4)
    ]
    calls = [each["id"] for message in last if isinstance(message, AIMessage) for each in message.tool_calls]
    assert calls == [message.tool_call_id for message in last if isinstance(message, ToolMessage)]
    assert len([message for message in whole if message.type == "human"]) == 4


def test_three_runs_in_one_thread_keep_each_message_once_and_show_none_twice(engine: foveate.Engine) -> None:
    fake = model("The red one.", "Because of the rain.", "The blue one.")
    agent = create_agent(fake, middleware=[ComputedContext(engine, turns=1)], checkpointer=InMemorySaver())
    for text in ("Which umbrella did we buy?", "Why that umbrella?", "Which umbrella is left?"):
        ask(agent, text, "t1")
    kept = events(engine)
    assert len(kept) == len(set(kept)) == 6
    assert {session for *_, session in kept} == {"t1"}
    context = fake.received[-1][-1].text
    assert "The red one." in context, "a turn that was dropped comes back from state"
    assert "Which umbrella is left?" not in context, "what the prompt holds anyway is not shown twice"
    assert all(
        message.text != context for message in agent.get_state({"configurable": {"thread_id": "t1"}}).values["messages"]
    )


def test_a_whole_history_that_is_handed_in_again_adds_nothing(engine: foveate.Engine) -> None:
    agent = create_agent(model("Blue.", "Blue."), middleware=[ComputedContext(engine, session="s1")])
    history: list[Any] = [HumanMessage("Which one?")]
    for _ in range(2):
        agent.invoke({"messages": [{"role": each.type, "content": each.text} for each in history]})
    assert [session for *_, session in events(engine)] == ["s1", "s1"]


def test_a_summary_by_another_middleware_is_not_kept_as_a_persons_words(engine: foveate.Engine) -> None:
    fake = model("Blue.")
    agent = create_agent(fake, middleware=[ComputedContext(engine)])
    summary = HumanMessage("Summary so far: trees", additional_kwargs={"lc_source": "summarization"})
    agent.invoke({"messages": [summary, HumanMessage("Which one?")]})
    assert [text for _, text, *_ in events(engine)] == ["Which one?", "Blue."]
    assert any(message.text == summary.text for message in fake.received[0])


def test_the_async_way_gives_the_same_and_does_not_block_the_loop() -> None:
    fake = model(call(), "Three.")
    threads: set[int] = set()

    def clock() -> int:
        threads.add(get_ident())
        return now()

    with foveate.open(":memory:", clock=clock) as engine:
        engine.add("instruction", RULE)
        agent = create_agent(fake, [look_up], middleware=[ComputedContext(engine, budget=300)])
        threads.clear()
        asyncio.run(agent.ainvoke({"messages": [HumanMessage("How many replicas has the shop?")]}))
        assert [kind for kind, *_ in events(engine)] == ["user_message", "tool_call", "assistant_message"]
    assert [message.type for message in fake.received[0]] == ["system", "human"]
    assert threads
    assert get_ident() not in threads, "the engine was at work in other threads only"


def test_a_store_that_is_gone_does_not_break_the_run(engine: foveate.Engine, caplog: pytest.LogCaptureFixture) -> None:
    fake = model("Hello.")
    agent = create_agent(fake, system_prompt="You help.", middleware=[ComputedContext(engine)])
    engine.close()
    with caplog.at_level(logging.WARNING, "foveate.agents"):
        assert ask(agent, "How long does the deploy take?")["messages"][-1].text == "Hello."
    assert [message.type for message in fake.received[0]] == ["system", "human"]
    assert len(caplog.records) == 3, "one line for the context, one each time that something was not kept"


def test_nothing_is_kept_where_that_is_not_wanted(engine: foveate.Engine) -> None:
    ask(create_agent(model("Yes."), middleware=[ComputedContext(engine, keeps=False)]), "Is it on?")
    assert events(engine) == []


def test_a_wrong_option_is_an_error_and_not_a_silent_prompt(engine: foveate.Engine) -> None:
    agent = create_agent(model("Yes."), middleware=[ComputedContext(engine, profile="bse")])
    with pytest.raises(ProfileError, match="Did you mean 'base'"):
        ask(agent, "Is it on?")
