"""Measures the cost of adapters: the CPU time of a model call through one, compared with calling `engine.context` by hand.

Both run the same framework with a fake model and pass it the same text. The extra time of the adapter is shown as a share of
`engine.context` alone. In an async framework, "by hand" is measured in two ways: in the loop's own thread, which blocks the
loop, and with `await engine.acontext`, as one should. The target is for the first.

A program uses one framework, so each is measured in a process of its own, and in several of them, because the memory layout
of a process changes the result by some percent. A process uses one core: a worker that wakes up on another core finds its
caches cold, which differs from run to run and is not the adapter's cost (FOVEATE_BENCH_CORES=2 includes it). The store
contains real text. Storing the messages is a write of its own and is shown separately. Frameworks that are not installed are
skipped.
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
"""Processes for each framework. The frameworks take turns, so that a busy minute of the machine affects all of them."""

QUESTION_COUNT = int(os.environ.get("FOVEATE_BENCH_ASKED", "60"))
"""Questions in each process."""

CORES = int(os.environ.get("FOVEATE_BENCH_CORES", "1"))
"""Cores that a process may use, on systems that support a choice."""

OPTIONS: dict[str, Any] = {"budget": 2000, "session": "bench"}
WARMUP_QUESTIONS = 10
"""Questions before the measurement: they load modules, and the threads of workers open their connections."""

QUESTIONS_PER_SETUP = 20
"""The calls are set up again after this many questions, because threads and memory of a framework's objects are chance."""

TARGET_PERCENT = 10.0
"""Percent over `engine.context` alone."""

Call = Callable[[str], object]
Figures = dict[str, float]


class Framework(NamedTuple):
    """How a framework calls a model, and the middleware, filter or memory block that is added for it."""

    make_call: Callable[[Any], Call]
    by_hand: Callable[[Any], Any]
    """Makes it from a function that returns the context of a question; in an async framework, a coroutine function."""
    adapter: Callable[..., Any]
    """Makes it from an engine and the adapter's options."""


loop = asyncio.new_event_loop()


def adapter_of(module: str, name: str) -> Any:
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
            message = HumanMessage(self.context(request.messages[-1].content))
            return handler(request.override(messages=[*request.messages, message]))

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            message = HumanMessage(await self.context(request.messages[-1].content))
            return await handler(request.override(messages=[*request.messages, message]))

        def after_agent(self, state: Any, runtime: Any) -> None:
            return None

        async def aafter_agent(self, state: Any, runtime: Any) -> None:
            return None

    def make_call(middleware: Any) -> Call:
        agent = create_agent(FakeListChatModel(responses=["Yes."]), middleware=[middleware])
        if awaits:
            return lambda text: loop.run_until_complete(agent.ainvoke({"messages": [{"role": "user", "content": text}]}))
        return lambda text: agent.invoke({"messages": [{"role": "user", "content": text}]})

    return Framework(make_call, ByHand, adapter_of("langchain", "ComputedContext"))


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

    def make_call(block: Any) -> Call:
        memory = Memory.from_defaults(memory_blocks=[block], insert_method=InsertMethod.USER)

        async def call(text: str) -> Any:
            await memory.aset([ChatMessage(role="user", content=text)])
            return await memory.aget()

        return lambda text: loop.run_until_complete(call(text))

    return Framework(make_call, ByHand, adapter_of("llama_index", "ComputedContextBlock"))


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
            message = Message("user", [await self.context(context.messages[-1].text)])
            context.messages = [*context.messages, message]
            await call_next()

    class ByHand(ContextProvider):
        def __init__(self, context: Any) -> None:
            super().__init__("by_hand")
            self.context = context

        async def before_run(self, *, context: Any, **run: Any) -> None:
            context.extend_middleware(self.source_id, Pass(self.context))

    def make_call(provider: Any) -> Call:
        agent = Agent(Client(), context_providers=[provider])
        return lambda text: loop.run_until_complete(agent.run(text))

    return Framework(make_call, ByHand, adapter_of("agent_framework", "ComputedContext"))


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

    def make_call(capability: Any) -> Call:
        agent = Agent(FunctionModel(lambda messages, info: ModelResponse([TextPart("Yes.")])), capabilities=[capability])
        return lambda text: loop.run_until_complete(agent.run(text))

    return Framework(make_call, ByHand, adapter_of("pydantic_ai", "ComputedContext"))


def openai_agents() -> Framework:
    from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, set_tracing_disabled
    from openai.types.responses import ResponseOutputMessage, ResponseOutputText

    set_tracing_disabled(True)

    class Fake(Model):
        async def get_response(self, *args: Any, **call: Any) -> Any:
            text = ResponseOutputText(type="output_text", text="Yes.", annotations=[])
            message = ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])
            return ModelResponse(output=[message], usage=Usage(), response_id=None)

        def stream_response(self, *args: Any, **call: Any) -> Any:
            raise NotImplementedError

    agent = Agent(name="a", model=Fake())

    def make_call(filter: Any) -> Call:
        config = RunConfig(call_model_input_filter=filter)
        return lambda text: loop.run_until_complete(Runner.run(agent, text, run_config=config))

    def by_hand(context: Any) -> Any:
        async def filter(data: Any) -> Any:
            model_input = data.model_data
            message = {"role": "user", "content": await context(model_input.input[-1]["content"])}
            return replace(model_input, input=[*model_input.input, message])

        return filter

    return Framework(make_call, by_hand, adapter_of("openai_agents", "context_filter"))


def plain(module: str) -> Framework:
    """Return a framework that is none: a function from messages to messages."""
    return Framework(
        make_call=lambda messages_for: lambda text: messages_for([{"role": "user", "content": text}]),
        by_hand=lambda context: lambda messages: context(messages[-1]["content"]),
        adapter=lambda engine, **options: partial(adapter_of(module, "messages_for"), engine, **options),
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

ENGINE_COUNT = 5
"""One for each kind of call, with a copy of the store: if one connection writes, SQLite makes the others drop their cached
pages, and a program makes only one kind of call."""


def calls_to_compare(name: str, engines: list[foveate.Engine]) -> dict[str, Call]:
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
        **{kind: framework.make_call(framework.by_hand(function)) for kind, function in by_hand.items()},
        "adapter": framework.make_call(framework.adapter(adapted, remember=False, **OPTIONS)),
        "keeping": framework.make_call(framework.adapter(keeping, **OPTIONS)),
    }


def measure(name: str, store: Path, asked: list[str], warming: list[str]) -> Figures:
    """Return the medians over the questions of one process. Each question is asked by all calls, in random order.

    Receipts are not written: that costs the same for all calls, and every fourth call would pay for four.
    """
    chance, times = random.Random(name), []
    with ExitStack() as stack:
        engines = [stack.enter_context(opened_copy(store)) for _ in range(ENGINE_COUNT)]
        for start in range(0, len(asked), QUESTIONS_PER_SETUP):
            calls = calls_to_compare(name, engines)
            for text, call in product(warming, calls.values()):
                call(text)
            gc.collect()
            gc.freeze()  # otherwise the collector would search the modules of a framework again and again
            for text in asked[start : start + QUESTIONS_PER_SETUP]:
                for engine in engines:
                    engine.receipts._writer._pending.clear()
                order = chance.sample(sorted(calls), len(calls))
                times.append({kind: cpu(partial(calls[kind], text)) for kind in order})
    alone = median(each["alone"] for each in times)

    def extra(kind: str, than: str) -> float:
        return median(each[kind] - each[than] for each in times)

    over = {"over compute %": extra("adapter", "by hand") / alone * 100}
    if name in ASYNC:
        over["over acompute %"] = extra("adapter", "in a thread") / alone * 100
    metrics = {"compute ms": alone, **over, "keeping ms": extra("keeping", "adapter")}
    return {figure: round(value, 2) for figure, value in metrics.items()}


@contextmanager
def opened_copy(store: Path) -> Iterator[foveate.Engine]:
    with tempfile.TemporaryDirectory() as folder:
        copytree(store, folder, dirs_exist_ok=True)
        with foveate.open(folder, personal=False) as engine:
            yield engine


def main(name: str, store: str) -> None:
    """Read questions from stdin and print the metrics, or nothing if the framework is not installed."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-CORES:])
    try:
        print(json.dumps(measure(name, Path(store), **json.load(sys.stdin))))
    except ImportError as missing:
        print(f"{name} is skipped: {missing}", file=sys.stderr)


# --- all of them ---------------------------------------------------------------------------------------------------


def run() -> dict:
    corpus = list(dict.fromkeys(islice(docs(), 2 * RECORDS)))[:RECORDS]
    questions = json.dumps({"asked": queries(corpus, QUESTION_COUNT), "warming": queries(corpus, WARMUP_QUESTIONS, seed=8)})
    chosen = [name for name in os.environ.get("FOVEATE_BENCH_ADAPTERS", "").split(",") if name] or [*SYNC, *ASYNC]
    rounds: dict[str, list[Figures]] = {name: [] for name in chosen}
    with tempfile.TemporaryDirectory() as store:
        fill(Path(store), corpus)
        for number in range(ROUNDS):
            for name in [name for name in chosen if rounds[name] or not number]:
                command = [sys.executable, "-m", "bench.adapters", name, store]
                output = subprocess.run(command, input=questions, stdout=subprocess.PIPE, text=True, check=True).stdout
                rounds[name] += [json.loads(line) for line in output.splitlines()]
                print(name, output.strip(), flush=True)
    rows = {name: summary(of_name) for name, of_name in rounds.items() if of_name}
    for name, row in rows.items():
        print(f"{name}, median:", row)
    missed = [
        f"{name} takes {over:.1f} % more than compute alone, not {TARGET_PERCENT:.0f} at most"
        for name, row in rows.items()
        if (over := row["over compute %"]) > TARGET_PERCENT
    ]
    return {
        "records": len(corpus),
        "asked": QUESTION_COUNT,
        "rounds": ROUNDS,
        "target %": TARGET_PERCENT,
        "adapters": rows,
        "missed": missed,
    }


def summary(rounds: list[Figures]) -> dict[str, Any]:
    """Return the medians of the processes, and the main metric of each."""
    medians = {figure: median(each[figure] for each in rounds) for figure in rounds[0]}
    return {**medians, "each": [each["over compute %"] for each in rounds]}


if __name__ == "__main__":
    main(*sys.argv[1:])
