"""The prompt of a context, piece by piece."""

from __future__ import annotations

from pathlib import Path

import pytest

import foveate


@pytest.fixture
def engine(tmp_path: Path) -> foveate.Engine:
    found = foveate.open(tmp_path / "state.db")
    found.add("censor", "Never log a token.")
    found.add("fact", "Tokens rotate every hour.")
    found.add("fact", "The page says that tokens last forever.", trust="web")
    found.add("decision", "Tokens are kept in Redis, because rotation needs an expiry.")
    return found


def test_the_spans_joined_are_the_text_that_was_sent(engine: foveate.Engine) -> None:
    context = engine.context("How long do tokens last, and where are they kept?", budget=2000, extra="A text of the caller.")
    for prompt in (
        engine.receipts.replay(context, extra="A text of the caller.").prompt,
        engine.receipts.replay(context.id, extra="A text of the caller.").prompt,
    ):
        assert prompt.identical
        assert prompt.text == context.text
        shown = [span.id for part in prompt.parts for span in part.pieces if span.id]
        assert shown == [item.id for item in context.items]
    quoted = next(part for part in prompt.parts if "forever" in part.text)
    assert [bool(span.id) for span in quoted.pieces].count(False) >= 2, "a heading and a fence show no record"


def test_what_can_no_longer_be_read_is_named_and_the_rest_is_shown(engine: foveate.Engine) -> None:
    context = engine.context("How long do tokens last?", budget=2000, extra="A text of the caller.")
    prompt = engine.receipts.replay(context.id).prompt
    assert not prompt.identical
    (given,) = prompt.missing
    assert given.startswith("given_")
    assert "Tokens rotate every hour." in prompt.text
    assert "A text of the caller." not in prompt.text


def test_an_edit_does_not_change_a_past_prompt(engine: foveate.Engine) -> None:
    context = engine.context("How long do tokens last?", budget=2000)
    fact = next(item.record for item in context.items if "every hour" in item.record.text)
    engine.edit(fact.id, text="Tokens rotate every day.")
    assert engine.receipts.replay(context.id).prompt.text == context.text


def test_a_dry_run_leaves_no_trace(engine: foveate.Engine) -> None:
    kept = engine.context("How long do tokens last?", budget=2000, now="2026-11-15")
    before, revision = len(engine.receipts.list()), engine.store.stats().revision
    context = engine.context("How long do tokens last?", budget=2000, now="2026-11-15", dry_run=True)
    assert (context.text, context.id) == (kept.text, kept.id)
    assert context.receipt.text_hash == engine.receipts.get(kept).text_hash
    assert engine.receipts.get(context).text_hash == context.receipt.text_hash
    smaller = engine.context("How long do tokens last?", budget=200, now="2026-11-15", dry_run=True)
    assert smaller.tokens <= 200
    assert (len(engine.receipts.list()), engine.store.stats().revision) == (before, revision)
