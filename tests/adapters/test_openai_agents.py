"""The filter and the session in real runs of the OpenAI Agents SDK, with a model of our own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from agents import Agent, Model, ModelResponse, RunConfig, Runner, SQLiteSession, Usage, function_tool, set_trace_processors
from agents.memory import Session
from frameworks import texts_of
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from foveate import Engine, InputError, Record
from foveate.integrations.openai_agents import FoveateSession, context_filter

Stored = Callable[..., list[Record]]
set_trace_processors([])  # they would send every run to the provider
RULES = "## Active Constraints\n- Always answer in Celsius"


class Recorder(Model):
    """Looks up two cities when it is asked for the weather; notes what it received."""

    def __init__(self) -> None:
        self.requests: list[tuple[str | None, list[Any]]] = []

    def answered(self, instructions: str | None, items: Any) -> list[Any]:
        self.requests.append((instructions, items))
        asked = max(n for n, item in enumerate(items) if not str(item.get("content", "##")).startswith("##"))
        if "weather" in str(items[asked]) and not any(item.get("type") == "function_call_output" for item in items[asked:]):
            name = len(self.requests)
            return [
                ResponseFunctionToolCall(
                    call_id=f"{city}{name}", name="look", arguments=json.dumps({"city": city}), type="function_call"
                )
                for city in ("Oslo", "Rome")
            ]
        text = ResponseOutputText(text=f"answer {len(self.requests)}", annotations=[], type="output_text")
        return [
            ResponseOutputMessage(
                id=f"m{len(self.requests)}", role="assistant", status="completed", type="message", content=[text]
            )
        ]

    async def get_response(self, system_instructions: str | None, input: Any, *_: Any, **__: Any) -> ModelResponse:
        return ModelResponse(output=self.answered(system_instructions, input), usage=Usage(), response_id=None)

    async def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError
        yield


@function_tool
def look(city: str) -> str:
    """The weather in a city."""
    return f"{city}: 14 degrees"


def agent_of() -> tuple[Agent[None], Recorder]:
    model = Recorder()
    return Agent("Ada", instructions="Be brief.", model=model, tools=[look]), model


def config(source: Engine | FoveateSession, **options: Any) -> RunConfig:
    filter = context_filter(source, **{"budget": 300, **options})
    return RunConfig(tracing_disabled=True, call_model_input_filter=filter)


def talk(agent: Agent[None], session: FoveateSession, *questions: str, **options: Any) -> None:
    async def run() -> None:
        for question in questions:
            await Runner.run(agent, question, session=session, run_config=config(session, **options))

    asyncio.run(run())


def test_session_gives_the_last_turns_and_keeps_everything_once(memory: Engine, stored: Stored) -> None:
    agent, model = agent_of()
    session = FoveateSession("s1", memory)
    assert isinstance(session, Session)
    talk(agent, session, "weather please", "go on", "go on", "go on", "and now?", turns=2)
    _, items = model.requests[-1]
    assert [item.get("content") for item in items[:-1]] == ["go on", "answer 5", "and now?"]
    assert "User: weather please" in items[-1]["content"]
    assert "Oslo: 14 degrees" in items[-1]["content"]
    assert "answer 5" not in items[-1]["content"]
    words = [event.text.replace("\n", " ") for event in stored("s1")]
    assert words == [
        "weather please", "look Oslo: 14 degrees", "look Rome: 14 degrees", "answer 2", "go on", "answer 3",
        "go on", "answer 4", "go on", "answer 5", "and now?", "answer 6",
    ]  # fmt: skip
    assert [event.trust for event in stored("s1")][:4] == ["user", "tool", "tool", "agent"]


def test_filter_beside_a_session_of_the_sdk_keeps_what_it_sees_once(memory: Engine, stored: Stored) -> None:
    agent, _ = agent_of()

    async def run() -> None:
        session = SQLiteSession("s1")
        for question in ("weather please", "go on", "go on"):
            await Runner.run(agent, question, session=session, run_config=config(memory, session="s1"))
        session.close()

    asyncio.run(run())
    words = [event.text.replace("\n", " ") for event in stored("s1")]
    assert words == [
        "weather please", "look Oslo: 14 degrees", "look Rome: 14 degrees", "answer 2", "go on", "answer 3", "go on",
    ]  # fmt: skip


def test_group_of_the_trace_is_the_session(memory: Engine, stored: Stored) -> None:
    agent, _ = agent_of()
    settings = RunConfig(group_id="thread-7", call_model_input_filter=context_filter(memory))
    asyncio.run(Runner.run(agent, "hello", run_config=settings))
    assert [event.text for event in stored("thread-7")] == ["hello"]


def test_history_can_be_limited_taken_back_and_cleared(memory: Engine) -> None:
    agent, _ = agent_of()
    session = FoveateSession("s1", memory, turns=None)
    talk(agent, session, "one", "two")

    async def look_at() -> None:
        assert [item["content"] for item in await session.get_items()] == ["one", "answer 1", "two", "answer 2"]
        assert [item["content"] for item in await session.get_items(limit=1)] == ["answer 2"]
        assert await session.pop_item() == {"role": "assistant", "content": "answer 2"}
        assert [item["content"] for item in await session.get_items(limit=2)] == ["answer 1", "two"]
        await session.clear_session()
        assert await session.get_items() == []
        assert await session.pop_item() is None
        assert await FoveateSession("s2", memory).get_items() == []

    asyncio.run(look_at())


def test_store_that_fails_leaves_the_run_alone(memory: Engine, caplog: pytest.LogCaptureFixture) -> None:
    agent, model = agent_of()
    memory.close()
    talk(agent, FoveateSession("s1", memory), "hello")
    assert model.requests == [("Be brief.", [{"content": "hello", "role": "user"}])]
    for said in ("no history", "no context", "messages were not stored"):
        assert said in caplog.text


PICTURE = {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64," + "iVBORw0KGgo" * 2000}
PAPER = {"type": "input_file", "file_id": "file-1"}


def words(text: str) -> dict[str, str]:
    return {"type": "input_text", "text": text}


@pytest.mark.parametrize(
    "content",
    [[words("What is this?"), PICTURE], [PICTURE, words("What is this?"), PAPER], [PICTURE], [PAPER, PICTURE]],
)
def test_pictures_and_files_come_back_as_they_were_given_and_count_as_no_text(
    memory: Engine, stored: Stored, content: list[Any]
) -> None:
    agent, model = agent_of()
    session = FoveateSession("s1", memory)
    asked: Any = {"role": "user", "content": content}

    async def run() -> list[Any]:
        settings = RunConfig(tracing_disabled=True, session_input_callback=lambda before, new: [*before, *new])
        for question in ([asked], [{"role": "user", "content": "and now?"}]):
            await Runner.run(agent, question, session=session, run_config=settings)
        return await session.get_items()

    items = asyncio.run(run())
    assert items[0] == asked
    assert model.requests[-1][1][0] == asked
    assert [item["role"] for item in items] == ["user", "assistant"] * 2
    assert "iVBOR" not in memory.context("What is this picture?", session="s1").text
    assert all(event.tokens["full"] < 60 for event in stored("s1"))


def test_the_same_words_with_another_picture_are_another_message(memory: Engine) -> None:
    session = FoveateSession("s1", memory)
    given: list[Any] = [{"role": "user", "content": [{**PAPER, "file_id": name}]} for name in ("a", "b", "a")]
    asyncio.run(session.add_items(given))
    assert asyncio.run(session.get_items()) == given
    assert asyncio.run(session.pop_item()) == given[-1]
    assert asyncio.run(session.get_items()) == given[:-1]


@pytest.mark.parametrize("text", ["Look", ""])
@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("data:image/png;base64," + "A" * 1_000_000, "not stored, because it has more than 900,000 characters"),
        ("https://ada:hunter22x@h.example/x.png", "not stored, because it contains a secret"),
        (b"raw", "not stored, because it is not JSON"),
    ],
)
def test_a_picture_that_cannot_be_kept_leaves_words_in_its_place(
    memory: Engine, caplog: pytest.LogCaptureFixture, text: str, url: Any, why: str
) -> None:
    session = FoveateSession("s1", memory)
    given: Any = {"role": "user", "content": [*([words(text)] if text else []), {**PICTURE, "image_url": url}]}
    asyncio.run(session.add_items([given]))
    (item,) = asyncio.run(session.get_items())
    assert item["content"] == f"{text}\n[input_image]: {why}".strip()  # type: ignore[typeddict-item]
    assert why in caplog.text


def test_the_user_is_that_of_the_run(memory: Engine) -> None:
    agent: Any = agent_of()[0]
    filter = context_filter(memory, user=lambda context: context["user"])
    for user in ("ada", "bob"):
        settings = RunConfig(tracing_disabled=True, call_model_input_filter=filter)
        asyncio.run(Runner.run(agent, f"I am {user}", context={"user": user}, run_config=settings))
    assert (texts_of(memory, "ada"), texts_of(memory, "bob")) == (["I am ada"], ["I am bob"])


def test_the_user_of_a_session_is_named_where_it_is_made(memory: Engine) -> None:
    with pytest.raises(InputError, match="Name the user in FoveateSession"):
        context_filter(FoveateSession("s1", memory), user="ada")
    context_filter(FoveateSession("s1", memory, user="ada"), user="ada")
