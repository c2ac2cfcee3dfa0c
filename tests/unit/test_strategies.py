"""Strategies go through the one pipeline: budget, receipts, replay and the command line hold for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import foveate
from foveate import BudgetError, InputError
from foveate.agents import ContextStrategy, strategy_of
from foveate.agents.developer import fenced, file_line, step_text
from foveate.cli import cli
from foveate.errors import ProfileError
from worlds import open_engine

PATCH = "diff --git a/{0} b/{0}\n--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-a\n+{1}\n"


def run(*args: str) -> Result:
    return CliRunner().invoke(cli, list(args), catch_exceptions=False)


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
        assert engine.why(steps.items[1].id)["sentence"].startswith("kept in 'steps' at level full")
        prompt = compiled.context.sections[0]
        assert (prompt.source, engine.why(prompt.items[0].id)["kept"]) == ("text", True)
        again = engine.receipts.replay(compiled.context, extra=strategy.given(engine))
        assert (again["identical"], again["text"]) == (True, compiled.context.text)
        assert engine.receipts.get(compiled.context).document["request"]["task"] == task


def test_the_record_that_is_the_system_prompt_is_in_no_store_and_never_missing() -> None:
    with open_engine() as engine:
        engine.add("fact", "The parser reads UTF-8")
        says = {"slots": {"prompt": {"source": "text", "text": "Be brief.", "tokens": 50, "stable": True, "order": 0}}}
        context = engine.context("parser", overrides=says)
        assert context.messages()[0] == {"role": "system", "content": "Be brief.\n"}
        assert engine.receipts.replay(context)["identical"]


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
        with pytest.raises(InputError, match="names no agent"):
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
    assert fenced("a ```` b").splitlines()[0] == "`````"


# --- the command line --------------------------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    assert run("init").exit_code == 0
    return tmp_path


def test_compile_prints_text_messages_or_a_document(project: Path) -> None:
    refused = run("agent", "compile", "developer")
    assert (refused.exit_code, "stack push" in refused.stderr) == (2, True)
    run("task", "add", "Log in", "--key", "login", "--objective", "Let users log in")
    text = run("agent", "compile", "developer", "--task", "login", "--budget", "500")
    assert text.stdout.endswith("## Task\nLet users log in\n")
    messages = json.loads(run("agent", "compile", "developer", "--task", "login", "--messages").stdout)
    assert [message["role"] for message in messages] == ["system", "user"]
    found = json.loads(run("agent", "compile", "developer", "--task", "login", "--json").stdout)
    assert (found["agent"], found["messages"], found["context"]["profile"]) == ("developer", messages, "developer")
    assert [(section["name"], section["source"]) for section in found["sections"]] == [("task", "current task")]
    assert found["system_prompt"] == messages[0]["content"]


def test_replay_hands_in_again_what_a_strategy_made(project: Path) -> None:
    run("task", "add", "Log in", "--key", "login", "--objective", "Let users log in")
    made = json.loads(run("agent", "compile", "developer", "--task", "login", "--json").stdout)["context"]["id"]
    assert run("replay", "last", "--agent", "developer").stdout.startswith(made)
    assert "identical" in run("replay", "last", "--agent", "developer").stdout
    task = json.loads(run("task", "list", "--json").stdout)["tasks"][0]["id"]
    assert run("edit", task, "--text", "Let users log in twice").exit_code == 0
    later = run("replay", "last", "--agent", "developer")
    assert (later.exit_code, "given texts are not kept" in later.stdout) == (1, True)


def test_diff_hands_in_again_what_a_strategy_made(project: Path) -> None:
    run("task", "add", "Log in", "--key", "login", "--objective", "Let users log in")
    ids = [
        json.loads(run("agent", "compile", "developer", "--task", "login", "--budget", budget, "--json").stdout)["context"][
            "id"
        ]
        for budget in ("500", "900")
    ]
    assert "100% of the second) are the same" in run("diff", *ids, "--agent", "developer").stdout
    found = json.loads(run("diff", *ids, "--agent", "developer", "--json").stdout)
    assert (found["unread"], found["shared_prefix"]["share"]) == ([], 1.0)


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
    found = run("agent", "compile", "writer")
    assert found.stdout == "You write release notes.\n\n## Changes\n- Sessions survive a restart\n"
