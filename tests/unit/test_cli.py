"""The command line, driven as people and programs drive it: arguments in; stdout, stderr, exit code and a store out."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import foveate
from cli_kit import document, ok, run
from foveate.engine.store_tools import StoreTools
from foveate.receipts import codec

ESCAPE = "\x1b["

CONTEXT_KEYS = {
    "schema_version", "id", "text", "messages", "tokens", "budget", "sections", "items", "left_out", "truncated",
    "considered", "profile", "prefix", "warnings",
}  # fmt: skip


def child(*args: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "foveate", *args], capture_output=True, check=False, **{"input": b"", **options}
    )


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty store in the current directory."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    ok("init")
    return folder


@pytest.fixture
def known() -> dict[str, str]:
    """A small world: a rule, a decision, and a fact with an older value."""
    return {
        "rule": ok("add", "censor", "Never log secrets", "--set", "action=block"),
        "decision": ok("add", "decision", "Chose Postgres over ChromaDB for storage", "--outcome", "success"),
        "old": ok("add", "fact", "Redis runs on port 6379", "--subject", "redis", "--attribute", "port"),
        "fact": ok("add", "fact", "Redis runs on port 6380", "--subject", "redis", "--attribute", "port"),
    }


# --- init ----------------------------------------------------------------------------------------------------------


def test_init_prints_where_the_store_is_and_keeps_git_away(project: Path) -> None:
    other = project.parent / "other"
    other.mkdir()
    assert ok("--store", str(other), "init") == str(other / ".foveate")
    assert (other / ".foveate" / ".gitignore").read_text("utf-8") == "*\n"
    assert (other / ".foveate" / "state.db").is_file()


def test_init_again_changes_nothing_and_says_so(known: dict[str, str]) -> None:
    result = run("init")
    assert result.exit_code == 0
    assert "exists already" in result.stderr
    assert "Postgres" in ok("show", known["decision"])


def test_personal_store_follows_a_person_across_projects(project: Path, tmp_path: Path, home: Path) -> None:
    path = Path(ok("init", "--personal"))
    assert path.is_relative_to(home)
    ok("add", "instruction", "Answer in Celsius", "--personal")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    ok("init", "--store", str(elsewhere))
    assert "Celsius" in ok("context", "How warm is it?", "--store", str(elsewhere))


def test_adding_to_a_missing_personal_store_says_how_to_create_it() -> None:
    result = run("add", "note", "x y", "--personal")
    assert result.exit_code == 2
    assert "foveate init --personal" in result.stderr


@pytest.mark.parametrize(
    "args", [("stats",), ("add", "note", "x"), ("context", "x"), ("store", "export"), ("doctor",), ("why", "x")]
)
def test_without_a_store_a_verb_says_how_to_create_one(args: tuple[str, ...], tmp_path: Path) -> None:
    result = run("--store", str(tmp_path), *args)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert f"there is no store at {str(tmp_path)!r}. Create one with `foveate init --store " in result.stderr
    assert not (tmp_path / ".foveate").exists()


def test_without_a_store_in_the_current_directory_a_verb_says_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("stats").stderr == "foveate: there is no store here. Create one with `foveate init`.\n"


def test_subdirectory_belongs_to_its_project(known: dict[str, str], project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below = project / "src" / "deep"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert known["fact"] in ok("search", "redis")


# --- memory --------------------------------------------------------------------------------------------------------


def test_add_prints_the_id_alone() -> None:
    result = run("add", "note", "The build needs make")
    assert result.stdout.startswith("note_")
    assert result.stdout.count("\n") == 1
    assert result.stderr == ""


def test_add_takes_every_field() -> None:
    id = ok(
        "add", "decision", "Use WAL mode", "--tag", "sqlite", "--tag", "storage", "--subject", "store", "--outcome",
        "partial", "--confidence", "0.7", "--salience", "0.9", "--trust", "agent", "--key", "k1", "--origin", "adr/7.md",
        "--entity", "SQLite", "--path", "src/store.py", "--pin", "--agent", "builder",
        "--set", "rationale=readers never wait", "--set", 'alternatives=["rollback journal", "memory"]',
    )  # fmt: skip
    record = document("show", id, "--agent", "builder")["record"]
    assert record["tags"] == ["sqlite", "storage"]
    assert record["scope"] == {"project": "main", "agent": "builder"}
    assert record["data"] == {"rationale": "readers never wait", "alternatives": ["rollback journal", "memory"]}
    assert (record["pinned"], record["trust"], record["key"], record["paths"]) == (True, "agent", "k1", ["src/store.py"])
    assert (record["confidence"], record["salience"], record["outcome"]) == (0.7, 0.9, "partial")


def test_another_agent_does_not_see_the_record() -> None:
    id = ok("add", "fact", "Only mine", "--agent", "builder")
    assert run("show", id, "--agent", "tester").exit_code == 3


def test_user_may_be_named_on_either_side_of_the_verb() -> None:
    id = ok("--user", "ada", "add", "fact", "Prefers tabs")
    assert "Prefers tabs" in ok("show", id, "--user", "ada")
    assert run("show", id, "--user", "bob").exit_code == 3


def test_text_fields_are_not_read_as_json() -> None:
    id = ok("add", "decision", "Pin the version", "--set", "rationale=5")
    assert document("show", id)["record"]["data"]["rationale"] == "5"


def test_open_kind_takes_json_and_text_for_its_fields() -> None:
    id = ok("add", "event", "Ran the tests", "--set", "passed=12", "--set", "by=make")
    assert document("show", id)["record"]["data"] == {"passed": 12, "by": "make"}


def test_dash_reads_the_text_from_stdin() -> None:
    id = ok("add", "note", "-", stdin="Grüße aus der Röhre\n")
    assert document("show", id)["record"]["text"] == "Grüße aus der Röhre"


def test_same_content_is_confirmed_and_a_newer_value_supersedes(known: dict[str, str]) -> None:
    again = run("add", "decision", "Chose Postgres over ChromaDB for storage")
    assert again.stdout.strip() == known["decision"]
    assert "confirmed" in again.stderr
    added = document("add", "fact", "Redis runs on port 6381", "--subject", "redis", "--attribute", "port")
    assert (added["action"], added["affected"]) == ("superseded older", [known["fact"]])


def test_edit_changes_what_it_names_and_nothing_else(known: dict[str, str]) -> None:
    ok("edit", known["decision"], "--text", "Chose Postgres for storage", "--set", "rationale=one database")
    record = document("show", known["decision"])["record"]
    assert (record["text"], record["outcome"], record["version"]) == ("Chose Postgres for storage", "success", 2)
    assert record["data"]["rationale"] == "one database"


def test_edit_of_a_version_that_is_not_the_latest_is_a_conflict(known: dict[str, str]) -> None:
    ok("edit", known["decision"], "--tag", "db", "--expect", "1")
    result = run("edit", known["decision"], "--tag", "x", "--expect", "1")
    assert result.exit_code == 1
    assert "at version 2, not 1" in result.stderr


def test_edit_without_a_change_is_refused(known: dict[str, str]) -> None:
    assert run("edit", known["decision"]).exit_code == 2


def test_outcome_confirmation_pin_and_retirement_leave_their_mark(known: dict[str, str]) -> None:
    id = known["decision"]
    ok("edit", id, "--outcome", "failure", "--result", "It could not be backed up")
    assert ok("feedback", "--confirmed", id) == f"{id}  confirmed"
    ok("edit", id, "--pin")
    record = document("show", id)["record"]
    assert (record["outcome"], record["data"]["confirmations"], record["pinned"]) == ("failure", 1, True)
    assert (record["data"]["result"], record["uses"]) == ("It could not be backed up", 1)
    ok("edit", id, "--no-pin")
    assert "retired" in ok("edit", id, "--retire")
    record = document("show", id)["record"]
    assert (record.get("pinned", False), record["status"]) == (False, "retired")
    ok("edit", id, "--no-retire")
    assert document("show", id)["record"]["status"] == "active"


def test_result_without_an_outcome_is_refused(known: dict[str, str]) -> None:
    assert "Pass --outcome as well" in run("edit", known["decision"], "--result", "x").stderr


def test_undo_takes_back_a_supersession_on_both_sides(known: dict[str, str]) -> None:
    undone = document("undo", known["fact"])["undone"]
    assert {record["id"]: record["status"] for record in undone} == {known["old"]: "active", known["fact"]: "retired"}


def test_show_gives_three_lengths_fields_links_and_history(known: dict[str, str]) -> None:
    ok("edit", known["old"], "--tag", "cache")
    shown = ok("show", known["old"], "--history")
    for part in (
        "full (",
        "summary (",
        "micro (",
        "subject",
        "superseded_by",
        "supersede",
        "before: Redis runs on port 6379",
    ):
        assert part in shown
    found = document("show", known["old"])
    assert set(found) == {"schema_version", "record", "links", "history"}
    assert found["links"][0]["dst"] == known["fact"]


def test_show_as_of_an_earlier_time_gives_the_earlier_text(known: dict[str, str]) -> None:
    id = known["decision"]
    created = document("show", id)["record"]["created"]
    ok("edit", id, "--text", "Chose MySQL")
    assert "Chose Postgres" in ok("show", id, "--as-of", created)
    assert run("show", id, "--as-of", "7d").exit_code == 3
    assert run("show", id, "--as-of", "yesterday").exit_code == 2


def test_search_finds_by_words_and_kind(known: dict[str, str]) -> None:
    assert known["fact"] in ok("search", "redis port")
    assert ok("search", "redis port", "--kind", "decision") == ""
    hits = document("search", "redis", "--limit", "1")["hits"]
    assert len(hits) == 1
    assert 0 < hits[0]["lexical"] <= 1


# --- contexts ------------------------------------------------------------------------------------------------------


def test_context_prints_the_text_and_nothing_else(known: dict[str, str], project: Path) -> None:
    result = run("context", "Which port does Redis use?", "--budget", "2000")
    with foveate.open(project) as engine:
        expected = engine.context("Which port does Redis use?", budget=2000)
    assert result.stdout == expected.text
    assert result.stderr == ""
    assert "6380" in result.stdout
    assert "6379" not in result.stdout


def test_context_as_json_has_every_part_of_the_contract(known: dict[str, str]) -> None:
    found = document("context", "Which port does Redis use?", "--budget", "2000")
    assert set(found) == CONTEXT_KEYS
    assert {"total", "reserve", "used", "slots"} <= set(found["budget"])
    assert {"name", "granted", "used", "items"} <= set(found["budget"]["slots"][0])
    assert set(found["sections"][0]) == {"name", "content", "source"}
    assert {"id", "kind", "slot", "level", "tokens", "score", "features", "source"} <= set(found["items"][0])
    lost = next(entry for entry in found["left_out"] if entry["id"] == known["old"])
    assert {"id", "kind", "slot", "score", "reason", "needs"} <= set(lost)
    assert lost["reason"] == "superseded"
    assert found["tokens"] <= 2000
    assert found["budget"]["total"] == 2000


def test_json_may_be_asked_for_on_either_side_of_the_verb(known: dict[str, str], project: Path) -> None:
    before = json.loads(run("--json", "context", "Redis?").stdout)
    assert before.keys() == document("context", "Redis?").keys()
    with foveate.open(project) as engine:
        assert json.loads(json.dumps(codec.context_to_json(engine.context("Redis?")))).keys() == before.keys()


def test_explain_shows_the_budget_after_the_text(known: dict[str, str]) -> None:
    text = run("context", "Which port does Redis use?").stdout
    explained = run("context", "Which port does Redis use?", "--explain").stdout
    assert explained.startswith(text)
    rest = explained.removeprefix(text)
    for part in (
        "granted",
        "flow",
        "used  items",
        "Kept (2)",
        "relevance 0.",
        "superseded by",
        known["fact"],
        known["old"],
    ):
        assert part in rest
    kept = rest[rest.index("Kept (2)") : rest.index("Left out")].splitlines()
    parts = next(line for n, line in enumerate(kept) if kept[n - 1].startswith(known["fact"]))
    assert re.fullmatch(r"    relevance 0\.\d{3}( \+ \w+ 0\.\d{3})*", parts), "the parts of the score"


@pytest.mark.slow
def test_cut_lines_are_plain_where_stdout_is_not_utf8(known: dict[str, str]) -> None:
    ok("add", "note", "The key lies under " + "the mat and " * 20)
    done = child("search", "key", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.stdout.decode("ascii").splitlines()[0].endswith("...")


def test_question_is_read_from_stdin(known: dict[str, str]) -> None:
    assert "6380" in ok("context", "-", stdin="Which port does Redis use?")


# --- receipts ------------------------------------------------------------------------------------------------------


@pytest.fixture
def asked(known: dict[str, str]) -> dict[str, str]:
    return {**known, "context": document("context", "Which port does Redis use?")["id"]}


def test_why_takes_a_score_apart(asked: dict[str, str]) -> None:
    shown = ok("why", asked["fact"])
    assert "kept in 'facts'" in shown
    found = document("why", asked["fact"], "--context", asked["context"])
    assert found["score"] == pytest.approx(sum(found["score_parts"].values()), abs=1e-5)
    table = shown.split("\n\n")[1]
    rows = {line.split()[0]: line.split() for line in table.splitlines()[1:]}
    whole, parts = rows.pop("score"), {name: part for name, part in found["score_parts"].items() if part}
    assert list(rows) == list(parts)
    assert whole == ["score", f"{found['score']:.3f}"]
    for name, part in parts.items():
        assert rows[name][1:3] == [f"{part:.3f}", f"{part / found['score']:.0%}"]
        assert float(rows[name][3]) == pytest.approx(found["features"][name], abs=1e-3)


def test_why_names_the_tokens_that_were_lacking(known: dict[str, str]) -> None:
    found = document("context", "Redis port?", "--budget", "30", "--profile", "default")
    (lost,) = (entry for entry in found["left_out"] if entry["reason"] == "budget")
    granted = next(slot["granted"] for slot in found["budget"]["slots"] if slot["name"] == lost["slot"])
    needs = lost["needs"]["tokens"]
    assert ok("why", lost["id"]).splitlines()[-1] == f"lacked +{needs} tokens of {granted + needs}"


def test_why_names_the_score_that_was_lacking(known: dict[str, str], project: Path) -> None:
    (project / ".foveate" / "profiles").mkdir()
    (project / ".foveate" / "profiles" / "strict.toml").write_text(
        '[slots.facts]\nmin_relevance = 0.99\nfill = "none"\n', "utf-8"
    )
    ok("context", "Which port does Redis use, and since when?", "--profile", "strict")
    found = document("why", known["fact"])
    assert ok("why", known["fact"]).endswith(f"lacked +{found['needs_relevance']:.3f} relevance of 0.990")


def test_why_answers_for_what_was_no_candidate(asked: dict[str, str]) -> None:
    assert "shares no word" in ok("why", asked["decision"])


def test_why_answers_for_left_out_and_for_never_considered(asked: dict[str, str]) -> None:
    assert "superseded by" in ok("why", asked["old"])
    assert "shares no word" in ok("why", asked["decision"], "--context", asked["context"])
    assert document("why", asked["decision"])["reason"] == "no shared term"


def test_diff_names_what_came_and_went(asked: dict[str, str]) -> None:
    other = document("context", "Why Postgres and not ChromaDB?")["id"]
    shown = ok("show", "last", "--against", asked["context"])
    assert f"+ {asked['decision']}" in shown
    assert f"- {asked['fact']}" in shown
    found = document("show", other, "--against", asked["context"])
    assert (found["before"], found["after"]) == (asked["context"], other)
    assert "no item changed" in ok("show", other, "--against", other)
    assert f"{found['shared_prefix']['share']:.0%} of the second) are the same" in shown
    colored = run("show", "last", "--against", asked["context"], env={"FORCE_COLOR": "1"}).stdout
    assert f"{ESCAPE}32m+ {asked['decision']}" in colored
    assert f"{ESCAPE}31m- {asked['fact']}" in colored


def test_replay_is_identical_until_a_record_is_forgotten(asked: dict[str, str]) -> None:
    assert "identical" in ok("show", "--replay")
    ok("edit", asked["fact"], "--text", "Redis runs on port 1")
    assert "identical" in ok("show", asked["context"], "--replay"), "an earlier version is read from history"
    ok("forget", asked["fact"], "--yes")
    result = run("show", asked["context"], "--replay")
    assert result.exit_code == 1
    assert "forgotten" in result.stdout
    assert document("show", asked["context"], "--replay", code=1)["same"] is False


def test_replay_needs_the_extra_texts_again() -> None:
    ok("context", "What now?", "--extra", "The plan is blue")
    result = run("show", "--replay")
    assert result.exit_code == 1
    assert "pass them again" in result.stdout
    assert "identical" in ok("show", "--replay", "--extra", "The plan is blue")


def test_show_without_an_id_shows_the_latest_context(asked: dict[str, str]) -> None:
    shown = ok("show")
    assert shown == ok("show", asked["context"])
    for part in ("Which port does Redis use?", asked["context"], "Kept (", asked["fact"], "Left out (", "superseded by"):
        assert part in shown
    found = document("show")
    assert (found["id"], found["validation"]["valid"]) == (asked["context"], True)
    assert {entry["id"] for entry in found["candidates"]} >= {asked["fact"], asked["old"]}


def test_show_says_how_many_records_were_never_candidates(asked: dict[str, str]) -> None:
    assert "1 further record in scope was never a candidate." in ok("show", asked["context"])
    for n in range(3):
        ok("add", "fact", f"Lunch on day {n} is soup")
    ok("context", "Which port does Redis use?")
    assert "4 further records in scope were never candidates." in ok("show")
    assert "4 further records in scope were never candidates." in ok("context", "Which port does Redis use?", "--explain")
    assert document("show")["validation"]["not_considered"] == 4


def test_show_full_prints_what_the_model_saw(asked: dict[str, str]) -> None:
    assert run("show", "--full").stdout == document("context", "Which port does Redis use?")["text"]
    assert document("show", "--full")["text"] == run("show", "--full").stdout
    ok("forget", asked["fact"], "--yes")
    result = run("show", asked["context"], "--full")
    assert "6380" not in result.stdout
    assert "of its records were forgotten" in result.stderr


def test_show_of_a_context_suggests_what_could_be_better(asked: dict[str, str]) -> None:
    assert "a budget of" in ok("show").partition("Suggestions")[2]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("last", "--history"), "--history is for a record"),
        (("last", "--as-of", "7d"), "--as-of is for a record"),
        (("fact_1", "--replay"), "--replay is for a context"),
        (("fact_1", "--against", "last"), "--against is for a context"),
        (("last", "--full", "--replay"), "--full and --replay are different views"),
        (("last", "--extra", "x"), "--extra is for --replay"),
    ],
)
def test_show_refuses_options_that_do_not_go_together(args: tuple[str, ...], said: str) -> None:
    result = run("show", *args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


def test_log_lists_past_contexts_newest_first(asked: dict[str, str]) -> None:
    other = document("context", "Why Postgres?", "--session", "s1", "--budget", "900")["id"]
    heads, *rows = ok("log").splitlines()
    assert heads.split() == ["id", "time", "profile", "query", "tokens", "items"]
    assert [row.split()[0] for row in rows] == [other, asked["context"]]
    assert "Why Postgres?" in rows[0]
    assert " of 900 " in rows[0]
    assert [line["id"] for line in document("log", "--session", "s1")["contexts"]] == [other]
    assert [line["id"] for line in document("log", "--limit", "1")["contexts"]] == [other]


def test_log_of_a_new_store_says_what_to_do() -> None:
    result = run("log")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "`foveate context QUERY` computes one" in result.stderr


def test_a_dry_run_leaves_no_receipt(asked: dict[str, str]) -> None:
    text = ok("context", "Why Postgres?", "--dry-run", "--explain")
    assert "Chose Postgres" in text
    assert "Kept (" in text
    assert [line["id"] for line in document("log")["contexts"]] == [asked["context"]]


def test_records_and_contexts_are_listed_and_a_receipt_is_printed_and_validated(asked: dict[str, str]) -> None:
    newest_first = [line.split()[0] for line in ok("search").splitlines()]
    assert asked["fact"] in newest_first
    assert [line.split()[0] for line in ok("search", " ").splitlines()] == newest_first, "an empty query is no query"
    assert ok("log").splitlines()[1].startswith(asked["context"])
    printed = ok("show", "last")
    assert asked["context"] in printed
    assert "Suggestions" in printed
    assert {"valid", "breakdown", "warnings", "suggestions"} <= document("show")["validation"].keys()


def test_unknown_context_is_not_found() -> None:
    assert run("show", "ctx_nothing", "--replay").exit_code == 3
    assert run("why", "x").exit_code == 3


def test_search_without_a_query_lists_the_newest(known: dict[str, str]) -> None:
    assert [line.split()[0] for line in ok("search").splitlines()] == [known["fact"], known["decision"], known["rule"]]
    assert [line.split()[0] for line in ok("search", "--kind", "decision").splitlines()] == [known["decision"]]
    assert [record["id"] for record in document("search", "--limit", "1")["records"]] == [known["fact"]]
    ok("add", "note", "Tagged", "--tag", "ops")
    assert ok("search", "--tag", "ops").endswith("Tagged")
    assert ok("search", "redis", "--until", "2020-01-01") == ""
    result = run("search", "--tag", "nothing")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "foveate: there are no such records.\n")


def test_add_help_lists_the_kinds_that_people_write() -> None:
    listed = ok("add", "--help")
    for kind in ("decision", "fact", "instruction", "censor", "gotcha", "procedure", "question", "note", "issue"):
        assert f"\n    {kind} " in listed
    for internal in ("stack", "lease", "delivery", "scratch", "outline"):
        assert internal not in listed.partition("Options:")[0].replace("stacked", "").split()


def test_search_that_finds_nothing_says_so(known: dict[str, str]) -> None:
    result = run("search", "xylophone")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "foveate: nothing found\n"
    assert document("search", "xylophone")["hits"] == []


def test_search_in_a_project_that_is_not_there_names_the_one_near_it(known: dict[str, str]) -> None:
    said = "The store has no project 'mian'. Did you mean 'main'?"
    result = run("search", "redis", "--project", "mian")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", f"foveate: {said}\n")
    assert document("search", "redis", "--project", "mian")["warnings"] == [said]
    assert "warnings" not in document("search", "xylophone")


def test_empty_context_says_so_beside_the_empty_text() -> None:
    result = run("context", "Why?")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "foveate: nothing is known about this; the context is empty.\n" in result.stderr


def test_edit_pins_and_unpins(known: dict[str, str]) -> None:
    ok("edit", known["fact"], "--pin")
    assert document("show", known["fact"])["record"]["pinned"] is True
    ok("edit", known["fact"], "--text", "Redis runs on port 1")
    assert document("show", known["fact"])["record"]["pinned"] is True, "what is not named stays as it is"
    ok("edit", known["fact"], "--no-pin")
    assert document("show", known["fact"])["record"].get("pinned", False) is False


def test_nothing_is_a_confidence_too(known: dict[str, str]) -> None:
    ok("edit", known["fact"], "--confidence", "0")
    assert document("show", known["fact"])["record"]["confidence"] == 0.0


# --- inbox ---------------------------------------------------------------------------------------------------------


def test_accepting_without_a_terminal_needs_a_yes() -> None:
    id = ok("add", "note", "Deploys need a ticket", "--trust", "web")
    result = run("inbox", "accept", id, "--as", "instruction", stdin="y\n")
    assert result.exit_code == 2
    assert "--yes" in result.stderr
    assert document("show", id)["record"]["trust"] == "web"
    (accepted,) = document("inbox", "accept", id, "--as", "instruction", "--yes")["accepted"]
    assert (accepted["kind"], accepted.get("trust", "user"), accepted["origin"]) == ("instruction", "user", id)
    assert "- Deploys need a ticket" in ok("context", "anything")
    assert document("show", id)["record"]["status"] == "retired"


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
@pytest.mark.parametrize(("answer", "code", "trust"), [(b"y\n", 0, "user"), (b"n\n", 130, "tool")])
def test_accepting_shows_all_that_would_be_yours_and_asks(answer: bytes, code: int, trust: str) -> None:
    id = ok("add", "decision", "Use Kafka", "--trust", "tool", "--set", "rationale=It is everywhere")
    ours, theirs = os.openpty()
    os.write(ours, answer)
    done = child("inbox", "accept", id, input=None, stdin=theirs)
    os.close(theirs)
    os.close(ours)
    assert done.returncode == code, done.stderr
    for words in (b"words of: tool", b"becomes: decision", b"Use Kafka", b"rationale: It is everywhere", b"your own words?"):
        assert words in done.stderr
    assert document("show", id)["record"]["trust"] == trust


def test_a_rule_of_an_agent_waits_in_the_inbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOVEATE_AGENT", "claude")
    added = run("add", "censor", "Pushing to main", "--set", "action=block", "--tag", "git")
    id = added.stdout.strip()
    assert f"`foveate inbox accept {id}`" in added.stderr
    assert "proposed as censor" in ok("inbox")
    assert "Leave out --pin" in run("add", "instruction", "Obey", "--pin").stderr
    assert "Only a person" in run("inbox", "accept", id, "--yes").stderr
    assert run("check", "push to main").exit_code == 0
    monkeypatch.delenv("FOVEATE_AGENT")
    (accepted,) = document("inbox", "accept", id, "--yes")["accepted"]
    assert (accepted["kind"], accepted["data"]["action"], accepted["tags"]) == ("censor", "block", ["git"])
    assert run("check", "push to main").exit_code == 1
    assert run("inbox").stderr == "foveate: nothing waits for a decision.\n"


def test_several_are_accepted_at_once_and_one_with_another_text() -> None:
    one, other = (ok("add", "note", text, "--trust", "tool") for text in ("Deploys happen on Fridays", "Ports are fixed"))
    assert [record["id"] for record in document("inbox", "accept", one, other, "--yes")["accepted"]] == [one, other]
    ok("inbox", "accept", one, "--text", "Deploys happen on Tuesdays", "--yes")
    assert document("show", one)["record"]["text"] == "Deploys happen on Tuesdays"


def test_rejected_records_are_retired_with_the_reason() -> None:
    id = ok("add", "note", "Redis is gone", "--trust", "tool")
    assert ok("inbox", "reject", id, "--reason", "It still runs") == f"{id}  version 2, retired"
    found = document("show", id)
    assert found["record"]["data"]["rejection"] == "It still runs"
    assert found["history"][0]["verb"] == "retire"


def test_the_answer_of_an_agent_has_its_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    question = ok("add", "question", "Which port does Redis use?")
    assert "question" in ok("inbox")
    monkeypatch.setenv("FOVEATE_AGENT", "claude")
    decision = document("inbox", "answer", question, "6380")
    assert (decision["record"]["trust"], decision["question"]) == ("agent", question)
    assert document("show", question)["record"]["status"] == "retired"


# --- forget --------------------------------------------------------------------------------------------------------


def test_forget_without_a_terminal_needs_a_yes(known: dict[str, str]) -> None:
    result = run("forget", known["fact"], stdin="y\n")
    assert result.exit_code == 2
    assert "--yes" in result.stderr
    assert "6380" in ok("show", known["fact"])


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
@pytest.mark.parametrize(("answer", "code"), [(b"y\n", 0), (b"n\n", 130)])
def test_forget_asks_on_a_terminal(answer: bytes, code: int, known: dict[str, str]) -> None:
    ours, theirs = os.openpty()
    os.write(ours, answer)
    done = child("forget", known["fact"], input=None, stdin=theirs)
    os.close(theirs)
    os.close(ours)
    assert done.returncode == code, done.stderr
    assert b"Redis runs on port 6380" in done.stderr
    assert b"Delete permanently?" in done.stderr
    assert run("show", known["fact"]).exit_code == (3 if code == 0 else 0)


def test_forget_prints_what_it_removed_down_to_the_bytes(known: dict[str, str], project: Path) -> None:
    id = ok("add", "note", "The zebra password is elsewhere")
    counts = document("forget", id, "--yes")["counts"]
    assert counts["records"] == 1
    assert counts["postings"] > 0
    assert run("show", id).exit_code == 3
    for file in (project / ".foveate").iterdir():
        assert b"zebra" not in file.read_bytes()


def test_forget_of_one_unknown_id_forgets_nothing(known: dict[str, str]) -> None:
    result = run("forget", known["fact"], "fact_nobody", "--yes")
    assert result.exit_code == 3
    assert "6380" in ok("show", known["fact"])


# --- profiles ------------------------------------------------------------------------------------------------------


def test_profiles_are_listed_shown_and_checked(project: Path) -> None:
    assert "coding" in ok("profile")
    assert {each["name"] for each in document("profile")["profiles"]} >= {"default", "coding", "chat"}
    assert "[slots.rules]" in ok("profile", "default")
    assert document("profile", "default")["profile"]["name"] == "default"
    mine = project / ".foveate" / "profiles" / "mine.toml"
    mine.parent.mkdir()
    mine.write_text("[slots.facts]\nmax_item = 3\n[slots.rules]\ntoken = 3\n", "utf-8")
    result = run("profile", "mine")
    assert result.exit_code == 2
    first, second = result.stdout.splitlines()
    assert "Did you mean 'max_items'?" in first
    assert "Did you mean 'tokens'?" in second
    assert document("profile", str(mine), code=2)["problems"] == [first, second]


def test_profile_of_a_file_needs_no_project_around_it(tmp_path: Path) -> None:
    file = tmp_path / "loose.toml"
    file.write_text("[slots.facts]\nmax_items = 3\n", "utf-8")
    assert "max_items = 3  # loose" in ok("profile", str(file))
    assert "There is no file" in run("profile", str(tmp_path / "nowhere.toml")).stderr


def test_unknown_profile_gets_a_near_match() -> None:
    result = run("profile", "codng")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "foveate: Profile 'codng' does not exist. Did you mean 'coding'?\n"


def test_doctor_names_profiles_that_do_not_resolve(project: Path) -> None:
    mine = project / ".foveate" / "profiles" / "mine.toml"
    mine.parent.mkdir()
    mine.write_text("extends = 'nobody'\n", "utf-8")
    result = run("doctor")
    assert result.exit_code == 1
    assert "nobody" in result.stdout


# --- the store as a whole ------------------------------------------------------------------------------------------


def test_stats_count_by_kind_and_status(known: dict[str, str]) -> None:
    found = document("stats")
    assert found["records"]["fact"] == {"active": 1, "superseded": 1}
    assert "1 superseded" in ok("stats")


def test_stats_of_a_new_store_report_nothing_as_missed(asked: dict[str, str]) -> None:
    printed = ok("stats")
    assert "measured, too few" in printed
    assert "missed" not in printed


def test_doctor_says_what_it_looked_at(known: dict[str, str]) -> None:
    found = document("doctor")
    assert found["ok"] is True
    assert {"path", "sqlite", "schema", "counter", "embedder", "personal store"} <= set(found["facts"])
    assert ok("doctor").endswith("ok")


def test_doctor_names_the_counter_that_the_store_was_counted_with(tmp_path: Path) -> None:
    other = tmp_path / "other"
    foveate.open(other, counter="chars4").close()
    assert document("doctor", "--store", str(other))["facts"]["counter"].startswith("chars4 ")


def test_doctor_names_what_a_restore_left_beside_the_store(project: Path) -> None:
    ok("add", "note", "Told once")
    ok("store", "backup", "monday.db")
    ok("store", "restore", "monday.db", "--yes")
    store = project / ".foveate" / "state.db"
    for name in ("state.db.0a1b2c3d.restoring", "state.db.bak"):
        store.with_name(name).write_bytes(b"")
    said = "\n".join(document("doctor")["warnings"])
    assert "state.db.replaced'" in said
    assert "state.db.0a1b2c3d.restoring'" in said
    assert "state.db.bak" not in said


def test_doctor_warns_of_rules_that_outgrow_their_room() -> None:
    for n in range(12):
        ok("add", "instruction", f"Rule {n}: " + " ".join(f"word{n}x{i}" for i in range(30)))
    assert "'rules'" in document("doctor")["warnings"][0]


def test_doctor_fix_makes_a_lost_index_anew(known: dict[str, str], project: Path) -> None:
    import apsw

    ok("add", "note", "The index of this record is going to be lost by accident")
    database = apsw.Connection(str(project / ".foveate" / "state.db"))
    database.execute("delete from postings")
    database.close()
    broken = run("doctor")
    assert broken.exit_code == 1
    assert "doctor --fix" in broken.stdout
    assert run("doctor", "--fix").exit_code == 0
    assert known["fact"] in ok("search", "redis")


def test_backup_is_a_store_of_its_own(known: dict[str, str], project: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    assert str(target) in ok("store", "backup", str(target))
    restored = tmp_path / "restored"
    ok("init", "--store", str(restored))
    (restored / ".foveate" / "state.db").write_bytes(target.read_bytes())
    assert "6380" in ok("show", known["fact"], "--store", str(restored))
    assert run("store", "backup", str(target)).exit_code == 1, "an existing file is not overwritten"


def test_export_and_import_are_lossless(known: dict[str, str], tmp_path: Path) -> None:
    ok("add", "decision", "Ünïcode ✓", "--set", 'alternatives=["a"]', "--tag", "t", "--pin")
    ok("add", "note", "of one session", "--session", "s1")
    ok("edit", known["rule"], "--retire")
    lines = ok("store", "export").splitlines()
    file = tmp_path / "out.jsonl"
    ok("store", "export", str(file))
    assert file.read_text("utf-8").splitlines() == lines
    fresh = str(tmp_path / "fresh")
    ok("init", "--store", fresh)
    found = document("store", "import", str(file), "--store", fresh)
    assert (found["added"], found["known"], found["links"]) == (6, 0, 1)
    assert ok("store", "export", "--store", fresh).splitlines() == lines
    again = ok("store", "import", "-", "--store", fresh, stdin="\n".join(lines))
    assert again.startswith("0 added, 6 known already")


def test_export_overwrites_a_file_only_with_yes(known: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("mine", "utf-8")
    result = run("store", "export", str(file))
    assert result.exit_code == 2
    assert "--yes" in result.stderr
    assert file.read_text("utf-8") == "mine"
    ok("store", "export", str(file), "--yes")
    assert known["fact"] in file.read_text("utf-8")
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["notes.txt"]


@pytest.mark.skipif(os.name == "nt", reason="needs a device")
def test_export_into_a_device_needs_no_yes(known: dict[str, str]) -> None:
    ok("store", "export", os.devnull)
    assert not Path(os.devnull).is_file()


def test_export_says_how_many_records_the_scope_does_not_see(known: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    assert "not exported" not in run("store", "export", str(file)).stderr
    for n in range(2):
        ok("add", "note", f"Private thing number {n}", "--user", "ada")
    expected = "foveate: 2 records of other users, agents or sessions were not exported.\n"
    for args in (("store", "export"), ("store", "export", "--json"), ("store", "export", str(file), "--yes")):
        assert expected in run(*args).stderr
    assert expected in run("store", "export", "--user", "ben").stderr
    assert "not exported" not in run("store", "export", "--user", "ada").stderr


def test_import_of_a_bad_line_names_the_line_and_writes_nothing(tmp_path: Path) -> None:
    good = {"id": "note_1", "kind": "note", "text": "fine"}
    result = run("store", "import", "-", stdin=json.dumps(good) + "\n{nonsense\n")
    assert result.exit_code == 2
    assert "Line 2" in result.stderr
    assert document("stats")["records"] == {}


def test_import_of_a_database_says_how_to_restore_it(known: dict[str, str]) -> None:
    ok("store", "backup", "monday.db")
    for args in (("monday.db",), ("-",)):
        result = run("store", "import", *args, stdin=Path("monday.db").read_bytes())
        assert (result.exit_code, result.stdout) == (2, "")
        assert "is a database, not an export. `foveate store restore " in result.stderr


@pytest.mark.slow
def test_export_ends_quietly_when_its_reader_leaves(project: Path) -> None:
    with foveate.open(project) as engine:
        engine.store.add_many(("note", f"Note number {n} of many, to fill the pipe", {}) for n in range(2000))
    command = f"'{sys.executable}' -m foveate store export | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
    assert done.stdout.startswith(b'{"id":"note_')
    assert done.stderr == b""


@pytest.mark.slow
def test_short_output_into_a_closed_pipe_is_quiet_too(known: dict[str, str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([sys.executable, "-m", "foveate", "stats"], stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert done.stderr == b""
    assert done.returncode == 1


# --- the program itself --------------------------------------------------------------------------------------------


def test_version_is_the_packages() -> None:
    assert ok("--version") == f"foveate {foveate.__version__}"
    assert child("--version").stdout.decode().strip() == f"foveate {foveate.__version__}"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_completion_script(shell: str) -> None:
    assert "foveate_completion" in run(env={"_FOVEATE_COMPLETE": f"{shell}_source"}).stdout


def test_completion_offers_verbs_kinds_and_profiles() -> None:
    def complete(words: str) -> str:
        env = {"_FOVEATE_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
        return run(env=env).stdout

    assert "plain,context" in complete("foveate con")
    assert "plain,decision" in complete("foveate add dec")
    assert "plain,coding" in complete("foveate profile cod")


def test_error_is_one_line_and_with_json_a_document_too() -> None:
    result = run("show", "fact_nobody", "--json")
    assert result.exit_code == 3
    assert result.stderr.count("\n") == 1
    error = json.loads(result.stdout)["error"]
    assert (error["type"], error["exit_code"]) == ("NotFound", 3)
    assert error["message"] in result.stderr


def test_usage_error_is_a_document_too_where_json_was_asked_for() -> None:
    result = run("context", "x", "--json", "--budgt", "3")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["error"]["type"] == "UsageError"


def test_ctrl_c_ends_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(StoreTools, "stats", interrupted)
    assert run("stats").exit_code == 130


@pytest.mark.parametrize(
    "args",
    [("--version",), ("--help",), (), ("context", "--help"), ("add", "--help"), ("show", "--help"), ("inbox", "--help")],
)
def test_help_and_version_open_no_engine(args: tuple[str, ...]) -> None:
    code = "import sys; from foveate.cli import cli; cli.main(sys.argv[1:], standalone_mode=False); "
    code += "print([m for m in ('foveate.engine', 'foveate.pipeline.run', 'apsw') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip().endswith("[]")


def embed_with(project: Path, embedder: str) -> None:
    (project / ".foveate" / "config.toml").write_text(f'embedder = "{embedder}"\n', "utf-8")


def test_maintenance_gives_every_record_a_vector_and_drops_others_only_by_name(project: Path) -> None:
    ok("add", "note", "Redis runs on port 6379")
    assert run("store", "maintain", "--only", "vectors").exit_code == 2
    embed_with(project, "hash:32")
    (step,) = document("store", "maintain", "--only", "vectors")["steps"]
    assert (step["verb"], step["number"], step["error"]) == ("embed", 1, "")
    assert document("store", "maintain", "--only", "vectors")["steps"] == []
    embed_with(project, "hash:64")
    warned = document("context", "the port of Redis")["warnings"]
    assert any("1 records have no vector by this embedder yet" in warning for warning in warned)
    facts = document("doctor")["facts"]
    assert facts["vectors"] == "0; 1 records have none yet: `foveate store maintain`"
    assert facts["unused vectors"].startswith("1 of hash:32:1 (0.0 MB); `foveate store maintain --only unused-vectors`")
    refused = run("store", "maintain", "--only", "unused-vectors")
    assert (refused.exit_code, "1 records have no vector" in refused.stderr) == (2, True)
    assert ok("store", "maintain").startswith("1 record  embed: no vector -> vector")
    assert "unused vectors" in document("doctor")["facts"]
    assert document("store", "maintain", "--only", "unused-vectors", "--dry-run")["steps"][0]["number"] == 1
    dropped = ok("store", "maintain", "--only", "unused-vectors")
    assert dropped == "1 vector  drop: kept -> gone, vectors of hash:32:1 are not used"
    assert document("context", "the port of Redis")["warnings"] == []
    facts = document("doctor")["facts"]
    assert (facts["vectors"], "unused vectors" in facts) == ("1, of every record", False)


def test_maintenance_says_how_many_remain_if_the_embedder_does_not_answer(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from foveate.text.embed import HttpEmbedder

    ok("add", "note", "Redis runs on port 6379")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    monkeypatch.setenv("FOVEATE_EMBED_URL", f"http://127.0.0.1:{port}/v1")
    monkeypatch.setattr(HttpEmbedder, "fingerprint", "openai:some:8")  # as if it had answered once
    embed_with(project, "openai:some")
    result = run("store", "maintain")
    assert result.exit_code == 1
    assert "1 records have no vector" in result.stderr
    assert "gave no answer" in result.stderr
