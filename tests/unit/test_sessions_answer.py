"""A session is read as one: what is of a talk that answers much of the question gains by it."""

from __future__ import annotations

from typing import Any

import pytest

from foveate import Engine
from foveate.pipeline.sources.sessions import EXPANSION_FACTOR, session_scores
from foveate.store.protocol import Query
from foveate.types import ExpansionTerm
from worlds import ago, open_engine

TALKS = {
    "concert": ("Anna: the violin is tuned", "Anna: the concert was a success", "Anna: good night"),
    "garden": ("Anna: I sold the old violin", "Anna: the roses need water"),
    "kitchen": ("Anna: soup again",),
}


def talked(talks: dict[str, tuple[str, ...]], created: dict[str, Any] | None = None) -> Engine:
    engine = open_engine()
    for session, lines in talks.items():
        rows = [("note", line, {"created": (created or {}).get(session, ago(3))}) for line in lines]
        engine.store.add_many(rows, session=session)
    return engine


def worth(engine: Engine, terms: list[str], **given: Any) -> dict[str, float]:
    with engine.store.data.reader() as reader:
        return session_scores(reader.records(), Query(dict.fromkeys(terms, 1.0), {}, **given))


def features(engine: Engine, query: str, **options: Any) -> dict[str, dict[str, float]]:
    context = engine.context(query, profile="chat", **options)
    items = [item.candidate for section in context.sections if section.name == "messages" for item in section.items]
    return {candidate.record.text: dict(candidate.features) for candidate in items}


@pytest.mark.parametrize(
    ("terms", "order"),
    [
        (["violin", "concert"], ["concert", "garden", "kitchen"]),  # in pieces, by two who say one word each
        (["rose", "violin"], ["garden", "concert", "kitchen"]),
    ],
)
def test_a_session_that_says_more_of_the_question_is_worth_more(terms: list[str], order: list[str]) -> None:
    found = worth(talked(TALKS), terms)
    assert sorted(found, key=found.__getitem__, reverse=True) == order
    assert found["kitchen"] == 0.0
    assert max(found.values()) <= 1.0


def test_a_word_of_every_session_tells_little() -> None:
    found = worth(talked(TALKS), ["anna", "soup"])
    assert found["kitchen"] > 2 * max(found["concert"], found["garden"])


def test_what_comes_again_counts_less_each_time() -> None:
    talks = {f"{n} times": ("soup " * n + "salt " * (4 - n),) for n in range(4)}
    found = worth(talked(talks), ["soup"])
    gains = [found["2 times"] - found["1 times"], found["3 times"] - found["2 times"]]
    assert gains[0] > gains[1] > 0


def test_quantities_are_found_in_any_form() -> None:
    talks = {"shore": ("She ran three kilometres on the shore",), "past": ("She ran past the shore",)}
    found = worth(talked(talks), ["ran", "3", "km", "=3km"])
    assert found["shore"] > found["past"]


def test_of_a_long_record_the_beginning_tells() -> None:
    found = worth(talked({"begins": ("soup " + "x " * 5000,), "ends": ("x " * 5000 + "soup",)}), ["soup"])
    assert found["begins"] > found["ends"] == 0.0


def test_other_words_count_less_than_the_one_that_was_asked_for() -> None:
    talks = {"kids": ("the kids sleep",), "daughter": ("the daughter sleeps",), "neither": ("the dog sleeps",)}
    found = worth(talked(talks), ["kid"], expansions={"daughter": ExpansionTerm("kid")})
    assert found["kids"] > found["daughter"] > found["neither"] == 0.0


def test_other_words_count_less_in_a_session_than_in_a_record() -> None:
    talks = {"kids": ("the kids",), "daughter": ("the daughter",)}
    found = worth(talked(talks), ["kid"], expansions={"daughter": ExpansionTerm("kid")})
    assert found["daughter"] == pytest.approx(EXPANSION_FACTOR * Query({}, {}).expansion_weight * found["kids"])
    assert EXPANSION_FACTOR < 1


def test_the_date_of_a_session_counts_where_the_question_names_it() -> None:
    engine = talked(
        {"may": ("a walk in the park",), "june": ("a walk in the woods",)}, {"may": "2026-05-14", "june": "2026-06-14"}
    )
    assert worth(engine, ["walk", "@2026-05"])["may"] > worth(engine, ["walk", "@2026-05"])["june"]


def test_of_two_turns_that_match_alike_the_one_of_the_telling_session_comes_first() -> None:
    talks = {
        "trip": ("The violin is kept", "Rehearsal at noon", "Rehearsal at nine for the concert"),
        "sale": ("The violin is sold", "Soup at noon", "Bread at nine for the picnic"),
    }
    found = features(talked(talks), "violin concert rehearsal")
    assert found["The violin is kept"]["match"] == found["The violin is sold"]["match"]
    assert found["The violin is kept"]["relevance"] > found["The violin is sold"]["relevance"]
    assert found["The violin is kept"]["session"] > found["The violin is sold"]["session"]
    assert found["Soup at noon"]["session"] == found["The violin is sold"]["session"]  # a neighbour is of the session too


def test_without_a_session_nothing_is_said_of_it() -> None:
    engine = open_engine()
    engine.add("note", "The violin is kept")
    assert "session" not in features(engine, "violin")["The violin is kept"]
    assert all("session" in known for known in features(talked(TALKS), "violin").values() if known.get("match"))


def test_nothing_found_gives_nothing() -> None:
    assert session_scores([], Query({"soup": 1.0}, {})) == {}
