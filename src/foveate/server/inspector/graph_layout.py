"""A neighbourhood -> places: boxes, lines between them and their names, in units of a drawing.

Comes in: nodes (the centre first, each other one with its parent) and edges. Goes out: two drawings of the same, one for
wide screens and one for narrow ones. Pure: the same nodes give the same drawing, no box covers another, and none leaves it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

BOX, CENTRE, HEIGHT = 172.0, 190.0, 28.0
"""How wide a box is, how wide the one in the middle, and how high both."""
GAP, BULGE, MARGIN, OUTSIDE = 128.0, 32.0, 14.0, 60.0
"""Room between two columns, how far the middle of a column stands out, the edge of the drawing, and the room beside the
outermost boxes, where lines go round."""
ROW, ROOMY = 40.0, 60.0
"""From one box of a column to the next: at least, and where there are few."""
NARROW, INDENT, STEP = 340.0, 24.0, 48.0
"""The narrow drawing: how wide it is, how far each step is indented, how far the next row is."""
TEXT, SMALL, SHAPE = 13.0, 11.0, 20.0
"""Sizes of the two scripts, and the room of the shape that stands before a name."""
MOST_CROSSING = 60
"""Lines between neighbours that are drawn; the table has them all."""

SHAPES = {
    "circle": "M6 1a5 5 0 1 0 .01 0z",
    "square": "M1.5 1.5h9v9h-9z",
    "diamond": "M6 0l6 6-6 6-6-6z",
    "triangle": "M6 .8l6 10.4h-12z",
    "hexagon": "M3 .8h6l3 5.2-3 5.2h-6l-3-5.2z",
    "cross": "M4 0h4v4h4v4h-4v4h-4v-4h-4v-4h4z",
    "bar": "M0 4h12v4h-12z",
}
_LOOKS = {
    "entity": ("circle", "c0"), "task": ("square", "c1"), "fact": ("triangle", "c2"), "decision": ("diamond", "c4"),
    "gotcha": ("cross", "c3"), "censor": ("cross", "c3"), "procedure": ("hexagon", "c7"), "pattern": ("hexagon", "c7"),
    "episode": ("bar", "c5"), "event": ("bar", "c5"), "handoff": ("square", "c6"), "question": ("diamond", "c8"),
}  # fmt: skip

Node = Mapping[str, Any]
Edge = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Box:
    id: str
    title: str
    label: str
    kind: str
    x: float
    y: float
    width: float
    is_centre: bool = False

    @property
    def middle(self) -> float:
        return self.y + HEIGHT / 2


@dataclass(frozen=True, slots=True)
class Line:
    """A line between two boxes. `there`: a link leads from the first to the second; `back`: one leads the other way."""

    path: str
    names: str
    there: bool
    back: bool
    crossing: bool = False
    label: str = ""
    x: float = 0.0
    y: float = 0.0
    anchor: str = "start"


@dataclass(frozen=True, slots=True)
class Drawing:
    width: float
    height: float
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]


def look(kind: str) -> dict[str, str]:
    """How a kind is drawn: its shape, and its class of colour."""
    shape, color = _LOOKS.get(kind, ("bar", "c9"))
    return {"path": SHAPES[shape], "shape": shape, "color": color}


def fitted(text: str, room: float, size: float) -> str:
    """As much of a text as has room, on one line."""
    flat = " ".join(text.split())
    if breadth(flat, size) <= room:
        return flat
    room -= breadth("…", size)
    for n in range(len(flat)):
        if (room := room - breadth(flat[n], size)) < 0:
            return flat[:n].rstrip() + "…"
    return flat


def breadth(text: str, size: float) -> float:
    """How wide a text is, rather too wide than too narrow: no font is asked."""
    return sum(_em(character) for character in text) * size


def _em(character: str) -> float:
    if unicodedata.east_asian_width(character) in "WF" or ord(character) > 0xFFFF:
        return 1.1
    if character in "ijlI.,:;!'|()[] ":
        return 0.38
    return 0.78 if character.isupper() else 1.0 if character in "mwMW@%…—" else 0.6


# --- wide: the centre in the middle, what is near to both sides ------------------------------------------------------


def wide(nodes: Sequence[Node], edges: Iterable[Edge]) -> Drawing:
    """The centre, its neighbours in an arc on either side, and beyond each of them what is near to it."""
    children = _children(nodes)
    sides = _sides(children.get(nodes[0]["id"], []), children)
    rows = max(1, *(sum(_span(node, children) for node in side) for side in sides))
    step = max(ROW, min(ROOMY, 260.0 / rows))
    height = rows * step + 2 * MARGIN
    reach = CENTRE / 2 + GAP + BULGE + BOX + (GAP + BOX if any(node["hop"] == 2 for node in nodes) else 0)
    middle, half = reach + OUTSIDE, height / 2
    boxes = {nodes[0]["id"]: _box(nodes[0], middle - CENTRE / 2, half, CENTRE, is_centre=True)}
    for sign, side in zip((1, -1), sides, strict=True):
        at = half - sum(_span(node, children) for node in side) * step / 2
        for node in side:
            span = _span(node, children)
            boxes[node["id"]] = _in_column(node, sign, 1, at + span * step / 2, middle, half)
            for n, child in enumerate(children.get(node["id"], [])):
                boxes[child["id"]] = _in_column(child, sign, 2, at + (n + 0.5) * step, middle, half)
            at += span * step
    return Drawing(2 * middle, height, tuple(boxes.values()), tuple(_lines(nodes, edges, boxes, half)))


def _children(nodes: Sequence[Node]) -> dict[str, list[Node]]:
    found: dict[str, list[Node]] = {}
    for node in nodes[1:]:
        found.setdefault(node["parent"], []).append(node)
    return found


def _span(node: Node, children: Mapping[str, Sequence[Node]]) -> int:
    """Rows that a neighbour takes: its own, or one for each of those beyond it."""
    return max(1, len(children.get(node["id"], ())))


def _sides(first: Sequence[Node], children: Mapping[str, Sequence[Node]]) -> tuple[list[Node], list[Node]]:
    """The neighbours to the right and to the left: each goes where there is more room."""
    right: list[Node] = []
    left: list[Node] = []
    taken = [0, 0]
    for node in first:
        side = int(taken[1] < taken[0])
        (left if side else right).append(node)
        taken[side] += _span(node, children)
    return right, left


def _in_column(node: Node, sign: int, column: int, y: float, middle: float, half: float) -> Box:
    bow = BULGE * (1 - ((y - half) / half) ** 2)
    away = CENTRE / 2 + GAP + bow + (column - 1) * (GAP + BOX)
    return _box(node, middle + away if sign > 0 else middle - away - BOX, y, BOX)


def _box(node: Node, x: float, middle: float, width: float, *, is_centre: bool = False) -> Box:
    label = fitted(node["title"], width - SHAPE - 14, TEXT)
    y = round(middle - HEIGHT / 2, 1)
    return Box(node["id"], node["title"], label, node["kind"], round(x, 1), y, width, is_centre)


def _lines(nodes: Sequence[Node], edges: Iterable[Edge], boxes: Mapping[str, Box], half: float) -> list[Line]:
    """Lines from parents to children with their names, above those that cross between neighbours."""
    joined = _joined(edges, boxes)
    out = []
    for node in nodes[1:]:
        pair = (node["parent"], node["id"])
        there, back = joined.pop(pair, []), joined.pop(pair[::-1], [])
        out.append(_to_child(boxes[pair[0]], boxes[pair[1]], there, back, half))
    crossing: list[Line] = []
    while joined and len(crossing) < MOST_CROSSING:
        (one, other), there = next(iter(joined.items()))
        del joined[one, other]
        back = joined.pop((other, one), [])
        crossing.append(_across(boxes[one], boxes[other], there, back, boxes[nodes[0]["id"]]))
    return [*crossing, *out]


def _joined(edges: Iterable[Edge], boxes: Mapping[str, Box]) -> dict[tuple[str, str], list[str]]:
    """The names of the links from one box to another."""
    found: dict[tuple[str, str], list[str]] = {}
    for edge in edges:
        if edge["src"] in boxes and edge["dst"] in boxes and edge["src"] != edge["dst"]:
            found.setdefault((edge["src"], edge["dst"]), []).append(edge["name"])
    return found


def _to_child(parent: Box, child: Box, there: Sequence[str], back: Sequence[str], half: float) -> Line:
    to_right = child.x > parent.x
    x1, x2 = (parent.x + parent.width, child.x) if to_right else (parent.x, child.x + child.width)
    bend = round((x1 + x2) / 2, 1)
    path = f"M{x1:g} {parent.middle:g}C{bend:g} {parent.middle:g} {bend:g} {child.middle:g} {x2:g} {child.middle:g}"
    names = ", ".join(dict.fromkeys((*there, *back)))
    label = fitted(names, GAP - 30, SMALL)
    y = child.middle + (14 if child.middle > half else -6)  # on the side where the line does not come from
    return Line(
        path,
        names,
        bool(there),
        bool(back),
        False,
        label,
        x2 - 12 if to_right else x2 + 12,
        y,
        "end" if to_right else "start",
    )


def _across(one: Box, other: Box, there: Sequence[str], back: Sequence[str], centre: Box) -> Line:
    """Between neighbours: round the outside on one side, and from inside to inside across the middle."""
    left, right = sorted((one, other), key=lambda box: box.x)
    same_side = (left.x > centre.x) == (right.x > centre.x)
    if not same_side or abs(left.x - right.x) > BOX:  # of two sides, or of two columns
        x1, x2 = left.x + left.width, right.x
        bend = (x1 + x2) / 2
    else:
        outwards = left.x > centre.x
        x1, x2 = (left.x + BOX, right.x + BOX) if outwards else (left.x, right.x)
        room = min(OUTSIDE - MARGIN, 18 + abs(left.y - right.y) / 6)
        bend = max(x1, x2) + room if outwards else min(x1, x2) - room
    path = f"M{x1:g} {left.middle:g}C{bend:.1f} {left.middle:g} {bend:.1f} {right.middle:g} {x2:g} {right.middle:g}"
    forth, hither = (there, back) if one is left else (back, there)
    return Line(path, ", ".join(dict.fromkeys((*there, *back))), bool(forth), bool(hither), crossing=True)


# --- narrow: a row for each, indented --------------------------------------------------------------------------------


def narrow(nodes: Sequence[Node], edges: Iterable[Edge]) -> Drawing:
    """The centre on top, beneath it each neighbour with what is near to it: a row each, as an outline."""
    children = _children(nodes)
    order = [nodes[0]]
    for node in children.get(nodes[0]["id"], []):
        order += [node, *children.get(node["id"], [])]
    boxes = {}
    for n, node in enumerate(order):
        x = MARGIN / 2 + node["hop"] * INDENT
        boxes[node["id"]] = _box(node, x, MARGIN + HEIGHT / 2 + n * STEP, NARROW - x - MARGIN / 2, is_centre=n == 0)
    joined = _joined(edges, boxes)
    lines = []
    for node in order[1:]:
        parent, child = boxes[node["parent"]], boxes[node["id"]]
        there, back = joined.get((parent.id, child.id), []), joined.get((child.id, parent.id), [])
        names = ", ".join(dict.fromkeys((*there, *back)))
        path = f"M{parent.x + INDENT / 2:g} {parent.y + HEIGHT:g}V{child.middle:g}H{child.x:g}"
        label = fitted(names, child.width - 8, SMALL)
        lines.append(Line(path, names, bool(there), bool(back), False, label, child.x + 4, child.y - 5))
    return Drawing(NARROW, 2 * MARGIN + HEIGHT + (len(order) - 1) * STEP, tuple(boxes.values()), tuple(lines))
