"""Plain OpenAI messages, sent by the real client to a server on loopback."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from openai import OpenAI
from serving import serving

import foveate
from foveate import Engine, InputError, Record
from foveate.clock import iso
from foveate.integrations.openai_messages import messages_for, remember
from foveate.testing import FixedClock, engine
from foveate.text.tokens import count_messages
from foveate.types import NO_FILTERS

Stored = Callable[..., list[Record]]
SYSTEM = {"role": "system", "content": "Be brief."}
RULES = {
    "role": "system",
    "content": "<foveate-context>\n## Active Constraints\n- Always answer in Celsius\n</foveate-context>\n",
}


def chat(text: str | None, calls: tuple[str, ...] = ()) -> dict[str, Any]:
    tools = [
        {"id": city, "type": "function", "function": {"name": "look", "arguments": f'{{"city": "{city}"}}'}}
        for city in calls
    ]
    message = {"role": "assistant", "content": text, **({"tool_calls": tools} if tools else {})}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    return {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def test_chat_completions_receive_rules_history_and_the_computed_part_last(memory: Engine, stored: Stored) -> None:
    messages: list[Any] = [SYSTEM, user("weather please")]
    with serving(chat(None, ("Oslo", "Rome")), chat("Fine"), chat("As before")) as served:
        client = OpenAI(base_url=served.url, api_key="none", max_retries=0)
        for question in (None, "Which deploy of the shop took 17 minutes?"):
            messages += [user(question)] if question else []
            while True:
                sent = messages_for(memory, messages, budget=300, session="s1")
                answer = client.chat.completions.create(model="m", messages=sent).choices[0].message
                messages.append(answer)  # the client's own object
                if not answer.tool_calls:
                    break
                results = [(call.id, f"{call.id}: 14 degrees") for call in answer.tool_calls]
                messages += [{"role": "tool", "tool_call_id": id, "content": text} for id, text in results]
        remember(memory, messages, session="s1")
    first, second, third = (request["messages"] for request in served.requests)
    assert first[:3] == [SYSTEM, RULES, user("weather please")]
    assert [message["role"] for message in second] == ["system", "system", "user", "assistant", "tool", "tool"]
    assert third[-2] == user("Which deploy of the shop took 17 minutes?")
    assert "Deploy number 17" in third[-1]["content"]
    assert count_messages([third[1], third[-1]]) <= 300
    words = [event.text.replace("\n", " ") for event in stored("s1")]
    assert words == [
        "weather please", "look Oslo: 14 degrees", "look Rome: 14 degrees", "Fine",
        "Which deploy of the shop took 17 minutes?", "As before",
    ]  # fmt: skip
    assert [event.trust for event in stored("s1")][:4] == ["user", "tool", "tool", "agent"]


def test_responses_input_is_understood_and_sent(memory: Engine, stored: Stored) -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"city": "Oslo"}'}
    items: list[Any] = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "input_text", "text": "Which deploy took 5 minutes?"}]},
        {"type": "reasoning", "id": "r1", "summary": []},
        call,
        {"type": "function_call_output", "call_id": "c1", "output": "14 degrees"},
    ]
    before = copy.deepcopy(items)
    output = {"type": "message", "id": "m1", "role": "assistant", "status": "completed"}
    answer = {
        "id": "1", "object": "response", "created_at": 1, "model": "m", "status": "completed", "tools": [],
        "parallel_tool_calls": True, "tool_choice": "auto",
        "output": [{**output, "content": [{"type": "output_text", "text": "Number 5", "annotations": []}]}],
    }  # fmt: skip
    with serving(answer) as served:
        client = OpenAI(base_url=served.url, api_key="none", max_retries=0)
        response = client.responses.create(model="m", input=messages_for(memory, items, budget=300))
    assert items == before
    sent = served.requests[0]["input"]
    assert (sent[0], sent[1]["role"], sent[2:-1]) == (items[0], "developer", items[1:])
    assert "Deploy number 5" in sent[-1]["content"]
    remember(memory, [*items, *response.output])
    assert [event.text for event in stored()] == ["Which deploy took 5 minutes?", "look\n14 degrees", "Number 5"]


def test_older_turns_go_from_the_prompt_and_come_back_as_state(memory: Engine) -> None:
    messages = [SYSTEM]
    for number in range(5):
        messages += [user(f"Remark {number} on tea"), {"role": "assistant", "content": f"Reply {number}"}]
    messages.append(user("What did I say about tea?"))
    assert messages_for(memory, messages, turns=None) == [SYSTEM, RULES, *messages[1:]]
    for turns in (2, 1, 0):  # the turn that is under way always stays
        sent = messages_for(memory, messages, turns=turns)
        stay = messages[-3:] if turns == 2 else messages[-1:]
        assert sent[:-1] == [SYSTEM, RULES, *stay]
        assert "User: Remark 0 on tea" in sent[-1]["content"]
        assert "What did I say" not in sent[-1]["content"]


NEXT = "How many minutes did deploy number 4 take?"


def test_prompt_that_comes_back_as_history_holds_its_blocks_once(memory: Engine, stored: Stored) -> None:
    messages: list[Any] = [SYSTEM, user("Which deploy took 3 minutes?")]
    for number in range(3):
        messages = messages_for(memory, messages, budget=300)
        messages += [{"role": "assistant", "content": f"Answer {number}"}, user(NEXT)]
    sent = messages_for(memory, messages, budget=300)
    assert [str(message["content"]).startswith("<foveate-context>") for message in sent].count(True) == 2
    assert sent[1] == RULES
    assert [event.text for event in stored()] == [
        "Which deploy took 3 minutes?", "Answer 0", NEXT, "Answer 1", NEXT, "Answer 2", NEXT,
    ]  # fmt: skip


@pytest.mark.parametrize("budget", [90, 200, 1000])
def test_blocks_and_their_marks_are_within_the_budget(memory: Engine, budget: int) -> None:
    question = [user("How long did each deploy of the shop take?")]
    sent = messages_for(memory, question, budget=budget)
    assert count_messages([sent[0], sent[-1]]) <= budget


def test_budget_of_the_engine_holds_the_marks_too() -> None:
    with engine(budget=200) as memory:
        for number in range(40):
            memory.add("fact", f"Deploy number {number} of the shop took {number} minutes")
        sent = messages_for(memory, [user("How long did each deploy of the shop take?")])
    assert 150 < count_messages([sent[-1]]) <= 200


def test_what_one_user_says_another_does_not_see() -> None:
    with foveate.open(":memory:") as engine:
        ada, bob = (engine.scoped(user=name) for name in ("ada", "bob"))
        messages_for(ada, [{"role": "user", "content": "My greenhouse door code is four-nine-one"}], session="s")
        sent = messages_for(bob, [{"role": "user", "content": "What is the greenhouse door code?"}], session="s")
    assert "four-nine-one" not in str(sent)


def test_a_picture_alone_still_gets_the_rules() -> None:
    with foveate.open(":memory:") as engine:
        engine.add("instruction", "Always answer in Celsius")
        picture = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]}
        assert "Celsius" in str(messages_for(engine, [picture]))


def test_calls_that_are_numbered_anew_in_each_answer_keep_their_results() -> None:
    with foveate.open(":memory:") as engine:
        history: list[dict] = []
        for n in range(3):
            call = {"id": "call_0", "type": "function", "function": {"name": "look", "arguments": "{}"}}
            history += [
                {"role": "user", "content": f"question {n}"},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "call_0", "content": f"result {n}"},
            ]
            remember(engine, history)
        with engine.store.data.reader() as reader:
            kept = " ".join(record.text for record in reader.recent(["event"], 20, NO_FILTERS))
    assert all(f"result {n}" in kept for n in range(3))


def test_names_and_times_of_messages_are_kept() -> None:
    messages = [
        {"role": "user", "content": "We moved", "name": "ada", "created_at": 1_740_823_200},
        {"role": "assistant", "content": "Noted", "timestamp": "2025-03-02T10:00:00Z"},
        {"role": "tool", "tool_call_id": "c1", "name": "find_mail", "content": "3 letters"},
        {"role": "assistant", "content": "You have mail", "at": "2025-03-03"},
        {"role": "user", "content": "Where are we?"},
    ]
    with engine(clock=FixedClock("2026-01-05T09:00Z")) as memory:
        assert remember(memory, messages, user="ada", session="s1").stored == 5
        assert remember(memory, messages, user="ada", session="s1").known == 5
        assert remember(memory, messages, user="bob", session="s1").stored == 5
        events = sorted(memory.scoped(user="ada").records(kinds=["event"]), key=lambda event: event.created)
        assert [iso(event.created)[:16] for event in events] == [
            "2025-03-01T10:00", "2025-03-02T10:00", "2025-03-02T10:00", "2025-03-03T00:00", "2026-01-05T09:00",
        ]  # fmt: skip
        assert (events[0].data["name"], events[2].data["tool"]) == ("ada", "find_mail")


def test_a_function_that_reads_the_user_needs_a_run() -> None:
    with engine() as memory, pytest.raises(InputError, match="user must be a text here"):
        messages_for(memory, [{"role": "user", "content": "Hello"}], user=lambda run: "ada")
