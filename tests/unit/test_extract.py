"""Proposals of entities: which names of a text are proposed, their order, and that nothing is stored."""

from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate.memory.entities import MAX_NAME_CHARS, MAX_PROPOSALS, Proposal, propose, propose_entities
from worlds import open_engine


def found(text: str) -> dict[str, tuple[str, int]]:
    """Return name -> (type, count) of the proposals in a store without entities."""
    return {one.name: (one.type, one.count) for one in propose(text, lambda names: {})}


@pytest.mark.parametrize(
    ("text", "name", "type"),
    [
        ("call get_user here", "get_user", "symbol"),
        ("call getUser here", "getUser", "symbol"),
        ("the UserStore class", "UserStore", "symbol"),
        ("run `make` first", "make", "symbol"),
        ("we asked Mira about it", "Mira", "name"),
        ("we asked Mira's team", "Mira", "name"),
        ("ask the Data Platform Team now", "Data Platform Team", "name"),
        ("it runs on AWS today", "AWS", "name"),
        ('we call it "blue green deploy" here', "blue green deploy", "term"),
        ("we call it “dark launch” here", "dark launch", "term"),
        ("ping @noor-k about it", "noor-k", "person"),
        ("see https://www.example.org/a/b?c=1.", "example.org", "site"),
    ],
)
def test_names_are_proposed_by_their_spelling(text: str, name: str, type: str) -> None:
    assert found(text) == {name: (type, 1)}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nothing here is a name",
        "However, it works. Maybe. - Add tests",
        "The next day",
        "move src/auth/login.ts to README.md",
        "mail a.b@example.org",
        "pass --dry-run and get HTTP 404",
        'she said "this is a rather long sentence, not a name"',
    ],
)
def test_words_that_are_not_names_are_not_proposed(text: str) -> None:
    assert found(text) == {}


def test_a_repeated_word_at_the_start_of_a_sentence_is_a_name() -> None:
    assert found("Redis is fast. We like Redis.") == {"Redis": ("name", 2)}
    assert found("- Redis is fast\n- Redis is small") == {"Redis": ("name", 2)}
    assert found("Ask Mira. Mira knows.") == {"Mira": ("name", 2)}
    assert found("Tests fail. Tests are slow; the tests again.") == {}


def test_a_known_word_at_the_start_of_a_sentence_is_a_name() -> None:
    with open_engine() as engine:
        assert propose_entities(engine.store.data, "Redis is fast.") == []
        id = engine.add("entity", "Redis").record.id
        assert propose_entities(engine.store.data, "Redis is fast.") == [Proposal("Redis", "name", 1, id)]


def test_variants_are_one_name_and_the_most_frequent_name_comes_first() -> None:
    assert list(found("we asked Noor, then Foo-Bar, fooBar and foo_bar").items()) == [
        ("fooBar", ("symbol", 3)),
        ("Noor", ("name", 1)),
    ]


def test_proposals_are_not_stored() -> None:
    with open_engine() as engine:
        engine.add("note", "We asked Mira")
        before = engine.store.stats()
        assert [one.name for one in propose_entities(engine.store.data, "We asked Mira and Noor")] == ["Mira", "Noor"]
        assert engine.store.stats() == before


def test_entities_of_another_owner_are_not_known() -> None:

    with open_engine() as engine:
        engine.add("entity", "Mira", user="ana")
        assert propose_entities(engine.store.data, "we asked Mira") == [Proposal("Mira", "name", 1, None)]


def test_a_long_text_takes_bounded_time_and_gives_a_short_list() -> None:
    text = " ".join(f"then Name{n:05d} met someName{n % 300:03d}Here," for n in range(20_000))
    began = process_time()
    proposals = propose(text, lambda names: {})
    assert process_time() - began < 5
    assert len(proposals) == MAX_PROPOSALS


@pytest.mark.parametrize("text", ["A" * 100_000, "@" * 100_000, '"' * 100_000, "`a" * 50_000, "Aa " * 30_000, "a_" * 50_000])
def test_no_text_takes_long(text: str) -> None:
    began = process_time()
    propose(text, lambda names: {})
    assert process_time() - began < 5


@given(st.text(max_size=300))
def test_any_text_gives_short_names_of_one_line(text: str) -> None:
    for one in propose(text, lambda names: {}):
        assert one.count > 0
        assert 0 < len(one.name) <= MAX_NAME_CHARS
        assert "\n" not in one.name
