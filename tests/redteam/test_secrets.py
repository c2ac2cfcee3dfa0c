"""Formats of secrets that were once stored, and ordinary texts that look a little like them."""

from __future__ import annotations

import pytest
from secret_formats import FORMS, ORDINARY

from foveate.server.tokens import Tokens
from foveate.testing import engine
from foveate.text.redact import redact


@pytest.mark.parametrize(("template", "secret"), FORMS, ids=[template[:40] for template, _ in FORMS])
def test_a_secret_is_not_stored(template: str, secret: str) -> None:
    text = template.format(secret)
    redacted = redact(text).text
    assert secret not in redacted
    assert redact(redacted).text == redacted
    before, after = (part for part in template.format("\0").split("\0"))
    assert redacted.startswith(before.rstrip("'\""))
    assert redacted.endswith(after)
    with engine() as memory:
        assert secret not in memory.add("note", text).record.text


def test_tokens_of_the_service_are_not_stored(tmp_path: object) -> None:
    from pathlib import Path

    _, secret = Tokens(Path(str(tmp_path)) / "tokens.json").create("test", ["admin"], "main")
    assert secret not in redact(f"curl -H 'X-Token: {secret}' localhost:8377").text


def test_there_are_sixty_two_ordinary_texts() -> None:
    assert len(set(ORDINARY)) == 62


@pytest.mark.parametrize("text", ORDINARY)
def test_an_ordinary_text_stays_as_it_is(text: str) -> None:
    assert redact(text).text == text
