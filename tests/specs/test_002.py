"""002, context compiler: what of it works. Each docstring names the rows of docs/concepts/specs.md that it shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields

import pytest

import foveate
import foveate.types
from foveate import Context
from foveate.receipts.codec import to_json
from foveate.types import Section
from worlds import DEBUGGING, WORLDS, World, open_engine


@pytest.fixture
def engine() -> Iterator[foveate.Engine]:
    with open_engine() as engine:
        yield engine


def test_messages_do_not_pile_up_from_agent_to_agent(engine: foveate.Engine) -> None:
    """002-01, 002-02, 002-04"""
    engine.add("fact", "The parser reads UTF-8")
    engine.add("fact", "The linter reads settings")
    engine.context("parser", agent="architect")
    context = engine.context("linter", agent="developer")
    assert [message["content"] for message in context.messages()] == ["## Known Information\n- The linter reads settings\n"]


def test_what_was_compiled_can_be_inspected() -> None:
    """002-06, 002-09, 002-10, 002-11, 002-13"""
    with DEBUGGING.open() as engine:
        context = DEBUGGING.context(engine)
    assert {"name", "content", "source"} <= {field.name for field in fields(Section)}
    assert [(section.name, section.source) for section in context.sections][:2] == [
        ("rules", "always"),
        ("recent", "recent"),
    ]
    assert all(section.content in context.text for section in context.sections)


def test_a_system_message_where_there_is_a_system_prompt(engine: foveate.Engine) -> None:
    """002-12, 002-18"""
    engine.add("fact", "The parser reads UTF-8")
    assert [message["role"] for message in engine.context("parser").messages()] == ["user"]
    engine.add("identity", "You are a senior developer.")
    messages = engine.context("parser").messages()
    assert [message["role"] for message in messages] == ["system", "user"]
    assert messages[0]["content"] == "## Identity\nYou are a senior developer.\n"


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_sections_stand_under_headings_with_one_blank_line_between(world: World) -> None:
    """002-08, 002-19, 002-55"""
    with world.open() as engine:
        context = world.context(engine)
        headings = {slot["name"]: slot["heading"] for slot in to_json(engine.receipts.get(context))["profile"]["slots"]}
    for section in context.sections:
        heading = headings[section.name]
        if heading:
            assert section.content.startswith(f"{heading}\n" if heading.startswith("#") else f"## {heading}\n")
        assert section.content.endswith("\n")
        assert not section.content.endswith("\n\n")
    for message in context.messages():
        assert message["content"] == "\n".join(s.content for s in context.sections if s.role == message["role"])


def test_stable_slots_are_system_and_the_others_user_unless_a_profile_says_otherwise(engine: foveate.Engine) -> None:
    """002-20"""
    engine.add("identity", "You are a senior developer.")
    engine.add("fact", "The parser reads UTF-8")
    context = engine.context("parser")
    assert [(section.role, section.stable) for section in context.sections] == [("system", True), ("user", False)]
    moved = engine.context("parser", overrides={"slots": {"facts": {"role": "system"}}})
    assert [message["role"] for message in moved.messages()] == ["system"]


def test_an_agent_may_have_a_profile_of_its_own(engine: foveate.Engine, tmp_path: object) -> None:
    """002-05"""
    from pathlib import Path

    folder = Path(str(tmp_path)) / ".foveate" / "profiles"
    folder.mkdir(parents=True)
    (folder / "reviewer.toml").write_text('[slots.facts]\nheading = "For the reviewer"\n', "utf-8")
    with foveate.open(str(tmp_path), personal=False) as project:
        project.add("fact", "The parser reads UTF-8")
        assert "## For the reviewer\n" in project.context("parser", agent="reviewer").text
        assert "## Known Information\n" in project.context("parser", agent="developer").text


def test_metadata_without_content_can_be_kept(engine: foveate.Engine) -> None:
    """002-48, 002-56"""
    engine.add("fact", "The parser reads the wonderful UTF-8")
    document = to_json(engine.receipts.get(engine.context("parser")))
    assert "wonderful" not in json.dumps(document)
    assert {"id", "budget", "candidates", "profile", "sources"} <= set(document)


def test_an_agent_receives_only_what_its_current_task_needs(engine: foveate.Engine) -> None:
    """002-03"""
    for key, thing, other in (("parser", "tabs", "lexer.py"), ("mailer", "stamps", "queue.py")):
        engine.tasks.add(
            key.title(),
            key=key,
            objective=f"Teach the {key} {thing}",
            files=[{"path": other, "operation": "modify"}],
            steps=[{"text": f"Write the test of {thing}"}],
        )
    parser, mailer = (engine.context(task=key, profile="developer") for key in ("parser", "mailer"))
    assert all(word in parser.text for word in ("Teach the parser tabs", "lexer.py", "the test of tabs"))
    assert all(word in mailer.text for word in ("Teach the mailer stamps", "queue.py", "the test of stamps"))
    assert not any(word in parser.text for word in ("mailer", "stamps", "queue.py"))
    assert not any(word in mailer.text for word in ("parser", "tabs", "lexer.py"))


def test_metadata_of_contexts_is_joined_with_events(engine: foveate.Engine) -> None:
    """002-66: an A/B comparison of two profiles by what became of their contexts, without any content."""
    engine.add("fact", "The parser reads the wonderful UTF-8")
    for n in range(6):
        context = engine.context(f"parser {n}", profile="default" if n % 2 else "assistant")
        outcome = "failure" if n in (0, 2, 3) else "success"
        engine.add("event", f"run {n} ended", outcome=outcome, data={"context": context.id})
    became: dict[str, list[str | None]] = {}
    for event in engine.records(kinds=["event"]):
        document = to_json(engine.receipts.get(event.data["context"]))
        assert "wonderful" not in json.dumps(document)
        became.setdefault(document["profile"]["name"], []).append(event.outcome)
    assert {name: found.count("success") for name, found in became.items()} == {"default": 2, "assistant": 1}
    assert {len(found) for found in became.values()} == {3}


def test_core_types_are_in_one_room() -> None:
    """002-40, 002-58"""
    for name in ("Record", "Request", "Signals", "Slot", "Profile", "Candidate"):
        assert hasattr(foveate.types, name)


def test_there_is_one_way_to_a_context(engine: foveate.Engine) -> None:
    """002-63, 002-67"""
    makers = {name for name in dir(engine) if not name.startswith("_") and "context" in name}
    assert makers == {"context", "acontext"}
    assert isinstance(engine.context("parser"), Context)


def test_system_prompts_keep_their_bytes(engine: foveate.Engine) -> None:
    """002-64"""
    engine.add("identity", "You are a senior developer.")
    engine.add("fact", "The parser reads UTF-8")
    one, other = engine.context("parser"), engine.context("something else")
    assert one.messages()[0] == other.messages()[0]


def test_agents_are_isolated_by_scope(engine: foveate.Engine) -> None:
    """002-65"""
    engine.add("fact", "The parser is secret", agent="architect")
    assert engine.context("parser", agent="developer").text == ""
