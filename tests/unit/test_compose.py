"""fill_slots(): budget, selection and assembly as one pure function."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import foveate
from foveate.errors import BudgetError
from foveate.pipeline.fill import fill_slots
from foveate.records.make import sketch
from foveate.text import tokens
from foveate.types import NO_FILTERS, Candidate, Profile, Record, Scope, Slot


@dataclass(frozen=True)
class Pairs:
    """A letter a token, and ten more for every two lines that stand together."""

    name: str = "pairs"
    is_exact: bool = False
    per_message: int = 0
    per_request: int = 0

    def count(self, text: str, /) -> int:
        return len(text) + 10 * max(0, text.count("\n") - 1)


tokens.register(Pairs())


def slot(name: str, **settings: object) -> Slot:
    return Slot(name=name, source="search", **{"level": "full", **settings})  # type: ignore[arg-type]


def profile(*slots: Slot, total: int, reserve: int = 0) -> Profile:
    return Profile(name="p", total=total, written_for=total, reserve=reserve, slots=slots)


def candidate(slot: str, text: str, score: float = 0.5, *, summary: str = "", micro: str = "") -> Candidate:
    record = Record(
        id=text[:8],
        kind="note",
        scope=Scope("main"),
        text=text,
        summary=summary or text,
        micro=micro or text,
        sketch=sketch(text),
    )
    return Candidate(record=record, slot=slot, source="search", score=score)


def lines(result: object) -> list[str]:
    return [line for section in result.sections for line in section.content.splitlines()]  # type: ignore[attr-defined]


def test_tokens_are_counted_by_the_requests_counter() -> None:
    p = profile(slot("a", share=1), total=40)
    result = fill_slots([candidate("a", "alpha beta")], p, NO_FILTERS, "bytes", "o200k")
    item = result.sections[0].items[0]
    assert item.tokens == len("- alpha beta\n")
    assert result.budget.used == len("- alpha beta\n") + 4 + 3


def test_a_record_whose_counts_are_the_stores_is_not_counted_again() -> None:
    known = candidate("a", "alpha beta")
    record = Record(
        id="x", kind="note", scope=Scope("main"), text="alpha", summary="alpha", micro="alpha",
        tokens={"full": 99, "summary": 99, "micro": 99},
    )  # fmt: skip
    found = [known, Candidate(record=record, slot="a", source="search")]
    result = fill_slots(found, profile(slot("a", share=1), total=200), NO_FILTERS, "bytes", "bytes")
    assert [item.tokens for item in result.sections[0].items] == [len("- alpha beta\n"), 99]


def test_the_reserve_is_not_spent() -> None:
    found = [candidate("a", f"word{n} stands here") for n in range(20)]
    result = fill_slots(found, profile(slot("a", share=1), total=200, reserve=120), NO_FILTERS, "bytes", "none")
    assert result.budget.used <= result.budget.ceiling == 80


def test_a_counter_whose_parts_do_not_add_up_is_obeyed() -> None:
    found = [candidate("a", f"line{n}") for n in range(8)]
    result = fill_slots(found, profile(slot("a", share=1), total=60), NO_FILTERS, "pairs", "none")
    assert 0 < result.budget.used <= 60
    assert 0 < len(lines(result)) < 8


def test_such_a_counter_still_shows_what_must_be_kept_and_nothing_else() -> None:
    found = [candidate("k", "rule one"), candidate("k", "rule two"), *(candidate("a", f"line{n}") for n in range(8))]
    # The rules: 2 lines of 11, and 10 for the pair; 1 of each section's overhead is counted before it is rendered.
    result = fill_slots(
        found, profile(slot("k", tokens=5, keep=True), slot("a", share=1), total=33), NO_FILTERS, "pairs", "none"
    )
    assert lines(result) == ["- rule one", "- rule two"]
    assert result.budget.used == 32


def test_its_budget_error_counts_what_would_be_rendered() -> None:
    found = [candidate("k", "rule one"), candidate("k", "rule two")]
    p = profile(slot("k", tokens=5, keep=True), total=20)
    with pytest.raises(BudgetError) as raised:
        fill_slots(found, p, NO_FILTERS, "pairs", "none")
    assert raised.value.short == 12
    enough = profile(slot("k", tokens=5, keep=True), total=32)
    assert fill_slots(found, enough, NO_FILTERS, "pairs", "none").budget.used == 32


def test_crumbs_go_to_a_slot_that_already_shows_its_best() -> None:
    p = profile(slot("a", share=1, priority=0.9), slot("b", share=1), total=7 + 60)
    found = [candidate("a", "x" * 7), candidate("a", "y" * 40, micro="y" * 3), candidate("b", "z" * 70)]
    result = fill_slots(found, p, NO_FILTERS, "bytes", "none")
    shown = {item.id[0]: item.level for section in result.sections for item in section.items}
    assert shown["x"] == "full"
    assert "y" in shown
    assert result.budget.used <= 67
    assert sum(slot.granted for slot in result.budget.slots) <= 60


def test_a_note_stands_where_a_slot_is_empty_and_there_is_room() -> None:
    quiet = slot("a", share=1, heading="Warnings", empty_text="None known.")
    assert lines(fill_slots([], profile(quiet, total=50), NO_FILTERS, "bytes", "none")) == ["## Warnings", "None known."]
    assert lines(fill_slots([], profile(quiet, total=25), NO_FILTERS, "bytes", "none")) == []


def test_a_slot_whose_items_do_not_fit_does_not_claim_to_be_empty() -> None:
    quiet = slot("a", share=1, heading="Warnings", empty_text="None known.")
    result = fill_slots([candidate("a", "x" * 90)], profile(quiet, total=60), NO_FILTERS, "bytes", "none")
    assert result.sections == ()
    assert [omission.reason for omission in result.left_out] == ["budget"]


def test_the_most_relevant_slot_is_served_first_when_room_is_short() -> None:
    p = profile(slot("a", share=50, heading="A"), slot("b", share=5, heading="B"), total=40)
    found = [candidate("a", "chatter about nothing", 0.2), candidate("b", "the very answer", 0.9)]
    assert lines(fill_slots(found, p, NO_FILTERS, "bytes", "none")) == ["## B", "- the very answer"]


def test_framing_is_of_the_messages_that_are_sent() -> None:
    engine = foveate.open(":memory:")
    assert engine.context("nothing here").budget.framing == 0
    engine.add("fact", "Redis runs on port 6379")
    assert engine.context("Redis port").budget.framing == 7
    engine.add("instruction", "Answer in English")
    assert engine.context("Redis port").budget.framing == 11
