"""Other words for what was asked: the table, the search, and what the receipt says of it."""

from __future__ import annotations

import json
from collections import Counter
from importlib.resources import files
from itertools import combinations

import pytest

from foveate.receipts.codec import to_json
from foveate.store.sql import query_plan
from foveate.text import analysis
from foveate.text.query_expansion import MAX_EXPANSIONS, MAX_QUERY_TERMS, TABLES, expand_query
from foveate.types import ExpansionTerm
from worlds import open_engine

FOUND_ONLY = {"slots": {name: {"fill": "none", "min_relevance": 0} for name in ("messages", "facts")}}
"""Only what the search finds, however little it matches: neither a floor nor a filling."""

LINES = {
    name: [
        line for line in (files("foveate.text") / name).read_text("utf-8").splitlines() if line and not line.startswith("#")
    ]
    for name in TABLES
}


def stem(word: str) -> str:
    return analysis.terms(word)[0]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("kids", "daughter"),
        ("children", "kid"),
        ("pets", "dog"),
        ("database", "db"),
        ("bought", "buy"),
        ("authentication", "auth"),
    ],
)
def test_a_word_stands_for_another(asked: str, found: str) -> None:
    assert expand_query(asked)[stem(found)] == ExpansionTerm(stem(asked), 1.0)


@pytest.mark.parametrize(("asked", "found"), [("sports", "kickboxing"), ("illnesses", "tonsillitis"), ("hobby", "origami")])
def test_one_of_a_kind_stands_for_it_and_counts_half(asked: str, found: str) -> None:
    assert expand_query(asked)[stem(found)] == ExpansionTerm(stem(asked), 0.5, is_association=True)


def test_what_is_near_to_one_asked_word_is_no_mere_kind_of_another() -> None:
    found = expand_query("pets and kids")
    assert found["dog"] == ExpansionTerm("pet", 1.0)
    assert found["daughter"] == ExpansionTerm("kid", 1.0)


@pytest.mark.parametrize("name", ["ChromaDB", "kid_id", "petShop"])
def test_a_part_of_a_name_stands_for_nothing_else(name: str) -> None:
    assert expand_query(f"Why {name}?") == {}


@pytest.mark.parametrize(
    ("asked", "wrong"),
    [
        ("How long did the move take?", "hours"),
        ("How many months ago did she move?", "january"),
        ("What kind of tea does she drink?", "compassionate"),
        ("What is the total number of plants?", "dozen"),
        ("What does not work on Windows?", "lawyer"),
        ("Which messages did Mia send?", "kafka"),
        ("What is the name of the cat?", "camelcase"),
        ("How much yarn do I have?", "npm"),
        ("Who wrote the style guide?", "uuid"),
        ("When does the meeting start?", "minutes"),
        ("How do I set up the development environment of the repo?", "climate"),
    ],
)
def test_what_the_sentence_does_not_mean_is_not_added(asked: str, wrong: str) -> None:
    assert stem(wrong) not in expand_query(asked)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("Which month is the wedding in?", "june"),
        ("What is her work?", "lawyer"),
        ("Which message broker does the backend use?", "kafka"),
        ("Which environment does the repo deploy to?", "staging"),
    ],
)
def test_the_sense_of_a_word_follows_from_the_others(asked: str, found: str) -> None:
    assert stem(found) in expand_query(asked)


def test_a_member_does_not_stand_for_its_class() -> None:
    assert stem("pet") not in expand_query("hamster")


def test_what_was_asked_for_is_not_related_to_itself() -> None:
    assert not expand_query("kid daughter").keys() & {"kid", "daughter"}


def test_a_long_question_needs_no_other_words() -> None:
    assert expand_query("kid " + " ".join(f"w{n}" for n in range(MAX_QUERY_TERMS))) == {}


def test_a_question_of_many_kinds_has_a_bounded_number_of_other_words() -> None:
    kinds = "hobby sport food animal job country city clothes plant illness emotion vehicle drink store skill"
    longest = max(len(expand_query(kind)) for kind in kinds.split())
    assert MAX_EXPANSIONS <= len(expand_query(kinds)) < MAX_EXPANSIONS + longest


@pytest.mark.parametrize("name", TABLES)
def test_every_word_of_a_table_is_one_term_and_stands_once_in_its_line(name: str) -> None:
    for line in LINES[name]:
        words = line.replace(">", " ").split()
        assert all(len(analysis.terms(word)) == 1 for word in words), line
        assert max(Counter(stem(word) for word in words).values()) == 1, line


def test_no_pair_of_words_stands_in_two_tables() -> None:
    def pairs(name: str) -> set[tuple[str, str]]:
        found = set()
        for line in LINES[name]:
            head, _, others = line.partition(" > ")
            for asked in [head] if others else line.split():
                found |= {(stem(asked), stem(other)) for other in (others or line).split()}
        return found

    for one, other in combinations(TABLES, 2):
        assert not pairs(one) & pairs(other)


def test_a_record_is_found_by_another_word_and_behind_the_word_itself() -> None:
    engine = open_engine()
    engine.add("note", "The daughter starts school in May")
    engine.add("note", "The kids like the new playground")
    engine.add("note", "The printer is out of paper")
    texts = [hit.record.text for hit in engine.search("kids")]
    assert texts == ["The kids like the new playground", "The daughter starts school in May"]


def test_relevance_is_still_a_share_of_what_was_asked_for() -> None:
    engine = open_engine()
    engine.add("note", "The database is slow on Mondays")
    engine.add("note", "The printer is out of paper")
    whole, other = (engine.search(query)[0].lexical for query in ("database", "db"))
    assert 0 < other < whole <= 1


def test_a_profile_can_do_without() -> None:
    engine = open_engine()
    engine.add("note", "Anna's daughter starts school in May")
    assert "daughter" in engine.context("Which kids?", overrides=FOUND_ONLY).text
    assert "daughter" not in engine.context("Which kids?", overrides={"expansion_weight": 0, **FOUND_ONLY}).text


@pytest.mark.parametrize("profile", ["default", "chat"])
def test_one_of_a_kind_is_found_in_what_was_said_and_not_in_knowledge(profile: str) -> None:
    engine = open_engine()
    said = engine.add("event", "Anna took up kickboxing", session="s").record
    noted = engine.add("note", "Ben took up kickboxing").record
    context = engine.context("Which sports?", profile=profile, overrides=FOUND_ONLY)
    assert [item.id for item in context.items if item.candidate.source == "search"] == [said.id]
    assert noted.id not in {hit.record.id for hit in engine.search("sports")}


def test_what_is_explained_knows_the_other_words() -> None:
    engine = open_engine()
    for n in range(60):
        engine.add("note", f"The kids of class {n} like the playground")
    far = engine.add("note", "Anna's daughter starts school in May").record
    context = engine.context("Which kids?", budget=120)
    assert "rank 61" in str(engine.why(far.id, context))


def test_what_is_explained_knows_the_loose_words_of_messages_alone() -> None:
    engine = open_engine()
    reasons = {}
    for kind in ("event", "note"):
        far = engine.add(kind, "Anna took up kickboxing").record
        for n in range(60):
            engine.add(kind, f"The sports of class {n} are on Monday")
        few = {"slots": {"messages": {"max_candidates": 20}}}
        reasons[kind] = engine.why(far.id, engine.context("Which sports?", budget=120, overrides=few))
    assert "rank 61" in str(reasons["event"])
    assert reasons["note"].reason == "no shared term"


def test_other_words_stand_in_no_receipt() -> None:
    engine = open_engine()
    engine.add("note", "The kids like the playground")
    receipt = engine.receipts.get(engine.context("Which kids?", profile="chat"))
    assert "toddler" not in json.dumps(dict(to_json(receipt)))


def test_other_words_weigh_less_and_are_not_asked_for() -> None:
    asked, other = {"often": 1.0, "seldom": 1.0}, {"other": ExpansionTerm("often")}
    counts = {"often": {0: 8}, "seldom": {0: 2}, "other": {0: 5}}
    alone, beside, off = (query_plan.plan_query(asked, {}, counts, 20, *also) for also in ((), (other, 0.4), (other, 0.0)))
    assert [listed.term for listed in alone.field_terms] == ["seldom", "often"]
    assert [listed.term for listed in beside.field_terms] == ["seldom", "often", "other"]
    assert beside.field_terms[2].weight == pytest.approx(0.4 * beside.field_terms[1].weight)
    assert off == alone
    with_kind = query_plan.plan_query(asked, {}, counts, 20, {"other": ExpansionTerm("often", 0.5)}, 0.4)
    (kind,) = (one for one in with_kind.field_terms if one.term == "other")
    assert kind.weight == pytest.approx(0.2 * beside.field_terms[1].weight)
    assert beside.max_score == alone.max_score


@pytest.mark.parametrize(
    ("text", "said"),
    [("Anna: I moved to Lyon", 1.0), ("Ben: Anna, did you move?", 0.0), ("I moved with Anna", 0.0), (": Anna", 0.0)],
)
def test_what_somebody_said_tells_more_of_them_than_what_was_said_to_them(text: str, said: float) -> None:
    engine = open_engine()
    engine.add("note", text)
    (item,) = engine.context("Where did Anna move?", profile="chat").items
    assert item.candidate.features.get("speaker", 0.0) == said
