"""Feedback says what an answer used; metrics say whether contexts serve."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import prod
from pathlib import Path

import pytest
from click.testing import CliRunner

import foveate
from foveate import InputError
from foveate.cli import cli
from foveate.receipts.codec import notes_to_json, to_json
from foveate.receipts.metrics import DayMetrics, Metric
from foveate.receipts.parts import Notes, RefreshNote
from foveate.testing import FixedClock
from worlds import DAY, NOW, ago, open_engine

ASK = "How does Redis evict sessions?"


@pytest.fixture
def engine() -> Iterator[foveate.Engine]:
    with open_engine(clock=FixedClock(NOW)) as engine:
        engine.add("instruction", "Answer in English")
        engine.add("fact", "Redis evicts sessions with the volatile-lru policy of the cluster")  # fact_1
        engine.add("fact", "Redis sessions are configured in deploy/redis.conf")  # fact_2
        engine.add("fact", "Redis sessions carry a nonce that the gateway signs")  # fact_3
        engine.add("fact", "Redis sessions of guests live in a separate keyspace called lobby")  # fact_4
        yield engine


def test_references_quotations_and_rare_words_count_as_use(engine: foveate.Engine) -> None:
    """004-138"""
    context = engine.context(ASK, frame="none")
    answer = (
        "See deploy/redis.conf. As noted, it evicts sessions with the volatile-lru policy of the cluster. "
        "Because the gateway signs a nonce, nothing else is needed."
    )
    found = engine.feedback(context, answer=answer)
    assert found.used == {"fact_2": "reference", "fact_1": "quotation", "fact_3": "overlap"}
    assert found.unused == ("fact_4",)
    assert found.precision == 0.75


def test_an_id_is_a_reference_and_half_a_name_is_not(engine: foveate.Engine) -> None:
    context = engine.context(ASK, frame="none")
    assert engine.feedback(context, answer="as fact_4 says").used == {"fact_4": "reference"}
    assert engine.feedback(context, answer="as xfact_4 or fact_41 say").used == {}
    assert engine.feedback(context, answer="old/deploy/redis.conf holds it").used != {"fact_2": "reference"}


def test_words_of_the_question_alone_are_no_use(engine: foveate.Engine) -> None:
    context = engine.context(ASK, frame="none")
    assert engine.feedback(context, answer="I do not know how Redis evicts sessions.").used == {}


def test_uses_are_counted_once_and_the_receipt_holds_ids_only(engine: foveate.Engine) -> None:
    context = engine.context(ASK, frame="none")
    for _ in range(2):
        engine.feedback(context, answer="it is in deploy/redis.conf, secretly")
    assert (engine.get("fact_2").uses, engine.get("fact_1").uses) == (1, 0)
    document = to_json(engine.receipts.get(context))
    assert document["notes"] == {"used": ["fact_2"]}
    assert "secretly" not in json.dumps(document)


def test_notes_survive_the_store_and_a_context_computed_again(engine: foveate.Engine) -> None:
    context = engine.context(ASK, frame="none")
    engine.feedback(context, answer="it is in deploy/redis.conf")
    engine.receipts.flush()
    assert notes_to_json(engine.receipts.get(context.id).notes) == {"used": ["fact_2"]}
    engine.feedback(context, useful=["fact_1"])
    engine.receipts.flush()
    assert notes_to_json(engine.receipts.get(context.id).notes) == {"used": ["fact_2"], "marks": {"fact_1": "useful"}}


def test_marks_change_what_they_say(engine: foveate.Engine) -> None:
    context = engine.context(ASK, frame="none")
    assert engine.feedback(context, useful=["fact_1"]).advice == {}
    engine.feedback(context, useful=["fact_1"])
    assert (engine.get("fact_1").uses, engine.get("fact_1").wins) == (1, 1)
    assert "edit fact_2 --retire" in engine.feedback(context, wrong=["fact_2"]).advice["fact_2"]
    assert engine.get("fact_2").outcome == "failure"
    assert "foveate edit fact_3 --retire" in engine.feedback(context, outdated=["fact_3"]).advice["fact_3"]
    assert engine.get("fact_3").status == "active"


def test_a_mark_names_an_item_of_the_context(engine: foveate.Engine) -> None:
    context = engine.context(ASK, frame="none")
    with pytest.raises(foveate.NotFound, match="not shown"):
        engine.feedback(context, wrong=["fact_99"])
    with pytest.raises(foveate.InputError, match="empty"):
        engine.feedback(context, answer=" ")


def test_two_marks_of_one_record_are_refused_before_anything_is_stored(engine: foveate.Engine) -> None:
    context = engine.context(ASK, frame="none")
    with pytest.raises(InputError, match="'fact_1' is marked as useful and as wrong"):
        engine.feedback(context, answer="it is in deploy/redis.conf", useful=["fact_1"], wrong=["fact_2", "fact_1"])
    with pytest.raises(InputError, match="'fact_1' is marked as outdated and as confirmed"):
        engine.feedback(outdated=["fact_1"], confirmed=["fact_1"])
    notes = engine.receipts.get(context).notes
    assert (notes.used, notes.marks) == (None, None)
    assert engine.get("fact_2").outcome is None
    assert "confirmations" not in engine.get("fact_1").data


def test_a_forgotten_record_leaves_the_notes(engine: foveate.Engine) -> None:
    context = engine.context(ASK, frame="none")
    engine.feedback(context, answer="it is in deploy/redis.conf and fact_4")
    engine.feedback(context, outdated=["fact_2"])
    engine.forget("fact_2")
    assert notes_to_json(engine.receipts.get(context.id).notes) == {"used": ["fact_4"], "marks": {}}


# --- metrics ---------------------------------------------------------------------------------------------------------


def test_nothing_measured_is_no_verdict() -> None:
    with open_engine() as engine:
        found = engine.store.stats().metrics
    assert list(found) == [
        "context_relevance",
        "budget_utilisation",
        "refresh_rate",
        "recall_precision",
        "cold_start_ms",
        "memory_growth_per_day",
        "fact_confirmation",
    ]
    assert all(metric.holds is None for metric in found.values())


def test_a_metric_has_a_verdict_once_it_was_measured_ten_times(engine: foveate.Engine) -> None:
    """A new store with one context and four records has missed nothing yet."""
    for n in range(9):
        engine.context(ASK, frame="none", budget=4000, now=NOW + n)
    few = engine.store.stats().metrics
    assert (few["budget_utilisation"].measured, few["budget_utilisation"].holds) == (9, None)
    assert few["fact_confirmation"] == Metric(0.0, "> 0.2", None, 4)
    engine.context(ASK, frame="none", budget=4000, now=NOW + 9)
    assert engine.store.stats().metrics["budget_utilisation"].holds is False


def test_context_relevance_is_the_probability_that_one_item_is_evidence(engine: foveate.Engine) -> None:
    """004-135: rules are there for every question and do not count."""
    contexts = [engine.context(ASK, frame="none", now=NOW + n) for n in range(10)]
    context = contexts[0]
    found = [item.candidate for item in context.items if item.candidate.source != "always"]
    assert len(found) < len(context.items)
    none_is = prod(1 - candidate.features["relevance"] for candidate in found)
    metric = engine.store.stats().metrics["context_relevance"]
    assert metric.value == pytest.approx(1 - none_is, abs=1e-4)
    assert metric.holds is (1 - none_is > 0.6)


def test_what_no_search_found_does_not_count_as_relevant(engine: foveate.Engine) -> None:
    """004-135: the frame, the current focus and given texts have a relevance of 1 that says nothing about the query."""
    engine.tasks.push("Tune the cache")
    engine.add("note", "Is the nonce signed?", tags=["thread"])
    context = engine.context(ASK, profile="assistant", frame="decision", extra={"frame": ["Weigh the costs"]}, now=NOW)
    sections = {item.section for item in context.items}
    assert {"frame", "working", "facts"} <= sections
    found = [item.relevance for item in context.items if item.section == "facts"]
    (summary,) = engine.receipts.list()
    assert summary.relevance == pytest.approx(1 - prod(1 - relevance for relevance in found), abs=1e-6)
    assert summary.relevance < 1


def test_utilisation_holds_between_a_half_and_nine_tenths(engine: foveate.Engine) -> None:
    """004-136"""
    contexts = [engine.context(ASK, frame="none", budget=4000, now=NOW + n) for n in range(10)]
    assert engine.store.stats().metrics["budget_utilisation"].holds is False
    sizes = [round(contexts[0].tokens * share) for share in (1, 1.1, 1.2)]
    contexts += [engine.context(ASK, frame="none", budget=size, now=NOW + n) for size in sizes for n in range(10)]
    metric = engine.store.stats().metrics["budget_utilisation"]
    shares = [context.tokens / context.budget.ceiling for context in contexts]
    assert metric.value == pytest.approx(sum(shares) / len(shares), abs=1e-4)
    assert metric.holds is True


def test_refreshes_a_turn(engine: foveate.Engine) -> None:
    """004-137"""
    engine.add("fact", "Kafka partitions are rebalanced by a coordinator")
    context = engine.refresh(None, ASK, frame="none").context
    for _ in range(9):
        assert not engine.refresh(context, "and how does Redis evict sessions of guests?", frame="none")
    metric = engine.store.stats().metrics["refresh_rate"]
    assert (metric.value, metric.holds, metric.measured) == (0.0, True, 10)
    for _ in range(5):
        assert engine.refresh(context, "why are Kafka partitions rebalanced?", frame="none", acting=True)
        engine.store.data.clock.tick(1)  # type: ignore[attr-defined]
    metric = engine.store.stats().metrics["refresh_rate"]
    assert (metric.value, metric.holds) == (pytest.approx(5 / 15, abs=1e-4), False)


def test_precision_is_what_answers_used_or_people_called_useful(engine: foveate.Engine) -> None:
    """004-138"""
    engine.context("sessions of guests", frame="none")  # nobody said what came of it: not measured
    context = engine.context(ASK, frame="none")
    engine.feedback(context, answer="it is in deploy/redis.conf")
    assert engine.store.stats().metrics["recall_precision"].value == 0.25
    engine.feedback(context, useful=["fact_1"])
    metric = engine.store.stats().metrics["recall_precision"]
    assert (metric.value, metric.holds, metric.measured) == (0.5, None, 1)
    for n in range(9):
        engine.feedback(engine.context(ASK, frame="none", now=NOW + n), useful=["fact_1", "fact_2"])
    metric = engine.store.stats().metrics["recall_precision"]
    assert (metric.value, metric.holds, metric.measured) == (0.5, True, 10)


def test_a_context_from_scratch_is_timed(engine: foveate.Engine) -> None:
    """004-139"""
    contexts = [engine.context(ASK, frame="none", now=NOW + n) for n in range(10)]
    metric = engine.store.stats().metrics["cold_start_ms"]
    slowest = max(context.receipt.ms for context in contexts)
    assert metric.value == pytest.approx(slowest)
    assert metric.holds is (slowest < 500)


def test_growth_is_new_records_a_day_and_confirmation_a_share_of_facts() -> None:
    """004-140, 004-141"""
    with open_engine() as engine:
        for day in range(12):
            engine.add("fact", f"Fact number {day} of the log", created=ago(day + 1))
        engine.add("note", "An old one", created=ago(100))
        for day in range(3):
            engine.add("fact", f"Fact number {day} of the log")
        found = engine.store.stats().metrics
    assert found["memory_growth_per_day"].value == round(12 / 30, 2)
    assert found["memory_growth_per_day"].holds is None
    assert (found["fact_confirmation"].value, found["fact_confirmation"].holds) == (0.25, True)
    with open_engine() as young:
        young.add("note", "One", created=NOW - 2 * DAY)
        young.add("note", "Two", created=NOW - DAY)
        assert young.store.stats().metrics["memory_growth_per_day"].value == 1.0


def test_figures_by_day_are_those_of_the_day(engine: foveate.Engine) -> None:
    engine.context(ASK, frame="none", now=ago(31))
    for day, budgets in ((29, (300, 600)), (1, (4000,)), (0, (4000, 2000))):
        for n, budget in enumerate(budgets):
            context = engine.context(ASK, frame="none", now=ago(day) + n, budget=budget)
            engine.receipts.add_notes(context.id, Notes(turns=2, refresh=RefreshNote("topic", "x") if n else None))
    engine.feedback(context, answer="it is in deploy/redis.conf")
    stats = engine.store.stats(days=30)
    days = stats.days
    assert [(day.day, day.contexts) for day in days] == [
        ("2026-08-23", 2), ("2026-09-20", 1), ("2026-09-21", 2),
    ]  # fmt: skip
    today = engine.receipts.list(limit=2)
    assert days[2] == DayMetrics(
        day="2026-09-21",
        contexts=2,
        records=5,
        tokens=round(sum(line.tokens for line in today) / 2),
        context_relevance=pytest.approx(sum(line.relevance or 0 for line in today) / 2, abs=1e-4),
        budget_utilisation=pytest.approx(sum(line.tokens / line.total for line in today) / 2, abs=1e-4),
        refresh_rate=0.25,
        recall_precision=0.25,
        ms_p50=max(line.ms for line in today),
        ms_p95=max(line.ms for line in today),
    )
    assert (days[0].refresh_rate, days[1].refresh_rate, days[1].recall_precision) == (0.25, 0.0, None)
    assert ([day.records for day in days], stats.days_cut) == ([0, 0, 5], False)


def test_a_day_with_new_records_and_no_context_is_shown() -> None:
    with open_engine() as engine:
        engine.add("note", "One", created=ago(2))
        assert engine.store.stats(days=30).days == (DayMetrics(day="2026-09-19", records=1),)
        assert engine.store.stats(days=1).days == ()
        with pytest.raises(InputError, match="days must be 0 or more, got -1"):
            engine.store.stats(days=-1)


@pytest.mark.slow
@pytest.mark.parametrize(("most", "contexts", "cut"), [(5, [1, 2, 2], False), (4, [2], True), (3, [2], True), (1, [], True)])
def test_a_day_is_shown_whole_or_not_at_all(
    engine: foveate.Engine, monkeypatch: pytest.MonkeyPatch, most: int, contexts: list[int], cut: bool
) -> None:
    for day, number in ((2, 1), (1, 2), (0, 2)):
        for n in range(number):
            engine.context(ASK, frame="none", now=ago(day) + n)
    monkeypatch.setattr("foveate.receipts.metrics.MAX_CONTEXTS_BY_DAY", most)
    stats = engine.store.stats(days=30)
    assert ([day.contexts for day in stats.days if day.contexts], stats.days_cut) == (contexts, cut)


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()

    def run(*args: str) -> str:
        done = runner.invoke(cli, args)
        assert done.exit_code == 0, done.output
        return done.stdout

    run("init")
    id = run("add", "fact", "Redis evicts sessions with the volatile-lru policy of the cluster").split()[0]
    run("context", ASK)
    (tmp_path / "answer.txt").write_text(f"As {id} says.", "utf-8")
    assert "1 of 1 items used" in run("feedback", "last", "answer.txt")
    assert json.loads(run("feedback", "last", "--useful", id, "--json"))["marks"] == {id: "useful"}
    assert "volatile-lru" in run("show", id, "--full")
    assert json.loads(run("show", id, "--full", "--json"))["message"]["role"] == "user"
    shown = json.loads(run("show", id, "--json"))["record"]
    assert (shown["uses"], shown["wins"]) == (4, 1)
    found = json.loads(run("stats", "--json"))
    assert found["records"] == {"fact": {"active": 1}}
    assert found["metrics"]["recall_precision"]["value"] == 1.0
    assert "recall precision" in run("stats")
    assert "1 measured, too few" in run("stats")
    assert runner.invoke(cli, ["feedback", "last"]).exit_code == 2
    assert runner.invoke(cli, ["feedback", "last", "nowhere.txt"]).exit_code == 2
