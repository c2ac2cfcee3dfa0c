"""Short forms of text: cut, on one line, counted, and the words of a path."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate.text.format import one_line, pluralize, significant_path_words, truncate


@pytest.mark.parametrize(
    ("text", "max_chars", "expected"),
    [
        ("short", 5, "short"),
        ("two words here", 10, "two words…"),
        ("two words here", 9, "two word…"),
        ("three, words here", 8, "three…"),
        ("unbreakable", 6, "unbre…"),
        ("x unbreakable", 6, "x unb…"),
        ("anything", 1, "…"),
    ],
)
def test_a_long_text_is_cut_after_a_word(text: str, max_chars: int, expected: str) -> None:
    assert truncate(text, max_chars) == expected


@given(st.text(max_size=60), st.integers(1, 60))
def test_a_cut_text_is_never_too_long(text: str, max_chars: int) -> None:
    short = truncate(text, max_chars)
    assert len(short) <= max_chars
    assert text.startswith(short.removesuffix("…"))


def test_one_line_and_counted_nouns() -> None:
    assert one_line(" a\n\tb \u2028 c ") == "a b c"
    assert one_line(3.5) == "3.5"
    assert (pluralize(1, "day"), pluralize(0, "day"), pluralize(1200, "day")) == ("1 day", "0 days", "1,200 days")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("src/auth/session_store.py", "auth session_store"),
        ("./lib/a/b.test.ts", "a b.test"),
        ("docs/auth.md", "docs auth"),
        ("Makefile", " Makefile"),
        (".env", " .env"),
    ],
)
def test_the_words_of_a_path_without_its_root_and_ending(path: str, words: str) -> None:
    assert significant_path_words(path) == words
