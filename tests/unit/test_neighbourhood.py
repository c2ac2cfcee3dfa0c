"""Places of a neighbourhood: nothing covers anything, nothing leaves the drawing, and the same gives the same."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

from foveate.server.inspector.graph_layout import HEIGHT, SMALL, TEXT, Box, Drawing, breadth, fitted, look, narrow, wide

LONG = "日本語 and a name that goes on and on " * 9


def around(first: int, second: int = 0) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A centre with so many neighbours, and so many more beyond them, unevenly; every third joined to its neighbour."""
    nodes = [{"id": "centre", "title": LONG, "kind": "entity", "hop": 0, "parent": ""}]
    nodes += [
        {"id": f"a{n}", "title": f"Near {n} {LONG}", "kind": "task", "hop": 1, "parent": "centre"} for n in range(first)
    ]
    for n in range(second):
        nodes.append({"id": f"b{n}", "title": f"Far {n}", "kind": "x", "hop": 2, "parent": f"a{n * n % 5 % first}"})
    edges = [{"src": node["parent"], "name": "depends on " * 5, "dst": node["id"]} for node in nodes[1:]]
    edges += [
        {"src": one["id"], "name": "also", "dst": other["id"]} for one, other in zip(nodes[1::3], nodes[2::3], strict=False)
    ]
    return nodes, edges


def overlap(one: Box, other: Box) -> bool:
    across = one.x < other.x + other.width and other.x < one.x + one.width
    return across and one.y < other.y + HEIGHT and other.y < one.y + HEIGHT


def labels(drawing: Drawing) -> list[tuple[float, float, float]]:
    """(left, right, base line) of each name of a line."""
    found = []
    for line in (line for line in drawing.lines if line.label):
        size = breadth(line.label, SMALL)
        left = line.x - size if line.anchor == "end" else line.x
        found.append((left, left + size, line.y))
    return found


SIZES = [*((n, 0) for n in range(41)), (1, 8), (5, 20), (14, 25), (13, 1)]


@pytest.mark.parametrize("draw", [wide, narrow])
@pytest.mark.parametrize(("first", "second"), SIZES)
def test_no_box_covers_another_and_everything_lies_inside(draw: Any, first: int, second: int) -> None:
    nodes, edges = around(first, second)
    drawing: Drawing = draw(nodes, edges)
    assert {box.id for box in drawing.boxes} == {node["id"] for node in nodes}
    for one, other in combinations(drawing.boxes, 2):
        assert not overlap(one, other), (one, other)
    for box in drawing.boxes:
        assert min(box.x, box.y) >= 0
        assert box.x + box.width <= drawing.width
        assert box.y + HEIGHT <= drawing.height
        assert breadth(box.label, TEXT) <= box.width - 26
    for left, right, base in labels(drawing):
        assert left >= 0
        assert right <= drawing.width
        assert SMALL <= base <= drawing.height
        assert not any(
            box.y < base - 2 < box.y + HEIGHT and box.x < right and left < box.x + box.width for box in drawing.boxes
        )
    assert draw(*around(first, second)) == drawing


def test_what_is_beyond_a_neighbour_stands_on_its_side_next_to_it() -> None:
    drawing = wide(*around(6, 20))
    boxes, centre = {box.id: box for box in drawing.boxes}, drawing.boxes[0]
    assert any(box.x < centre.x for box in drawing.boxes)
    assert any(box.x > centre.x for box in drawing.boxes)
    for node in around(6, 20)[0]:
        if node["hop"] == 2:
            near, far = boxes[node["parent"]], boxes[node["id"]]
            assert (near.x < centre.x) == (far.x < near.x)


def test_lines_say_which_way_their_links_lead() -> None:
    nodes = [
        {"id": id, "title": id, "kind": "fact", "hop": int(id != "a"), "parent": "" if id == "a" else "a"} for id in "abc"
    ]
    edges = [{"src": s, "name": f"{s}{d}", "dst": d} for s, d in ("ab", "ba", "ca", "cb")]
    ways = {line.names: (line.there, line.back, line.crossing) for line in wide(nodes, edges).lines}
    left_first = ways.pop("cb")
    assert ways == {"ab, ba": (True, True, False), "ca": (False, True, False)}
    assert left_first == (True, False, True)  # c stands to the left of b


@pytest.mark.parametrize(
    ("text", "room"), [("short", 200), ("", 10), (LONG, 120), ("MMMMMMMMMMMM", 60), ("🙂" * 50, 90), ("x", 1)]
)
def test_a_fitted_text_has_room_on_one_line(text: str, room: float) -> None:
    found = fitted(text, room, TEXT)
    assert "\n" not in found
    assert breadth(found, TEXT) <= max(room, breadth("…", TEXT))
    assert found == text or found.endswith("…")


def test_kinds_differ_by_shape_or_colour_and_any_kind_has_a_look() -> None:
    assert look("entity") != look("task") != look("fact")
    assert look("a kind of one's own")["path"]
