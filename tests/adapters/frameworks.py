"""Every framework with an adapter, driven in the same way: a conversation with a model that records what it receives.

The model answers "answer 1", "answer 2", ... Asked "weather Oslo Rome", it first calls the tool `look` for each city.
"""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import agent_framework
import agents
import langchain.agents
import langchain.messages
import langchain.tools
import langchain_core.language_models
import langchain_core.outputs
import openai.types.responses as responses
import pydantic_ai
import pydantic_ai.messages
import pydantic_ai.models.function
from langgraph.checkpoint.memory import InMemorySaver
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, TextBlock, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.memory import InsertMethod, Memory
from sqlalchemy.ext.asyncio import create_async_engine

from foveate import Engine
from foveate.integrations import (
    agent_framework as agent_framework_adapter,
)
from foveate.integrations import (
    anthropic_messages,
    openai_messages,
)
from foveate.integrations import (
    langchain as langchain_adapter,
)
from foveate.integrations import (
    llama_index as llama_index_adapter,
)
from foveate.integrations import (
    openai_agents as openai_agents_adapter,
)
from foveate.integrations import (
    pydantic_ai as pydantic_ai_adapter,
)

INSTRUCTIONS = "Be brief."
agents.set_trace_processors([])  # they would send every run to the provider


def look(city: str) -> str:
    """Look up the weather in a city."""
    if city == "Nowhere":
        raise ValueError("no such city")
    return f"{city}: 14 degrees"


@dataclass
class Request:
    """What the model received in one call. A message is a pair of role and text; a call of a tool has role `call`."""

    instructions: str
    messages: list[tuple[str, str]]

    @property
    def context(self) -> str:
        """The computed part that ends the messages."""
        role, text = self.messages[-1]
        return text if role == "user" and is_context(text) else ""

    @property
    def conversation(self) -> list[tuple[str, str]]:
        return [(role, text) for role, text in self.messages if not (role == "user" and is_context(text))]


def is_context(text: str) -> bool:
    return text.startswith(("## ", "<foveate-context>", "<memory>"))


class Framework(ABC):
    """A conversation in a framework, with the adapter in it."""

    shortens_history = True
    """The adapter has the option `turns`, and appends the stable part to the instructions."""
    is_async = True
    reports_failures = True
    """The framework tells the adapter that a tool failed."""

    def __init__(self, engine: Engine, session: str = "s1", **options: Any) -> None:
        self.engine, self.session = engine, session
        self.requests: list[Request] = []
        self.stored_questions: list[str] = []
        self.model_fails = False
        self.start(**options)

    def reply(self, instructions: str | None, messages: Iterable[tuple[str, str]]) -> tuple[list[str], str]:
        """Record a request. Return the cities to look up, or an answer."""
        request = Request(instructions or "", [(role, text) for role, text in messages if text])
        self.requests.append(request)
        if self.model_fails:
            raise RuntimeError("the model is down")
        said = request.conversation
        last = max(n for n, (role, _) in enumerate(said) if role == "user")
        if said[last][1].startswith("weather") and not any(role == "tool" for role, _ in said[last:]):
            return said[last][1].split()[1:], ""
        return [], f"answer {len(self.requests)}"

    @abstractmethod
    def start(self, **options: Any) -> None: ...

    @abstractmethod
    async def ask(self, question: str) -> None: ...

    @abstractmethod
    async def history(self) -> list[str]:
        """The texts of the user's messages, as the framework stores them."""

    async def stream(self, question: str) -> None:
        """`ask`, with an answer that arrives in parts."""
        raise NotImplementedError

    async def close(self) -> None:  # noqa: B027  only one of them holds something
        pass


class LangChain(Framework):
    reports_failures = False  # a tool that raises ends the run

    def start(self, **options: Any) -> None:
        framework = self

        class Model(langchain_core.language_models.FakeListChatModel):
            def bind_tools(self, *_: Any, **__: Any) -> Any:
                return self

            def _generate(self, messages: Any, *_: Any, **__: Any) -> Any:
                system = "\n".join(message.text for message in messages if message.type == "system")
                cities, answer = framework.reply(system, framework.pairs(messages))
                calls: Any = [{"name": "look", "args": {"city": city}, "id": f"{city}{id(messages)}"} for city in cities]
                message = langchain.messages.AIMessage(answer, tool_calls=calls)
                return langchain_core.outputs.ChatResult(
                    generations=[langchain_core.outputs.ChatGeneration(message=message)]
                )

        self.agent: Any = langchain.agents.create_agent(
            Model(responses=[""]),
            [langchain.tools.tool(look)],
            system_prompt=INSTRUCTIONS,
            middleware=[langchain_adapter.ComputedContext(self.engine, **options)],
            checkpointer=InMemorySaver(),
        )
        self.config = {"configurable": {"thread_id": self.session}}

    def pairs(self, messages: Any) -> Iterable[tuple[str, str]]:
        roles = {"human": "user", "ai": "assistant", "tool": "tool"}
        for message in messages:
            if message.type in roles:
                yield roles[message.type], message.text
            for call in getattr(message, "tool_calls", ()):
                yield "call", call["args"]["city"]

    async def ask(self, question: str) -> None:
        await self.agent.ainvoke({"messages": [langchain.messages.HumanMessage(question)]}, self.config)

    async def history(self) -> list[str]:
        messages = self.agent.get_state(self.config).values["messages"]
        return [message.text for message in messages if message.type == "human"]


class LangChainSync(LangChain):
    is_async = False

    async def ask(self, question: str) -> None:
        self.agent.invoke({"messages": [langchain.messages.HumanMessage(question)]}, self.config)


class AgentFramework(Framework):
    stores_every_call = False

    def start(self, **options: Any) -> None:
        framework = self

        class Client(
            agent_framework.FunctionInvocationLayer[Any],
            agent_framework.ChatMiddlewareLayer[Any],
            agent_framework.BaseChatClient[Any],
        ):
            def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **_: Any) -> Any:
                async def respond() -> Any:
                    cities, answer = framework.reply(options.get("instructions"), framework.pairs(messages))
                    call = agent_framework.Content.from_function_call
                    name = len(framework.requests)
                    contents: Any = [call(f"{city}{name}", "look", arguments={"city": city}) for city in cities]
                    message = agent_framework.Message("assistant", contents or [answer])
                    return agent_framework.ChatResponse(messages=[message])

                async def updates() -> AsyncIterator[Any]:
                    for message in (await respond()).messages:
                        yield agent_framework.ChatResponseUpdate(role="assistant", contents=message.contents)

                return self._build_response_stream(updates()) if stream else respond()

        self.agent = agent_framework.Agent(
            Client(),
            instructions=INSTRUCTIONS,
            tools=[agent_framework.tool(look, approval_mode="never_require")],
            context_providers=[agent_framework_adapter.ComputedContext(self.engine, **options)],
            require_per_service_call_history_persistence=self.stores_every_call,
        )
        self.run_session = self.agent.create_session(session_id=self.session)

    def pairs(self, messages: Any) -> Iterable[tuple[str, str]]:
        for message in messages:
            yield message.role, message.text
            for content in message.contents:
                if content.type == "function_call":
                    yield "call", content.parse_arguments()["city"]
                elif content.type == "function_result":
                    yield "tool", str(content.result or content.exception)

    async def ask(self, question: str) -> None:
        await self.agent.run(question, session=self.run_session)

    async def stream(self, question: str) -> None:
        async for _ in self.agent.run(question, session=self.run_session, stream=True):
            pass

    async def history(self) -> list[str]:
        messages = self.run_session.state["in_memory"]["messages"]
        return [message.text for message in messages if message.role == "user"]


class PydanticAI(Framework):
    def start(self, **options: Any) -> None:
        parts = pydantic_ai.messages

        def model(messages: list[Any], info: Any) -> Any:
            cities, answer = self.reply(info.instructions, self.pairs(messages))
            calls = [parts.ToolCallPart("look", {"city": city}) for city in cities]
            return parts.ModelResponse(parts=calls or [parts.TextPart(answer)])

        async def streamed_model(messages: list[Any], info: Any) -> AsyncIterator[str]:
            yield model(messages, info).parts[0].content

        def look_up(city: str) -> str:
            try:
                return look(city)
            except ValueError as error:
                raise pydantic_ai.ModelRetry(str(error)) from error

        self.agent = pydantic_ai.Agent(
            pydantic_ai.models.function.FunctionModel(model, stream_function=streamed_model),
            instructions=INSTRUCTIONS,
            tools=[pydantic_ai.Tool(look_up, name="look")],
            capabilities=[pydantic_ai_adapter.ComputedContext(self.engine, **options)],
        )
        self.messages: list[Any] = []

    def pairs(self, messages: Any) -> Iterable[tuple[str, str]]:
        roles = {"user-prompt": "user", "text": "assistant", "tool-return": "tool", "retry-prompt": "tool"}
        for part in (part for message in messages for part in message.parts):
            if part.part_kind in roles:
                yield roles[part.part_kind], str(part.content)
            elif part.part_kind == "tool-call":
                yield "call", part.args_as_dict()["city"]

    async def ask(self, question: str) -> None:
        result = await self.agent.run(question, message_history=self.messages, conversation_id=self.session)
        self.messages = result.all_messages()

    async def stream(self, question: str) -> None:
        conversation: Any = {"message_history": self.messages, "conversation_id": self.session}
        async with self.agent.run_stream(question, **conversation) as result:
            await result.get_output()
            self.messages = result.all_messages()

    async def history(self) -> list[str]:
        return [text for role, text in self.pairs(self.messages) if role == "user"]


class OpenAIAgents(Framework):
    """The filter together with a `FoveateSession`, whose history has no calls of tools."""

    reports_failures = False  # an error is a result like any other

    def start(self, **options: Any) -> None:
        framework = self

        class Model(agents.Model):
            async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> Any:
                cities, answer = framework.reply(system_instructions, framework.pairs(input))
                name = str(len(framework.requests))
                output: Any = [
                    responses.ResponseFunctionToolCall(
                        call_id=city + name, name="look", arguments=json.dumps({"city": city}), type="function_call"
                    )
                    for city in cities
                ]
                text = responses.ResponseOutputText(text=answer, annotations=[], type="output_text")
                message = responses.ResponseOutputMessage(
                    id=name, role="assistant", status="completed", type="message", content=[text]
                )
                return agents.ModelResponse(output=output or [message], usage=agents.Usage(), response_id=None)

            async def stream_response(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
                output = (await self.get_response(*args, **options)).output
                settings: Any = {"model": "m", "object": "response", "parallel_tool_calls": True, "tool_choice": "auto"}
                response = responses.Response(id="r1", created_at=1, output=output, tools=[], **settings)
                yield responses.ResponseCompletedEvent(response=response, sequence_number=0, type="response.completed")

        self.agent = agents.Agent[None]("Ada", instructions=INSTRUCTIONS, model=Model(), tools=[agents.function_tool(look)])
        user = options.pop("user", None)
        self.stored = openai_agents_adapter.FoveateSession(self.session, self.engine, user=user, turns=None)
        source: Any = self.engine if options.get("remember") is False else self.stored
        filter = openai_agents_adapter.context_filter(source, **options)
        self.config = agents.RunConfig(tracing_disabled=True, call_model_input_filter=filter)

    def pairs(self, items: Any) -> Iterable[tuple[str, str]]:
        for item in items:
            if item.get("type") == "function_call":
                yield "call", json.loads(item["arguments"])["city"]
            elif item.get("type") == "function_call_output":
                yield "tool", item["output"]
            else:
                content = item["content"]
                yield item["role"], content if isinstance(content, str) else content[0]["text"]

    async def ask(self, question: str) -> None:
        session: Any = None if self.config.call_model_input_filter is None else self.stored
        await agents.Runner.run(self.agent, question, session=session, run_config=self.config)

    async def stream(self, question: str) -> None:
        result = agents.Runner.run_streamed(self.agent, question, session=self.stored, run_config=self.config)
        async for _ in result.stream_events():
            pass

    async def history(self) -> list[str]:
        return [text for role, text in self.pairs(await self.stored.get_items()) if role == "user"]


class OpenAIMessages(Framework):
    """A loop of one's own with the messages of chat completions."""

    is_async = False
    reports_failures = False

    def start(self, **options: Any) -> None:
        self.options = options
        self.messages: list[dict[str, Any]] = [{"role": "system", "content": INSTRUCTIONS}]

    def pairs(self, messages: Sequence[dict[str, Any]]) -> Iterable[tuple[str, str]]:
        for message in messages:
            if message["role"] != "system":
                yield message["role"], message["content"] or ""
            for call in message.get("tool_calls", ()):
                yield "call", json.loads(call["function"]["arguments"])["city"]

    async def ask(self, question: str) -> None:
        self.messages.append({"role": "user", "content": question})
        while True:
            sent = openai_messages.messages_for(self.engine, self.messages, session=self.session, **self.options)
            system = "\n\n".join(message["content"] for message in sent if message["role"] == "system")
            cities, answer = self.reply(system, self.pairs(sent))
            if not cities:
                break
            calls = [{"id": city, "function": {"name": "look", "arguments": json.dumps({"city": city})}} for city in cities]
            self.messages.append({"role": "assistant", "content": None, "tool_calls": calls})
            self.messages += [{"role": "tool", "tool_call_id": city, "content": look(city)} for city in cities]
        self.messages.append({"role": "assistant", "content": answer})
        if self.options.get("remember", True):
            openai_messages.remember(self.engine, self.messages, user=self.options.get("user"), session=self.session)

    async def history(self) -> list[str]:
        return [text for role, text in self.pairs(self.messages) if role == "user"]


class AnthropicMessages(Framework):
    """A loop of one's own with the messages of Anthropic's API."""

    is_async = False

    def start(self, **options: Any) -> None:
        self.options = options
        self.messages: list[dict[str, Any]] = []

    def pairs(self, messages: Sequence[dict[str, Any]]) -> Iterable[tuple[str, str]]:
        for message in messages:
            content = message["content"]
            for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
                if block["type"] == "text":
                    yield message["role"], block["text"]
                else:
                    yield ("call", block["input"]["city"]) if block["type"] == "tool_use" else ("tool", block["content"])

    async def ask(self, question: str) -> None:
        self.messages.append({"role": "user", "content": question})
        while True:
            sent = anthropic_messages.messages_for(
                self.engine, self.messages, system=INSTRUCTIONS, session=self.session, **self.options
            )
            system = "\n\n".join(block["text"] for block in sent["system"])
            cities, answer = self.reply(system, self.pairs(sent["messages"]))
            if not cities:
                break
            calls = [{"type": "tool_use", "id": city, "name": "look", "input": {"city": city}} for city in cities]
            self.messages.append({"role": "assistant", "content": calls})
            self.messages.append({"role": "user", "content": [self.result(city) for city in cities]})
        self.messages.append({"role": "assistant", "content": answer})
        if self.options.get("remember", True):
            anthropic_messages.remember(self.engine, self.messages, user=self.options.get("user"), session=self.session)

    def result(self, city: str) -> dict[str, Any]:
        result = {"type": "tool_result", "tool_use_id": city}
        try:
            return {**result, "content": look(city)}
        except ValueError as error:
            return {**result, "content": str(error), "is_error": True}

    async def history(self) -> list[str]:
        return [text for role, text in self.pairs(self.messages) if role == "user"]


class LlamaIndex(Framework):
    """An agent with the block in its memory."""

    shortens_history = False
    reports_failures = False

    def start(self, **options: Any) -> None:
        def answer(messages: Sequence[ChatMessage], **_: Any) -> ChatMessage:
            cities, text = self.reply(INSTRUCTIONS, self.pairs(messages))
            name = len(self.requests)
            calls: Any = [
                ToolCallBlock(tool_call_id=f"{city}{name}", tool_name="look", tool_kwargs={"city": city}) for city in cities
            ]
            return ChatMessage(role="assistant", blocks=calls or [TextBlock(text=text)])

        model = MockFunctionCallingLLM(response_generator=answer, is_chat_model=True)
        self.agent = FunctionAgent(llm=model, tools=[look], system_prompt=INSTRUCTIONS, streaming=False)
        self.database = create_async_engine("sqlite+aiosqlite:///:memory:")
        self.memory = Memory.from_defaults(
            session_id=self.session,
            memory_blocks=[llama_index_adapter.ComputedContextBlock(self.engine, **options)],
            insert_method=InsertMethod.USER,
            async_engine=self.database,
        )

    def pairs(self, messages: Sequence[ChatMessage]) -> Iterable[tuple[str, str]]:
        for message in messages:
            for block in message.blocks if message.role.value != "system" else ():
                if isinstance(block, ToolCallBlock):
                    yield "call", dict(block.tool_kwargs)["city"]  # type: ignore[arg-type]
                elif isinstance(block, TextBlock):
                    yield message.role.value, block.text.strip()

    async def ask(self, question: str) -> None:
        await self.agent.run(question, memory=self.memory)

    async def history(self) -> list[str]:
        return [text for role, text in self.pairs(await self.memory.aget_all()) if role == "user"]

    async def close(self) -> None:
        await self.database.dispose()


FRAMEWORKS: list[type[Framework]] = [
    LangChain,
    LangChainSync,
    AgentFramework,
    PydanticAI,
    OpenAIAgents,
    OpenAIMessages,
    AnthropicMessages,
    LlamaIndex,
]


def talk(framework: Framework, *questions: str, stream: bool = False) -> list[Request]:
    """Ask the questions one after the other, and return all requests. `stored_questions` is the history after that."""

    async def main() -> None:
        try:
            for question in questions:
                await (framework.stream(question) if stream else framework.ask(question))
            framework.stored_questions = await framework.history()
        finally:
            await framework.close()

    asyncio.run(main())
    return framework.requests


def texts_of(engine: Engine, user: str) -> list[str]:
    """Return the stored messages of one user, sorted by text."""
    records = engine.scoped(user=user).records(kinds=["event"])
    return sorted(record.text for record in records if record.scope.user == user)
