"""Calibration: figures worked out by hand, the note of 004, and the slot that shows it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import foveate
from foveate.pipeline.sources.calibration import MIN_REVIEWED, by_domain, measure, note, reviewed_decisions
from foveate.types import Record, Scope
from worlds import NOW, open_engine

Case = tuple[float, str]


def decisions(cases: Sequence[Case], tags: tuple[str, ...] = (), start: int = 0) -> list[Record]:
    return [
        Record(
            id=f"decision_{start + n:03}", kind="decision", scope=Scope("main"), text="t", summary="t", micro="t",
            created=NOW - start - n, confidence=confidence, outcome=outcome, tags=tags,
        )
        for n, (confidence, outcome) in enumerate(cases)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("cases", "accuracy", "brier", "gap", "tendency"),
    [
        ([(0.8, "success")], 1.0, 0.04, -0.2, "underconfident"),
        ([(0.9, "failure")], 0.0, 0.81, 0.9, "overconfident"),
        ([(0.5, "partial")], 0.5, 0.0, 0.0, "well calibrated"),
        ([(0.8, "success"), (0.6, "failure")], 0.5, (0.04 + 0.36) / 2, 0.2, "overconfident"),
        ([(0.9, "success")] * 4 + [(0.9, "failure")], 0.8, (4 * 0.01 + 0.81) / 5, 0.1, "slightly overconfident"),
        ([(0.9, "success")] * 9 + [(0.9, "failure")], 0.9, 0.09, 0.0, "well calibrated"),
        ([(0.9, "success")], 1.0, 0.01, -0.1, "slightly underconfident"),
    ],
)
def test_figures(cases: list[Case], accuracy: float, brier: float, gap: float, tendency: str) -> None:
    found = measure(decisions(cases))
    assert found is not None
    assert (found.accuracy, found.brier, found.gap) == pytest.approx((accuracy, brier, gap))
    assert found.tendency == tendency


def test_only_what_was_said_and_turned_out_counts() -> None:
    cases = [(0.8, "success"), (0.8, "pending"), (1.0, "failure")]
    assert [record.confidence for record in reviewed_decisions(decisions(cases))] == [0.8]
    assert measure([]) is None


def test_the_newest_fifty_count() -> None:
    found = reviewed_decisions(decisions([(0.9, "failure")] * 30, start=100) + decisions([(0.9, "success")] * 40))
    assert len(found) == 50
    assert [record.outcome for record in found].count("failure") == 10


def test_the_note_of_004() -> None:
    # 33 of 34 right; a confidence of 0.89 for those and 0.22 for the other: (33 * 0.0121 + 0.0484) / 34 = 0.0132
    cases = [(0.89, "success")] * 33 + [(0.22, "failure")]
    assert note(decisions(cases)) == ("Recent accuracy: 97%. Brier: 0.013. Slightly underconfident — trust your analysis.")


@pytest.mark.parametrize(
    ("cases", "end"),
    [
        ([(0.95, "failure")] * MIN_REVIEWED, "Overconfident — look for what could go wrong."),
        ([(0.5, "success")] * MIN_REVIEWED, "Underconfident — trust your analysis."),
        ([(0.97, "success")] * MIN_REVIEWED, "Well calibrated — go on as you do."),
    ],
)
def test_tendencies_in_words(cases: list[Case], end: str) -> None:
    assert note(decisions(cases)).endswith(end)


def test_nothing_is_said_before_ten_decisions_were_reviewed() -> None:
    assert note(decisions([(0.9, "success")] * 9 + [(0.9, "pending")] * 9)) == ""
    assert note(decisions([(0.9, "success")] * 10)) != ""


def test_a_domain_that_stands_out_has_a_sentence_of_its_own() -> None:
    poor, good = [(0.9, "failure")] * 10, [(0.9, "success")] * 30
    found = decisions(poor, ("database",)) + decisions(good, ("ui",), start=10)
    assert {tag: (part.number, part.accuracy) for tag, part in by_domain(found).items()} == {
        "database": (10, 0.0),
        "ui": (30, 1.0),
    }
    whole = "Recent accuracy: 75%. Brier: 0.210. Overconfident — look for what could go wrong."
    assert note(found) == note(found, ["api"]) == note(found, ["database"]) == whole
    assert note(found, ["ui"]) == f"{whole} On ui: slightly underconfident — trust your analysis."


# --- the slot ------------------------------------------------------------------------------------------------------


def filled(number: int) -> foveate.Engine:
    engine = open_engine(profile="assistant")
    for n in range(number):
        id = engine.add("decision", f"Chose plan {n} for the crawler", confidence=0.9).record.id
        engine.edit(id, outcome="success")
    return engine


NOTE = "Recent accuracy: 100%. Brier: 0.010. Slightly underconfident — trust your analysis."


def test_the_note_stands_in_its_slot_once_there_are_enough() -> None:
    with filled(9) as engine:
        assert "## Note" not in engine.context("crawler").text
    with filled(10) as engine:
        assert engine.context("What is the weather?").text.endswith(f"## Note\n- {NOTE}\n")


def test_replay_gives_the_same_note_whatever_was_reviewed_since() -> None:
    with filled(10) as engine:
        context = engine.context("crawler")
        for n in range(10):
            engine.edit(f"decision_{n + 1}", outcome="failure")
        assert NOTE not in engine.context("crawler").text
        again = engine.receipts.replay(context)
        assert again.same
        assert again.missing == ()
        assert NOTE in again.text


def test_a_note_that_is_handed_in_is_shown_beside_it() -> None:
    with filled(10) as engine:
        text = engine.context("crawler", extra={"calibration": ["Mind the gap"]}).text
        assert "- Mind the gap\n" in text
        assert NOTE in text
