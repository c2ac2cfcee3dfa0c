"""What an adapter costs: the CPU time of one model call through it, beside one that calls `engine.compute` by hand.

Both run the same framework with a fake model and hand it the same text; by hand means in the loop's own thread, and nothing
besides. What the adapter takes more is shown as a share of `engine.compute` alone. The store holds real text. Keeping what
was said is a write of its own, and is measured apart. A framework that is not installed is left out.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from shutil import copytree
from statistics import median
from typing import Any

import foveate
from bench.corpus import docs, queries
from bench.speed import cpu, fill

RECORDS = int(os.environ.get("FOVEATE_BENCH_RECORDS", "10000"))
ASKED = int(os.environ.get("FOVEATE_BENCH_ASKED", "160"))
OPTIONS: dict[str, Any] = {"budget": 2000, "session": "bench"}
WARMING = 30
"""Questions before it counts: modules are loaded then, and the worker's thread opens a connection of its own."""

TARGET = 10.0
"""Percent over `engine.compute` alone."""

Call = Callable[[str], object]
Pair = tuple[Call, Call]
"""A model call that computes its context by hand, and one through the adapter."""

ByHand = Callable[[str], str]
"""The context of a question."""

loop = asyncio.new_event_loop()


def ours(module: str, name: str) -> Any:
    return getattr(import_module(f"foveate.agents.adapters.{module}"), name)


def langchain(engine: foveate.Engine, by_hand: ByHand, **options: Any) -> Pair:
    from langchain.agents import create_agent
    from langchain.agents.middleware import AgentMiddleware
    from langchain_core.language_models import FakeListChatModel
    from langchain_core.messages import HumanMessage

    class Nothing(AgentMiddleware):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            *before, last = request.messages
            said = HumanMessage(by_hand(last.content))
            return handler(request.override(messages=[*before, last, said]))

        def after_agent(self, state: Any, runtime: Any) -> None:
            return None

    def calling(middleware: Any) -> Call:
        agent = create_agent(FakeListChatModel(responses=["Yes."]), middleware=[middleware])
        return lambda text: agent.invoke({"messages": [{"role": "user", "content": text}]})

    return calling(Nothing()), calling(ours("langchain", "ComputedContext")(engine, **options))


def llama_index(engine: foveate.Engine, by_hand: ByHand, **options: Any) -> Pair:
    from llama_index.core.llms import ChatMessage
    from llama_index.core.memory import BaseMemoryBlock, InsertMethod, Memory

    class Nothing(BaseMemoryBlock[str]):
        name: str = "nothing"

        async def _aget(self, messages: Any = None, **options: Any) -> str:
            return by_hand(messages[-1].content)

        async def _aput(self, messages: Any) -> None:
            return None

    def calling(block: Any) -> Call:
        memory = Memory.from_defaults(memory_blocks=[block], insert_method=InsertMethod.USER)

        async def call(text: str) -> Any:
            await memory.aset([ChatMessage(role="user", content=text)])
            return await memory.aget()

        return lambda text: loop.run_until_complete(call(text))

    return calling(Nothing()), calling(ours("llama_index", "ComputedContextBlock")(engine, **options))


def agent_framework(engine: foveate.Engine, by_hand: ByHand, **options: Any) -> Pair:
    from agent_framework import (
        Agent,
        BaseChatClient,
        ChatMiddleware,
        ChatMiddlewareLayer,
        ChatResponse,
        ContextProvider,
        FunctionInvocationLayer,
        Message,
    )

    class Client(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
        async def _inner_get_response(self, **call: Any) -> Any:
            return ChatResponse(messages=[Message("assistant", ["Yes."])])

    class Pass(ChatMiddleware):
        async def process(self, context: Any, call_next: Any) -> None:
            context.messages = [*context.messages, Message("user", [by_hand(context.messages[-1].text)])]
            await call_next()

    class Nothing(ContextProvider):
        async def before_run(self, *, context: Any, **run: Any) -> None:
            context.extend_middleware(self.source_id, Pass())

    def calling(provider: Any) -> Call:
        agent = Agent(Client(), context_providers=[provider])
        return lambda text: loop.run_until_complete(agent.run(text))

    return calling(Nothing("nothing")), calling(ours("agent_framework", "ComputedContext")(engine, **options))


def pydantic_ai(engine: foveate.Engine, by_hand: ByHand, **options: Any) -> Pair:
    from pydantic_ai import Agent
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import ModelResponse, TextPart, UserPromptPart
    from pydantic_ai.models.function import FunctionModel

    class Nothing(AbstractCapability):
        async def prepare_model_request(self, ctx: Any, request_context: Any) -> Any:
            *before, last = request_context.messages
            last = replace(last, parts=[*last.parts, UserPromptPart(by_hand(last.parts[-1].content))])
            return replace(request_context, messages=[*before, last])

    def calling(capability: Any) -> Call:
        agent = Agent(FunctionModel(lambda messages, info: ModelResponse([TextPart("Yes.")])), capabilities=[capability])
        return lambda text: loop.run_until_complete(agent.run(text))

    return calling(Nothing()), calling(ours("pydantic_ai", "ComputedContext")(engine, **options))


def openai_agents(engine: foveate.Engine, by_hand: ByHand, **options: Any) -> Pair:
    from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, set_tracing_disabled
    from openai.types.responses import ResponseOutputMessage, ResponseOutputText

    set_tracing_disabled(True)

    class Fake(Model):
        async def get_response(self, *args: Any, **call: Any) -> Any:
            text = ResponseOutputText(type="output_text", text="Yes.", annotations=[])
            said = ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])
            return ModelResponse(output=[said], usage=Usage(), response_id=None)

        def stream_response(self, *args: Any, **call: Any) -> Any:
            raise NotImplementedError

    agent = Agent(name="a", model=Fake())

    def calling(filter: Any) -> Call:
        config = RunConfig(call_model_input_filter=filter)
        return lambda text: loop.run_until_complete(Runner.run(agent, text, run_config=config))

    def filter_by_hand(data: Any) -> Any:
        given = data.model_data
        said = {"role": "user", "content": by_hand(given.input[-1]["content"])}
        return replace(given, input=[*given.input, said])

    return calling(filter_by_hand), calling(ours("openai_agents", "context_filter")(engine, **options))


def plain(module: str) -> Callable[..., Pair]:
    def pair(engine: foveate.Engine, by_hand: ByHand, **options: Any) -> Pair:
        messages_for = ours(module, "messages_for")
        return by_hand, lambda text: messages_for(engine, [{"role": "user", "content": text}], **options)

    return pair


def acompute(engine: foveate.Engine, by_hand: ByHand, *, keeps: bool = True, **options: Any) -> Pair:
    """No framework and no adapter: what the way into another thread costs by itself."""

    async def in_the_loop(text: str) -> str:
        return by_hand(text)

    return (
        lambda text: loop.run_until_complete(in_the_loop(text)),
        lambda text: loop.run_until_complete(engine.acompute(text, **options)),
    )


ADAPTERS: dict[str, Callable[..., Pair]] = {
    "acompute": acompute,
    "langchain": langchain,
    "llama_index": llama_index,
    "agent_framework": agent_framework,
    "pydantic_ai": pydantic_ai,
    "openai_agents": openai_agents,
    "openai_messages": plain("openai_messages"),
    "anthropic_messages": plain("anthropic_messages"),
}


def measured(
    store: Path, make: Callable[..., Pair], asked: list[str], warming: list[str], **options: Any
) -> tuple[float, float]:
    """Median CPU milliseconds of `compute` alone, and of what the adapter takes more than a call by hand.

    Each has a copy of the store to itself, as in a program that uses only one of them: when one connection writes, SQLite
    has the others drop the pages that they hold. Receipts are not written: that costs all the same, and every fourth call
    would pay for four. The call by hand and that of the adapter take turns in coming first.
    """
    alone, more = [], []
    with opened_copy(store) as engine, opened_copy(store) as other_engine, opened_copy(store) as third_engine:
        pair = make(third_engine, lambda text: other_engine.compute(text, **OPTIONS).text, **OPTIONS, **options)
        for text in warming:
            engine.compute(text, **OPTIONS)
            for call in pair:
                call(text)
        gc.collect()
        gc.freeze()  # other frameworks that this process has loaded are not to be searched for garbage again and again
        for number, text in enumerate(asked):
            for each in (engine, other_engine, third_engine):
                each._journal._pending.clear()
            alone.append(cpu(partial(engine.compute, text, **OPTIONS)))
            order = (0, 1) if number % 2 else (1, 0)
            took = {n: cpu(partial(pair[n], text)) for n in order}
            more.append(took[1] - took[0])
    return median(alone), median(more)


@contextmanager
def opened_copy(store: Path) -> Iterator[foveate.Engine]:
    with tempfile.TemporaryDirectory() as folder:
        copytree(store, folder, dirs_exist_ok=True)
        with foveate.open(folder, own=False) as engine:
            yield engine


def run() -> dict:
    corpus = list(dict.fromkeys(islice(docs(), 2 * RECORDS)))[:RECORDS]
    asked, warming = queries(corpus, ASKED), queries(corpus, WARMING, seed=8)
    figures: dict = {"records": len(corpus), "asked": len(asked), "target percent": TARGET, "adapters": {}, "missed": []}
    chosen = os.environ.get("FOVEATE_BENCH_ADAPTERS", "").split(",")
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder)
        fill(store, corpus)
        for name in (name for name in ADAPTERS if name in chosen or chosen == [""]):
            try:
                row = figures_of(store, ADAPTERS[name], asked, warming)
            except ImportError as missing:
                print(f"{name} is left out: {missing}", file=sys.stderr)
                continue
            figures["adapters"][name] = row
            print(name, row, flush=True)
            if (over := row["over percent"]) > TARGET and name != "acompute":
                figures["missed"].append(f"{name} takes {over:.1f} % more than compute alone, not {TARGET:.0f} at most")
    return figures


def figures_of(store: Path, make: Callable[..., Pair], asked: list[str], warming: list[str]) -> dict[str, float]:
    alone, more = measured(store, make, asked, warming, keeps=False)
    _, keeping = measured(store, make, asked, warming)
    return {
        "compute ms": round(alone, 2),
        "over percent": round(more / alone * 100, 1),
        "keeping ms": round(keeping - more, 2),
    }
