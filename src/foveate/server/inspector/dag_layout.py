"""What waits for what -> geometry: columns by depth, from what waits for nothing on the left to what waits longest.

Comes in: names in order, and pairs (what comes first, what waits for it). Goes out: boxes that do not overlap and curves
that only run to the right. Plain numbers, the same for the same input: the template makes SVG of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

WIDTH, HEIGHT = 212.0, 44.0
"""A box."""
ACROSS, BETWEEN = 64.0, 14.0
"""Room between columns, in which the curves run, and between the boxes of one."""
PASSING = 10.0
"""Room for a curve that passes a column on its way."""
MARGIN = 8.0

SWEEPS = 4
"""How often the columns are put in order after their neighbours: later ones change next to nothing."""

Pair = tuple[str, str]
Place = tuple[str, ...]
"""What stands in a column: a box, `(name,)`, or a curve that passes, `(from, to, column)`."""


@dataclass(frozen=True, slots=True)
class Box:
    name: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Curve:
    first: str
    then: str
    d: str
    """An SVG path."""


@dataclass(frozen=True, slots=True)
class Picture:
    width: float
    height: float
    boxes: tuple[Box, ...]
    curves: tuple[Curve, ...]


def picture(names: Sequence[str], pairs: Iterable[Sequence[str]]) -> Picture:
    """The boxes of all names, and a curve for each pair of them."""
    known = dict.fromkeys(names)
    wanted = list(dict.fromkeys((a, b) for a, b in pairs if a in known and b in known and a != b))
    depth = depths(list(known), wanted)
    drawn = [(a, b) for a, b in wanted if depth[a] < depth[b]]
    ways = {pair: _way(pair, depth) for pair in drawn}
    columns = _in_order(_columns(known, depth, ways.values()), ways.values())
    height = max((_size(column) for column in columns), default=0.0)
    top = {place: y for column in columns for place, y in _stacked(column, height).items()}
    boxes = tuple(Box(name, _left(depth[name]), top[(name,)]) for name in known)
    curves = tuple(Curve(a, b, _curve(ways[a, b], depth, top)) for a, b in drawn)
    width = len(columns) * (WIDTH + ACROSS) - ACROSS if columns else 0.0
    return Picture(width + 2 * MARGIN, height + 2 * MARGIN, boxes, curves)


def depths(names: Sequence[str], pairs: Iterable[Pair]) -> dict[str, int]:
    """The longest way to each name. Nothing waits for itself; should it, the first of a circle counts as free."""
    waits: dict[str, set[str]] = {name: set() for name in names}
    onward: dict[str, list[str]] = defaultdict(list)
    for a, b in pairs:
        waits[b].add(a)
        onward[a].append(b)
    found: dict[str, int] = {}
    free = [name for name in names if not waits[name]]
    while len(found) < len(waits):
        if not free:
            free = [next(name for name in names if name not in found)]
        for name in free:
            found[name] = max((found[before] + 1 for before in waits[name] if before in found), default=0)
        after = dict.fromkeys(then for name in free for then in onward[name] if then not in found)
        free = [name for name in after if all(before in found for before in waits[name])]
    return found


def _way(pair: Pair, depth: Mapping[str, int]) -> list[Place]:
    """The places of a curve, a column each: its ends, and where it passes in between."""
    first, then = pair
    return [(first,), *((first, then, str(n)) for n in range(depth[first] + 1, depth[then])), (then,)]


def _columns(names: Iterable[str], depth: Mapping[str, int], ways: Iterable[Sequence[Place]]) -> list[list[Place]]:
    columns: list[list[Place]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for name in names:
        columns[depth[name]].append((name,))
    for way in ways:
        for place in way[1:-1]:
            columns[int(place[2])].append(place)
    return columns


def _in_order(columns: list[list[Place]], ways: Iterable[Sequence[Place]]) -> list[list[Place]]:
    """Each column by the middle of what its places lead to in the column before, then after it: fewer curves cross."""
    before: dict[Place, list[Place]] = defaultdict(list)
    after: dict[Place, list[Place]] = defaultdict(list)
    for way in ways:
        for one, next_one in pairwise(way):
            before[next_one].append(one)
            after[one].append(next_one)
    for sweep in range(SWEEPS):
        towards = before if sweep % 2 == 0 else after
        numbers = range(1, len(columns)) if sweep % 2 == 0 else range(len(columns) - 2, -1, -1)
        for n in numbers:
            beside = columns[n - 1] if sweep % 2 == 0 else columns[n + 1]
            columns[n] = _by_middle(columns[n], {place: at / len(beside) for at, place in enumerate(beside)}, towards)
    return columns


def _by_middle(column: list[Place], beside: Mapping[Place, float], towards: Mapping[Place, list[Place]]) -> list[Place]:
    middle = {}
    for at, place in enumerate(column):
        ends = [beside[end] for end in towards.get(place, ()) if end in beside]
        middle[place] = sum(ends) / len(ends) if ends else at / len(column)
    return sorted(column, key=lambda place: middle[place])


# --- numbers -----------------------------------------------------------------------------------------------------------


def _room(place: Place) -> float:
    return HEIGHT if len(place) == 1 else PASSING


def _size(column: Sequence[Place]) -> float:
    return sum(map(_room, column)) + BETWEEN * (len(column) - 1)


def _stacked(column: Sequence[Place], height: float) -> dict[Place, float]:
    """The top of each place, the column in the middle of the picture."""
    at = MARGIN + (height - _size(column)) / 2
    tops = {}
    for place in column:
        tops[place] = round(at, 1)
        at += _room(place) + BETWEEN
    return tops


def _left(column: int) -> float:
    return MARGIN + column * (WIDTH + ACROSS)


def _curve(way: Sequence[Place], depth: Mapping[str, int], top: Mapping[Place, float]) -> str:
    """From the right side of one box to the left of another, straight through the columns that it passes."""
    column, y = depth[way[0][0]], top[way[0]] + HEIGHT / 2
    d = f"M{_left(column) + WIDTH:g} {y:g}"
    for n, place in enumerate(way[1:], 1):
        left, end = _left(column + n), top[place] + _room(place) / 2
        d += f"C{left - ACROSS / 2:g} {y:g} {left - ACROSS / 2:g} {end:g} {left:g} {end:g}"
        d += f"H{left + WIDTH:g}" if n < len(way) - 1 else ""
        y = end
    return d
