"""LangChain: system prompts of blocks, histories without ids, and other middleware. See also `test_every_adapter`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from frameworks import texts_of
from langchain.agents import create_agent
from langchain.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.language_models import FakeMessagesListChatModel

from foveate import Engine, InputError, Record
from foveate.clock import millis
from foveate.integrations.langchain import ComputedContext

Stored = Callable[..., list[Record]]


class Model(FakeMessagesListChatModel):
    """LangChain's fake model, which also records what it was sent."""

    received: list[list[Any]]

    def _generate(self, messages: list[Any], *args: Any, **options: Any) -> Any:
        self.received.append(messages)
        return super()._generate(messages, *args, **options)


def model(*answers: str) -> Model:
    return Model(responses=[AIMessage(answer) for answer in answers], received=[])


def ask(agent: Any, *messages: Any) -> Any:
    return agent.invoke({"messages": list(messages)})


def test_blocks_of_the_system_prompt_stay_as_they_are(memory: Engine) -> None:
    fake, question = model("Yes.", "Yes."), HumanMessage("deploy the shop?")
    cached: Any = {"type": "text", "text": "You help.", "cache_control": {"type": "ephemeral"}}
    ask(create_agent(fake, system_prompt=SystemMessage([cached]), middleware=[ComputedContext(memory)]), question)
    ask(create_agent(fake, middleware=[ComputedContext(memory)]), question)
    with_blocks, without = (messages[0] for messages in fake.received)
    assert with_blocks.content[0] == cached
    assert "Always answer in Celsius" in with_blocks.content[1]["text"] == without.content


def test_a_whole_history_that_is_handed_in_again_adds_nothing(memory: Engine, stored: Stored) -> None:
    agent = create_agent(model("Blue.", "Blue."), middleware=[ComputedContext(memory, session="s1")])
    for _ in range(2):
        ask(agent, {"role": "human", "content": "Which one?"})
    assert [event.text for event in stored("s1")] == ["Which one?", "Blue."]


def test_a_summary_by_another_middleware_is_not_stored_as_a_persons_words(memory: Engine, stored: Stored) -> None:
    fake = model("Blue.")
    summary = HumanMessage("Summary so far: trees", additional_kwargs={"lc_source": "summarization"})
    ask(create_agent(fake, middleware=[ComputedContext(memory)]), summary, HumanMessage("Which one?"))
    assert [event.text for event in stored()] == ["Which one?", "Blue."]
    assert any(message.text == summary.text for message in fake.received[0])


def test_the_user_is_that_of_the_run(memory: Engine) -> None:
    middleware = ComputedContext(memory, user=lambda runtime: runtime.context["user"])
    agent: Any = create_agent(model("Noted.", "I do not know."), middleware=[middleware], context_schema=dict)
    for user, text in (("ada", "The key is under the mat"), ("bob", "Where is the key?")):
        agent.invoke({"messages": [HumanMessage(text)]}, context={"user": user})
    assert texts_of(memory, "ada") == ["Noted.", "The key is under the mat"]
    assert texts_of(memory, "bob") == ["I do not know.", "Where is the key?"]
    with pytest.raises(InputError, match="must return the name of a user, got None"):
        create_agent(model("x"), middleware=[ComputedContext(memory, user=lambda _: None)]).invoke(  # type: ignore[arg-type, return-value]
            {"messages": [HumanMessage("Where is the key?")]}
        )


def test_name_and_time_of_a_message_are_kept(memory: Engine, stored: Stored) -> None:
    said = HumanMessage("We moved", name="ada", additional_kwargs={"timestamp": "2025-03-01T10:00:00Z"})
    ask(create_agent(model("Noted."), middleware=[ComputedContext(memory)]), said)
    question, answer = stored()
    assert (question.data["name"], question.created) == ("ada", millis("2025-03-01T10:00Z"))
    assert answer.created > millis("2026-01-01T00:00Z")
