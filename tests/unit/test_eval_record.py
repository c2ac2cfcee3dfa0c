from __future__ import annotations

import json
from pathlib import Path

import pytest

import foveate
from foveate.errors import InputError, NotFound
from foveate.eval.datasets import load_suite
from foveate.eval.record import record_case
from foveate.eval.run import run
from foveate.eval.systems import open_system
from foveate.receipts.parts import Notes

TEXTS = {
    "redis": "The cache runs on Redis with a limit of two gigabytes.",
    "old": "The cache runs on Memcached in the cellar.",
    "other": "The cache of the front end is emptied at each release.",
}


@pytest.fixture
def engine(tmp_path: Path) -> foveate.Engine:
    with foveate.open(tmp_path / "project", personal=False, code=False) as opened:
        yield opened


@pytest.fixture
def ids(engine: foveate.Engine) -> dict[str, str]:
    return {name: engine.add("note", text, tags=["cache"]).record.id for name, text in TEXTS.items()}


@pytest.fixture
def context(engine: foveate.Engine, ids: dict[str, str]) -> foveate.Context:
    context = engine.context("What does the cache run on?", budget=900)
    assert all(text in context.text for text in TEXTS.values())
    return context


def give_feedback(engine: foveate.Engine, context: foveate.Context, ids: dict[str, str]) -> None:
    engine.feedback(context, answer="The cache runs on Redis with a limit of two gigabytes.")
    engine.feedback(context, outdated=[ids["old"]])


def test_feedback_becomes_a_case_that_runs(
    engine: foveate.Engine, context: foveate.Context, ids: dict[str, str], tmp_path: Path
) -> None:
    give_feedback(engine, context, ids)
    case = record_case(engine, context.id, tmp_path / "cases.jsonl")
    assert case["question"] == "What does the cache run on?"
    assert (case["expected"], case["forbidden"], case["budget"]) == ([ids["redis"]], [ids["old"]], 900)
    assert {line["id"] for line in case["records"]} == set(ids.values())
    results = run(
        load_suite("own"), open_system("foveate"), tmp_path / "cases.jsonl", tmp_path / "out", budgets=[900]
    ).results
    assert results[0].by_budget[900].hits == {"record": [True]}
    assert results[0].by_budget[900].forbidden_hits == [True]


def test_the_default_is_the_latest_context(
    engine: foveate.Engine, context: foveate.Context, ids: dict[str, str], tmp_path: Path
) -> None:
    give_feedback(engine, context, ids)
    assert record_case(engine, "last", tmp_path / "cases.jsonl")["id"] == context.id


def test_records_are_copied_as_the_context_saw_them(
    engine: foveate.Engine, context: foveate.Context, ids: dict[str, str], tmp_path: Path
) -> None:
    give_feedback(engine, context, ids)
    engine.feedback(context, wrong=[ids["old"]])
    engine.edit(ids["old"], text="The cache runs on Redis.")
    lines = {line["id"]: line for line in record_case(engine, context.id, tmp_path / "cases.jsonl")["records"]}
    assert lines[ids["old"]]["text"] == TEXTS["old"]
    assert lines[ids["old"]]["summary"] == TEXTS["old"]
    assert lines[ids["old"]]["tags"] == ["cache"]
    assert not {"outcome", "uses"} & lines[ids["old"]].keys() | {"uses"} & lines[ids["redis"]].keys()


def test_the_same_context_replaces_its_case_and_leaves_the_others(
    engine: foveate.Engine, context: foveate.Context, ids: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "deep" / "cases.jsonl"
    record_case(engine, context.id, file, expected=[ids["redis"]])
    other = engine.context("When is the cache of the front end emptied?")
    record_case(engine, other.id, file, expected=[ids["other"]])
    record_case(engine, context.id, file, expected=[ids["redis"]], forbidden=[ids["old"]])
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert [line["id"] for line in lines] == [context.id, other.id]
    assert lines[0]["forbidden"] == [ids["old"]]


def test_a_persons_word_counts_more_than_a_trace(
    engine: foveate.Engine, context: foveate.Context, ids: dict[str, str], tmp_path: Path
) -> None:
    give_feedback(engine, context, ids)
    case = record_case(engine, context.id, tmp_path / "cases.jsonl", expected=[ids["old"]], forbidden=[ids["redis"]])
    assert (case["expected"], case["forbidden"]) == ([ids["old"]], [ids["redis"]])


def test_a_record_that_was_no_candidate_may_be_expected(
    engine: foveate.Engine, context: foveate.Context, ids: dict[str, str], tmp_path: Path
) -> None:
    missed = engine.add("note", "Sessions live in Valkey.").record.id
    case = record_case(engine, context.id, tmp_path / "cases.jsonl", expected=[missed])
    assert case["expected"] == [missed]
    assert missed in {line["id"] for line in case["records"]}


def test_code_is_dropped_with_a_note(tmp_path: Path) -> None:
    root = tmp_path / "repo"
    root.mkdir()
    (root / "pyproject.toml").write_text("[project]\nname = 'x'\n", "utf-8")
    (root / "cache.py").write_text("def cache_limit():\n    return 2\n", "utf-8")
    with foveate.open(root, personal=False) as engine:
        id = engine.add("fact", TEXTS["redis"]).record.id
        context = engine.context("cache_limit of the cache on Redis")
        engine.receipts.add_notes(context.id, Notes(used=("code:cache.py::cache_limit", id)))
        case = record_case(engine, context.id, tmp_path / "cases.jsonl")
        assert case["expected"] == [id]
        assert "code:cache.py::cache_limit" in case["note"]
        assert not any(line["id"].startswith(("code:", "file:")) for line in case["records"])
        context = engine.context("what does cache_limit return")
        engine.receipts.add_notes(context.id, Notes(used=("code:cache.py::cache_limit",)))
        with pytest.raises(InputError, match="No record that"):
            record_case(engine, context.id, tmp_path / "cases.jsonl")


def test_a_profile_of_the_project_is_dropped_with_a_note(
    engine: foveate.Engine, ids: dict[str, str], tmp_path: Path
) -> None:
    profiles = tmp_path / "project" / ".foveate" / "profiles"
    profiles.mkdir()
    (profiles / "mine.toml").write_text('extends = "default"\n', "utf-8")
    context = engine.context("What does the cache run on?", profile="mine")
    case = record_case(engine, context.id, tmp_path / "cases.jsonl", expected=[ids["redis"]])
    assert "profile" not in case
    assert "mine" in case["note"]


def test_bad_input_says_what_to_do(
    engine: foveate.Engine, context: foveate.Context, ids: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "cases.jsonl"
    with pytest.raises(InputError, match=r"no feedback on .*foveate feedback"):
        record_case(engine, context.id, file)
    with pytest.raises(InputError, match="both expected and forbidden"):
        record_case(engine, context.id, file, expected=[ids["old"]], forbidden=[ids["old"]])
    with pytest.raises(NotFound, match="nope"):
        record_case(engine, context.id, file, expected=["nope"])
    with pytest.raises(NotFound, match="No receipt"):
        record_case(engine, "ctx_nope", file)
    assert not file.exists()
    file.write_text("{broken\n", "utf-8")
    with pytest.raises(InputError, match="line 1, is not JSON"):
        record_case(engine, context.id, file, expected=[ids["old"]])
    assert file.read_text("utf-8") == "{broken\n"


def test_a_forgotten_question_is_not_recorded(
    engine: foveate.Engine, context: foveate.Context, ids: dict[str, str], tmp_path: Path
) -> None:
    give_feedback(engine, context, ids)
    engine.forget(ids["other"])
    with pytest.raises(InputError, match="forgotten"):
        record_case(engine, context.id, tmp_path / "cases.jsonl")
