"""The benchmark of entry points: each stores a conversation and is asked about it, and evidence is counted in the text."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path

import pytest
from bench import doors
from bench.doors import DOORS, Conversation, Door, Message, Question, Result, measure_door, read_conversation

import foveate
from foveate.text import analysis

LONG = "You could look at three things. The first is the roof.\n\n- **The roof** leaks near the chimney.\n- Then the door."
SMALL = Conversation(
    (
        Message("a.user", "one", "user", "Our boat is called Sula.", "2026-03-02T09:00:00Z"),
        Message("a.assistant", "one", "assistant", "A fine name.", "2026-03-02T09:00:00Z"),
        Message("b.user", "two", "user", "What is wrong with the hut?", "2026-03-03T09:00:00Z"),
        Message("b.assistant", "two", "assistant", LONG, "2026-03-03T09:00:00Z"),
    ),
    (
        Question("What is the boat's name?", "Sula", ("a.user",)),
        Question("Where does the roof leak?", "near the chimney", ("b.assistant",)),
        Question("What did we talk about?", "Sula", ("a.user", "b.user")),
    ),
    ("Who painted The Night Watch?",),
)
IN_PROCESS = ("library", "openai_messages", "anthropic_messages", "pydantic_ai", "langchain")
PROCESSES = ("hooks", "mcp", "http", "cli")


def stored_texts(folder: Path) -> list[str]:
    with foveate.open(folder, personal=False) as engine:
        return [line["text"] for line in map(json.loads, engine.store.export_lines()) if "text" in line]


def check_door(door: Door, folder: Path) -> None:
    door.fill(folder, SMALL)
    texts = stored_texts(folder)
    assert [text for text in texts if text in {message.text for message in SMALL.messages}] == texts
    assert len(texts) == len(SMALL.messages)
    with foveate.open(folder, personal=False) as engine:
        engine.add("instruction", "Always answer in Celsius")
    with door.ask(folder) as ask:
        answers = [ask(question.text) for question in SMALL.questions]
    assert all("Always answer in Celsius" in answer for answer in answers)
    assert not any(question.text in answer for question, answer in zip(SMALL.questions, answers, strict=True))
    assert len(stored_texts(folder)) == len(SMALL.messages) + 1  # no question is stored where the next one could find it


@pytest.mark.slow
@pytest.mark.parametrize("name", [*IN_PROCESS, *PROCESSES])
def test_an_entry_point_stores_the_conversation_and_answers_in_a_new_session(name: str, tmp_path: Path) -> None:
    check_door(next(door for door in DOORS if door.name == name), tmp_path)


def test_only_texts_in_the_prompt_count() -> None:
    prompts = {
        "What is the boat's name?": "- Our boat is called Sula.",
        "Where does the roof leak?": "- You could ... **The roof** leaks near the chimney. ...",
        "What did we talk about?": "- Our boat is called Sula.",  # the second turn is missing
        "Who painted The Night Watch?": "",
    }

    @contextmanager
    def ask(store: Path):
        yield prompts.__getitem__

    door = Door("fake", lambda folder, conversation: None, ask)
    result = measure_door(door, SMALL)
    assert (result.evidence, result.with_passages, result.unrelated_silent) == (1, 2, 1)
    assert result.unrelated_tokens == 0 < result.tokens


def test_every_answer_of_the_conversation_is_in_its_evidence() -> None:
    conversation = read_conversation()
    assert (len(conversation.questions), len(conversation.unrelated)) == (40, 20)
    texts = {message.id: message.text for message in conversation.messages}
    assert len(texts) == len(conversation.messages)
    for question in conversation.questions:
        found = set(analysis.terms(" ".join(texts[id] for id in question.evidence)))
        assert set(analysis.terms(question.answer)) <= found, question.text


def test_a_result_below_the_best_profile_misses_the_target() -> None:
    best = Result(20, 20, 900.0, 900.0, 0)
    lines = list(doors._missed("hooks", Result(18, 18, 500.0, 0.0, 1), best, SMALL))
    assert lines == ["hooks finds 18, below 95% of the best profile's 20"]
    assert not list(doors._missed("cli", Result(19, 19, 500.0, 900.0, 0), best, SMALL))
    assert list(doors._missed("library", best, best, SMALL)) == [
        "library sends 900 tokens for unrelated prompts, more than 100"
    ]
