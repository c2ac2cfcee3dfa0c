"""What an adapter costs: the CPU time of one model call through it, beside one that calls `engine.context` by hand.

Both run the same framework with a fake model and hand it the same text. What the adapter takes more is shown as a share of
`engine.context` alone. In an async framework, by hand is measured in two ways: in the loop's own thread, where all else has
to wait, and with `await engine.acompute`, as one should. The target is about the first.

A program uses one framework, so each is measured in a process of its own, and in several of them: how things come to lie in
memory is worth some percent. A process keeps to one core: a worker that wakes up on another one finds its caches cold, which
is the machine's doing, not the adapter's, and differs from run to run (FOVEATE_BENCH_CORES=2 has that in it). The store
holds real text. Keeping what was said is a write of its own, and is shown apart. A framework that is not installed is left
out.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from itertools import islice, product
from pathlib import Path
from shutil import copytree
from statistics import median
from typing import Any, NamedTuple

import foveate
from bench.corpus import docs, queries
from bench.speed import cpu, fill

RECORDS = int(os.environ.get("FOVEATE_BENCH_RECORDS", "10000"))
ROUNDS = int(os.environ.get("FOVEATE_BENCH_ROUNDS", "5"))
"""Processes for each framework; the frameworks take turns, so that a busy minute of the machine is not one's alone."""

ASKED = int(os.environ.get("FOVEATE_BENCH_ASKED", "60"))
"""Questions in each process."""

CORES = int(os.environ.get("FOVEATE_BENCH_CORES", "1"))
"""That a process may run on, where the system lets one choose."""

OPTIONS: dict[str, Any] = {"budget": 2000, "session": "bench"}
WARMING = 10
"""Questions before it counts: modules are loaded then, and the workers' threads open connections of their own."""

PART = 20
"""Questions after which the calls are made anew: which threads and which memory a framework's objects get is luck that stays
with them."""

TARGET = 10.0
"""Percent over `engine.context` alone."""

Call = Callable[[str], object]
Figures = dict[str, float]


class Framework(NamedTuple):
    """How a model is called in a framework, and what is put into it for that: a middleware, a filter, a block of memory."""

    calling: Callable[[Any], Call]
    by_hand: Callable[[Any], Any]
    """From what gives the context of a question; in an async framework that is to be awaited."""
    adapter: Callable[..., Any]
    """From an engine and the adapter's options."""


loop = asyncio.new_event_loop()


def ours(module: str, name: str) -> Any:
    return getattr(import_module(f"foveate.integrations.{module}"), name)


def langchain(*, awaits: bool = False) -> Framework:
    from langchain.agents import create_agent
    from langchain.agents.middleware import AgentMiddleware
    from langchain_core.language_models import FakeListChatModel
    from langchain_core.messages import HumanMessage

    class ByHand(AgentMiddleware):
        def __init__(self, context: Any) -> None:
            self.context = context

        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            said = HumanMessage(self.context(request.messages[-1].content))
            return handler(request.override(messages=[*request.messages, said]))

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            said = HumanMessage(await self.context(request.messages[-1].content))
            return await handler(request.override(messages=[*request.messages, said]))

        def after_agent(self, state: Any, runtime: Any) -> None:
            return None

        async def aafter_agent(self, state: Any, runtime: Any) -> None:
            return None

    def calling(middleware: Any) -> Call:
        agent = create_agent(FakeListChatModel(responses=["Yes."]), middleware=[middleware])
        if awaits:
            return lambda text: loop.run_until_complete(agent.ainvoke({"messages": [{"role": "user", "content": text}]}))
        return lambda text: agent.invoke({"messages": [{"role": "user", "content": text}]})

    return Framework(calling, ByHand, ours("langchain", "ComputedContext"))


def llama_index() -> Framework:
    from llama_index.core.bridge.pydantic import PrivateAttr
    from llama_index.core.llms import ChatMessage
    from llama_index.core.memory import BaseMemoryBlock, InsertMethod, Memory

    class ByHand(BaseMemoryBlock[str]):
        name: str = "by_hand"
        _context: Any = PrivateAttr()

        def __init__(self, context: Any) -> None:
            super().__init__()
            self._context = context

        async def _aget(self, messages: Any = None, **options: Any) -> str:
            return await self._context(messages[-1].content)

        async def _aput(self, messages: Any) -> None:
            return None

    def calling(block: Any) -> Call:
        memory = Memory.from_defaults(memory_blocks=[block], insert_method=InsertMethod.USER)

        async def call(text: str) -> Any:
            await memory.aset([ChatMessage(role="user", content=text)])
            return await memory.aget()

        return lambda text: loop.run_until_complete(call(text))

    return Framework(calling, ByHand, ours("llama_index", "ComputedContextBlock"))


def agent_framework() -> Framework:
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
        def __init__(self, context: Any) -> None:
            self.context = context

        async def process(self, context: Any, call_next: Any) -> None:
            said = Message("user", [await self.context(context.messages[-1].text)])
            context.messages = [*context.messages, said]
            await call_next()

    class ByHand(ContextProvider):
        def __init__(self, context: Any) -> None:
            super().__init__("by_hand")
            self.context = context

        async def before_run(self, *, context: Any, **run: Any) -> None:
            context.extend_middleware(self.source_id, Pass(self.context))

    def calling(provider: Any) -> Call:
        agent = Agent(Client(), context_providers=[provider])
        return lambda text: loop.run_until_complete(agent.run(text))

    return Framework(calling, ByHand, ours("agent_framework", "ComputedContext"))


def pydantic_ai() -> Framework:
    from pydantic_ai import Agent
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import ModelResponse, TextPart, UserPromptPart
    from pydantic_ai.models.function import FunctionModel

    class ByHand(AbstractCapability):
        def __init__(self, context: Any) -> None:
            self.context = context

        async def prepare_model_request(self, ctx: Any, request_context: Any) -> Any:
            *before, last = request_context.messages
            last = replace(last, parts=[*last.parts, UserPromptPart(await self.context(last.parts[-1].content))])
            return replace(request_context, messages=[*before, last])

    def calling(capability: Any) -> Call:
        agent = Agent(FunctionModel(lambda messages, info: ModelResponse([TextPart("Yes.")])), capabilities=[capability])
        return lambda text: loop.run_until_complete(agent.run(text))

    return Framework(calling, ByHand, ours("pydantic_ai", "ComputedContext"))


def openai_agents() -> Framework:
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

    def by_hand(context: Any) -> Any:
        async def filter(data: Any) -> Any:
            given = data.model_data
            said = {"role": "user", "content": await context(given.input[-1]["content"])}
            return replace(given, input=[*given.input, said])

        return filter

    return Framework(calling, by_hand, ours("openai_agents", "context_filter"))


def plain(module: str) -> Framework:
    """No framework: messages go in, and messages come out."""
    return Framework(
        calling=lambda messages_for: lambda text: messages_for([{"role": "user", "content": text}]),
        by_hand=lambda context: lambda messages: context(messages[-1]["content"]),
        adapter=lambda engine, **options: partial(ours(module, "messages_for"), engine, **options),
    )


SYNC: dict[str, Callable[[], Framework]] = {
    "openai_messages": partial(plain, "openai_messages"),
    "anthropic_messages": partial(plain, "anthropic_messages"),
    "langchain": langchain,
}
ASYNC: dict[str, Callable[[], Framework]] = {
    "langchain_async": partial(langchain, awaits=True),
    "llama_index": llama_index,
    "agent_framework": agent_framework,
    "pydantic_ai": pydantic_ai,
    "openai_agents": openai_agents,
}

# --- in a process of its own ---------------------------------------------------------------------------------------

ENGINES = 5
"""One for each way. Each has a copy of the store to itself, as in a program that makes only such calls: when one connection
writes, SQLite has the others drop the pages that they hold."""


def ways(name: str, engines: list[foveate.Engine]) -> dict[str, Call]:
    """The calls to compare."""
    framework = {**SYNC, **ASYNC}[name]()
    alone, blocking, threaded, adapted, keeping = engines

    def context(text: str) -> str:
        return blocking.context(text, **OPTIONS).text

    async def context_in_loop(text: str) -> str:
        return context(text)

    async def context_in_thread(text: str) -> str:
        return (await threaded.acontext(text, **OPTIONS)).text

    by_hand = {"by hand": context_in_loop, "in a thread": context_in_thread} if name in ASYNC else {"by hand": context}
    return {
        "alone": lambda text: alone.context(text, **OPTIONS),
        **{way: framework.calling(framework.by_hand(given)) for way, given in by_hand.items()},
        "adapter": framework.calling(framework.adapter(adapted, keeps=False, **OPTIONS)),
        "keeping": framework.calling(framework.adapter(keeping, **OPTIONS)),
    }


def measured(name: str, store: Path, asked: list[str], warming: list[str]) -> Figures:
    """What one process finds: medians over the questions, each of which is asked in all ways, in an order of its own.

    Receipts are not written: that costs all the same, and every fourth call would pay for four.
    """
    chance, took = random.Random(name), []
    with ExitStack() as stack:
        engines = [stack.enter_context(opened_copy(store)) for _ in range(ENGINES)]
        for start in range(0, len(asked), PART):
            calls = ways(name, engines)
            for text, call in product(warming, calls.values()):
                call(text)
            gc.collect()
            gc.freeze()  # what a framework has loaded is not to be searched for garbage again and again
            for text in asked[start : start + PART]:
                for engine in engines:
                    engine._journal._pending.clear()
                order = chance.sample(sorted(calls), len(calls))
                took.append({way: cpu(partial(calls[way], text)) for way in order})
    alone = median(each["alone"] for each in took)

    def more(way: str, than: str) -> float:
        return median(each[way] - each[than] for each in took)

    over = {"over compute %": more("adapter", "by hand") / alone * 100}
    if name in ASYNC:
        over["over acompute %"] = more("adapter", "in a thread") / alone * 100
    found = {"compute ms": alone, **over, "keeping ms": more("keeping", "adapter")}
    return {figure: round(value, 2) for figure, value in found.items()}


@contextmanager
def opened_copy(store: Path) -> Iterator[foveate.Engine]:
    with tempfile.TemporaryDirectory() as folder:
        copytree(store, folder, dirs_exist_ok=True)
        with foveate.open(folder, personal=False) as engine:
            yield engine


def main(name: str, store: str) -> None:
    """One process: questions come in, figures go out; nothing where the framework is not there."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-CORES:])
    try:
        print(json.dumps(measured(name, Path(store), **json.load(sys.stdin))))
    except ImportError as missing:
        print(f"{name} is left out: {missing}", file=sys.stderr)


# --- all of them ---------------------------------------------------------------------------------------------------


def run() -> dict:
    corpus = list(dict.fromkeys(islice(docs(), 2 * RECORDS)))[:RECORDS]
    questions = json.dumps({"asked": queries(corpus, ASKED), "warming": queries(corpus, WARMING, seed=8)})
    chosen = [name for name in os.environ.get("FOVEATE_BENCH_ADAPTERS", "").split(",") if name] or [*SYNC, *ASYNC]
    found: dict[str, list[Figures]] = {name: [] for name in chosen}
    with tempfile.TemporaryDirectory() as store:
        fill(Path(store), corpus)
        for number in range(ROUNDS):
            for name in [name for name in chosen if found[name] or not number]:
                command = [sys.executable, "-m", "bench.adapters", name, store]
                said = subprocess.run(command, input=questions, stdout=subprocess.PIPE, text=True, check=True).stdout
                found[name] += [json.loads(line) for line in said.splitlines()]
                print(name, said.strip(), flush=True)
    rows = {name: summary(rounds) for name, rounds in found.items() if rounds}
    for name, row in rows.items():
        print(f"{name}, median:", row)
    missed = [
        f"{name} takes {over:.1f} % more than compute alone, not {TARGET:.0f} at most"
        for name, row in rows.items()
        if (over := row["over compute %"]) > TARGET
    ]
    return {"records": len(corpus), "asked": ASKED, "rounds": ROUNDS, "target %": TARGET, "adapters": rows, "missed": missed}


def summary(rounds: list[Figures]) -> dict[str, Any]:
    """The median of the processes, and what each of them found."""
    middle = {figure: median(each[figure] for each in rounds) for figure in rounds[0]}
    return {**middle, "each": [each["over compute %"] for each in rounds]}


if __name__ == "__main__":
    main(*sys.argv[1:])
