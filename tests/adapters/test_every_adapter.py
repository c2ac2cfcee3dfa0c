"""What every adapter does, in its framework's own loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path
from threading import get_ident

import pytest
from frameworks import FRAMEWORKS, INSTRUCTIONS, Framework, talk

import foveate
from foveate import Engine, InputError, Record, testing
from foveate.clock import now
from foveate.errors import ProfileError


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Engine]:
    """The engine that a bot opens in its own repository."""
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "bot"\n')
    (tmp_path / "prices.py").write_text("def secret_discount(price):\n    return price * 0.4\n")
    with foveate.open(tmp_path) as engine:
        yield engine


Stored = Callable[..., list[Record]]
RULE = "Always answer in Celsius"
SHORTENING = [framework for framework in FRAMEWORKS if framework.shortens_history]

# LlamaIndex's own
pytestmark = pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")


def lines(events: list[Record]) -> list[tuple[str, str]]:
    return [(event.text.replace("\n", " "), event.trust) for event in events]


@pytest.mark.parametrize("framework", SHORTENING)
class TestAdapterThatShortensTheHistory:
    def test_the_stable_part_ends_the_instructions_and_the_volatile_part_ends_the_messages(
        self, framework: type[Framework], memory: Engine
    ) -> None:
        first, second = talk(
            framework(memory, budget=300), "Which deploy of the shop took 17 minutes?", "Which deploy took 5 minutes?"
        )
        own, stable = first.instructions[: len(INSTRUCTIONS)], first.instructions[len(INSTRUCTIONS) :]
        assert own == INSTRUCTIONS
        assert RULE in stable
        assert second.instructions == first.instructions, "the instructions are the same, byte for byte"
        assert first.messages[0] == ("user", "Which deploy of the shop took 17 minutes?")
        assert "Deploy number 17" in first.context
        assert RULE not in first.context
        assert foveate.count(stable) + foveate.count(first.context) <= 300

    @pytest.mark.parametrize("turns", [1, 2, None])
    def test_older_turns_leave_the_request_and_stay_in_the_history(
        self, framework: type[Framework], memory: Engine, turns: int | None
    ) -> None:
        questions = [f"weather City{n}" for n in range(4)]
        talking = framework(memory, turns=turns)
        last = talk(talking, *questions)[-1]
        asked = [text for role, text in last.conversation if role == "user"]
        assert asked == (questions if turns is None else questions[-turns:])
        calls, results = ([text for role, text in last.messages if role == wanted] for wanted in ("call", "tool"))
        assert results == [f"{city}: 14 degrees" for city in calls]
        assert calls[-1] == "City3"
        assert talking.stored_questions == questions

    def test_a_turn_that_was_dropped_comes_back_and_none_is_shown_twice(
        self, framework: type[Framework], memory: Engine
    ) -> None:
        questions = ("Which umbrella did we buy?", "Why that umbrella?", "Which umbrella is left?")
        last = talk(framework(memory, turns=1), *questions)[-1]
        assert "answer 1" in last.context
        assert "Which umbrella is left?" not in last.context


@pytest.mark.parametrize("framework", FRAMEWORKS)
class TestEveryAdapter:
    def test_the_rules_and_what_the_question_needs_reach_the_model(self, framework: type[Framework], memory: Engine) -> None:
        (request,) = talk(framework(memory, budget=300), "Which deploy of the shop took 17 minutes?")
        whole = request.instructions + "".join(text for _, text in request.messages)
        assert whole.count(RULE) == 1
        assert "Deploy number 17" in whole

    def test_each_message_is_stored_once_with_its_trust(
        self, framework: type[Framework], memory: Engine, stored: Stored
    ) -> None:
        talk(framework(memory), "weather Oslo Rome", "go on", "go on")
        assert lines(stored("s1")) == [
            ("weather Oslo Rome", "user"),
            ("look Oslo: 14 degrees", "tool"),
            ("look Rome: 14 degrees", "tool"),
            ("answer 2", "agent"),
            ("go on", "user"),
            ("answer 3", "agent"),
            ("go on", "user"),
            ("answer 4", "agent"),
        ]
        assert len(stored()) == 8

    def test_a_tool_loop_computes_a_context_for_each_call(self, framework: type[Framework], memory: Engine) -> None:
        first, second = talk(framework(memory), "weather Oslo Rome")
        assert second.instructions == first.instructions
        assert [role for role, _ in second.conversation] == ["user", "call", "call", "tool", "tool"]
        assert any("Deploy number" in text or RULE in text for _, text in second.messages) or RULE in second.instructions

    def test_a_tool_that_fails_is_stored_as_a_failure(
        self, framework: type[Framework], memory: Engine, stored: Stored
    ) -> None:
        if not framework.reports_failures:
            pytest.skip("the framework does not tell")
        talk(framework(memory), "weather Nowhere")
        assert [event.outcome for event in stored("s1") if event.trust == "tool"] == ["failure"]

    def test_the_history_contains_no_context(self, framework: type[Framework], memory: Engine) -> None:
        talking = framework(memory)
        talk(talking, "hello", "go on")
        assert talking.stored_questions == ["hello", "go on"]

    def test_a_failing_store_does_not_break_the_run(
        self, framework: type[Framework], memory: Engine, caplog: pytest.LogCaptureFixture
    ) -> None:
        talking = framework(memory)
        memory.close()
        with caplog.at_level(logging.WARNING, "foveate.agents"):
            (request,) = talk(talking, "Which deploy took 5 minutes?")
        assert request.instructions == INSTRUCTIONS
        assert request.messages == [("user", "Which deploy took 5 minutes?")]
        messages = {"".join(takewhile(lambda letter: letter != ":", record.message)) for record in caplog.records}
        assert {"no context", "messages were not stored"} <= messages

    def test_a_failing_model_does_not_lose_the_question(
        self, framework: type[Framework], memory: Engine, stored: Stored
    ) -> None:
        talking = framework(memory)
        talking.model_fails = True
        with pytest.raises(Exception, match="the model is down"):
            talk(talking, "Which deploy took 5 minutes?")
        assert lines(stored("s1")) == [("Which deploy took 5 minutes?", "user")]

    def test_two_conversations_at_once_stay_apart(self, framework: type[Framework], memory: Engine, stored: Stored) -> None:
        async def talk_as(name: str) -> None:
            talking = framework(memory, session=name)
            for number in range(3):
                await talking.ask(f"{name} says {number}")
            await talking.close()

        async def both() -> None:
            await asyncio.gather(talk_as("ada"), talk_as("bob"))

        asyncio.run(both())
        for name in ("ada", "bob"):
            assert [text for text, trust in lines(stored(name)) if trust == "user"] == [f"{name} says {n}" for n in range(3)]

    def test_what_is_said_to_the_bot_by_one_user_no_other_sees(
        self, framework: type[Framework], memory: Engine, stored: Stored
    ) -> None:
        talk(framework(memory, user="ada", session="s1"), "The greenhouse opens with 4711")
        assert stored("s1") == [], "an engine without a user sees nothing of it"
        for user, is_shown in (("bob", False), ("ada", True)):
            (request,) = talk(framework(memory, user=user, session="s1"), "Which number opens the greenhouse?")
            prompt = request.instructions + "".join(text for _, text in request.messages)
            assert ("4711" in prompt) is is_shown
            assert any("Deploy number" in text or RULE in text for text in (prompt,)), "shared records are for everyone"

    def test_the_code_of_the_bot_is_shown_only_if_a_profile_asks_for_it(
        self, framework: type[Framework], repository: Engine
    ) -> None:
        question = "How is the secret_discount of a price computed?"
        assert "secret_discount" in repository.context(question).text.replace(question, "")
        for options, is_shown in (({}, False), ({"profile": "coding"}, True)):
            (request,) = talk(framework(repository, session=f"s{is_shown}", **options), question)
            prompt = request.instructions + "".join(text for _, text in request.messages)
            assert ("def secret_discount" in prompt) is is_shown

    def test_a_wrong_value_is_an_error_and_not_a_prompt_without_context(
        self, framework: type[Framework], memory: Engine
    ) -> None:
        with pytest.raises(Exception, match="Did you mean 'chat'") as caught:
            talk(framework(memory, profile="chet"), "hello")
        errors = (caught.value, caught.value.__cause__, caught.value.__context__)
        assert any(isinstance(error, ProfileError) for error in errors)

    def test_an_unknown_option_is_an_error_before_the_first_call(self, framework: type[Framework], memory: Engine) -> None:
        with pytest.raises(InputError, match=r"no option 'budgt'\. Did you mean 'budget'"):
            talk(framework(memory, budgt=300), "hello")

    def test_an_async_framework_is_not_blocked(self, framework: type[Framework]) -> None:
        if not framework.is_async:
            pytest.skip("a synchronous loop")
        threads: set[int] = set()

        def clock() -> int:
            threads.add(get_ident())
            return now()

        with testing.engine(":memory:", clock=clock) as engine:
            talking = framework(engine)
            threads.clear()
            talk(talking, "hello")
            assert threads
            assert get_ident() not in threads, "the engine works in other threads only"


@pytest.mark.parametrize("framework", [each for each in FRAMEWORKS if each.stream is not Framework.stream])
def test_a_streamed_run_receives_and_stores_the_same(framework: type[Framework], memory: Engine, stored: Stored) -> None:
    question = "Which deploy of the shop took 17 minutes?"
    (request,) = talk(framework(memory), question, stream=True)
    assert RULE in request.instructions
    assert "Deploy number 17" in request.context
    assert lines(stored("s1")) == [(question, "user"), ("answer 1", "agent")]


@pytest.mark.parametrize("framework", [each for each in FRAMEWORKS if each.__name__ != "OpenAIAgents"])
def test_nothing_is_stored_with_remember_false(framework: type[Framework], memory: Engine, stored: Stored) -> None:
    (request,) = talk(framework(memory, remember=False), "Which deploy of the shop took 17 minutes?")
    assert any("Deploy number 17" in text for _, text in request.messages)
    assert stored() == []
