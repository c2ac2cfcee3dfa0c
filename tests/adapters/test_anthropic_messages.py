"""Plain Anthropic messages, sent by the real client to a server on loopback."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from anthropic import Anthropic
from serving import serving

import foveate
from foveate import Engine, Record
from foveate.integrations.anthropic_messages import messages_for, remember

Stored = Callable[..., list[Record]]
CACHED = {"cache_control": {"type": "ephemeral"}}
RULES = {
    "type": "text",
    "text": "<foveate-context>\n## Active Constraints\n- Always answer in Celsius\n</foveate-context>\n",
    **CACHED,
}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def answer(*content: dict[str, Any]) -> dict[str, Any]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    return {"id": "m1", "type": "message", "role": "assistant", "model": "m", "content": list(content), "usage": usage}


def look(city: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": city, "name": "look", "input": {"city": city}}


def test_system_ends_with_the_cached_rules_and_the_last_block_is_computed(memory: Engine, stored: Stored) -> None:
    messages: list[Any] = [{"role": "user", "content": "weather please"}]
    with serving(answer(text("I look."), look("Oslo"), look("Nowhere")), answer(text("Fine")), answer(text("17"))) as served:
        client = Anthropic(base_url=served.url, api_key="none", max_retries=0)
        for question in (None, "Which deploy of the shop took 17 minutes?"):
            messages += [{"role": "user", "content": question}] if question else []
            while True:
                sent = messages_for(memory, messages, system="Be brief.", budget=300, session="s1")
                reply = client.messages.create(model="m", max_tokens=10, **sent)
                messages.append({"role": "assistant", "content": reply.content})  # the client's own objects
                calls = [block for block in reply.content if block.type == "tool_use"]
                if not calls:
                    break
                results = [
                    {
                        "type": "tool_result",
                        "tool_use_id": call.id,
                        "content": "14 degrees",
                        "is_error": call.id == "Nowhere",
                    }
                    for call in calls
                ]
                messages.append({"role": "user", "content": results})
        remember(memory, messages, session="s1")
    assert all(request["system"] == [text("Be brief."), RULES] for request in served.requests)
    second, third = (request["messages"] for request in served.requests[1:])
    assert [block["type"] for block in second[-1]["content"]] == ["tool_result", "tool_result"]
    asked, computed = third[-1]["content"]
    assert asked == text("Which deploy of the shop took 17 minutes?")
    assert "Deploy number 17" in computed["text"]
    assert foveate.count(computed["text"]) + foveate.count(RULES["text"]) <= 300
    assert [(event.text.replace("\n", " "), event.trust, event.outcome) for event in stored("s1")] == [
        ("weather please", "user", None), ("I look.", "agent", None), ("look 14 degrees", "tool", "success"),
        ("look 14 degrees", "tool", "failure"), ("Fine", "agent", None),
        ("Which deploy of the shop took 17 minutes?", "user", None), ("17", "agent", None),
    ]  # fmt: skip


def test_tools_results_stay_before_the_computed_block_and_a_prefilled_answer_behind(memory: Engine) -> None:
    messages = [
        {"role": "user", "content": "Which deploy took 5 minutes?"},
        {"role": "assistant", "content": [look("Oslo")]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "Oslo", "content": [text("14")]}]},
        {"role": "assistant", "content": "It was"},
    ]
    before = copy.deepcopy(messages)
    sent = messages_for(memory, messages, turns=1)["messages"]
    assert messages == before
    assert [block["type"] for block in sent[2]["content"]] == ["tool_result", "text"]
    assert "Deploy number 5" in sent[2]["content"][-1]["text"]
    assert sent[3] == {"role": "assistant", "content": [text("It was")]}


NEXT = "How many minutes did deploy number 4 take?"


def test_prompt_that_comes_back_holds_its_blocks_once(memory: Engine, stored: Stored) -> None:
    prompt: dict[str, Any] = {
        "system": "Be brief.",
        "messages": [{"role": "user", "content": "Which deploy took 3 minutes?"}],
    }
    for number in range(3):
        prompt = messages_for(memory, prompt["messages"], system=prompt["system"], turns=2)
        prompt["messages"] += [{"role": "assistant", "content": f"Answer {number}"}, {"role": "user", "content": NEXT}]
    prompt = messages_for(memory, prompt["messages"], system=prompt["system"], turns=2)
    assert prompt["system"] == [text("Be brief."), RULES]
    assert str(prompt["messages"]).count("<foveate-context>") == 1
    assert [event.text for event in stored()][-2:] == ["Answer 2", NEXT]
    assert len(stored()) == 7


def test_no_fifth_cache_mark_is_set(memory: Engine) -> None:
    system = [{**text(f"Part {number}"), **CACHED} for number in range(4)]
    sent = messages_for(memory, [{"role": "user", "content": "Hello"}], system=system)
    assert sent["system"] == [*system, text(RULES["text"])]
