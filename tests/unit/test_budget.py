"""allocate(): shrinking, borrowing, flowing, and what does not fit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from foveate.errors import BudgetError
from foveate.pipeline.budget import Demand, allocate, redistribution_order, scaled_reserve
from foveate.pipeline.profiles import resolve
from foveate.types import Budget, Profile, Slot

ALL = 10**9
EVERYTHING = Demand(0, ALL, ALL)


def grants(budget: Budget) -> dict[str, int]:
    return {slot.name: slot.granted for slot in budget.slots}


def unlimited(profile: Profile) -> dict[str, Demand]:
    return {slot.name: EVERYTHING for slot in profile.slots}


def profile(*slots: Slot, total: int = 1000, written_for: int = 1000, reserve: int = 0) -> Profile:
    return Profile(name="p", total=total, written_for=written_for, reserve=reserve, slots=slots)


def fixed(name: str, tokens: int, **settings: object) -> Slot:
    return Slot(name=name, source="search", tokens=tokens, **settings)  # type: ignore[arg-type]


def share(name: str, part: float, **settings: object) -> Slot:
    return Slot(name=name, source="search", share=part, **settings)  # type: ignore[arg-type]


# --- smaller and larger totals --------------------------------------------------------------------------------------


def test_a_smaller_total_shrinks_fixed_figures_in_proportion_but_not_what_is_kept() -> None:
    fresh = resolve("task-files", total=75_000)
    budget = allocate(fresh, unlimited(fresh))
    granted = grants(budget)
    assert budget.reserve == 8000
    assert (granted["repo_map"], granted["codebase_docs"]) == (1000, 1500)
    assert (granted["system_prompt"], granted["task_spec"]) == (2000, 1000)
    left = 75_000 - 8000 - 5500
    parts = [granted[name] for name in ("files", "code", "memories")]
    assert parts == [left * 60 // 100, left * 25 // 100, left * 15 // 100]


def test_a_larger_total_grows_the_shares_only() -> None:
    fresh = resolve("task-files", total=250_000)
    budget = allocate(fresh, unlimited(fresh))
    assert budget.reserve == 16_000
    assert grants(budget)["repo_map"] == 2000
    assert grants(budget)["files"] == 226_000 * 60 // 100


def test_framing_and_margin_come_off_first() -> None:
    p = profile(share("a", 1))
    assert grants(allocate(p, {"a": EVERYTHING}, framing=11)) == {"a": 989}
    assert grants(allocate(p, {"a": EVERYTHING}, framing=11, margin=9)) == {"a": 980}


def test_the_reserve_is_rounded_up() -> None:
    assert scaled_reserve(profile(total=999, reserve=100)) == 100
    assert scaled_reserve(profile(total=10, reserve=100)) == 1
    assert scaled_reserve(profile(total=5000, reserve=100)) == 100


# --- flowing -------------------------------------------------------------------------------------------------------


def test_unused_fixed_room_joins_what_the_others_share() -> None:
    p = profile(fixed("f", 400), share("a", 75), share("b", 25))
    assert grants(allocate(p, {"f": Demand(), "a": EVERYTHING, "b": EVERYTHING})) == {"f": 0, "a": 750, "b": 250}


def test_an_empty_slot_leaves_its_share_to_the_others_in_their_proportion() -> None:
    p = profile(share("a", 50), share("b", 30), share("c", 20))
    assert grants(allocate(p, {"a": Demand(), "b": EVERYTHING, "c": EVERYTHING})) == {"a": 0, "b": 600, "c": 400}


def test_what_a_slot_does_not_need_flows_to_the_more_important_one_first() -> None:
    p = profile(share("a", 50), share("b", 25), share("c", 25, priority=0.9))
    small = Demand(0, 100, 100)
    assert grants(allocate(p, {"a": small, "b": EVERYTHING, "c": EVERYTHING})) == {"a": 100, "b": 250, "c": 650}


def test_of_equally_important_slots_the_one_with_the_better_item_is_first() -> None:
    p = profile(share("a", 50), share("b", 25), share("c", 25))
    wanted = {"a": Demand(0, 100, 100), "b": Demand(0, ALL, ALL, best_score=0.4), "c": Demand(0, ALL, ALL, best_score=0.8)}
    assert grants(allocate(p, wanted)) == {"a": 100, "b": 250, "c": 650}


def test_every_slot_shows_its_best_item_before_any_shows_its_second() -> None:
    p = profile(share("a", 98), share("b", 2), total=100, written_for=100)
    wanted = {"a": Demand(90, 500, 500, best_item=30), "b": Demand(40, 40, 40, best_item=20)}
    assert grants(allocate(p, wanted)) == {"a": 80, "b": 20}


def test_items_reach_their_level_before_any_is_deepened() -> None:
    p = profile(share("a", 50), share("b", 50), total=100, written_for=100)
    wanted = {"a": Demand(10, 20, 90), "b": Demand(10, 80, 80)}
    assert grants(allocate(p, wanted)) == {"a": 50, "b": 50}
    wanted = {"a": Demand(10, 20, 40), "b": Demand(10, 80, 80)}
    assert grants(allocate(p, wanted)) == {"a": 40, "b": 60}


def test_a_stable_slot_takes_no_room_of_others() -> None:
    p = profile(fixed("s", 100, stable=True), share("a", 1))
    assert grants(allocate(p, {"s": EVERYTHING, "a": Demand(0, 10, 10)})) == {"s": 100, "a": 10}


# --- what must be kept ---------------------------------------------------------------------------------------------


def test_a_keep_slot_that_outgrows_its_room_steps_down_and_then_borrows() -> None:
    p = profile(fixed("rules", 100, keep=True, stable=True), share("a", 1))
    steps_down = allocate(p, {"rules": Demand(80, 300, 300), "a": EVERYTHING})
    assert grants(steps_down) == {"rules": 100, "a": 900}
    assert steps_down.slots[0].borrowed == 0
    borrows = allocate(p, {"rules": Demand(250, 300, 300), "a": EVERYTHING})
    assert grants(borrows) == {"rules": 250, "a": 750}
    assert (borrows.slots[0].borrowed, borrows.slots[1].lent) == (150, 150)


def test_keep_slots_that_cannot_all_have_their_level_give_back_in_proportion() -> None:
    p = profile(fixed("a", 600, keep=True), fixed("b", 600, keep=True))
    assert grants(allocate(p, {"a": Demand(100, 600, 600), "b": Demand(100, 600, 600)})) == {"a": 500, "b": 500}


def test_keep_slots_come_before_fixed_ones_and_those_before_shares() -> None:
    p = profile(fixed("k", 100, keep=True), fixed("f", 300), share("a", 1), total=400, written_for=400)
    granted = grants(allocate(p, {"k": Demand(250, 250, 250), "f": EVERYTHING, "a": EVERYTHING}))
    assert granted == {"k": 250, "f": 150, "a": 0}


def test_a_budget_error_names_what_must_be_kept_and_says_by_how_much() -> None:
    p = profile(fixed("identity", 50, keep=True), fixed("rules", 50, keep=True), share("a", 1), total=100, written_for=100)
    with pytest.raises(BudgetError) as raised:
        allocate(p, {"identity": Demand(40, 50, 50), "rules": Demand(90, 90, 90), "a": EVERYTHING}, framing=11)
    assert raised.value.short == 41
    assert str(raised.value) == (
        "The slots that must be kept (identity, rules) need 141 tokens, and a budget of 100 leaves 100. "
        "Raise the budget by 41, or retire or shorten records of these slots."
    )


def test_short_takes_the_reserve_into_account_that_grows_with_the_total() -> None:
    p = profile(fixed("k", 10, keep=True), total=100, written_for=1000, reserve=500)
    demands = {"k": Demand(90, 90, 90)}
    with pytest.raises(BudgetError) as raised:
        allocate(p, demands)
    assert raised.value.short == 80
    assert grants(allocate(replace(p, total=180), demands)) == {"k": 90}
    with pytest.raises(BudgetError):
        allocate(replace(p, total=179), demands)


def test_a_total_below_the_framing_gives_nothing_where_nothing_must_be_kept() -> None:
    assert grants(allocate(profile(share("a", 1), total=5), {"a": EVERYTHING}, framing=11)) == {"a": 0}


# --- which slot is offered room first ------------------------------------------------------------------------------


def test_room_flows_first_to_the_more_important_slot_then_to_the_better_item_then_to_the_earlier_slot() -> None:
    slots = (
        share("late", 1, priority=0.5, order=3),
        share("b_early", 1, priority=0.5, order=1),
        share("a_early", 1, priority=0.5, order=1),
        share("better", 1, priority=0.5, order=9),
        share("important", 1, priority=0.9, order=9),
    )
    demands = {slot.name: Demand(best_score=0.8 if slot.name == "better" else 0.2) for slot in slots}
    order = [slot.name for slot in redistribution_order(profile(*slots), demands)]
    assert order == ["important", "better", "a_early", "b_early", "late"]
    assert [slot.name for slot in redistribution_order(profile(*slots[::-1]), demands)] == order


def test_room_that_a_slot_leaves_goes_to_the_first_slot_in_that_order() -> None:
    slots = share("modest", 1, priority=0.1), share("lesser", 1, priority=0.2), share("greater", 1, priority=0.8)
    demands = {"modest": Demand(10, 10, 10, 10), "lesser": Demand(5, 400, 400, 5), "greater": Demand(5, 400, 400, 5)}
    assert grants(allocate(profile(*slots, total=600), demands)) == {"modest": 10, "greater": 390, "lesser": 200}
