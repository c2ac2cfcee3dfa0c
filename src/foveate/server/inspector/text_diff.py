"""The lines in which two texts differ, with a few equal lines around them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

CONTEXT_LINES = 2

MAX_LINES = 3_000
"""Lines of both texts that are aligned one by one. difflib takes quadratic time in the worst case."""

MAX_SHOWN_LINES = 600


def diff_lines(before: str, after: str) -> dict[str, Any]:
    """Return the rows to show and the number of added, withdrawn and hidden lines.

    `op` of a row is same, added, withdrawn or gap. A gap stands for equal lines that are not shown.
    """
    rows = list(_rows(before.split("\n"), after.split("\n")))
    counts = {op: sum(row["op"] == op for row in rows) for op in ("added", "withdrawn")}
    return {**counts, "not_shown": max(0, len(rows) - MAX_SHOWN_LINES), "lines": rows[:MAX_SHOWN_LINES]}


def _rows(old: Sequence[str], new: Sequence[str]) -> Iterator[dict[str, Any]]:
    end, groups = 0, _groups(old, new)
    for group in groups:
        if hidden := group[0][1] - end:
            yield {"op": "gap", "text": f"{hidden:,} equal lines"}
        for op, from_old, to_old, from_new, to_new in group:
            if op == "equal":
                yield from ({"op": "same", "text": line} for line in old[from_old:to_old])
            else:
                yield from ({"op": "withdrawn", "text": line} for line in old[from_old:to_old])
                yield from ({"op": "added", "text": line} for line in new[from_new:to_new])
        end = group[-1][2]
    if groups and (hidden := len(old) - end):
        yield {"op": "gap", "text": f"{hidden:,} equal lines"}


def _groups(old: Sequence[str], new: Sequence[str]) -> list[list[tuple[str, int, int, int, int]]]:
    """Return opcodes in groups, as difflib does. Long texts are one change between their equal beginning and end."""
    if len(old) + len(new) <= MAX_LINES:
        return [list(group) for group in SequenceMatcher(None, old, new).get_grouped_opcodes(CONTEXT_LINES)]
    start = _common_prefix_length(old, new)
    end = _common_prefix_length(old[start:][::-1], new[start:][::-1])
    if start == len(old) == len(new):
        return []
    return [[("replace", start, len(old) - end, start, len(new) - end)]]


def _common_prefix_length(old: Sequence[str], new: Sequence[str]) -> int:
    pairs = zip(old, new, strict=False)
    return next((n for n, (one, other) in enumerate(pairs) if one != other), min(len(old), len(new)))
