"""Two texts -> the lines that differ, with a few around them; in a line that was changed, the words that differ. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

AROUND = 2
"""Lines of what is the same that stand around a change, so that one sees where it is."""

MOST_LINES = 3000
"""Lines that are compared one with another; of more, all that differ count as exchanged."""

MOST_SHOWN = 600
"""Lines that are given: more is not read on a page."""

MOST_PAIRS, MOST_WORDS = 40, 120
"""Lines that are compared word by word, and the words of one: together, forty milliseconds at worst."""

ALIKE = 0.5
"""Share of two lines that must agree before the words that differ tell more than the lines."""

_WORDS = re.compile(r"\s*(?:\w+|[^\w\s])|\s+")

Parts = list[dict[str, Any]]
"""Pieces of a line, each with whether it differs."""


def differing(before: str, after: str) -> dict[str, Any]:
    """The lines to show, and how many were added, withdrawn and are not shown.

    `op` of a line is same, added, withdrawn or gap; a gap stands for `lines` lines that are the same.
    """
    lines = list(_unified(before.split("\n"), after.split("\n")))
    counts = {op: sum(line["op"] == op for line in lines) for op in ("added", "withdrawn")}
    return {**counts, "not_shown": max(0, len(lines) - MOST_SHOWN), "lines": lines[:MOST_SHOWN]}


def _unified(old: Sequence[str], new: Sequence[str]) -> Iterator[dict[str, Any]]:
    steps = _steps(old, new)
    compared = 0
    for n, (op, from_old, to_old, from_new, to_new) in enumerate(steps):
        if op == "equal":
            yield from _same(old[from_old:to_old], first=n == 0, last=n == len(steps) - 1)
            continue
        gone, come = ([_whole(line) for line in lines] for lines in (old[from_old:to_old], new[from_new:to_new]))
        for at in range(min(len(gone), len(come), MOST_PAIRS - compared)):
            gone[at], come[at] = _by_words(old[from_old + at], new[from_new + at])
            compared += 1
        yield from ({"op": "withdrawn", "parts": parts} for parts in gone)
        yield from ({"op": "added", "parts": parts} for parts in come)


def _steps(old: Sequence[str], new: Sequence[str]) -> Sequence[tuple[str, int, int, int, int]]:
    if len(old) + len(new) <= MOST_LINES:
        return SequenceMatcher(None, old, new).get_opcodes()
    begin = _alike(old, new)
    end = _alike(old[begin:][::-1], new[begin:][::-1])
    last_old, last_new = len(old) - end, len(new) - end
    steps = [
        ("equal", 0, begin, 0, begin),
        ("replace", begin, last_old, begin, last_new),
        ("equal", last_old, len(old), last_new, len(new)),
    ]
    return [step for step in steps if step[1] < step[2] or step[3] < step[4]]


def _alike(old: Sequence[str], new: Sequence[str]) -> int:
    """With how many lines both begin."""
    pairs = zip(old, new, strict=False)
    return next((n for n, (one, other) in enumerate(pairs) if one != other), min(len(old), len(new)))


def _same(lines: Sequence[str], *, first: bool, last: bool) -> Iterator[dict[str, Any]]:
    """What both have: the lines beside a change, and how many lie between."""
    above, below = 0 if first else AROUND, 0 if last else AROUND
    between = len(lines) - above - below
    if between <= 1:
        yield from ({"op": "same", "parts": _plain(line)} for line in lines)
        return
    yield from ({"op": "same", "parts": _plain(line)} for line in lines[:above])
    yield {"op": "gap", "lines": between, "parts": []}
    yield from ({"op": "same", "parts": _plain(line)} for line in lines[len(lines) - below :])


def _by_words(old: str, new: str) -> tuple[Parts, Parts]:
    """Two lines with the words marked that differ; whole where they have little in common, or are very long."""
    before, after = _WORDS.findall(old), _WORDS.findall(new)
    if max(len(before), len(after)) > MOST_WORDS:
        return _whole(old), _whole(new)
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    if matcher.ratio() < ALIKE:
        return _whole(old), _whole(new)
    gone: Parts = []
    come: Parts = []
    for op, from_old, to_old, from_new, to_new in matcher.get_opcodes():
        for parts, words in ((gone, before[from_old:to_old]), (come, after[from_new:to_new])):
            if words:
                parts.append({"text": "".join(words), "differs": op != "equal"})
    return gone, come


def _whole(line: str) -> Parts:
    return [{"text": line, "differs": True}]


def _plain(line: str) -> Parts:
    return [{"text": line, "differs": False}]
