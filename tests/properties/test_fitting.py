"""Budget, selection and assembly, for any profile and any candidates: the pure half of the pipeline."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from shapes import Case, candidate, cases

from foveate.errors import BudgetError
from foveate.pipeline.duplicates import are_near_duplicates
from foveate.pipeline.fill import FilledSlots, fill_slots
from foveate.pipeline.selection import SHARE_OF_BEST, effective_floor
from foveate.types import NO_FILTERS, Candidate, Filters
from property_settings import examples


def composed(case: Case, total: int | None = None, filters: Filters = NO_FILTERS) -> FilledSlots:
    profile = case.profile if total is None else replace(case.profile, total=total)
    return fill_slots(case.candidates, profile, filters, "bytes", "nobody")


def composed_or_none(case: Case, total: int | None = None) -> FilledSlots | None:
    try:
        return composed(case, total)
    except BudgetError:
        return None


def with_first_slot(case: Case, **settings: Any) -> Case:
    """The case, with some settings of one slot fixed."""
    slots = [replace(slot, **settings) if slot.name == "s0" else slot for slot in case.profile.slots]
    slots.sort(key=lambda slot: (not slot.stable, slot.order, slot.name))
    place = {slot.name: n for n, slot in enumerate(slots)}
    found = sorted(case.candidates, key=lambda c: place[c.slot])
    return Case(replace(case.profile, slots=tuple(slots)), tuple(found))


def key(found: Candidate) -> tuple[str, str, float]:
    return (found.record.id, found.slot, found.score)


def kept(result: FilledSlots) -> list[Candidate]:
    return [item.candidate for section in result.sections for item in section.items]


def best_ranks(result: FilledSlots) -> dict[str, int]:
    """For each slot that shows something, the rank of the best item that it shows."""
    return {section.name: min(item.rank for item in section.items) for section in result.sections if section.items}


# --- selection -----------------------------------------------------------------------------------------------------


@examples(500)
@given(cases(repeats=True), st.data())
def test_every_candidate_is_kept_or_has_exactly_one_reason(case: Case, data: st.DataObject) -> None:
    ids = [candidate.record.id for candidate in case.candidates]
    exclude = tuple(data.draw(st.lists(st.sampled_from(ids), max_size=2))) if ids else ()
    try:
        result = composed(case, filters=Filters(exclude=exclude))
    except BudgetError:
        return
    decided = Counter(key(candidate) for candidate in kept(result))
    decided += Counter(key(omission.candidate) for omission in result.left_out)
    assert decided == Counter(key(candidate) for candidate in case.candidates)


@examples(500)
@given(cases())
def test_the_ceiling_holds_and_the_ledger_adds_up(case: Case) -> None:
    result = composed_or_none(case)
    if result is None:
        return
    budget = result.budget
    assert budget.used <= budget.ceiling
    assert sum(slot.granted for slot in budget.slots) <= budget.ceiling
    for slot in budget.slots:
        assert slot.used <= slot.granted


@examples(800)
@given(cases(), st.integers(1, 30) | st.integers(1, 2000))
def test_a_larger_total_never_loses_a_slots_best_item(case: Case, more: int) -> None:
    smaller = composed_or_none(case)
    if smaller is None:
        return
    larger = composed(case, case.profile.total + more)
    after = best_ranks(larger)
    for name, rank in best_ranks(smaller).items():
        assert after.get(name, 999) <= rank, name


@examples(300)
@given(cases(repeats=True), st.integers(1, 500))
def test_with_repeats_the_best_item_or_its_duplicate_stays(case: Case, more: int) -> None:
    smaller = composed_or_none(case)
    if smaller is None:
        return
    larger = composed(case, case.profile.total + more)
    texts = [candidate.record.text for candidate in kept(larger)]
    for section in smaller.sections:
        first = next((item for item in section.items if item.rank == 1), None)
        if first is not None:
            text = first.record.text
            assert any(text == other or are_near_duplicates(text, other) for other in texts)


@examples(400)
@given(cases(repeats=True), st.data())
def test_a_candidate_under_its_floor_changes_nothing(case: Case, data: st.DataObject) -> None:
    case = with_first_slot(case, keep=False, min_relevance=0.3, fill="none")
    slot = next(slot for slot in case.profile.slots if slot.name == "s0")
    donor = data.draw(st.sampled_from(case.candidates)) if case.candidates else candidate("s0", "low", 0.0, (90, 30, 9))
    best = max((c.features.get("relevance", 0.0) for c in case.candidates if c.slot == slot.name), default=0.0)
    floor = effective_floor(slot, best)
    assert floor == (0.3 if best < 0.3 else min(0.3, SHARE_OF_BEST * best))
    score = round(data.draw(st.floats(0, floor - 0.001)), 6)
    low = replace(donor, slot=slot.name, score=score, features={"relevance": score})
    place = {s.name: n for n, s in enumerate(case.profile.slots)}
    more = Case(case.profile, tuple(sorted((*case.candidates, low), key=lambda c: place[c.slot])))
    without, with_low = composed_or_none(case), composed_or_none(more)
    if without is None or with_low is None:
        assert without is with_low
        return
    assert with_low.sections == without.sections
    assert with_low.budget == without.budget
    assert Counter(o.reason for o in with_low.left_out) == Counter(o.reason for o in without.left_out) + Counter(
        ["min_relevance"]
    )


@examples(400)
@given(cases(repeats=True))
def test_near_duplicates_are_shown_once_outside_of_what_must_be_kept(case: Case) -> None:
    result = composed_or_none(case)
    if result is None:
        return
    keep = {slot.name for slot in case.profile.slots if slot.keep}
    shown = kept(result)
    for n, one in enumerate(shown):
        for other in shown[n + 1 :]:
            if one.slot in keep and other.slot in keep:
                assert one.record.id != other.record.id
            else:
                assert not are_near_duplicates(one.record.text, other.record.text)
    by_id = {candidate.record.id for candidate in shown}
    for omission in result.left_out:
        if omission.reason == "duplicate":
            twin = omission.detail
            assert twin in by_id or any(o.id == twin and o.reason == "budget" for o in result.left_out)


@examples(400)
@given(cases())
def test_what_must_be_kept_is_never_lost(case: Case) -> None:
    result = composed_or_none(case)
    if result is None:
        return
    keep = {slot.name for slot in case.profile.slots if slot.keep}
    wanted = {key(candidate) for candidate in case.candidates if candidate.slot in keep}
    assert wanted == {key(candidate) for candidate in kept(result) if candidate.slot in keep}


@examples(400)
@given(cases(), st.integers(0, 10_000))
def test_stable_sections_do_not_depend_on_scores_or_on_what_may_be_shown(case: Case, seed: int) -> None:
    """Whatever the question finds for the other slots, a stable slot that is kept reads the same."""
    case = with_first_slot(case, keep=True, stable=True, max_items=None, min_relevance=0.0)
    kept_stable = {slot.name for slot in case.profile.slots if slot.stable and slot.keep}
    others = {slot.name for slot in case.profile.slots if not slot.keep}
    random = Random(seed)
    rescored = tuple(replace(c, score=random.random()) if c.slot in kept_stable else c for c in case.candidates)
    fewer = tuple(c for c in rescored if c.slot not in others)
    one = composed_or_none(case)
    for changed in (rescored, fewer):
        other = composed_or_none(Case(case.profile, changed))
        if one is None or other is None:
            assert one is other
            continue
        assert [s.content for s in one.sections if s.name in kept_stable] == [
            s.content for s in other.sections if s.name in kept_stable
        ]


@examples(200)
@given(cases(repeats=True))
def test_the_same_candidates_give_the_same_prompt(case: Case) -> None:
    assert composed_or_none(case) == composed_or_none(case)
