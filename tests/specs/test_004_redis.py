"""004's example, record by record: "Should we use Redis for caching in Newton?" Docstrings name rows of specs.md.

The records have the document's words and no others, no tags, and stand among records that such an agent would have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

import foveate
import newton
from foveate import Context
from foveate.eval.systems.baselines import build_fts5_index, select_fitting
from foveate.receipts.codec import to_json
from foveate.text import tokens
from newton import DECISIONS, FACTS, OTHER_DECISIONS, OTHER_FACTS, PROCEDURE, QUERY, UNRELATED, WANTED
from worlds import open_engine

NOTE = "Recent accuracy: 97%. Brier: 0.019. Slightly underconfident — trust your analysis."
SEARCHED = ("decisions", "facts", "procedures", "episodes")

RULES = ("identity", "censors")
"""Sections that are shown in full, D22."""


@pytest.fixture(scope="module")
def engine() -> Iterator[foveate.Engine]:
    with open_engine(profile="assistant") as engine:
        newton.fill(engine)
        yield engine


@pytest.fixture(scope="module")
def context(engine: foveate.Engine) -> Context:
    return engine.context(QUERY, extra={"calibration": [NOTE]})


@pytest.fixture(scope="module")
def printed() -> Iterator[Context]:
    """The document's ten records and no others, whatever their relevance: for their form, not for the choice of them."""
    with open_engine(profile="assistant") as engine:
        newton.fill(engine, others=False)
        everything = {"slots": {slot: {"fill": "all"} for slot in SEARCHED}}
        yield engine.context(QUERY, extra={"calibration": [NOTE]}, overrides=everything)


def found_texts(context: Context) -> set[str]:
    return {item.record.text for item in context.items if item.section in SEARCHED}


def section(context: Context, name: str) -> str:
    return next(section.content for section in context.sections if section.name == name)


def test_the_redis_question_selects_the_frame_decision(engine: foveate.Engine, context: Context) -> None:
    """004-48, 004-49, 004-50, 004-52, 004-93"""
    document = to_json(engine.receipts.get(context))
    assert (document["signals"]["frame"], document["signals"]["frame_because"]) == (
        "decision",
        "it begins with 'should we'",
    )
    assert document["profile"]["frame"]["domains"] == ["architecture", "infrastructure"]
    priorities = {slot["name"]: slot["priority"] for slot in document["profile"]["slots"]}
    expected = {"decisions": 1.0, "procedures": 0.8, "facts": 0.6, "episodes": 0.4}
    assert {slot: priorities[slot] for slot in expected} == expected


# --- which records are found, among others -------------------------------------------------------------------------


def test_the_records_found_by_words_come_back_before_ranking(engine: foveate.Engine, context: Context) -> None:
    """004-94: the document's vector search gives 12, 25, 3 and 5; words alone find 22, and 4 of the ten wanted ones."""
    candidates = [entry for entry in engine.receipts.get(context).candidates if entry.source == "search"]
    found = Counter(entry.slot for entry in candidates)
    assert found["decisions"] >= 6
    assert found["facts"] >= 15
    assert found["episodes"] >= 1
    assert len({engine.get(entry.id).text for entry in candidates} & WANTED) >= 4
    limits = {"decisions": 12, "facts": 25, "procedures": 3, "episodes": 5}
    assert all(found[slot] <= limit for slot, limit in limits.items())


def test_four_of_the_ten_records_are_shown_and_eighteen_others(context: Context) -> None:
    """004-06, 004-08, 004-95, 004-102: 3 decisions, 4 facts, 1 procedure and 2 episodes are wanted."""
    shown = found_texts(context)
    assert len(shown & WANTED) >= 4
    assert len(shown - WANTED) <= 18
    assert shown - WANTED <= {*OTHER_DECISIONS, *OTHER_FACTS}, "the others are about Redis or a cache, too"
    assert not shown & {text for _, text in UNRELATED}
    assert len([item for item in context.items if item.kind == "censor"]) == 2


def test_full_text_search_finds_three_more_for_the_same_tokens(context: Context) -> None:
    """Beside 004-95: SQLite FTS5 over the same records. It searches function words, too: "for" and "in" find three."""
    texts = newton.texts()
    spent = sum(item.tokens for item in context.items if item.section in SEARCHED)
    best = {line.strip() for line in select_fitting((texts[n] for n in build_fts5_index(texts)(QUERY)), spent)}
    assert len(best & WANTED) == 7
    assert len(found_texts(context) & WANTED) >= 7 - 3


def test_it_is_well_under_1800_tokens(context: Context) -> None:
    """004-101: a quarter of the document's tokens, with 4 of its ten records."""
    assert 300 <= context.tokens == tokens.count_messages(context.messages()) <= 1800
    assert not any(item.level == "full" for item in context.items if item.section not in RULES)


# --- how they read -------------------------------------------------------------------------------------------------


def test_the_sections_stand_in_the_documents_order(printed: Context) -> None:
    """004-12, 004-84, 004-86, 004-92"""
    names = [section.name for section in printed.sections]
    assert names == [
        "identity", "censors", "frame", "working", "decisions", "facts", "procedures", "episodes", "calibration",
    ]  # fmt: skip
    assert [message["role"] for message in printed.messages()] == ["system"]


def test_the_sections_hold_the_documents_lines(printed: Context) -> None:
    """004-83, 004-84, 004-85, 004-97"""
    assert section(printed, "identity") == "## Identity\nNewton agent. Analytical, cautious, curious.\n"
    assert section(printed, "censors") == (
        "## Active Constraints\n"
        "- **BLOCK:** Don't add infrastructure without evaluating operational cost "
        "— learned from over-engineering incidents\n"
        "- **WARN:** Don't decide without at least 2 alternatives — architecture decisions need comparison\n"
    )
    assert section(printed, "frame") == (
        "## Current Approach: Decision\n"
        "A choice is to be made, and it will be lived with.\n"
        "Consider:\n"
        "- What are we optimizing for?\n"
        "- What did we decide last time?\n"
        "- What are the constraints?\n"
    )
    assert section(printed, "working").startswith("## Current Focus\n")
    assert "Designing Newton's storage and runtime architecture." in section(printed, "working")
    lines = section(printed, "decisions").splitlines()
    assert lines[0] == "## Relevant Past Decisions"
    assert set(lines[1:]) == {f"- {text} [success, {c:.2f}] — {rationale}" for text, c, rationale in DECISIONS}
    assert set(section(printed, "facts").splitlines()) == {"## Known Information", *(f"- {text}" for text in FACTS)}
    assert f"Architecture Decision\n{PROCEDURE}\n" in section(printed, "procedures")
    assert section(printed, "episodes").startswith("## Past Experience\n- ")
    assert NOTE in section(printed, "calibration")


def test_all_ten_records_take_less_than_1800_tokens(printed: Context) -> None:
    """004-101"""
    assert found_texts(printed) == WANTED
    assert printed.tokens <= 1800
    assert {item.level for item in printed.items if item.section not in RULES} == {"summary"}


def test_a_replay_gives_the_same_bytes_frame_and_focus_included(engine: foveate.Engine) -> None:
    """004-17, 004-18"""
    context = engine.context(QUERY)
    found = engine.receipts.replay(context)
    assert (found.same, found.text) == (True, context.text)


# --- step 2: the budget follows the frame and the question ----------------------------------------------------------

COMPLEX = (
    "Should we move the architecture of Newton to Redis for caching, queues and sessions, or keep Postgres, given that the "
    "migration must end before spring and nobody has run Redis before?"
)


def own_room(engine: foveate.Engine, query: str) -> dict[str, int]:
    return {slot.name: slot.base for slot in engine.context(query).budget.slots}


def test_a_short_question_reduces_the_flexible_budgets_and_a_complex_decision_raises_two(engine: foveate.Engine) -> None:
    """004-53, 004-56, 004-57"""
    usual, short, complex_ = (own_room(engine, query) for query in (QUERY, "Where is Newton?", COMPLEX))
    fixed = ("identity", "censors", "frame", "working", "calibration")
    assert all(usual[slot] == short[slot] == complex_[slot] for slot in fixed)
    for slot in SEARCHED:
        assert short[slot] == pytest.approx(usual[slot] / 2, abs=2)
    assert complex_["decisions"] > usual["decisions"]
    assert complex_["procedures"] > usual["procedures"]
    signals = engine.context(COMPLEX).signals
    assert (signals.frame, signals.input) == ("decision", "complex")
    assert "'architecture' (+1)" in signals.input_reason
