"""001, fresh context: what of it works. Each docstring names the rows of docs/concepts/specs.md that it shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

import pytest

import foveate
from foveate import Context
from foveate.pipeline.budget import Demand, allocate
from foveate.pipeline.profiles import resolve
from foveate.receipts.codec import to_json
from foveate.text import tokens
from worlds import GIVEN, NOW, open_engine

EVERYTHING = Demand(0, 10**9, 10**9)


@pytest.fixture
def engine() -> Iterator[foveate.Engine]:
    with open_engine(profile="task-files") as engine:
        yield engine


def granted(**options: object) -> dict[str, int]:
    profile = resolve("task-files", **options)  # type: ignore[arg-type]
    budget = allocate(profile, {slot.name: EVERYTHING for slot in profile.slots})
    return {slot.name: slot.granted for slot in budget.slots} | {"reserve": budget.reserve, "total": budget.total}


def test_fixed_and_dynamic_allocations() -> None:
    """001-02, 001-09, 001-10, 001-59, 001-66, 001-67, 001-68, 001-69, 001-70, 001-71, 001-72, 001-73, 001-74, 001-75,
    001-76"""
    found = granted()
    fixed = [found[name] for name in ("system_prompt", "repo_map", "codebase_docs", "task_spec", "reserve")]
    assert (fixed, sum(fixed)) == ([2000, 2000, 3000, 1000, 16_000], 24_000)
    dynamic = [found[name] for name in ("files", "code", "memories")]
    assert (dynamic, sum(dynamic)) == ([75_600, 31_500, 18_900], 126_000)
    assert found["total"] == 150_000


def test_a_custom_budget() -> None:
    """001-77, 001-102, 001-103"""
    tokens_of = {"system_prompt": 3000, "repo_map": 5000, "codebase_docs": 4000, "task_spec": 2000}
    found = granted(call={"reserve": 20_000, "slots": {name: {"tokens": size} for name, size in tokens_of.items()}})
    assert {name: found[name] for name in tokens_of} == tokens_of
    left = 150_000 - 34_000
    assert [found[name] for name in ("files", "code", "memories")] == [left * 60 // 100, left // 4, left * 15 // 100]
    assert granted(call={"slots": {"repo_map": {"tokens": 5000}}})["files"] == 123_000 * 60 // 100


def test_a_call_can_set_the_total(engine: foveate.Engine) -> None:
    """001-35, 001-56"""
    assert engine.context("Add retries", budget=100_000).budget.total == 100_000


def test_structural_parts_can_be_left_out(engine: foveate.Engine) -> None:
    """001-60, 001-61"""
    given = {"repo_map": ["src/"], "codebase_docs": ["A tool"]}
    assert "## Repository Map" in engine.context("Add retries", extra=given).text
    without = engine.context(
        "Add retries", extra={"codebase_docs": ["A tool"]}, overrides={"slots": {"repo_map": {"remove": True}}}
    )
    assert "## Repository Map" not in without.text
    assert "## Codebase" in without.text


def test_counts_of_files_code_and_memories(engine: foveate.Engine) -> None:
    """001-53, 001-62, 001-63, 001-64"""
    for n in range(9):
        engine.add("decision", f"Retries of uploader{'abcdefghi'[n]} use backoff")
    given = {name: [f"def {name}{'abcdefghijklmno'[n]}_{n}(): pass" for n in range(15)] for name in ("files", "code")}
    context = engine.context("Add retries with backoff", extra=given)
    counts = {section.name: len(section.items) for section in context.sections}
    assert counts == {"files": 10, "code": 5, "memories": 5}
    over = engine.context("Add retries with backoff", extra=given, overrides={"slots": {"files": {"max_items": 12}}})
    assert len(next(section for section in over.sections if section.name == "files").items) == 12


def test_floors_are_on_relevance_alone(engine: foveate.Engine) -> None:
    """001-06, 001-97, 001-98"""
    near = engine.add("decision", "Retries use exponential backoff").record.id
    far = engine.add(
        "decision", "Meetings use exponential patience and the room with the large screen by the door"
    ).record.id
    engine.add("decision", "Lunch is at noon", salience=1.0, uses=50, wins=50)
    strict = {"slots": {"memories": {"min_relevance": 0.4}}}
    context = engine.context("Which retries use exponential backoff?", overrides=strict)
    reasons = {omission.id: omission.reason for omission in context.left_out}
    assert [item.id for item in context.items] == [near]
    assert reasons == {far: "min_relevance"}
    assert "Lunch" not in engine.context("Which retries use exponential backoff?").text
    floors = {slot.name: slot.min_relevance for slot in resolve("task-files").slots}
    assert (floors["code"], floors["memories"]) == (0.15, 0.05)


def test_built_from_nothing_for_each_task(engine: foveate.Engine) -> None:
    """001-01, 001-05, 001-39, 001-118"""
    one = engine.context("Add retries", extra={"files": ["def upload(): ..."]})
    assert "upload" in one.text
    assert engine.context("Add retries").text == ""


def test_there_is_no_history_to_carry() -> None:
    """001-08, 001-54"""
    assert not {field.name for field in fields(Context)} & {"history", "conversation", "conversation_history", "turns"}


def test_the_limit_holds(engine: foveate.Engine) -> None:
    """001-07, 001-11, 001-55"""
    given = {"files": [f"def f{n}(): return {list(range(n))}" for n in range(1, 40)]}
    for budget in (200, 1000, 5000):
        context = engine.context("Add retries", budget=budget, extra=given)
        assert tokens.count_messages(context.messages()) == context.tokens <= budget - context.budget.reserve


def test_agents_and_tasks_are_isolated(engine: foveate.Engine) -> None:
    """001-04"""
    engine.add("decision", "Retries use backoff one", agent="coder")
    engine.add("scratch", "Retries were tried", task="t1")
    memories = {"slots": {"memories": {"kinds": ["decision", "scratch"]}}}
    assert "backoff one" in engine.context("retries use backoff one", agent="coder").text
    assert engine.context("retries use backoff one", agent="reviewer").text == ""
    assert "were tried" in engine.context("retries were tried", task="t1", overrides=memories).text
    assert engine.context("retries were tried", task="t2", overrides=memories).text == ""


def test_structural_parts_keep_their_bytes_from_task_to_task(engine: foveate.Engine) -> None:
    """001-49"""
    engine.add("identity", "You implement one task at a time.")
    given = {"repo_map": ["src/\n  a.py"], "codebase_docs": ["A tool"]}
    one, other = (engine.context(query, extra=given) for query in ("Add retries", "Remove the cache"))
    assert one.prefix == other.prefix
    assert one.text[: one.prefix.chars].endswith("## Codebase\n- A tool\n")


def test_a_context_has_an_id_a_count_and_a_time_in_its_receipt(engine: foveate.Engine) -> None:
    """001-36, 001-57, 001-58"""
    context = engine.context("Add retries")
    receipt = engine.receipts.get(context)
    assert context.id.startswith("ctx_")
    assert receipt.id == context.id
    assert to_json(receipt)["created"] == "2026-09-21T14:13:20.000Z"
    assert receipt.request.now == NOW


def test_validation() -> None:
    """001-42, 001-79, 001-80, 001-81, 001-82, 001-83, 001-84, 001-112, 001-122"""
    with GIVEN.open() as engine:
        context = GIVEN.context(engine)
        found = engine.receipts.validate(context)
    assert (found.valid, found.token_count) == (True, context.tokens)
    assert found.max_tokens == 20_000 - context.budget.reserve
    parts = ("system_prompt", "repo_map", "codebase_docs", "task_spec", "files", "code", "memories")
    assert set(found.breakdown) == {*parts, "reserved", "total"}
    assert found.breakdown["total"] == context.tokens + found.breakdown["reserved"]
    assert isinstance(found.warnings, tuple)
    assert isinstance(found.suggestions, tuple)


def test_four_characters_a_token_is_a_named_estimate() -> None:
    """001-43, 001-78"""
    assert tokens.count("Hello, world!", "chars4") == 4
    assert tokens.counter("chars4").is_exact is False
    assert tokens.counter().is_exact is True


def test_one_call_opens_a_working_system() -> None:
    """001-20, 001-26, 001-101, 001-104, 001-113, 001-114, 001-116"""
    with foveate.open(":memory:") as engine:
        engine.add("decision", "Retries use backoff")
        assert "backoff" in engine.context("retries backoff").text


def test_the_types_have_their_counterparts() -> None:
    """001-107, 001-108, 001-109, 001-111"""
    for name in ("Context", "Record", "Candidate", "Engine", "Source"):
        assert hasattr(foveate, name)
    from foveate.options import ContextOptions
    from foveate.types import Budget, SlotBudget

    assert {"budget", "extra", "filters", "overrides"} <= set(ContextOptions.__annotations__)

    assert {"total", "reserve", "used", "slots"} <= {field.name for field in fields(Budget)}
    assert {"granted", "used"} <= {field.name for field in fields(SlotBudget)}


def test_task_spec() -> None:
    """001-50"""
    with open_engine() as engine:
        engine.tasks.add(
            "Add user authentication",
            description="Implement JWT-based authentication",
            files=["src/auth/login.ts"],
            test_criteria="All auth tests pass",
            acceptance_criteria=["Login works", "Token validation works"],
            depends_on=["src/users/user.ts"],
            estimated_time=4,
            key="task-001",
        )
        context = engine.context(task="task-001", profile="task-files", budget=100_000)
        section = next(section.content for section in context.sections if section.name == "task_spec")
        for said in (
            "JWT-based",
            "`src/auth/login.ts`",
            "All auth tests pass",
            "Token validation",
            "`src/users/user.ts`",
            "4",
        ):
            assert said in section
