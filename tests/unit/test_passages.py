"""Passages: the sentences of a long text that answer the request, word for word, by their positions."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate.pipeline.passages import MAX_PASSAGE_CHARS, MAX_READ_CHARS, cut
from foveate.text import analysis
from foveate.text.format import ELLIPSIS, passage_text
from property_settings import examples
from worlds import open_engine

FILLER = "The night was long, and two people watched the copy go from one disk to the next. "
ANSWER = "We keep the crawler in Oslo because power is cheap there."


def weights(query: str) -> dict[str, float]:
    return dict.fromkeys(analysis.terms(query), 1.0)


def passage(text: str, query: str) -> str:
    return passage_text(text, cut(text, weights(query)))


def test_a_short_text_is_its_own_passage() -> None:
    for text in ("", "x", ANSWER, "y" * MAX_PASSAGE_CHARS):
        assert passage(text, "crawler") == text


def test_the_sentence_with_the_words_is_in_it_and_marks_stand_where_text_was_cut() -> None:
    found = passage(FILLER * 10 + ANSWER + " " + FILLER * 10, "Where is the crawler?")
    before, _, after = found.partition(ANSWER)
    assert after.endswith(f" {ELLIPSIS}")
    assert f" {ELLIPSIS} " in before, "the rest of the room shows how the text begins"
    assert before.startswith(FILLER.strip())
    where = passage("Zebras sleep. " * 5 + FILLER * 10 + ANSWER, "two people disk crawler")
    assert where.startswith(f"{ELLIPSIS} ")
    assert passage(ANSWER + " " + FILLER * 10, "crawler").startswith(ANSWER)
    assert passage(FILLER * 10 + ANSWER, "crawler").endswith(ANSWER)


def test_space_around_a_text_is_nothing_that_was_cut() -> None:
    text = f"\n\n  {ANSWER}{' ' * 500}\n"
    assert passage(text, "crawler") == ANSWER


def test_what_stands_beside_the_sentence_comes_along() -> None:
    beside = "It has been so since the spring."
    text = FILLER * 6 + "The crawler runs in a hall by the sea. " + beside + " " + FILLER * 20 + "Nobody knew why. " * 20
    found = passage(text, "crawler sea hall")
    assert f"The crawler runs in a hall by the sea. {beside}" in found


def test_sentences_from_two_places_keep_their_order_with_a_mark_between() -> None:
    second = "The crawler was moved to Bergen in May."
    text = FILLER * 5 + ANSWER + " " + FILLER * 15 + second + " " + FILLER * 5
    found = passage(text, "crawler Oslo Bergen")
    assert found.index(ANSWER) < found.index(f"{ELLIPSIS} ", found.index(ANSWER)) < found.index(second)


def test_a_word_of_every_sentence_does_not_choose_one() -> None:
    text = "The crawler slept. " * 60 + "The crawler moved to Oslo. " + "The crawler slept. " * 60
    assert "The crawler moved to Oslo." in passage(text, "crawler Oslo")


def test_without_any_word_of_the_request_it_is_the_beginning() -> None:
    text = "".join(f"Step {n} of the copy was done at night. " for n in range(60))
    assert passage(text, "zebra").startswith("Step 0 of the copy")


def test_of_one_huge_sentence_it_is_the_part_around_the_first_word() -> None:
    text = "and so on " * 200 + "until the crawler moved to Oslo " + "and so on " * 200
    found = passage(text, "crawler")
    assert "until the crawler moved to Oslo" in found
    assert len(found) <= MAX_PASSAGE_CHARS + 4
    assert set(found.split()) <= {*text.split(), ELLIPSIS}, "no word is cut"


@pytest.mark.parametrize("before", ["x" * 2000, "x/" * 1000])
def test_the_word_is_in_it_even_where_no_space_precedes_it(before: str) -> None:
    text = f"{before}/crawler/Oslo and {'so on ' * 300}"
    assert "crawler" in passage(text, "crawler") or before.startswith("xx")
    assert len(passage(text, "crawler")) <= MAX_PASSAGE_CHARS + 4


def test_the_space_between_short_lines_counts() -> None:
    text = "ab\n\n\n\n" * 300
    found = cut(text, weights("ab"))
    assert MAX_PASSAGE_CHARS - 6 < sum(end - start for start, end in found) <= MAX_PASSAGE_CHARS
    shown = passage(text, "ab").removeprefix(f"{ELLIPSIS} ").removesuffix(f" {ELLIPSIS}")
    assert ELLIPSIS not in shown, "between lines nothing was cut"


def test_lines_are_sentences() -> None:
    text = "\n".join(f"step {n} done" for n in range(100)) + "\ncrawler moved\n" + "\n".join(["idle"] * 100)
    assert "crawler moved" in passage(text, "crawler")


def test_japanese_and_chinese_end_a_sentence_without_a_space() -> None:
    filler = "毎日朝に会議があります。" * 50
    answer = "京都の祭りは七月に始まります。"
    found = passage(filler + answer + filler, "京都の祭り")
    assert answer in found
    assert len(found) <= MAX_PASSAGE_CHARS + 4


def test_a_full_stop_within_a_word_ends_nothing() -> None:
    text = FILLER * 10 + "Version 3.11.7 of the crawler reads config.toml first. " + FILLER * 10
    assert "Version 3.11.7 of the crawler reads config.toml first." in passage(text, "crawler")


def test_a_text_of_any_length_is_read_up_to_a_limit() -> None:
    text = FILLER * (MAX_READ_CHARS // len(FILLER) + 1) + ANSWER
    assert "crawler" not in passage(text, "crawler")
    assert passage(text, "crawler").endswith(ELLIPSIS)


def test_a_long_text_of_nothing_but_space_has_no_passage() -> None:
    assert cut(" \n" * MAX_PASSAGE_CHARS, weights("crawler")) == ()


texts = st.one_of(
    st.text(max_size=2000),
    st.lists(
        st.sampled_from(("crawler", "Oslo.", "night!", "\n", "\n\n", " ", "disk", "。", "京都", "a.b", "x" * 500, "")),
        max_size=400,
    ).map(" ".join),
    st.lists(st.sampled_from(("a", "b.", "\n", "  ", "crawler\n")), max_size=900).map("".join),
)


@examples(400)
@given(texts, st.sampled_from(("crawler Oslo", "京都", "", "zebra")))
def test_a_passage_is_verbatim_in_order_and_short(text: str, query: str) -> None:
    found = cut(text, weights(query))
    assert all(0 <= start <= end <= len(text) for start, end in found)
    assert all(one[1] <= other[0] for one, other in pairwise(found))
    assert sum(end - start for start, end in found) <= MAX_PASSAGE_CHARS
    if found:
        parts = [text[start:end] for start, end in found]
        assert passage_text(text, found).removeprefix(f"{ELLIPSIS} ").removesuffix(f" {ELLIPSIS}").split(
            f" {ELLIPSIS} "
        ) == (f" {ELLIPSIS} ".join(parts).removeprefix(f"{ELLIPSIS} ").removesuffix(f" {ELLIPSIS}").split(f" {ELLIPSIS} "))
    else:
        assert not text[:MAX_READ_CHARS].strip()
    assert found == cut(text, weights(query))


# --- in a context --------------------------------------------------------------------------------------------------


def test_a_receipt_holds_the_positions_and_a_replay_gives_the_same_text() -> None:
    engine = open_engine()
    text = FILLER * 12 + ANSWER + " " + FILLER * 12
    id = engine.add("episode", text).record.id
    context = engine.context("Where do we keep the crawler, and why in Oslo?")
    (item,) = context.items
    assert (item.id, item.level) == (id, "passage")
    assert ANSWER in context.text
    assert len(item.text) < len(text) / 2
    (entry,) = [each for each in engine.receipts.get(context).candidates if each.id == id]
    shown = passage_text(text.strip(), entry.passage)
    assert shown in context.text
    assert all(part in text for part in re.split(rf" ?{ELLIPSIS} ?", shown))
    assert engine.receipts.replay(context).same
    assert item.tokens <= context.budget.used <= context.budget.ceiling
