"""No text crashes a call: every entry point takes all of Unicode, or refuses it with an error of foveate."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from any_text import CALLS, SPECIAL, TEXT
from hypothesis import given

from foveate import Engine
from foveate.errors import FoveateError
from foveate.integrations import openai_messages
from foveate.testing import START, engine
from property_settings import examples


def refused_or_done(call: Callable[[], Any]) -> None:
    with suppress(FoveateError):
        call()


@pytest.fixture(scope="module")
def shared() -> Iterator[Engine]:
    # One engine for all examples: what one text left behind, the next call reads.
    with engine(session="s") as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_a_call_takes_all_of_unicode(name: str, shared: Engine) -> None:
    @examples(40)
    @given(TEXT)
    def attempt(text: str) -> None:
        refused_or_done(lambda: CALLS[name](shared, text))

    attempt()


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_a_call_takes_each_special_text(name: str) -> None:
    with engine(session="s") as made:
        for text in (*SPECIAL, *map(" ".join, itertools.pairwise(SPECIAL))):
            refused_or_done(lambda text=text: CALLS[name](made, text))


@pytest.mark.parametrize("text", ["7ſ", "laſt week", "in ſeptember", "٣ days ago", "²d", "2 o\u212a"])
def test_other_letters_and_digits_are_stored_and_found(text: str) -> None:
    with engine(session="s") as made:
        stored = made.add("fact", f"The pump ran for {text}").record
        assert made.search(f"pump {text}")[0].record.id == stored.id
        assert stored.id in [item.id for item in made.context(f"the pump ran {text}", now=START).items]
        assert openai_messages.messages_for(made, [{"role": "user", "content": f"pump {text}"}])
