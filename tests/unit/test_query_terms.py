"""Words with which one asks: the table, and what it does to what is found."""

from __future__ import annotations

from importlib.resources import files

import pytest

from foveate.pipeline.signals import ALIAS_WEIGHT, TASK_WEIGHT
from foveate.text import analysis
from foveate.text.query_terms import weighted_query_terms
from worlds import open_engine

LINES = [
    line.split()
    for line in (files("foveate.text") / "question_words.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
]
NOW = 1_760_000_000_000


def test_what_is_asked_for_outweighs_the_words_that_ask() -> None:
    terms = weighted_query_terms("What kind of pet does Melanie have?", NOW)
    assert terms["pet"] == terms["melani"] == 1.0
    assert terms["kind"] < 0.5


@pytest.mark.parametrize(
    "text",
    [
        "Add a kind to each answer",
        "kind answer",
        "Decide which reason is shown",
        "Could you give the reply a reason and a kind?",
        "Would we please mention a place in the mail?",
        "Do not mention the kind of the answer",
        "When the build fails, mention the reason",
        "Give each reply a kind. The tests are in the node module. OK?",
    ],
)
def test_a_text_that_asks_nothing_keeps_them_all(text: str) -> None:
    assert set(weighted_query_terms(text, NOW).values()) == {1.0}


@pytest.mark.parametrize(
    "text",
    [
        "what kind of pet",
        "Our pet: what kind is it?",
        "Which kind of pet",
        "He has a pet. What kind is it?",
        "Can you tell me the kind of pet?",
        "when did he mention the kind of pet",
        "Where the pet lives, what kind is it?",
    ],
)
def test_a_question_needs_no_mark_and_may_stand_behind_something_else(text: str) -> None:
    assert weighted_query_terms(text, NOW)["kind"] < weighted_query_terms(text, NOW)["pet"]


def test_dates_and_quantities_count_in_full() -> None:
    assert all(
        weight == 1.0
        for term, weight in weighted_query_terms("How many of the 12 on 5 May 2023?", NOW).items()
        if term != "mani"
    )


def test_each_word_stands_once_and_tells_something() -> None:
    words = [word for _, *words in LINES for word in words]
    stems = analysis.stems(words)
    assert len(words) == len(set(words))
    assert not set(words) & analysis.STOP_WORDS
    weights = {stem: weight for weight, *words in LINES for stem in analysis.stems(words)}
    assert all(weights[stem] == weight for weight, *words in LINES for stem in analysis.stems(words)), stems


def test_no_weight_is_that_of_a_name_or_of_a_task() -> None:
    """A receipt leaves out terms of the weight of a name: they are another record's words."""
    assert {float(weight) for weight, *_ in LINES}.isdisjoint({ALIAS_WEIGHT, TASK_WEIGHT, 1.0})


def test_a_word_of_the_task_counts_no_less_because_the_question_has_it_too() -> None:
    with open_engine() as engine:
        engine.tasks.add("Add a type to every answer", key="t")
        terms = [
            engine.receipts.get(engine.context(query, task="t")).signals.terms
            for query in ("Does the parser work?", "Does the answer work?")
        ]
        assert terms[0]["answer"] == terms[1]["answer"] == TASK_WEIGHT


def test_the_answer_comes_before_what_repeats_the_question() -> None:
    with open_engine() as engine:
        engine.add("note", "Nobody could mention which kind it was.")
        right = engine.add("note", "Sam keeps a parrot as a pet.").record.id
        for number in range(8):
            engine.add("note", f"Sam went to market {number} and bought apples.")
            engine.add("note", f"A shop {number} sells food for every pet.")
        assert engine.search("What kind of pet did Sam mention?")[0].record.id == right
        receipt = engine.receipts.get(engine.context("What kind of pet did Sam mention?"))
        assert receipt.signals.terms["kind"] < receipt.signals.terms["pet"]


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("What does not work on Windows?", {"work", "window"}),
        ("Who can't, won't or must not deploy?", {"deploy"}),
        ("What may the bot do?", {"bot"}),
        ("May users export data?", {"user", "export", "data"}),
        ("How long may a session be idle?", {"session", "idl"}),
        ("How far is the office?", {"offic"}),
        ("Thanks, please deploy", {"deploy"}),
        ("ok thanks", set()),
        ("yes, do it please", set()),
    ],
)
def test_function_words_are_not_searched_for(query: str, terms: set[str]) -> None:
    assert set(weighted_query_terms(query, NOW)) == terms


@pytest.mark.parametrize("query", ["What happened in May?", "the May release", "due May 5", "due 5 may", "since last may"])
def test_a_month_is_searched_for(query: str) -> None:
    assert "may" in weighted_query_terms(query, NOW)


@pytest.mark.parametrize(("query", "term"), [("not", "not"), ("may", "may"), ("a no-op and a not-null column", "not")])
def test_a_single_word_and_a_part_of_a_name_are_searched_for(query: str, term: str) -> None:
    assert term in weighted_query_terms(query, NOW)


def test_a_negation_in_a_question_does_not_lift_what_has_one() -> None:
    with open_engine() as engine:
        engine.add("note", "The printer must not be moved.")
        right = engine.add("note", "The build is green again.").record.id
        assert [hit.record.id for hit in engine.search("Why is the build not green?")] == [right]
