"""Bars for people: amounts -> pieces of a line, as many columns as they are worth.

Neighbours differ in colour and, where there is none, in their mark; a terminal that does not speak UTF-8 gets ASCII. Where
there is no room (0 columns, or fewer), there is no bar.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from foveate.cli.call import speaks_utf8
from foveate.cli.render import Line, Piece

COLORS = ("cyan", "green", "yellow", "magenta", "blue", "red")
UTF8 = {"parts": "█▓", "framing": "▚", "free": "░", "reserve": "▒"}
ASCII = {"parts": "#=", "framing": "+", "free": ".", "reserve": "-"}


def marks() -> dict[str, str]:
    return UTF8 if speaks_utf8() else ASCII


def swatch(n: int) -> Piece:
    """The mark and the colour of the n-th part."""
    parts = marks()["parts"]
    return parts[n % len(parts)], COLORS[n % len(COLORS)]


def stacked(parts: Iterable[tuple[float, str, str]], columns: int) -> Line:
    """One bar of that many columns: amounts side by side, each with its mark and its style."""
    given = list(parts)
    sizes = proportional([amount for amount, _, _ in given], max(0, columns))
    return [(mark * size, style) for size, (_, mark, style) in zip(sizes, given, strict=True)]


def proportional(amounts: Sequence[float], columns: int) -> list[int]:
    """Whole columns for each amount, together exactly `columns`; what is not nothing gets one where there is room."""
    total = sum(amounts)
    if not total:
        return [0] * len(amounts)
    exact = [amount * columns / total for amount in amounts]
    sizes = [max(int(size), 1 if size else 0) for size in exact]
    while sum(sizes) != columns:
        step = 1 if sum(sizes) < columns else -1
        able = [n for n, size in enumerate(sizes) if step > 0 or size > 1] or [n for n, size in enumerate(sizes) if size]
        furthest = max(able, key=lambda n: (step * (exact[n] - sizes[n]), exact[n], -n))
        sizes[furthest] += step
    return sizes


def length(amount: float, most: float, columns: int) -> int:
    """The columns of an amount where `most` has all of them; what is not nothing has one."""
    return min(columns, max(1, round(amount * columns / most))) if amount > 0 and most > 0 else 0


# --- scores ----------------------------------------------------------------------------------------------------------


def pieces(parts: Mapping[str, float]) -> list[tuple[str, float, Piece]]:
    """The parts that add something, each with its mark and its colour: a feature has the same colour in every score."""
    shown = [(n, name, part) for n, (name, part) in enumerate(parts.items()) if part > 0]
    return [(name, part, (swatch(place)[0], swatch(n)[1])) for place, (n, name, part) in enumerate(shown)]


def score(parts: Mapping[str, float], most: float, columns: int) -> Line:
    """A score as its parts, where `most` fills all columns; blanks fill the rest."""
    drawn, columns = [(part, *look) for _, part, look in pieces(parts)], max(0, columns)
    whole = max(length(sum(parts.values()), most, columns), min(len(drawn), columns))
    return [*stacked(drawn, whole), (" " * (columns - whole), "")]


def words(parts: Mapping[str, float], columns: int) -> list[Line]:
    """`relevance 0.480 + recency 0.100`, each in the colour of its piece of the bar, in lines of that many columns."""
    lines: list[Line] = [[]]
    room = columns
    for n, (name, part, (_, color)) in enumerate(pieces(parts)):
        said = f"{name} {part:.3f}"
        if n and len(said) + 3 > room:
            lines.append([("+ ", "dim")])
            room = columns - 2
        elif n:
            lines[-1].append((" + ", "dim"))
            room -= 3
        lines[-1].append((said, color))
        room -= len(said)
    return lines if lines[0] else [[("0", "dim")]]


def lacking(has: float, lacks: float, columns: int) -> Line:
    """What there is, and what there would have to be besides."""
    return stacked([(has, *swatch(0)), (lacks, marks()["free"], "dim")], columns)
