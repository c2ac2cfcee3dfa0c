"""No text breaks a function that reads text, whatever script, digits or invisible characters it has."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from foveate.records.corrections import corrects
from foveate.records.make import Rules, clean, make, paths_in, sketch
from foveate.records.render import block
from foveate.records.triggers import match_censor, pattern_problem
from foveate.text import analysis, dates, quantities, tokens
from foveate.text.compress import compress, split_parts
from foveate.text.format import component_of, plain_line, significant_path_words, truncate, truncate_to_width
from foveate.text.markdown import close_fence, code_block, escape_headings, fenced_blocks, headings, split_code
from foveate.text.quantities import terms
from foveate.text.query_expansion import expand_query
from foveate.text.query_terms import weighted_query_terms
from foveate.text.redact import redact, redact_value
from foveate.text.sanitize import sanitize, strip_invisible
from foveate.text.summarize import ExtractiveSummarizer
from foveate.types import TRUST, Scope

NOW = 1_790_000_000_000

PIECES = st.sampled_from(
    (
        *("ſ", "\u212a", "İ", "ı", "ß", "ŉ", "ﬁ", "Ǆ", "Σς", "½", "²", "٣", "１２", "Ⅻ", "𝟜", "e\u0301", "\u200d", "\ufe0f"),
        *(
            "7ſ",
            "laſt week",
            "in ſeptember",
            "5 d",
            "3\u00a0km",
            "\u0663 days ago",
            "mİn",
            "ſecond",
            "2 o\u212a",
            "\x85",
            "\u2028",
        ),
        *(
            "token=",
            "password: ",
            "# ",
            "```",
            "\n",
            " ",
            "- ",
            "\x1b[",
            "\U000e0041",
            "\udc80",
            "\x00",
            "'",
            "’t",
            "n’t",
            "$",
            "@",
        ),
    )
)
"""Characters whose upper or lower case, digits or width are special."""

TEXT = st.lists(PIECES | st.text(st.characters(), max_size=8), max_size=12).map("".join)
"""All of Unicode, lone surrogates included."""

STORABLE = TEXT.map(lambda text: text.encode("utf-8", "replace").decode().replace("\x00", ""))
"""Text as records can have it: they refuse lone surrogates and NUL."""


@given(TEXT)
@example("7ſ")
@example("laſt week")
def test_every_reader_of_text_takes_any_text(text: str) -> None:
    for name in ("o200k", "anthropic", "chars4", "bytes"):
        assert tokens.count(text, name) >= 0
    dates.question_terms(text, NOW)
    dates.record_terms(text, NOW)
    quantities.terms(text)
    weighted_query_terms(text, NOW)
    expand_query(text)
    analysis.words(text)
    analysis.normalize_name(text)
    analysis.term_frequencies(text)
    ExtractiveSummarizer().shorten(text, text)
    compress(text, 5, text)
    paths_in(text)
    component_of(text)
    significant_path_words(text)
    pattern_problem(text)
    corrects(text, text[::-1])


@given(STORABLE)
def test_terms_and_sketches_are_the_same_each_time(text: str) -> None:
    assert sketch(text) == sketch(text)
    assert terms(text) == terms(text)


@given(TEXT)
def test_folded_variants_keep_every_offset(text: str) -> None:
    assert len(analysis.fold_variants(text)) == len(text)


@given(TEXT, st.integers(1, 40))
def test_every_writer_of_text_takes_any_text(text: str, width: int) -> None:
    assert len(truncate(text, width)) <= width
    truncate_to_width(text, width * 4)
    assert plain_line(text) or not text.strip()
    lines = text.split("\n")
    fenced_blocks(lines), headings(lines), escape_headings(lines), close_fence(lines)
    assert "".join(part for part, _ in split_code(text)) == text
    assert "".join(split_parts(text)) == text
    assert code_block(text).count("\n") >= 2
    assert block(text).endswith("\n")


@given(TEXT, st.sampled_from(TRUST))
def test_invisible_characters_go_at_once_and_words_stay(text: str, trust: Any) -> None:
    visible = strip_invisible(text)
    assert strip_invisible(visible) == visible
    assert not {"\x00", "\x1b", "\x85", "\u200b", "\U000e0041", "\r"} & set(visible)
    assert sanitize(text, trust).replace("\\", "") == visible.replace("\\", "")
    assert "\n" not in strip_invisible(text.replace("\n", "").replace("\r", ""), rare_line_end=" ")


@given(TEXT)
def test_redaction_takes_any_text(text: str) -> None:
    once = redact(text).text
    assert redact(once).text == once
    redact_value({text: [text, (text,)]})


@given(STORABLE)
def test_a_record_can_be_made_of_any_text(text: str) -> None:
    cleaned = clean(text)
    json.dumps(cleaned).encode()
    if cleaned:
        censor = make("censor", text, scope=Scope("p"), id="censor_1", now=NOW, rules=Rules())
        match_censor(censor, text)
