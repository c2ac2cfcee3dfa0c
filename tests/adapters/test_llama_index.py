"""LlamaIndex: where the block is inserted, and how it shrinks. See also `test_every_adapter`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.memory import InsertMethod, Memory
from sqlalchemy.ext.asyncio import create_async_engine

import foveate
from foveate.integrations.llama_index import ComputedContextBlock

pytestmark = pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")  # LlamaIndex's own

RULE = "Never deploy on a Friday"
FACT = "The deploy of the shop takes four minutes"


@pytest.fixture
def engine() -> Iterator[foveate.Engine]:
    with foveate.open(":memory:") as engine:
        engine.add("instruction", RULE)
        engine.add("fact", FACT)
        yield engine


@pytest.fixture
def memory(engine: foveate.Engine) -> Iterator[Callable[..., Memory]]:
    """Makes memories with the block; their database connections are closed in the end."""
    databases = []

    def made(token_limit: int = 30_000, **options: Any) -> Memory:
        databases.append(create_async_engine("sqlite+aiosqlite:///:memory:"))
        return Memory.from_defaults(
            session_id="s1",
            token_limit=token_limit,
            memory_blocks=[ComputedContextBlock(engine, **options)],
            insert_method=InsertMethod.USER,
            async_engine=databases[-1],
        )

    yield made
    for database in databases:
        asyncio.run(database.dispose())


def look_up(name: str) -> str:
    """Look something up."""
    return f"{name}: 3 replicas"


def agent(*answers: ChatMessage) -> tuple[FunctionAgent, list[list[ChatMessage]]]:
    """An agent on LlamaIndex's own mock model, and what the model was sent."""
    received: list[list[ChatMessage]] = []

    def answer(messages: Sequence[ChatMessage], **options: Any) -> ChatMessage:
        received.append([each.model_copy(deep=True) for each in messages])
        return answers[len(received) - 1]

    model = MockFunctionCallingLLM(response_generator=answer, is_chat_model=True)
    made = FunctionAgent(llm=model, tools=[look_up], system_prompt="You help.", streaming=False)
    return made, received


def said(text: str) -> ChatMessage:
    return ChatMessage(role="assistant", content=text)


def call(name: str = "shop") -> ChatMessage:
    block = ToolCallBlock(tool_call_id="c1", tool_name="look_up", tool_kwargs={"name": name})
    return ChatMessage(role="assistant", blocks=[block])


def run(made: FunctionAgent, kept: Memory, *questions: str) -> None:
    async def main() -> None:
        for question in questions:
            await made.run(question, memory=kept)

    asyncio.run(main())


def test_the_model_reads_the_context_with_the_latest_question(engine: foveate.Engine, memory: Callable[..., Memory]) -> None:
    made, received = agent(said("Four minutes."))
    run(made, memory(budget=300), "How long does the deploy of the shop take?")
    system, user = received[0]
    assert system.content == "You help.", "the agent's own instructions are as they were"
    block, question = user.blocks
    assert question.text == "How long does the deploy of the shop take?"
    assert RULE in block.text
    assert FACT in block.text
    assert foveate.count(block.text) <= 300 + foveate.count("<memory>\n<computed_context></computed_context>\n</memory>")


def test_a_tool_loop_keeps_the_block_where_it_was(engine: foveate.Engine, memory: Callable[..., Memory]) -> None:
    made, received = agent(call(), said("Three."))
    run(made, memory(), "How many replicas has the shop?")
    first, second = received
    assert [each.role.value for each in second] == ["system", "user", "assistant", "tool"]
    assert second[1].blocks == first[1].blocks, "the beginning of the second call is that of the first"


def test_what_leaves_the_short_term_memory_comes_back_from_state(
    engine: foveate.Engine, memory: Callable[..., Memory]
) -> None:
    kept = memory(token_limit=90, priority=0)
    said_so = ["The umbrella is red because of the rain in Lisbon", *(f"Filler {n} " + "word " * 20 for n in range(4))]

    async def main() -> str:
        for text in said_so:
            await kept.aput(ChatMessage(role="user", content=text))
            await kept.aput(said("Noted."))
        await kept.aput(ChatMessage(role="user", content="Which umbrella is it?"))
        return str((await kept.aget())[-1].blocks[0].text)

    block = asyncio.run(main())
    assert said_so[0] not in [each.content for each in asyncio.run(kept.aget())]
    assert "The umbrella is red" in block


@pytest.mark.parametrize("limit", [400, 200, 100])
def test_less_room_is_a_smaller_context_and_not_a_cut_one(
    engine: foveate.Engine, memory: Callable[..., Memory], limit: int
) -> None:
    for n in range(30):
        engine.add("fact", f"The deploy of part {n} of the shop takes {n} minutes and needs two people at least")

    def shown(limit: int) -> str:
        kept = memory(token_limit=limit, budget=600, remember=False)
        kept.put(ChatMessage(role="user", content="How long does the deploy of the shop take?"))
        return str(kept.get()[-1].blocks[0].text)

    whole, less = shown(30_000), shown(limit)
    assert foveate.count(less, "cl100k") < foveate.count(whole, "cl100k")
    assert foveate.count(less, "cl100k") <= limit, "by LlamaIndex's own tokenizer"
    assert RULE in less
    lines = [line for line in less.splitlines() if line.startswith("- ")]
    assert lines
    assert all(line in whole for line in lines), "whole lines"


def test_no_room_at_all_drops_the_block(engine: foveate.Engine) -> None:
    block = ComputedContextBlock(engine)
    text = asyncio.run(block.aget([ChatMessage(role="user", content="How long does the deploy take?")]))
    assert asyncio.run(block.atruncate(text, 10_000)) is None
    assert asyncio.run(block.atruncate(text, foveate.count(text) - 2)) is None, "rules that do not fit are not cut"
    assert asyncio.run(block.atruncate("something else", 1)) is None


@pytest.mark.parametrize("change", [lambda block: block.name, lambda block: str(block.priority)])
def test_fields_of_llama_index_can_be_set(engine: foveate.Engine, change: Callable[[Any], str]) -> None:
    assert change(ComputedContextBlock(engine, name="known", priority=7)) in ("known", "7")
