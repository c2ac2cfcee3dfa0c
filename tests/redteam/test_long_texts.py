"""A text that is made to be slow: the work grows with its length, and not with the square of it."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import pytest

from foveate import compress
from foveate.text.markdown import escape_headings, headings
from foveate.text.summarize import ExtractiveSummarizer

SIZE, FACTOR = 6_000, 16
LIMIT = 4 * FACTOR
"""Four times as much work as the length explains, for a busy machine. A square would be sixteen times as much."""

ENDS = ("", "x", "\nx")


def cpu_time(work: Callable[[str], object], unit: str, end: str, size: int) -> float:
    text = unit * (size // len(unit)) + end
    gc.disable()  # a collection looks at everything that other tests have left
    try:
        began = time.process_time()
        work(text)
        return time.process_time() - began
    finally:
        gc.enable()


def grows_with_length(work: Callable[[str], object], unit: str, end: str) -> bool:
    """Return whether a text that is longer by a factor takes about as much longer."""
    small = min(cpu_time(work, unit, end, SIZE) for _ in range(3))
    limit = LIMIT * max(small, 0.005)
    return any(cpu_time(work, unit, end, FACTOR * SIZE) < limit for _ in range(3))


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit", ["`", "` ", ".`", "`.", "`\n", "```\n", "`a` b. ", ".", "> ", "- ", "* ", "1. ", "Tea. Bun. "]
)
def test_compressing_takes_time_by_length(unit: str) -> None:
    for end in ENDS:
        assert grows_with_length(lambda text: compress(text, query="tea"), unit, end), end


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["`", ".`", ".", "> ", "- ", "1. "])
def test_summarizing_takes_time_by_length(unit: str) -> None:
    for end in ENDS:
        assert grows_with_length(ExtractiveSummarizer().shorten, unit, end), end


@pytest.mark.slow
@pytest.mark.parametrize("unit", [" ", "\t", " #", "> ", "- ", "* ", "> - ", "```\n", "- \n", "- ```\n"])
def test_finding_headings_takes_time_by_length(unit: str) -> None:
    for start in ("", "# a"):

        def work(text: str, start: str = start) -> None:
            lines = (start + text).split("\n")
            headings(lines)
            escape_headings(lines)

        for end in ENDS:
            assert grows_with_length(work, unit, end), (start, end)
