"""Counts of blocks add up: what lets the budget add stored counts instead of counting every draft of a prompt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks import can_count_separately
from foveate.text import tokens
from property_settings import examples

STARTS = (
    "- ",
    "# ",
    "```",
    "| ",
    "[",
    "**",
    "1. ",
    "> ",
    "<",
    "a",
    "É",
    "中",
    "\u0301",
    "\u200d",
    "🙂",
    "\ufe0f",
    "'s",
    "٣",
)
ENDS = ("\n", "\n\n", ":\n", "'\n", ".\n\n", "```\n", "\u0301\n", "1\n", "/\n")
AWKWARD = "aB1 '/\n\t-:.|`中\u0e01\u0301\u200d🙂\u00a0\u3000\u2028"

inner = st.one_of(
    st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=40),
    st.text(st.sampled_from(AWKWARD), max_size=25),
)
blocks = st.one_of(
    st.builds(lambda start, text, end: start + text.rstrip() + end, st.sampled_from(STARTS), inner, st.sampled_from(ENDS)),
    st.builds(lambda text, end: text + end, inner, st.sampled_from(ENDS)).filter(can_count_separately),
)
many_blocks = st.lists(blocks, min_size=2, max_size=8)


@pytest.mark.parametrize("name", ["o200k", "cl100k"])
@examples(1500)
@given(parts=many_blocks)
def test_exact_counts_of_blocks_add_up(name: str, parts: list[str]) -> None:
    assert all(map(can_count_separately, parts))
    assert tokens.count("".join(parts), name) == sum(tokens.count(part, name) for part in parts)


@pytest.mark.parametrize("name", ["o200k", "cl100k"])
@examples(1500)
@given(first=inner.map(lambda text: text + "\n"), parts=many_blocks, last=inner.map("x".__add__))
def test_the_first_may_start_and_the_last_may_end_as_it_likes(name: str, first: str, parts: list[str], last: str) -> None:
    texts = [first, *parts, last]
    assert tokens.count("".join(texts), name) == sum(tokens.count(text, name) for text in texts)


@examples(1500)
@given(parts=many_blocks)
def test_an_estimate_of_the_whole_is_never_over_that_of_its_blocks(parts: list[str]) -> None:
    for name in ("anthropic", "chars4", "bytes"):
        assert tokens.count("".join(parts), name) <= sum(tokens.count(part, name) for part in parts)


@examples(1500)
@given(text=st.text(max_size=60))
def test_the_byte_count_bounds_every_exact_count(text: str) -> None:
    assert max(tokens.count(text, "o200k"), tokens.count(text, "cl100k")) <= tokens.count(text, "bytes")
