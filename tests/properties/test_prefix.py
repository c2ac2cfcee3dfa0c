"""The prompt-cache contract: the stable part keeps its bytes until what stands in it changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shapes import facts_of_life, few_rules, sentences, short_rules, texts

from foveate import Context
from property_settings import examples
from worlds import WORLDS, World, open_engine

Rows = list[tuple[str, str]]

BUDGETS = st.integers(5000, 20_000)
"""Budgets in which the rules are shown in full."""
PROFILES = ("default", "chat", "coding", "subtask", "assistant", "agent")

asked = st.tuples(sentences, st.none() | st.sampled_from(("one", "two")), st.none() | BUDGETS)
steps = st.lists(st.tuples(facts_of_life, asked), min_size=2, max_size=4)


@examples(100)
@given(short_rules, short_rules, steps, st.sampled_from(PROFILES))
def test_stable_bytes_change_only_with_what_stands_in_them(
    rules: Rows, more: Rows, steps: list[tuple[Rows, tuple[str, str | None, int | None]]], profile: str
) -> None:
    with open_engine() as engine:
        for added in (rules, more):
            stable = set()
            for kind, text in added:
                engine.add(kind, text)
            for rows, (query, session, budget) in steps:
                for kind, text in rows:
                    engine.add(kind, text)
                context = engine.context(query, session=session, budget=budget, profile=profile)
                stable.add(context.stable)
                assert cached_part(context) == context.stable
            assert len(stable) == 1


def cached_part(context: Context) -> str:
    """What a provider's cache may keep, by the messages of both shapes."""
    anthropic = context.anthropic()
    marked = [block for block in anthropic["system"] if "cache_control" in block]
    assert marked == anthropic["system"][: len(marked)]
    assert len(marked) <= 1
    text = "".join(block["text"] for block in marked)
    assert "".join(message["content"] for message in context.messages()).startswith(text)
    return text


@examples(50)
@given(few_rules.filter(bool), sentences, texts)
def test_a_new_rule_changes_the_stable_part_and_nothing_else_does(rules: Rows, query: str, text: str) -> None:
    with open_engine() as engine:
        for kind, rule in rules:
            engine.add(kind, rule)
        before = engine.context(query)
        added = engine.add("instruction", text)
        after = engine.context(query)
        assert (before.stable != after.stable) is (added.action == "added")
        engine.edit(added.record.id, status="retired")
        if added.action == "added":
            assert engine.context(query).prefix == before.prefix


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_every_world_begins_with_its_stable_part(world: World) -> None:
    with world.open() as engine:
        context = world.context(engine)
        assert context.text.startswith(context.stable)
        assert cached_part(context) == context.stable
        assert engine.receipts.diff(context, context).same_prefix


def test_a_diff_gives_the_shared_beginning_in_tokens_and_as_a_share() -> None:
    with open_engine() as engine:
        engine.add("identity", "You are Keel.")
        engine.add("fact", "The parser reads UTF-8")
        engine.add("fact", "The linter reads settings")
        one, other = engine.context("parser"), engine.context("linter")
        shared = engine.receipts.diff(one, other).shared_prefix
        assert shared.chars >= one.prefix.chars
        assert one.text[: shared.chars] == other.text[: shared.chars]
        assert one.text[: shared.chars + 1] != other.text[: shared.chars + 1]
        assert 0 < shared.tokens < other.tokens
        assert 0 < shared.share < 1
        assert engine.receipts.diff(one, one).shared_prefix.share == 1.0
