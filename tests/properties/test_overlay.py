"""Overlay, for any layers: associative, idempotent, pure; and any resolved profile reads back as shown."""

from __future__ import annotations

import tempfile
from copy import deepcopy
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from foveate.pipeline.profiles import FEATURES, overlay, resolve, to_toml

Table = dict[str, Any]

units = st.floats(0, 1)
amounts = st.integers(0, 500) | st.floats(0, 1e6)
slot_values = st.fixed_dictionaries(
    {},
    optional={
        "source": st.sampled_from(["search", "recent"]),
        "kinds": st.lists(st.sampled_from(["fact", "note", "event"]), max_size=2),
        "tokens": st.integers(0, 500),
        "share": amounts,
        "min_relevance": units,
        "keep": st.booleans(),
        "optional": st.booleans(),
    },
)
layer = st.fixed_dictionaries(
    {},
    optional={
        "total": st.integers(1, 9000),
        "half_life_hours": st.floats(0.1, 1e4),
        "weights": st.dictionaries(st.sampled_from(FEATURES[:4]), amounts, max_size=3),
        "slots": st.dictionaries(st.sampled_from("abcd"), slot_values, max_size=3),
    },
)


@given(layer, layer, layer)
def test_it_does_not_matter_which_two_are_laid_first(a: Table, b: Table, c: Table) -> None:
    assert overlay(overlay(a, b), c) == overlay(a, overlay(b, c))


@given(layer, layer)
def test_laying_a_layer_twice_changes_nothing(a: Table, b: Table) -> None:
    assert overlay(a, a) == a
    assert overlay(overlay(a, b), b) == overlay(a, b)


@given(layer)
def test_an_empty_layer_changes_nothing(a: Table) -> None:
    assert overlay(a, {}) == overlay({}, a) == a


@given(layer, layer)
def test_inputs_stay_as_they_were(a: Table, b: Table) -> None:
    before = deepcopy((a, b))
    overlay(a, b)
    assert (a, b) == before


@given(layer, layer)
def test_what_is_above_wins(a: Table, b: Table) -> None:
    laid = overlay(a, b)
    for slot, values in b.get("slots", {}).items():
        assert values.items() <= laid["slots"][slot].items()
    assert b.get("weights", {}).items() <= laid.get("weights", {}).items()


@given(layer, st.data())
def test_a_removed_slot_is_gone_and_the_others_stay(a: Table, data: st.DataObject) -> None:
    slots = a.get("slots", {})
    if not slots:
        return
    gone = data.draw(st.sampled_from(sorted(slots)))
    laid = overlay(a, {"slots": {gone: {"remove": True}}})
    assert laid["slots"] == {slot: values for slot, values in slots.items() if slot != gone}


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
calls = st.fixed_dictionaries(
    {},
    optional={
        "reserve": st.integers(0, 2000),
        "half_life_hours": st.floats(1e-9, 1e18),
        "vector_weight": units,
        "weights": st.dictionaries(st.sampled_from(FEATURES), amounts),
        "slots": st.fixed_dictionaries(
            {},
            optional={
                "decisions": st.fixed_dictionaries({}, optional={"heading": texts, "intro": texts, "share": amounts}),
                "extra": st.fixed_dictionaries(
                    {"source": st.just("given"), "tokens": st.integers(0, 900)},
                    optional={"empty_text": texts, "stable": st.booleans(), "role": st.sampled_from(["system", "user"])},
                ),
            },
        ),
    },
)


# The totals start where the keep slots and the shrunken reserve still fit.
@given(st.sampled_from(["default", "chat", "coding", "assistant"]), calls, st.integers(3000, 200_000) | st.none())
def test_any_resolved_profile_reads_back_as_shown(name: str, call: Table, total: int | None) -> None:
    profile = resolve(name, call=call, total=total)
    with tempfile.TemporaryDirectory() as place:
        Path(place, "shown.toml").write_text(to_toml(profile), encoding="utf-8", newline="")
        again = resolve("shown", [Path(place)], total=profile.total)
    assert (again.slots, again.weights, again.total, again.reserve) == (
        profile.slots,
        profile.weights,
        profile.total,
        profile.reserve,
    )
    assert (again.half_life_hours, again.vector_weight) == (profile.half_life_hours, profile.vector_weight)
