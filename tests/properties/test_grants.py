"""allocate(), for any profile and any demand: within the room, and never less for a larger total."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shapes import profiles

from foveate.errors import BudgetError
from foveate.pipeline.budget import Demand, allocate, scaled_reserve
from foveate.types import Profile, Slot
from property_settings import examples

FRAMING = 11

sizes = st.integers(0, 600)


@st.composite
def demands(draw: st.DrawFn, profile: Profile) -> dict[str, Demand]:
    out = {}
    for slot in profile.slots:
        micro, start, deep = sorted((draw(sizes), draw(sizes), draw(sizes)))
        out[slot.name] = Demand(micro, start, deep, draw(st.integers(0, micro)), draw(st.floats(0, 1)))
    return out


def grants(profile: Profile, wanted: dict[str, Demand], total: int) -> dict[str, int] | None:
    try:
        budget = allocate(replace(profile, total=total), wanted, framing=FRAMING)
    except BudgetError:
        return None
    return {slot.name: slot.granted for slot in budget.slots}


@examples(400)
@given(st.data(), profiles(), st.integers(1, 60) | st.integers(1, 3000))
def test_a_larger_total_grants_no_slot_less(data: st.DataObject, profile: Profile, more: int) -> None:
    wanted = data.draw(demands(profile))
    smaller = grants(profile, wanted, profile.total)
    if smaller is None:
        return
    larger = grants(profile, wanted, profile.total + more)
    assert larger is not None
    for name, granted in smaller.items():
        assert larger[name] >= granted, name


@examples(250)
@given(st.data(), profiles())
def test_grants_fit_the_room_and_nobody_gets_more_than_it_can_use(data: st.DataObject, profile: Profile) -> None:
    wanted = data.draw(demands(profile))
    granted = grants(profile, wanted, profile.total)
    if granted is None:
        return
    assert sum(granted.values()) <= max(0, profile.total - scaled_reserve(profile) - FRAMING)
    for slot in profile.slots:
        assert 0 <= granted[slot.name] <= wanted[slot.name].maximum
        if slot.keep:
            assert granted[slot.name] >= wanted[slot.name].minimum


@examples(250)
@given(st.data(), profiles())
def test_a_budget_error_says_by_how_much(data: st.DataObject, profile: Profile) -> None:
    wanted = data.draw(demands(profile))
    if grants(profile, wanted, profile.total) is not None:
        return
    with pytest.raises(BudgetError, match=f"a budget of {profile.total} leaves") as raised:
        allocate(profile, wanted, framing=FRAMING)
    short = raised.value.short
    assert short > 0
    assert grants(profile, wanted, profile.total + short) is not None
    assert grants(profile, wanted, profile.total + short - 1) is None


def some_profile(random: Random) -> Profile:
    """As `profiles()`, by the thousand."""
    slots = []
    for n in range(random.randint(1, 8)):
        room = {"tokens": random.randint(0, 400)} if random.random() < 0.5 else {"share": random.choice((1, 10, 33.3))}
        slots.append(
            Slot(
                name=f"s{n}",
                source="search",
                keep=random.random() < 0.3,
                stable=random.random() < 0.3,
                order=random.randint(0, 3),
                priority=random.choice((0.2, 0.5, 0.5)),
                **room,  # type: ignore[arg-type]
            )
        )
    total = random.randint(30, 2500)
    return Profile(
        name="any",
        total=total,
        written_for=random.choice((total, 1000, 2000, 4000)),
        reserve=random.choice((0, 100, 777)),
        slots=tuple(slots),
    )


@pytest.mark.parametrize("seed", range(8))
def test_thousands_of_profiles_grant_no_slot_less_at_a_larger_total(seed: int) -> None:
    random = Random(seed)
    for _ in range(1000):
        profile = some_profile(random)
        wanted = {}
        for slot in profile.slots:
            micro, start, deep = sorted(random.choice((0, random.randint(1, 700))) for _ in range(3))
            wanted[slot.name] = Demand(micro, start, deep, random.randint(0, micro), random.random())
        totals = sorted(profile.total + random.choice((0, 1, 2, 3, random.randint(0, 3000))) for _ in range(6))
        before: dict[str, int] | None = None
        for total in totals:
            granted = grants(profile, wanted, total)
            if granted is None:
                assert before is None
                continue
            room = max(0, total - scaled_reserve(replace(profile, total=total)) - FRAMING)
            assert sum(granted.values()) <= room
            for slot in profile.slots:
                assert granted[slot.name] >= (before or {}).get(slot.name, 0), (profile, wanted, total)
                assert not slot.keep or granted[slot.name] >= wanted[slot.name].minimum
            before = granted
