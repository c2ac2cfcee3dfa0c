"""002, a strategy for each agent. Each docstring names the rows of docs/concepts/specs.md that it shows."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

import foveate
from foveate import BudgetError, Context, InputError
from foveate.agents import (
    Agent,
    Architect,
    ArchitectContextStrategy,
    ContextStrategy,
    Developer,
    DeveloperContextStrategy,
    Reviewer,
    ReviewerContextStrategy,
    State,
    strategy_of,
)
from foveate.types import Section
from worlds import open_engine

STRATEGIES = {
    Architect: ArchitectContextStrategy,
    Developer: DeveloperContextStrategy,
    Reviewer: ReviewerContextStrategy,
}
DIFF = "diff --git a/session.py b/session.py\n--- a/session.py\n+++ b/session.py\n@@ -1 +1 @@\n-cache = {}\n+cache = None\n"
STEPS = [
    {"text": "Write the failing test", "code": "def test_restart():\n    ...", "command": "pytest -q"},
    {"text": "Make it pass"},
]


@pytest.fixture
def engine() -> Iterator[foveate.Engine]:
    with open_engine() as engine:
        yield engine


def work(engine: foveate.Engine, **values: Any) -> foveate.Task:
    """A current task."""
    task = engine.tasks.push("Keep sessions in Redis", name="Store sessions")
    return engine.tasks.edit(task, **values) if values else task


def full(engine: foveate.Engine) -> None:
    """All that the three agents need."""
    engine.add("issue", "Users are logged out after a restart.", data={"title": "Sessions die"})
    work(engine, acceptance_criteria=["A session survives a restart"], files=[{"path": "session.py", "operation": "modify"}])
    engine.add("change", DIFF)


# --- the pattern -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("agent", "strategy"), STRATEGIES.items(), ids=lambda each: each.__name__)
def test_an_agent_names_its_strategy_as_a_class_attribute(agent: type[Agent[Any]], strategy: type[ContextStrategy]) -> None:
    """002-07, 002-25, 002-41, 002-42, 002-43, 002-49, 002-51, 002-57, 002-59, 002-60, 002-61"""
    assert agent.context_strategy is strategy
    assert strategy.__name__ == f"{agent.__name__}ContextStrategy"
    assert strategy.__module__ == agent.__module__
    assert isinstance(strategy_of(strategy.agent), strategy)


@pytest.mark.parametrize("agent", STRATEGIES, ids=lambda each: each.__name__)
def test_an_agent_compiles_converts_and_calls_its_driver(engine: foveate.Engine, agent: type[Agent[Any]]) -> None:
    """002-34, 002-36, 002-53, 002-62"""
    full(engine)
    calls: list[tuple[list[dict[str, str]], Any]] = []

    def driver(messages: list[dict[str, str]], schema: Any = None) -> str:
        calls.append((messages, schema))
        return "done"

    here = agent(driver)
    assert here.run(engine, schema=dict) == "done"
    strategy = here.strategy
    assert calls == [(strategy.to_messages(strategy.compile(engine)), dict)]


def test_a_strategy_takes_everything_from_state(engine: foveate.Engine) -> None:
    """002-15, 002-16, 002-52, 002-54"""
    engine.add("issue", "Old words", data={"title": "Sessions die"})
    before = ArchitectContextStrategy().compile(engine)
    engine.add("issue", "New words", data={"title": "Sessions die again"})
    after = ArchitectContextStrategy().compile(engine)
    assert "Old words" in before.context.text
    assert "New words" in after.context.text
    assert ArchitectContextStrategy().compile(engine).context.id == after.context.id


def test_the_current_task_is_the_top_of_the_stack(engine: foveate.Engine) -> None:
    """002-21, 002-22"""
    strategy = DeveloperContextStrategy()
    assert strategy.current_task(strategy.state(engine)) is None
    shared = work(engine)
    assert strategy.current_task(strategy.state(engine)) == shared.record
    own = engine.scoped(agent="developer").tasks.push("Only mine").record
    assert strategy.current_task(strategy.state(engine)) == own
    named = engine.tasks.add("Another", key="another").record
    assert strategy.current_task(strategy.state(engine, task="another")) == named
    assert strategy.current_task(strategy.state(engine, task="no such")) is None
    assert strategy.current_task(strategy.state(engine, session="elsewhere")) is None


def test_an_issue_is_its_title_a_blank_line_and_its_description(engine: foveate.Engine) -> None:
    """002-23, 002-24"""
    strategy = ArchitectContextStrategy()
    assert strategy.issue_summary(strategy.state(engine)) is None
    engine.add("issue", "Users are logged out after a restart.", data={"title": "Sessions die"})
    assert strategy.issue_summary(strategy.state(engine)) == "Sessions die\n\nUsers are logged out after a restart."


# --- the three -------------------------------------------------------------------------------------------------------


def test_the_architect_reads_the_issue_and_the_design_where_there_is_one(engine: foveate.Engine) -> None:
    """002-37"""
    engine.add("issue", "Users are logged out after a restart.", data={"title": "Sessions die"})
    strategy = ArchitectContextStrategy()
    assert [section.name for section in strategy.compile(engine).sections] == ["issue"]
    engine.add("design", "Sessions live in Redis.", data={"title": "Sessions"})
    system, user = strategy.to_messages(strategy.compile(engine))
    assert system["content"].startswith("You are a software architect.")
    assert user["content"] == (
        "## Issue\nSessions die\n\nUsers are logged out after a restart.\n\n## Design\nSessions\n\nSessions live in Redis.\n"
    )


def test_the_developer_reads_task_files_and_steps(engine: foveate.Engine) -> None:
    """002-27, 002-28, 002-29, 002-30, 002-31, 002-33, 002-38"""
    files = [{"path": "session.py", "operation": "modify"}, {"path": "tests/test_session.py", "operation": "create"}]
    work(engine, description="No user may be logged out.", files=files, steps=STEPS)
    strategy = DeveloperContextStrategy()
    compiled = strategy.compile(engine)
    assert [(section.name, section.source) for section in compiled.sections] == [
        ("task", "task"),
        ("files", "task"),
        ("steps", "task"),
    ]
    system, user = strategy.to_messages(compiled)
    assert system == {
        "role": "system",
        "content": "You are a senior developer executing tasks following TDD principles.\n",
    }
    assert user["role"] == "user"
    assert user["content"] == (
        "## Task\nKeep sessions in Redis\n\nNo user may be logged out.\n\n"
        "## Files\n- modify: `session.py`\n- create: `tests/test_session.py`\n\n"
        "## Steps\n1. Write the failing test\n```\ndef test_restart():\n    ...\n```\nRun: `pytest -q`\n2. Make it pass\n"
    )


def test_the_developer_leaves_out_what_the_task_does_not_have(engine: foveate.Engine) -> None:
    """002-28, 002-32"""
    work(engine)
    assert [section.name for section in DeveloperContextStrategy().compile(engine).sections] == ["task"]


def test_the_reviewer_reads_task_criteria_and_the_latest_change(engine: foveate.Engine) -> None:
    """002-39"""
    full(engine)
    strategy = ReviewerContextStrategy()
    _, user = strategy.to_messages(strategy.compile(engine))
    assert user["content"] == (
        "## Task\nKeep sessions in Redis\n\n## Acceptance Criteria\n- A session survives a restart\n\n"
        f"## Diff\n```diff\n{DIFF}```\n"
    )


@pytest.mark.parametrize(
    ("agent", "missing"),
    [
        ("architect", ("foveate add issue",)),
        ("developer", ("--push", "--task")),
        ("reviewer", ("--push", "foveate add change")),
    ],
)
def test_an_agent_without_what_it_needs_refuses_and_says_how_to_add_it(
    engine: foveate.Engine, agent: str, missing: Sequence[str]
) -> None:
    """002-26"""
    with pytest.raises(InputError) as refused:
        strategy_of(agent).compile(engine)
    assert all(part in str(refused.value) for part in missing)


# --- messages of one's own ---------------------------------------------------------------------------------------------


class Chatty(ContextStrategy):
    agent = "developer"
    own: Sequence[dict[str, str]] = ({"role": "user", "content": "Go on."},)

    def sections(self, state: State) -> Iterator[Section]:
        yield Section(name="task", content="Anything", source="nowhere")

    def question(self, state: State) -> str:
        return "anything"

    def messages(self, context: Context) -> Sequence[dict[str, str]]:
        return self.own


def test_messages_that_are_set_are_used_as_they_are(engine: foveate.Engine) -> None:
    """002-14, 002-17, 002-50"""
    strategy = Chatty()
    compiled = strategy.compile(engine)
    assert strategy.to_messages(compiled) == [{"role": "user", "content": "Go on."}]
    assert [section.name for section in compiled.sections] == ["task"]  # still there for whoever inspects it
    strategy.own = ()
    assert [message["role"] for message in strategy.to_messages(strategy.compile(engine))] == ["system", "user"]


def test_messages_of_ones_own_are_held_to_the_budget(engine: foveate.Engine) -> None:
    """002-14"""
    strategy = Chatty()
    strategy.own = [{"role": "user", "content": "word " * 300}]
    with pytest.raises(BudgetError) as over:
        strategy.compile(engine, budget=200)
    assert over.value.short > 0


# --- inspection ------------------------------------------------------------------------------------------------------


def test_a_compilation_is_logged_without_its_content(engine: foveate.Engine, caplog: pytest.LogCaptureFixture) -> None:
    """002-35, 002-44, 002-45, 002-46, 002-47"""
    full(engine)
    with caplog.at_level(logging.DEBUG, "foveate.agents"):
        compiled = DeveloperContextStrategy().compile(engine)
    (record,) = caplog.records
    facts = {name: getattr(record, name) for name in ("agent", "sections", "system_prompt_length", "tokens", "context")}
    assert facts == {
        "agent": "developer",
        "sections": ["task", "files"],
        "system_prompt_length": len(compiled.system_prompt),
        "tokens": compiled.context.tokens,
        "context": compiled.context.id,
    }
    assert (record.levelname, record.name) == ("DEBUG", "foveate.agents")
    assert "agent=developer sections=task,files" in record.getMessage()
    assert "Redis" not in str(vars(record))
