"""Lifecycles: 004's five diagrams as tables, what is due, and upkeep that can be undone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import foveate
from foveate import InputError, testing
from foveate.clock import new_id
from foveate.pipeline.scoring import track_record
from foveate.records.kinds import LEARNED_FROM
from foveate.records.lifecycle import (
    DEFAULT_THRESHOLDS,
    DUE_KINDS,
    Thresholds,
    apply_change,
    due_change,
    stage,
    threshold_problems,
)
from foveate.testing import FixedClock, counting_ids
from foveate.types import Record, Scope, Signals
from worlds import DAY, HOUR, NOW, ago, open_engine


def record(kind: str, **values: Any) -> Record:
    given = {"id": f"{kind}_1", "scope": Scope("main"), "text": "W", "summary": "S", "micro": "M", "created": NOW}
    return Record(kind=kind, **(given | values))


@pytest.fixture
def engine() -> Iterator[foveate.Engine]:
    with open_engine() as engine:
        yield engine


# --- stages --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        ("fact", {}, "new"),
        ("fact", {"data": {"confirmations": 1}}, "confirmed"),
        ("fact", {"data": {"confirmations": 2}}, "confirmed"),
        ("fact", {"data": {"confirmations": 3}}, "core"),
        ("fact", {"data": {"core": True}}, "core"),
        ("fact", {"status": "disputed"}, "new"),
        ("fact", {"status": "superseded", "data": {"confirmations": 9}}, "superseded"),
        ("fact", {"status": "retired", "data": {"core": True}}, "inactive"),
        ("episode", {"created": NOW - 30 * DAY + 1}, "active"),
        ("episode", {"created": NOW - 30 * DAY}, "summarized"),
        ("episode", {"created": NOW - 90 * DAY}, "summarized"),
        ("episode", {"created": NOW - 90 * DAY - 1}, "archived"),
        ("episode", {"created": NOW - 91 * DAY, "pinned": True}, "summarized"),
        ("episode", {"data": {"archived": True}}, "archived"),
        ("procedure", {"uses": 4, "wins": 0}, "active"),
        ("procedure", {"uses": 5, "wins": 4}, "effective"),
        ("procedure", {"uses": 5, "wins": 3}, "active"),  # 0.6 is not above 0.6
        ("procedure", {"uses": 5, "wins": 2}, "active"),  # 0.4 is not below 0.4
        ("procedure", {"uses": 5, "wins": 1}, "ineffective"),
        ("procedure", {"uses": 9, "wins": 9, "status": "retired"}, "retired"),
        ("pattern", {"uses": 5, "wins": 5}, "effective"),
        ("censor", {}, "created"),
        ("censor", {"uses": 1}, "active"),
        ("censor", {"uses": 5}, "active"),
        ("censor", {"uses": 6}, "escalated"),
        ("censor", {"uses": 6, "data": {"false_alarms": 3}}, "escalated"),  # a half is not more than a half
        ("censor", {"uses": 5, "data": {"false_alarms": 3}}, "retired"),
        ("censor", {"uses": 2, "data": {"false_alarms": 2}}, "active"),
        ("censor", {"status": "retired"}, "retired"),
        ("decision", {}, "recorded"),
        ("decision", {"outcome": "pending"}, "pending"),
        ("decision", {"outcome": "partial"}, "reviewed"),
        ("decision", {"outcome": "failure", "created": 0}, "reviewed"),
        ("note", {"status": "active"}, "active"),
    ],
)
def test_stages(kind: str, values: dict[str, Any], expected: str) -> None:
    assert stage(record(kind, **values), NOW) == expected


def test_thresholds_are_data() -> None:
    strict = Thresholds(core_at=1, archive_after=7, judged_at=1, escalate_above=0)
    assert stage(record("fact", data={"confirmations": 1}), NOW, strict) == "core"
    assert stage(record("episode", created=NOW - 8 * DAY), NOW, strict) == "archived"
    assert stage(record("procedure", uses=1, wins=1), NOW, strict) == "effective"
    assert stage(record("censor", uses=1), NOW, strict) == "escalated"


def test_a_stage_is_read_through_the_engine_as_facts_are_met_again(engine: foveate.Engine) -> None:
    stages = []
    for _ in range(4):
        id = engine.add("fact", "Deploys happen on Tuesdays").record.id
        stages.append(engine.get(id).stage)
    assert stages == ["new", "confirmed", "confirmed", "core"]
    other = engine.add("fact", "The vault is in Oslo").record.id
    assert engine.edit(other, data={"core": True}).stage == "core"
    assert engine.get(other).stage == "core"
    assert [record.stage for record in engine.records()] == ["core", "core"]
    assert [hit.record.stage for hit in engine.search("vault")] == ["core"]


def test_the_stage_of_a_record_is_that_of_the_time_it_is_read_for(engine: foveate.Engine) -> None:
    id = engine.add("episode", "Moved the crawler off SQLite", created=NOW - 100 * DAY).id
    assert engine.get(id, as_of=NOW - 99 * DAY).stage == "active"
    assert engine.get(id).stage == "archived"


# --- what is due ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        ("episode", {"created": NOW - 91 * DAY}, ("archive", "summarized", "archived", "older than 90 days")),
        ("episode", {"created": NOW - 89 * DAY}, None),
        ("episode", {"created": NOW - 91 * DAY, "status": "retired"}, None),
        ("procedure", {"uses": 10, "wins": 3}, ("flag", "active", "ineffective", "3 of 10 uses were successful")),
        ("procedure", {"uses": 10, "wins": 3, "data": {"review": True}}, None),
        (
            "procedure",
            {"uses": 10, "wins": 7, "data": {"review": True}},
            ("unflag", "ineffective", "effective", "7 of 10 uses were successful"),
        ),
        ("procedure", {"uses": 10, "wins": 7}, None),
        ("censor", {"uses": 6}, ("escalate", "active", "escalated", "violated 6 times, more than 5")),
        ("censor", {"uses": 6, "data": {"action": "block"}}, None),
        ("censor", {"uses": 4, "data": {"false_alarms": 3}}, ("withdraw", "active", "retired", "3 false alarms in 4 uses")),
        ("fact", {"data": {"confirmations": 9}}, None),
        ("decision", {"created": 0, "outcome": "failure"}, None),
    ],
)
def test_what_is_due(kind: str, values: dict[str, Any], expected: tuple[str, ...] | None) -> None:
    step = due_change(record(kind, **values), NOW)
    assert (step and (step.verb, step.was, step.to, step.why)) == expected


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("episode", {"created": NOW - 91 * DAY}),
        ("procedure", {"uses": 10, "wins": 3}),
        ("pattern", {"uses": 10, "wins": 7, "data": {"review": True}}),
        ("censor", {"uses": 6}),
        ("censor", {"uses": 4, "data": {"false_alarms": 3}}),
    ],
)
def test_what_was_done_is_no_longer_due(kind: str, values: dict[str, Any]) -> None:
    found = record(kind, **values)
    step = due_change(found, NOW)
    assert step is not None
    assert due_change(apply_change(found, step, NOW), NOW) is None


def test_no_rule_touches_a_decision() -> None:
    assert "decision" not in DUE_KINDS
    assert all(
        due_change(record("decision", created=0, outcome=outcome, uses=99), NOW) is None for outcome in (None, "failure")
    )


# --- upkeep --------------------------------------------------------------------------------------------------------

STORY = "We moved the crawler to Oslo. " + "It took a night and two people, and nothing was lost on the way there. " * 20


def events(engine: foveate.Engine) -> list[Record]:
    with engine.store.data.reader() as reader:
        return [found for found in reader.records() if found.data.get("type") == "lifecycle"]


def test_gc_says_what_it_would_do_and_changes_nothing(engine: foveate.Engine) -> None:
    id = engine.add("episode", STORY, created=ago(91)).record.id
    assert [(step.id, step.to) for step in engine.store.maintain(dry_run=True)] == [(id, "archived")]
    assert engine.get(id).status == "active"
    assert events(engine) == []


def test_an_old_episode_is_archived_with_its_summary_and_its_text_stays_in_history(engine: foveate.Engine) -> None:
    kept = engine.add("episode", STORY, created=ago(91)).record
    young = engine.add("episode", "We moved the vault", created=ago(89)).record.id
    engine.store.maintain()
    archived = engine.get(kept.id)
    assert (archived.data["archived"], archived.text, archived.summary) == (True, kept.summary, kept.summary)
    assert len(archived.text) < len(STORY)
    assert engine.get(young).status == "active"
    shown = engine.context("Where is the crawler?").text
    assert archived.summary.split(".")[0] in shown
    assert STORY.strip() not in shown
    before = [step.before for step in engine.history(kept.id)]
    assert before[-1] is not None
    assert before[-1].text == STORY.strip()
    assert engine.store.maintain(dry_run=True) == []


def test_what_an_archived_episode_taught_outlives_its_detail(engine: foveate.Engine) -> None:
    detail = "The night was long, and two people watched the copy go from one disk to the next. "
    told = detail * 10 + "We decided to keep the crawler in Oslo, because power is cheap there. " + detail * 10
    episode = engine.add("episode", told, created=ago(91)).record
    taught = [
        engine.add(
            "decision", "Keep the crawler in Oslo", data={"rationale": "Power is cheap there"}, created=ago(91)
        ).record,
        engine.add("fact", "The crawler runs in Oslo", subject="crawler", attribute="place", created=ago(91)).record,
    ]
    for record in taught:
        engine.link(record.id, LEARNED_FROM, episode.id)
    engine.store.maintain()
    assert "We decided to keep the crawler in Oslo" in engine.get(episode.id).text
    assert [engine.get(record.id) for record in taught] == taught
    with engine.store.data.reader() as reader:
        assert {link.src for link in reader.links([episode.id], incoming=True)} == {record.id for record in taught}
    for question, record in zip(
        ("Why did we keep the crawler in Oslo?", "Where does the crawler run?"), taught, strict=True
    ):
        assert record.text in engine.context(question).text


def test_each_change_leaves_an_event_that_no_prompt_shows(engine: foveate.Engine) -> None:
    id = engine.add("episode", STORY, created=ago(91)).record.id
    engine.store.maintain()
    (event,) = events(engine)
    assert event.text == f"archive {id}: summarized -> archived, older than 90 days"
    assert event.data["record"] == id
    assert "archive" not in engine.context("archive crawler").text


def test_undo_takes_a_change_back_and_gc_does_not_do_it_again(engine: foveate.Engine) -> None:
    id = engine.add("episode", STORY, created=ago(91)).record.id
    other = engine.add("episode", "We moved the vault", created=ago(91)).record.id
    engine.store.maintain()
    engine.undo(id)
    assert (engine.get(id).status, engine.get(id).text) == ("active", STORY.strip())
    assert engine.get(other).data["archived"]
    assert sorted(event.status for event in events(engine)) == ["archived", "retired"]
    assert engine.store.maintain() == []
    assert engine.get(id).status == "active"


def test_a_procedure_that_mostly_fails_is_flagged_until_it_recovers(engine: foveate.Engine) -> None:
    id = engine.add("procedure", "Restart the crawler").record.id
    for outcome in ("success", "failure", "failure", "failure", "failure"):
        engine.edit(id, outcome=outcome)
    engine.store.maintain()
    assert engine.get(id).data["review"] is True
    for _ in range(6):
        engine.edit(id, outcome="success")  # 7 of 11
    assert [step.verb for step in engine.store.maintain()] == ["unflag"]
    assert engine.get(id).data["review"] is False
    for _ in range(8):
        engine.edit(id, outcome="failure")  # 7 of 19
    assert [step.verb for step in engine.store.maintain()] == ["flag"]


def test_a_pending_outcome_is_no_use(engine: foveate.Engine) -> None:
    id = engine.add("procedure", "Restart the crawler").record.id
    assert engine.edit(id, outcome="pending").uses == 0
    assert engine.edit(id, outcome="success").uses == 1


def test_gc_leaves_decisions_as_they_are(engine: foveate.Engine) -> None:
    id = engine.add("decision", STORY, created=ago(4000), outcome="failure").record.id
    engine.store.maintain()
    assert (engine.get(id).version, engine.get(id).status) == (1, "active")


def test_gc_stays_within_its_scope() -> None:
    with open_engine(user="mira") as engine:
        id = engine.add("episode", "We moved the vault", created=ago(91)).record.id
        assert engine.scoped(user="tim").store.maintain() == []
        assert [step.id for step in engine.store.maintain()] == [id]


def test_tick_does_its_round_once_an_hour() -> None:
    clock = FixedClock(NOW)
    with testing.engine(":memory:", clock=clock, ids=counting_ids()) as engine:
        assert engine.store.run_due_maintenance() == []
        engine.add("episode", "We moved the vault", created=ago(91))
        clock.tick(HOUR - 1)
        assert engine.store.run_due_maintenance() == []
        clock.tick(1)
        assert [step.verb for step in engine.store.run_due_maintenance()] == ["archive"]
        engine.add("episode", "We moved the crawler", created=ago(91))
        assert engine.store.run_due_maintenance() == []
        clock.tick(HOUR)
        assert len(engine.store.run_due_maintenance()) == 1


def test_thresholds_come_from_the_projects_settings(tmp_path: Path) -> None:
    (tmp_path / ".foveate").mkdir()
    (tmp_path / ".foveate" / "config.toml").write_text("[lifecycle]\narchive_after = 7\n", "utf-8")
    with testing.engine(tmp_path, personal=False, clock=lambda: NOW, ids=new_id) as engine:
        engine.add("episode", "We moved the vault", created=ago(8))
        assert [step.why for step in engine.store.maintain(dry_run=True)] == ["older than 7 days"]
    (tmp_path / ".foveate" / "config.toml").write_text("[lifecycle]\narchive = 7\ncore_at = 1.5\n", "utf-8")
    with pytest.raises(InputError) as caught:
        foveate.open(tmp_path, personal=False)
    assert list(caught.value.problems) == [
        "config.toml, [lifecycle]: 'archive' is not a threshold. Did you mean 'archive_after'?",
        "config.toml, [lifecycle]: core_at must be a whole number of at least 0, got 1.5.",
    ]


@pytest.mark.parametrize("value", [-1, True, "7", None])
def test_a_threshold_is_a_number(value: object) -> None:
    assert threshold_problems({"archive_after": value}) == [f"archive_after must be a number of at least 0, got {value!r}."]


# --- rank ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        ("procedure", {}, {"success": 1 / 2}),
        ("procedure", {"uses": 1, "wins": 1}, {"success": 2 / 3}),
        ("procedure", {"uses": 45, "wins": 40}, {"success": 41 / 47, "stage": 1.0}),
        ("pattern", {"uses": 5, "wins": 1}, {"success": 2 / 7}),
        ("pattern", {"data": {"intents": ["fix"]}}, {"success": 1 / 2, "applies": 1.0}),
        ("pattern", {"data": {"intents": ["explain"], "entity_types": ["Service"]}}, {"success": 1 / 2, "applies": 0.5}),
        ("pattern", {"data": {"entity_types": ["person"]}}, {"success": 1 / 2, "applies": 0.0}),
        ("fact", {}, {}),
        ("fact", {"data": {"confirmations": 1}}, {"stage": 0.5}),
        ("fact", {"data": {"confirmations": 3}}, {"stage": 1.0}),
        ("decision", {"uses": 45, "wins": 40}, {}),
    ],
)
def test_what_a_record_has_earned(kind: str, values: dict[str, Any], expected: dict[str, float]) -> None:
    signals = Signals(intent="fix", entity_types=("service",))
    assert track_record(record(kind, **values), signals, NOW, DEFAULT_THRESHOLDS) == pytest.approx(expected)


@pytest.mark.parametrize("profile", ["default", "subtask", "assistant"])
def test_a_core_fact_ranks_before_one_that_was_met_once(profile: str) -> None:
    with open_engine(profile=profile) as engine:
        once = engine.add("fact", "The crawler runs in Oslo at night").record.id
        core = engine.add("fact", "The crawler runs in Rome at night").record.id
        engine.edit(core, data={"core": True})
        ids = [item.id for item in engine.context("Where does the crawler run at night?").items]
        assert ids.index(core) < ids.index(once)


@pytest.mark.parametrize("profile", ["default", "subtask", "assistant"])
def test_forty_of_forty_five_beat_one_of_one(profile: str) -> None:
    with open_engine(profile=profile) as engine:
        for name, uses, wins in (("Oslo", 1, 1), ("Rome", 45, 40)):
            engine.add("procedure", f"Restart the crawler in {name} at night", uses=uses, wins=wins)
        shown = [item.record for item in engine.context("restart the crawler").items]
        assert [found.uses for found in shown if found.kind == "procedure"] == [45, 1]


def test_a_procedure_for_this_intent_and_sort_of_thing_comes_first(engine: foveate.Engine) -> None:
    engine.add("entity", "Kestrel", data={"type": "service"})
    engine.add("procedure", "Look at the logs of Kestrel in Oslo", data={"intents": ["explain"]})
    engine.add("procedure", "Look at the logs of Kestrel in Rome", data={"intents": ["fix"], "entity_types": ["service"]})
    context = engine.context("Fix the logs of Kestrel")
    assert [item.record.text[-4:] for item in context.items if item.section == "procedures"] == [
        "Rome",
        "Oslo",
    ]


@pytest.mark.parametrize("profile", ["default", "coding", "assistant", "subtask"])
def test_a_way_for_this_sort_of_thing_is_found_without_a_shared_word(profile: str) -> None:
    with open_engine(profile=profile) as engine:
        kind = "procedure" if profile == "assistant" else "pattern"
        engine.add("entity", "Kestrel", data={"type": "service"})
        meant = engine.add(
            kind, "Read its health page first", data={"intents": ["fix"], "entity_types": ["Service"]}
        ).record.id
        other = engine.add(kind, "Ask its owner first", data={"intents": ["explain"], "entity_types": ["service"]}).record.id
        context = engine.context("Kestrel crashes", overrides={"slots": {f"{kind}s": {"min_relevance": 0.0}}})
        ids = [item.id for item in context.items]
        assert meant in ids
        assert other not in ids
        assert meant not in [item.id for item in engine.context("The weather crashes").items]


def test_an_archived_episode_is_found_by_its_summary_and_expanded_in_full(engine: foveate.Engine) -> None:
    id = engine.add("episode", STORY, created=NOW - 100 * DAY).record.id
    engine.store.maintain()
    word = engine.get(id).text.split()[1]
    assert [hit.record.id for hit in engine.search(word, kinds=["episode"])] == [id]
    assert STORY.split()[-1] in engine.expand(id)["content"]
