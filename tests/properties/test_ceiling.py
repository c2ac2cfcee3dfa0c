"""What the model receives is never more than was allowed, whatever is in it and however it is counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st
from shapes import facts_of_life, few_rules, texts

import foveate
from foveate import BudgetError
from foveate.receipts.codec import context_to_json
from foveate.text import tokens
from property_settings import examples
from worlds import open_engine

Rows = list[tuple[str, str]]
PROFILES = ("default", "chat", "coding", "task-files", "assistant", "subtask")
GIVEN = {
    "default": "given",
    "chat": "given",
    "coding": "given",
    "task-files": "files",
    "assistant": "working",
    "subtask": "path",
}


@dataclass(frozen=True)
class Crowded:
    """Counts more for two texts together than for each of them: the more lines, the dearer a line."""

    name: str = "crowded"
    is_exact: bool = False
    per_message: int = 9
    per_request: int = 2

    def count(self, text: str, /) -> int:
        lines = text.count("\n")
        return len(text) // 4 + lines + lines * lines // 6


tokens.register(Crowded())
COUNTERS = ("o200k", "cl100k", "anthropic", "chars4", "bytes", "crowded")


def fill(engine: foveate.Engine, rows: Rows) -> None:
    for kind, text in rows:
        engine.add(kind, text)


@examples(350)
@given(
    facts_of_life,
    few_rules,
    texts,
    st.lists(texts, max_size=2),
    st.sampled_from(PROFILES),
    st.sampled_from(COUNTERS),
    st.integers(12, 120) | st.integers(60, 900) | st.integers(900, 12_000),
)
def test_rendered_tokens_never_exceed_the_ceiling(
    rows: Rows, rules: Rows, query: str, given_texts: list[str], profile: str, counter: str, budget: int
) -> None:
    with open_engine() as engine:
        fill(engine, rows + rules)
        options = {"profile": profile, "counter": counter, "extra": {GIVEN[profile]: given_texts}}
        try:
            context = engine.context(query, budget=budget, **options)
        except BudgetError as error:
            context = engine.context(query, budget=budget + error.short, **options)
        used = tokens.count_messages(context.messages(), counter)
        assert used == context.tokens <= context.budget.ceiling <= context.budget.total
        assert sum(slot.granted for slot in context.budget.slots) <= context.budget.ceiling


@examples(150)
@given(facts_of_life, few_rules, texts, st.sampled_from(PROFILES), st.integers(80, 3000))
def test_every_candidate_of_a_context_is_kept_or_has_one_reason(
    rows: Rows, rules: Rows, query: str, profile: str, budget: int
) -> None:
    with open_engine() as engine:
        fill(engine, rows + rules)
        try:
            context = engine.context(query, budget=budget, profile=profile)
        except BudgetError:
            return
        receipt = engine.receipts.get(context)
        found = Counter((entry.id, entry.slot) for entry in receipt.candidates)
        shown = Counter((item.id, item.section) for item in context.items)
        lost = Counter((o.id, o.section) for o in context.left_out)
        assert shown + lost == found
        assert found == Counter(dict.fromkeys(found, 1))
        assert sum(context.considered.values()) == len(receipt.candidates)
        for entry in receipt.candidates:
            assert entry.is_kept is ((entry.id, entry.slot) in shown)
            assert entry.is_kept or entry.reason
            assert str(engine.why(entry.id, context))
            # The strength of a match is a sum of weights, from which the relevance is computed. All others are shares.
            shares = [value for name, value in entry.features.items() if name != "strength"]
            assert all(0.0 <= value <= 1.0 for value in shares), entry


@examples(150)
@given(facts_of_life, few_rules, st.tuples(texts, texts), st.sampled_from(PROFILES), st.integers(300, 6000))
def test_stable_text_does_not_depend_on_the_question(
    rows: Rows, rules: Rows, queries: tuple[str, str], profile: str, budget: int
) -> None:
    with open_engine() as engine:
        fill(engine, rows + rules)
        engine.add("fact", "Pinned: the nightly build is red", pinned=True)
        try:
            one, other = (engine.context(query, budget=budget, profile=profile) for query in queries)
        except BudgetError:
            return
        stable = [[s.content for s in context.sections if s.stable] for context in (one, other)]
        assert stable[0] == stable[1]
        assert one.prefix == other.prefix
        assert one.text[: one.prefix.chars] == other.text[: other.prefix.chars]


@examples(60)
@given(facts_of_life, few_rules, texts, st.sampled_from(PROFILES))
def test_the_same_state_request_and_clock_give_the_same_bytes(rows: Rows, rules: Rows, query: str, profile: str) -> None:
    documents = []
    for _ in range(2):
        with open_engine() as engine:
            fill(engine, rows + rules)
            documents.append(context_to_json(engine.context(query, profile=profile)))
    assert documents[0] == documents[1]


@examples(40)
@given(st.lists(texts, min_size=1, max_size=60, unique=True), st.integers(0, 400))
def test_rules_that_outgrow_their_room_borrow_and_are_all_there_in_full(rules: list[str], more: int) -> None:
    with open_engine() as engine:
        for text in rules:
            engine.add("instruction", text)
        try:
            context = engine.context("anything at all", budget=900 + more)
        except BudgetError as error:
            context = engine.context("anything at all", budget=900 + more + error.short)
        shown = {item.id for item in context.items}
        with engine.store.data.reader() as reader:
            standing = reader.always_on(["instruction"])
        assert shown == {record.id for record in standing}
        needs = sum((record.tokens or {})["full"] for record in standing)
        assert bool(engine.store.oversized_rules()) is (needs > 600)
        assert all(item.level == "full" for item in context.items)
