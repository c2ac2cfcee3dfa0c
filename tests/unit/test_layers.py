"""What waits for what, as geometry."""

from __future__ import annotations

import re
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate.server.inspector.dag_layout import HEIGHT, WIDTH, depths, picture

NAMES = [f"task {n}" for n in range(14)]
pairs = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=40)
acyclic = pairs.map(lambda found: [tuple(sorted(pair, key=NAMES.index)) for pair in found if pair[0] != pair[1]])


def ends(d: str) -> list[tuple[float, float]]:
    """The points that a path goes through, without what bends it."""
    found: list[tuple[float, float]] = []
    for letter, said in re.findall(r"([MCH])([^MCH]*)", d):
        numbers = [float(part) for part in said.split()]
        found.append((numbers[0], found[-1][1]) if letter == "H" else (numbers[-2], numbers[-1]))
    return found


@given(acyclic)
def test_curves_only_run_to_the_right_from_what_comes_first(waits: list[tuple[str, str]]) -> None:
    drawn = picture(NAMES, waits)
    boxes = {box.name: box for box in drawn.boxes}
    assert {(curve.first, curve.then) for curve in drawn.curves} == set(waits), "every pair has one"
    for curve in drawn.curves:
        points = ends(curve.d)
        first, then = boxes[curve.first], boxes[curve.then]
        assert points[0] == (first.x + WIDTH, first.y + HEIGHT / 2)
        assert points[-1] == (then.x, then.y + HEIGHT / 2)
        assert [x for x, _ in points] == sorted({x for x, _ in points})


@given(pairs)
def test_no_two_boxes_overlap_and_all_are_inside(waits: list[tuple[str, str]]) -> None:
    drawn = picture(NAMES, waits)
    assert [box.name for box in drawn.boxes] == NAMES
    for one, other in combinations(drawn.boxes, 2):
        assert abs(one.x - other.x) >= WIDTH or abs(one.y - other.y) >= HEIGHT
    for box in drawn.boxes:
        assert 0 <= box.x <= drawn.width - WIDTH
        assert 0 <= box.y <= drawn.height - HEIGHT
    for curve in drawn.curves:
        assert all(0 <= x <= drawn.width and 0 <= y <= drawn.height for x, y in ends(curve.d))


@given(pairs)
def test_the_same_tasks_are_drawn_the_same_way_even_where_they_wait_in_a_circle(waits: list[tuple[str, str]]) -> None:
    assert picture(NAMES, waits) == picture(NAMES, list(waits))


@pytest.mark.parametrize(
    ("waits", "expected"),
    [
        ([], {"a": 0, "b": 0, "c": 0}),
        ([("a", "b"), ("b", "c"), ("a", "c")], {"a": 0, "b": 1, "c": 2}),
        ([("a", "b"), ("b", "a"), ("b", "c")], {"a": 0, "b": 1, "c": 2}),
    ],
)
def test_what_waits_longest_stands_furthest(waits: list[tuple[str, str]], expected: dict[str, int]) -> None:
    assert depths(["a", "b", "c"], waits) == expected


def test_nothing_is_a_picture_too() -> None:
    assert picture([], []).boxes == ()
