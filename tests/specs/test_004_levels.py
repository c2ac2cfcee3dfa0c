"""004, how each kind reads at its levels, before and after an outcome. Docstrings name rows of docs/concepts/specs.md."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import foveate
from foveate.records.kinds import kind_of
from foveate.types import Level, Record
from worlds import open_engine


@pytest.fixture
def engine() -> Iterator[foveate.Engine]:
    with open_engine(profile="assistant") as engine:
        yield engine


def line(record: Record, level: Level = "summary") -> str:
    return kind_of(record.kind).render(record, level)


CHOICE = "Chose Postgres with pgvector as the storage backend"
REASONS = "one backup, one monitor, one pool"


def test_a_decisions_summary_holds_decision_reasons_and_outcome(engine: foveate.Engine) -> None:
    """004-33, 004-38"""
    id = engine.add("decision", CHOICE, data={"rationale": REASONS}, confidence=0.85).record.id
    record = engine.edit(id, outcome="success", result="Queries are 8.5 times faster.")
    assert record.summary == CHOICE
    assert line(record) == f"- {CHOICE} [success, 0.85] — {REASONS}\n  Outcome: Queries are 8.5 times faster.\n"
    assert line(record) in engine.context("Which storage backend?").text


def test_lines_are_made_anew_when_an_outcome_arrives(engine: foveate.Engine) -> None:
    """004-44"""
    first = engine.add("decision", CHOICE, confidence=0.85).record
    assert line(first, "micro") == f"- {CHOICE} [0.85]\n"
    pending = engine.edit(first.id, outcome="pending")
    assert line(pending, "micro") == f"- {CHOICE} [pending, 0.85]\n"
    done = engine.edit(first.id, outcome="failure", result="It ran out of memory.")
    assert line(done, "micro") == f"- {CHOICE} [failure, 0.85]\n"
    assert line(done).endswith("Outcome: It ran out of memory.\n")
    assert first.tokens is not None
    assert done.tokens is not None
    assert first.tokens["micro"] < done.tokens["micro"] < done.tokens["summary"]
    episode = engine.add(
        "episode", "Moved the crawler off SQLite over night", data={"title": "SQLite migration", "duration": "3h"}
    ).record
    assert line(episode) == "- SQLite migration (3h) — Moved the crawler off SQLite over night\n"
    assert (
        line(engine.edit(episode.id, outcome="success", result="nothing was lost"))
        == "- SQLite migration (3h) — nothing was lost\n"
    )


def test_a_kind_without_results_refuses_one_in_words(engine: foveate.Engine) -> None:
    id = engine.add("fact", "Deploys happen on Tuesdays").record.id
    with pytest.raises(foveate.InputError, match="Kind 'fact' has no field 'result'"):
        engine.edit(id, outcome="success", result="it did")


def test_a_procedures_micro_line_is_its_chain_of_steps(engine: foveate.Engine) -> None:
    """004-30"""
    steps = ["branch", "PR", "review", {"text": "CI", "command": "make test"}, "merge"]
    record = engine.add("procedure", "How a change gets out.", data={"name": "To deploy", "steps": steps}).record
    assert line(record, "micro") == "- To deploy: branch → PR → review → CI → merge\n"
    assert line(record, "full") == "#### To deploy\nHow a change gets out.\n\nSteps: branch → PR → review → CI → merge\n"


def test_a_procedure_shows_its_core_patterns_first(engine: foveate.Engine) -> None:
    """004-41, 004-99"""
    core = ["Query similar decisions first", "Evaluate two alternatives"]
    record = engine.add("procedure", "Architecture decision", data={"name": "Architecture decision", "core": core}).record
    assert line(record) == (
        "#### Architecture decision\nCore patterns:\n- Query similar decisions first\n- Evaluate two alternatives\n"
    )
    told = engine.edit(record.id, text="Written down before anything is built.")
    assert line(told) == line(record) + "\nWritten down before anything is built.\n"
    plain = engine.add("procedure", "Restart the crawler").record
    assert line(plain) == "- Restart the crawler\n"


def test_an_episode_says_how_long_with_whom_and_what_came_of_it(engine: foveate.Engine) -> None:
    """004-98"""
    record = engine.add(
        "episode",
        "We talked about storage for a long time.",
        data={
            "title": "Storage discussion",
            "duration": "2h",
            "participants": ["Tim", "Mira"],
            "result": "chose Postgres, rejected several services",
        },
    ).record
    assert line(record) == ("- Storage discussion (2h, with Tim, Mira) — chose Postgres, rejected several services\n")
    bare = engine.add("episode", "We talked about caching", data={"participants": ["Tim"]}).record
    assert line(bare) == "- We talked about caching (with Tim)\n"


def test_a_censors_trigger_and_reason_are_its_summary(engine: foveate.Engine) -> None:
    """004-42"""
    record = engine.add("censor", "Pushing to main", data={"action": "block", "reason": "review first"}).record
    assert line(record) == "- **BLOCK:** Pushing to main — review first\n"
