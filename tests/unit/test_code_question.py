"""What is read out of a question or a report: words by zone, names, paths, frames."""

from __future__ import annotations

from time import process_time

import pytest

from foveate.code.query import CHATTER_FACTOR, MAX_CHARS, PLAIN_WORD_WEIGHT, SOLE_WORD_WEIGHT, ZONES, Frame, parse_query

REPORT = """\
Cart.total() rounds twice

Description
<!-- please search before you open an issue -->
The rounding in `shop/money.py` happens again in ``apply_discount``. See https://example.org/wiki/ledger.

```python
cart = Cart()
cart.checkout(voucher=None)
```

### Environment
widgets 1.2 on Solaris

- [x] I agree to the covenant
"""


def test_a_short_text_is_a_question_and_taken_word_for_word() -> None:
    asked = parse_query("where is the discount applied?")
    assert asked.terms == {"discount": 1.0, "appli": 1.0}
    assert asked.topic_terms == asked.terms.keys()


@pytest.mark.parametrize("text", ["one line\n```\ncode\n```", 'oops\n  File "a.py", line 3, in f', "word " * 61])
def test_fences_traces_and_length_make_a_report(text: str) -> None:
    assert max(parse_query(text).terms.values()) >= ZONES["title"]


def test_words_weigh_by_where_they_stand() -> None:
    terms = parse_query(REPORT).terms
    assert [terms[term] for term in ("round", "money", "voucher")] == [ZONES["title"], ZONES["prose"], ZONES["code"]]


@pytest.mark.parametrize("noise", ["search", "solari", "widget", "coven", "ledger", "wiki"])
def test_templates_environments_and_links_are_not_read(noise: str) -> None:
    assert noise not in parse_query(REPORT).terms


def test_an_address_says_nothing_in_a_short_question_either() -> None:
    assert parse_query("rounding is wrong, see https://example.org/issues/19271").terms.keys() == {"round", "wrong", "see"}


def test_talk_counts_less_than_what_it_is_about() -> None:
    terms = parse_query("please fix the unexpected rounding").terms
    assert terms["round"] == 1.0
    assert terms["fix"] == terms["unexpect"] == terms["pleas"] == CHATTER_FACTOR


def test_talk_that_is_somebody_s_name_counts_in_full() -> None:
    assert parse_query("`fix` leaves the file open").terms["fix"] == 1.0


def test_the_topic_of_a_report_is_its_title() -> None:
    asked = parse_query(REPORT)
    assert {"cart", "total", "round"} <= asked.topic_terms
    assert "voucher" not in asked.topic_terms


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Cart.total rounds twice", {"Cart.total"}),
        ("why does apply_discount() fail", {"apply_discount"}),
        ("the `total` is off when `Cart(items=None)` is empty", {"total", "Cart", "items"}),
        ("``Arc``s together do not make a ``Line`` here", {"Arc", "Line"}),
        ("in std::vec::Vec and Cart#total", {"std.vec.Vec", "Cart.total"}),
        ("Please Read THIS carefully", set()),
    ],
)
def test_names_are_what_looks_like_code_or_is_marked_as_code(text: str, names: set[str]) -> None:
    plainly = {name for name, worth in parse_query(text).symbols.items() if worth > PLAIN_WORD_WEIGHT}
    assert plainly == names


def test_a_plain_word_of_a_short_question_names_in_passing_and_alone_plainly() -> None:
    assert parse_query("Cart loses vouchers").symbols == {
        "Cart": PLAIN_WORD_WEIGHT,
        "loses": PLAIN_WORD_WEIGHT,
        "vouchers": PLAIN_WORD_WEIGHT,
    }
    assert parse_query("where is the checkout?").symbols == {"checkout": SOLE_WORD_WEIGHT}


def test_a_name_in_running_code_is_named_less_plainly() -> None:
    symbols = parse_query(REPORT).symbols
    assert symbols["Cart.total"] > symbols["cart.checkout"] > 0


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("see shop/money.py for that", "shop/money.py"),
        ("https://github.com/o/r/blob/main/src/shop/cart.py#L12 is wrong", "src/shop/cart.py"),
        ("settings.toml is ignored", "settings.toml"),
    ],
)
def test_paths_are_read_from_text_and_links(text: str, path: str) -> None:
    assert path in parse_query(text).paths


@pytest.mark.parametrize(
    ("trace", "frames"),
    [
        (
            'Traceback (most recent call last):\n  File "/x/a.py", line 3, in run\n  File "/x/b.py", line 40, in pay',
            (Frame("/x/a.py", 3, "run"), Frame("/x/b.py", 40, "pay")),
        ),
        ('  File "C:\\x\\b.py", line 4, in pay', (Frame("C:/x/b.py", 4, "pay"),)),
        ("~/shop/b.py in pay(self)", (Frame("~/shop/b.py", 0, "pay"),)),
        ("Error: no\n    at Cart.pay (/x/src/cart.ts:7:12)", (Frame("/x/src/cart.ts", 7, "pay"),)),
        ("\tat org.shop.Cart.pay(Cart.java:9)", (Frame("org/shop/Cart.java", 9, "pay"),)),
        ("thread 'main' panicked\nsrc/cart.rs:5:9: no price", (Frame("src/cart.rs", 5, ""),)),
    ],
)
def test_frames_of_many_languages(trace: str, frames: tuple[Frame, ...]) -> None:
    assert parse_query(trace).frames == frames


@pytest.mark.parametrize(
    "text", ["", "   \n", "`", "```", "``` \n" * 50, "<!--" * 100, "((((" * 500, "a." * 30_000, "#" * 9_000]
)
def test_strange_texts_are_read_too(text: str) -> None:
    assert parse_query(text).frames == ()


def test_a_long_text_of_dots_takes_linear_time() -> None:
    started = process_time()
    parse_query("a." * 30_000)
    assert process_time() - started < 1  # it takes 0.04 s, and took 6 s in quadratic time


def test_the_end_of_a_huge_log_is_not_read() -> None:
    assert "needl" not in parse_query("title\n" + "line of the log\n" * (MAX_CHARS // 16 + 10) + "needle").terms
