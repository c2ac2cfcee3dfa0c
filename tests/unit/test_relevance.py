"""The relevance of a record: the probability that it is evidence for the request."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import isnan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate.pipeline.relevance import contributions, estimate, match_features, model
from foveate.types import Candidate, Record, Scope, Signals
from property_settings import examples
from worlds import NOW, open_engine

SIGNALS = Signals(terms={"harbour": 1.0, "festival": 1.0, "date": 0.5}, keywords=("harbour", "festival", "date"))
QUERY = "When is the harbour festival?"


def record(text: str = "The harbour festival is in May", *, tokens: int = 12, kind: str = "note", **values: Any) -> Record:
    plain = {"id": "r1", "scope": Scope("main"), "summary": text, "micro": text, "created": NOW}
    sizes = dict.fromkeys(("full", "summary", "micro"), tokens)
    return Record(**{**plain, "kind": kind, "text": text, "tokens": sizes, **values})  # type: ignore[arg-type]


def candidate(id: str = "r1", *, of: Record | None = None, source: str = "search", **features: float) -> Candidate:
    return Candidate(record=replace(of or record(), id=id), slot="facts", source=source, features=features)


def relevance(*found: Candidate, signals: Signals = SIGNALS, query: str = QUERY) -> list[float]:
    return [each.features["relevance"] for each in estimate(found, signals, query)]


# --- how well it matches -------------------------------------------------------------------------------------------


def test_a_better_match_is_more_relevant() -> None:
    steps = [relevance(candidate(match=n / 20, coverage=0.5))[0] for n in range(21)]
    assert all(lower < higher for lower, higher in pairwise(steps))


def test_among_several_a_better_match_is_more_relevant() -> None:
    found = [candidate(f"r{n}", match=n / 10, coverage=0.8) for n in range(11)]
    steps = relevance(*found)
    assert steps == sorted(steps)
    assert len(set(steps)) == len(steps)


@pytest.mark.parametrize("feature", ["neighbour", "session"])
def test_what_surrounds_a_record_makes_it_more_relevant(feature: str) -> None:
    hit = candidate("hit", match=0.6, coverage=0.6)
    plain, helped = candidate("a", match=0.2), candidate("b", match=0.2, **{feature: 0.5})
    _, without, with_it = relevance(hit, plain, helped)
    assert with_it > without


def test_a_record_that_nothing_led_to_has_no_relevance() -> None:
    assert relevance(candidate("hit", match=0.9, coverage=1.0), candidate("rest"))[1] == 0.0


def test_words_that_tell_nothing_are_less_relevant_than_a_full_sentence() -> None:
    found = [candidate(f"r{n}", of=record(tokens=tokens), match=0.4) for n, tokens in enumerate((2, 10, 50, 500))]
    short, sentence, paragraph, page = relevance(*found)
    assert short < sentence < paragraph == page


def test_knowledge_is_more_relevant_than_the_same_words_in_passing() -> None:
    noted, said = candidate("a", match=0.5), candidate("b", of=record(kind="event"), match=0.5)
    first, second = relevance(noted, said)
    assert first > second


def test_what_an_assistant_said_counts_less_unless_the_question_asks_for_it() -> None:
    user, assistant = (
        candidate(role, of=record(kind="event", data={"type": "message", "role": role}), match=0.5)
        for role in ("user", "assistant")
    )
    by_user, by_assistant = relevance(user, assistant)
    asked_user, asked_assistant = relevance(user, assistant, query="What did you tell me about the harbour festival?")
    assert by_user > asked_assistant > by_assistant
    assert asked_user == by_user


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Anna: I moved to Lyon", 1.0),
        ("anna:", 1.0),
        ("Anna Berg: hello", 1.0),  # the query has both names
        ("Anna Smith: hello", 0.0),  # every word of the speaker's name must be in the query
        ("Ben: Anna, did you move?", 0.0),
        ("I moved with Anna", 0.0),
        (": Anna", 0.0),
        (f"Anna{' ' * 55}: hello", 1.0),
        (f"Anna{' ' * 56}: hello", 0.0),  # a colon further on does not end the name of a speaker
    ],
)
def test_a_text_by_a_speaker_whom_the_query_names(text: str, expected: float) -> None:
    keywords = frozenset(("did", "anna", "berg", "move"))
    assert match_features(candidate(of=record(text), match=0.5), keywords).get("speaker", 0.0) == expected


def test_the_name_of_a_message_is_that_of_its_speaker() -> None:
    keywords = frozenset(("did", "anna", "move"))
    named = [
        record("Ben: no", kind="event", data={"type": "message", "role": "user", "name": name}) for name in ("Anna", "Ben")
    ]
    found = [match_features(candidate(of=each, match=0.5), keywords).get("speaker", 0.0) for each in named]
    assert found == [1.0, 0.0]


def test_what_each_feature_adds_to_the_strength_sums_up_to_it() -> None:
    (found,) = estimate([candidate(match=0.5, neighbour=0.3, session=0.2)], SIGNALS, QUERY)
    assert sum(contributions(found.features).values()) == pytest.approx(found.features["strength"], abs=1e-5)
    assert contributions(found.features)["overlap"] < 0


# --- whether anything answers --------------------------------------------------------------------------------------


def answerable(*found: Candidate, signals: Signals = SIGNALS) -> float:
    values = {each.features["answerable"] for each in estimate(found, signals, QUERY)}
    (value,) = values  # it is one for the whole request
    return value


def test_a_request_whose_words_the_best_record_covers_is_probably_answered() -> None:
    covered = answerable(candidate(match=0.9, coverage=1.0), candidate("other", match=0.1))
    assert covered > 0.5
    assert answerable(candidate(match=0.9, coverage=0.3)) < covered / 2


def test_a_vector_that_is_near_covers_like_words() -> None:
    near, far = (answerable(candidate(match=0.3, coverage=0.0, vector=vector)) for vector in (0.75, 0.2))
    assert near > 5 * far
    assert far == answerable(candidate(match=0.3, coverage=0.0))


def test_a_word_in_common_says_less_than_three() -> None:
    one = Signals(terms={"harbour": 1.0}, keywords=("harbour",))
    assert answerable(candidate(match=0.9, coverage=1.0), signals=one) < answerable(candidate(match=0.9, coverage=1.0))


def test_where_nothing_answers_the_best_hit_is_irrelevant() -> None:
    found = candidate(match=1.0, coverage=0.0)
    assert relevance(found)[0] < 0.25
    assert relevance(replace(found, features={"match": 1.0, "coverage": 1.0}))[0] > 2 * relevance(found)[0]


def test_of_more_competitors_each_is_less_likely() -> None:
    few = relevance(*[candidate(f"r{n}", match=0.5, coverage=1.0) for n in range(5)])
    many = relevance(*[candidate(f"r{n}", match=0.5, coverage=1.0) for n in range(300)])
    assert few[0] > many[0]
    # One hit is no better than one of a few: that nothing competes with it is no evidence.
    assert relevance(candidate("r0", match=0.5, coverage=1.0)) == few[:1]


def test_a_request_that_nothing_in_a_store_answers_has_a_low_probability() -> None:
    engine = open_engine()
    for n in range(40):
        engine.add("note", f"The printer of floor {n} was repaired on a Monday")
    engine.add("note", "The harbour festival starts in Lisbon on the second of May")
    found = {
        query: engine.context(query, profile="chat").items[0].candidate.features["answerable"]
        for query in (
            "When does the harbour festival in Lisbon start?",
            "Which printer do astronauts recommend to gardeners?",
        )
    }
    answered, unanswered = found.values()
    assert answered > 0.5
    assert unanswered < 0.25


# --- records that words did not lead to ----------------------------------------------------------------------------


def test_a_procedure_whose_conditions_hold_and_a_record_of_the_domain_have_their_least_relevance() -> None:
    least = model()["at_least"]
    found = [candidate("p", source="procedures"), candidate("d", source="domains", domain=1.0)]
    assert relevance(*found) == [least["applies"], least["domain"]]
    assert relevance(candidate("half", source="domains", domain=0.5)) == [least["domain"] / 2]


def test_the_least_relevance_is_no_limit() -> None:
    best = {"match": 1.0, "coverage": 1.0, "neighbour": 1.0, "session": 1.0}
    plain = relevance(candidate("p", **best))[0]
    assert plain > model()["at_least"]["applies"]
    assert relevance(candidate("p", source="procedures", **best)) == [plain]


def test_a_source_that_knows_the_relevance_itself_is_believed() -> None:
    known = candidate("k", source="task", relevance=0.7)
    before = dict(known.features)
    assert estimate([known], SIGNALS, QUERY) == [known]
    assert estimate([known, candidate(match=0.5)], SIGNALS, QUERY)[0].features == before


# --- always --------------------------------------------------------------------------------------------------------

shares = st.floats(0, 1)
features = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(("match", "neighbour", "session", "coverage", "domain", "lexical"), shares)
    | {"vector": st.floats(-1, 1)},
)
records = st.builds(
    lambda text, tokens, kind, role: record(text, tokens=tokens, kind=kind, data={"type": "message", "role": role}),
    st.text(max_size=80),
    st.integers(0, 100_000),
    st.sampled_from(("note", "event", "decision")),
    st.sampled_from(("user", "assistant", "")),
)
terms = st.dictionaries(st.text(max_size=8), st.floats(0, 1), max_size=30)


def test_a_message_that_only_repeats_the_request_is_left_out_and_does_not_compete() -> None:
    question = "What is the name of the staging database?"
    with open_engine() as engine:
        asked = engine.remember(question, session="one").ids
        told = engine.remember("Our staging database is called larkspur", session="two").ids
        before = engine.context(question, session="three", dry_run=True)
        assert [item.id for item in before.items] == list(told)
        (lost,) = (lost for lost in before.left_out if lost.id in asked)
        assert (lost.reason, lost.detail) == ("excluded", "because it only repeats the request")
        alone = next(item.relevance for item in before.items)
        engine.remember(question, session="four")
        assert next(item.relevance for item in engine.context(question, session="five").items) >= alone * 0.9


def test_a_statement_is_more_relevant_than_a_question_with_the_same_words() -> None:
    with open_engine() as engine:
        asked = engine.remember("Which port has the staging cache of the shop?", session="one").ids
        told = engine.remember("The staging cache of the shop has port 6390", session="two").ids
        context = engine.context("Tell me the port of the staging cache", session="three")
        relevance = {each.id: each.relevance for each in (*context.items, *context.left_out)}
        assert relevance[told[0]] > 2 * relevance[asked[0]]


@examples(300)
@given(
    st.lists(st.tuples(records, features, st.sampled_from(("search", "domains", "procedures", "task"))), max_size=30),
    terms,
    st.text(max_size=60),
)
def test_relevance_is_a_probability(drawn: list[Any], asked: dict[str, float], query: str) -> None:
    found = [Candidate(record=of, slot="a", source=source, features=known) for of, known, source in drawn]
    signals = Signals(terms=asked, keywords=tuple(asked))
    for before, after in zip(found, estimate(found, signals, query), strict=True):
        for name in ("relevance", "answerable"):
            value = after.features.get(name, 0.0)
            assert not isnan(value)
            assert 0.0 <= value <= 1.0
        assert before.features.items() <= after.features.items()
