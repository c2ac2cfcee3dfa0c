"""What was said right before and after a strong hit of the same session comes along."""

from __future__ import annotations

from dataclasses import replace

from foveate import Engine, Filters
from foveate.pipeline.sources.search import NEIGHBOUR_WEIGHTS, neighbour_scores
from foveate.store.protocol import SessionNeighbor
from records import add_record
from worlds import ago, open_engine

TALK = (
    "Did the harbour festival go well?",
    "Loved it, we stayed until midnight",
    "Great",
    "My sister sold every painting",
    "I should go to bed",
)


def talked() -> Engine:
    engine = open_engine()
    for session, lines in (("one", TALK), ("two", ("Unrelated remark about soup",))):
        rows = [("note", line, {"created": ago(3)}) for line in lines]
        engine.store.add_many(rows, session=session)
    return engine


def features(engine: Engine, query: str, **options: object) -> dict[str, dict[str, float]]:
    slots = {"messages": {"fill": "none", "min_relevance": 0}}  # only what the search finds, and its neighbours
    context = engine.context(query, profile="chat", overrides={"slots": slots, **options})
    items = [item.candidate for section in context.sections if section.name == "messages" for item in section.items]
    return {candidate.record.text: dict(candidate.features) for candidate in items}


def test_neighbours_of_a_hit_come_along_by_nearness() -> None:
    found = features(talked(), "How was the harbour festival?")
    assert set(found) == set(TALK[:4])  # the fifth is out of reach, another session's remark too
    hit = found[TALK[0]]["match"]
    assert found[TALK[1]]["neighbour"] == round(hit * NEIGHBOUR_WEIGHTS[0], 6)
    assert found[TALK[2]]["neighbour"] == round(hit * NEIGHBOUR_WEIGHTS[1], 6)
    assert "match" not in found[TALK[1]]


def test_a_neighbour_is_less_relevant_than_the_hit_and_a_near_one_more_than_a_far_one() -> None:
    found = features(talked(), "How was the harbour festival?")
    relevance = {text: each["relevance"] for text, each in found.items()}
    assert 1 > relevance[TALK[0]] > relevance[TALK[1]] > relevance[TALK[2]] > 0


def test_without_a_session_there_are_no_neighbours() -> None:
    engine = open_engine()
    engine.store.add_many([("note", line, {"created": ago(3)}) for line in TALK])
    assert set(features(engine, "How was the harbour festival?")) == {TALK[0]}


def test_neighbours_keep_to_scope_kinds_and_filters() -> None:
    engine = talked()
    scope = replace(engine.scope, session="one", user="somebody else")
    add_record(engine, "note", "A secret reply", scope=scope, created=ago(3))
    with engine.store.data.reader() as reader:
        (hit,) = (record for record in reader.records() if record.text == TALK[-1])
        assert {place.record.text for place in reader.session_neighbors([hit.id], ["note"], 2, Filters())} == set(TALK[2:4])
        assert reader.session_neighbors([hit.id], ["fact"], 2, Filters()) == []
        assert reader.session_neighbors([hit.id], ["note"], 2, Filters(since=ago(2))) == []


def test_the_gain_is_the_sum_over_strong_neighbours_and_at_most_one() -> None:
    record = next(iter(talked().search("festival"))).record
    places = [SessionNeighbor("a", 1, record), SessionNeighbor("b", -2, record)]
    assert neighbour_scores(places, {"a": 0.4, "b": 0.2}) == {record.id: round(0.4 + 0.2 * NEIGHBOUR_WEIGHTS[1], 6)}
    assert neighbour_scores(places, {"a": 1.0, "b": 0.8}) == {record.id: 1.0}


def test_each_keyword_in_the_text_counts_a_tenth_where_a_profile_weighs_it() -> None:
    found = features(talked(), "How was the HARBOUR festival?", weights={"contained": 0.5})
    assert found[TALK[0]]["contained"] == 0.2
    assert found[TALK[1]]["contained"] == 0.0
    assert "contained" not in features(talked(), "How was the harbour festival?")[TALK[0]]
