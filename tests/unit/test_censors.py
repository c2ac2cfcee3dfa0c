"""Censors: what trips them, which patterns are taken, where they stand, and how they live."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import Any

import pytest
from click.testing import CliRunner

import foveate
from foveate import InputError, testing
from foveate.cli import cli
from foveate.pipeline.profiles import resolve
from foveate.records.lifecycle import DAY_MS
from foveate.records.triggers import WINDOW_CHARS, match_censor, pattern_problem
from foveate.testing import FixedClock
from foveate.types import Record, Scope
from worlds import open_engine

DOMAIN_PROFILES = {"default": "field_rules", "coding": "field_rules", "subtask": "field_rules", "assistant": "field_censors"}


def censor(text: str, **data: Any) -> Record:
    return Record(id="censor_1", kind="censor", scope=Scope("main"), text=text, summary=text, micro=text, data=data)


@pytest.fixture
def engine() -> Iterator[foveate.Engine]:
    with open_engine() as engine:
        yield engine


# --- words ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trigger", "text", "matched"),
    [
        ("Pushing to main", "I will push the branch to main now", "push the branch to main"),
        ("Pushing to main", "Main is what we push to", "Main is what we push"),
        ("Pushing to main", "I will push to the feature branch", ""),
        ("Pushing to main", "push " + "old " * 8 + "main", "push " + "old " * 8 + "main"),
        ("Pushing to main", "push " + "old " * 9 + "main", ""),
        ("Pushing to main", "push " + "one two three four five " * 3 + "main", ""),
        ("Never delete customer data", "delete the customers' data", "delete the customers' data"),
        ("Don't push directly to main", "pushing directly to main", "pushing directly to main"),
        ("Pushing to main without review", "push to main", "push to main"),
        ("Pushing to main without review", "push to main after the review", ""),
        ("Deploying unless it is Tuesday", "deploy on a Tuesday", ""),
        ("Deploying unless it is Tuesday", "deploy on a Friday", "deploy"),
        ("Never", "never ever", ""),
        ("rm -rf", "run rm -rf / on the host", "rm -rf"),
        ("Dropping dropping tables", "drop the table", "drop the table"),
        ("Reading 0 0A0", "0A0 0", ""),  # a word with the same stem twice
        ("Reading 0A0", "read 0A0", "read 0A0"),
        ("Calling getUserName", "we call getUserName here", "call getUserName"),
        ("Pushing to main", "", ""),
    ],
)  # fmt: skip
def test_words_trip_in_any_form_where_they_stand_together(trigger: str, text: str, matched: str) -> None:
    found = match_censor(censor(trigger), text)
    assert (found.matched_text if found else "") == matched


def test_a_trip_says_what_and_why() -> None:
    found = match_censor(censor("Pushing to main", action="block", reason="review first"), "push to main")
    assert found is not None
    assert (found.action, found.reason, found.censor.id) == ("block", "review first", "censor_1")
    warned = match_censor(censor("Pushing to main"), "push to main")
    assert warned is not None
    assert (warned.action, warned.reason) == ("warn", "")


# --- patterns ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "text", "matched"),
    [
        (r"git push\b.*--force", "now GIT push origin --force", "GIT push origin --force"),
        (r"git push\b.*--force", "git push\n--force", ""),
        (r"rm -(rf|fr)", "sudo rm -fr /", "rm -fr"),
        (r"\bdrop table\b", "x" * 1000 + " drop table users", "drop table"),
        (r"a{100}", "b" * (WINDOW_CHARS - 50) + "a" * 100, "a" * 100),
        (r"x*", "abc", ""),
        (r"[(*]{2}|\)\+", "a )+ b", ")+"),
    ],
)
def test_a_pattern_decides_instead_of_the_words(pattern: str, text: str, matched: str) -> None:
    assert pattern_problem(pattern) == ""
    found = match_censor(censor("Other words entirely", pattern=pattern), text)
    assert (found.matched_text if found else "") == matched


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(a+)+", "repeat a group"),
        ("(a*)*b", "repeat a group"),
        ("(?:a|aa)+", "repeat a group"),
        ("((a|b)c){2,}", "repeat a group"),
        ("(a{1,9}){1,9}", "repeat a group"),
        (r"(a)\1", "look-around, flags or back references"),
        ("(?=a)b", "look-around, flags or back references"),
        ("(?x)a", "look-around, flags or back references"),
        ("a*a*a*b", "too many ways"),
        ("a{1,99}a{1,99}a{1,99}b", "too many ways"),
        ("(a|aa)" * 20 + "b", "too many ways"),
        ("(a", "is not a regular expression"),
        ("[a", "is not a regular expression"),
    ],
)
def test_a_pattern_that_could_take_for_ever_is_refused(engine: foveate.Engine, pattern: str, problem: str) -> None:
    with pytest.raises(InputError, match=r"^censor\.pattern ") as caught:
        engine.add("censor", "Something", data={"pattern": pattern})
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    "pattern",
    [
        r"(foo|bar)?baz",
        r"(?:abc)+",
        r"\(a+\)+",
        "[*+(]+x",
        r"(?P<n>a)b{2}",
        r"a\+b\*c\{d+",
        "one|two|three|four|five|six",
        "a{3}b{,20}?c",
        "x{}y+",
    ],
)
def test_harmless_patterns_are_taken(pattern: str) -> None:
    assert pattern_problem(pattern) == ""


@pytest.mark.slow
@pytest.mark.parametrize("pattern", [r"a*a*b", r"\w*\w*!", r".*.*x"])
def test_the_worst_pattern_stays_quick_on_a_long_line(pattern: str) -> None:
    assert pattern_problem(pattern) == ""
    began = process_time()
    assert match_censor(censor("W", pattern=pattern), "a" * 2_400) is None
    assert process_time() - began < 10  # without windows it takes minutes


# --- check ---------------------------------------------------------------------------------------------------------


def test_check_names_what_trips_blocks_first_and_counts(engine: foveate.Engine) -> None:
    warn = engine.add("censor", "Pushing on Fridays").record.id
    block = engine.add("censor", "Pushing to main", data={"action": "block"}).record.id
    engine.add("censor", "Deleting customer data", data={"action": "block"})
    assert [trip.censor.id for trip in engine.check("push to main on Friday", dry_run=True)] == [block, warn]
    assert engine.get(block).uses == 0
    engine.check("push to main on Friday")
    assert (engine.get(block).uses, engine.get(warn).uses) == (1, 1)
    assert engine.check("write the docs") == []


def test_check_sees_censors_of_its_scope_only(engine: foveate.Engine) -> None:
    engine.add("censor", "Pushing to main", agent="writer")
    assert engine.check("push to main") == []


@pytest.mark.parametrize("bound", ["valid_from", "valid_to"])
def test_check_and_contexts_agree_on_the_validity_of_a_censor(bound: str) -> None:
    clock = FixedClock()
    with testing.engine(clock=clock) as engine:
        change = clock.now + DAY_MS
        times: Any = {bound: change}
        engine.add("censor", "Do not push to main", data={"action": "block"}, **times)
        for valid in (bound == "valid_to", bound == "valid_from"):
            assert bool(engine.check("push to main", dry_run=True)) is valid
            assert ("**BLOCK:**" in engine.context("anything").text) is valid
            clock.tick(DAY_MS)


def test_a_censor_escalates_when_it_trips_more_than_five_times(engine: foveate.Engine) -> None:
    id = engine.add("censor", "Pushing to main").record.id
    for _ in range(5):
        engine.check("push to main")
    assert engine.store.maintain() == []
    engine.check("push to main")
    engine.store.maintain()
    assert engine.check("push to main", dry_run=True)[0].action == "block"
    assert "**BLOCK:** Pushing to main" in engine.context("anything").text
    engine.undo(id)
    assert engine.check("push to main", dry_run=True)[0].action == "warn"


def test_a_censor_that_is_mostly_wrong_is_withdrawn(engine: foveate.Engine) -> None:
    id = engine.add("censor", "Pushing to main").record.id
    for _ in range(3):
        engine.check("push to main")
        assert engine.store.maintain() == []
        engine.feedback(wrong=[id])
    assert [step.verb for step in engine.store.maintain()] == ["withdraw"]
    assert engine.get(id).status == "retired"
    assert engine.check("push to main") == []


def test_wrong_is_a_false_alarm_of_a_censor_and_a_failure_of_anything_else(engine: foveate.Engine) -> None:
    fact, censor = engine.add("fact", "Main is protected").record.id, engine.add("censor", "Do not push to main").record.id
    engine.feedback(wrong=[fact, censor])
    assert (engine.get(fact).outcome, engine.get(censor).outcome) == ("failure", None)
    assert engine.get(censor).data["false_alarms"] == 1


# --- where they stand ----------------------------------------------------------------------------------------------


def where(context: foveate.Context, id: str) -> list[str]:
    return [item.section for item in context.items if item.id == id]


@pytest.mark.parametrize("profile", sorted(DOMAIN_PROFILES))
def test_a_censor_with_a_domain_is_shown_where_the_question_speaks_of_it(profile: str) -> None:
    with open_engine(profile=profile) as engine:
        plain = engine.add("censor", "Speaking of prices").record.id
        bound = engine.add(
            "censor", "Changing a column in place", data={"domain": "database", "reason": "it locks"}
        ).record.id
        off, on = engine.context("What is the weather?"), engine.context("Write the schema migration")
        assert (where(off, bound), where(on, bound)) == ([], [DOMAIN_PROFILES[profile]])
        assert where(off, plain) == where(on, plain) != []
        assert off.prefix == on.prefix
        assert "Changing a column in place — it locks" in on.text
        assert not on.warnings
        assert engine.receipts.replay(on).same
        why = engine.why(bound, off)
        assert str(why) == "not considered: the request does not concern its domain"


def test_a_profile_without_a_slot_for_domains_loses_no_rule(engine: foveate.Engine) -> None:
    assert not any("censors" in slot.sources for slot in resolve("task-files").slots)
    id = engine.add("censor", "Changing a column in place", data={"domain": "database"}).record.id
    assert where(engine.context("What is the weather?", profile="task-files"), id) == ["system_prompt"]


def test_a_pinned_censor_stands_whatever_its_domain(engine: foveate.Engine) -> None:
    id = engine.add("censor", "Changing a column in place", data={"domain": "database"}).record.id
    engine.edit(id, pinned=True)
    assert where(engine.context("What is the weather?"), id) == ["rules"]


# --- the command line ----------------------------------------------------------------------------------------------


def run(*arguments: str, store: Path, input: str | None = None) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["--store", str(store), *arguments], input=input)
    return result.exit_code, result.stdout


def test_check_exits_with_one_where_a_block_trips(tmp_path: Path) -> None:
    run("init", store=tmp_path)
    block = run("add", "censor", "Pushing to main", "--set", "action=block", "--set", "reason=review", store=tmp_path)[
        1
    ].strip()
    warn = run("add", "censor", "Deploying on Fridays", store=tmp_path)[1].strip()
    assert run("check", "write the docs", store=tmp_path) == (0, "")
    assert run("check", "deploy on Friday", store=tmp_path) == (0, f"WARN  {warn}  Deploying on Fridays\n")
    assert run("check", "-", store=tmp_path, input="push to main") == (1, f"BLOCK  {block}  Pushing to main (review)\n")
    code, printed = run("check", "push to main", "--json", "--dry-run", store=tmp_path)
    assert code == 1
    document = json.loads(printed)
    assert document["blocked"] is True
    (match,) = document["matches"]
    assert (match["censor"]["id"], match["censor"]["text"]) == (block, "Pushing to main")
    assert (match["action"], match["reason"], match["matched_text"]) == ("block", "review", "push to main")
    assert run("feedback", "--wrong", warn, store=tmp_path) == (0, f"{warn}  wrong\n")
    record = json.loads(run("show", warn, "--json", store=tmp_path)[1])["record"]
    assert (record["version"], record["status"], record["data"]["false_alarms"]) == (3, "active", 1)


def test_maintenance_shows_first_and_then_does_it(tmp_path: Path) -> None:
    run("init", store=tmp_path)
    id = run("add", "episode", "We moved the vault", "--set", "created=100d", store=tmp_path)[1].strip()
    said = f"{id}  archive: summarized -> archived, older than 90 days\n"
    assert run("store", "maintain", "--dry-run", store=tmp_path) == (0, said)
    document = json.loads(run("store", "maintain", "--json", store=tmp_path)[1])
    assert document["dry_run"] is False
    assert [(step["id"], step["was"], step["to"]) for step in document["steps"]] == [(id, "summarized", "archived")]
    assert run("store", "maintain", store=tmp_path) == (0, "")
    assert run("undo", id, store=tmp_path)[1].splitlines()[0] == f"{id}  version 3, active"
