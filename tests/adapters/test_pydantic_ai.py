"""PydanticAI: instructions and system prompts. See also `test_every_adapter`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from frameworks import texts_of
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.run import AgentRunResult

from foveate import Engine, Record
from foveate.clock import iso
from foveate.integrations.pydantic_ai import ComputedContext

RULES = "## Active Constraints\n- Always answer in Celsius"
Stored = Callable[..., list[Record]]


class Recorder:
    """A model that looks up two cities when it is asked for the weather, and notes what it received."""

    def __init__(self) -> None:
        self.requests: list[list[ModelMessage]] = []
        self.instructions: list[str | None] = []

    def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.requests.append(messages)
        self.instructions.append(info.instructions)
        last = messages[-1].parts
        if any(text_of(part).startswith("weather") for part in last):
            return ModelResponse(parts=[ToolCallPart("look", {"city": city}) for city in ("Oslo", "Rome")])
        return ModelResponse(parts=[TextPart(f"answer {len(self.requests)}")])


def text_of(part: Any) -> str:
    return str(getattr(part, "content", ""))


def run(agent: Agent[None, str], question: str | None, **options: Any) -> AgentRunResult[str]:
    return asyncio.run(agent.run(question, **options))


def agent_of(memory: Engine, **options: Any) -> tuple[Agent[None, str], Recorder]:
    model = Recorder()
    capability = ComputedContext(memory, budget=300, **options)
    agent = Agent(
        FunctionModel(model),
        instructions="Be brief.",
        system_prompt="You are Ada.",
        capabilities=[capability],
    )

    @agent.tool_plain
    def look(city: str) -> str:
        if city == "Nowhere":
            raise ModelRetry("There is no such city")
        return f"{city}: 14 degrees"

    return agent, model


def test_instructions_are_the_same_bytes_whatever_is_asked(memory: Engine) -> None:
    agent, model = agent_of(memory)

    @agent.instructions
    def late() -> str:
        return f"Request {len(model.requests)}."

    for question in ("Which deploy took 3 minutes?", "Something else entirely"):
        run(agent, question)
    assert model.instructions == [f"Be brief.\n\n{RULES}\n\nRequest {n}." for n in (0, 1)]


def test_tool_loop_computes_again_and_calls_keep_their_results(memory: Engine, stored: Stored) -> None:
    agent, model = agent_of(memory, turns=1)
    history = run(agent, "Hello there").all_messages()
    run(agent, "weather please", message_history=history, conversation_id="s1")
    last = model.requests[-1]
    assert [type(part) for part in last[-1].parts][:2] == [ToolReturnPart, ToolReturnPart]
    assert isinstance(last[-1].parts[-1], UserPromptPart)
    assert isinstance(last[0].parts[0], SystemPromptPart)  # its turn is gone, it is not
    assert "Hello there" not in [text_of(part) for part in last[0].parts]
    assert "Hello there" in text_of(last[-1].parts[-1])  # as a line of the context
    calls = {part.tool_call_id for message in last for part in message.parts if isinstance(part, ToolCallPart)}
    assert calls == {part.tool_call_id for part in last[-1].parts if isinstance(part, ToolReturnPart)}
    tools = [(event.text, event.trust, event.data["input"]) for event in stored("s1") if event.trust == "tool"]
    assert tools == [(f"look\n{city}: 14 degrees", "tool", f'{{"city": "{city}"}}') for city in ("Oslo", "Rome")]


def test_request_that_answers_tools_and_asks_is_not_where_a_turn_begins(memory: Engine) -> None:
    agent, model = agent_of(memory, turns=1)
    call = ToolCallPart("look", {"city": "Oslo"}, tool_call_id="c1")
    history = [
        ModelRequest(parts=[UserPromptPart("weather")]),
        ModelResponse(parts=[call]),
        ModelRequest(parts=[ToolReturnPart("look", "14", tool_call_id="c1"), UserPromptPart("and more?")]),
        ModelResponse(parts=[TextPart("no")]),
    ]
    run(agent, "fine", message_history=history)
    assert not any(isinstance(part, ToolReturnPart) for message in model.requests[0] for part in message.parts)
    model.requests.clear()
    run(agent, None, message_history=history[:3])
    assert any(isinstance(part, ToolCallPart) for message in model.requests[0] for part in message.parts)


def test_the_user_is_that_of_the_run(memory: Engine) -> None:
    capability = ComputedContext(memory, user=lambda run: run.deps["user"])
    agent = Agent(FunctionModel(Recorder()), deps_type=dict[str, str], capabilities=[capability])
    for user in ("ada", "bob"):
        asyncio.run(agent.run(f"I am {user}", deps={"user": user}))
    assert (texts_of(memory, "ada"), texts_of(memory, "bob")) == (["I am ada", "answer 1"], ["I am bob", "answer 2"])


def test_each_message_keeps_its_time(memory: Engine, stored: Stored) -> None:
    agent, _ = agent_of(memory)
    history = [
        ModelRequest(parts=[UserPromptPart("We moved", timestamp=datetime(2025, 3, 1, tzinfo=UTC))]),
        ModelResponse(parts=[TextPart("Noted")], timestamp=datetime(2025, 3, 2, tzinfo=UTC)),
    ]
    run(agent, "Where are we?", message_history=history)
    assert [iso(event.created)[:10] for event in stored()][:2] == ["2025-03-01", "2025-03-02"]
