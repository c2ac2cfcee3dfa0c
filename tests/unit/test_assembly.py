"""Items -> sections -> messages: what the model receives."""

from __future__ import annotations

import re

import pytest

import foveate
from foveate.clock import iso
from foveate.pipeline.assembly import (
    build_messages,
    build_section,
    count_line,
    empty_note_tokens,
    heading_of,
    heading_tokens,
    render_line,
)
from foveate.receipts.codec import to_json
from foveate.text import tokens
from foveate.types import Candidate, Item, Record, Scope, Slot
from worlds import REDIS, WORLDS, World, open_engine


def item(text: str, level: str = "full", kind: str = "fact") -> Item:
    record = Record(id=text, kind=kind, scope=Scope("main"), text=text, summary=text, micro=text)
    return Item(Candidate(record=record, slot="s", source="search"), level, 1, 1)  # type: ignore[arg-type]


def slot(**settings: object) -> Slot:
    return Slot(name="s", source="search", **settings)  # type: ignore[arg-type]


def test_a_section_has_its_heading_its_introduction_and_its_items() -> None:
    assert build_section(slot(heading="Facts", intro=" Known so far: \n"), [item("One"), item("Two")]).content == (
        "## Facts\nKnown so far:\n- One\n- Two\n"
    )


def test_a_slot_without_a_heading_is_its_items() -> None:
    assert heading_of(slot()) == ""
    assert build_section(slot(), [item("You are brief.", kind="identity")]).content == "You are brief.\n"


def test_a_slot_with_nothing_to_show_says_its_note() -> None:
    noted = slot(heading="Warnings", empty_text="No known gotchas for this task area.")
    assert build_section(noted, []).content == "## Warnings\nNo known gotchas for this task area.\n"
    note = tokens.count("No known gotchas for this task area.\n")
    assert empty_note_tokens(noted, "o200k") == heading_tokens(noted, "o200k") + note
    assert empty_note_tokens(slot(heading="Warnings"), "o200k") == 0


def test_a_heading_with_marks_of_its_own_stands_as_it_is_written() -> None:
    assert heading_of(slot(heading="### Warnings")) == "### Warnings\n"
    assert heading_of(slot(heading="## All\n\n### Part")) == "## All\n\n### Part\n"


def test_an_introduction_is_not_shown_above_a_note() -> None:
    noted = slot(heading="Map", intro="| Location |\n|---|", empty_text="Nothing yet.")
    assert build_section(noted, []).content == "## Map\nNothing yet.\n"
    assert empty_note_tokens(noted, "o200k") == empty_note_tokens(slot(heading="Map", empty_text="Nothing yet."), "o200k")


def handed_on(kind: str, text: str, *, stale: bool = False, **data: object) -> Candidate:
    """What a task handed on, or where it may lead no more."""
    task = Record(id="task_1", kind="task", scope=Scope("main"), text="T", summary="T", micro="T", data={"name": "Parser"})
    record = Record(id="x", kind=kind, scope=Scope("main"), text=text, summary=text, micro=text, data=data)
    return Candidate(record=record, slot="s", source="dependencies", inherited_from=task, stale=stale)


def test_a_line_names_the_task_that_handed_it_on() -> None:
    assert render_line(handed_on("gotcha", "Deep"), "full") == "- ⚠️ **medium**: Deep (from Parser)\n"
    asked = handed_on("question", "Tabs?", context="Both")
    assert render_line(asked, "full") == "- **Tabs?** (from Parser)\n  - Context: Both\n"


def test_a_remark_on_a_row_stays_within_its_last_cell() -> None:
    row = handed_on("component", "Notes", stale=True, component="C", location="a.py")
    assert render_line(row, "full") == "| `a.py` | C | Notes (from Parser; stale: the file is gone) |\n"


def test_a_remark_is_counted() -> None:
    one = handed_on("gotcha", "Deep")
    assert count_line(one, "o200k")["full"] == tokens.count(render_line(one, "full"), "o200k")


def test_sections_of_a_role_are_one_message_with_blank_lines_between() -> None:
    one = build_section(slot(heading="A", role="system"), [item("x")])
    two = build_section(slot(heading="B"), [item("y")])
    three = build_section(slot(heading="C"), [item("z")])
    assert build_messages([one, two, three]) == [
        {"role": "system", "content": "## A\n- x\n"},
        {"role": "user", "content": "## B\n- y\n\n## C\n- z\n"},
    ]
    assert build_messages([two]) == [{"role": "user", "content": "## B\n- y\n"}]
    assert build_messages([]) == []


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_stable_sections_come_first_then_the_profiles_order(world: World) -> None:
    with world.open() as engine:
        context = world.context(engine)
        profile = to_json(engine.receipts.get(context))["profile"]
    order = [found["name"] for found in profile["slots"]]
    names = [s.name for s in context.sections]
    assert names == [name for name in order if name in names]
    stable = [s.stable for s in context.sections]
    assert stable == sorted(stable, reverse=True)


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_the_text_holds_days_of_events_but_no_clock_and_no_word_on_how_it_was_chosen(world: World) -> None:
    with world.open() as engine:
        context = world.context(engine)
    text = context.text
    day = re.compile(r"^\[(20\d\d-\d\d-\d\d)\]$", re.MULTILINE)
    assert set(day.findall(text)) == {iso(item.record.created)[:10] for item in context.items if item.kind == "event"}
    assert not re.search(r"\b20\d\d-\d\d-\d\d|T\d\d:\d\d", day.sub("", text))
    for word in ("budget", "relevance", "foveate", "left out", "truncated"):
        assert word not in text.lower()


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_the_count_is_that_of_the_messages_as_sent(world: World) -> None:
    with world.open() as engine:
        context = world.context(engine)
    assert context.tokens == tokens.count_messages(context.messages(), context.counter)


def test_openai_gets_a_list_of_messages() -> None:
    with REDIS.open() as engine:
        found = REDIS.context(engine).messages()
    assert [message["role"] for message in found] == ["system"]


def test_anthropic_gets_system_blocks_and_the_stable_part_can_be_cached() -> None:
    with REDIS.open() as engine:
        context = REDIS.context(engine)
    shaped = context.anthropic()
    assert shaped["messages"] == []
    stable, volatile = shaped["system"]
    assert stable["cache_control"] == {"type": "ephemeral"}
    assert stable["text"].startswith("## Identity\n")
    assert stable["text"] == context.text[: context.prefix.chars]
    assert "cache_control" not in volatile
    assert volatile["text"].startswith("## Current Approach\n")


def test_anthropic_user_messages_are_the_same() -> None:
    with open_engine() as engine:
        engine.add("fact", "The deploy takes four minutes")
        context = engine.context("How long does a deploy take?")
    assert context.anthropic() == {"system": [], "messages": context.messages()}


def test_a_context_prints_as_its_text_and_shows_itself_in_one_line() -> None:
    with REDIS.open() as engine:
        context = REDIS.context(engine)
    assert str(context) == context.text
    assert repr(context).startswith(f"<Context {context.id}: ")
    assert "\n" not in repr(context)
    item = context.items[0]
    assert (item.id, item.kind, item.section) == (item.record.id, item.record.kind, context.sections[0].name)
    assert item.text in context.sections[0].content


def test_an_empty_state_gives_an_empty_context() -> None:
    with open_engine() as engine:
        context = engine.context("anything")
    assert (context.text, context.messages(), context.tokens, context.truncated) == ("", [], 0, False)
    assert context.prefix.chars == context.prefix.tokens == 0


# --- from one context to the next ----------------------------------------------------------------------------------


@pytest.fixture
def engine() -> foveate.Engine:
    engine = open_engine()
    engine.add("identity", "You are brief.")
    engine.add("fact", "The deploy takes four minutes")
    engine.add("fact", "The deploy region is eu-central-1", subject="deploy", attribute="region")
    return engine


def test_the_prefix_names_the_stable_part(engine: foveate.Engine) -> None:
    with engine:
        one, other = engine.context("How long is a deploy?"), engine.context("Which region?")
        assert one.prefix == other.prefix
        assert one.text[: one.prefix.chars] == "## Identity\nYou are brief.\n"
        assert one.prefix.tokens == tokens.count("## Identity\nYou are brief.\n")
        engine.add("instruction", "Answer in Celsius")
        assert engine.context("Which region?").prefix != one.prefix


def test_a_delta_says_what_is_new_changed_and_withdrawn(engine: foveate.Engine) -> None:
    with engine:
        before = engine.context("Tell me about the deploy")
        assert not before.delta(before)
        engine.edit("fact_1", text="The deploy takes five minutes")
        engine.add("fact", "The deploy region is us-east-1", subject="deploy", attribute="region")
        delta = engine.context("Tell me about the deploy").delta(before)
    assert [found.id for found in delta.added] == ["fact_3"]
    assert [found.id for found in delta.changed] == ["fact_1"]
    assert [item.id for item in delta.withdrawn] == ["fact_2"]
    assert delta
    assert delta.text.startswith("## New\n- The deploy region is us-east-1\n\n## Changed\n- The deploy takes five minutes\n")


def test_a_delta_compares_the_lines_and_not_the_texts_of_records(engine: foveate.Engine) -> None:
    long = "The release train leaves every Tuesday at nine. " + "Its carriages are built, tested and signed. " * 12
    with engine:
        id = engine.add("fact", long).record.id
        micro, full = ({"slots": {"facts": {"level": level, "max_level": level}}} for level in ("micro", "full"))
        before = engine.context("When does the release train leave?", overrides=micro)
        after = engine.context("When does the release train leave?", overrides=full)
        levels = [next(item for item in one.items if item.id == id).level for one in (before, after)]
        assert levels == ["micro", "full"]
        assert id in [item.id for item in after.delta(before).changed]  # the same text, another line
        engine.edit(id, tags=["train"])  # another version of the record, the same line
        again = engine.context("When does the release train leave?", overrides=full)
        assert id in [item.id for item in again.items]
        assert not again.delta(after)
