"""Strategies go through the one pipeline: budget, receipts, replay and the command line hold for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import foveate
from cli_kit import run
from foveate import BudgetError, InputError
from foveate.agents import ContextStrategy, strategy_of
from foveate.errors import ProfileError
from foveate.pipeline.sources.parts import code_fence, file_line, step_text
from worlds import open_engine

PATCH = "diff --git a/{0} b/{0}\n--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-a\n+{1}\n"


def ready(engine: foveate.Engine, **values: Any) -> str:
    task = engine.tasks.push("Keep sessions in Redis")
    return (engine.tasks.edit(task, **values) if values else task).id


# --- one pipeline ----------------------------------------------------------------------------------------------------


def test_rules_of_the_store_stand_behind_the_system_prompt() -> None:
    with open_engine() as engine:
        ready(engine)
        engine.add("instruction", "Answer in British spelling")
        compiled = strategy_of("developer").compile(engine)
        assert compiled.system_prompt.startswith("You are a senior developer")
        assert compiled.system_prompt.endswith("## Active Constraints\n- Answer in British spelling\n")
        assert compiled.system_prompt == compiled.context.stable


def test_the_system_prompt_counts_and_is_never_evicted() -> None:
    with open_engine() as engine:
        ready(engine, steps=[f"Step {n}: " + "many words " * 30 for n in range(20)])
        strategy = strategy_of("developer")
        for budget in (1200, 700):
            compiled = strategy.compile(engine, budget=budget)
            assert compiled.context.tokens <= budget
            assert compiled.system_prompt.startswith("You are a senior developer")
            assert compiled.warnings == ("Section 'steps' is not shown in full; raise the budget to see all of it.",)
        with pytest.raises(BudgetError):
            strategy.compile(engine, budget=20)


def test_of_a_diff_that_is_too_long_whole_files_stay() -> None:
    with open_engine() as engine:
        ready(engine)
        engine.add("change", "".join(PATCH.format(f"file{n}.py", "word" + " word" * 120) for n in range(6)))
        compiled = strategy_of("reviewer").compile(engine, budget=600)
        shown = [item for item in compiled.context.items if item.section == "diff"]
        whole = [item.record.text for item in shown if item.level == "full"]
        assert whole
        assert all(text.endswith("\n```") and text in compiled.context.text for text in whole)
        assert compiled.context.tokens <= 600
        assert compiled.warnings == ("Section 'diff' is not shown in full; raise the budget to see all of it.",)


def test_a_receipt_explains_a_compilation_and_a_replay_gives_its_bytes() -> None:
    with open_engine() as engine:
        task = ready(engine, steps=["One", "Two"])
        strategy = strategy_of("developer")
        compiled = strategy.compile(engine, session=None)
        steps = next(section for section in compiled.context.sections if section.name == "steps")
        assert str(engine.why(steps.items[1].id, compiled.context)).startswith("kept in 'steps' at level full")
        prompt = compiled.context.sections[0]
        assert (prompt.source, engine.why(prompt.items[0].id, compiled.context).included) == ("text", True)
        again = engine.receipts.replay(compiled.context)
        assert (again.same, again.text) == (True, compiled.context.text)
        assert engine.receipts.get(compiled.context).request.task == task


def test_the_record_that_is_the_system_prompt_is_in_no_store_and_never_missing() -> None:
    with open_engine() as engine:
        engine.add("fact", "The parser reads UTF-8")
        says = {"slots": {"prompt": {"source": "text", "text": "Be brief.", "tokens": 50, "stable": True, "order": 0}}}
        context = engine.context("parser", overrides=says)
        assert context.messages()[0] == {"role": "system", "content": "Be brief.\n"}
        assert engine.receipts.replay(context).same


def test_an_agent_sees_its_own_records_and_not_those_of_others() -> None:
    with open_engine() as engine:
        ready(engine)
        engine.add("instruction", "For developers", agent="developer")
        engine.add("instruction", "For reviewers", agent="reviewer")
        text = strategy_of("developer").compile(engine).context.text
        assert ("For developers" in text, "For reviewers" in text) == (True, False)


def test_a_shipped_profile_is_no_layer_of_an_agent_that_has_its_name() -> None:
    """Somebody else's agent called `developer`, which has no strategy, keeps its whole context."""
    with open_engine() as engine:
        engine.add("fact", "The parser reads UTF-8")
        assert engine.context("parser", agent="developer").text == engine.context("parser").text


def test_a_strategy_needs_an_agent_with_a_profile() -> None:
    with open_engine() as engine:
        with pytest.raises(InputError, match="has no agent"):
            ContextStrategy()
        ready(engine)
        with pytest.raises(ProfileError, match="Profile 'nobody' does not exist"):
            ContextStrategy("nobody").compile(engine)


# --- lines -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ({"path": "a.py", "operation": "create"}, "- create: `a.py`"),
        ({"file": "a.py", "reason": "has\nit"}, "- has it: `a.py`"),
        ({"path": "a`.py"}, "- `a'.py`"),
        ("a.py", "- `a.py`"),
    ],
)
def test_a_file_is_one_line(file: Any, line: str) -> None:
    assert file_line(file) == line


@pytest.mark.parametrize(
    ("step", "text"),
    [
        ("Do it", "3. Do it"),
        ({"description": "Do it"}, "3. Do it"),
        ({"command": "make `x`"}, "3.\nRun: `make 'x'`"),
        ({"text": "Do it", "code": "```\nx\n```"}, "3. Do it\n````\n```\nx\n```\n````"),
    ],
)
def test_a_step_has_its_number(step: Any, text: str) -> None:
    assert step_text(3, step) == text


def test_a_fence_is_longer_than_those_in_it() -> None:
    assert code_fence("a ```` b").splitlines()[0] == "`````"


# --- the command line --------------------------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    assert run("init").exit_code == 0
    return tmp_path


def test_context_of_an_agent_is_text_messages_or_a_document(project: Path) -> None:
    refused = run("context", "--profile", "developer")
    assert (refused.exit_code, "--push" in refused.stderr) == (2, True)
    run("task", "add", "Log in", "--key", "login", "--objective", "Let users log in")
    developer = ("context", "--profile", "developer", "--task", "login")
    text = run(*developer, "--budget", "500")
    assert text.stdout.endswith("## Task\nLet users log in\n")
    messages = json.loads(run(*developer, "--messages", "openai").stdout)
    assert [message["role"] for message in messages] == ["system", "user"]
    found = json.loads(run(*developer, "--json").stdout)
    assert (found["profile"], found["text"]) == ("developer", text.stdout)


def test_a_profile_alone_gives_the_context_of_its_strategy() -> None:
    with open_engine() as engine:
        engine.add("issue", "Users are logged out", data={"title": "Sessions die"})
        ready(engine, steps=["One", "Two"], acceptance_criteria=["It works"])
        engine.add("change", PATCH.format("a.py", "b"))
        for profile in ("architect", "developer", "reviewer"):
            whole = strategy_of(profile).compile(engine)
            assert engine.context(profile=profile).text == whole.context.text
            assert "\n## " in whole.context.text


@pytest.mark.parametrize("profile", ["architect", "developer", "reviewer"])
def test_a_profile_without_what_it_needs_refuses(profile: str) -> None:
    with open_engine() as engine, pytest.raises(InputError, match=f"The {profile} needs"):
        engine.context("anything", profile=profile)


def test_a_replay_makes_the_parts_of_a_task_again_as_they_were() -> None:
    with open_engine() as engine:
        task = ready(engine, steps=["One", "Two"])
        context = engine.context(profile="developer")
        assert f"{task}#steps.2" in [item.id for item in context.items]
        engine.tasks.edit(task, steps=["Three"])
        assert "Three" in engine.context(profile="developer").text
        replay = engine.receipts.replay(context)
        assert (replay.same, replay.text) == (True, context.text)
        engine.forget(task)
        left = engine.receipts.get(context.id).candidates
        assert not [candidate for candidate in left if candidate.id.startswith(task)]


def test_any_profile_is_an_agent_on_the_command_line(project: Path) -> None:
    folder = project / ".foveate" / "profiles"
    folder.mkdir()
    (folder / "writer.toml").write_text(
        'extends = "agent"\n[slots.system_prompt]\ntext = "You write release notes."\n'
        '[slots.changes]\nsource = "recent"\nkinds = ["change"]\nheading = "Changes"\nshare = 1\nlevel = "full"\n',
        "utf-8",
    )
    run("add", "issue", "The notes of 1.2 are due", "--set", "title=Notes")
    run("add", "change", "Sessions survive a restart")
    found = run("context", "--profile", "writer")
    assert found.stdout == "You write release notes.\n\n## Changes\n- Sessions survive a restart\n"
